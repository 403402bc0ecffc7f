/* Scopes, and wb_free. A thread has one list of the objects that its open scopes own, and each
 * scope is a range of it. A closing scope first computes the arrays in it that a model or the user
 * holds, then releases its range. An object that leaves a scope early leaves a gap, which is closed
 * when the list is full. */
#include "array/array.h"
#include "array/state.h"
#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"

wb_status wb_scope_open(void) {
    wb_thread *thread = wb_thread_get();
    if (thread) wb_thread_empty_inbox(thread);
    if (!thread || !WB_GROW(thread->scope_starts, thread->scope_count, thread->scope_capacity))
        return WB_ERROR_MEMORY;
    thread->scope_starts[thread->scope_count++] = thread->entry_count;
    return WB_OK;
}

/* ---- the list of entries ---- */

static int64_t innermost_start(const wb_thread *thread) {
    return thread->scope_count > 0 ? thread->scope_starts[thread->scope_count - 1] : 0;
}

static void close_gaps(wb_thread *thread, int64_t start) {
    int64_t to = start;
    for (int64_t i = start; i < thread->entry_count; i++) {
        wb_object *object = thread->entries[i];
        if (!object) continue;
        if (object->scope_slot == i + 1) object->scope_slot = to + 1;
        thread->entries[to++] = object;
    }
    thread->entry_count = to;
}

static void warn_of_large_scope(wb_thread *thread) {
    thread->has_large_scope = true;
    wb_log_line(WB_LOG_WARN,
                "%s %d arrays and other objects, which are kept until it %s: in a loop, call "
                "wb_scope_open before each step and wb_scope_close after it",
                thread->scope_count > 0 ? "a scope holds" : "without a scope the thread holds",
                (int)WB_LARGE_SCOPE, thread->scope_count > 0 ? "is closed" : "ends");
}

/* Every list that grows beyond the size of a large scope comes through here. */
bool wb_scope_make_room(wb_thread *thread) {
    const int64_t start = innermost_start(thread), large = start + WB_LARGE_SCOPE;
    const int64_t before = thread->entry_count;
    if (thread->numbered_entries == 0) close_gaps(thread, start);
    if (thread->entry_count - start <= (before - start) / 2 && thread->entry_count < before)
        return true;
    if (thread->entry_count >= large && !thread->has_large_scope) warn_of_large_scope(thread);
    if (!WB_GROW(thread->entries, thread->entry_count, thread->entry_capacity)) return false;
    if (thread->entry_count < large && thread->entry_capacity > large)
        thread->entry_capacity = large;
    return true;
}

/* Takes object out of the scope that owns it; false if none of this thread does. */
static bool leave_scope(wb_thread *thread, wb_object *object) {
    const int64_t slot = object->scope_slot;
    if (slot == 0 || slot > thread->entry_count || thread->entries[slot - 1] != object)
        return false;
    thread->entries[slot - 1] = NULL;
    object->scope_slot = 0;
    return true;
}

/* A getter that is called twice gives the array to a scope twice; the array knows only the first of
 * these places. */
static bool leave_scope_again(wb_thread *thread, wb_object *object) {
    for (int64_t i = thread->entry_count; i > 0; i--) {
        if (thread->entries[i - 1] != object) continue;
        thread->entries[i - 1] = NULL;
        return true;
    }
    return false;
}

/* Gives back a reference of wb_take, else one of wb_keep, else the scope's: a getter's result
 * leaves its scope. Those of wb_take come first: another language has them, and a struct's field
 * may have kept the array. The references of a model are not the caller's to give back. */
static void free_array(wb_thread *thread, wb_array *x) {
    if (x->taken > 0) {
        x->taken--;
        wb_unref(x);
    } else if (x->keeps > 0) {
        if (x->keeps < UINT16_MAX) x->keeps--;
        wb_unhold(x);
    } else if (leave_scope(thread, &x->object) || leave_scope_again(thread, &x->object))
        wb_unref(x);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_free: the array %s is not yours to free: it belongs to a model, an "
                      "optimiser or a loader, or was freed already",
                      wb_text_of(x));
}

/* The object's member with the number of its owner; NULL: any thread may free it. */
static uint32_t *owner_of(wb_object *any) {
    if (any->klass == &wb_array_class) return &((wb_array *)(void *)any)->owner;
    return any->klass->owner ? any->klass->owner(any) : NULL;
}

void wb_free(void *object) {
    wb_object *any = object;
    wb_thread *thread = wb_thread_get();
    if (!any || !thread) return;
    if (!wb_known_class(any)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_free: the argument is not an object of Weber");
        return;
    }
    wb_thread_empty_inbox(thread);
    uint32_t *owner = owner_of(any);
    if (owner && *owner && *owner != thread->number && wb_thread_hand_back(*owner, object)) return;
    if (owner && *owner != thread->number) (void)wb_claim_owner(owner);
    if (any->klass == &wb_array_class) {
        free_array(thread, object);
        return;
    }
    if (wb_object_is_released(any)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_free: the %s was released already",
                      wb_object_released_name(any));
        return;
    }
    if (!any->klass->free) return;
    (void)leave_scope(thread, any);
    any->klass->free(any);
}

bool wb_scope_disown(void *object) {
    wb_thread *thread = wb_thread_get();
    return thread && object && leave_scope(thread, object);
}

void *wb_scope_own(void *object) {
    if (!object) return NULL;
    wb_thread *thread = wb_thread_get();
    if (!thread || !wb_scope_has_room(thread)) {
        wb_free(object);
        return NULL;
    }
    thread->entries[thread->entry_count++] = object;
    ((wb_object *)object)->scope_slot = thread->entry_count;
    return object;
}

wb_array *wb_scope_add(wb_array *x) {
    if (!x) return NULL;
    wb_thread *thread = wb_thread_get();
    if (!thread || !wb_scope_has_room(thread)) return NULL;
    thread->entries[thread->entry_count++] = &wb_ref(x)->object;
    if (x->object.scope_slot == 0) x->object.scope_slot = thread->entry_count;
    return x;
}

static wb_array *array_at(const wb_thread *thread, int64_t entry) {
    wb_object *object = thread->entries[entry];
    return object && object->klass == &wb_array_class ? (wb_array *)(void *)object : NULL;
}

int64_t wb_scope_entries(void) {
    const wb_thread *thread = wb_thread_get();
    return thread ? thread->entry_count : 0;
}

wb_array *wb_scope_entry(int64_t i) {
    const wb_thread *thread = wb_thread_get();
    return thread && i < thread->entry_count ? array_at(thread, i) : NULL;
}

void wb_scope_drop(int64_t i) {
    wb_thread *thread = wb_thread_get();
    wb_array *x = wb_scope_entry(i);
    if (!x) return;
    thread->entries[i] = NULL;
    if (x->object.scope_slot == i + 1) x->object.scope_slot = 0;
    wb_unref(x);
}

/* Evaluates, in one plan, the pending arrays of the scope that are held. */
static wb_status evaluate_survivors(wb_thread *thread, int64_t start) {
    int64_t count = 0;
    for (int64_t i = start; i < thread->entry_count; i++) {
        wb_array *x = array_at(thread, i);
        if (!x || x->holds == 0 || wb_is_evaluated(x)) continue;
        if (!WB_GROW(thread->survivors, count, thread->survivor_capacity)) return WB_ERROR_MEMORY;
        thread->survivors[count++] = x;
    }
    return count ? wb_evaluate_hook((int)count, thread->survivors) : WB_OK;
}

/* Held arrays that are still pending are computed with the next plan, if survive. */
static wb_status release_entries(wb_thread *thread, int64_t start, bool survive) {
    wb_status status = WB_OK;
    while (thread->entry_count > start) {
        wb_object *object = thread->entries[--thread->entry_count];
        if (!object) continue;
        if (object->scope_slot == thread->entry_count + 1) object->scope_slot = 0;
        if (object->klass != &wb_array_class) {
            object->klass->free(object);
            continue;
        }
        wb_array *x = (wb_array *)(void *)object;
        if (x->holds > 0 && wb_is_evaluated(x))
            wb_node_detach(x);
        else if (x->holds > 0 && survive && wb_state_survive(x) != WB_OK)
            status = WB_ERROR_MEMORY;
        wb_unref(x);
    }
    return status;
}

/* Constants that were evaluated release their memory when the last scope closes. */
static void forget_constants(wb_thread *thread) {
    for (int i = 0; i < WB_CONSTANTS; i++) {
        wb_array *x = thread->constants[i];
        if (!x || !x->buffer || x->refs > 1) continue;
        wb_buffer_unref(x->buffer);
        x->buffer = NULL;
    }
    thread->has_read_constants = false;
}

static wb_status leave(wb_thread *thread, int64_t start, bool survive) {
    const wb_status status = release_entries(thread, start, survive);
    if (--thread->scope_count == 0 && thread->has_read_constants) forget_constants(thread);
    return status;
}

static bool check_open(const char *function, const wb_thread *thread) {
    wb_user_call *call = thread ? thread->call : NULL;
    if (thread && thread->scope_count > (call ? call->scopes : 0)) return true;
    if (call) call->closed_more = true;
    if (call)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s has no scope open, and cannot close its caller's",
                      function, call->what);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: no scope is open on this thread", function);
    return false;
}

wb_status wb_scope_close(void) {
    wb_thread *thread = wb_thread_get();
    if (!check_open("wb_scope_close", thread)) return WB_ERROR_ARGUMENT;
    const int64_t start = innermost_start(thread);
    wb_status status =
        evaluate_survivors(thread, start); /* state writes of this scope among them */
    const wb_status flushed = wb_state_settle();
    if (status == WB_OK) status = flushed;
    (void)leave(thread, start, false);
    return status;
}

wb_status wb_scope_leave(void) { return wb_scope_close_leaving(0, NULL); }

wb_status wb_scope_close_leaving(int count, wb_array *const *leaving) {
    wb_thread *thread = wb_thread_get();
    if (!check_open("wb_scope_leave", thread)) return WB_ERROR_ARGUMENT;
    for (int i = 0; i < count; i++)
        if (leaving[i]) wb_ref(leaving[i]);
    wb_status status = leave(thread, innermost_start(thread), true);
    for (int i = 0; i < count; i++) {
        wb_array *x = leaving[i];
        if (!x) continue;
        if (!wb_is_leaf(x)) x->flags |= WB_NODE_LEFT;
        if (wb_is_evaluated(x)) wb_node_detach(x);
        if (!wb_scope_add(x)) status = WB_ERROR_MEMORY;
        wb_unref(x);
    }
    return status;
}
