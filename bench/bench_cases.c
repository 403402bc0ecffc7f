/* bench_cases [--smoke] [--threads N] [--floor] [CASE...]: the cases of cases.h, or their hand-written loops, alone.
 * bench_cases --serve [--threads N] [--floor] CASE: one case, steered by lines on the standard input, so that somebody can
 * run it in turn with others:
 *
 *     check N    runs N steps; answers loss and checksum         run N     runs N steps; answers median, least and mean us
 *     reset      begins anew, with a few steps to get warm        memory    answers the process's peak, in kilobytes
 *
 * Rounds begin anew so that all contestants compute the same steps: after some thousands, numbers so small appear that the
 * processor is slow with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"
#include "floors.h"

typedef struct runner {
    char letter;
    int threads;
    const bench_floor *floor; /* or NULL: Weber */
    void *state;
    bench_case *weber;
} runner;

static void begin(runner *r) {
    if (r->floor)
        r->state = r->floor->open(r->threads);
    else
        r->weber = bench_case_open(r->letter, false);
}

static bool open_runner(runner *r, char letter, bool by_hand, int threads) {
    *r = (runner){letter, threads, by_hand ? bench_floor_of(letter) : NULL, NULL, NULL};
    wb_set_threads(threads);
    if (by_hand && !r->floor) return false;
    begin(r);
    return r->state || r->weber;
}

static void step(runner *r) {
    if (r->floor)
        r->floor->step(r->state);
    else
        bench_case_step(r->weber), (void)wb_device_sync(wb_default_device());
}

static bench_result result(runner *r) {
    return r->floor ? r->floor->result(r->state) : bench_case_result(r->weber);
}

static void close_runner(runner *r) {
    if (r->floor)
        r->floor->close(r->state);
    else
        bench_case_close(r->weber);
}

static void reset(runner *r) {
    enum { WARM = 3 };
    if (r->letter != 'g' && r->letter != 'h') { /* these do not change */
        close_runner(r);
        begin(r);
    }
    for (int i = 0; i < WARM && (r->state || r->weber); i++) step(r);
}

static bench_times timed(runner *r, int64_t steps) {
    double *us = malloc((size_t)steps * sizeof *us);
    bench_times times = {0};
    if (!us) return times;
    double before = bench_us();
    for (int64_t i = 0; i < steps; i++) {
        step(r);
        const double now = bench_us();
        us[i] = now - before;
        before = now;
    }
    times = bench_times_of(steps, us);
    free(us);
    return times;
}

static void answer(runner *r, const char *line) {
    long long steps;
    if (sscanf(line, "check %lld", &steps) == 1) {
        while (steps-- > 0) step(r);
        const bench_result sums = result(r);
        printf("%.9g %.9g\n", sums.loss, sums.checksum);
    } else if (sscanf(line, "run %lld", &steps) == 1 && steps > 0) {
        const bench_times times = timed(r, steps);
        printf("%.3f %.3f %.3f\n", times.median, times.least, times.mean);
    } else if (strncmp(line, "reset", 5) == 0) {
        reset(r);
        printf("0\n");
    } else if (strncmp(line, "memory", 6) == 0) {
        printf("%lld\n", (long long)bench_peak_kb());
    } else {
        printf("unknown: %s", line);
    }
    fflush(stdout);
}

static int serve(char letter, bool by_hand, int threads) {
    runner r;
    char line[128];
    if (!open_runner(&r, letter, by_hand, threads)) {
        printf("absent\n");
        return wb_report("bench_cases");
    }
    printf("%s\n", r.floor ? r.floor->how : "weber");
    fflush(stdout);
    while (!wb_failed() && fgets(line, sizeof line, stdin)) answer(&r, line);
    close_runner(&r);
    return wb_report("bench_cases");
}

/* Enough steps for about half a second. */
static int64_t steps_for(const bench_times *trial) {
    const double steps = 5e5 / (trial->least + 0.1);
    return steps < 5 ? 5 : steps > 20000 ? 20000 : (int64_t)steps;
}

static int alone(char letter, bool by_hand, int threads, bool smoke) {
    runner r;
    if (by_hand && !bench_floor_of(letter)) return 0;
    if (!open_runner(&r, letter, by_hand, threads)) return wb_report("bench_cases");
    bench_times times = timed(&r, smoke ? 1 : 3);
    if (!smoke) times = timed(&r, steps_for(&times));
    const bench_result sums = result(&r);
    printf("%c %-6s %d threads: median %10.2f us, least %10.2f us; loss %.6g, checksum %.8g\n",
           letter, r.floor ? "floor" : "weber", threads, times.median, times.least, sums.loss,
           sums.checksum);
    fflush(stdout);
    close_runner(&r);
    return wb_report("bench_cases");
}

int main(int argc, char **argv) {
    bool smoke = false, by_hand = false, serving = false;
    int threads = 1, failed = 0;
    const char *letters = BENCH_CASES;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            smoke = true;
        else if (strcmp(argv[i], "--floor") == 0)
            by_hand = true;
        else if (strcmp(argv[i], "--serve") == 0)
            serving = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
        else
            letters = argv[i];
    }
    if (!bench_choose_device()) return wb_report("bench_cases");
    if (serving) return serve(letters[0], by_hand, threads);
    for (; *letters; letters++) {
        failed |= alone(*letters, by_hand, threads, smoke);
        if (smoke) failed |= alone(*letters, true, threads, smoke);
    }
    return failed;
}
