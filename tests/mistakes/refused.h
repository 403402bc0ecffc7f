/* Rows of mistakes: a call that must fail, its status, and words of its message.
 *
 *     REFUSED(wb_groupnorm(4, 3), SHAPE, "3 groups do not divide"); // NULL, false or 0
 *     FAILS(wb_eval_make(-1, NULL), ARGUMENT, "a negative length"); // the status
 */
#ifndef WB_TESTS_MISTAKES_REFUSED_H
#define WB_TESTS_MISTAKES_REFUSED_H

#include "support/support.h"

#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        if (call) fail_msg("%s gave something", #call);                                            \
        is_told(#call, WB_ERROR_##status, words);                                                  \
    } while (0)

#define FAILS(call, status, words)                                                                 \
    do {                                                                                           \
        if ((call) != WB_ERROR_##status) fail_msg("%s gave another status", #call);                \
        is_told(#call, WB_ERROR_##status, words);                                                  \
    } while (0)

/* The pending error is taken. */
static inline void is_told(const char *call, wb_status wanted, const char *words) {
    char message[1024];
    const wb_status status = wb_take_error(message, sizeof message);
    if (!strstr(message, words)) skip_without_f64(message, __FILE__, __LINE__);
    if (status != wanted || !strstr(message, words))
        fail_msg("%s: status %d with \"%s\", not %d with \"%s\"", call, (int)status, message,
                 (int)wanted, words);
}

#endif
