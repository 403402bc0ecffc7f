/* bench_ahead [--smoke]: a loader that copies batches to a device ahead of time beside one that
 * copies when it is asked. The device is WEBER_DEVICE's; without it nothing is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"

enum { PIXELS = 784, BATCH = 256, BATCHES = 60, FEW_BATCHES = 2, ROUNDS = 5 };

/* Microseconds per batch over an epoch: eight elementwise operations and a mean. */
static double epoch(wb_loader *data) {
    const double begin = bench_us();
    wb_batch batch = {0};
    while (wb_next(data, &batch)) {
        wb_array *y = batch.x;
        for (int i = 0; i < 8; i++) y = wb_tanh(wb_add(wb_square(y), y));
        (void)wb_item(wb_mean(y));
    }
    return (bench_us() - begin) / (double)wb_loader_length(data);
}

int main(int argc, char **argv) {
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    if (!getenv("WEBER_DEVICE")) {
        printf("bench_ahead: WEBER_DEVICE=backend[:index] names the device; without it nothing is "
               "measured\n");
        return 0;
    }
    if (!bench_choose_device()) return wb_report("bench_ahead");
    const wb_device *device = wb_default_device();
    wb_scope_open();
    wb_array *images = wb_cpu(wb_uniform(WB_F32, PIXELS, BATCH * (smoke ? FEW_BATCHES : BATCHES)));
    wb_loader *loaders[2];
    for (int ahead = 0; ahead < 2; ahead++)
        loaders[ahead] = wb_loader_new(.x = images, .batchsize = BATCH, .shuffle = true,
                                       .device = device, .background = ahead);
    double us[2][ROUNDS];
    const int rounds = smoke ? 1 : ROUNDS;
    for (int round = -1; round < rounds; round++) /* the first one warms up */
        for (int ahead = 0; ahead < 2; ahead++) {
            const double taken = epoch(loaders[ahead]);
            if (round >= 0) us[ahead][round] = taken;
        }
    const double alone = bench_times_of(rounds, us[0]).median,
                 ahead = bench_times_of(rounds, us[1]).median;
    printf("%s: a batch of %d images with work on it: %.0f us, %.0f us with the loader ahead: %.2f "
           "times\n",
           wb_device_name(device), BATCH, alone, ahead, ahead / alone);
    wb_free(loaders[0]), wb_free(loaders[1]);
    wb_scope_close();
    return wb_report("bench_ahead");
}
