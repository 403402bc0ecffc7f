#include "base/switch.h"

#include <stdlib.h>
#include <string.h>

enum { UNKNOWN, OFF, ON };

bool wb_is_on(wb_switch *s) {
    int state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);
    if (state == UNKNOWN) { /* threads that meet here all write the same */
        const char *text = getenv(s->variable);
        state = text && strstr(text, s->word) ? ON : OFF;
        __atomic_store_n(&s->state, state, __ATOMIC_RELAXED);
    }
    return state == ON;
}
