/* Looks for a word in an environment variable, once per switch, and warns of unknown words and
 * numbers. */
#include "base/switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

/* ---- what is misspelt ---- */

static void warn_of(const char *variable, const char *word, int length, const char *const *known) {
    char list[128] = "";
    for (int i = 0; known[i]; i++) {
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", known[i]);
    }
    wb_log_line(WB_LOG_WARN, "%s: unknown word \"%.*s\"; expected %s", variable, length, word,
                list);
}

static bool is_known(const char *word, size_t length, const char *const *known) {
    for (int i = 0; known[i]; i++)
        if (strlen(known[i]) == length && strncmp(known[i], word, length) == 0) return true;
    return false;
}

static void check_words(const char *variable, const char *const *known) {
    const char *at = getenv(variable);
    while (at && *at) {
        const size_t length = strcspn(at, ",");
        if (length && !is_known(at, length, known)) warn_of(variable, at, (int)length, known);
        at += length;
        at += *at == ',';
    }
}

static void check_number(const char *variable) {
    const char *text = getenv(variable);
    if (!text || !*text ||
        (strspn(text, "0123456789") == strlen(text) && strtol(text, NULL, 10) > 0))
        return;
    wb_log_line(WB_LOG_WARN, "%s must be a positive number, got \"%s\"; ignored", variable, text);
}

void wb_check_variables(void) {
    check_words("WEBER_DEBUG",
                (const char *const[]){"check", "leak", "mem", "nan", "plan", "where", NULL});
    check_words("WEBER_LOG", (const char *const[]){"error", "warn", "info", "debug", NULL});
    check_number("WEBER_NUM_THREADS");
    check_number("WEBER_INFLATE_MIB");
}
