/* All gradients of a model at once: added, scaled, clipped, kept. */
#include <math.h>
#include <string.h>

#include "array/state.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "ops/build.h"
#include "optimise/gradients.h"
#include "optimise/guard.h"

/* ---- one after another ---- */

typedef struct listing {
    const wb_gradients *gradients;
    int64_t slot;   /* the next one */
    int64_t listed; /* arrays that were */
} listing;

/* Slots come in the order of the gradients; for each array the first slot counts. */
static bool has_gradient(void *user, wb_array **slot, bool trainable, wb_array **gradient) {
    listing *l = user;
    const wb_gradients *g = l->gradients;
    if (!trainable || l->slot == g->count || g->slots[l->slot] != slot) return false;
    const int64_t k = g->array_of[l->slot++];
    if (k < l->listed) return false;
    l->listed++;
    *gradient = g->values[k];
    return true;
}

bool wb_next_gradient(const wb_gradients *gradients, wb_parameter *p) {
    if (!wb_gradients_check("wb_next_gradient", gradients)) return false;
    if (!p) return wb_fail_argument_null("wb_next_gradient", "the parameter") != NULL;
    listing l = {.gradients = gradients};
    return wb_next_place(p, gradients->model, has_gradient, &l);
}

/* ---- each for itself ---- */

/* Stores the new values: all, or none if one is missing. */
static wb_status put_all(wb_gradients *g, wb_array *const *fresh) {
    for (int64_t k = 0; k < g->distinct; k++)
        if (g->values[k] && !fresh[k]) return wb_failed() ? wb_error_status() : WB_ERROR_MEMORY;
    for (int64_t k = 0; k < g->distinct; k++)
        if (g->values[k]) wb_gradients_put(g, k, fresh[k]);
    return WB_OK;
}

typedef wb_array *each_fn(wb_array *x, const void *context);

/* f of each gradient; the scratch list `leaving` has the results meanwhile. */
static wb_status each(wb_gradients *g, each_fn *f, const void *context) {
    for (int64_t k = 0; k < g->distinct; k++)
        g->leaving[k] = g->values[k] ? f(g->values[k], context) : NULL;
    return put_all(g, g->leaving);
}

static wb_array *scaled(wb_array *x, const void *context) {
    return wb_mul(x, wb_late(*(const double *)context));
}

wb_status wb_gradients_scale(wb_gradients *gradients, double factor) {
    if (!wb_gradients_check("wb_gradients_scale", gradients)) return WB_ERROR_ARGUMENT;
    if (isfinite(factor)) return each(gradients, scaled, &factor);
    return wb_fail(WB_ERROR_ARGUMENT, "wb_gradients_scale: factor must be finite, got %g", factor);
}

static bool check_limit(const char *function, const wb_gradients *g, double limit) {
    if (!wb_gradients_check(function, g)) return false;
    if (limit >= 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: limit must be at least 0, got %g", function, limit);
    return false;
}

static wb_array *clipped(wb_array *x, const void *context) {
    const double limit = *(const double *)context;
    return wb_max(wb_min(x, wb_late(limit)), wb_late(-limit));
}

wb_status wb_gradients_clip(wb_gradients *gradients, double limit) {
    if (!check_limit("wb_gradients_clip", gradients, limit)) return WB_ERROR_ARGUMENT;
    return each(gradients, clipped, &limit);
}

/* ---- by their common norm ---- */

static wb_array *norm_of_norms(int64_t count, wb_array *const *arrays) {
    wb_array **norms = wb_alloc((size_t)(count + 1) * sizeof *norms), *n = NULL;
    int found = 0;
    for (int64_t i = 0; norms && i < count; i++) {
        wb_array *g = arrays[i];
        if (g && g->dtype != WB_F64) g = wb_cast(g, WB_F32);
        if (arrays[i]) norms[found++] = g ? wb_reshape(wb_norm(g, 2), 1) : NULL;
    }
    if (found > 0) n = wb_norm(wb_concat_make(0, found, norms), 2);
    wb_release(norms);
    return n;
}

wb_array *wb_common_norm(int64_t count, wb_array *const *arrays) {
    wb_array *squares = NULL;
    for (int64_t i = 0; i < count; i++) {
        if (!arrays[i]) continue;
        if (!wb_fits_f64(arrays[i])) return norm_of_norms(count, arrays);
        wb_array *sum = wb_sum(wb_square(wb_cast(arrays[i], WB_F64)));
        squares = squares ? wb_add(squares, sum) : sum;
    }
    return squares ? wb_cast(wb_sqrt(squares), WB_F32) : NULL;
}

/* The quotient of a usual limit and a very large norm is denormal, which counts as 0 in a step, and
 * in f16 it vanishes much earlier: such an x is divided by 2^64 first. */
wb_array *wb_shortened(wb_array *x, wb_array *norm, wb_array *limit) {
    wb_array *is_large = GT(norm, NUM(0x1p64));
    wb_array *unit = SELECT(is_large, NUM(0x1p64), NUM(1)), *part = DIV(NUM(1), unit);
    wb_array *scale = MIN(DIV(limit, MUL(norm, part)), unit);
    return wb_cast(MUL(MUL(wb_wide(x), part), scale), (wb_dtype)x->dtype);
}

typedef struct looking {
    wb_visitor visitor;
    const wb_gradients *gradients;
    int64_t slot; /* the next one */
} looking;

static bool look_at(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    looking *l = (looking *)(void *)visitor;
    const wb_gradients *g = l->gradients;
    (void)path;
    if (trainable && l->slot < g->count && g->slots[l->slot] == slot)
        g->arrays[g->array_of[l->slot++]] = *slot;
    return true;
}

/* arrays[] becomes what the model holds now: the arrays that it held before may be released. */
static bool look(const wb_gradients *g) {
    looking l = {.visitor = {.array = look_at}, .gradients = g};
    for (int64_t k = 0; k < g->distinct; k++) g->arrays[k] = NULL;
    return wb_visit(&l.visitor, g->model);
}

/* Gradients of arrays that are tied as views of each other go to the first one. */
static bool add_ties(const wb_gradients *g, wb_array **sums) {
    wb_ties ties = {.capacity = 0};
    bool good = look(g);
    for (int64_t k = 0; k < g->distinct && good; k++) {
        const wb_array *x = g->arrays[k];
        const int64_t first = x ? wb_ties_find(&ties, x) : -1;
        good = wb_ties_add(&ties, x);
        sums[k] = g->values[k];
        if (first < 0 || !sums[k]) continue;
        wb_array *more = wb_through_memory(g->arrays[k], sums[k], g->arrays[first]);
        sums[first] = sums[first] ? wb_add(sums[first], more) : more;
        sums[k] = NULL;
        good = good && sums[first];
    }
    wb_ties_release(&ties);
    return good;
}

wb_array *wb_gradients_norm(const wb_gradients *gradients) {
    if (!wb_gradients_check("wb_gradients_norm", gradients)) return NULL;
    if (!add_ties(gradients, gradients->leaving)) return NULL;
    wb_array *norm = wb_common_norm(gradients->distinct, gradients->leaving);
    return norm || wb_failed() ? norm : wb_scalar(WB_F32, 0);
}

typedef struct limit {
    wb_array *norm;
    double most;
} limit;

static wb_array *shortened(wb_array *x, const void *context) {
    const limit *l = context;
    return wb_shortened(x, l->norm, wb_constant(l->most));
}

wb_array *wb_gradients_clip_total_norm(wb_gradients *gradients, double most) {
    static const char function[] = "wb_gradients_clip_total_norm";
    if (!check_limit(function, gradients, most)) return NULL;
    const limit l = {wb_gradients_norm(gradients), most};
    wb_array *watched = l.norm ? wb_gradients_watched(gradients) : NULL;
    watched = watched ? wb_add(watched, l.norm) : l.norm;
    if (!watched || each(gradients, shortened, &l) != WB_OK) return NULL;
    wb_gradients_watch(gradients, watched);
    return l.norm;
}

/* ---- through a function ---- */

static wb_array *mapped(const char *function, wb_leaf_fn *fn, void *user, const wb_parameter *p) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *x = fn(user, p->path, p->gradient);
    if (!wb_user_call_end(&call, function)) return NULL;
    if (!x && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the function gave NULL for %s", function, p->path);
    return x;
}

wb_status wb_gradients_map(wb_leaf_fn *fn, void *user, wb_gradients *gradients) {
    static const char function[] = "wb_gradients_map";
    if (!wb_gradients_check(function, gradients)) return WB_ERROR_ARGUMENT;
    if (!fn) return wb_fail(WB_ERROR_ARGUMENT, "%s: the function is NULL", function);
    if (wb_failed()) return wb_not_run(function);
    int64_t k = 0;
    for (wb_parameter p = {0}; wb_next_gradient(gradients, &p); k++) {
        wb_array *x = p.gradient ? mapped(function, fn, user, &p) : NULL;
        gradients->leaving[k] = x;
        if (x && !wb_same_sizes(x, p.array))
            (void)wb_fail(WB_ERROR_SHAPE, "%s: %s has sizes %s, the function's result %s", function,
                          p.path, wb_text_of(p.array), wb_text_of(x));
    }
    return wb_failed() ? wb_error_status() : put_all(gradients, gradients->leaving);
}

/* ---- computed at once ---- */

/* Roots: the values, the watched number, a loss with its auxiliary outputs, and pending states,
 * which keep their old values if that loss is not finite. */
static wb_status compute(const wb_gradients *g, const wb_gradients *of_loss) {
    wb_array *watched = wb_gradients_watched(of_loss);
    int64_t rest = 0;
    if (watched && !wb_guard_states(watched, &rest)) return wb_error_status();
    const int room = wb_state_pending(0, NULL);
    wb_array **roots = wb_alloc((size_t)(g->distinct + room + WB_OF_LOSS + 1) * sizeof *roots);
    if (!roots) return WB_ERROR_MEMORY;
    int n = 0;
    for (int64_t k = 0; k < g->distinct; k++)
        if (g->values[k]) roots[n++] = g->values[k];
    if (g->watched && g != of_loss) roots[n++] = g->watched;
    n += wb_gradients_list_loss(of_loss, roots + n);
    wb_status status = wb_evaluate_roots(n + wb_state_pending(room, roots + n), roots);
    wb_release(roots);
    if (status == WB_OK) status = wb_guard_rest(watched, rest);
    if (status == WB_OK) status = wb_state_settle(); /* which finds them computed */
    return status;
}

static void hold(wb_array **at) {
    wb_array *x = *at;
    if (!x) return;
    (void)wb_hold(x);
    wb_unref(x);
    if (wb_is_evaluated(x)) wb_node_detach(x);
}

wb_gradients *wb_gradients_keep(wb_gradients *gradients) {
    if (!wb_gradients_check("wb_gradients_keep", gradients)) return NULL;
    wb_gradients *g = gradients;
    if (g->is_kept) return g;
    if (compute(g, g) != WB_OK) return NULL;
    for (int64_t k = 0; k < g->distinct; k++) hold(&g->values[k]);
    hold(&g->loss);
    hold(&g->watched);
    hold(&g->divisor);
    for (int i = 0; i < g->aux.count; i++) hold(&g->aux.items[i].x);
    g->is_kept = true;
    (void)wb_scope_disown(g);
    return g;
}

/* ---- sums ---- */

static bool fit(const wb_gradients *a, const wb_gradients *b) {
    return a->model == b->model && a->count == b->count && a->distinct == b->distinct &&
           memcmp(a->slots, b->slots, (size_t)a->count * sizeof *a->slots) == 0 &&
           memcmp(a->array_of, b->array_of, (size_t)a->count * sizeof *a->array_of) == 0;
}

static wb_array *sum_of(wb_array *a, wb_array *b) { return a && b ? wb_add(a, b) : a ? a : b; }

/* The new values of sum, then the value that it watches; false on failure. */
static bool make_sums(const wb_gradients *sum, const wb_gradients *more) {
    const int64_t n = sum->distinct;
    for (int64_t k = 0; k <= n; k++) {
        wb_array *a = k < n ? sum->values[k] : wb_gradients_watched(sum);
        wb_array *b = k < n ? more->values[k] : wb_gradients_watched(more);
        sum->leaving[k] = sum_of(a, b);
        if (!sum->leaving[k] && (a || b)) return false;
    }
    return true;
}

static void put_sums(wb_gradients *sum) {
    for (int64_t k = 0; k < sum->distinct; k++) wb_gradients_put(sum, k, sum->leaving[k]);
    wb_gradients_watch(sum, sum->leaving[sum->distinct]);
}

/* Exchanges the values of sum with the new ones; calling it again undoes that, since the recipes of
 * the new ones hold the old ones. */
static void exchange(wb_gradients *sum) {
    for (int64_t k = 0; k <= sum->distinct; k++) {
        wb_array **at = k < sum->distinct ? &sum->values[k] : &sum->watched;
        wb_array *old = *at;
        *at = wb_hold(sum->leaving[k]);
        wb_unhold(old);
        sum->leaving[k] = old;
    }
}

/* In a scope of its own, so that sums alone refer to their terms, and take over their memory. */
static wb_status add_at_once(wb_gradients *sum, const wb_gradients *more) {
    if (!sum->watched) sum->watched = sum->loss, sum->loss = NULL;
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const bool made = make_sums(sum, more);
    wb_status status = wb_scope_close_leaving(made ? (int)sum->distinct + 1 : 0, sum->leaving);
    if (!made || status != WB_OK) return made ? status : wb_error_status();
    exchange(sum);
    status = compute(sum, more);
    if (status != WB_OK) exchange(sum);
    return status;
}

static wb_status add_kept(wb_gradients *sum, const wb_gradients *more) {
    if (!wb_scope_begin()) return WB_ERROR_MEMORY;
    const wb_status status = add_at_once(sum, more);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

static wb_status add_pending(wb_gradients *sum, const wb_gradients *more) {
    if (!make_sums(sum, more)) return wb_error_status();
    put_sums(sum);
    return WB_OK;
}

/* What the losses were divided by, together: of kept gradients as a number, once it is computed. */
static wb_status add_divisors(wb_gradients *sum, const wb_gradients *more) {
    if (!sum->divisor && !more->divisor) return WB_OK;
    wb_array *both = wb_add(wb_gradients_weight(sum), wb_gradients_weight(more));
    if (!both) return wb_error_status();
    const wb_status status = sum->is_kept ? wb_evaluate_roots(1, &both) : WB_OK;
    if (status == WB_OK) wb_gradients_put_divisor(sum, both);
    return status;
}

wb_status wb_gradients_add(wb_gradients *sum, const wb_gradients *more) {
    static const char function[] = "wb_gradients_add";
    if (!wb_gradients_check(function, sum) || !wb_gradients_check(function, more))
        return WB_ERROR_ARGUMENT;
    if (!fit(sum, more))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the gradients must be of the same model, with the same arrays",
                       function);
    if (sum->weighting != more->weighting)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: both gradients must come from wb_withgradient_for, or neither",
                       function);
    wb_status status = sum->is_kept ? add_kept(sum, more) : add_pending(sum, more);
    if (status == WB_OK) status = add_divisors(sum, more);
    if (status == WB_OK) sum->observations += more->observations;
    return status;
}
