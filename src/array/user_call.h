/* Calls of functions that the user wrote: a loss, a layer's forward function, a map of a loader.
 * Such a function must close each scope that it opens, and no other; else the call fails, and the
 * scopes are as before the call. The first error stays. */
#ifndef WB_ARRAY_USER_CALL_H
#define WB_ARRAY_USER_CALL_H

#include "array/array.h"

typedef struct wb_user_call {
    struct wb_user_call *outer;
    const char *what; /* "the loss function", in messages */
    int64_t scopes;   /* how many were open when it began */
    bool closed_more; /* it has tried to close one of those */
} wb_user_call;

void wb_user_call_begin(wb_user_call *call, const char *what);

/* Whether the function has kept to that rule; else an error is recorded, which begins with function
 * (NULL: with the place of the layer, as every error). */
bool wb_user_call_is_kept(const wb_user_call *call, const char *function);
/* Closes the scopes that it has left open. */
void wb_user_call_leave(wb_user_call *call);
/* Checks with wb_user_call_is_kept, then calls wb_user_call_leave. */
bool wb_user_call_end(wb_user_call *call, const char *function);

#endif
