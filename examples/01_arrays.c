/* Arrays, and what the GPU guides begin with: W*x .+ b, a loss and its gradients.
 *
 * | 2×5 Array{f32} on CPU:
 * |  1.0  2.0  3.0  4.0   5.0
 * |  6.0  7.0  8.0  9.0  10.0
 * | 2-element Array{f32} on CPU:
 * |  11.5
 * |  25.5
 * | loss 32.5
 * | 2×5 Array{f32} on CPU:
 * |   3.0  0.0   -3.0   6.0   3.0
 * |  11.0  0.0  -11.0  22.0  11.0
 * | 2-element Array{f32} on CPU:
 * |   3.0
 * |  11.0
 * | 1×5 Array{f32} on CPU:
 * |  6.0  7.0  8.0  9.0  10.0
 * | 2×5 Array{f32} on CPU:
 * |  -2.5  -2.5  -2.5  -2.5  -2.5
 * |   2.5   2.5   2.5   2.5   2.5
 * | matmul: A is (2, 5), so B needs 5 elements, but is (2)
 */
#include <stdio.h>

#include <weber.h>

/* W*x .+ b */
static wb_array *predict(wb_array *W, wb_array *b, wb_array *x) {
    return wb_add(wb_matmul(W, x), b);
}

/* sum((predict(x) .- y).^2) */
static wb_array *loss(wb_array *W, wb_array *b, wb_array *x, wb_array *y) {
    return wb_sum(wb_square(wb_sub(predict(W, b, x), y)));
}

int main(void) {
    wb_scope_open(); /* owns every array below */

    /* the first dimension is the fastest: in memory W is float[5][2], Julia's and Fortran's
     * order */
    const float numbers[5][2] = {{1, 6}, {2, 7}, {3, 8}, {4, 9}, {5, 10}};
    wb_array *W = wb_from(WB_F32, numbers, 2, 5), *b = wb_vector(0.5, -0.5);
    wb_array *x = wb_vector(1, 0, -1, 2, 1), *y = wb_vector(10, 20);
    wb_show(W);

    /* operations build a recipe and return at once; printing computes it */
    wb_show(predict(W, b, x));
    wb_array *l = loss(W, b, x, y);
    printf("loss %g\n", wb_item(l));

    wb_array *gradients[2];
    wb_gradient_of(l, 2, (wb_array *[]){W, b}, gradients);
    wb_show(gradients[0]);
    wb_show(gradients[1]);

    /* views and broadcasting: the second row; each column minus its mean */
    wb_show(wb_slice(W, 0, 1, 2, 1));
    wb_show(wb_sub(W, wb_mean_dims(W, 0)));

    /* sizes are checked at the call; the first error stays until it is taken */
    char message[256];
    if (!predict(W, b, y)) {
        wb_take_error(message, sizeof message);
        printf("%s\n", message);
    }

    wb_scope_close(); /* releases all of them */
    return wb_report("01_arrays");
}
