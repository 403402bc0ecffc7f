/* Gradients are ordinary arrays: they can be differentiated again, to any order.
 *
 * | derivative 0 of x^4 at 2: 16
 * | derivative 1 of x^4 at 2: 32
 * | derivative 2 of x^4 at 2: 48
 * | derivative 3 of x^4 at 2: 48
 * | derivative 4 of x^4 at 2: 24
 * | step 0: f(-1.0000, 2.0000) = 104.0000
 * | 2×2 Array{f64} on CPU:
 * |  402.0  400.0
 * |  400.0  200.0
 * | step 1: f(-1.0101, 1.0201) = 4.0403
 * | step 2: f(0.9602, -2.9599) = 1506.8994
 * | step 3: f(0.9602, 0.9221) = 0.0016
 * | step 4: f(1.0000, 0.9984) = 0.0002
 * | step 5: f(1.0000, 1.0000) = 0.0000
 */
#include <stdio.h>

#include <weber.h>

/* d y / d x, for a y of one element */
static wb_array *derivative(wb_array *y, wb_array *x) {
    wb_array *g;
    wb_gradient_of(y, 1, &x, &g);
    return g;
}

/* Rosenbrock's function: (1 - a)^2 + 100 (b - a^2)^2 */
static wb_array *rosenbrock(wb_array *x) {
    wb_array *a = wb_slice(x, 0, 0, 1, 1), *b = wb_slice(x, 0, 1, 2, 1);
    return wb_sum(wb_add(wb_square(wb_sub(wb_number(1), a)),
                         wb_mul_number(wb_square(wb_sub(b, wb_square(a))), 100)));
}

/* The matrix of second derivatives, row by row: each is the gradient of one component of the
 * gradient. */
static wb_array *hessian(wb_array *g, wb_array *x) {
    wb_array *rows[2];
    for (int i = 0; i < 2; i++) rows[i] = derivative(wb_sum(wb_slice(g, 0, i, i + 1, 1)), x);
    return wb_stack(0, rows[0], rows[1]);
}

int main(void) {
    wb_scope_open();

    wb_array *x = wb_scalar(WB_F64, 2), *y = wb_mul(wb_mul(x, x), wb_mul(x, x)); /* x^4 */
    for (int order = 0; order <= 5 && y; order++, y = derivative(y, x)) {
        printf("derivative %d of x^4 at 2: %g\n", order, wb_item(y));
        if (order == 4)
            break; /* the next one does not depend on x any more: derivative() gives NULL */
    }

    /* Newton's method on Rosenbrock's function, whose minimum is at (1, 1) */
    wb_array *p = wb_cast(wb_vector(-1, 2), WB_F64);
    for (int step = 0; step <= 5; step++) {
        wb_array *value = rosenbrock(p), *g = derivative(value, p), *H = hessian(g, p);
        printf("step %d: f(%.4f, %.4f) = %.4f\n", step, wb_at(p, 0), wb_at(p, 1), wb_item(value));
        if (step == 0) wb_show(H);
        /* p - H \ g, by Cramer's rule */
        const double a = wb_at(H, 0, 0), b = wb_at(H, 0, 1), d = wb_at(H, 1, 1);
        const double u = wb_at(g, 0), v = wb_at(g, 1), determinant = a * d - b * b;
        const double next[2] = {wb_at(p, 0) - (d * u - b * v) / determinant,
                                wb_at(p, 1) - (a * v - b * u) / determinant};
        p = wb_from(WB_F64, next, 2);
    }

    wb_scope_close();
    return wb_report("05_second_derivatives");
}
