/* A residual network learns Fashion-MNIST: convolutions with BatchNorm and a way around each two of
 * them (He et al. 2015).
 *
 *     examples/20_resnet                 1 epoch of 4096 images: some 70% of 2000 others
 *     examples/20_resnet 3 60000 1       3 epochs of all images, seed 1
 *
 * Without the data (Debian: dataset-fashion-mnist, or the folder that WEBER_DATA names) it says so
 * and ends. */
#include <stdio.h>
#include <stdlib.h>

#include <weber.h>

enum { CLASSES = 10, BATCH = 32 };

/* relu(x + conv(relu(conv(x)))), each convolution with its BatchNorm, which has the bias */
static wb_layer *block(int64_t channels) {
    wb_layer *around =
        wb_chain(wb_conv({3, 3}, channels, channels, .same_pad = true, .bias = false),
                 wb_batchnorm(channels, wb_relu),
                 wb_conv({3, 3}, channels, channels, .same_pad = true, .bias = false),
                 wb_batchnorm(channels));
    return wb_chain(wb_skip(around, wb_connect_add), wb_fn(wb_relu));
}

/* More channels of half the width and height. */
static wb_layer *halve(int64_t in, int64_t out) {
    return wb_chain(wb_conv({3, 3}, in, out, .stride = {2}, .pad = {1, 1}, .bias = false),
                    wb_batchnorm(out, wb_relu));
}

static wb_layer *resnet(void) {
    return wb_chain(wb_conv({3, 3}, 1, 16, .same_pad = true, .bias = false),
                    wb_batchnorm(16, wb_relu), block(16), halve(16, 32), block(32), halve(32, 64),
                    block(64), wb_global_meanpool(), wb_flatten(), wb_dense(64, CLASSES));
}

/* bytes 0 .. 255 to numbers with mean 0 and deviation 1 or so, batch by batch */
static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_add_number(wb_mul_number(wb_cast(batch->x, WB_F32), 1 / 90.0), -0.8);
}

/* The first images of a split; all if there are fewer. NULL without the data. */
static wb_loader *loader(wb_split split, int64_t most, uint64_t seed) {
    wb_array *x, *y;
    wb_loader *data = NULL;
    wb_scope_open();
    if (wb_fashion_mnist(split, &x, &y) == WB_OK) {
        const int64_t count = wb_numobs(x) < most ? wb_numobs(x) : most;
        data = wb_loader_new(.x = wb_reshape(wb_getobs(x, 0, count), 28, 28, 1, -1),
                             .y = wb_getobs(y, 0, count), .batchsize = BATCH, .seed = seed,
                             .shuffle = split == WB_SPLIT_TRAIN, .map = to_numbers);
    }
    wb_scope_close();
    return data;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

int main(int argc, char **argv) {
    const int epochs = argc > 1 ? atoi(argv[1]) : 1;
    const int64_t images = argc > 2 ? atoll(argv[2]) : 4096;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    char message[512];
    wb_seed(seed);
    wb_loader *data = loader(WB_SPLIT_TRAIN, images, seed),
              *held_out = loader(WB_SPLIT_TEST, argc > 2 ? 10000 : 2000, seed);
    if (wb_take_error(message, sizeof message) == WB_ERROR_IO) return printf("%s\n", message) < 0;

    wb_layer *model = resnet();
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 2e-3), model);
    wb_show(model);
    for (int epoch = 1; epoch <= epochs && !wb_failed(); epoch++) {
        wb_train(loss, model, data, adam, .epochs = 1);
        const wb_evaluation e = wb_evaluate(model, held_out, .loss = loss);
        printf("epoch %d: test loss %.4f, accuracy %.2f%%\n", epoch, e.loss, 100 * e.accuracy);
        fflush(stdout);
    }
    wb_free(adam), wb_free(data), wb_free(held_out), wb_free(model);
    return wb_report("20_resnet");
}
