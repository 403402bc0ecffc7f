/* What cost.py does, in C: `x + y`, and a step of case a. One line of microseconds each. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <weber.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

int main(void) {
    enum { SUMS = 5000, STEPS = 20, ROUNDS = 400 };
    wb_scope_open();
    wb_array *x = wb_ones(WB_F32, 4), *y = wb_ones(WB_F32, 4);
    (void)wb_eval(x, y);
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now();
        for (int i = 0; i < SUMS;
             i++) { /* as a binding does: out of the scope, and released later */
            wb_scope_open();
            wb_array *z = wb_take(wb_add(x, y));
            (void)wb_forget_recipe(z);
            wb_scope_leave();
            wb_free(z);
        }
        const double taken = (now() - begin) / SUMS;
        if (taken < best) best = taken;
    }
    double plain = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now();
        for (int i = 0; i < SUMS; i++) {
            if (i % 1000 == 0) wb_scope_open();
            (void)wb_add(x, y);
            if (i % 1000 == 999) wb_scope_leave();
        }
        const double taken = (now() - begin) / SUMS;
        if (taken < plain) plain = taken;
    }
    printf("x + y in C: %.3f us, with a scope for each: %.3f us\n", 1e6 * plain, 1e6 * best);

    wb_layer *model = wb_chain(wb_dense(2, 3, wb_tanh), wb_batchnorm(3), wb_dense(3, 2));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.01), model);
    const wb_batch batch = {
        .x = wb_uniform(WB_F32, 2, 64),
        .y = wb_cast(wb_ge(wb_uniform(WB_F32, 64), wb_scalar(WB_F32, 0.5)), WB_I32)};
    (void)wb_eval(batch.x, batch.y);
    best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double begin = now();
        for (int i = 0; i < STEPS; i++) {
            wb_scope_open();
            if (!wb_train_step(loss, model, &batch, NULL, o)) return wb_report("cost");
            wb_scope_close();
        }
        const double taken = (now() - begin) / STEPS;
        if (taken < best) best = taken;
    }
    printf("a step of case a in C: %.2f us\n", 1e6 * best);
    wb_free(o), wb_free(model);
    wb_scope_close();
    return wb_report("cost");
}
