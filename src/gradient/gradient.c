/* The walk: from a result backwards to the wanted arrays, emitting ordinary nodes. No recursion. */
#include <weber/gradient.h>

#include "array/body.h"
#include "array/origin.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "gradient/walk.h"
#include "ops/build.h"

typedef struct visit {
    wb_array *node;
    int32_t next; /* input to look at next */
} visit;

enum { MOST_PARTS = 16 /* of an expansion: see wb_expand_fn */ };

typedef struct walk {
    struct walk *outer; /* the one around it; NULL: there is none */
    uint64_t stamp;
    wb_array **tape; /* each node after its inputs */
    int64_t count, capacity;
    visit *stack;
    int64_t stack_capacity;
    wb_array **cotangents; /* by place on the tape */
    int64_t cotangent_capacity;
    int64_t *first_put; /* by place on the tape: the cotangent's first slice, or -1 */
    int64_t first_put_capacity;
    struct put {
        wb_array *node;
        int64_t next; /* of the same cotangent, or -1 */
        int32_t part; /* of a scan: the result whose cotangent it is */
    } * puts;
    int64_t put_count, put_capacity;
    wb_array **joined;
    int64_t joined_capacity;
    bool *needed; /* leads to a wanted array */
    int64_t needed_capacity;
    struct expansion {
        wb_array *whole;
        wb_array *parts[MOST_PARTS]; /* what its results were expanded to */
    } * expansions;
    int64_t expansion_count, expansion_capacity;
    int64_t ends;   /* how many wanted arrays there are, first on the tape: the walk ends there */
    bool detached;  /* the walk met a leaf that has lost its recipe */
    bool are_newer; /* every wanted array is newer than every detached one */
} walk;

static void walk_free(void *state) {
    walk *w = state;
    wb_release(w->tape);
    wb_release(w->stack);
    wb_release(w->cotangents);
    wb_release(w->first_put);
    wb_release(w->puts);
    wb_release(w->joined);
    wb_release(w->needed);
    wb_release(w->expansions);
    wb_release(w);
}

/* The context's, kept between walks: a training step allocates nothing. */
static walk *walk_of(wb_thread *thread) {
    return wb_room_state_of(thread, WB_ROOM_WALK, sizeof(walk), walk_free);
}

/* ---- walks inside walks ---- */

static void walk_begin(walk *w, wb_thread *thread) {
    w->outer = wb_room_get(WB_ROOM_INNERMOST);
    w->stamp = ++thread->stamp;
    w->count = w->expansion_count = w->ends = 0;
    wb_room_set(WB_ROOM_INNERMOST, w);
}

static void walk_end(const walk *w) { wb_room_set(WB_ROOM_INNERMOST, w->outer); }

/* Puts back what an evaluation did to the nodes' scratch fields. */
static void stamp_again(const walk *w) {
    for (int64_t i = 0; i < w->count; i++)
        w->tape[i]->stamp = w->stamp, w->tape[i]->index = (uint32_t)i;
    for (int64_t i = 0; i < w->expansion_count; i++)
        w->expansions[i].whole->stamp = w->stamp, w->expansions[i].whole->index = (uint32_t)i;
}

static void stamp_all_again(void) {
    for (const walk *w = wb_room_get(WB_ROOM_INNERMOST); w; w = w->outer) stamp_again(w);
}

bool wb_walk_pause(void) {
    wb_thread *thread = wb_thread_get();
    const bool was_walking = thread->is_walking;
    thread->is_walking = false;
    return was_walking;
}

void wb_walk_go_on(bool was_walking) {
    wb_thread_get()->is_walking = was_walking;
    stamp_all_again();
}

static bool leads_on(const wb_array *x) {
    return x->ninputs > 0 && (wb_op_rows[x->op].vjp || x->op == WB_OP_scan);
}

/* One result of an operation that has no derivative of its own: the walk continues through the
 * array from which that result was computed. */
static bool is_expanded(const wb_array *x) {
    return x->op == WB_OP_result && wb_expands_for_gradient(x->inputs[0]->op);
}

static bool visited(wb_array *x, uint64_t stamp) {
    if (x->stamp == stamp) return true;
    x->stamp = stamp;
    return false;
}

static bool append(walk *w, wb_array *x) {
    if (!WB_GROW(w->tape, w->count, w->capacity)) return false;
    x->index = (uint32_t)w->count;
    w->tape[w->count++] = x;
    return true;
}

/* The next array after x: its input k, or the array that it was expanded to. NULL: an error is
 * recorded. */
static wb_array *below(walk *w, const wb_array *x, int32_t k) {
    if (!is_expanded(x)) return x->inputs[k];
    wb_array *whole = x->inputs[0];
    const uint64_t stamp = x->stamp;
    if (!visited(whole, stamp)) {
        if (!WB_GROW(w->expansions, w->expansion_count, w->expansion_capacity)) return NULL;
        whole->index = (uint32_t)w->expansion_count;
        struct expansion *e = &w->expansions[w->expansion_count++];
        *e = (struct expansion){.whole = whole, .parts = {NULL}};
        if (!wb_op_rows[whole->op].expand(whole, e->parts)) return NULL;
    }
    return w->expansions[whole->index].parts[x->attributes.part.number];
}

/* A gradient is taken through a layer that was applied in test mode. */
static void warn_untied(void) {
    static int warned;
    if (__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED)) return;
    wb_log_line(WB_LOG_WARN, "the gradient goes through a layer that was applied in test mode: "
                             "call wb_training(true), or wb_withgradient, which does");
}

/* Appends what result is made of to the tape, depth first with a stack of our
 * own. */
static bool order(walk *w, wb_array *result, uint64_t stamp) {
    int64_t depth = 0;
    if (visited(result, stamp)) return true;
    if (!wb_reserve((void **)&w->stack, &w->stack_capacity, sizeof *w->stack, 1)) return false;
    w->stack[depth++] = (visit){result, 0};
    while (depth > 0) {
        visit *top = &w->stack[depth - 1];
        if (!leads_on(top->node) || top->next == top->node->ninputs) {
            if (top->node->flags & WB_NODE_UNTIED) warn_untied();
            if (!append(w, top->node)) return false;
            depth--;
            continue;
        }
        wb_array *input = below(w, top->node, top->next++);
        if (!input) return false;
        if (visited(input, stamp)) continue;
        if (!wb_reserve((void **)&w->stack, &w->stack_capacity, sizeof *w->stack, depth + 1))
            return false;
        w->stack[depth++] = (visit){input, 0};
    }
    return true;
}

static bool mark_needed(walk *w, int count, wb_array *const *arrays, uint64_t stamp) {
    if (!wb_reserve((void **)&w->needed, &w->needed_capacity, sizeof *w->needed, w->count) ||
        !wb_reserve((void **)&w->cotangents, &w->cotangent_capacity, sizeof *w->cotangents,
                    w->count) ||
        !wb_reserve((void **)&w->first_put, &w->first_put_capacity, sizeof *w->first_put, w->count))
        return false;
    w->put_count = 0;
    for (int64_t i = 0; i < w->count; i++)
        w->needed[i] = false, w->cotangents[i] = NULL, w->first_put[i] = -1;
    for (int k = 0; k < count; k++)
        if (arrays[k]->stamp == stamp) w->needed[arrays[k]->index] = true;
    for (int64_t i = w->ends; i < w->count; i++) {
        const wb_array *x = w->tape[i];
        if ((x->flags & WB_NODE_DETACHED) && !w->needed[i]) w->detached = true;
        if (!leads_on(x)) continue;
        for (int k = 0; k < x->ninputs && !w->needed[i]; k++)
            w->needed[i] = w->needed[below(w, x, k)->index];
    }
    return true;
}

/* Sums of cotangents of the halves are kept in f32 and rounded once, where they are used. */
static wb_array *accumulate(wb_array *sum, wb_array *g) {
    if (!sum || !g) return sum ? sum : g;
    if (wb_is_half(sum->dtype)) sum = wb_cast(sum, WB_F32);
    if (wb_is_half(g->dtype)) g = wb_cast(g, WB_F32);
    return ADD(sum, g);
}

/* ---- cotangents of slices ----
 *
 * They are collected until all are there. Slices that lie side by side are then joined instead of
 * added: if they cover the whole array, as q, k and v of one product or the steps of a sequence do,
 * that costs no more than a copy. */

static bool add_put(walk *w, int64_t place, wb_array *put, int32_t part) {
    if (!WB_GROW(w->puts, w->put_count, w->put_capacity)) return false;
    w->puts[w->put_count] = (struct put){.node = put, .next = w->first_put[place], .part = part};
    w->first_put[place] = w->put_count++;
    return true;
}

static bool add_cotangent(walk *w, const wb_array *x, wb_array *g) {
    if (g && wb_is_slice_put(g) && g->dtype == x->dtype && g->ndim == x->ndim)
        return add_put(w, x->index, g, 0);
    w->cotangents[x->index] = accumulate(w->cotangents[x->index], g);
    return true;
}

/* The cotangent of the node there, slices included; NULL: it has none, or an error is recorded. */
static wb_array *cotangent_of(walk *w, int64_t place) {
    int64_t count = 0;
    wb_array *sum = w->cotangents[place];
    for (int64_t i = w->first_put[place]; i >= 0; i = w->puts[i].next) {
        if (!WB_GROW(w->joined, count, w->joined_capacity)) return NULL;
        w->joined[count++] = w->puts[i].node;
    }
    if (count == 0) return sum;
    w->first_put[place] = -1;
    const int left = wb_join_puts((int)count, w->joined);
    for (int i = 0; i < left; i++) sum = accumulate(sum, w->joined[i]);
    return w->cotangents[place] = left ? sum : NULL;
}

/* True of a number that the walk made. A user's cotangent of one number stays an array, since the
 * gradient may be differentiated by it. */
static bool is_number(const wb_array *g, double *value) {
    return (g->flags & WB_NODE_WEAK) && wb_constant_value(g, value);
}

/* The cotangent as the vjp of x expects it: x's type, and x's sizes unless broadcasting does. */
static wb_array *settle(wb_array *g, const wb_array *x, bool exact) {
    double value;
    if (!g || (!exact && (g->flags & WB_NODE_WEAK))) return g;
    if (is_number(g, &value)) return wb_full_make((wb_dtype)x->dtype, value, x->ndim, x->sizes);
    if (g->dtype != x->dtype || (g->flags & WB_NODE_WEAK)) g = wb_cast(g, (wb_dtype)x->dtype);
    return g && exact && !wb_same_sizes(g, x) ? wb_expand_make(g, x->ndim, x->sizes) : g;
}

/* g repeated to x's sizes, if asked. */
static wb_array *spread(wb_array *g, const wb_array *x, bool wanted) {
    double value;
    if (!wanted || !g) return g;
    if (is_number(g, &value)) return wb_full_make((wb_dtype)x->dtype, value, x->ndim, x->sizes);
    return wb_expand_make(g, x->ndim, x->sizes);
}

static bool broadcasts(const wb_array *x) {
    const wb_op_row *row = &wb_op_rows[x->op];
    return row->arity > 0 || x->op == WB_OP_select || x->op == WB_OP_cast || x->op == WB_OP_sum ||
           x->op == WB_OP_mean;
}

enum { MANY_INPUTS = 16 };

/* ---- scans: several results, whose cotangents wait until all are there ---- */

static bool gather_parts(const walk *w, const wb_array *scan, wb_array **cotangents) {
    for (int64_t i = w->first_put[scan->index]; i >= 0; i = w->puts[i].next) {
        wb_array **g = &cotangents[w->puts[i].part];
        *g = accumulate(*g, w->puts[i].node);
    }
    const wb_body *body = wb_body_of(scan);
    for (int32_t r = 0; r < body->nresults; r++)
        if (cotangents[r] && cotangents[r]->dtype != body->results[r]->dtype)
            cotangents[r] = wb_cast(cotangents[r], (wb_dtype)body->results[r]->dtype);
    return !wb_failed();
}

static bool pull_results(const walk *w, wb_array *scan, const bool *want, wb_array **out) {
    wb_array **cotangents = wb_alloc((size_t)(wb_body_of(scan)->nresults + 1) * sizeof *cotangents);
    const bool done = cotangents && gather_parts(w, scan, cotangents) &&
                      wb_pull_scan(scan, cotangents, want, out);
    wb_release(cotangents);
    return done;
}

static bool pull_inputs(walk *w, wb_array *x, wb_array *g, bool *want, wb_array **out) {
    if (is_expanded(x)) return add_cotangent(w, below(w, x, 0), g);
    if (wb_is_scan_result(x))
        return add_put(w, x->inputs[0]->index, g, (int32_t)x->attributes.part.number);
    for (int k = 0; k < x->ninputs; k++) {
        want[k] =
            w->needed[x->inputs[k]->index] && wb_dtype_is_float((wb_dtype)x->inputs[k]->dtype);
        out[k] = NULL;
    }
    if (x->op != WB_OP_scan)
        wb_op_rows[x->op].vjp(x, g, want, out);
    else if (!pull_results(w, x, want, out))
        return false;
    for (int k = 0; k < x->ninputs; k++) {
        if (!want[k] || !out[k]) continue;
        const wb_array *input = x->inputs[k];
        /* a cotangent that still broadcasts has to be repeated before the input's own broadcasting
         * is summed */
        const bool summed = wb_op_rows[x->op].arity > 0 || x->op == WB_OP_select;
        wb_array *part =
            spread(out[k], x, summed && !wb_same_sizes(input, x) && !wb_same_sizes(out[k], x));
        part = wb_sum_to(part, input->ndim, input->sizes);
        if (!add_cotangent(w, input, part)) return false;
    }
    return !wb_failed();
}

static bool pull_node(walk *w, wb_array *x) {
    wb_array *g = NULL;
    if (x->op != WB_OP_scan) {
        g = settle(cotangent_of(w, x->index), x, !broadcasts(x));
        if (!g) return !wb_failed();
    }
    bool few_wanted[MANY_INPUTS], *want = few_wanted;
    wb_array *few_out[MANY_INPUTS], **out = few_out;
    if (x->ninputs > MANY_INPUTS) {
        want = wb_alloc((size_t)x->ninputs * sizeof *want);
        out = wb_alloc((size_t)x->ninputs * sizeof *out);
    }
    const bool done = want && out && pull_inputs(w, x, g, want, out);
    if (want != few_wanted) wb_release(want);
    if (out != few_out) wb_release(out);
    return done;
}

static bool pull(walk *w, wb_array *x) {
    if (!wb_notes_origins()) return pull_node(w, x);
    const uint16_t before = wb_origin_back(x->origin);
    const bool done = pull_node(w, x);
    wb_origin_forth(before);
    return done;
}

/* A leaf that may depend on x but has lost its recipe; NULL: there is none. */
static const wb_array *lost_between(const walk *w, const wb_array *x) {
    if (!w->detached || w->are_newer) return NULL;
    for (int64_t i = w->ends; i < w->count; i++) {
        const wb_array *leaf = w->tape[i];
        if ((leaf->flags & WB_NODE_DETACHED) && !w->needed[i] && !(x->leaves & ~leaf->leaves))
            return leaf;
    }
    return NULL;
}

static wb_status fail_detached(const wb_array *leaf, int number, const wb_array *x) {
    return wb_fail(WB_ERROR_GRADIENT,
                   "gradient: %s of type %s%s lost its recipe when its scope was closed, so the "
                   "gradient does not reach array %d %s",
                   wb_text_of(leaf), wb_dtype_name((wb_dtype)leaf->dtype),
                   leaf->ndim ? "" : " (one number: the loss?)", number, wb_text_of(x));
}

static wb_status collect(walk *w, int count, wb_array *const *arrays, wb_array **gradients,
                         uint64_t stamp) {
    for (int i = 0; i < count; i++) {
        const wb_array *x = arrays[i];
        wb_array *g = x->stamp == stamp ? cotangent_of(w, x->index) : NULL;
        if (wb_failed()) return wb_error_status();
        if (g) {
            gradients[i] = wb_beside(x, settle(g, x, true));
            if (!gradients[i]) return wb_error_status();
            continue;
        }
        const wb_array *lost = lost_between(w, x);
        if (lost) return fail_detached(lost, i, x);
    }
    return WB_OK;
}

static bool order_all(walk *w, int nresults, wb_array *const *results, wb_array *const *cotangents,
                      uint64_t stamp) {
    for (int r = 0; r < nresults; r++)
        if (cotangents[r] && !order(w, results[r], stamp)) return false;
    return true;
}

/* The walk itself; its results are in the lists afterwards. */
static wb_status walk_back(walk *w, uint64_t stamp, int nresults, wb_array *const *results,
                           wb_array *const *cotangents, int count, wb_array *const *arrays) {
    w->detached = false;
    if (!order_all(w, nresults, results, cotangents, stamp) ||
        !mark_needed(w, count, arrays, stamp))
        return WB_ERROR_MEMORY;
    for (int r = 0; r < nresults; r++)
        if (cotangents[r] && !add_cotangent(w, results[r], cotangents[r])) return WB_ERROR_MEMORY;
    for (int64_t i = w->count - 1; i >= w->ends; i--) {
        wb_array *x = w->tape[i];
        const bool has_cotangent = w->cotangents[i] || w->first_put[i] >= 0;
        if (w->needed[i] && has_cotangent && leads_on(x) && !pull(w, x)) return wb_error_status();
    }
    return wb_failed() ? wb_error_status() : WB_OK;
}

static wb_status run_walk(walk *w, wb_thread *thread, wb_array *result, wb_array *cotangent,
                          int count, wb_array *const *arrays, wb_array **gradients) {
    walk_begin(w, thread);
    wb_status status = walk_back(w, w->stamp, 1, &result, &cotangent, count, arrays);
    if (status == WB_OK) status = collect(w, count, arrays, gradients, w->stamp);
    walk_end(w);
    return status;
}

wb_status wb_walk_inside(int nresults, wb_array *const *results, wb_array *const *cotangents,
                         int count, wb_array *const *arrays, wb_array **gradients) {
    wb_thread *thread = wb_thread_get();
    walk *w = wb_alloc(sizeof *w);
    if (!w) return WB_ERROR_MEMORY;
    walk_begin(w, thread);
    const uint64_t stamp = w->stamp;
    wb_status status = WB_OK;
    for (int i = 0; status == WB_OK && i < count; i++)
        if (!visited(arrays[i], stamp) && !append(w, arrays[i])) status = WB_ERROR_MEMORY;
    w->ends = w->count;
    if (status == WB_OK) status = walk_back(w, stamp, nresults, results, cotangents, count, arrays);
    for (int i = 0; i < count; i++) {
        wb_array *x = arrays[i], *g = NULL;
        if (status == WB_OK && x->stamp == stamp) g = cotangent_of(w, x->index);
        gradients[i] = g ? settle(g, x, true) : NULL;
    }
    walk_end(w);
    walk_free(w);
    if (status == WB_OK && wb_failed()) status = wb_error_status();
    return status;
}

static wb_status differentiate(wb_array *result, wb_array *cotangent, int count,
                               wb_array *const *arrays, wb_array **gradients, bool are_newer) {
    wb_thread *thread = wb_thread_get();
    const bool is_inside =
        wb_room_get(WB_ROOM_INNERMOST) != NULL; /* a user's pullback calls this */
    walk *w = !thread ? NULL : is_inside ? wb_alloc(sizeof *w) : walk_of(thread);
    if (!w) return WB_ERROR_MEMORY;
    wb_error_aside older;
    wb_error_put_aside(&older);
    thread->is_walking = true;
    w->are_newer = are_newer;
    const wb_status status = run_walk(w, thread, result, cotangent, count, arrays, gradients);
    thread->is_walking = is_inside;
    if (is_inside) {
        walk_free(w);
        stamp_all_again();
    }
    wb_error_bring_back(&older);
    return status;
}

static wb_status check_arguments(const char *function, wb_array *result, int count,
                                 wb_array *const *arrays, wb_array **gradients) {
    if (!wb_check_list(function, count, gradients)) return wb_error_status();
    for (int i = 0; i < count; i++) gradients[i] = NULL;
    if (!wb_may_use_array(function, result, "the result") ||
        !wb_may_use_arrays(function, count, arrays))
        return wb_error_status();
    if (wb_dtype_is_float((wb_dtype)result->dtype)) return WB_OK;
    return wb_fail(WB_ERROR_DTYPE, "%s: the result must have a floating type, got %s", function,
                   wb_dtype_name((wb_dtype)result->dtype));
}

static wb_status all_or_none(wb_status status, int count, wb_array **gradients) {
    if (status != WB_OK)
        for (int i = 0; i < count; i++) gradients[i] = NULL;
    return status;
}

static wb_status gradient_of(wb_array *loss, int count, wb_array *const *arrays,
                             wb_array **gradients, bool are_newer) {
    wb_status status = check_arguments("gradient", loss, count, arrays, gradients);
    if (status != WB_OK) return status;
    if (wb_count(loss) != 1)
        return wb_fail(WB_ERROR_GRADIENT,
                       "gradient: the loss must be one number, but has %lld elements in %s",
                       (long long)wb_count(loss), wb_text_of(loss));
    wb_array *one =
        loss->ndim ? wb_full_make((wb_dtype)loss->dtype, 1, loss->ndim, loss->sizes) : wb_number(1);
    if (!one) return wb_error_status();
    return all_or_none(differentiate(loss, one, count, arrays, gradients, are_newer), count,
                       gradients);
}

wb_status wb_gradient_of(wb_array *loss, int count, wb_array *const *arrays, wb_array **gradients) {
    return gradient_of(loss, count, arrays, gradients, false);
}

wb_status wb_gradient_of_newer(wb_array *loss, int count, wb_array *const *arrays,
                               wb_array **gradients) {
    return gradient_of(loss, count, arrays, gradients, true);
}

static wb_status pullback(wb_array *result, wb_array *cotangent, int count, wb_array *const *arrays,
                          wb_array **gradients, bool are_newer) {
    wb_status status = check_arguments("pullback", result, count, arrays, gradients);
    if (status != WB_OK) return status;
    if (!wb_may_use_array("pullback", cotangent, "the cotangent")) return wb_error_status();
    if (!wb_same_sizes(result, cotangent))
        return wb_fail(WB_ERROR_SHAPE,
                       "pullback: the cotangent must have the result's sizes %s, got %s",
                       wb_text_of(result), wb_text_of(cotangent));
    return all_or_none(differentiate(result, cotangent, count, arrays, gradients, are_newer), count,
                       gradients);
}

wb_status wb_pullback(wb_array *result, wb_array *cotangent, int count, wb_array *const *arrays,
                      wb_array **gradients) {
    return pullback(result, cotangent, count, arrays, gradients, false);
}

wb_status wb_pullback_newer(wb_array *result, wb_array *cotangent, int count,
                            wb_array *const *arrays, wb_array **gradients) {
    return pullback(result, cotangent, count, arrays, gradients, true);
}
