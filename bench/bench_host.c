/* bench_host [--smoke]: what a step costs beside its arithmetic, and what must not happen once it
 * is warm.
 *
 *     host cost       the steps of a and h with sizes of 1 or 2: building, checks, scope, key,
 *                     launch, per node
 *     plan misses     steps with batch sizes never seen before, beside the same ones again
 *     steady state    over 900 steps: pieces of memory asked for, minor faults, updates not in
 *                     place, plan misses */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "clock.h"

static bool smoke;

/* ---- host cost ---- */

/* Of a step's plan, with a batch that it was not made for. */
static int64_t nodes_of(bench_case *c) {
    enum { UNSEEN = 77 };
    bench_case_set_batch(c, UNSEEN);
    const int64_t nodes = bench_case_nodes(c);
    bench_case_set_batch(c, 1);
    return nodes;
}

static double step_us(bench_case *c, int64_t steps) {
    double *us = malloc((size_t)steps * sizeof *us);
    if (!us) return 0;
    for (int64_t i = 0; i < steps; i++) {
        const double begin = bench_us();
        bench_case_step(c);
        us[i] = bench_us() - begin;
    }
    const bench_times times = bench_times_of(steps, us);
    free(us);
    return times.median;
}

/* The three parts of a training step: recipe, plan (wb_update), and what closing the scope
 * costs. */
static void print_parts(bench_case *c, int64_t steps) {
    double *us = malloc(3 * (size_t)steps * sizeof *us), part[3];
    if (!us) return;
    for (int64_t i = 0; i < steps; i++) {
        wb_batch batch;
        wb_gradients *gradients;
        bench_case_batch(c, i, &batch);
        wb_scope_open();
        const double begin = bench_us();
        wb_withgradient(bench_case_loss(c), bench_case_model(c), &batch, NULL, &gradients);
        const double built = bench_us();
        wb_update(bench_case_optimiser(c), bench_case_model(c), gradients);
        const double updated = bench_us();
        wb_scope_close();
        us[i] = built - begin;
        us[steps + i] = updated - built;
        us[2 * steps + i] = bench_us() - updated;
    }
    for (int k = 0; k < 3; k++) part[k] = bench_times_of(steps, us + k * steps).median;
    printf("    loss and gradient built %.2f us, updated %.2f us, scope closed %.2f us\n", part[0],
           part[1], part[2]);
    free(us);
}

static void host_cost(const char *name, double target_us) {
    const int64_t steps = smoke ? 5 : 3000;
    bench_case *c = bench_case_open(name);
    if (!c) return;
    step_us(c, steps);
    const wb_plan_counts before = wb_plan_status();
    const double us = step_us(c, steps);
    const wb_plan_counts after = wb_plan_status();
    const int64_t nodes = nodes_of(c);
    printf("host cost of %s: %.2f us (target %.1f), %lld nodes in the plan, %.0f ns each; %.1f "
           "commands\n",
           name, us, target_us, (long long)nodes, 1e3 * us / (double)nodes,
           (double)(after.kernels - before.kernels) / (double)steps);
    if (bench_case_optimiser(c)) print_parts(c, steps);
    bench_case_close(c);
}

/* ---- plan misses ---- */

static void plan_misses(const char *name) {
    enum { SIZES = 40 };
    double first[SIZES], again[SIZES];
    const int sizes = smoke ? 3 : SIZES;
    bench_case *c = bench_case_open(name);
    if (!c) return;
    const int64_t nodes = nodes_of(c);
    for (int i = 0; i < 5; i++) bench_case_step(c);
    const int64_t misses = wb_plan_status().misses;
    for (int i = 0; i < sizes; i++) {
        bench_case_set_batch(c, 2 + i);
        const double begin = bench_us();
        bench_case_step(c);
        first[i] = bench_us() - begin;
        for (int k = 0; k < 3; k++) bench_case_step(c);
        again[i] = step_us(c, 3);
    }
    const double miss = bench_times_of(sizes, first).median - bench_times_of(sizes, again).median;
    printf("plan miss of %s: %.0f us, %.1f us per node (target 20); %lld misses for %d sizes\n",
           name, miss, miss / (double)nodes, (long long)(wb_plan_status().misses - misses), sizes);
    bench_case_close(c);
}

/* ---- steady state ---- */

typedef struct counters {
    wb_plan_counts plan;
    int64_t faults;
} counters;

static counters count(void) { return (counters){wb_plan_status(), bench_minor_faults()}; }

static void print_steady(const char *what, int64_t steps, const counters *from,
                         const counters *to) {
    printf("steady state, %s, %lld steps: %lld allocations, %lld minor faults, %lld missed "
           "donations, %lld plan misses\n",
           what, (long long)steps, (long long)(to->plan.allocations - from->plan.allocations),
           (long long)(to->faults - from->faults),
           (long long)(to->plan.missed_donations - from->plan.missed_donations),
           (long long)(to->plan.misses - from->plan.misses));
}

static void steady(const char *name) {
    const int64_t warm = smoke ? 5 : 100, last = smoke ? 10 : name[0] == 'd' ? 150 : 1000;
    bench_case *c = bench_case_open(name);
    if (!c) return;
    for (int64_t i = 0; i < warm; i++) bench_case_step(c);
    const counters from = count();
    for (int64_t i = warm; i < last; i++) bench_case_step(c);
    const counters to = count();
    print_steady(name, last - warm, &from, &to);
    bench_case_close(c);
}

/* 1,000 observations in batches of 64, the last one of 40; the loss is read each step. */
static void steady_with_loader(void) {
    enum { OBSERVATIONS = 1000 };
    const int64_t warm = smoke ? 20 : 100, last = smoke ? 40 : 1000;
    float *x = malloc(sizeof *x * B_IN * OBSERVATIONS);
    int32_t labels[OBSERVATIONS];
    bench_case *c = bench_case_open("b");
    if (!x || !c) return;
    bench_values(SEQUENCE_INPUT, 0, 1, (int64_t)B_IN * OBSERVATIONS, x);
    bench_labels(SEQUENCE_LABEL, CLASSES, OBSERVATIONS, labels);
    wb_scope_open();
    wb_loader *loader = wb_loader_new(.x = wb_from(WB_F32, x, B_IN, OBSERVATIONS),
                                      .y = wb_from(WB_I32, labels, OBSERVATIONS),
                                      .batchsize = B_BATCH, .shuffle = true);
    wb_scope_close();
    counters from = {.faults = 0}, to = from;
    for (int64_t steps = 0; steps < last && !wb_failed();) {
        wb_batch batch = {0};
        while (wb_next(loader, &batch)) {
            wb_gradients *gradients;
            wb_array *loss =
                wb_withgradient(bench_case_loss(c), bench_case_model(c), &batch, NULL, &gradients);
            wb_update(bench_case_optimiser(c), bench_case_model(c), gradients);
            wb_item(loss);
            if (++steps == warm) from = count();
            if (steps == last) to = count();
        }
    }
    print_steady("b with a loader and partial batches", last - warm, &from, &to);
    wb_free(loader);
    bench_case_close(c);
    free(x);
}

int main(int argc, char **argv) {
    smoke = argc > 1 && strcmp(argv[1], "--smoke") == 0;
    wb_set_threads(1);
    host_cost("a:tiny", 4);
    host_cost("h:tiny", 2.5);
    plan_misses("a:tiny");
    plan_misses("b:tiny");
    plan_misses("d:tiny");
    steady("a");
    steady("b");
    if (!smoke) steady("d");
    steady_with_loader();
    return wb_report("bench_host");
}
