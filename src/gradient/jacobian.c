/* Matrices of derivatives, whose rows or columns are the steps of a scan, and gradients of single
 * observations. */
#include <weber/scan.h>

#include "base/memory.h"
#include "gradient/further.h"
#include "gradient/mode.h"
#include "gradient/walk.h"
#include "ops/build.h"

/* ---- J ---- */

typedef struct pair {
    wb_array *y, *x;
    bool is_gradient; /* if y is x itself, the walk has reached x, even if arrays are detached */
} pair;

/* The cotangent of x for one of y; NULL with an error recorded. */
static wb_array *pull(const pair *p, wb_array *cotangent) {
    wb_array *x = p->x, *g = NULL;
    if (!cotangent) return NULL;
    const wb_status status = p->is_gradient ? wb_pullback_newer(p->y, cotangent, 1, &x, &g)
                                            : wb_pullback(p->y, cotangent, 1, &x, &g);
    return status != WB_OK ? NULL : g ? g : wb_zeros_like(x);
}

static wb_array *flat(wb_array *x) { return x ? wb_reshape(x, wb_count(x)) : NULL; }

/* Row inputs[0] of J. */
static void row(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    const pair *p = context;
    (void)carries;
    outputs[0] = flat(pull(p, wb_unit_vector(p->y, inputs[0])));
}

/* Column inputs[0]. */
static void column(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    pair *p = context;
    wb_array *unit = wb_unit_vector(p->x, inputs[0]);
    (void)carries;
    outputs[0] = unit ? flat(wb_jvp(p->y, 1, &p->x, &unit)) : NULL;
}

/* The results for places 0 .. count - 1, side by side; NULL: an error is recorded. */
static wb_array *for_each(wb_scan_fn *body, void *context, const wb_array *like, int64_t count) {
    wb_array *places = wb_beside(like, wb_element_places(count)), *all = NULL;
    if (!places || wb_scan(body, context, 0, NULL, 1, &places, 1, &all) != WB_OK) return NULL;
    return all;
}

static wb_array *jacobian(wb_array *y, wb_array *x) {
    pair p = {.y = y, .x = x};
    if (wb_count(x) < wb_count(y)) return for_each(column, &p, x, wb_count(x));
    wb_array *rows = for_each(row, &p, y, wb_count(y));
    return rows ? wb_transpose(rows) : NULL;
}

wb_array *wb_jacobian(wb_array *y, wb_array *x) {
    const bool good =
        wb_check_differentiable("jacobian", "y", y) && wb_check_differentiable("jacobian", "x", x);
    return good ? jacobian(y, x) : NULL;
}

/* ---- H ---- */

/* False: an error is recorded. *gradient: NULL where the loss does not depend on x. */
static bool gradient_for(const char *function, wb_array *loss, wb_array *x, wb_array **gradient) {
    *gradient = NULL;
    if (!wb_check_differentiable(function, "the loss", loss) ||
        !wb_check_differentiable(function, "x", x))
        return false;
    if (wb_count(loss) == 1) return wb_gradient_of(loss, 1, &x, gradient) == WB_OK;
    (void)wb_fail(WB_ERROR_GRADIENT, "%s: the loss must be one number, got %lld elements in %s",
                  function, (long long)wb_count(loss), wb_text_of(loss));
    return false;
}

wb_array *wb_hessian(wb_array *loss, wb_array *x) {
    wb_array *gradient;
    if (!gradient_for("hessian", loss, x, &gradient)) return NULL;
    const int64_t n = wb_count(x);
    if (!gradient) return wb_beside(x, wb_full_make((wb_dtype)x->dtype, 0, 2, (int64_t[]){n, n}));
    pair p = {.y = gradient, .x = x, .is_gradient = true};
    return for_each(row, &p, x, n); /* symmetric: rows are columns */
}

/* Element inputs[0] of the diagonal. */
static void element(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    const pair *p = context;
    wb_array *unit = wb_unit_vector(p->x, inputs[0]), *g = pull(p, unit);
    (void)carries;
    outputs[0] = g ? wb_sum(MUL(g, unit)) : NULL;
}

wb_array *wb_hessian_diagonal(wb_array *loss, wb_array *x) {
    wb_array *gradient;
    if (!gradient_for("hessian_diagonal", loss, x, &gradient)) return NULL;
    if (!gradient) return wb_zeros_like(x);
    pair p = {.y = gradient, .x = x, .is_gradient = true};
    wb_array *diagonal = for_each(element, &p, x, wb_count(x));
    return diagonal ? wb_reshape_make(diagonal, x->ndim, x->sizes) : NULL;
}

/* ---- single observations ---- */

typedef struct each {
    wb_array_fn *loss;
    void *context;
    int ninputs, count;
    wb_array *const *arrays;
    wb_array **observations; /* of one step */
} each;

static wb_array *loss_of(each *e, wb_array *const *inputs) {
    for (int k = 0; k < e->ninputs; k++)
        if (!(e->observations[k] = wb_unsqueeze(inputs[k], wb_ndim(inputs[k])))) return NULL;
    const bool before = wb_set_training(true);
    wb_array *loss = e->loss(e->context, e->ninputs, e->observations);
    (void)wb_set_training(before);
    if (loss || wb_failed()) return loss;
    return wb_fail_null(WB_ERROR_ARGUMENT, "gradient_each: the loss function returned NULL");
}

static void gradients_of_one(void *context, wb_array **carries, wb_array *const *inputs,
                             wb_array **outputs) {
    each *e = context;
    wb_array *loss = loss_of(e, inputs);
    (void)carries;
    if (!loss || wb_gradient_of(loss, e->count, e->arrays, outputs) != WB_OK) return;
    for (int i = 0; i < e->count; i++)
        if (!outputs[i]) outputs[i] = wb_zeros_like(e->arrays[i]);
}

static bool check_each(const each *e, wb_array *const *inputs, wb_array **gradients) {
    static const char function[] = "gradient_each";
    if (!wb_check_list(function, e->count, gradients)) return false;
    for (int i = 0; i < e->count; i++) gradients[i] = NULL;
    if (!e->loss) return wb_fail_argument_null(function, "the loss function") != NULL;
    if (!wb_check_list(function, e->ninputs, inputs)) return false;
    if (!wb_check_list(function, e->count, e->arrays)) return false;
    if (e->ninputs < 1 || e->count < 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: at least one input and one array are needed, got %d "
                      "and %d",
                      function, e->ninputs, e->count);
        return false;
    }
    for (int i = 0; i < e->count; i++)
        if (!wb_check_differentiable(function, "an array", e->arrays[i])) return false;
    for (int k = 0; k < e->ninputs; k++)
        if (!wb_is_usable(inputs[k])) return wb_refuse(function, inputs[k], "an input") != NULL;
    return true;
}

wb_status wb_gradient_each(wb_array_fn *loss, void *context, int ninputs, wb_array *const *inputs,
                           int count, wb_array *const *arrays, wb_array **gradients) {
    each e = {
        .loss = loss, .context = context, .ninputs = ninputs, .count = count, .arrays = arrays};
    if (!check_each(&e, inputs, gradients)) return wb_error_status();
    e.observations = wb_alloc((size_t)ninputs * sizeof *e.observations);
    if (!e.observations) return WB_ERROR_MEMORY;
    const wb_status status =
        wb_scan(gradients_of_one, &e, 0, NULL, ninputs, inputs, count, gradients);
    wb_release(e.observations);
    return status;
}
