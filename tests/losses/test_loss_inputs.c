/* What losses are given: types, sizes, labels, settings, and no observations at all. */
#include <math.h>

#include <weber/gradient.h>
#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/ops.h>
#include <weber/optimise.h>

#include "support/numbers.h"
#include "support/scoped.h"

typedef wb_array *loss_maker(wb_loss_desc desc);
#pragma GCC diagnostic ignored "-Woverride-init" /* WB_INIT */

typedef wb_array *loss_fn(wb_array *p, wb_array *y);
static loss_fn *const all[] = {wb_mse,
                               wb_mae,
                               wb_crossentropy,
                               wb_logitcrossentropy,
                               wb_binarycrossentropy,
                               wb_logitbinarycrossentropy,
                               wb_msle,
                               wb_huber_loss,
                               wb_poisson_loss,
                               wb_hinge_loss,
                               wb_squared_hinge_loss,
                               wb_binary_focal_loss,
                               wb_siamese_contrastive_loss,
                               wb_focal_loss,
                               wb_kldivergence,
                               wb_dice_coeff_loss,
                               wb_tversky_loss,
                               wb_cosine_loss,
                               wb_infonce_loss};
enum { LOSSES = sizeof all / sizeof *all };

static void the_type_is_that_of_the_prediction(void **state) { /* B20 */
    (void)state;
    const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < LOSSES; i++) {
            wb_array *p = wb_full(types[t], 0.25, 3, 2), *g;
            wb_array *l = all[i](p, wb_full(WB_F64, 0.5, 3, 2));
            assert_int_equal(wb_dtype_of(l), types[t]);
            assert_int_equal(wb_ndim(l), 0);
            assert_int_equal(wb_gradient_of(l, 1, &p, &g), WB_OK);
            assert_int_equal(wb_dtype_of(g), types[t]);
            assert_true(isfinite(wb_item(wb_sum(g))));
        }
}

static void nothing_is_broadcast(void **state) { /* B21 */
    (void)state;
    for (int i = 0; i < LOSSES; i++) {
        assert_null(all[i](wb_ones(WB_F32, 3, 1), wb_ones(WB_F32, 3)));
        assert_error(WB_ERROR_SHAPE, "the prediction has sizes (3, 1), ");
    }
}

static void labels_out_of_range(void **state) {
    (void)state;
    const int64_t labels[] = {0, 2, 10, -1};
    wb_array *y = wb_from(WB_I64, labels, 4), *p = wb_ones(WB_F32, 10, 4);
    wb_array *l = wb_logitcrossentropy(p, y);
    if (is_on_host()) { /* labels elsewhere are not read for a check */
        assert_null(l);
        assert_error(
            WB_ERROR_ARGUMENT,
            "logitcrossentropy: label 10 at position 2 is out of range: 10 classes, 0 to 9");
    } else {
        assert_true(isnan(wb_item(l)));
        assert_error(WB_ERROR_ARGUMENT,
                     "logitcrossentropy: label: index 10 at place 2 is not in 0 .. 9");
    }
    for (int ignored = 0; ignored < 2; ignored++) { /* -2 */
        wb_array *pending = wb_add(y, y);
        l = ignored ? wb_logitcrossentropy(p, pending, .ignore = -2)
                    : wb_logitcrossentropy(p, pending);
        if (l) assert_true(isnan(wb_item(l))); /* with WEBER_EAGER=1 nothing is pending */
        assert_error(WB_ERROR_ARGUMENT, "20 at p");
    }
}

static wb_array *of_pending_labels(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), wb_add(batch->y, batch->y));
}

/* A step over labels that are no classes fails, and the model is as before. */
static void a_step_over_bad_labels(void **state) {
    (void)state;
    if (!is_on_host()) skip();
    const int32_t labels[] = {0, 9, 1};
    wb_layer *model = wb_dense(2, 4);
    wb_array *w = wb_keep(wb_copy(wb_get(model, "weight")));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    const wb_batch batch = {.x = wb_ones(WB_F32, 2, 3), .y = wb_from(WB_I32, labels, 3)};
    assert_null(wb_train_step(of_pending_labels, model, &batch, NULL, o));
    assert_error(WB_ERROR_ARGUMENT, "18 at p");
    assert_true(wb_approx(wb_get(model, "weight"), w, 0, 0, NULL, 0));
    assert_int_equal(wb_step_count(o), 0);
    wb_free(w), wb_free(o), wb_free(model);
}

static void pending_labels_are_as_good(void **state) {
    (void)state;
    const int64_t good[] = {0, 2, 4, 1};
    wb_array *z = wb_from(WB_I64, good, 4), *p = wb_ones(WB_F32, 10, 4);
    assert_value(wb_logitcrossentropy(p, wb_add(z, z)), log(10), 1e-5);
}

/* As a rank has them whose shard is at its end. */
static void no_observations_have_a_loss_of_0(void **state) {
    (void)state;
    wb_array *w = wb_ones(WB_F32, 3, 1), *p = wb_mul(w, wb_ones(WB_F32, 3, 0)), *g = NULL;
    wb_array *q = wb_mul(wb_reshape(w, 3, 1, 1), wb_ones(WB_F32, 3, 4, 0)); /* with steps */
    wb_array *y = wb_ones(WB_F32, 3, 0), *labels = wb_zeros(WB_I32, 0);
    wb_array *const losses[] = {
        wb_mse(p, y),
        wb_mae(p, y, .weights = wb_ones(WB_F32, 0)),
        wb_msle(p, y, .agg = WB_AGG_SUM),
        wb_huber_loss(p, y),
        wb_crossentropy(p, y),
        wb_logitcrossentropy(p, labels, .class_weights = wb_ones(WB_F32, 3), .smoothing = 0.1),
        wb_logitcrossentropy(p, labels, .ignore = -100),
        wb_binarycrossentropy(p, y),
        wb_logitbinarycrossentropy(p, y),
        wb_kldivergence(p, y),
        wb_poisson_loss(p, y),
        wb_hinge_loss(p, y),
        wb_squared_hinge_loss(p, y),
        wb_dice_coeff_loss(p, y),
        wb_tversky_loss(p, y),
        wb_focal_loss(p, labels),
        wb_binary_focal_loss(p, y),
        wb_siamese_contrastive_loss(p, y),
        wb_cosine_loss(p, y),
        wb_triplet_loss(p, y, .negative = y),
        wb_infonce_loss(p, y),
        wb_gaussian_nll_loss(p, y, .variance = y),
        wb_ctc_loss(q, wb_zeros(WB_I32, 2, 0), .input_lengths = labels, .target_lengths = labels),
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (!losses[i]) fail_msg("loss %zu: %s", i, wb_error_message());
        assert_int_equal(wb_gradient_of(losses[i], 1, &w, &g), WB_OK);
        if (wb_item(losses[i]) != 0 || wb_item(wb_sum(wb_abs(g))) != 0) fail_msg("loss %zu", i);
    }
    assert_value(wb_accuracy(p, labels), 0, 0);
}

typedef struct mistake {
    const char *message;
    loss_maker *make;
    wb_loss_desc settings;
} mistake;

static const mistake mistakes[] = {
    {"mse: this loss has no setting delta; it has agg, weights, class_weights, ignore, dim",
     wb_mse_make, WB_INIT(loss, .delta = 2)},
    {"mse: this loss has no setting smoothing; it has agg, weights, class_weights, ignore, dim",
     wb_mse_make, WB_INIT(loss, .smoothing = .1)},
    {"dice_coeff_loss: this loss has no setting agg; it has weights, class_weights, ignore, dim, "
     "smooth",
     wb_dice_coeff_loss_make, WB_INIT(loss, .agg = WB_AGG_SUM)},
    {"kldivergence: this loss has no setting ignore; it has agg, weights, class_weights, dim, eps",
     wb_kldivergence_make, WB_INIT(loss, .ignore = 1)},
    {"siamese_contrastive_loss: margin must be at least 0 and finite, got -1", /* B15 */
     wb_siamese_contrastive_loss_make, WB_INIT(loss, .margin = -1)},
    {"huber_loss: delta must be above 0 and finite, got -2", wb_huber_loss_make,
     WB_INIT(loss, .delta = -2)},
    {"crossentropy: smoothing must be at least 0 and below 1, got 1.2", wb_crossentropy_make,
     WB_INIT(loss, .smoothing = 1.2)},
    {"mse: agg must be WB_AGG_MEAN, _SUM or _NONE, got 7", wb_mse_make,
     WB_INIT(loss, .agg = (wb_agg)7)},
    {"crossentropy: dim must be a dimension of the prediction (3, 2), 0 to 1, got 2",
     wb_crossentropy_make, WB_INIT(loss, .dim = 2)},
};

static void settings_of_other_losses(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        wb_loss_desc desc = mistakes[i].settings;
        desc.p = desc.y = wb_ones(WB_F32, 3, 2);
        assert_null(mistakes[i].make(desc));
        char message[1024];
        const wb_status status = wb_take_error(message, sizeof message);
        assert_string_equal(message, mistakes[i].message);
        assert_true(status == WB_ERROR_ARGUMENT);
    }
    wb_array *p = wb_ones(WB_F32, 3, 2);
    assert_null(wb_mse(p, p, .weights = wb_ones(WB_F32, 3)));
    assert_error(WB_ERROR_SHAPE, "mse: weights must have the sizes of the last dimensions of the "
                                 "terms, which are (3, 2), got (3)");
    assert_null(wb_crossentropy(p, p, .class_weights = wb_ones(WB_F32, 2)));
    assert_error(WB_ERROR_SHAPE, "class_weights must have one number for each class "
                                 "(dimension 0 of the prediction (3, 2)), got (2)");
}

static void sequences_of_classes(void **state) {
    (void)state;
    const int32_t labels[] = {0, 1, 2, 2, 1, 0};
    wb_array *p = wb_normal(WB_F64, 3, 2, 3), *y = wb_from(WB_I32, labels, 2, 3);
    wb_array *flat = wb_logitcrossentropy(wb_reshape(p, 3, 6), wb_reshape(y, 6));
    assert_value(wb_logitcrossentropy(p, y), wb_item(flat), 1e-12);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(settings_of_other_losses),
        TEST(the_type_is_that_of_the_prediction),
        TEST(nothing_is_broadcast),
        TEST(labels_out_of_range),
        TEST(a_step_over_bad_labels),
        TEST(pending_labels_are_as_good),
        TEST(no_observations_have_a_loss_of_0),
        TEST(sequences_of_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
