/* Compares the number of open scopes before and after a call of a user's function. */
#include "array/user_call.h"

#include "array/thread.h"

void wb_user_call_begin(wb_user_call *call, const char *what) {
    wb_thread *thread = wb_thread_get();
    *call = (wb_user_call){.what = what};
    if (!thread) return;
    call->outer = thread->call;
    call->scopes = thread->scope_count;
    thread->call = call;
}

/* A loop over a loader that was left by a plain break, which is allowed (weber/data.h). */
static bool is_loader_turn(const wb_thread *thread, int64_t scope) {
    const int64_t first = thread->scope_starts[scope];
    const wb_object *object = first < thread->entry_count ? thread->entries[first] : NULL;
    return object && object->klass->ends_with_scope;
}

bool wb_user_call_is_kept(const wb_user_call *call, const char *function) {
    const wb_thread *thread = wb_thread_get();
    if (!thread || call->closed_more) return false;
    for (int64_t i = call->scopes; i < thread->scope_count; i++) {
        if (is_loader_turn(thread, i)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s%s%s opened a scope and did not close it",
                      function ? function : "", function ? ": " : "", call->what);
        return false;
    }
    return true;
}

void wb_user_call_leave(wb_user_call *call) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return;
    while (thread->scope_count > call->scopes) (void)wb_scope_leave();
    thread->call = call->outer;
}

bool wb_user_call_end(wb_user_call *call, const char *function) {
    const bool is_kept = wb_user_call_is_kept(call, function);
    wb_user_call_leave(call);
    return is_kept;
}
