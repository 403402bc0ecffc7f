#include "base/switch.h"

#include <stdlib.h>
#include <string.h>

/* Threads that meet here all write the same. */
int wb_switch_look_up(wb_switch *s) {
    const char *text = getenv(s->variable);
    const int state = text && strstr(text, s->word) ? WB_SWITCH_ON : WB_SWITCH_OFF;
    __atomic_store_n(&s->state, state, __ATOMIC_RELAXED);
    return state;
}
