/* weber run -n N bench_ranks MODE [--smoke]: what several ranks do together. bench/ranks/run has
 * the peers, and what is measured with which pace.
 *
 * sums     microseconds of all-reduces of 4 bytes to 64 MiB, with their evaluation
 * links    the same of a few sizes, as seconds and beside them the messages and bytes that each
 *          rank sends in turn: what a cost model is checked against, with WEBER_PACE
 * overlap  how much of the sums of a step its computation hides, with WEBER_PACE
 * asleep   the same of a computation that leaves its core free
 * c, d     observations per second of the distributed steps of that case (bench/cases.h)
 * model    the same steps beside the cost model of docs/scale.md
 * fail     see bench/ranks/failures
 *
 * Rank 0 prints. Without a mode: all of them. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "clock.h"
#include "ranks/ranks.h"

enum { MOST_ROUNDS = 64, WINDOW_BYTES = 1 << 20, HEADER_BYTES = 48 };

static bool smoke;

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...) {
    va_list arguments;
    if (wb_rank() != 0) return;
    va_start(arguments, format);
    (void)vprintf(format, arguments);
    va_end(arguments);
    (void)fflush(stdout);
}

/* ---- sums ---- */

/* Microseconds of one sum. */
static bench_times sum_times(int64_t bytes, int rounds) {
    double us[MOST_ROUNDS];
    const int64_t count = bytes / 4;
    wb_scope_open();
    wb_array *x = wb_full_make(WB_F32, 1, 1, &count);
    wb_eval(x);
    for (int k = 0; k < rounds; k++) {
        wb_scope_open();
        wb_barrier();
        const double begin = bench_us();
        wb_eval(wb_allreduce(x, WB_REDUCE_SUM));
        us[k] = bench_us() - begin;
        wb_scope_close();
    }
    wb_scope_close();
    return bench_times_of(rounds, us);
}

static double sum_seconds(int64_t bytes, int rounds) {
    return 1e-6 * sum_times(bytes, rounds).least; /* paced links do not go faster */
}

static void sums(void) {
    for (int64_t bytes = 4; bytes <= (smoke ? 4096 : 64 << 20); bytes *= 4) {
        const int rounds = smoke ? 2 : bytes > 1 << 22 ? 9 : 41;
        (void)sum_times(bytes, 2);
        const bench_times t = sum_times(bytes, rounds);
        say("sum %10lld %12.1f us, at least %12.1f us\n", (long long)bytes, t.median, t.least);
    }
}

/* ---- links ---- */

/* Messages and bytes that a rank sends, one after another: the comparison, and for each piece of
 * 1 MiB its parts, to the others and back. */
static void traffic(int64_t bytes, double *messages, double *sent) {
    const int n = wb_total_workers();
    const int64_t most = WINDOW_BYTES / n / 4 * n * 4;
    *messages = n - 1, *sent = (n - 1) * (double)HEADER_BYTES;
    for (int64_t at = 0; at < bytes; at += most) {
        const int64_t piece = bytes - at < most ? bytes - at : most;
        *messages += 2.0 * (n - 1);
        *sent += 2.0 * (n - 1) * (double)((piece / 4 + n - 1) / n * 4);
    }
}

static void links(void) {
    for (int64_t bytes = 1 << 16; bytes <= (smoke ? 1 << 16 : 4 << 20); bytes *= 8) {
        double messages, sent;
        traffic(bytes, &messages, &sent);
        (void)sum_seconds(bytes, 1);
        say("link %d %lld %.0f %.0f %.6f\n", wb_total_workers(), (long long)bytes, messages, sent,
            sum_seconds(bytes, smoke ? 1 : 5));
    }
}

/* ---- overlap ---- */

enum { LAYERS = 32, WIDE = 1280, BATCH = 64 }; /* 210 MB of gradients, a bucket each 25 MiB */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_layer *tower(void) {
    const int64_t wide = smoke ? 8 : WIDE;
    wb_layer *layers[LAYERS + 1] = {NULL};
    for (int i = 0; i < LAYERS; i++) layers[i] = wb_dense(wide, wide, wb_tanh);
    return wb_chain_make(LAYERS, layers);
}

static double step_seconds(bool is_distributed, int rounds) {
    double us[MOST_ROUNDS];
    const int64_t wide = smoke ? 8 : WIDE;
    wb_scope_open();
    wb_seed(1);
    wb_layer *model = tower();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1e-4), model, .distributed = is_distributed);
    const wb_batch batch = {.x = wb_keep(wb_uniform(WB_F32, wide, BATCH)),
                            .y = wb_keep(wb_uniform(WB_F32, wide, BATCH))};
    wb_eval(batch.x, batch.y);
    for (int k = -2; k < rounds; k++) {
        wb_barrier();
        const double begin = bench_us();
        wb_array *l = wb_train_step(loss, model, &batch, NULL, o);
        wb_eval(l);
        if (k >= 0) us[k] = bench_us() - begin;
    }
    wb_free(o), wb_free(model);
    wb_scope_close();
    return 1e-6 * bench_times_of(rounds, us).least;
}

static void overlap(void) {
    const int64_t bytes = (int64_t)LAYERS * (smoke ? 72 : (int64_t)WIDE * (WIDE + 1)) * 4;
    const int rounds = smoke ? 1 : 5;
    wb_set_threads(1);
    const double alone = step_seconds(false, rounds), reduction = sum_seconds(bytes, rounds);
    const double both = step_seconds(true, rounds);
    say("overlap: step without sums %.4f s, %lld bytes alone %.4f s, step %.4f s: %.0f %% hidden\n",
        alone, (long long)bytes, reduction, both,
        100 * (alone + reduction - both) / (reduction > 0 ? reduction : 1));
}

/* The same of a computation that sleeps, as that of a device does: buckets begin one after another
 * while it goes on. */
static double sleeping_seconds(int buckets, int64_t bytes, double computation) {
    float *from = calloc((size_t)bytes, 1), *to = calloc((size_t)bytes, 1);
    wb_barrier();
    const double begin = bench_us();
    for (int k = 0; from && to && k < buckets; k++) {
        const wb_collective c = {.number = wb_ranks_number(),
                                 .count = bytes / 4,
                                 .kind = WB_COLLECTIVE_ALLREDUCE,
                                 .reduction = WB_REDUCE_SUM,
                                 .dtype = WB_F32};
        (void)usleep((useconds_t)(1e6 * computation / buckets));
        wb_ranks_begin(&c, from, to);
    }
    wb_ranks_finish(0);
    const double seconds = 1e-6 * (bench_us() - begin);
    free(from), free(to);
    return seconds;
}

static void sleeping_overlap(void) {
    enum { BUCKETS = 16 };
    const int64_t bytes = smoke ? 1024 : 4 << 20;
    double best = 1e9, reduction = 1e9;
    if (wb_total_workers() == 1) return;
    for (int k = 0; k < (smoke ? 1 : 3); k++) {
        const double alone = sleeping_seconds(BUCKETS, bytes, 0);
        reduction = alone < reduction ? alone : reduction;
    }
    for (int k = 0; k < (smoke ? 1 : 3); k++) {
        const double both = sleeping_seconds(BUCKETS, bytes, 1.1 * reduction);
        best = both < best ? both : best;
    }
    say("overlap: asleep %.4f s, %d buckets of %lld bytes alone %.4f s, together %.4f s: %.0f %% "
        "hidden\n",
        1.1 * reduction, BUCKETS, (long long)bytes, reduction, best,
        100 * (2.1 * reduction - best) / reduction);
}

/* ---- cases ---- */

/* Microseconds of a step, of which each rank makes one at the same time. */
static double case_us(bench_case *c, bool is_distributed) {
    double us[MOST_ROUNDS];
    const int rounds = smoke ? 1 : 30;
    wb_optimiser *o = wb_setup(wb_adam(), bench_case_model(c), .distributed = is_distributed);
    for (int k = -5; k < rounds; k++) {
        wb_batch batch;
        wb_scope_open();
        bench_case_batch(c, k + 5, &batch);
        wb_barrier();
        const double begin = bench_us();
        wb_eval(wb_train_step(bench_case_loss(c), bench_case_model(c), &batch, NULL, o));
        if (k >= 0) us[k] = bench_us() - begin;
        wb_scope_close();
    }
    wb_free(o);
    return bench_times_of(rounds, us).median;
}

static void rate(const char *name) {
    bench_case *c = bench_case_open(name);
    if (!c) return;
    const double batch = (double)bench_case_batch_size(c);
    const double seconds = 1e-6 * case_us(c, true);
    say("case %s: %d ranks, %.2f ms, %.0f observations/s\n", name, wb_total_workers(),
        1e3 * seconds, wb_total_workers() * batch / seconds);
    bench_case_close(c);
}

/* The cost model of a step whose sums have no core of their own: a step that each rank makes for
 * itself, followed by the sums of all gradients. */
static void model(const char *name) {
    bench_case *c = bench_case_open(name);
    if (!c) return;
    int64_t bytes = 0;
    for (wb_parameter p = {0}; wb_next_parameter(bench_case_model(c), &p);)
        bytes += 4 * wb_count(p.array);
    double alone = 1e12, sum = 1e12, together = 1e12;
    for (int k = 0; k < (smoke ? 1 : 3); k++) { /* in turn, since machines change their pace */
        alone = fmin(alone, case_us(c, false));
        sum = fmin(sum, sum_times(bytes, smoke ? 1 : 21).median);
        together = fmin(together, case_us(c, true));
    }
    say("model %s: %d ranks, a step alone %.2f ms, sums of %lld bytes %.2f ms, model %.2f ms, "
        "measured %.2f ms: %.2f\n",
        name, wb_total_workers(), 1e-3 * alone, (long long)bytes, 1e-3 * sum, 1e-3 * (alone + sum),
        1e-3 * together, together / (alone + sum));
    bench_case_close(c);
}

/* ---- failures ---- */

/* fail PHASE RANK ACTION: that rank does it at that place; bench/ranks/failures tells what became
 * of the others. */
static void fail_here(const char *phase, const char *const *arguments, int rank) {
    if (strcmp(arguments[0], phase) != 0 || atoi(arguments[1]) != rank) return;
    if (strcmp(arguments[2], "kill") == 0) (void)raise(SIGKILL);
    while (strcmp(arguments[2], "stop") == 0) (void)raise(SIGSTOP); /* whoever wakes it */
    exit(0);
}

static int own_rank(void) {
    static const char *const names[] = {"WEBER_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return atoi(getenv(names[i]));
    return 0;
}

static int fail_as_told(const char *const *arguments) {
    const int rank = own_rank();
    fail_here("start", arguments, rank);
    wb_scope_open();
    wb_barrier();
    fail_here("sum", arguments, rank);
    for (int k = 0; k < 20; k++) wb_eval(wb_allreduce(wb_ones(WB_F32, 1000), WB_REDUCE_SUM));
    wb_layer *model = wb_dense(20, 20);
    wb_optimiser *o = wb_setup(wb_adam(), model, .distributed = true);
    const wb_batch batch = {.x = wb_ones(WB_F32, 20, 8), .y = wb_ones(WB_F32, 20, 8)};
    for (int k = 0; !wb_failed() && k < 20; k++) {
        if (k == 10) fail_here("step", arguments, rank);
        wb_eval(wb_train_step(loss, model, &batch, NULL, o));
    }
    wb_free(o), wb_free(model);
    fail_here("end", arguments, rank);
    wb_barrier();
    return wb_report("bench_ranks");
}

int main(int argc, char **argv) {
    if (argc == 5 && strcmp(argv[1], "fail") == 0)
        return fail_as_told((const char *const *)argv + 2);
    const char *mode = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--smoke") == 0)
            smoke = true;
        else
            mode = argv[i];
    }
    if (!*mode || strcmp(mode, "sums") == 0) sums();
    if (!*mode || strcmp(mode, "links") == 0) links();
    if (!*mode || strcmp(mode, "overlap") == 0) overlap();
    if (!*mode || strcmp(mode, "asleep") == 0) sleeping_overlap();
    if (!*mode || strcmp(mode, "c") == 0) rate(smoke ? "c:tiny" : "c");
    if (!*mode || strcmp(mode, "d") == 0) rate(smoke ? "d:tiny" : "d");
    if (!*mode || strcmp(mode, "model") == 0)
        model(smoke ? "c:tiny" : "c"), model(smoke ? "d:tiny" : "d");
    return wb_report("bench_ranks");
}
