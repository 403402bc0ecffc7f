/* Calls of functions that the user wrote: a loss, a layer's forward function, a map of a loader.
 * They close each scope that they open, and no other; else the call fails, and the scopes are as
 * they were. The first error stays. */
#ifndef WB_ARRAY_USER_CALL_H
#define WB_ARRAY_USER_CALL_H

#include "array/array.h"

typedef struct wb_user_call {
    struct wb_user_call *outer;
    const char *what; /* "the loss function", in messages */
    int64_t scopes;   /* open when it began */
    bool closed_more; /* it has tried to close one of these */
} wb_user_call;

void wb_user_call_begin(wb_user_call *call, const char *what);

/* Whether it has kept to that; else an error is recorded, which function begins (NULL: the place
 * that every error gets does). */
bool wb_user_call_is_kept(const wb_user_call *call, const char *function);
/* Closes what it has left open. */
void wb_user_call_leave(wb_user_call *call);
/* Both. */
bool wb_user_call_end(wb_user_call *call, const char *function);

#endif
