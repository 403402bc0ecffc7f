#include "base/switch.h"

#include <stdlib.h>
#include <string.h>

bool wb_has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (!at[length] || at[length] == ',')) return true;
    }
    return false;
}

/* Threads that meet here all write the same. */
int wb_switch_look_up(wb_switch *s) {
    const int state = wb_has_word(getenv(s->variable), s->word) ? WB_SWITCH_ON : WB_SWITCH_OFF;
    __atomic_store_n(&s->state, state, __ATOMIC_RELAXED);
    return state;
}
