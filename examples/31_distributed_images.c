/* A convolutional network learns Fashion-MNIST by several processes, with bits that do not depend
 * on how many they are: 1, 2 and 4 print the same digits.
 *
 * $ weber run -n 2 ./31_distributed_images
 *
 *     ./31_distributed_images                              1 epoch of 4096 images: 79.70% of 2000
 *     weber run -n 2 ./31_distributed_images 2 60000 1     2 epochs of all: 89.45% of 10000, seed 1
 *
 * A step is one over 64 images, which are computed in 4 parts, by whoever there is: random masks
 * follow from the number of the part, and sums are added in the same order. The optimiser's states
 * are divided among the ranks. With a folder as the fourth argument, which keeps checkpoints, a
 * training can be ended and continued with another number of processes.
 *
 * Without the data (Debian: dataset-fashion-mnist, or the folder that WEBER_DATA names) it says so
 * and ends. */
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

enum { CLASSES = 10, BATCH = 64, PARTS = 4 };

static wb_layer *lenet(void) {
    return wb_chain(wb_conv({3, 3}, 1, 16, .pad = {1, 1}, .bias = false), wb_batchnorm(16, wb_relu),
                    wb_maxpool({2, 2}), wb_conv({3, 3}, 16, 32, wb_relu, .pad = {1, 1}),
                    wb_maxpool({2, 2}), wb_flatten(), wb_dense(7 * 7 * 32, 128, wb_relu),
                    wb_dropout(.p = 0.3), wb_dense(128, CLASSES));
}

/* bytes 0 .. 255 to numbers 0 .. 1, batch by batch */
static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), 1.0 / 255);
}

/* This rank's share of the first images of a split. NULL without the data. */
static wb_loader *loader(wb_split split, int64_t most, uint64_t seed) {
    wb_array *x, *y;
    wb_loader *data = NULL;
    wb_scope_open();
    if (wb_fashion_mnist(split, &x, &y) == WB_OK) {
        const int64_t count = wb_numobs(x) < most ? wb_numobs(x) : most;
        data = wb_loader_new(.x = wb_reshape(wb_getobs(x, 0, count), 28, 28, 1, -1),
                             .y = wb_getobs(y, 0, count), .batchsize = BATCH / wb_total_workers(),
                             .seed = seed, .shuffle = split == WB_SPLIT_TRAIN, .map = to_numbers,
                             .shard = true);
    }
    wb_scope_close();
    return data;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* What all ranks have measured together, said by one. */
static bool tell(const wb_train_event *event) {
    const wb_evaluation *e = event->validation;
    if (wb_rank() == 0)
        printf("epoch %lld: loss %.6f, test loss %.6f, accuracy %.2f%%\n", (long long)event->epoch,
               event->mean_loss, e->loss, 100 * e->accuracy);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv) {
    const int epochs = argc > 1 ? atoi(argv[1]) : 1;
    const int64_t images = argc > 2 ? atoll(argv[2]) : 4096;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    const char *folder = argc > 4 ? argv[4] : NULL;
    const int ranks = wb_total_workers();
    char message[512];
    if (PARTS % ranks) return printf("processes must be 1, 2 or 4, not %d\n", ranks) < 0;
    wb_seed(seed); /* the same on all ranks */
    wb_loader *data = loader(WB_SPLIT_TRAIN, images, seed),
              *held_out = loader(WB_SPLIT_TEST, argc > 2 ? 10000 : 2000, seed);
    if (wb_take_error(message, sizeof message) == WB_ERROR_IO) return printf("%s\n", message) < 0;

    wb_layer *model = lenet();
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3), model, .distributed = true, .zero = 1,
                                  .micro_batches = PARTS / ranks);
    wb_train(loss, model, data, adam, .epochs = epochs, .validation = held_out, .on_epoch = tell,
             .checkpoint = folder);
    wb_free(adam), wb_free(data), wb_free(held_out), wb_free(model);
    return wb_report("31_distributed_images");
}
