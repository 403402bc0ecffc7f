/* bench_cases [--smoke] [OPTION...] [CASE...]: the cases of cases.h, or their hand-written loops,
 * alone. bench_cases --serve [OPTION...] CASE: one case, steered by lines on the standard input, so
 * that somebody can run it in turn with others:
 *
 *     check N    runs N steps; answers loss and checksum         run N     runs N steps; answers
 *                median, least and mean us
 *     reset      begins anew, with a few steps to get warm        flow N    runs N steps, waits
 *                once; answers us for each
 *     memory     answers the process's peak in kilobytes, the device's in bytes, and the plans made
 *                so far
 *
 * --threads N, --floor (by hand), --batch N (b, c, d, i, j), --transformer SIZES (e;
 * transformer.h), --attention TEXT (k; attention.h), --rows TEXT (l; rows.h).
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
    int64_t batch;                 /* 0: the case's own */
    bench_transformer transformer; /* no layers: case e's own */
    bench_attention attention;     /* no length: case k's own */
    bench_rows rows;               /* no length: case l's own */
} options;

typedef struct runner {
    char letter;
    const options *options;
    const bench_floor *floor; /* or NULL: Weber */
    void *state;
    bench_case *weber;
} runner;

static bench_case *open_weber(char letter, const options *o) {
    if (letter == 'e' && o->transformer.layers) return bench_case_open_transformer(&o->transformer);
    if (letter == 'k' && o->attention.length) return bench_case_open_attention(&o->attention);
    if (letter == 'l' && o->rows.length) return bench_case_open_rows(&o->rows);
    return o->batch ? bench_case_open_batch(letter, false, o->batch)
                    : bench_case_open(letter, false);
}

static void begin(runner *r) {
    if (r->floor)
        r->state = r->floor->open(r->options->threads);
    else
        r->weber = open_weber(r->letter, r->options);
}

static bool open_runner(runner *r, char letter, bool by_hand, const options *o) {
    *r = (runner){letter, o, by_hand ? bench_floor_of(letter) : NULL, NULL, NULL};
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
    if (!bench_case_is_fixed(r->letter)) {
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
    } else {
        printf("unknown: %s", line);
    }
    fflush(stdout);
}

static int serve(char letter, const options *o) {
    runner r;
    char line[128];
    if (!open_runner(&r, letter, o->by_hand, o)) {
        printf("absent %s\n", wb_error_message());
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

static int alone(char letter, bool by_hand, const options *o) {
    runner r;
    if (by_hand && !bench_floor_of(letter)) return 0;
    if (!open_runner(&r, letter, by_hand, o)) return wb_report("bench_cases");
    bench_times times = timed(&r, o->smoke ? 1 : 3);
    if (!o->smoke) times = timed(&r, steps_for(&times));
    const bench_result sums = result(&r);
    printf("%c %-6s %d threads: median %10.2f us, least %10.2f us; loss %.6g, checksum %.8g\n",
           letter, r.floor ? "floor" : "weber", o->threads, times.median, times.least, sums.loss,
           sums.checksum);
    fflush(stdout);
    close_runner(&r);
    return wb_report("bench_cases");
}

/* The cases that are named; NULL: an option is wrong. */
static const char *parse(int argc, char **argv, options *o) {
    const char *letters = BENCH_CASES;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--smoke") == 0)
            o->smoke = true;
        else if (strcmp(argv[i], "--floor") == 0)
            o->by_hand = true;
        else if (strcmp(argv[i], "--serve") == 0)
            o->serving = true;
        else if (strcmp(argv[i], "--threads") == 0)
            o->threads = atoi(value), i++;
        else if (strcmp(argv[i], "--batch") == 0)
            o->batch = atoll(value), i++;
        else if (strncmp(argv[i], "--", 2) != 0)
            letters = argv[i];
        else if ((strcmp(argv[i], "--transformer") == 0 &&
                  bench_transformer_parse(value, &o->transformer)) ||
                 (strcmp(argv[i], "--attention") == 0 &&
                  bench_attention_parse(value, &o->attention)) ||
                 (strcmp(argv[i], "--rows") == 0 && bench_rows_parse(value, &o->rows)))
            i++;
        else
            return NULL;
    }
    return letters;
}

int main(int argc, char **argv) {
    options o = {.threads = 1};
    int failed = 0;
    const char *letters = parse(argc, argv, &o);
    if (!letters) {
        fprintf(stderr, "bench_cases: --transformer wants "
                        "LAYERS,WIDTH,HEADS,CONTEXT,SYMBOLS,BATCH,TYPE, --attention "
                        "LENGTH[,gradient], --rows "
                        "softmax|layernorm,LENGTH,COUNT[,gradient]\n");
        return 2;
    }
    if (!bench_choose_device()) {
        if (o.serving) printf("absent %s\n", wb_error_message());
        return wb_report("bench_cases");
    }
    if (o.serving) return serve(letters[0], &o);
    for (; *letters; letters++) {
        failed |= alone(*letters, o.by_hand, &o);
        if (o.smoke) failed |= alone(*letters, true, &o);
    }
    return failed;
}
