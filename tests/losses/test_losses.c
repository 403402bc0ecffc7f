/* src/losses: acceptance cases B by their names, weights, derivatives */
#include <math.h>
#include <string.h>

#include <weber/gradient.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/ops.h>
#include <weber/optimise.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *f64(int64_t count, const double *values) { return wb_from(WB_F64, values, count); }
#define F64(...)                                                                                   \
    f64((int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),                         \
        (const double[]){__VA_ARGS__})

/* ---- values ---- */

enum { MOST = 15 };
typedef wb_array *loss_maker(wb_loss_desc desc);

typedef struct row {
    const char *name;
    loss_maker *make;
    int64_t rows, columns; /* columns 0: a vector */
    double p[MOST], y[MOST];
    double wanted;
    wb_loss_desc settings;
} row;

/* softmax(reshape(-7:7, 3, 5)) */
#define A .09003057317038046
#define B .24472847105479764
#define C .6652409557748219
#define SOFT                                                                                       \
    { A, B, C, A, B, C, A, B, C, A, B, C, A, B, C }
#define HOT                                                                                        \
    { 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0 }
#define FOCAL_P                                                                                    \
    { .268941, .731059, .5, .5, .268941, .731059 }
#define FOCAL_Y                                                                                    \
    { 0, 1, 1, 0, 0, 1 }
#define DICE_P                                                                                     \
    { 0, 1.4, .5, 1.2 }
#define DICE_Y                                                                                     \
    { 1, .5, .3, 2.4 }
#define V (-2.1972245773362196) /* log(.1 / .9) */

#pragma GCC diagnostic ignored "-Woverride-init" /* WB_INIT */

static const row rows[] = {
    {"B1 mse", wb_mse_make, 4, 0, {.9, .1, .1, .9}, {1, 1, 0, 0}, .41, WB_INIT(loss, NULL)},
    {"B1 mae", wb_mae_make, 4, 0, {.9, .1, .1, .9}, {1, 1, 0, 0}, .5, WB_INIT(loss, NULL)},
    {"B1 huber",
     wb_huber_loss_make,
     4,
     0,
     {.9, .1, .1, .9},
     {1, 1, 0, 0},
     .205,
     WB_INIT(loss, NULL)},
    {"huber beyond delta",
     wb_huber_loss_make,
     2,
     0,
     {.3, 1.2},
     {0, 0},
     .26,
     WB_INIT(loss, .delta = .5)},
    {"B3 crossentropy",
     wb_crossentropy_make,
     2,
     4,
     {.1, .9, .9, .1, .9, .1, .1, .9},
     {0, 1, 0, 1, 1, 0, 1, 0},
     1.203972804325936,
     WB_INIT(loss, NULL)},
    {"B3 smoothed",
     wb_crossentropy_make,
     2,
     4,
     {.1, .9, .9, .1, .9, .1, .1, .9},
     {0, 1, 0, 1, 1, 0, 1, 0},
     1.2039728043259348,
     WB_INIT(loss, .smoothing = .1)},
    {"B4 logitcrossentropy",
     wb_logitcrossentropy_make,
     2,
     4,
     {V, 0, 0, V, 0, V, V, 0},
     {0, 1, 0, 1, 1, 0, 1, 0},
     1.203972804325936,
     WB_INIT(loss, NULL)},
    {"B7 hinge, beyond",
     wb_hinge_loss_make,
     4,
     0,
     {5, 6, 7, 8},
     {1, 2, 3, 4},
     0,
     WB_INIT(loss, NULL)},
    {"B7 hinge",
     wb_hinge_loss_make,
     4,
     0,
     {1, 2, 3, 4},
     {.5, 1, 1.5, 2},
     .125,
     WB_INIT(loss, NULL)},
    {"B7 squared hinge",
     wb_squared_hinge_loss_make,
     4,
     0,
     {1, 2, 3, 4},
     {.5, 1, 1.5, 2},
     .0625,
     WB_INIT(loss, NULL)},
    {"hinge of signs",
     wb_hinge_loss_make,
     3,
     0,
     {.5, -2, 1.5},
     {1, -1, -1},
     1,
     WB_INIT(loss, NULL)},
    {"squared hinge of signs",
     wb_squared_hinge_loss_make,
     3,
     0,
     {.5, -2, 1.5},
     {1, -1, -1},
     2.1666666666666665,
     WB_INIT(loss, NULL)},
    {"B8 poisson",
     wb_poisson_loss_make,
     3,
     0,
     {.4, .5, .6},
     {.1, .2, .3},
     .6278353988097339,
     WB_INIT(loss, NULL)},
    {"B8 poisson of itself",
     wb_poisson_loss_make,
     3,
     0,
     {.1, .2, .3},
     {.1, .2, .3},
     .5044459776946685,
     WB_INIT(loss, NULL)},
    {"poisson",
     wb_poisson_loss_make,
     2,
     0,
     {2, 1},
     {1, 3},
     1.1534264097200273,
     WB_INIT(loss, NULL)},
    {"poisson of nothing", wb_poisson_loss_make, 2, 0, {0, 1}, {0, 0}, .5, WB_INIT(loss, NULL)},
    {"B9 dice", wb_dice_coeff_loss_make, 4, 0, DICE_P, DICE_Y, .28, WB_INIT(loss, NULL)},
    {"B9 dice of itself", wb_dice_coeff_loss_make, 4, 0, DICE_Y, DICE_Y, 0, WB_INIT(loss, NULL)},
    {"dice",
     wb_dice_coeff_loss_make,
     3,
     0,
     {.8, .3, .6},
     {1, 0, 1},
     .0709046454767726,
     WB_INIT(loss, NULL)},
    {"tversky",
     wb_tversky_loss_make,
     3,
     0,
     {.8, .3, .6},
     {1, 0, 1},
     .13978494623655913,
     WB_INIT(loss, NULL)},
    {"B11 binary focal", wb_binary_focal_loss_make, 2, 3, FOCAL_P, FOCAL_Y, .0728675615927385,
     WB_INIT(loss, NULL)},
    {"B11 binary focal of two",
     wb_binary_focal_loss_make,
     2,
     2,
     {.6, .4, .3, .7},
     {1, 0, 0, 1},
     .05691642237852222,
     WB_INIT(loss, NULL)},
    {"binary focal of one",
     wb_binary_focal_loss_make,
     1,
     0,
     {.6},
     {1},
     .0817320998,
     WB_INIT(loss, NULL)},
    {"B12 focal",
     wb_focal_loss_make,
     3,
     2,
     {.4, .5, .1, .2, .5, .3},
     {1, 0, 0, 0, 0, 1},
     .45990566879720157,
     WB_INIT(loss, NULL)},
    {"B12 focal of more", wb_focal_loss_make, 3, 5, SOFT, HOT, 1.1277571935622628,
     WB_INIT(loss, NULL)},
    {"B14 siamese", wb_siamese_contrastive_loss_make, 3, 5, SOFT, HOT, .32554644,
     WB_INIT(loss, NULL)},
    {"B14 margin .5", wb_siamese_contrastive_loss_make, 3, 5, SOFT, HOT, .16271012,
     WB_INIT(loss, .margin = .5)},
    {"B14 margin 1.5", wb_siamese_contrastive_loss_make, 3, 5, SOFT, HOT, .6532292,
     WB_INIT(loss, .margin = 1.5)},
    {"B14 margin 0", wb_siamese_contrastive_loss_make, 3, 5, SOFT, HOT, .13161165,
     WB_INIT(loss, .margin = 0)},
    {"B15 siamese",
     wb_siamese_contrastive_loss_make,
     5,
     0,
     {.6, .4, .1, .2, .7},
     {1, 0, 0, 1, 1},
     .212,
     WB_INIT(loss, NULL)},
    {"B15 siamese of itself",
     wb_siamese_contrastive_loss_make,
     5,
     0,
     {.6, .4, .1, .2, .7},
     {.6, .4, .1, .2, .7},
     .188,
     WB_INIT(loss, NULL)},
    {"B19 binarycrossentropy",
     wb_binarycrossentropy_make,
     3,
     0,
     {.1, .2, .9},
     {1, 1, 1},
     1.339128,
     WB_INIT(loss, NULL)},
    {"B22 mae", wb_mae_make, 3, 0, {1.1, 1.9, 3.1}, {1, 2, 3}, .1, WB_INIT(loss, NULL)},
    {"B22 mse", wb_mse_make, 3, 0, {1.1, 1.9, 3.1}, {1, 2, 3}, .01, WB_INIT(loss, NULL)},
    {"B22 msle above",
     wb_msle_make,
     3,
     0,
     {1.1, 2.2, 3.3},
     {1, 2, 3},
     .009084041,
     WB_INIT(loss, NULL)},
    {"B22 msle below",
     wb_msle_make,
     3,
     0,
     {.9, 1.8, 2.7},
     {1, 2, 3},
     .011100831,
     WB_INIT(loss, NULL)},
    {"kldivergence",
     wb_kldivergence_make,
     2,
     1,
     {.25, .75},
     {.5, .5},
     .14384103622589045,
     WB_INIT(loss, NULL)},
    {"kldivergence of nothing",
     wb_kldivergence_make,
     2,
     1,
     {.5, .5},
     {0, 1},
     .6931471805599453,
     WB_INIT(loss, NULL)},
    {"cosine", wb_cosine_loss_make, 2, 2, {1, 0, 1, 1}, {0, 2, 3, 3}, .5, WB_INIT(loss, NULL)},
    {"infonce",
     wb_infonce_loss_make,
     2,
     2,
     {1, 0, 0, 2},
     {3, 0, 0, 1},
     4.5398899216870535e-05,
     WB_INIT(loss, NULL)},
    {"infonce, warm",
     wb_infonce_loss_make,
     2,
     2,
     {1, 0, 0, 2},
     {3, 0, 0, 1},
     .31326168751822286,
     WB_INIT(loss, .temperature = 1)},
    {"cold classes",
     wb_crossentropy_make,
     2,
     2,
     {.5, .5, .25, .75},
     {1, 0, 0, 1},
     (.6931471805599453 + .2876820724517809) / 2,
     WB_INIT(loss, .dim = 0)},
    {"classes along dimension 1",
     wb_crossentropy_make,
     2,
     2,
     {.5, .25, .5, .75},
     {1, 0, 0, 1},
     (.6931471805599453 + .2876820724517809) / 2,
     WB_INIT(loss, .dim = 1)},
    {"sum", wb_mse_make, 2, 0, {1, 2}, {0, 0}, 5, WB_INIT(loss, .agg = WB_AGG_SUM)},
};
enum { ROWS = sizeof rows / sizeof *rows };

static wb_array *matrix(const double *values, int64_t m, int64_t n) {
    wb_array *x = f64(n ? m * n : m, values);
    return n ? wb_reshape(x, m, n) : x;
}

static void values_of_the_table(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        wb_loss_desc desc = r->settings;
        desc.p = matrix(r->p, r->rows, r->columns), desc.y = matrix(r->y, r->rows, r->columns);
        const double value = wb_item(r->make(desc));
        /* some wanted numbers have the digits of f32 */
        if (!(fabs(value - r->wanted) <= 2e-6 * (1e-4 + fabs(r->wanted))))
            fail_msg("%s: %.17g, not %.17g %s", r->name, value, r->wanted, wb_error_message());
    }
}

static wb_array *two_classes(bool logits) {
    return logits ? wb_reshape(F64(V, 0, 0, V, 0, V, V, 0), 2, 4)
                  : wb_reshape(F64(.1, .9, .9, .1, .9, .1, .1, .9), 2, 4);
}

static void labels_are_one_hot_targets(void **state) { /* B3, B4 */
    (void)state;
    const int32_t classes[] = {1, 1, 0, 0};
    wb_array *labels = wb_from(WB_I32, classes, 4), *weights = F64(2, .5);
    wb_array *hot = wb_eq(wb_iota(WB_I32, 0, 2, 4), wb_unsqueeze(labels, 0));
    wb_array *small = wb_cast(labels, WB_U8);
    for (int logits = 0; logits < 2; logits++) {
        wb_array *p = two_classes(logits);
        loss_maker *const make = logits ? wb_logitcrossentropy_make : wb_crossentropy_make;
        assert_value(make(WB_DESC(loss, .p = p, .y = labels)), 1.203972804325936, 1e-12);
        assert_value(make(WB_DESC(loss, .p = p, .y = small)), 1.203972804325936, 1e-12);
        assert_value(make(WB_DESC(loss, .p = p, .y = hot)), 1.203972804325936, 1e-12);
        for (int agg = 0; agg < 3; agg++) {
            wb_loss_desc desc =
                WB_DESC(loss, .p = p, .y = hot, .agg = (wb_agg)agg, .class_weights = weights,
                        .smoothing = .2, .weights = F64(1, 2, 0, 3));
            double of_hot[4] = {0}, of_labels[4] = {0};
            const int64_t count = agg == WB_AGG_NONE ? 4 : 1;
            assert_int_equal(wb_read_f64(make(desc), of_hot, count), WB_OK);
            desc.y = labels;
            assert_int_equal(wb_read_f64(make(desc), of_labels, count), WB_OK);
            for (int i = 0; i < 4; i++)
                assert_true(fabs(of_hot[i] - of_labels[i]) <= 1e-12 * (1 + fabs(of_hot[i])));
            assert_true(of_hot[0] > 0);
        }
        assert_value(wb_accuracy(p, labels), 0.5, 1e-6);
        assert_value(wb_accuracy(p, hot), 0.5, 1e-6);
    }
}

static void nothing_times_log_of_nothing(void **state) { /* B5 */
    (void)state;
    wb_array *p = F64(.1, 0, .9), *q = F64(.1, .9);
    assert_value(wb_crossentropy(p, p), wb_item(wb_crossentropy(q, q)), 1e-12);
    wb_array *masked = F64(0, -INFINITY);
    assert_value(wb_logitcrossentropy(masked, F64(1, 0)), 0, 0);
    assert_value(wb_kldivergence(p, p), 0, 1e-12);
    wb_array *sure = F64(0, 1), *g;
    wb_array *l = wb_binarycrossentropy(sure, sure, .eps = 0);
    assert_value(l, 0, 0);
    assert_int_equal(wb_gradient_of(l, 1, &sure, &g), WB_OK);
    assert_true(isfinite(wb_item(wb_sum(g))));
}

static void focal_with_gamma_0(void **state) { /* B11, B12 */
    (void)state;
    const double soft[] = SOFT, hot[] = HOT, p[] = FOCAL_P, y[] = FOCAL_Y;
    wb_array *s = matrix(soft, 3, 5), *h = matrix(hot, 3, 5);
    wb_array *q = matrix(p, 2, 3), *z = matrix(y, 2, 3);
    assert_value(wb_focal_loss(s, h, .gamma = 0), wb_item(wb_crossentropy(s, h)), 1e-12);
    assert_value(wb_binary_focal_loss(q, z, .gamma = 0), wb_item(wb_binarycrossentropy(q, z)),
                 1e-12);
    /* a certain prediction, and a power of no integer */
    assert_value(wb_focal_loss(F64(1, 0), F64(1, 0), .gamma = 1.5), 0, 1e-12);
    assert_value(wb_binary_focal_loss(F64(1, 0), F64(1, 0), .gamma = 1.5), 0, 1e-12);
}

static void binary(void **state) { /* B19 */
    (void)state;
    const double wanted = -(log(.1) + log(.2) + log(.9)) / 3;
    wb_array *p = F64(.1, .2, .9);
    assert_value(wb_binarycrossentropy(p, wb_number(1)), wanted, 1e-9);
    wb_array *logit = wb_log(wb_div(p, wb_sub(wb_number(1), p)));
    assert_value(wb_logitbinarycrossentropy(logit, wb_ones(WB_F64, 3)), wanted, 1e-9);
    assert_value(wb_logitbinarycrossentropy(logit, wb_zeros(WB_F64, 3)),
                 -(log(.9) + log(.8) + log(.1)) / 3, 1e-9);
    wb_array *soft = wb_binary_label_smoothing(wb_ones(WB_F64, 3), .2);
    assert_value(wb_binarycrossentropy(p, wb_number(1), .smoothing = .2),
                 wb_item(wb_binarycrossentropy(p, soft)), 1e-12);
}

static void smoothing(void **state) { /* B18 */
    (void)state;
    wb_array *hot = wb_reshape(F64(0, 1), 2, 1);
    assert_values(wb_label_smoothing(hot, .2), 1e-12, .1, .9);
    assert_values(wb_binary_label_smoothing(hot, .2), 1e-12, .1, .9);
    assert_int_equal(wb_dtype_of(wb_label_smoothing(wb_cast(hot, WB_BOOL), .2)), WB_F32);
    assert_null(wb_label_smoothing(hot, 1.2));
    assert_error(WB_ERROR_ARGUMENT, "label_smoothing: a must be above 0 and below 1, got 1.2");
    assert_null(wb_label_smoothing(hot, 0));
    assert_error(WB_ERROR_ARGUMENT, "label_smoothing: a must be above 0 and below 1, got 0");
}

static void vectors(void **state) {
    (void)state;
    wb_array *a = wb_reshape(F64(0, 0, 1, 1), 2, 2), *p = wb_reshape(F64(3, 4, 1, 1), 2, 2),
             *n = wb_reshape(F64(0, 3, 5, 1), 2, 2);
    assert_value(wb_triplet_loss(a, p, .negative = n), 1.5, 1e-6); /* 5 - 3 + 1, 0 */
    assert_value(wb_triplet_loss(a, p, .negative = n, .margin = 5), 4, 1e-6);
    assert_sizes(wb_triplet_loss(a, p, .negative = n, .agg = WB_AGG_NONE), 1, 2);
    assert_sizes(wb_cosine_loss(a, p, .agg = WB_AGG_NONE, .dim = 1), 2, 1);
    wb_array *v = wb_reshape(F64(1, 4), 1, 2);
    /* (0 + 9 + 0 + 16) / 2 / v and log v / 2 for each */
    assert_value(wb_gaussian_nll_loss(a, p, .variance = v), ((9. + 16) / 2 + log(1.) + log(4.)) / 4,
                 1e-9);
    assert_null(wb_triplet_loss(a, p));
    assert_error(WB_ERROR_ARGUMENT, "triplet_loss: .negative must be given");
    assert_null(wb_gaussian_nll_loss(a, p, .variance = wb_ones(WB_F64, 3)));
    assert_error(WB_ERROR_SHAPE,
                 "gaussian_nll_loss: variance must have the sizes of the prediction, (2, 2), or 1, "
                 "got (3)");
}

/* ---- weights ---- */

static void weights_of_samples(void **state) {
    (void)state;
    wb_array *p = wb_reshape(F64(1, 2, 3, 4, 5, 6), 2, 3), *y = wb_zeros(WB_F64, 2, 3);
    /* terms 1 4, 9 16, 25 36 */
    assert_value(wb_mse(p, y, .weights = F64(1, 0, 0)), 2.5, 1e-12);
    assert_value(wb_mse(p, y, .weights = F64(1, 1, 2), .agg = WB_AGG_SUM), 152, 1e-12);
    assert_value(wb_mse(p, y, .weights = F64(1, 1, 2)), 152. / 8, 1e-12);
    assert_value(wb_mse(p, y, .class_weights = F64(1, 3)), (35 + 3 * 56) / 12., 1e-12);
    wb_array *mask = wb_gt(p, wb_number(4));
    assert_value(wb_mse(p, y, .weights = mask), 30.5, 1e-12);
    assert_values(wb_mse(p, y, .weights = mask, .agg = WB_AGG_NONE), 1e-12, 0, 0, 0, 0, 25, 36);
    assert_value(wb_mse(p, y, .weights = wb_zeros(WB_F64, 3)), 0, 0);
    /* what is masked may be anything */
    wb_array *holes = F64(1, NAN, INFINITY);
    assert_value(wb_mae(holes, wb_zeros(WB_F64, 3), .weights = F64(1, 0, 0)), 1, 0);
    assert_value(wb_mae(F64(1, 2, 7), F64(0, 0, -1), .ignore = -1), 1.5, 1e-12);
    assert_value(wb_mae(F64(1, 2, 7), F64(3, 0, 0), .ignore = 0), 2, 1e-12);
    assert_value(
        wb_dice_coeff_loss(F64(.8, .3, .6, 9), F64(1, 0, 1, 5), .weights = F64(1, 1, 1, 0)),
        .0709046454767726, 1e-9);
}

static void an_ignored_label(void **state) {
    (void)state;
    const int32_t some[] = {1, -100, 0, -100}, few[] = {1, 0};
    wb_array *y = wb_from(WB_I32, some, 4), *z = wb_from(WB_I32, few, 2);
    wb_array *p = wb_normal(WB_F64, 3, 4);
    wb_array *q = wb_slice(p, 1, 0, 4, 2), *w = F64(1, 2, 3);
    const double wanted = wb_item(wb_logitcrossentropy(q, z, .class_weights = w));
    assert_value(wb_logitcrossentropy(p, y, .ignore = -100, .class_weights = w), wanted, 1e-12);
    assert_value(wb_logitcrossentropy(p, y, .ignore = -100), wb_item(wb_logitcrossentropy(q, z)),
                 1e-12);
    wb_array *pending = wb_sub(wb_add(y, y), y);
    assert_value(wb_logitcrossentropy(p, pending, .ignore = -100, .class_weights = w), wanted,
                 1e-12);
    wb_array *bytes = wb_cast(z, WB_U8);
    assert_value(wb_logitcrossentropy(q, bytes, .ignore = -100),
                 wb_item(wb_logitcrossentropy(q, z)), 1e-12);
    assert_null(wb_logitcrossentropy(p, wb_ones(WB_F64, 3, 4), .ignore = -100));
    assert_error(WB_ERROR_ARGUMENT, "ignore needs integer labels, but the target is f64 of sizes");
}

/* ---- derivatives ---- */

typedef struct derivative {
    const char *name;
    loss_maker *make;
    wb_loss_desc settings;
    bool only_first; /* the second one has a step */
} derivative;

static const derivative derivatives[] = {
    {"mse", wb_mse_make, WB_INIT(loss, NULL), false},
    {"mae", wb_mae_make, WB_INIT(loss, NULL), false},
    {"msle", wb_msle_make, WB_INIT(loss, NULL), false},
    {"huber", wb_huber_loss_make, WB_INIT(loss, .delta = .2), false},
    {"poisson", wb_poisson_loss_make, WB_INIT(loss, NULL), false},
    {"hinge", wb_hinge_loss_make, WB_INIT(loss, NULL), false},
    {"squared hinge", wb_squared_hinge_loss_make, WB_INIT(loss, NULL), false},
    {"binary", wb_binarycrossentropy_make, WB_INIT(loss, .smoothing = .1), false},
    {"logit binary", wb_logitbinarycrossentropy_make, WB_INIT(loss, NULL), false},
    {"binary focal", wb_binary_focal_loss_make, WB_INIT(loss, .gamma = 2.5), false},
    {"siamese", wb_siamese_contrastive_loss_make, WB_INIT(loss, NULL), false},
    {"gaussian", wb_gaussian_nll_loss_make, WB_INIT(loss, NULL), false},
    {"crossentropy", wb_crossentropy_make, WB_INIT(loss, .smoothing = .1), false},
    {"logitcrossentropy", wb_logitcrossentropy_make, WB_INIT(loss, NULL), false},
    {"focal", wb_focal_loss_make, WB_INIT(loss, NULL), false},
    {"kldivergence", wb_kldivergence_make, WB_INIT(loss, NULL), false},
    {"dice", wb_dice_coeff_loss_make, WB_INIT(loss, NULL), false},
    {"tversky", wb_tversky_loss_make, WB_INIT(loss, NULL), false},
    {"cosine", wb_cosine_loss_make, WB_INIT(loss, NULL), false},
    {"triplet", wb_triplet_loss_make, WB_INIT(loss, .margin = 5), false},
    {"infonce", wb_infonce_loss_make, WB_INIT(loss, NULL), false},
};
enum { DERIVATIVES = sizeof derivatives / sizeof *derivatives };

static wb_array *of_row(void *context, int count, wb_array *const *arrays) {
    const derivative *d = context;
    wb_loss_desc desc = d->settings;
    (void)count;
    desc.p = arrays[0], desc.y = arrays[1];
    if (d->make == wb_gaussian_nll_loss_make) desc.variance = arrays[2];
    if (d->make == wb_triplet_loss_make) desc.negative = arrays[2];
    if (d->make != wb_infonce_loss_make && d->make != wb_cosine_loss_make) desc.weights = arrays[3];
    return d->make(desc);
}

static void derivatives_are_right(void **state) {
    (void)state;
    const int step = compiles_kernels() ? 10 : 1;
    wb_seed(5);
    for (int i = 0; i < DERIVATIVES; i += step) {
        derivative d = derivatives[i];
        wb_array *x[4] = {wb_add(wb_mul(wb_uniform(WB_F64, 3, 4), wb_number(.4)), wb_number(.1)),
                          wb_add(wb_mul(wb_uniform(WB_F64, 3, 4), wb_number(.4)), wb_number(.55)),
                          wb_add(wb_uniform(WB_F64, 3, 4), wb_number(1)),
                          wb_add(wb_uniform(WB_F64, 4), wb_number(.5))};
        if (wb_gradient_check(of_row, &d, 4, x, 2, 1e-5) != WB_OK)
            fail_msg("%s: %s", d.name, wb_error_message());
    }
}

static void no_slope_at_a_vector_of_zeros(void **state) {
    (void)state;
    wb_array *p = wb_zeros(WB_F32, 3, 2), *y = wb_zeros(WB_F32, 3, 2), *g;
    wb_array *l[] = {wb_cosine_loss(p, y), wb_infonce_loss(p, y),
                     wb_triplet_loss(p, y, .negative = wb_ones(WB_F32, 3, 2))};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_gradient_of(l[i], 1, &p, &g), WB_OK);
        assert_true(isfinite(wb_item(wb_sum(g))));
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(values_of_the_table),
        TEST(labels_are_one_hot_targets),
        TEST(nothing_times_log_of_nothing),
        TEST(focal_with_gamma_0),
        TEST(binary),
        TEST(smoothing),
        TEST(vectors),
        TEST(weights_of_samples),
        TEST(an_ignored_label),
        TEST(derivatives_are_right),
        TEST(no_slope_at_a_vector_of_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
