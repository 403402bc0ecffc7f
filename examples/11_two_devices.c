/* Two devices of one backend: moving arrays and models between them, and what happens when they are
 * mixed.
 *
 *     CUDA.devices()                             wb_devices("checked"), wb_show_devices()
 *     device0 = Flux.get_device("CUDA", 0)       wb_get_device("checked", 0)
 *     dense_model = dense_model |> device1       wb_to(device1, model) a new one; wb_move(device1,
 *                                                model)
 *     CUDA.device(dense_model.weight)            wb_device_of(model), wb_device_of(wb_get(model,
 *                                                "weight"))
 *     "don't directly print the model"           print it: nothing depends on a current device
 *
 * | checked(0): CPU as a device, number 0
 * | checked(1): CPU as a device, number 1
 * | 3-element Array{f32} on checked(0):
 * |  1.0
 * |  2.0
 * |  3.0
 * | moved to checked(1), the first one is still on checked(0)
 * | the model is on checked(0)
 * | the model is on checked(1)
 * | Dense(3 => 2)       # 8 parameters
 * | # on checked(1)
 * | 2×3 Array{f32} on checked(1):
 * |  1.0  1.0  1.0
 * |  1.0  1.0  1.0
 * | 2-element Array{f32} on checked(1):
 * |  6.0
 * |  6.0
 * | add: the arrays must be on one device, but (3) is on checked(0), (3) on checked(1); wb_to moves arrays and models
 * | Dense(3 => 2): matmul: the arrays must be on one device, but (2, 3) is on checked(1), (3) on checked(0); wb_to moves arrays and models
 * | gradient with respect to x on checked(0):
 * | 3-element Array{f32} on checked(0):
 * |  2.0
 * |  2.0
 * |  2.0
 * */
#include <stdio.h>

#include <weber.h>

static const char *place(const void *x) { return wb_device_name(wb_device_of(x)); }

/* Every mistake is told at the call, with sizes and devices. */
static void show_error(void) {
    char message[256];
    wb_take_error(message, sizeof message);
    printf("%s\n", message);
}

int main(void) {
    /* "checked", which is built in, has two devices; with two GPUs: "CUDA" */
    const char *backend = "checked";
    for (const wb_device *const *d = wb_devices(backend); *d; d++)
        printf("%s: %s\n", wb_device_name(*d), wb_device_properties(*d).name);
    const wb_device *device0 = wb_get_device(backend, 0), *device1 = wb_get_device(backend, 1);

    wb_scope_open();
    wb_array *x = wb_to(device0, wb_vector(1, 2, 3)), *there = wb_to(device1, x);
    wb_show(x);
    printf("moved to %s, the first one is still on %s\n", place(there), place(x));

    wb_layer *model = wb_dense(3, 2, .init = wb_ones_init);
    wb_move(device0, model);
    printf("the model is on %s\n", place(model));
    wb_move(device1, model);
    printf("the model is on %s\n", place(model));
    wb_show(model);
    wb_show(wb_get(model, "weight"));
    wb_show(wb_apply(model, there));

    wb_add(x, there);
    show_error();
    wb_apply(model, x);
    show_error();

    /* a move inside the computation: the gradient goes back the same way */
    wb_array *l = wb_sum(wb_apply(model, wb_to(device1, x))), *g;
    wb_gradient_of(l, 1, &x, &g);
    printf("gradient with respect to x on %s:\n", place(x));
    wb_show(g);

    wb_free(model);
    wb_scope_close();
    return wb_report("11_two_devices");
}
