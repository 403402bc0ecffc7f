/* A whole program for tests/memory/run: it loads data, trains with a loader and checkpoints, tests,
 * saves, loads, and moves to a device. Ends with 0, or with 1 and a message; then nothing of
 * Weber's is left, and the file is whole or not there. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weber.h>

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static wb_layer *make_model(void) {
    return wb_chain(wb_conv({3, 3}, 1, 4, wb_relu, .same_pad = true), wb_batchnorm(4),
                    wb_maxpool({2, 2}), wb_flatten(), wb_dropout(.p = 0.1), wb_dense(64, 10));
}

static wb_status test(wb_layer *model, wb_loader *data) {
    wb_batch batch = {0};
    double right = 0;
    while (wb_next(data, &batch)) {
        const double one = wb_item(wb_accuracy(wb_apply(model, batch.x), batch.y));
        if (!wb_failed()) right += one;
    }
    if (!wb_failed()) printf("right %.3f\n", right);
    return wb_error_status();
}

static wb_status run(const char *path, wb_layer *model, wb_layer *again, wb_loader *data,
                     wb_optimiser *o) {
    if (!model || !again || !data || !o) return wb_error_status();
    wb_status status = wb_train(.loss = loss, .model = model, .loader = data, .optimiser = o);
    if (status == WB_OK) status = test(model, data);
    if (status == WB_OK) status = wb_save_named(path, {"model", model}, {"adam", o});
    if (status == WB_OK) status = wb_load(path, again);
    const wb_device *device = status == WB_OK ? wb_get_device() : NULL;
    (void)wb_gpu_device(); /* looks for plugins */
    if (device) status = wb_move(device, again);
    if (status == WB_OK) status = wb_move(wb_cpu_device(), again);
    if (status == WB_OK) status = test(again, data);
    return wb_failed() ? wb_error_status() : status;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "memory.bson";
    wb_seed(1);
    wb_status status = wb_scope_open();
    if (status != WB_OK) return wb_report("memory");
    wb_array *wave = wb_sum(wb_add(wb_sin(wb_normal(WB_F32, 13)), wb_cos(wb_normal(WB_F32, 13))));
    wb_array *x = wb_add(wb_uniform(WB_F32, 8, 8, 1, 48), wb_mul_number(wave, 1e-3));
    wb_array *y = wb_reshape(wb_argmax(wb_uniform(WB_F32, 10, 48), 0), 48);
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 16, .shuffle = true);
    wb_layer *model = make_model(), *again = make_model();
    wb_optimiser *o = model ? wb_setup(wb_adam(), model) : NULL;
    status = run(path, model, again, data, o);
    wb_free(o), wb_free(data), wb_free(model), wb_free(again);
    const int failed = wb_report("memory");
    (void)wb_scope_close();
    (void)wb_report("memory");
    const wb_live_counts left = wb_live();
    if (left.arrays || left.objects) { /* uploads keep their buffers until a device is in step */
        fprintf(stderr, "left behind: %lld arrays, %lld objects\n", (long long)left.arrays,
                (long long)left.objects);
        return 3;
    }
    return failed || status != WB_OK;
}
