/* bench_scan [--smoke]: an LSTM as a scan and as a loop in C, forward and backward in turn; and
 * what the first evaluation of 400 steps takes more than later ones, with next to nothing to
 * compute. Times are of the processor, all threads together. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weber.h>

#include "clock.h"
#include "networks.h"

enum { MANY_STEPS = 400, ROUNDS = 15 };

typedef struct lstm {
    bench_lstm_weights w;
    wb_array *x;
    int64_t cells, batch;
} lstm;

static double cpu_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

typedef wb_array *way(lstm *m, wb_array **carries);

static wb_array *as_scan(lstm *m, wb_array **carries) {
    wb_array *y;
    return wb_scan(bench_lstm_step, &m->w, 2, carries, 1, &m->x, 1, &y) == WB_OK ? y : NULL;
}

static wb_array *as_loop(lstm *m, wb_array **carries) {
    return bench_lstm_unrolled(&m->w, carries, m->x);
}

static lstm make(int64_t cells, int64_t batch, int64_t steps) {
    lstm m = {.cells = cells, .batch = batch};
    m.w.wi = wb_mul_number(wb_normal(WB_F32, 4 * cells, cells), 0.1);
    m.w.wh = wb_mul_number(wb_normal(WB_F32, 4 * cells, cells), 0.1);
    m.w.bias = wb_mul_number(wb_normal(WB_F32, 4 * cells), 0.1);
    m.x = wb_normal(WB_F32, cells, batch, steps);
    (void)wb_eval(m.w.wi, m.w.wh, m.w.bias, m.x);
    return m;
}

/* The time of a loss and its gradients; NaN on failure. *sum is made of all numbers. */
static double once(way *run, lstm *m, double *sum) {
    wb_array *g[4];
    const double begin = cpu_us();
    if (wb_scope_open() != WB_OK) return (double)NAN;
    wb_array *carries[2] = {wb_zeros(WB_F32, m->cells, m->batch),
                            wb_zeros(WB_F32, m->cells, m->batch)};
    wb_array *l = wb_mean(wb_square(run(m, carries)));
    const bool done =
        wb_gradient_of(l, 4, (wb_array *[]){m->w.wi, m->w.wh, m->w.bias, m->x}, g) == WB_OK &&
        wb_eval(l, g[0], g[1], g[2], g[3]) == WB_OK;
    const double end = cpu_us();
    *sum = done ? wb_item(l) + wb_item(wb_sum(g[0])) + wb_item(wb_sum(g[3])) : (double)NAN;
    (void)wb_scope_close();
    return done ? end - begin : (double)NAN;
}

static way *const ways[2] = {as_scan, as_loop};

static void compare(int64_t cells, int64_t batch, int64_t steps, int rounds) {
    lstm m = make(cells, batch, steps);
    double us[2][ROUNDS], sum[2], first[2];
    bench_times times[2];
    for (int w = 0; w < 2; w++) first[w] = once(ways[w], &m, &sum[w]);
    for (int round = 0; round < rounds; round++)
        for (int w = 0; w < 2; w++) us[w][round] = once(ways[w], &m, &sum[w]);
    for (int w = 0; w < 2; w++) times[w] = bench_times_of(rounds, us[w]);
    printf("%lld cells, batch %lld, %lld steps: scan %.2f ms (least %.2f), loop %.2f ms (least "
           "%.2f), %.2f times; the first evaluation %.1f and %.1f ms more; numbers %.6g and %.6g\n",
           (long long)cells, (long long)batch, (long long)steps, times[0].median / 1e3,
           times[0].least / 1e3, times[1].median / 1e3, times[1].least / 1e3,
           times[0].median / times[1].median, (first[0] - times[0].median) / 1e3,
           (first[1] - times[1].median) / 1e3, sum[0], sum[1]);
}

int main(int argc, char **argv) {
    const bool smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    (void)wb_scope_open();
    if (smoke)
        compare(4, 2, 5, 1);
    else {
        compare(128, 64, 32, ROUNDS);
        compare(4, 2, MANY_STEPS, ROUNDS);
    }
    (void)wb_scope_close();
    return wb_report("bench_scan");
}
