/* A word in an environment variable, looked up once. */
#ifndef WB_BASE_SWITCH_H
#define WB_BASE_SWITCH_H

#include <stdbool.h>

typedef struct wb_switch {
    const char *variable, *word;
    int state; /* 0: not looked up yet */
} wb_switch;

enum { WB_SWITCH_UNKNOWN, WB_SWITCH_OFF, WB_SWITCH_ON };
int wb_switch_look_up(wb_switch *s);

/* Whether the variable contained the word when it was asked for the first time. A wb_switch is
 * static; any thread may ask. */
static inline bool wb_is_on(wb_switch *s) {
    const int state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);
    return (state == WB_SWITCH_UNKNOWN ? wb_switch_look_up(s) : state) == WB_SWITCH_ON;
}

#endif
