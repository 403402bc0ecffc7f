/* bench_cases [--smoke] [OPTION...] [CASE...]: the cases of cases.h, or their hand-written loops,
 * alone; all of them without one. bench_cases --serve [OPTION...] CASE: one case, steered by lines
 * on the standard input, so that somebody can run it in turn with others:
 *
 *     check N    runs N steps; answers loss and checksum         run N     runs N steps; answers
 *                median, least and mean us
 *     reset      begins anew, with a few steps to get warm        flow N    runs N steps, waits
 *                once; answers us for each
 *     memory     answers the process's peak in kilobytes, the device's in bytes, and the plans made
 *                so far
 *     nodes      runs a step; answers the nodes of its plan, 1 if that was known
 *
 * A CASE is "b" or "b:128", as cases.h says. --threads N, --floor (by hand).
 * Rounds begin anew so that all contestants compute the same steps: after some thousands, numbers
 * so small appear that the processor is slow with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"
#include "floors.h"

typedef struct options {
    bool smoke, by_hand, serving;
    int threads;
} options;

typedef struct runner {
    const char *name;
    const options *options;
    const bench_floor *floor; /* or NULL: Weber */
    void *state;
    bench_case *weber;
} runner;

static void begin(runner *r) {
    if (r->floor)
        r->state = r->floor->open(r->options->threads);
    else
        r->weber = bench_case_open(r->name);
}

static bool open_runner(runner *r, const char *name, bool by_hand, const options *o) {
    *r = (runner){name, o, by_hand ? bench_floor_of(name) : NULL, NULL, NULL};
    wb_set_threads(o->threads);
    if (by_hand && !r->floor) return false;
    begin(r);
    return r->state || r->weber;
}

static void queue_step(runner *r) {
    if (r->floor)
        r->floor->step(r->state);
    else
        bench_case_step(r->weber);
}

static void wait_for(const runner *r) {
    if (!r->floor) (void)wb_device_sync(wb_default_device());
}

static void step(runner *r) {
    queue_step(r);
    wait_for(r);
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
    if (r->floor || !bench_case_is_fixed(r->weber)) {
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

/* Microseconds for each of the steps, of which many are on their way at a time. */
static double flow(runner *r, int64_t steps) {
    const double begin = bench_us();
    for (int64_t i = 0; i < steps; i++) queue_step(r);
    wait_for(r);
    return (bench_us() - begin) / (double)steps;
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
    } else if (sscanf(line, "flow %lld", &steps) == 1 && steps > 0) {
        printf("%.3f\n", flow(r, steps));
    } else if (strncmp(line, "memory", 6) == 0) {
        printf("%lld %lld %lld\n", (long long)bench_peak_kb(),
               (long long)wb_memory_status(wb_default_device()).peak,
               (long long)wb_plan_status().misses);
    } else if (strncmp(line, "nodes", 5) == 0 && r->weber) {
        printf("%lld\n", (long long)bench_case_nodes(r->weber));
    } else {
        printf("unknown: %s", line);
    }
    fflush(stdout);
}

/* What could not be opened: a failure of Weber's, or no such case. */
static int no_case(const char *name) {
    if (wb_failed()) return wb_report("bench_cases");
    fprintf(stderr, "bench_cases: there is no case \"%s\"; cases.h lists the cases\n", name);
    return 2;
}

static int serve(const char *name, const options *o) {
    runner r;
    char line[128];
    if (!open_runner(&r, name, o->by_hand, o)) {
        printf("absent %s\n", wb_error_message());
        return no_case(name);
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

static void print_alone(runner *r, const bench_times *times) {
    const bench_result sums = result(r);
    printf("%s %-6s %d threads: median %10.2f us, least %10.2f us; loss %.6g, checksum %.8g\n",
           r->name, r->floor ? "floor" : "weber", r->options->threads, times->median, times->least,
           sums.loss, sums.checksum);
    if (r->name[0] == 'p') {
        const double nodes = (double)bench_case_nodes(r->weber);
        printf("    %.0f nodes, %.2f us each\n", nodes, times->median / nodes);
    }
    fflush(stdout);
}

static int alone(const char *name, bool by_hand, const options *o) {
    runner r;
    if (by_hand && !bench_floor_of(name)) return 0;
    if (!open_runner(&r, name, by_hand, o)) return no_case(name);
    bench_times times = timed(&r, o->smoke ? 1 : 3);
    if (!o->smoke) times = timed(&r, steps_for(&times));
    print_alone(&r, &times);
    close_runner(&r);
    return wb_report("bench_cases");
}

static int all_alone(const options *o) {
    int failed = 0;
    for (const char *letter = BENCH_CASES; *letter; letter++) {
        const char name[] = {*letter, '\0'}, tiny[] = {*letter, ':', 't', 'i', 'n', 'y', '\0'};
        failed |= alone(o->smoke ? tiny : name, o->by_hand, o);
        if (o->smoke) failed |= alone(name, true, o);
    }
    return failed;
}

/* The first of the cases that are named; argc: none; -1: an option is wrong. */
static int parse(int argc, char **argv, options *o) {
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            o->smoke = true;
        else if (strcmp(argv[i], "--floor") == 0)
            o->by_hand = true;
        else if (strcmp(argv[i], "--serve") == 0)
            o->serving = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o->threads = atoi(argv[++i]);
        else
            return -1;
    }
    return i;
}

int main(int argc, char **argv) {
    options o = {.threads = 1};
    int failed = 0;
    const int first = parse(argc, argv, &o);
    if (first < 0 || (o.serving && first >= argc)) {
        fprintf(stderr, "bench_cases: expected [--smoke | --serve] [--floor] [--threads N] "
                        "[CASE...]; cases.h lists the cases\n");
        return 2;
    }
    if (!bench_choose_device()) {
        if (o.serving) printf("absent %s\n", wb_error_message());
        return wb_report("bench_cases");
    }
    if (o.serving) return serve(argv[first], &o);
    if (first == argc) return all_alone(&o);
    for (int i = first; i < argc; i++) failed |= alone(argv[i], o.by_hand, &o);
    return failed;
}
