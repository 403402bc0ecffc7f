/* How fast the default device is: what is measured of it in less than a second. */
#include <time.h>

#include <weber.h>

#include "tool.h"

enum { FIRST_SIZE = 512, LAST_SIZE = 8192, TIMES = 4, NUMBERS = 1 << 24 };

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_of(wb_array *(*fn)(wb_array *x), wb_array *x) {
    wb_scope_open();
    const double began = seconds();
    wb_array *y = fn(x);
    (void)wb_eval(y);
    (void)wb_device_sync(wb_get_device());
    const double took = seconds() - began;
    wb_scope_close();
    return took;
}

static double best_of(wb_array *(*fn)(wb_array *x), wb_array *x) {
    double best = time_of(fn, x); /* which makes the plan, too */
    for (int i = 0; i < TIMES && !wb_failed(); i++) {
        const double took = time_of(fn, x);
        if (took < best) best = took;
    }
    return best;
}

static wb_array *square(wb_array *x) { return wb_matmul(x, x); }
static wb_array *twice(wb_array *x) { return wb_add(x, x); }

static double measure_gflops(void) {
    double best = 0;
    for (int64_t n = FIRST_SIZE; n <= LAST_SIZE && !wb_failed(); n *= 2) {
        wb_scope_open();
        wb_array *x = wb_to(wb_get_device(), wb_ones(WB_F32, n, n));
        const double took = best_of(square, x), rate = 2e-9 * (double)(n * n * n) / took;
        wb_scope_close();
        if (rate > best) best = rate;
        if (took > 0.02) break;
    }
    return best;
}

static double measure_gbs(void) {
    wb_scope_open();
    wb_array *x = wb_to(wb_get_device(), wb_ones(WB_F32, NUMBERS));
    const double rate = 2e-9 * sizeof(float) * (double)NUMBERS / best_of(twice, x);
    wb_scope_close();
    return rate;
}

tool_peak tool_measure_peak(void) {
    const tool_peak peak = {measure_gflops(), measure_gbs()};
    if (!wb_failed()) return peak;
    (void)wb_report("weber profile");
    return (tool_peak){0, 0};
}
