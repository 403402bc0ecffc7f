/* Arrays on a device: W*x .+ b, a loss, its gradients; there and back.
 *
 *     W, b = cu(rand(2, 5)), cu(rand(2))       W = wb_gpu(W), b = wb_gpu(b)
 *     predict(x) = W*x .+ b                    predict() below: the same on every device
 *     loss(x, y)                               wb_item(loss(W, b, x, y))
 *     gradient((W, b) -> ..., W, b)            wb_gradient_of(l, 2, (wb_array *[]){W, b}, g)
 *     x |> gpu, x |> cpu                       wb_gpu(x), wb_cpu(x)
 *
 * | W is where wb_gpu puts things: yes
 * | the given array stays where it was: yes
 * | moving it there again gives itself: yes
 * | loss 32.5
 * | the gradients are where W and b are: yes
 * | 2×5 Array{f32} on CPU:
 * |   3.0  0.0   -3.0   6.0   3.0
 * |  11.0  0.0  -11.0  22.0  11.0
 * | 2-element Array{f32} on CPU:
 * |   3.0
 * |  11.0
 * | through the move, to the CPU's array: yes
 * | there and back: the same numbers: yes
 */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

static wb_array *predict(wb_array *W, wb_array *b, wb_array *x) {
    return wb_add(wb_matmul(W, x), b);
}

static wb_array *loss(wb_array *W, wb_array *b, wb_array *x, wb_array *y) {
    return wb_sum(wb_square(wb_sub(predict(W, b, x), y)));
}

static void say(const char *what, bool is_so) { printf("%s: %s\n", what, is_so ? "yes" : "no"); }

int main(void) {
    /* where no device was chosen: "checked", the CPU behaving like a device; leave this out to take
     * the GPU */
    setenv("WEBER_DEVICE", "checked", 0);
    const float numbers[5][2] = {{1, 6}, {2, 7}, {3, 8}, {4, 9}, {5, 10}};
    wb_scope_open();
    wb_array *W_cpu = wb_from(WB_F32, numbers, 2, 5);
    wb_array *W = wb_gpu(W_cpu), *b = wb_gpu(wb_vector(0.5, -0.5));
    wb_array *x = wb_gpu(wb_vector(1, 0, -1, 2, 1)), *y = wb_gpu(wb_vector(10, 20));
    say("W is where wb_gpu puts things", wb_device_of(W) == wb_gpu_device());
    say("the given array stays where it was", wb_device_of(W_cpu) == wb_cpu_device());
    say("moving it there again gives itself", wb_gpu(W) == (void *)W);

    wb_array *l = loss(W, b, x, y), *g[2];
    printf("loss %g\n", wb_item(l)); /* one number comes back by itself */
    wb_gradient_of(l, 2, (wb_array *[]){W, b}, g);
    say("the gradients are where W and b are", wb_device_of(g[0]) == wb_device_of(W));
    wb_show(wb_cpu(g[0])); /* wb_show(g[0]) works as well, and says where it is */
    wb_show(wb_cpu(g[1]));

    wb_array *from_cpu; /* a move is an operation: gradients flow back through it */
    wb_gradient_of(loss(wb_gpu(W_cpu), b, x, y), 1, &W_cpu, &from_cpu);
    say("through the move, to the CPU's array",
        wb_device_of(from_cpu) == wb_cpu_device() &&
            wb_approx(from_cpu, wb_cpu(g[0]), 0, 0, NULL, 0));
    say("there and back: the same numbers", wb_approx(wb_cpu(W), W_cpu, 0, 0, NULL, 0));
    wb_scope_close();
    return wb_report("07_gpu_arrays");
}
