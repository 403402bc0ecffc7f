/* bench_flat [--smoke] [--steps N] [CASE]: trains case b, or another one, N steps (10,000), and
 * fails unless what it holds is the same at the end as a tenth of the way: arrays, buffers, memory
 * of the device and of the process, plans. The device is that of WEBER_DEVICE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "clock.h"
#include "platform/memory.h"

typedef struct holding {
    wb_live_counts live;
    wb_memory_info memory;
    wb_plan_counts plan;
    int64_t resident; /* bytes of the process */
} holding;

static holding now(void) {
    const wb_device *device = wb_default_device();
    (void)wb_device_sync(device);
    return (holding){wb_live(), wb_memory_status(device), wb_plan_status(),
                     wb_platform_own_bytes()};
}

/* Says what grew; a megabyte is what the C library and a driver may take for themselves. */
static bool is_flat(const holding *a, const holding *b) {
    enum { SLACK = 1 << 20 };
    const struct {
        const char *what;
        int64_t before, after, slack;
    } rows[] = {
        {"arrays", a->live.arrays, b->live.arrays, 0},
        {"buffers", a->live.buffers, b->live.buffers, 0},
        {"objects", a->live.objects, b->live.objects, 0},
        {"bytes in arrays", a->memory.live, b->memory.live, 0},
        {"bytes at the peak", a->memory.peak, b->memory.peak, 0},
        {"bytes of workspace", a->memory.workspace, b->memory.workspace, 0},
        {"bytes held by the device", a->memory.live + a->memory.cached,
         b->memory.live + b->memory.cached, 0},
        {"plans made", a->plan.misses, b->plan.misses, 0},
        {"bytes of plans", a->plan.cache_bytes, b->plan.cache_bytes, 0},
        {"bytes of the process", a->resident, b->resident, SLACK},
    };
    bool flat = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool grew = rows[i].after > rows[i].before + rows[i].slack;
        printf("%-25s %14lld %14lld%s\n", rows[i].what, (long long)rows[i].before,
               (long long)rows[i].after, grew ? "  GREW" : "");
        flat = flat && !grew;
    }
    return flat;
}

static int run(const char *name, int64_t steps) {
    bench_case *c = bench_case_open(name);
    if (!c) return wb_report("bench_flat");
    const int64_t warm = steps / 10;
    for (int64_t i = 0; i < warm && !wb_failed(); i++) bench_case_step(c);
    const holding before = now();
    const double begin = bench_us();
    for (int64_t i = warm; i < steps && !wb_failed(); i++) bench_case_step(c);
    const holding after = now();
    printf("%s, case %s, steps %lld to %lld, %.1f us each\n", wb_device_name(wb_default_device()),
           name, (long long)warm, (long long)steps,
           (bench_us() - begin) / (double)(steps > warm ? steps - warm : 1));
    const bool flat = is_flat(&before, &after);
    const bench_result r = bench_case_result(c);
    printf("loss %.6g, checksum %.8g, %lld kB at the process's peak\n", r.loss, r.checksum,
           (long long)bench_peak_kb());
    bench_case_close(c);
    return wb_report("bench_flat") ? 1 : flat && r.loss == r.loss ? 0 : 1;
}

int main(int argc, char **argv) {
    int64_t steps = 10000;
    const char *name = "b";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            steps = 40;
        else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc)
            steps = atoll(argv[++i]);
        else
            name = argv[i];
    }
    if (!bench_choose_device()) return wb_report("bench_flat");
    return run(name, steps);
}
