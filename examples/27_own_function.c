/* Functions with a derivative of one's own: the solution of an equation, whose derivative follows
 * from the equation and not from the steps that solved it; a function in C on host memory; rounding
 * that gradients pass over.
 *
 * | cos(0.8 x) = x at 0.8014, its slope -0.3242
 * | by differences:            -0.3242
 * | in C: 1.3863, its slope 1.0000
 * | rounded: 3, its slope 6
 */
#include <math.h>
#include <stdio.h>

#include <weber.h>

/* ---- x = cos(a x), solved by iteration; dx/da = -x sin(a x) / (1 + a sin(a x)) ---- */

static wb_array *fixed_point(void *context, int count, wb_array *const *arrays) {
    wb_array *x = wb_zeros(WB_F64, 1);
    (void)context, (void)count;
    for (int i = 0; i < 60; i++) x = wb_cos(wb_mul(arrays[0], x));
    return x;
}

static wb_status fixed_point_pullback(void *context, wb_array *x, wb_array *cotangent, int count,
                                      wb_array *const *arrays, wb_array **cotangents) {
    (void)context, (void)count;
    wb_array *a = arrays[0], *s = wb_sin(wb_mul(a, x));
    wb_array *slope = wb_div(wb_neg(wb_mul(x, s)), wb_add(wb_mul(a, s), wb_number(1)));
    cotangents[0] = wb_mul(cotangent, slope);
    return WB_OK;
}

static wb_array *solution(wb_array *a) {
    return wb_function(1, &a, .value = fixed_point, .pullback = fixed_point_pullback,
                       .name = "fixed_point");
}

/* ---- log(x^2) in C ---- */

static wb_status log_square(void *context, int count, const void *const *arrays, void *result) {
    const double *x = arrays[0];
    (void)context, (void)count;
    *(double *)result = log(x[0] * x[0]);
    return WB_OK;
}

static wb_status log_square_pullback(void *context, int count, const void *const *arrays,
                                     const void *result, const void *cotangent,
                                     void *const *cotangents) {
    const double *x = arrays[0], *g = cotangent;
    double *to_x = cotangents[0];
    (void)context, (void)count, (void)result;
    to_x[0] = g[0] * 2 / x[0];
    return WB_OK;
}

/* d y / d x, for a y of one element */
static double slope(wb_array *y, wb_array *x) {
    wb_array *g;
    return wb_gradient_of(y, 1, &x, &g) == WB_OK ? wb_item(g) : NAN;
}

int main(void) {
    wb_scope_open();
    wb_array *a = wb_full(WB_F64, 0.8, 1), *h = wb_full(WB_F64, 1e-5, 1), *x = solution(a);
    printf("cos(0.8 x) = x at %.4f, its slope %.4f\n", wb_item(x), slope(x, a));
    wb_array *change = wb_sub(solution(wb_add(a, h)), solution(wb_sub(a, h)));
    printf("by differences:            %.4f\n", wb_item(change) / 2e-5);

    wb_array *z = wb_full(WB_F64, 2, 1);
    wb_array *y = wb_host_function(1, &z, .value = log_square, .pullback = log_square_pullback,
                                   .ndim = 1, .sizes = {1}, .dtype = WB_F64);
    printf("in C: %.4f, its slope %.4f\n", wb_item(y), slope(y, z));

    wb_array *w = wb_full(WB_F64, 2.7, 1), *rounded = wb_straight_through(wb_round(w), w);
    printf("rounded: %g, its slope %g\n", wb_item(rounded), slope(wb_square(rounded), w));
    wb_scope_close();
    return wb_report("27_own_function");
}
