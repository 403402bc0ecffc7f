/* Evaluation: the cache of plans, and one run of a plan.
 *
 * Reads the plan, but for its runs and its place in the cache, which it writes. */
#include <stdlib.h>
#include <string.h>

#include "array/origin.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/error.h"
#include "base/events.h"
#include "base/memory.h"
#include "evaluate/plan.h"
#include "ranks/ranks.h"

enum {
    BUCKETS = 1024,
    CACHE_BYTES = 64 << 20, /* of plans, */
    KEPT_BYTES = 256 << 20, /* and of what they keep of weights */
};

/* One per context: recipes belong to theirs, and so do their plans. */
typedef struct evaluator {
    wb_tape tape;
    wb_plan *buckets[BUCKETS];
    wb_plan *newest, *oldest;
    size_t kept_bytes; /* of all of them */
    wb_plan_counts counts;
    wb_memory *memory;
    int64_t memory_capacity;
    uint64_t *late;
    int64_t late_capacity;
    wb_buffer **made; /* buffers of this run's outputs */
    int64_t made_capacity;
    struct workspace {
        const wb_device *device;
        void *handle;
        size_t size_bytes;
    } * workspaces; /* one per device that this thread computed on */
    int64_t workspace_count, workspace_capacity;
    wb_buffer **staged; /* leaves that had to be copied to the plan's device */
    int64_t staged_count, staged_capacity;
    wb_array **moves; /* pending ones, each after those that it depends on */
    int64_t move_capacity;
    wb_array **group; /* roots on one device */
    int64_t group_capacity;
    wb_array **both; /* effects and roots */
    int64_t both_capacity;
    wb_scan_room room; /* for bodies of scans */
    int64_t room_memory, room_late;
} evaluator;

/* ---- the cache ---- */

static void unlink_plan(evaluator *e, wb_plan *plan) {
    if (plan->newer)
        plan->newer->older = plan->older;
    else
        e->newest = plan->older;
    if (plan->older)
        plan->older->newer = plan->newer;
    else
        e->oldest = plan->newer;
}

static void link_newest(evaluator *e, wb_plan *plan) {
    plan->newer = NULL;
    plan->older = e->newest;
    if (e->newest)
        e->newest->newer = plan;
    else
        e->oldest = plan;
    e->newest = plan;
}

static void drop_oldest(evaluator *e) {
    wb_plan *plan = e->oldest;
    wb_plan **link = &e->buckets[plan->hash % BUCKETS];
    while (*link != plan) link = &(*link)->next;
    *link = plan->next;
    unlink_plan(e, plan);
    e->counts.cache_bytes -= (int64_t)plan->size_bytes;
    e->kept_bytes -= plan->kept_bytes;
    wb_plan_unref(plan);
}

static uint64_t hash_of(const wb_tape *tape) {
    uint64_t a = 0x243F6A8885A308D3ull ^ (uint64_t)tape->words, b = 0x13198A2E03707344ull;
    int64_t i = 0;
    for (; i + 1 < tape->words; i += 2) { /* two chains, so that multiplications overlap */
        a = (a ^ tape->key[i]) * 0x9E3779B97F4A7C15ull;
        b = (b ^ tape->key[i + 1]) * 0xC2B2AE3D27D4EB4Full;
        a ^= a >> 32, b ^= b >> 29;
    }
    if (i < tape->words) a = (a ^ tape->key[i]) * 0x9E3779B97F4A7C15ull;
    a ^= (b << 17) | (b >> 47);
    return a ^ (a >> 31);
}

static bool has_key(const wb_plan *plan, const wb_tape *tape) {
    return plan->words == tape->words &&
           memcmp(plan->key, tape->key, sizeof *plan->key * (size_t)plan->words) == 0;
}

/* Most often it is the plan that ran last, which takes no hash to find. */
static wb_plan *lookup(evaluator *e, const wb_tape *tape) {
    if (e->newest && has_key(e->newest, tape)) return e->newest;
    const uint64_t hash = hash_of(tape);
    wb_plan **bucket = &e->buckets[hash % BUCKETS];
    for (wb_plan *plan = *bucket; plan; plan = plan->next) {
        if (plan->hash != hash || !has_key(plan, tape)) continue;
        unlink_plan(e, plan), link_newest(e, plan);
        return plan;
    }
    const double began = wb_event_begin();
    wb_plan *plan = wb_plan_new(tape, hash);
    if (!plan) return NULL;
    wb_event("plan", "make a plan", began, NULL, NULL);
    e->counts.misses++;
    plan->next = *bucket;
    *bucket = plan;
    link_newest(e, plan);
    e->counts.cache_bytes += (int64_t)plan->size_bytes;
    e->kept_bytes += plan->kept_bytes;
    while ((e->counts.cache_bytes > CACHE_BYTES || e->kept_bytes > KEPT_BYTES) && e->oldest != plan)
        drop_oldest(e);
    return plan;
}

/* ---- one run ---- */

/* This thread's on the device; NULL when out of memory. */
static struct workspace *workspace_on(evaluator *e, const wb_device *device) {
    for (int64_t i = 0; i < e->workspace_count; i++)
        if (e->workspaces[i].device == device) return &e->workspaces[i];
    if (!WB_GROW(e->workspaces, e->workspace_count, e->workspace_capacity)) return NULL;
    e->workspaces[e->workspace_count] = (struct workspace){.device = device};
    return &e->workspaces[e->workspace_count++];
}

static bool reserve_workspace(evaluator *e, const wb_plan *plan, void **handle) {
    struct workspace *w = workspace_on(e, plan->device);
    if (!w) return false;
    if (w->size_bytes < plan->workspace_bytes) {
        wb_device_free(w->device, w->handle, w->size_bytes);
        const int64_t least = (int64_t)plan->workspace_bytes;
        const size_t bytes = wb_bytes(wb_plus(least, least / 4));
        w->handle = wb_device_alloc(w->device, bytes);
        w->size_bytes = w->handle ? bytes : 0;
    }
    *handle = w->handle;
    return w->size_bytes >= plan->workspace_bytes;
}

static bool has_foreign_leaves(const evaluator *e, const wb_plan *plan) {
    for (int32_t i = 0; i < plan->leaf_count; i++)
        if (e->tape.at[plan->leaves[i]].node->buffer->device != plan->device) return true;
    return false;
}

/* Copies, for this run, the memory of constants that were computed on another device. */
static bool stage_leaves(evaluator *e, const wb_plan *plan) {
    if (!wb_reserve((void **)&e->staged, &e->staged_capacity, sizeof *e->staged, plan->leaf_count))
        return false;
    for (int32_t i = 0; i < plan->leaf_count; i++) {
        wb_buffer *from = e->tape.at[plan->leaves[i]].node->buffer;
        wb_buffer *to = NULL;
        if (from->device != plan->device) {
            to = wb_buffer_new(plan->device, from->size_bytes, "staging");
            if (!to) return false;
        }
        e->staged[e->staged_count++] = to;
        if (to && wb_buffer_copy(to, 0, from, 0, from->size_bytes) != WB_OK) return false;
        if (to) e->memory[i].handle = to->handle;
    }
    return true;
}

static void unstage(evaluator *e) {
    while (e->staged_count > 0) wb_buffer_unref(e->staged[--e->staged_count]);
}

static bool make_outputs(evaluator *e, const wb_plan *plan) {
    for (int32_t o = 0; o < plan->output_count; o++) {
        const wb_plan_output *output = &plan->outputs[o];
        wb_buffer **made = &e->made[o];
        if (output->is_donated) {
            const wb_array *donor = e->tape.at[plan->leaves[output->memory]].node;
            *made = wb_buffer_ref(donor->buffer);
            wb_buffer_overwrite(*made);
            (*made)->tag = output->tag;
        } else
            *made = wb_buffer_new(plan->device, output->size_bytes, output->tag);
        if (*made) continue;
        while (o-- > 0) wb_buffer_unref(e->made[o]);
        return false;
    }
    return true;
}

/* Checks and allocations come before the first write. */
static bool bind(evaluator *e, const wb_plan *plan) {
    const int64_t entries = plan->leaf_count + plan->output_count + 2;
    void *workspace;
    if (!wb_reserve((void **)&e->memory, &e->memory_capacity, sizeof *e->memory, entries) ||
        !wb_reserve((void **)&e->late, &e->late_capacity, sizeof *e->late, plan->late_count) ||
        !wb_reserve((void **)&e->made, &e->made_capacity, sizeof *e->made, plan->output_count) ||
        !wb_reserve((void **)&e->room.memory, &e->room_memory, sizeof *e->room.memory,
                    plan->body_entries) ||
        !wb_reserve((void **)&e->room.late, &e->room_late, sizeof *e->room.late, plan->body_late) ||
        !reserve_workspace(e, plan, &workspace) || !make_outputs(e, plan))
        return false;
    for (int32_t i = 0; i < plan->leaf_count; i++) {
        const wb_array *leaf = e->tape.at[plan->leaves[i]].node;
        e->memory[i] = (wb_memory){leaf->buffer->handle,
                                   leaf->offset * (int64_t)wb_dtype_size((wb_dtype)leaf->dtype)};
    }
    for (int32_t o = 0; o < plan->output_count; o++)
        e->memory[plan->leaf_count + o] = (wb_memory){e->made[o]->handle, 0};
    e->memory[entries - 2] = (wb_memory){workspace, 0};
    e->memory[entries - 1] = (wb_memory){plan->kept_memory, 0};
    for (int32_t i = 0; i < plan->late_count; i++)
        e->late[i] = (uint64_t)e->tape.at[plan->late[i] >> 1].node->late[plan->late[i] & 1];
    if (!has_foreign_leaves(e, plan) || stage_leaves(e, plan)) return true;
    for (int32_t o = 0; o < plan->output_count; o++) wb_buffer_unref(e->made[o]);
    unstage(e);
    return false;
}

static wb_buffer *buffer_of(const evaluator *e, const wb_plan *plan, int32_t memory) {
    if (memory >= plan->leaf_count) return e->made[memory - plan->leaf_count];
    return e->tape.at[plan->leaves[memory]].node->buffer;
}

/* Hands the results to their nodes. */
static void deliver(evaluator *e, const wb_plan *plan) {
    for (int32_t i = 0; i < plan->view_count; i++) {
        const wb_plan_view *view = &plan->views[i];
        wb_array *x = e->tape.at[view->tape].node;
        const bool is_leaf = view->memory < plan->leaf_count;
        const int64_t leaf_offset =
            is_leaf ? e->tape.at[plan->leaves[view->memory]].node->offset : 0;
        x->buffer = wb_buffer_ref(buffer_of(e, plan, view->memory));
        if (x->device) x->device = x->buffer->device;
        if (x->flags & WB_NODE_INTERNED) wb_thread_get()->has_read_constants = true;
        x->offset = leaf_offset + view->layout.offset;
        if (!wb_layout_is_dense(&view->layout)) {
            x->flags |= WB_NODE_STRIDED;
            memcpy(x->strides, view->layout.strides, sizeof x->strides);
        }
    }
    for (int64_t i = 0; e->tape.keeps_recipes && i < e->tape.count; i++)
        if (!(e->tape.at[i].marks & (WB_TAPE_LEAF | WB_TAPE_STORED)))
            e->tape.at[i].node->flags |= WB_NODE_COMPUTED;
    for (int32_t o = 0; o < plan->output_count; o++) wb_buffer_unref(e->made[o]);
}

/* Nodes that left their scope lose their recipe. */
static void detach_left(const evaluator *e, const wb_plan *plan) {
    for (int32_t i = 0; i < plan->view_count; i++) {
        wb_array *x = e->tape.at[plan->views[i].tape].node;
        if (x->flags & WB_NODE_LEFT) wb_node_detach(x);
    }
}

/* After a failure in the middle of a run: what it was writing in place is lost. */
static void lose(evaluator *e, const wb_plan *plan, bool has_run) {
    for (int32_t o = 0; o < plan->output_count; o++) {
        if (has_run && plan->outputs[o].is_donated) wb_buffer_lose(e->made[o]);
        wb_buffer_unref(e->made[o]);
    }
}

/* Whether a bad index may spoil what the plan writes, which is not known before a later sync: it
 * looks indices up, or reads what such a plan wrote. On the host, the run itself reports a bad
 * index. */
static bool is_doubtful(const evaluator *e, const wb_plan *plan) {
    if (plan->device == wb_cpu_device()) return false;
    if (plan->checks_indices) return true;
    for (int32_t i = 0; i < plan->leaf_count; i++)
        if (wb_buffer_is_doubted(e->tape.at[plan->leaves[i]].node->buffer)) return true;
    return false;
}

/* Makes what commands keep, unless it was made of the same contents of the same array before. */
static wb_status refresh(const evaluator *e, const wb_plan *plan) {
    const wb_device *device = plan->device;
    wb_status status = WB_OK;
    for (int32_t i = 0; status == WB_OK && i < plan->keeper_count; i++) {
        const wb_array *leaf = e->tape.at[plan->leaves[plan->kept[i].leaf]].node;
        const wb_plan_kept now = {plan->kept[i].leaf, leaf->offset,
                                  wb_buffer_contents(leaf->buffer)};
        if (now.contents && now.contents == plan->kept[i].contents &&
            now.offset == plan->kept[i].offset)
            continue;
        status = wb_device_note(device, device->backend->prepare(device->context, NULL,
                                                                 &plan->keepers[i], 1, e->memory));
        plan->kept[i] = status == WB_OK ? now : (wb_plan_kept){.leaf = now.leaf};
    }
    return status;
}

static wb_status queue(evaluator *e, const wb_plan *plan) {
    const wb_device *device = plan->device;
    const bool doubtful = is_doubtful(e, plan);
    if (doubtful) wb_buffers_doubt(device, plan->output_count, e->made, false);
    e->room.kernels = 0, e->room.has_run = false;
    wb_status status = refresh(e, plan);
    if (status == WB_OK) status = wb_plan_run(plan, &e->tape, e->memory, e->late, &e->room, 0);
    if (doubtful) wb_buffers_doubt(device, plan->output_count, e->made, true);
    return status;
}

/* Of what is computed; views need no memory of their own. */
static const wb_array *largest_on(const wb_tape *tape) {
    const wb_array *largest = NULL;
    for (int64_t i = 0; i < tape->count; i++) {
        const wb_array *x = tape->at[i].node;
        const wb_kind kind = wb_op_rows[x->op].kind;
        if (wb_is_evaluated(x) || kind == WB_KIND_VIEW || kind == WB_KIND_SOURCE) continue;
        if (!largest || wb_count(x) > wb_count(largest)) largest = x;
    }
    return largest;
}

/* Adds to an out-of-memory error what the memory was for. */
static void name_largest(const wb_tape *tape) {
    const wb_array *x = wb_error_status() == WB_ERROR_MEMORY ? largest_on(tape) : NULL;
    if (!x) return;
    const char *layer = wb_layer_of(x);
    wb_error_add("the largest array of the plan is %s %s, made by %s%s%s%s",
                 wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x), wb_operation_of(x),
                 *layer ? " in " : "", layer,
                 wb_notes_origins() ? "" : "; WEBER_DEBUG=nan names the layer");
}

static wb_status run(evaluator *e, wb_plan *plan) {
    if (wb_device_check(plan->device) != WB_OK) return wb_error_status();
    if (!bind(e, plan)) {
        name_largest(&e->tape);
        return wb_error_status();
    }
    e->room.run = ++plan->runs;
    wb_place *place = wb_places_leave();
    wb_status status = queue(e, plan);
    wb_places_return(place);
    unstage(e);
    e->counts.evaluations++;
    e->counts.kernels += e->room.kernels;
    e->counts.missed_donations += plan->missed_donations;
    if (status != WB_OK) {
        lose(e, plan, e->room.has_run);
        return status;
    }
    deliver(e, plan);
    if (wb_watches_numbers()) status = wb_numbers_check(&e->tape);
    if (status == WB_OK) detach_left(e, plan); /* else a step that is taken back needs the old */
    return status;
}

/* ---- the thread's evaluator ---- */

static void evaluator_free(void *state) {
    evaluator *e = state;
    while (e->oldest) drop_oldest(e);
    for (int64_t i = 0; i < e->workspace_count; i++)
        wb_device_free(e->workspaces[i].device, e->workspaces[i].handle,
                       e->workspaces[i].size_bytes);
    wb_release(e->workspaces);
    wb_release(e->staged);
    wb_release(e->moves);
    wb_release(e->group);
    wb_release(e->both);
    wb_tape_end(&e->tape);
    wb_release(e->room.memory);
    wb_release(e->room.late);
    wb_release(e->memory);
    wb_release(e->late);
    wb_release(e->made);
    wb_release(e);
}

static evaluator *evaluator_get(void) {
    return wb_room_state_of(wb_thread_get(), WB_ROOM_EVALUATOR, sizeof(evaluator), evaluator_free);
}

static bool all_evaluated(int count, wb_array *const *roots) {
    for (int i = 0; i < count; i++)
        if (roots[i] && !wb_is_evaluated(roots[i])) return false;
    return true;
}

/* ---- moves ----
 *
 * A plan runs on one device. If a recipe needs several devices, each array that is moved is
 * computed by a separate plan and copied. */

/* Gives the move its memory. A view that is not dense is moved with what lies between its
 * elements. */
static wb_status move(wb_array *node) {
    wb_array *x = node->inputs[0];
    if (wb_is_lost(x)) return wb_fail_lost("move", x);
    const int64_t element = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    const wb_layout layout = wb_layout_of(x);
    int64_t first = x->offset, last = first;
    for (int d = 0; d < x->ndim && wb_count(x); d++) {
        const int64_t reach = (x->sizes[d] - 1) * layout.strides[d];
        *(reach < 0 ? &first : &last) += reach;
    }
    const size_t bytes = wb_count(x) ? wb_bytes((last - first + 1) * element) : 0;
    const char *tag = x->buffer->tag ? x->buffer->tag : "move"; /* foreign memory has none */
    wb_buffer *to = wb_buffer_new(node->device, bytes, tag);
    if (!to) return wb_error_status();
    const wb_status status = wb_buffer_copy(to, 0, x->buffer, first * element, bytes);
    if (status != WB_OK) {
        wb_buffer_unref(to);
        return status;
    }
    node->buffer = to;
    node->offset = x->offset - first;
    if (!wb_node_is_dense(x)) {
        node->flags |= WB_NODE_STRIDED;
        memcpy(node->strides, layout.strides, sizeof node->strides);
    }
    if (node->flags & WB_NODE_LEFT) wb_node_detach(node);
    return WB_OK;
}

static wb_status run_plan(evaluator *e, int count, wb_array *const *roots) {
    if (!wb_tape_order(&e->tape, count, roots)) return wb_error_status();
    const double began = wb_event_begin();
    wb_plan *plan = lookup(e, &e->tape);
    const wb_status status = plan ? run(e, plan) : wb_error_status();
    wb_event("plan", "plan", began, NULL, NULL);
    return status;
}

/* The pending moves on the tape, which is reused while they are made, in an order in which each
 * finds its input ready. */
static wb_status make_moves(evaluator *e) {
    int64_t count = 0;
    if (!wb_reserve((void **)&e->moves, &e->move_capacity, sizeof *e->moves, e->tape.pending_moves))
        return WB_ERROR_MEMORY;
    for (int64_t i = 0; i < e->tape.count; i++)
        if (wb_is_pending_move(e->tape.at[i].node)) e->moves[count++] = e->tape.at[i].node;
    wb_status status = WB_OK;
    for (int64_t i = 0; status == WB_OK && i < count; i++) {
        wb_array *input = e->moves[i]->inputs[0];
        if (!wb_is_evaluated(input)) {
            if (!wb_tape_walk(&e->tape, 1, &input)) return wb_error_status();
            status = run_plan(e, 1, &input);
        }
        if (status == WB_OK) status = move(e->moves[i]);
    }
    return status;
}

static wb_status evaluate_on_one(evaluator *e, int count, wb_array *const *roots) {
    if (!wb_tape_walk(&e->tape, count, roots)) return wb_error_status();
    if (e->tape.pending_moves > 0) {
        if (make_moves(e) != WB_OK) return wb_error_status();
        if (!wb_tape_walk(&e->tape, count, roots)) return wb_error_status();
    }
    return e->tape.count ? run_plan(e, count, roots) : WB_OK;
}

/* The device of the pending roots; *mixed is set where they have several. */
static const wb_device *device_of_roots(int count, wb_array *const *roots, bool *mixed) {
    const wb_device *device = NULL;
    for (int i = 0; i < count; i++) {
        if (!roots[i] || wb_is_evaluated(roots[i]) || !roots[i]->device) continue;
        if (device && roots[i]->device != device) *mixed = true;
        if (!device) device = roots[i]->device;
    }
    return device;
}

/* A plan for each device, until nothing is pending. */
static wb_status evaluate_groups(evaluator *e, int count, wb_array *const *roots) {
    if (!wb_reserve((void **)&e->group, &e->group_capacity, sizeof *e->group, count))
        return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    while (status == WB_OK && !all_evaluated(count, roots)) {
        bool mixed = false;
        const wb_device *device = device_of_roots(count, roots, &mixed);
        int members = 0;
        for (int i = 0; i < count; i++)
            if (roots[i] && !wb_is_evaluated(roots[i]) && roots[i]->device == device)
                e->group[members++] = roots[i];
        status = evaluate_on_one(e, members, e->group);
    }
    return status;
}

wb_plan *wb_plan_of_body(wb_body *body, const wb_device *device) {
    evaluator *e = evaluator_get();
    const wb_tape *tape = e ? wb_body_order(body, device) : NULL;
    wb_plan *plan = tape ? lookup(e, tape) : NULL;
    if (plan) plan->refs++;
    return plan;
}

static wb_status evaluate(evaluator *e, int count, wb_array *const *roots) {
    bool mixed = false;
    (void)device_of_roots(count, roots, &mixed);
    return mixed ? evaluate_groups(e, count, roots) : evaluate_on_one(e, count, roots);
}

/* ---- effects ----
 *
 * Nodes with an effect (collectives) are computed in the order in which they were made, before the
 * roots or with them. */

static bool need_moves(evaluator *e, int count, wb_array *const *roots, bool *moves) {
    if (!wb_tape_walk(&e->tape, count, roots)) return false;
    *moves = e->tape.pending_moves > 0;
    return true;
}

static wb_status evaluate_with_effects(evaluator *e, wb_thread *thread, int count,
                                       wb_array *const *roots) {
    const int64_t effects = thread->effect_count;
    if (!wb_reserve((void **)&e->both, &e->both_capacity, sizeof *e->both, effects + count))
        return WB_ERROR_MEMORY;
    memcpy(e->both, thread->effects, sizeof *e->both * (size_t)effects);
    if (count) memcpy(e->both + effects, roots, sizeof *e->both * (size_t)count);
    bool apart = false, moves = false;
    (void)device_of_roots((int)effects + count, e->both, &apart);
    if (!need_moves(e, (int)effects + count, e->both, &moves)) return wb_error_status();
    if (!apart && !moves) return evaluate_on_one(e, (int)effects + count, e->both);
    wb_status status = WB_OK; /* with plans on several devices, effects run one after the other */
    for (int64_t i = 0; status == WB_OK && i < effects; i++)
        status = evaluate(e, 1, &thread->effects[i]);
    return status == WB_OK ? evaluate(e, count, roots) : status;
}

static void drop_effects(wb_thread *thread) {
    while (thread->effect_count) wb_unref(thread->effects[--thread->effect_count]);
}

static wb_status evaluate_all(evaluator *e, wb_thread *thread, int count, wb_array *const *roots) {
    if (!thread->effect_count) return evaluate(e, count, roots);
    const wb_status status = evaluate_with_effects(e, thread, count, roots);
    if (status != WB_OK) wb_ranks_fail();
    drop_effects(thread);
    return status;
}

/* The effects of a group that was given up do not affect other arrays. The number of threads is the
 * same from the plan's key to its last command, whatever another thread sets. */
wb_status wb_evaluate_roots(int count, wb_array *const *roots) {
    wb_thread *thread = wb_thread_get();
    if (thread && thread->effect_count && wb_ranks_have_failed()) drop_effects(thread);
    if (all_evaluated(count, roots) && (count || !thread || !thread->effect_count)) return WB_OK;
    if (wb_is_tracing("evaluate")) return wb_error_status();
    evaluator *e = evaluator_get();
    if (!e) return WB_ERROR_MEMORY;
    thread->pending_nodes = 0;
    const int held = wb_hold_threads(wb_threads());
    const wb_status status = evaluate_all(e, thread, count, roots);
    (void)wb_hold_threads(held);
    return status;
}

wb_status wb_eval_make(int count, wb_array *const *arrays) {
    if (wb_is_tracing("eval") || !wb_may_use_arrays("eval", count, arrays))
        return wb_error_status();
    return wb_evaluate_roots(count, arrays);
}

wb_plan_counts wb_plan_status(void) {
    const evaluator *e = evaluator_get();
    wb_plan_counts counts = e ? e->counts : (wb_plan_counts){0};
    counts.allocations = wb_allocation_count();
    return counts;
}

/* Lower folders reach evaluation through this. */
wb_evaluate_fn *wb_evaluate_hook = wb_evaluate_roots;
