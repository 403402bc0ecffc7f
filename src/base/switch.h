/* Words in environment variables, as in WEBER_DEBUG=leak,mem. */
#ifndef WB_BASE_SWITCH_H
#define WB_BASE_SWITCH_H

#include <stdbool.h>

/* Whether the word is in the text, a list separated by commas; false for NULL. */
bool wb_has_word(const char *text, const char *word);

typedef struct wb_switch {
    const char *variable, *word;
    int state; /* 0: not looked up yet */
} wb_switch;

enum { WB_SWITCH_UNKNOWN, WB_SWITCH_OFF, WB_SWITCH_ON };
int wb_switch_look_up(wb_switch *s);

/* Whether the variable had the word when it was asked for the first time. A wb_switch is
 * static; any thread may ask. */
static inline bool wb_is_on(wb_switch *s) {
    const int state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);
    return (state == WB_SWITCH_UNKNOWN ? wb_switch_look_up(s) : state) == WB_SWITCH_ON;
}

/* Warns once, at the start, about unknown words in the library's environment variables. */
void wb_check_variables(void);

#endif
