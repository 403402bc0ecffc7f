/* src/optimise/schedules.c: the catalogue's values for t = 1, 2, .. */
#include <math.h>
#include <string.h>

#include <weber/array.h>
#include <weber/layers.h>
#include <weber/schedules.h>

#include "base/memory.h"
#include "support/numbers.h"
#include "support/scoped.h"

enum { MOST = 10 };

static double doubled(int64_t t, void *user) { return *(const double *)user * (double)t; }
static double two = 2;

static void assert_follows(const char *name, wb_schedule *s, int count, const double *wanted) {
    if (!s) fail_msg("%s: %s", name, wb_error_message());
    for (int i = 0; i < count; i++) {
        const double value = wb_schedule_at(s, i + 1);
        if (!(fabs(value - wanted[i]) <= 1e-6))
            fail_msg("%s: at %d: %.9g, not %.9g", name, i + 1, value, wanted[i]);
    }
    wb_free(s);
}

#define ROW(name, schedule, ...)                                                                   \
    assert_follows(name, schedule, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),        \
                   (double[]){__VA_ARGS__})

static void values_of_the_catalogue(void **state) {
    (void)state;
    ROW("constant", wb_schedule_constant(3), 3, 3, 3);
    ROW("step", wb_schedule_step(1, .5, 2), 1, 1, .5, .5, .25);
    ROW("stages", wb_schedule_stages(1, .5, 2, 1, 3), 1, 1, .5, .25, .25, .25, .125, .125);
    ROW("one stage", wb_schedule_stages(1, .5, 2), 1, 1, .5, .5, .5);
    ROW("exp", wb_schedule_exp(1, .5), 1, .5, .25);
    ROW("poly", wb_schedule_poly(1, 2, 4), 1, .5625, .25, .0625, 0, 0);
    ROW("inv", wb_schedule_inv(1, .5, 2), 1, .444444444, .25, .16);
    ROW("warm up", wb_schedule_warm_up(0, 2, 4), 0, .5, 1, 1.5, 2, 2);
    ROW("triangle", wb_schedule_triangle(0, 1, 4), 0, .5, 1, .5, 0);
    ROW("triangle from its top", wb_schedule_triangle(1, 0, 4), 0, .5, 1, .5, 0);
    ROW("triangle by halves", wb_schedule_triangle(0, 1, 4, .halves = true), 0, .5, 1, .5, 0, .25,
        .5, .25, 0);
    ROW("triangle with decay", wb_schedule_triangle(0, 1, 4, .decay = .5), 0, .25, .25, .0625, 0);
    ROW("sin", wb_schedule_sin(0, 1, 4), 0, .707106781, 1, .707106781, 0);
    ROW("sin by halves", wb_schedule_sin(0, 1, 4, .halves = true), 0, .707106781, 1, .707106781, 0,
        .353553391);
    ROW("cosine", wb_schedule_cosine(1, 0, 4), 1, .853553391, .5, .146446609, 0, 0, 0);
    ROW("cosine of one step", wb_schedule_cosine(1, 0.25, 1), 1, .25, .25);
    ROW("restarts", wb_schedule_loop(wb_schedule_cosine(1, 0, 4), 4), 1, .853553391, .5, .146446609,
        1, .853553391);
    ROW("cosine in the other order", wb_schedule_cosine(0, 1, 4), 1, .853553391, .5);
    ROW("cosine and back", wb_schedule_cosine(1, 0, 4, .back = true), 1, .853553391, .5, .146446609,
        0, .146446609);
    ROW("one cycle", wb_schedule_one_cycle(8, 1), .04, .52, 1, .933013372, .7500025, .500005,
        .2500075, .066996628, .00001, .00001);
    ROW("sequence",
        wb_schedule_sequence({wb_schedule_exp(1, .5), 2}, {wb_schedule_constant(.1), 1}), 1, .5, .1,
        .1, .1);
    ROW("loop", wb_schedule_loop(wb_schedule_exp(1, .5), 3), 1, .5, .25, 1);
    ROW("stretch", wb_schedule_stretch(wb_schedule_exp(1, .5), 2), 1, 1, .5, .5);
    ROW("shift", wb_schedule_shift(wb_schedule_exp(1, .5), 1), .5, .25);
    ROW("of a function", wb_schedule_of(doubled, &two), 2, 4, 6);
    ROW("a loop of sequences",
        wb_schedule_loop(
            wb_schedule_sequence({wb_schedule_constant(1), 1}, {wb_schedule_exp(4, .5), 2}), 3),
        1, 4, 2, 1, 4, 2);
}

static void far_steps_are_finite(void **state) {
    (void)state;
    wb_schedule *all[] = {wb_schedule_step(1, .5, 2), wb_schedule_sin(0, 1, 4, .halves = true),
                          wb_schedule_one_cycle(8, 1), wb_schedule_loop(wb_schedule_exp(1, .5), 3),
                          wb_schedule_shift(wb_schedule_inv(1, 1, 1), 5)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_true(isfinite(wb_schedule_at(all[i], INT64_MAX)));
        wb_free(all[i]);
    }
}

static wb_schedule *composed(void) {
    return wb_schedule_loop(wb_schedule_sequence({wb_schedule_stages(1, .5, 2, 3), 4},
                                                 {wb_schedule_cosine(1, 0, 4), 4}),
                            8);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_schedule *s = NULL;
    int64_t n = 0;
    while (!s) {
        (void)wb_fail_allocation(++n);
        s = composed();
        (void)wb_fail_allocation(0);
        if (!s) assert_error(WB_ERROR_MEMORY, "");
    }
    assert_true(n > 5);
    wb_free(s);
}

static void mistakes(void **state) {
    (void)state;
    wb_schedule *whole = wb_schedule_stages_make(2, .5, 0, NULL); /* no stage but the last */
    assert_true(wb_schedule_at(whole, 1) == 2 && wb_schedule_at(whole, 9) == 2);
    wb_free(whole);
    /* what it was given is released with it */
    wb_schedule *s = wb_schedule_constant(1);
    assert_true(wb_schedule_at(s, 0) == 0);
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_at: steps count from 1, got 0");
    wb_free(s);
    wb_layer *no_schedule = wb_flatten();
    (void)wb_schedule_at((const wb_schedule *)(const void *)no_schedule, 1);
    assert_error(WB_ERROR_ARGUMENT, ", not a schedule");
    wb_free(no_schedule);
}

static void a_schedule_has_one_owner(void **state) {
    (void)state;
    wb_schedule *part = wb_schedule_constant(1), *loop = wb_schedule_loop(part, 2);
    assert_null(wb_schedule_stretch(part, 2));
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_stretch: schedule 1 is part of another schedule");
    assert_true(wb_schedule_at(loop, 5) == 1); /* which still has it */
    wb_schedule *twice = wb_schedule_constant(2);
    assert_null(wb_schedule_sequence({twice, 1}, {part, 1}, {twice, 1}));
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_sequence: schedule 2 is part of another schedule");
    twice = wb_schedule_constant(2);
    assert_null(wb_schedule_sequence({twice, 1}, {twice, 1}));
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_sequence: schedule 2 is part of another schedule");
    wb_free(loop);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(values_of_the_catalogue),   TEST(far_steps_are_finite),
        TEST(every_allocation_may_fail), TEST(mistakes),
        TEST(a_schedule_has_one_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
