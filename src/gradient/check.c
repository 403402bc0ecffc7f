/* The numeric gradient checker: central differences of a random projection. */
#include <math.h>
#include <weber/gradient.h>

#include "array/state.h"
#include "array/thread.h"
#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "gradient/walk.h"
#include "ops/build.h"

typedef struct problem {
    wb_array_fn *fn;
    void *context;
    int count;
    int order; /* 1: the projection of fn; 2: the projection of its gradient */
} problem;

/* Fixed weights, different for every element, so that no error cancels. */
static wb_array *project(wb_array *y) {
    if (!y) return NULL;
    wb_array *flat = wb_reshape(y, -1);
    wb_array *place = wb_iota(WB_F64, 0, wb_count(y));
    wb_array *weight = ADD(SIN(ADD(MUL(place, NUM(1.7)), NUM(0.3))), NUM(0.1));
    return wb_sum(MUL(flat, weight));
}

/* fn is called many times, at points that are not data, so its writes to states are taken back. */
static wb_array *value(const problem *p, wb_array *const *arrays) {
    const int64_t states = wb_state_begin();
    wb_user_call call;
    wb_user_call_begin(&call, "fn");
    wb_array *y = p->fn(p->context, p->count, arrays);
    wb_array *scalar = wb_user_call_end(&call, "gradient_check") ? project(y) : NULL;
    wb_state_end(states, false);
    if (p->order == 1 || !scalar) return scalar;
    wb_array *gradients[16] = {NULL}, *sum = NULL;
    if (wb_gradient_of_newer(scalar, p->count, arrays, gradients) != WB_OK) return NULL;
    for (int i = 0; i < p->count; i++) {
        if (!gradients[i]) continue;
        wb_array *part = project(gradients[i]);
        sum = sum ? ADD(sum, part) : part;
    }
    return sum ? sum : wb_scalar(WB_F64, 0);
}

static double value_at(const problem *p, double *const *numbers, wb_array *const *like) {
    wb_array *arrays[16];
    wb_scope_open();
    for (int i = 0; i < p->count; i++)
        arrays[i] = wb_from_make(WB_F64, numbers[i], like[i]->ndim, like[i]->sizes);
    const double result = wb_item(value(p, arrays));
    (void)wb_scope_close();
    return result;
}

static wb_status compare(const problem *p, int i, double *const *numbers, wb_array *const *arrays,
                         wb_array *gradient, double tolerance) {
    const int64_t n = wb_count(arrays[i]);
    double *analytic = wb_alloc_list(n, sizeof *analytic);
    double *numeric = wb_alloc_list(n, sizeof *numeric);
    wb_status status = analytic && numeric ? WB_OK : WB_ERROR_MEMORY;
    if (status == WB_OK && gradient) status = wb_read_f64(gradient, analytic, n);
    double largest = 1;
    for (int64_t k = 0; status == WB_OK && k < n; k++) {
        const double x = numbers[i][k], h = 1e-5 * (1 + fabs(x));
        numbers[i][k] = x + h;
        const double above = value_at(p, numbers, arrays);
        numbers[i][k] = x - h;
        const double below = value_at(p, numbers, arrays);
        numbers[i][k] = x;
        numeric[k] = (above - below) / (2 * h);
        largest = fmax(largest, fabs(numeric[k]));
        if (wb_failed()) status = wb_error_status();
    }
    for (int64_t k = 0; status == WB_OK && k < n; k++)
        if (!(fabs(analytic[k] - numeric[k]) <= tolerance * largest))
            status =
                wb_fail(isfinite(analytic[k] - numeric[k]) ? WB_ERROR_GRADIENT : WB_ERROR_NUMBER,
                        "gradient check of order %d: element %lld of array %d: %.10g by the "
                        "gradient, %.10g by differences",
                        p->order, (long long)k, i, analytic[k], numeric[k]);
    wb_release(analytic);
    wb_release(numeric);
    return status;
}

static wb_status check_order(const problem *p, double *const *numbers, wb_array *const *arrays,
                             double tolerance) {
    wb_array *gradients[16] = {NULL}, *new[16];
    for (int i = 0; i < p->count; i++)
        new[i] = wb_from_make(WB_F64, numbers[i], arrays[i]->ndim, arrays[i]->sizes);
    wb_array *result = value(p, new);
    if (!result) return wb_error_status();
    wb_status status = wb_gradient_of_newer(result, p->count, new, gradients);
    for (int i = 0; status == WB_OK && i < p->count; i++)
        status = compare(p, i, numbers, arrays, gradients[i], tolerance);
    return status;
}

wb_status wb_gradient_check(wb_array_fn *fn, void *context, int count, wb_array *const *arrays,
                            int order, double tolerance) {
    if (count < 1 || count > 16 || order < 1 || order > 2)
        return wb_fail(
            WB_ERROR_ARGUMENT,
            "gradient_check: %d arrays, order %d; 1 to 16 arrays and order 1 or 2 are possible",
            count, order);
    if (!fn) return (void)wb_fail_argument_null("gradient_check", "fn"), wb_error_status();
    if (!wb_may_use_arrays("gradient_check", count, arrays)) return wb_error_status();
    double *numbers[16] = {NULL};
    wb_status status = wb_scope_open();
    if (status != WB_OK) return status;
    for (int i = 0; i < count && status == WB_OK; i++) {
        if (arrays[i]->dtype != WB_F64)
            status = wb_fail(WB_ERROR_DTYPE, "gradient_check: array %d must be f64", i);
        else if (!(numbers[i] = wb_alloc_list(wb_count(arrays[i]) + 1, sizeof(double))))
            status = WB_ERROR_MEMORY;
        else
            status = wb_read_f64(arrays[i], numbers[i], wb_count(arrays[i]));
    }
    problem p = {.fn = fn, .context = context, .count = count};
    for (p.order = 1; status == WB_OK && p.order <= order; p.order++)
        status = check_order(&p, numbers, arrays, tolerance > 0 ? tolerance : 1e-6);
    for (int i = 0; i < count; i++) wb_release(numbers[i]);
    (void)wb_scope_close();
    return status;
}
