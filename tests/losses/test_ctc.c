/* src/losses/ctc.c: acceptance case B16, the catalogue's numbers, and all alignments one by one */
#include <math.h>
#include <string.h>

#include <weber/gradient.h>
#include <weber/losses.h>
#include <weber/ops.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { MOST_CLASSES = 4, MOST_STEPS = 6, MOST_LABELS = 4 };

/* ---- values ---- */

typedef struct row {
    const char *name;
    int64_t classes, steps, labels;
    double p[MOST_CLASSES * MOST_STEPS]; /* a step after the other */
    int32_t y[MOST_LABELS];
    double wanted;
    double slope[MOST_CLASSES * MOST_STEPS]; /* all 0: not compared */
} row;

static const row rows[] = {
    {"B16",
     3,
     3,
     2,
     {1, 2, 3, 2, 1, 3, 3, 1, 2},
     {0, 1},
     3.6990738275138035,
     {-.317671, .244728, .0729422, -.427729, -.0196172, .447346, .665241, -.829811, .16457}},
    {"two labels, three steps",
     3,
     3,
     2,
     {0},
     {0, 1},
     1.686398953570228,
     {-.466667, .333333, .133333, -.066667, -.066667, .133333, .333333, -.466667, .133333}},
    {"a label twice needs a blank", 3, 3, 2, {0}, {0, 0}, 3.295836866004329, {0}},
    {"and the steps for it", 3, 2, 2, {0}, {0, 0}, (double)INFINITY, {0}},
    {"no label", 3, 2, 0, {0}, {0}, 2.1972245773362196, {0}},
    {"one label of one", 2, 2, 1, {0}, {0}, .28768207245178085, {0}},
    {"more labels than steps", 3, 2, 3, {0}, {0, 1, 0}, (double)INFINITY, {0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static wb_array *labels_of(const int32_t *y, int64_t count) { return wb_from(WB_I32, y, count); }

static void assert_near(const char *name, double value, double wanted, double tolerance) {
    const bool same = isinf(wanted) ? value == wanted : fabs(value - wanted) <= tolerance;
    if (!same) fail_msg("%s: %.17g, not %.17g", name, value, wanted);
}

static void values_of_the_table(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        wb_array *p = wb_from(WB_F64, r->p, r->classes, r->steps), *g;
        wb_array *l = wb_ctc_loss(p, labels_of(r->y, r->labels));
        double slope[MOST_CLASSES * MOST_STEPS];
        assert_near(r->name, wb_item(l), r->wanted, 1e-9);
        assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
        assert_int_equal(wb_read_f64(g, slope, r->classes * r->steps), WB_OK);
        for (int64_t k = 0; k < r->classes * r->steps; k++) {
            assert_true(isfinite(slope[k]));
            if (r->slope[0] != 0) assert_near(r->name, slope[k], r->slope[k], 1e-5);
            if (isinf(r->wanted)) assert_near(r->name, slope[k], 0, 0);
        }
    }
}

/* ---- all alignments ---- */

/* What a path of classes says: repeats taken together, then blanks left out. */
static int64_t say(const int *path, int64_t steps, int blank, int32_t *said) {
    int64_t count = 0;
    for (int64_t t = 0; t < steps; t++)
        if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) said[count++] = path[t];
    return count;
}

static double log_chance(const double *p, int64_t classes, int64_t t, int k) {
    double sum = 0;
    for (int64_t i = 0; i < classes; i++) sum += exp(p[t * classes + i]);
    return p[t * classes + k] - log(sum);
}

/* -log of the sum over all classes^steps paths that say y. */
static double by_all_paths(const double *p, int64_t classes, int64_t steps, int blank,
                           const int32_t *y, int64_t count) {
    int path[MOST_STEPS] = {0};
    double total = 0;
    for (;;) {
        int32_t said[MOST_STEPS];
        if (say(path, steps, blank, said) == count &&
            memcmp(said, y, (size_t)count * sizeof *y) == 0) {
            double l = 0;
            for (int64_t t = 0; t < steps; t++) l += log_chance(p, classes, t, path[t]);
            total += exp(l);
        }
        int64_t t = 0;
        while (t < steps && ++path[t] == classes) path[t++] = 0;
        if (t == steps) return -log(total);
    }
}

enum { COLUMNS = 4 };

static void sums_over_all_alignments(void **state) {
    (void)state;
    wb_seed(11);
    const int32_t y[COLUMNS][3] = {{1, 3, 1}, {2, 2, 9}, {3, -1, 0}, {0, 0, 0}};
    const int32_t few[COLUMNS] = {3, 2, 1, 0}, steps[COLUMNS] = {5, 4, 6, 2};
    double p[COLUMNS][6][MOST_CLASSES], got[COLUMNS];
    wb_array *x = wb_normal(WB_F64, MOST_CLASSES, 6, COLUMNS);
    assert_int_equal(wb_read_f64(x, &p[0][0][0], MOST_CLASSES * 6 * COLUMNS), WB_OK);
    wb_array *labels = wb_from(WB_I32, y, 3, COLUMNS);
    wb_array *l = wb_ctc_loss(x, labels, .blank = 0, .agg = WB_AGG_NONE,
                              .target_lengths = wb_from(WB_I32, few, COLUMNS),
                              .input_lengths = wb_from(WB_I32, steps, COLUMNS));
    assert_sizes(l, 1, COLUMNS);
    assert_int_equal(wb_read_f64(l, got, COLUMNS), WB_OK);
    for (int i = 0; i < COLUMNS; i++)
        assert_near("all alignments", got[i],
                    by_all_paths(&p[i][0][0], MOST_CLASSES, steps[i], 0, y[i], few[i]), 1e-9);
    wb_array *pending = wb_ctc_loss(x, wb_add(labels, wb_scalar(WB_I32, 0)), .blank = 0,
                                    .target_lengths = wb_from(WB_I32, few, COLUMNS),
                                    .input_lengths = wb_from(WB_I32, steps, COLUMNS));
    assert_value(pending, wb_item(wb_mean(l)), 1e-12);
    /* positions after a column's steps have no gradient */
    wb_array *g;
    assert_int_equal(wb_gradient_of(wb_sum(l), 1, &x, &g), WB_OK);
    assert_value(wb_sum(wb_square(wb_slice(wb_slice(g, 2, 3, 4, 1), 1, 2, 6, 1))), 0, 0);
}

static void weights_and_an_impossible_column(void **state) {
    (void)state;
    const int32_t y[] = {0, 0, 0, 1};
    wb_array *labels = wb_from(WB_I32, y, 2, 2), *p = wb_zeros(WB_F32, 3, 2, 2), *g;
    const double other = wb_item(wb_ctc_loss(wb_zeros(WB_F32, 3, 2), labels_of(y + 2, 2)));
    assert_true(isinf(wb_item(wb_ctc_loss(p, labels))));
    assert_value(wb_ctc_loss(p, labels, .weights = wb_vector(0, 1)), other, 1e-6);
    wb_array *l = wb_ctc_loss(p, labels, .zero_infinity = true);
    assert_value(l, other / 2, 1e-6);
    assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
    assert_value(wb_sum(wb_square(wb_slice(g, 2, 0, 1, 1))), 0, 0);
    assert_true(wb_item(wb_sum(wb_square(g))) > 0);
}

/* ---- derivatives ---- */

static wb_array *fn(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_ctc_loss(arrays[0], context, .agg = WB_AGG_NONE);
}

static void derivatives_are_right(void **state) {
    (void)state;
    const int32_t y[] = {0, 0, 1, 2};
    wb_array *p = wb_normal(WB_F64, 4, 4, 2);
    if (wb_gradient_check(fn, wb_from(WB_I32, y, 2, 2), 1, &p, 2, 1e-5) != WB_OK)
        fail_msg("%s", wb_error_message());
}

static void long_sequences_are_finite(void **state) {
    (void)state;
    const int32_t y[] = {1, 2, 1};
    wb_array *p = wb_mul(wb_normal(WB_F32, 5, 400), wb_number(30)), *g;
    wb_array *l = wb_ctc_loss(p, labels_of(y, 3));
    assert_true(wb_item(l) > 100);
    assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
    assert_true(isfinite(wb_item(wb_sum(g))));
    /* certainty: the chance of a class that is ruled out */
    wb_array *sure = wb_from(WB_F64, ((const double[]){-INFINITY, 0, 0, -INFINITY}), 2, 2);
    assert_true(isinf(wb_item(wb_ctc_loss(sure, labels_of((const int32_t[]){0, 0}, 2)))));
}

/* ---- mistakes ---- */

static void mistakes(void **state) {
    (void)state;
    const int32_t y[] = {0, 2};
    wb_array *p = wb_zeros(WB_F32, 3, 4), *labels = labels_of(y, 2);
    if (is_on_host()) {
        assert_null(wb_ctc_loss(p, labels));
        assert_error(WB_ERROR_ARGUMENT,
                     "ctc_loss: label 2 at position 1 of column 0 must be one of 3 classes, 0 to "
                     "2, and not the blank 2");
    }
    for (int more = 0; more <= 5; more += 5) { /* the blank, and no class */
        wb_array *l = wb_ctc_loss(p, wb_add(labels, wb_scalar(WB_I32, more)));
        if (l) assert_true(isnan(wb_item(l))); /* with WEBER_EAGER=1 nothing is pending */
        assert_error(WB_ERROR_ARGUMENT, more ? "5 at p" : " at p");
    }
    assert_null(wb_ctc_loss(p, wb_zeros(WB_F32, 2)));
    assert_error(WB_ERROR_SHAPE, "ctc_loss: the prediction must be (classes, steps, batch) and the "
                                 "target integers (labels, batch), or both without batch; got "
                                 "(3, 4) and f32 of (2)");
    assert_null(wb_ctc_loss(p, labels, .blank = 3));
    assert_error(WB_ERROR_ARGUMENT, "ctc_loss: blank must be one of 3 classes, 0 to 2, got 3");
    assert_null(wb_ctc_loss(p, labels, .blank = 1, .input_lengths = wb_ones(WB_I32, 2)));
    assert_error(WB_ERROR_SHAPE, "ctc_loss: input_lengths must be integers, one for each of 1 "
                                 "columns, got i32 of (2)");
    if (is_on_host()) {
        const int32_t five = 5;
        assert_null(wb_ctc_loss(p, labels, .blank = 1, .input_lengths = wb_from(WB_I32, &five, 1)));
        assert_error(WB_ERROR_ARGUMENT,
                     "ctc_loss: input_lengths must be 0 to 4, got 5 at position 0");
    }
    assert_null(wb_mse(p, p, .zero_infinity = true));
    assert_error(WB_ERROR_ARGUMENT, "mse: this loss has no setting zero_infinity");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(values_of_the_table),
        TEST(sums_over_all_alignments),
        TEST(weights_and_an_impossible_column),
        TEST(derivatives_are_right),
        TEST(long_sequences_are_finite),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
