/* Examples for the gradient checker, for operations whose row in ops.def does not give one. */
#ifndef WB_OPS_CHECK_H
#define WB_OPS_CHECK_H

#include "ops/build.h"

/* Defines wb_check_NAME: an expression in x and, if the check has two arrays, y. Further arguments
 * are members of wb_check. */
#define CHECK(name, expression, ...)                                                               \
    static wb_array *check_##name(void *context, int count, wb_array *const *arrays) {             \
        wb_array *x = arrays[0], *y = count > 1 ? arrays[1] : NULL;                                \
        (void)context, (void)y;                                                                    \
        return expression;                                                                         \
    }                                                                                              \
    const wb_check *wb_check_##name(void) {                                                        \
        static const wb_check check = {__VA_ARGS__, check_##name};                                 \
        return &check;                                                                             \
    }

#endif
