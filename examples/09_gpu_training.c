/* Training on a device: batches that come there by themselves, a model that is saved on the way.
 *
 *     for (x, y) in DataLoader((X, Y)) |> gpu    wb_loader_new(..., .device = device), or
 *                                                wb_loader_to(device, data) for one that exists
 *     DataLoader(mapobs(gpu, (X, Y)))            wb_mapobs(f, user, data), where f moves a batch
 *     CuIterator(data)                           all of them: a batch's memory is free after its
 *                                                turn
 *     DataLoader((X, Y) |> gpu)                  .x = wb_to(device, X), .y = wb_to(device, Y)
 *     BSON.@save "file" model = cpu(model)       wb_layer *saved = wb_cpu(model); training goes on
 *
 * | a loader for the device: 800 steps, loss fifty times smaller: yes
 * | one that is sent there: 800 steps, loss fifty times smaller: yes
 * | a map over its batches: 800 steps, loss fifty times smaller: yes
 * | the whole data there: 800 steps, loss fifty times smaller: yes
 * | Chain(
 * |   Dense(1 => 16, tanh),                 # 32 parameters
 * |   Dense(16 => 1),                       # 17 parameters
 * | )                   # Total: 4 arrays, 49 parameters, 196 bytes.
 * | the saved one knows 0.5^3, on the CPU: yes
 * */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

static const char *yes(bool is_so) { return is_so ? "yes" : "no"; }

/* mean((model(x) .- y).^2) */
static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void move_batch(wb_batch *batch, void *user) {
    wb_batch_to(*(const wb_device **)user, batch);
}

/* A hundred epochs of a new model on the device; what a file would hold of it comes back. */
static wb_layer *learn(const char *what, const wb_device *device, wb_loader *data) {
    wb_seed(1);
    wb_layer *model = wb_chain(wb_dense(1, 16, wb_tanh), wb_dense(16, 1));
    wb_move(device, model); /* in place; the optimiser's state is made where the model is */
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.03), model);
    wb_layer *saved = NULL;
    double first = 0, last = 0;
    for (int epoch = 1; epoch <= 100; epoch++) {
        wb_free(saved);
        wb_batch batch = {0};
        while (wb_next(data, &batch)) { /* batch.x and batch.y are on the device */
            wb_array *l = wb_train_step(loss, model, &batch, NULL, adam);
            if (batch.index == 0) last = wb_item(l); /* waits for the device: now and then only */
        }
        if (epoch == 1) first = last;
        saved = wb_cpu(model); /* a new model; this one stays where it is, and is trained further */
    }
    printf("%s: %lld steps, loss fifty times smaller: %s\n", what, (long long)wb_step_count(adam),
           yes(last < first / 50 && wb_device_of(model) == device));
    wb_free(adam), wb_free(model), wb_free(data);
    return saved;
}

int main(void) {
    setenv("WEBER_DEVICE", "checked", 0); /* leave this out to take the GPU */
    const wb_device *device = wb_get_device();
    wb_scope_open();
    wb_seed(2);
    wb_array *x = wb_sub(wb_mul_number(wb_uniform(WB_F32, 1, 512), 2), wb_number(1));
    wb_array *y = wb_mul(x, wb_square(x));
    wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 64, .shuffle = true),
              *there = wb_loader_new(.x = x, .y = y, .batchsize = 64, .device = device),
              *whole = wb_loader_new(.x = wb_to(device, x), .y = wb_to(device, y), .batchsize = 64,
                                     .shuffle = true); /* a gather there */

    wb_free(learn("a loader for the device", device, there));
    wb_free(learn("one that is sent there", device, wb_loader_to(device, data)));
    wb_free(learn("a map over its batches", device, wb_mapobs(move_batch, &device, data)));
    wb_layer *saved = learn("the whole data there", device, whole);
    wb_show(saved);
    printf("the saved one knows 0.5^3, on the CPU: %s\n",
           yes(fabs(wb_item(wb_apply(saved, wb_vector(0.5))) - 0.125) < 0.1));
    wb_free(saved), wb_free(data);
    wb_scope_close();
    return wb_report("09_gpu_training");
}
