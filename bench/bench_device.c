/* bench_device [--smoke] [BACKEND [INDEX]]: what a device costs beside its arithmetic; OpenCL's
 * first device unless another is named.
 *
 *     transfer    up, down and within the device, from plain and from pinned host memory, beside
 *                 memcpy
 *     launch      a kernel of one element: queued, many on their way, and each waited for
 *     memory      a piece taken and given back, without the library's pool */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "launch.h"

static const wb_backend *backend;
static void *device;
static bool smoke;

static bool check(wb_status status) { return status == WB_OK; }

static wb_memory at(void *handle) { return (wb_memory){.handle = handle}; }

/* ---- transfer ---- */

typedef struct transfer {
    const char *name;
    wb_copy_kind kind;
    wb_memory to, from;
} transfer;

/* Gigabytes per second: the median of a few. */
static double speed(const transfer *t, size_t size) {
    enum { RUNS = 9 };
    double us[RUNS];
    for (int i = 0; i < RUNS + 1; i++) { /* the first one does not count */
        const double begin = bench_us();
        if (!t->name)
            memcpy(t->to.handle, t->from.handle, size);
        else if (!check(backend->copy(device, NULL, t->kind, t->to, t->from, size)) ||
                 !check(backend->sync(device, NULL)))
            return 0;
        if (i > 0) us[i - 1] = bench_us() - begin;
    }
    return (double)size / bench_times_of(RUNS, us).median * 1e-3;
}

static void transfers_of(size_t size, char *plain, char *pinned, wb_memory a, wb_memory b) {
    const transfer rows[] = {{NULL, WB_COPY_LOCAL, at(plain), at(plain + size)},
                             {"up", WB_COPY_UPLOAD, a, at(plain)},
                             {"down", WB_COPY_DOWNLOAD, at(plain), a},
                             {"up, pinned", WB_COPY_UPLOAD, a, at(pinned)},
                             {"down, pinned", WB_COPY_DOWNLOAD, at(pinned), a},
                             {"within", WB_COPY_LOCAL, b, a}};
    printf("transfer %10zu bytes:", size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pinned || !rows[i].name || !strstr(rows[i].name, "pinned"))
            printf("  %s %.2f GB/s", rows[i].name ? rows[i].name : "memcpy", speed(&rows[i], size));
    printf("\n");
}

static void transfers(void) {
    const size_t most = smoke ? (size_t)1 << 20 : (size_t)1 << 26;
    char *plain = malloc(2 * most);
    char *pinned = backend->alloc_pinned ? backend->alloc_pinned(device, most) : NULL;
    void *a = backend->alloc(device, most), *b = backend->alloc(device, most);
    if (plain && a && b) {
        memset(plain, 1, 2 * most);
        if (pinned) memset(pinned, 1, most);
        for (size_t size = (size_t)1 << 12; size <= most; size <<= 7)
            transfers_of(size, plain, pinned, at(a), at(b));
    }
    if (pinned) backend->free_pinned(device, pinned, most);
    backend->free(device, a, most);
    backend->free(device, b, most);
    free(plain);
}

/* ---- launch ---- */

/* Microseconds for each of `count` launches, with a sync after every `each`. */
static double launches(const bench_launch *l, int count, int each) {
    const double begin = bench_us();
    for (int i = 1; i <= count; i++)
        if (!bench_launch_queue(l) || (i % each == 0 && !check(backend->sync(device, NULL))))
            return 0;
    return (bench_us() - begin) / count;
}

static void launch(const wb_device *chosen) {
    const int count = smoke ? 10 : 1000;
    bench_launch l;
    if (bench_launch_open(chosen, &l)) {
        (void)launches(&l, count, count);
        const double together = launches(&l, count, count);
        const double alone = launches(&l, count, 1);
        printf("launch: %.2f us with many on their way, %.2f us each waited for\n", together,
               alone);
    }
    bench_launch_close(&l);
}

/* ---- memory ---- */

static void memory(void) {
    const int count = smoke ? 10 : 1000;
    for (size_t size = (size_t)1 << 10; size <= (size_t)1 << 26; size <<= 8) {
        const double begin = bench_us();
        for (int i = 0; i < count; i++) backend->free(device, backend->alloc(device, size), size);
        printf("memory: %zu bytes taken and given back in %.2f us\n", size,
               (bench_us() - begin) / count);
    }
}

int main(int argc, char **argv) {
    const char *names[2] = {"OpenCL", "0"};
    int given = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            smoke = true;
        else if (given < 2)
            names[given++] = argv[i];
    }
    if (!wb_functional(names[0])) {
        printf("%s: skipped: %s\n", names[0], wb_reason());
        return 0;
    }
    const wb_device *chosen = wb_get_device(names[0], atoi(names[1]));
    if (!chosen) return wb_report("bench_device");
    backend = chosen->backend, device = chosen->context;
    printf("%s: %s, %s\n", wb_device_name(chosen), chosen->info.name, chosen->info.driver);
    transfers();
    launch(chosen);
    memory();
    return wb_report("bench_device");
}
