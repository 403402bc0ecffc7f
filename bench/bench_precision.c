/* bench_precision [--smoke | f32 | bf16 | f16]: case c (784 - 1024 - 1024 - 10, batch 256, Adam)
 * learns Fashion-MNIST in one precision; accuracy on the test images, processor time of a step, all
 * threads together, and memory. One precision a process, since the peak of memory is one of all so
 * far. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weber.h>

#include "networks.h"

enum { BATCH = 256, IMAGES = 20000, EPOCHS = 2 };

static double cpu_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), 1.0 / 255);
}

/* Of --smoke: noise. */
static void make_noise(wb_array **images, wb_array **labels) {
    *images = wb_cast(wb_mul_number(wb_uniform(WB_F32, 28, 28, BATCH), 255), WB_U8);
    *labels = wb_cast(wb_mul_number(wb_uniform(WB_F32, BATCH), 9), WB_I32);
}

static wb_loader *loader(wb_split split, int64_t count) {
    wb_array *images, *labels;
    if (count <= BATCH)
        make_noise(&images, &labels);
    else if (wb_fashion_mnist(split, &images, &labels) != WB_OK)
        return NULL;
    images = wb_reshape(images, 28 * 28, -1);
    if (count > wb_numobs(labels)) count = wb_numobs(labels);
    return wb_loader_new(.x = wb_slice(images, 1, 0, count, 1),
                         .y = wb_slice(labels, 0, 0, count, 1), .map = to_numbers,
                         .batchsize = BATCH, .shuffle = split == WB_SPLIT_TRAIN, .seed = 1);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static void learn(const char *name, wb_dtype compute, int64_t images) {
    wb_scope_open();
    wb_seed(1);
    const double scale = compute == WB_F16 ? 32768 : 0;
    wb_loader *training = loader(WB_SPLIT_TRAIN, images), *test = loader(WB_SPLIT_TEST, images);
    wb_layer *model = bench_wide_mlp(false);
    wb_optimiser *adam = wb_setup(wb_adam(), model, .compute = compute, .loss_scale = scale);
    const double begin = cpu_seconds();
    int64_t steps = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        wb_batch batch = {0};
        while (wb_next(training, &batch)) {
            wb_scope_open();
            (void)wb_train_step(loss, model, &batch, NULL, adam);
            wb_scope_close();
            steps++;
        }
    }
    const double seconds = cpu_seconds() - begin;
    const int64_t peak = wb_memory_status(wb_default_device()).peak;
    printf("%s: accuracy %.2f%%, %.1f ms of the processor a step, arrays and workspace %.1f MB\n",
           name, 100 * wb_evaluate(model, test).accuracy, 1e3 * seconds / (double)steps,
           (double)peak / 1e6);
    wb_free(adam), wb_free(model), wb_free(training), wb_free(test);
    wb_scope_close();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        wb_dtype compute;
    } rows[] = {{"f32", WB_F32}, {"bf16", WB_BF16}, {"f16", WB_F16}};
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    for (int i = 0; i < 3; i++)
        if (smoke || argc < 2 || strcmp(argv[1], rows[i].name) == 0)
            learn(rows[i].name, rows[i].compute, smoke ? BATCH : IMAGES);
    return wb_report("bench_precision");
}
