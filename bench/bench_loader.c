/* bench_loader [--smoke]: how much of the work on batches is hidden by the steps.
 *
 * Images of u8 are gathered and turned into floats by the loader's `prepare`, which here also does
 * some work of its own; the step is that of case b on one thread. Compared: the steps alone, the
 * loader alone, one after the other, and side by side. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"

enum { OBSERVATIONS = 4096, WORK = 4 };

/* Some arithmetic per value, as an augmentation would do. */
static wb_status prepare(const wb_batch_memory *batch, void *user) {
    float *x = batch->data[0];
    (void)user;
    for (int64_t i = 0; i < batch->size * B_IN; i++) {
        float v = x[i];
        for (int k = 0; k < WORK; k++) v = sqrtf(v * v + 0.01f);
        x[i] = v;
    }
    return WB_OK;
}

static void step(bench_case *c, const wb_batch *batch) {
    wb_gradients *gradients;
    wb_withgradient(bench_case_loss(c), bench_case_model(c), batch, NULL, &gradients);
    wb_update(bench_case_optimiser(c), bench_case_model(c), gradients);
}

/* Time of one epoch per batch: of loader, steps, or both. */
static double epoch_us(wb_loader *loader, bench_case *c) {
    wb_batch batch = {0};
    int64_t batches = 0;
    const double begin = bench_us();
    while (wb_next(loader, &batch)) {
        if (c) step(c, &batch);
        batches++;
    }
    return batches ? (bench_us() - begin) / (double)batches : 0;
}

static double steps_us(bench_case *c, int64_t steps) {
    const double begin = bench_us();
    for (int64_t i = 0; i < steps; i++) bench_case_step(c);
    return (bench_us() - begin) / (double)steps;
}

static wb_loader *loader_of(wb_array *x, wb_array *y, bool no_background) {
    return wb_loader_new(.x = x, .y = y, .batchsize = B_BATCH, .shuffle = true, .prepare = prepare,
                         .background = !no_background);
}

int main(int argc, char **argv) {
    enum { ROUNDS = 9 };
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    const int rounds = smoke ? 1 : ROUNDS;
    const int64_t count = smoke ? 4 * B_BATCH : OBSERVATIONS;
    double alone[ROUNDS], loading[ROUNDS], serial[ROUNDS], beside[ROUNDS];
    float *values = malloc(sizeof *values * (size_t)(B_IN * count));
    int32_t *labels = malloc(sizeof *labels * (size_t)count);
    wb_set_threads(1);
    bench_case *c = bench_case_open("b");
    if (!values || !labels || !c) return wb_report("bench_loader");
    bench_values(SEQUENCE_INPUT, 0, 1, B_IN * count, values);
    bench_labels(SEQUENCE_LABEL, CLASSES, count, labels);
    wb_scope_open();
    wb_array *x = wb_from(WB_F32, values, B_IN, count), *y = wb_from(WB_I32, labels, count);
    wb_loader *in_turn = loader_of(x, y, true), *background = loader_of(x, y, false);
    wb_scope_close();
    for (int round = 0; round < rounds; round++) {
        alone[round] = steps_us(c, count / B_BATCH);
        loading[round] = epoch_us(in_turn, NULL);
        serial[round] = epoch_us(in_turn, c);
        beside[round] = epoch_us(background, c);
    }
    const double step_alone = bench_times_of(rounds, alone).median;
    const double load_alone = bench_times_of(rounds, loading).median;
    const double together = bench_times_of(rounds, beside).median;
    const double hidden = (step_alone + load_alone - together) / fmin(load_alone, step_alone);
    printf("loader: a step %.0f us, a batch %.0f us, in turn %.0f us, with the background thread "
           "%.0f us: %.0f%% of the shorter one is hidden\n",
           step_alone, load_alone, bench_times_of(rounds, serial).median, together, 100 * hidden);
    wb_free(in_turn), wb_free(background);
    bench_case_close(c);
    free(values), free(labels);
    return wb_report("bench_loader");
}
