/* src/losses/loss.c: what weights do to terms, and their own derivatives. */
#include <math.h>

#include <weber/gradient.h>
#include <weber/losses.h>
#include <weber/ops.h>

#include "support/numbers.h"
#include "support/support.h"

typedef wb_array *loss_maker(wb_loss_desc desc);

static wb_array *f64(int count, const double *values) { return wb_from(WB_F64, values, count); }

/* ---- the derivative of a weight of 0 ---- */

enum { MOST = 6 };

typedef enum wanted_of { OF_WEIGHTS, OF_CLASS_WEIGHTS, OF_TARGET } wanted_of;

/* The gradient of a loss over p and y, (rows, columns), with respect to one of its arrays, whose
 * numbers are `at`; the wanted numbers by hand. */
typedef struct row {
    const char *name;
    loss_maker *make;
    wanted_of of;
    int rows, columns;
    double p[MOST], y[MOST];
    int count;
    double at[MOST], wanted[MOST];
    wb_agg agg;
} row;

static const double inf = (double)INFINITY;

#define L2 0.6931471805599453 /* log 2 */
#define L4 (2 * L2)

/* Learning to reweight examples begins with weights of 0 (Ren and others 2018). */
static const row rows[] = {
    {"a weight of 0 has its term as derivative, as any other",
     wb_mse_make,
     OF_WEIGHTS,
     1,
     3,
     {1, 2, 3},
     {0},
     3,
     {0, 0, 1},
     {1, 4, 9},
     WB_AGG_SUM},
    {"of a weighted mean, (term - mean) / sum of the weights",
     wb_mse_make,
     OF_WEIGHTS,
     1,
     3,
     {1, 2, 3},
     {0},
     3,
     {0, 2, 2},
     {-1.375, -.625, .625},
     WB_AGG_MEAN},
    {"a term that is not finite has none where its weight is 0",
     wb_mae_make,
     OF_WEIGHTS,
     1,
     3,
     {1, INFINITY, NAN},
     {0},
     3,
     {1, 0, 0},
     {1, 0, 0},
     WB_AGG_SUM},
    {"a class weight of 0, of numbers",
     wb_mse_make,
     OF_CLASS_WEIGHTS,
     2,
     2,
     {1, 2, 3, 4},
     {0},
     2,
     {0, 0},
     {10, 20},
     WB_AGG_SUM},
    {"a class weight of 0, of a crossentropy",
     wb_crossentropy_make,
     OF_CLASS_WEIGHTS,
     2,
     2,
     {.5, .5, .25, .75},
     {1, 0, 1, 0},
     2,
     {0, 0},
     {L2 + L4, 0},
     WB_AGG_SUM},
    {"a probability of 0 in the target, of crossentropy",
     wb_crossentropy_make,
     OF_TARGET,
     2,
     1,
     {.5, .25},
     {0},
     2,
     {1, 0},
     {L2, L4},
     WB_AGG_SUM},
    {"a probability of 0 in the target, of logits",
     wb_logitcrossentropy_make,
     OF_TARGET,
     2,
     1,
     {1, 1},
     {0},
     2,
     {1, 0},
     {L2, L2},
     WB_AGG_SUM},
    {"dice's weights of 0", /* 1 - (2 w + 1) / (2 w + 1), and 1 - 1 / (4 w + 1), added up */
     wb_dice_coeff_loss_make,
     OF_WEIGHTS,
     1,
     2,
     {1, 2},
     {1, 0},
     2,
     {0, 0},
     {0, 4},
     WB_AGG_MEAN},
};

static wb_array *matrix(const double *values, int m, int n) {
    return wb_reshape(f64(m * n, values), m, n);
}

static void weights_of_0_have_derivatives(void **state) {
    const row *r = *state;
    wb_loss_desc d = WB_DESC(loss, .p = matrix(r->p, r->rows, r->columns),
                             .y = matrix(r->y, r->rows, r->columns), .agg = r->agg);
    wb_array *x = f64(r->count, r->at), *g;
    if (r->of == OF_WEIGHTS) d.weights = x;
    if (r->of == OF_CLASS_WEIGHTS) d.class_weights = x;
    if (r->of == OF_TARGET) d.y = wb_reshape(x, r->rows, r->columns);
    assert_int_equal(wb_gradient_of(r->make(d), 1, &x, &g), WB_OK);
    for (int i = 0; i < r->count; i++)
        if (!(fabs(wb_at(g, i) - r->wanted[i]) <= 1e-12))
            fail_msg("%s: %d is %.17g, not %.17g", r->name, i, wb_at(g, i), r->wanted[i]);
}

/* ---- masks and weights ---- */

typedef struct hidden {
    const char *name;
    double p[3], y[3];
} hidden;

/* The first element counts alone. */
static const hidden hidden_rows[] = {
    {"a mask leaves out a NaN target", {1, 2, 3}, {0, NAN, NAN}},
    {"a mask leaves out NaN and infinite predictions", {1, NAN, INFINITY}, {0, 0, 0}},
};

static void what_a_mask_leaves_out_leaves_no_trace(void **state) {
    const hidden *r = *state;
    static loss_maker *const makers[] = {wb_mae_make, wb_huber_loss_make};
    for (int i = 0; i < 2; i++) {
        wb_array *mask = wb_eq(wb_iota(WB_I32, 0, 3), wb_number(0)), *p = f64(3, r->p), *g;
        wb_array *l = makers[i](WB_DESC(loss, .p = p, .y = f64(3, r->y), .weights = mask));
        assert_value(l, i ? .5 : 1, 1e-12);
        assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
        assert_values(g, 1e-12, 1, 0, 0);
    }
}

/* An infinite logarithm of a class that does not count is 0, not NaN. */
static void a_class_without_weight_may_be_impossible(void **state) {
    (void)state;
    const int32_t labels[] = {1, 0};
    wb_array *p = wb_reshape(f64(4, (const double[]){0, -inf, 0, 0}), 2, 2);
    wb_array *y = wb_from(WB_I32, labels, 2), *w = f64(2, (const double[]){1, 0});
    assert_value(wb_logitcrossentropy(p, y, .class_weights = w, .agg = WB_AGG_SUM), L2, 1e-12);
    wb_array *hot = wb_reshape(f64(4, (const double[]){0, 1, 1, 0}), 2, 2);
    assert_value(wb_logitcrossentropy(p, hot, .class_weights = w, .agg = WB_AGG_SUM), L2, 1e-12);
}

/* A mask and an ignored label, a mask and class weights: each takes part. */
static void masks_and_weights_meet(void **state) {
    (void)state;
    wb_array *p = f64(4, (const double[]){1, 2, 3, 4}), *y = f64(4, (const double[]){0, -9, 0, 0});
    const uint8_t some[] = {1, 1, 0, 1};
    wb_array *mask = wb_from(WB_BOOL, some, 4);
    assert_value(wb_mse(p, y, .weights = mask, .ignore = -9), (1 + 16) / 2., 1e-12);
    assert_value(wb_mse(p, y, .weights = mask, .ignore = -9,
                        .class_weights = f64(4, (const double[]){3, 5, 7, 1})),
                 (3 * 1 + 16) / 4., 1e-12);
    assert_value(wb_mse(p, y, .weights = wb_not(wb_ge(p, p))), 0, 0); /* nothing counts */
}

int main(void) {
    const struct CMUnitTest others[] = {
        TEST(a_class_without_weight_may_be_impossible),
        TEST(masks_and_weights_meet),
    };
    static test_list tests;
    ADD_ROWS(&tests, rows, weights_of_0_have_derivatives);
    ADD_ROWS(&tests, hidden_rows, what_a_mask_leaves_out_leaves_no_trace);
    ADD_TESTS(&tests, others);
    return run_test_list("losses/test_weights", &tests, NULL, NULL);
}
