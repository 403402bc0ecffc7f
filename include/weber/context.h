/* weber/context.h: contexts, which several threads use in turn.
 *
 * Arrays, models, loaders, open scopes, the random sequence, the training flag and the plans
 * belong to a context. Each thread has a context of its own, from its first call until the thread
 * ends, and most programs need no other one: wb_share and wb_hand_over (weber/model.h) bring models
 * to other threads. A context that is made here belongs to no thread. A thread that enters it can
 * use everything in it as if that were the thread's own. In a language whose threads share all
 * objects, a program has one context for all of its threads.
 *
 *     wb_context *context = wb_context_new();
 *     ...                                       // on any thread, under a lock of the program:
 *     wb_context_enter(context);
 *     wb_array *y = wb_keep(wb_apply(model, x)); // model and y belong to the context
 *     wb_context_leave();
 *     ...
 *     wb_free(context);
 *
 * One thread at a time may be in a context: entering a context that another thread is in fails at
 * once, without waiting. A pending error belongs to the thread, not to the context (weber/error.h).
 * Settings of the process, such as wb_set_threads, hold in all contexts; a context may have a
 * default device of its own (wb_set_context_device, weber/device.h). Errors: weber/error.h. */
#ifndef WEBER_CONTEXT_H
#define WEBER_CONTEXT_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An opaque type; released by wb_free. */
typedef struct wb_context wb_context;

/* A new context, which no thread has entered. It is the caller's: wb_free releases it, on any
 * thread, with everything that its scopes own. Kept arrays and models then belong to the first
 * context that uses them, as after the end of a thread. wb_free of a context that a thread is in
 * fails with WB_ERROR_ARGUMENT and changes nothing. NULL when out of memory. */
WB_API wb_context *wb_context_new(void);

/* From now on this thread uses the context, until wb_context_leave. Calls nest: a thread may enter
 * the same context again, or another one, and comes back to the one before. Scopes that are open in
 * the context stay open when the thread leaves it. Fails with WB_ERROR_ARGUMENT, and changes
 * nothing, if another thread is in the context. Fails likewise inside a loss, a forward function or
 * any other function that Weber calls, if context is not the one in which that function was
 * called. */
WB_API wb_status wb_context_enter(wb_context *context);

/* Undoes the last wb_context_enter of this thread; a thread that ends leaves all of its contexts.
 * Fails with WB_ERROR_ARGUMENT if the thread has entered none, and where a function that Weber
 * called would leave the context of its caller. */
WB_API wb_status wb_context_leave(void);

#ifdef __cplusplus
}
#endif
#endif
