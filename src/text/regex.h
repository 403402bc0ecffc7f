/* Regular expressions of tokenizers, by PCRE2, which is opened when a file needs it. */
#ifndef WB_TEXT_REGEX_H
#define WB_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weber/error.h>

typedef struct wb_regex_library {
    struct wb_regex *all;
    /* PCRE2's; NULL: it is not open yet */
    void *(*compile)(const uint8_t *pattern, size_t bytes, uint32_t options, int *error,
                     size_t *place, void *context);
    void (*code_free)(void *code);
    void *(*match_data_create)(uint32_t pairs, void *context);
    void (*match_data_free)(void *data);
    int (*match)(const void *code, const uint8_t *text, size_t bytes, size_t at, uint32_t options,
                 void *data, void *context);
    size_t *(*ovector)(void *data);
    void *(*match_context_create)(void *context);
    void (*match_context_free)(void *context);
    int (*set_match_limit)(void *context, uint32_t limit);
    int (*set_heap_limit)(void *context, uint32_t limit);
    int (*error_message)(int error, uint8_t *text, size_t bytes);
} wb_regex_library;

typedef struct wb_regex {
    const wb_regex_library *library;
    void *code;
    struct wb_regex *next;
} wb_regex;

/* The expression, in the syntax of Oniguruma; NULL with the error recorded: WB_ERROR_FORMAT (it is
 * not one), WB_ERROR_UNSUPPORTED (PCRE2 is missing). It belongs to the library. */
wb_regex *wb_regex_new(wb_regex_library *library, const char *pattern, size_t bytes);
void wb_regex_library_close(wb_regex_library *library);

/* Memory of searches, {0} at first; for one thread at a time. */
typedef struct wb_match {
    const wb_regex_library *library;
    void *data, *context;
} wb_match;

/* The first match that begins at `at` or later in valid UTF-8. False: there is none, or, with an
 * error recorded and *end = -1, the search took too many steps or memory. */
bool wb_regex_find(const wb_regex *regex, wb_match *match, const char *text, size_t bytes,
                   size_t at, int64_t *begin, int64_t *end);
void wb_match_release(wb_match *match);

#endif
