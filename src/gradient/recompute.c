/* Gradient checkpointing: what a function computes is not kept for the gradient, but computed again
 * from what the function was given. The recipe says how, so the function is called once.
 *
 * The result is a custom node over y, the arguments, and what else y is made of outside of the
 * function. Its derivative copies the nodes between them and walks through the copies. */
#include <weber/gradient.h>

#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "base/table.h"
#include "gradient/walk.h"
#include "ops/build.h"
#include "ops/custom.h"
#include "ops/trace.h"

/* ---- the derivative ---- */

/* The first element of g, as a number. */
static wb_array *first_of(wb_array *g) {
    for (int d = 0; g && d < g->ndim; d++) g = wb_slice(g, d, 0, 1, 1);
    return g ? wb_reshape_make(g, 0, NULL) : NULL;
}

/* x as a new value that depends on g, so that what is made of it is computed again, and only when
 * the backward pass reaches it. */
static wb_array *after(wb_array *g, wb_array *x) {
    wb_array *number = first_of(g);
    return number ? SELECT(EQ(number, number), x, x) : NULL;
}

/* x as a node of its own, without a copy. */
static wb_array *alias(wb_array *x) {
    wb_array *y = wb_node_new(WB_OP_reshape, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x);
    if (y) y->flags |= x->flags & WB_NODE_WEAK;
    return y;
}

/* Only arguments, which come first, are copied: the others include the weights. */
static wb_array *stand_in_for(const wb_array *o, int32_t k, int64_t arguments, wb_array *g) {
    const bool waits = k <= arguments && wb_count(g) > 0 && !(o->inputs[k]->flags & WB_NODE_WEAK);
    return waits ? after(g, o->inputs[k]) : alias(o->inputs[k]);
}

/* Everything else is copied. */
static wb_array *no_other(void *context, wb_array *x) {
    (void)context, (void)x;
    return NULL;
}

static bool walk_again(wb_array *o, wb_array *g, wb_copier *copier, wb_array **stand_ins,
                       wb_array **cotangents) {
    wb_array *y = wb_copier_run(copier, o->inputs[0]);
    return y && wb_walk_inside(1, &y, &g, o->ninputs - 1, stand_ins, cotangents) == WB_OK;
}

/* context is the number of arguments. */
static void pull_again(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const size_t room = (size_t)o->ninputs * sizeof(wb_array *);
    wb_array **stand_ins = wb_alloc(room), **cotangents = wb_alloc(room);
    wb_copier copier = {.stand_in = no_other};
    bool good = stand_ins && cotangents;
    for (int32_t k = 1; good && k < o->ninputs; k++) {
        stand_ins[k - 1] = stand_in_for(o, k, (int64_t)(intptr_t)context, g);
        good = stand_ins[k - 1] && wb_copier_set(&copier, o->inputs[k], stand_ins[k - 1]);
    }
    good = good && walk_again(o, g, &copier, stand_ins, cotangents);
    for (int32_t k = 1; good && k < o->ninputs; k++)
        if (want[k]) out[k] = cotangents[k - 1];
    wb_copier_end(&copier);
    wb_release(stand_ins);
    wb_release(cotangents);
}

/* ---- what is inside ---- */

typedef struct region {
    uint64_t inside, seen; /* stamps of nodes that the function made, and that were looked at */
    wb_array **inputs;     /* the arguments, then what comes from outside */
    int64_t count, capacity;
    wb_table table; /* of inputs, by address */
    wb_array **stack;
    int64_t depth, stack_capacity;
} region;

static uint64_t key_of(const wb_array *x) { return (uint64_t)(uintptr_t)x; }

static bool add_input(region *r, wb_array *x) {
    if (!WB_GROW(r->inputs, r->count, r->capacity) || !wb_table_add(&r->table, key_of(x)))
        return false;
    r->inputs[r->count++] = x;
    return true;
}

/* C numbers are copied wherever they were made; their gradient is never needed. */
static bool is_number(const wb_array *x) {
    return (x->flags & WB_NODE_WEAK) && wb_op_rows[x->op].kind == WB_KIND_SOURCE &&
           x->op != WB_OP_data && x->op != WB_OP_placeholder;
}

static bool push(region *r, wb_array *x) {
    if (x->stamp == r->seen || is_number(x)) return true;
    if (wb_table_find(&r->table, key_of(x)) >= 0) return true;
    const bool is_inside = x->stamp == r->inside || (x->flags & WB_NODE_REPEATED);
    /* collectives are not repeated */
    if (!is_inside || x->op == WB_OP_data || x->op == WB_OP_collective) return add_input(r, x);
    x->stamp = r->seen;
    x->flags |= WB_NODE_REPEATED; /* also for a function around this one */
    if (!WB_GROW(r->stack, r->depth, r->stack_capacity)) return false;
    r->stack[r->depth++] = x;
    return true;
}

/* Lists what the nodes of the function read from outside. */
static bool find_inputs(region *r, wb_array *y) {
    bool good = push(r, y);
    while (good && r->depth > 0) {
        const wb_array *x = r->stack[--r->depth];
        for (int32_t k = 0; good && k < x->ninputs; k++) good = push(r, x->inputs[k]);
    }
    return good;
}

/* An array that a getter gave to the scope is older than the function, and stays as it is. */
static void mark_inside(const region *r, int64_t first_entry) {
    for (int64_t i = first_entry; i < wb_scope_entries(); i++) {
        wb_array *x = wb_scope_entry(i);
        if (x && x->object.scope_slot == i + 1) x->stamp = r->inside;
    }
}

/* The nodes that the function made must not be read later, so that they need not be stored; only y
 * may be. */
static void drop_entries(int64_t first_entry, int64_t end, const wb_array *y) {
    for (int64_t i = first_entry; i < end; i++)
        if (wb_scope_entry(i) != y) wb_scope_drop(i);
}

static wb_array *wrap(region *r, wb_array *y, int count, wb_array *const *arrays,
                      int64_t first_entry) {
    wb_thread *thread = wb_thread_get();
    r->inside = ++thread->stamp, r->seen = ++thread->stamp;
    mark_inside(r, first_entry);
    for (int i = 0; i < count; i++)
        if (wb_table_find(&r->table, key_of(arrays[i])) < 0 && !add_input(r, arrays[i]))
            return NULL;
    const int64_t arguments = r->count;
    if (y->stamp != r->inside || is_number(y) || y->op == WB_OP_data) return y;
    if (!find_inputs(r, y)) return NULL;
    return wb_custom_node(y, (int)r->count, r->inputs, pull_again, (void *)(intptr_t)arguments,
                          NULL);
}

static wb_array *call(wb_array_fn *fn, void *context, int count, wb_array *const *arrays) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *y = fn(context, count, arrays);
    if (!wb_user_call_end(&call, "recompute")) return NULL;
    if (!y && !wb_failed())
        return wb_fail_null(WB_ERROR_ARGUMENT, "recompute: the function returned NULL");
    return wb_is_usable(y) ? y : wb_refuse("recompute", y, "the function's result");
}

static bool check_arguments(wb_array_fn *fn, int count, wb_array *const *arrays) {
    if (!fn) return wb_fail_argument_null("recompute", "the function") != NULL;
    if (!wb_check_list("recompute", count, arrays)) return false;
    for (int i = 0; i < count; i++)
        if (!wb_is_usable(arrays[i])) return wb_refuse("recompute", arrays[i], "an array") != NULL;
    return true;
}

wb_array *wb_recompute(wb_array_fn *fn, void *context, int count, wb_array *const *arrays) {
    if (!check_arguments(fn, count, arrays)) return NULL;
    wb_error_aside older;
    wb_error_put_aside(&older);
    const int64_t first_entry = wb_scope_entries();
    wb_thread *thread = wb_thread_get();
    if (thread) thread->numbered_entries++;
    wb_array *y = call(fn, context, count, arrays), *result = NULL;
    const int64_t end = wb_scope_entries();
    region r = {.count = 0};
    if (y) result = wrap(&r, y, count, arrays, first_entry);
    if (result) drop_entries(first_entry, end, result);
    if (thread) thread->numbered_entries--;
    wb_table_release(&r.table);
    wb_release(r.inputs);
    wb_release(r.stack);
    wb_error_bring_back(&older);
    return result;
}
