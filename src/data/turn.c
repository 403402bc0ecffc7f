/* The scopes of a loader: one for each turn, which closes at the next batch, and one for each call
 * of a user's function, on any thread. */
#include "array/thread.h"
#include "array/user_call.h"
#include "data/loader.h"

static void turn_is_over(void *object) { ((wb_loader_turn *)object)->open = false; }
static const wb_class turn_class = {
    .name = "loader's turn", .free = turn_is_over, .ends_with_scope = true};

/* Whether the turn's scope was opened outside of the user's function that is running, which must
 * not close it. */
static bool is_outside(const wb_loader *loader, const wb_thread *thread) {
    return thread->call && loader->turn.open && loader->turn.depth <= thread->call->scopes;
}

bool wb_loader_may_go_on(const char *function, const wb_loader *loader) {
    const wb_thread *thread = wb_thread_get();
    if (!thread || !is_outside(loader, thread)) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "%s: the loader is in use by a loop outside of %s; make another loader over the data",
        function, thread->call->what);
    return false;
}

void wb_loader_start_turns(wb_loader *loader) {
    loader->turn.object.klass = &turn_class;
    wb_note_class(&turn_class);
}

wb_status wb_loader_close_turn(wb_loader *loader, bool only_innermost) {
    const wb_thread *thread = wb_thread_get();
    if (!loader->turn.open || !thread) return WB_OK;
    if ((only_innermost && thread->scope_count > loader->turn.depth) ||
        is_outside(loader, thread)) {
        wb_free(&loader->turn);
        return WB_OK;
    }
    wb_status status = WB_OK;
    while (thread->scope_count >= loader->turn.depth && thread->scope_count > 0) {
        const wb_status closed = wb_scope_close();
        if (status == WB_OK) status = closed;
    }
    return status;
}

bool wb_loader_open_turn(wb_loader *loader) {
    if (wb_scope_open() != WB_OK) return false;
    loader->turn.open = true;
    loader->turn.depth = wb_thread_get()->scope_count;
    if (wb_scope_own(&loader->turn)) return true;
    (void)wb_scope_close();
    return false;
}

wb_status wb_loader_call(uint64_t seed, const char *what, wb_status (*fn)(void *context),
                         void *context) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return WB_ERROR_MEMORY;
    const uint64_t before = thread->seed, counter = thread->counter;
    wb_seed(seed);
    wb_status status = wb_scope_open();
    if (status == WB_OK) {
        wb_user_call call;
        wb_user_call_begin(&call, what);
        status = fn(context);
        (void)wb_user_call_end(&call, "loader");
        (void)wb_scope_close();
    }
    thread->seed = before, thread->counter = counter;
    return status == WB_OK && wb_failed() ? wb_error_status() : status;
}
