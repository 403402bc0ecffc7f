/* weber/context.h: contexts, which several threads use in turn.
 *
 * Arrays, models, loaders, open scopes, the random sequence, the flag of training and the plans
 * belong to a context. Each thread has one of its own, from its first call until it ends, and most
 * programs need no other: wb_share and wb_hand_over (weber/model.h) bring models to other threads.
 * A context that is made here belongs to no thread. The one that enters it uses all that belongs to
 * it, as if it were its own; a program in another language, whose threads share all objects, has
 * one context for all of them.
 *
 *     wb_context *context = wb_context_new();
 *     ...                                       // on any thread, under a lock of the program:
 *     wb_context_enter(context);
 *     wb_array *y = wb_keep(wb_apply(model, x)); // model and y belong to the context
 *     wb_context_leave();
 *     ...
 *     wb_free(context);
 *
 * One thread at a time may be in a context: entering one that is in use on another thread is an
 * error, and waits for nothing. A pending error stays with the thread (weber/error.h). Settings
 * of the process, as wb_set_threads, are the same in all contexts; a context may have a default
 * device of its own (wb_set_context_device, weber/device.h). Errors: weber/error.h. */
#ifndef WEBER_CONTEXT_H
#define WEBER_CONTEXT_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Known by pointers alone. Released by wb_free. */
typedef struct wb_context wb_context;

/* A context in which no thread is. It is the caller's: wb_free releases it, on any thread, with
 * what its scopes own; what was kept in it, and models, belong afterwards to the first context that
 * uses them, as those of a thread that has ended. wb_free of one that a thread is in is
 * WB_ERROR_ARGUMENT, and changes nothing. NULL when out of memory. */
WB_API wb_context *wb_context_new(void);

/* From now on this thread uses the context, until wb_context_leave. Calls nest: a thread may enter
 * the same context again, or another one, and comes back to the one before. Scopes that are open in
 * the context stay open when the thread leaves it. Fails with WB_ERROR_ARGUMENT, and nothing has
 * changed, if the context is in use on another thread; and within a loss, a forward function or
 * another one that Weber has called, which may enter no context but the one that it was called
 * in. */
WB_API wb_status wb_context_enter(wb_context *context);

/* Ends the last wb_context_enter of this thread; a thread that ends leaves all. Fails with
 * WB_ERROR_ARGUMENT where there is none, and where a function that Weber has called would leave the
 * context of its caller. */
WB_API wb_status wb_context_leave(void);

#ifdef __cplusplus
}
#endif
#endif
