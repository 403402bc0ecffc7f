/* Derivatives beyond the gradient: the Gauss-Newton method on a curve, by its Jacobian; the
 * curvature at the minimum, by the Hessian and by products with it; a derivative along a direction.
 *
 * | step 0: a 1.0000, b 0.0000, error 4.3460
 * | step 6: a 2.0000, b -0.5000, error 0.0000
 * | Hessian: 3.1629 3.6645; 3.6645 15.6218
 * | H (1, -1): -0.5016 -11.9573
 * | the curve's change with b: 0.0000 1.2131
 */
#include <stdio.h>

#include <weber.h>

static wb_array *element(wb_array *x, int64_t i) { return wb_slice(x, 0, i, i + 1, 1); }

/* a e^(b t) */
static wb_array *curve(wb_array *p, wb_array *t) {
    return wb_mul(element(p, 0), wb_exp(wb_mul(element(p, 1), t)));
}

/* p - (J'J) \ J'r, by Cramer's rule */
static wb_array *gauss_newton(wb_array *p, wb_array *residual) {
    wb_array *J = wb_jacobian(residual, p); /* (numbers, 2): two products, one for each column */
    wb_array *A = wb_matmul(wb_transpose(J), J), *b = wb_matmul(wb_transpose(J), residual);
    const double a = wb_at(A, 0, 0), c = wb_at(A, 0, 1), d = wb_at(A, 1, 1);
    const double u = wb_at(b, 0), v = wb_at(b, 1), determinant = a * d - c * c;
    const double next[2] = {wb_at(p, 0) - (d * u - c * v) / determinant,
                            wb_at(p, 1) - (a * v - c * u) / determinant};
    return wb_from(WB_F64, next, 2);
}

int main(void) {
    wb_scope_open();
    wb_array *t = wb_iota(WB_F64, 0, 8);
    wb_array *data = curve(wb_vector_of(WB_F64, 2, -0.5), t);

    wb_array *p = wb_vector_of(WB_F64, 1, 0);
    for (int step = 0; step <= 6; step++) {
        wb_array *residual = wb_sub(curve(p, t), data);
        const double error = wb_item(wb_sum(wb_square(residual)));
        if (step % 6 == 0)
            printf("step %d: a %.4f, b %.4f, error %.4f\n", step, wb_at(p, 0), wb_at(p, 1), error);
        p = gauss_newton(p, residual);
    }

    wb_array *loss = wb_sum(wb_square(wb_sub(curve(p, t), data)));
    wb_array *H = wb_hessian(loss, p), *v = wb_vector_of(WB_F64, 1, -1), *Hv;
    wb_hvp(loss, 1, &p, &v, &Hv);
    printf("Hessian: %.4f %.4f; %.4f %.4f\n", wb_at(H, 0, 0), wb_at(H, 0, 1), wb_at(H, 1, 0),
           wb_at(H, 1, 1));
    printf("H (1, -1): %.4f %.4f\n", wb_at(Hv, 0), wb_at(Hv, 1));

    wb_array *b = wb_vector_of(WB_F64, 0, 1);
    wb_array *change = wb_jvp(curve(p, t), 1, &p, &b);
    printf("the curve's change with b: %.4f %.4f\n", wb_at(change, 0), wb_at(change, 1));

    wb_scope_close();
    return wb_report("25_jacobian");
}
