/* A word in an environment variable, looked up once. */
#ifndef WB_BASE_SWITCH_H
#define WB_BASE_SWITCH_H

#include <stdbool.h>

typedef struct wb_switch {
    const char *variable, *word;
    int state; /* 0: not looked up yet */
} wb_switch;

/* Whether the variable contained the word when it was asked for the first time. A wb_switch is
 * static; any thread may ask. */
bool wb_is_on(wb_switch *s);

#endif
