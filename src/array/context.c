/* Which context a thread uses: its own, made when it first calls the library and ended with the
 * thread, or the last one that it has entered. */
#include <weber/context.h>

#include <pthread.h>

#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"

/* What a thread has. */
typedef struct seat {
    wb_thread *own;       /* NULL: the thread has needed none yet */
    wb_context **entered; /* contexts entered and not left; the last one is in use */
    int64_t count, capacity;
} seat;

struct wb_context {
    wb_object object;
    wb_thread *thread;
    const seat *holder; /* of the thread that is in it; __atomic; NULL: no thread is */
    int64_t uses;       /* how many times the holder has entered it */
};

/* NULL: the thread has none yet. */
static _Thread_local seat *seat_here __attribute__((tls_model("initial-exec")));
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

/* ---- who is in it ---- */

/* False if another thread is in the context. Otherwise this thread sees all that the last one did
 * there. */
static bool take(wb_context *context, const seat *s) {
    const seat *holder = NULL;
    return __atomic_compare_exchange_n(&context->holder, &holder, s, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_ACQUIRE) ||
           (holder == s && context->uses > 0);
}

static void leave_last(seat *s) {
    wb_context *last = s->entered[--s->count];
    if (--last->uses == 0) __atomic_store_n(&last->holder, NULL, __ATOMIC_RELEASE);
    wb_thread_use(s->count ? s->entered[s->count - 1]->thread : s->own);
}

/* ---- threads ---- */

static void seat_ends(void *state) {
    seat *s = state;
    while (s->count) leave_last(s);
    if (s->own) wb_thread_end(s->own);
    seat_here = NULL;
    wb_release(s->entered);
    wb_release(s);
}

static void make_key(void) { (void)pthread_key_create(&key, seat_ends); }

/* The key is for the end of the thread. */
static seat *seat_get(void) {
    if (seat_here) return seat_here;
    (void)pthread_once(&once, make_key);
    seat_here = wb_alloc(sizeof *seat_here);
    if (seat_here) (void)pthread_setspecific(key, seat_here);
    return seat_here;
}

wb_thread *wb_thread_new(void) {
    seat *s = seat_get();
    if (s && !s->own) s->own = wb_thread_make(true);
    if (s && s->own) wb_thread_use(s->own);
    return s ? s->own : NULL;
}

const wb_thread *wb_thread_own(void) { return seat_here ? seat_here->own : NULL; }

/* ---- contexts as objects ---- */

static void context_free(void *object) {
    wb_context *context = object;
    const seat *s = seat_get(), *holder = NULL;
    if (!s) return;
    if (!__atomic_compare_exchange_n(&context->holder, &holder, s, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_ACQUIRE)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_free: the context is in use on %s thread%s",
                      holder == s ? "this" : "another",
                      holder == s ? "; call wb_context_leave first" : "");
        return;
    }
    wb_thread_end(context->thread);
    wb_object_delete(context, sizeof *context, "context");
}

static const wb_class context_class = {
    .name = "context", .free = context_free, .maker = "wb_context_new"};

wb_context *wb_context_new(void) {
    wb_context *context = wb_object_new(&context_class, sizeof *context);
    if (context && (context->thread = wb_thread_make(false))) return context;
    wb_object_delete(context, sizeof *context, "context");
    return NULL;
}

/* A function of the user's must return in the context in which it was called. */
static bool may_change_to(const char *function, const wb_thread *next) {
    const wb_thread *now = wb_current_thread;
    if (!now || !now->call || now == next) return true;
    return wb_fail(WB_ERROR_ARGUMENT, "%s: %s must end in the context that it was called in",
                   function, now->call->what) == WB_OK;
}

wb_status wb_context_enter(wb_context *context) {
    static const char function[] = "wb_context_enter";
    seat *s = seat_get();
    if (!s || !wb_object_check(function, context, &context_class, "the context") ||
        !may_change_to(function, context->thread))
        return wb_error_status();
    if (!WB_GROW(s->entered, s->count, s->capacity)) return WB_ERROR_MEMORY;
    if (!take(context, s))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the context is in use on another thread; one thread at a time may be "
                       "in a context, from wb_context_enter to wb_context_leave",
                       function);
    context->uses++;
    s->entered[s->count++] = context;
    wb_thread_use(context->thread);
    return WB_OK;
}

wb_status wb_context_leave(void) {
    static const char function[] = "wb_context_leave";
    seat *s = seat_here;
    if (!s || s->count == 0)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: this thread has not entered a context", function);
    if (!may_change_to(function, s->count > 1 ? s->entered[s->count - 2]->thread : s->own))
        return wb_error_status();
    leave_last(s);
    return WB_OK;
}
