/* Each pending write remembers what its slot held before, so that a step that fails can take all
 * its writes back. If a slot is written several times, only its first value is kept for that. */
#include "array/state.h"

#include "array/thread.h"
#include "base/memory.h"

/* Of a slot or a number: what it held before. Without either: the array that is to be computed. */
struct wb_write {
    wb_array **slot;
    wb_array *array; /* referred to; without a slot, held */
    int64_t *number, before;
    bool is_rest; /* wb_state_rewrite has left it as it is */
};

/* What is written to; NULL: an array that is to be computed. */
static const void *target_of(const struct wb_write *w) {
    return w->slot ? (const void *)w->slot : (const void *)w->number;
}

/* NULL: the slot was cleared. */
static wb_array *value_of(const struct wb_write *w) { return w->slot ? *w->slot : w->array; }

/* The slot gets value, which may be NULL; the value before is kept, so that the write can be taken
 * back. */
static wb_status note(wb_thread *thread, wb_array **slot, wb_array *value) {
    if (!WB_GROW(thread->writes, thread->write_count, thread->write_capacity))
        return WB_ERROR_MEMORY;
    wb_array *old = *slot ? wb_ref(*slot) : NULL;
    thread->writes[thread->write_count++] = (struct wb_write){.slot = slot, .array = old};
    wb_slot_put(slot, value);
    return WB_OK;
}

wb_status wb_state_write(wb_array **slot, wb_array *value) {
    wb_thread *thread = wb_thread_get();
    if (!thread || !value) return value ? WB_ERROR_MEMORY : wb_error_status();
    if (wb_is_tracing("wb_set")) return wb_error_status();
    if (wb_is_evaluated(value) && thread->state_depth == 0) {
        wb_state_forget(slot);
        wb_slot_put(slot, value);
        return WB_OK;
    }
    return note(thread, slot, value);
}

wb_status wb_state_clear(wb_array **slot) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return WB_ERROR_MEMORY;
    if (thread->state_depth > 0) return note(thread, slot, NULL);
    wb_state_forget(slot);
    wb_unhold(*slot);
    *slot = NULL;
    return WB_OK;
}

wb_status wb_state_write_number(int64_t *number, int64_t value) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return WB_ERROR_MEMORY;
    if (thread->state_depth == 0)
        wb_state_forget_number(number);
    else if (!WB_GROW(thread->writes, thread->write_count, thread->write_capacity))
        return WB_ERROR_MEMORY;
    else
        thread->writes[thread->write_count++] =
            (struct wb_write){.number = number, .before = *number};
    *number = value;
    return WB_OK;
}

void wb_state_moved(wb_array **from, wb_array **to) {
    wb_thread *thread = wb_thread_get();
    for (int64_t i = 0; thread && i < thread->write_count; i++)
        if (thread->writes[i].slot == from) thread->writes[i].slot = to;
}

wb_status wb_state_survive(wb_array *x) {
    wb_thread *thread = wb_thread_get();
    if (!thread || !WB_GROW(thread->writes, thread->write_count, thread->write_capacity))
        return WB_ERROR_MEMORY;
    thread->writes[thread->write_count++] = (struct wb_write){.array = wb_hold(x)};
    return WB_OK;
}

/* ---- taking back ---- */

/* Releases what the write refers to. */
static void drop(const struct wb_write *w) {
    if (w->slot)
        wb_unref(w->array);
    else
        wb_unhold(w->array);
}

static void undo(wb_thread *thread, int64_t begin) {
    while (thread->write_count > begin) {
        const struct wb_write w = thread->writes[--thread->write_count];
        if (w.slot) wb_slot_put(w.slot, w.array);
        if (w.number) *w.number = w.before;
        drop(&w);
    }
}

/* Whether one of the first `count` writes is to the target. The search begins at *next, because a
 * step of training writes to its slots in the same order each time. */
static bool is_written(const wb_thread *thread, int64_t count, const void *target, int64_t *next) {
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = (*next + i) % count;
        if (target_of(&thread->writes[at]) != target) continue;
        *next = at + 1;
        return true;
    }
    return false;
}

bool wb_state_is_written(wb_array **slot) {
    const wb_thread *thread = wb_thread_get();
    int64_t next = 0;
    return thread && is_written(thread, thread->write_count, slot, &next);
}

bool wb_state_is_any_written(void) {
    const wb_thread *thread = wb_thread_get();
    return thread && thread->write_count > 0;
}

/* Of several writes to a slot or number the first is kept. The others hold whole recipes, and what
 * the target held at first is enough to take the writes back. */
static void forget_pending(wb_thread *thread) {
    int64_t kept = 0, next = 0;
    for (int64_t i = 0; i < thread->write_count; i++) {
        const struct wb_write w = thread->writes[i];
        const bool is_recipe = w.slot && w.array && !wb_is_evaluated(w.array);
        if ((is_recipe || w.number) && is_written(thread, kept, target_of(&w), &next))
            drop(&w);
        else
            thread->writes[kept++] = w;
    }
    thread->write_count = kept;
}

int64_t wb_state_begin(void) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return 0;
    thread->state_depth++;
    return thread->write_count;
}

void wb_state_end(int64_t begin, bool keep) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return;
    thread->state_depth--;
    if (!keep) undo(thread, begin);
    if (thread->state_depth == 0) forget_pending(thread);
}

bool wb_state_is_open(void) {
    const wb_thread *thread = wb_thread_get();
    return thread && thread->state_depth > 0;
}

void wb_state_undo(void) {
    wb_thread *thread = wb_thread_get();
    if (thread) undo(thread, 0);
}

/* ---- settling ---- */

static void forget(const void *target) {
    wb_thread *thread = wb_thread_get();
    int64_t kept = 0;
    for (int64_t i = 0; thread && i < thread->write_count; i++) {
        if (target_of(&thread->writes[i]) == target)
            drop(&thread->writes[i]);
        else
            thread->writes[kept++] = thread->writes[i];
    }
    if (thread) thread->write_count = kept;
}

void wb_state_forget(wb_array **slot) { forget(slot); }
void wb_state_forget_number(int64_t *number) { forget(number); }

/* ---- rewriting ---- */

/* The slot's new value in the place of the one that it holds; false: it stays as it is. */
static bool rewrite(const struct wb_write *w, wb_state_fn *f, void *context) {
    if (!w->slot || !*w->slot) return false;
    wb_array *fresh = f(context, w->array, *w->slot);
    if (fresh) wb_slot_put(w->slot, fresh);
    return fresh != NULL;
}

int64_t wb_state_rewrite(wb_state_fn *f, void *context) {
    wb_thread *thread = wb_thread_get();
    int64_t rest = 0, next = 0;
    for (int64_t i = 0; thread && i < thread->write_count && !wb_failed(); i++) {
        struct wb_write *w = &thread->writes[i];
        const void *target = target_of(w);
        if (!target || is_written(thread, i, target, &next)) continue;
        w->is_rest = !rewrite(w, f, context);
        rest += w->is_rest;
    }
    return wb_failed() ? -1 : rest;
}

void wb_state_undo_rest(void) {
    const wb_thread *thread = wb_thread_get();
    for (int64_t i = 0; thread && i < thread->write_count; i++) {
        const struct wb_write w = thread->writes[i];
        if (!w.is_rest) continue;
        if (w.number) *w.number = w.before;
        if (w.slot) wb_slot_put(w.slot, w.array);
        forget(target_of(&w));
        i = -1; /* others have moved up */
    }
}

int wb_state_pending(int capacity, wb_array **values) {
    const wb_thread *thread = wb_thread_get();
    int count = 0;
    for (int64_t i = 0; thread && i < thread->write_count; i++) {
        wb_array *x = value_of(&thread->writes[i]);
        if (!x || wb_is_evaluated(x)) continue;
        if (count < capacity) {
            x->flags |= WB_NODE_LEFT;
            values[count] = x;
        }
        count++;
    }
    return count;
}

/* The values are computed: they become data, and what they replaced is released. As long as the
 * writes may be taken back they stay in the list, and the values count as detached from their
 * recipes, because the loss that made them may still use them. */
static void settle(wb_thread *thread) {
    const bool is_over = thread->state_depth == 0;
    for (int64_t i = 0; i < thread->write_count; i++) {
        const struct wb_write *w = &thread->writes[i];
        wb_array *x = value_of(w);
        if (x) wb_node_detach(x);
        if (is_over && w->slot && x) x->flags &= (uint16_t)~WB_NODE_DETACHED;
        if (is_over) drop(w);
    }
    if (thread->state_depth == 0) thread->write_count = 0;
}

static wb_status evaluate_pending(wb_thread *thread) {
    const int count = wb_state_pending(0, NULL);
    for (int64_t room = 0; room < count; room++)
        if (!WB_GROW(thread->survivors, room, thread->survivor_capacity)) return WB_ERROR_MEMORY;
    (void)wb_state_pending(count, thread->survivors);
    return count ? wb_evaluate_hook(count, thread->survivors) : WB_OK;
}

wb_status wb_state_settle(void) {
    wb_thread *thread = wb_thread_get();
    if (!thread || thread->write_count == 0 || thread->depth > 0) return WB_OK;
    const wb_status status = evaluate_pending(thread);
    if (status == WB_OK)
        settle(thread);
    else
        undo(thread, 0);
    return status;
}
