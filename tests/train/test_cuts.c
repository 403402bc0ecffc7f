/* The loss of all observations, and its gradient, do not depend on how they are cut into batches
 * and micro-batches. tests/ranks has ranks. */
#include <math.h>

#include <weber.h>

#include "support/support.h"

enum { POINTS = 11, CLASSES = 3, NONE = -100 };

/* Of the first four batches of one or two, some have no label that counts. */
static const int32_t labels[POINTS] = {NONE, NONE, 1, NONE, 2, 0, NONE, 1, 1, 2, NONE};

static wb_array *mean_of_all(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *y = wb_cast(wb_unsqueeze(batch->y, 0), WB_F32);
    return wb_mse(wb_sum_dims(wb_apply(model, batch->x), 0), wb_mul_number(y, 0.01));
}

static wb_array *mean_of_own(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_square(wb_apply(model, batch->x)));
}

static wb_array *ignored_labels(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y, .ignore = NONE);
}

static wb_array *class_weights(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y, .ignore = NONE,
                                .class_weights = wb_vector(0.25, 7, 2));
}

static wb_array *masked(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *mask = wb_unsqueeze(wb_ge(batch->y, wb_number(0)), 0), *p = wb_apply(model, batch->x);
    return wb_mse(p, wb_zeros(WB_F32, CLASSES, wb_size(p, 1)), .weights = mask);
}

/* sum(l w) / sum(w), by hand: the weights are 0 or the label. */
static wb_array *own_weights(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *w = wb_max(wb_cast(batch->y, WB_F32), wb_number(0)), *total = wb_sum(w);
    wb_array *l = wb_sum(wb_mul(wb_square(wb_apply(model, batch->x)), wb_unsqueeze(w, 0)));
    return wb_divided_by(wb_div(l, wb_max(total, wb_number(1e-30))), total);
}

/* What the whole was divided by is said, and counts before what its parts note. */
static wb_array *two_with_weights(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *counts = wb_sum(wb_ge(batch->y, wb_number(0)));
    return wb_divided_by(wb_add(ignored_labels(model, batch, user), masked(model, batch, user)),
                         counts);
}

static const struct row {
    const char *name;
    wb_loss_fn *loss;
} rows[] = {
    {"a mean of the library's", mean_of_all},
    {"a mean of one's own", mean_of_own},
    {"ignored labels", ignored_labels},
    {"ignored labels and class weights", class_weights},
    {"a mask", masked},
    {"a divisor of one's own", own_weights},
    {"two losses, and what they were divided by", two_with_weights},
};

static wb_layer *new_model(void) {
    wb_seed(4);
    return wb_chain(wb_dense(2, 4, wb_tanh), wb_dense(4, CLASSES));
}

static wb_array *inputs(void) {
    return wb_sin(wb_mul_number(wb_iota_make(WB_F32, 1, 2, (int64_t[]){2, POINTS}), 0.7));
}

static wb_loader *loader_of(int64_t size) {
    return wb_loader_new(.x = inputs(), .y = wb_from(WB_I32, labels, POINTS), .batchsize = size);
}

static const int64_t sizes[] = {1, 2, 4, POINTS};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST_PARTS = 4 };

static void check(const char *what, double value, double wanted, int64_t size, int64_t parts) {
    if (!(fabs(value - wanted) <= 2e-6))
        fail_msg("%s is %.9g, not %.9g, by batches of %lld in %lld parts", what, value, wanted,
                 (long long)size, (long long)parts);
}

/* ---- losses ---- */

static bool note_mean(const wb_train_event *event) {
    *(double *)event->user = event->mean_loss;
    return true;
}

static double by_hand(wb_loss_fn *loss, wb_layer *model, wb_loader *data, wb_optimiser *o) {
    double sum = 0, weights = 0;
    for (wb_batch batch = {0}; wb_next(data, &batch);) {
        const double l = wb_item(wb_train_step(loss, model, &batch, NULL, o));
        const double weight = wb_item(wb_optimiser_divisor(o));
        sum += l * weight, weights += weight;
    }
    return sum / weights;
}

static void the_mean_of_an_epoch_is_over_what_counts(void **state) {
    const struct row *row = *state;
    wb_layer *model = new_model();
    const wb_batch all = {.x = inputs(), .y = wb_from(WB_I32, labels, POINTS)};
    const double wanted = wb_item(row->loss(model, &all, NULL));
    for (int i = 0; i < SIZES; i++)
        for (int64_t parts = 0; parts < MOST_PARTS; parts++) {
            double mean = NAN;
            wb_loader *data = loader_of(sizes[i]);
            wb_optimiser *o = wb_setup(wb_descent(.eta = 0), model, .micro_batches = parts);
            assert_int_equal(
                wb_train(row->loss, model, data, o, .on_epoch = note_mean, .user = &mean), WB_OK);
            check("the mean loss of wb_train", mean, wanted, sizes[i], parts);
            check("that of a loop", by_hand(row->loss, model, data, o), wanted, sizes[i], parts);
            wb_free(o), wb_free(data);
        }
    wb_free(model);
}

static void an_evaluation_is_over_what_counts(void **state) {
    const struct row *row = *state;
    wb_layer *model = new_model();
    const wb_batch all = {.x = inputs(), .y = wb_from(WB_I32, labels, POINTS)};
    const double wanted = wb_item(row->loss(model, &all, NULL));
    for (int i = 0; i < SIZES; i++) {
        wb_loader *data = loader_of(sizes[i]);
        const wb_evaluation e = wb_evaluate(model, data, .loss = row->loss, .ignore = NONE);
        assert_int_equal(e.status, WB_OK);
        check("the loss of wb_evaluate", e.loss, wanted, sizes[i], 0);
        wb_free(data);
    }
    wb_free(model);
}

/* ---- gradients ---- */

static const struct setting {
    const char *name;
    wb_dtype compute;
    double scale, tolerance;
} settings[] = {
    {"f32", .tolerance = 2e-6},
    {"bf16", .compute = WB_BF16, .tolerance = 2e-2},
    {"f16", .compute = WB_F16, .tolerance = 2e-3},
    {"f16 with a scale", .compute = WB_F16, .scale = 1024, .tolerance = 2e-3},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static wb_layer *after_a_step(const struct row *row, const struct setting *s, int64_t parts) {
    wb_layer *model = new_model();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model, .micro_batches = parts,
                               .compute = s->compute, .loss_scale = s->scale);
    const wb_batch all = {.x = inputs(), .y = wb_from(WB_I32, labels, POINTS)};
    assert_non_null(wb_train_step(row->loss, model, &all, NULL, o));
    assert_int_equal(wb_skipped(o), 0);
    wb_free(o);
    return model;
}

static void micro_batches_make_the_step_of_the_whole(void **state) {
    const struct row *row = *state;
    for (int k = 0; k < SETTINGS; k++) {
        wb_layer *whole = after_a_step(row, &settings[k], 0);
        for (int64_t parts = 1; parts <= POINTS + 1; parts += 3) {
            wb_layer *cut = after_a_step(row, &settings[k], parts);
            char where[64];
            for (wb_parameter p = {0}, q = {0};
                 wb_next_parameter(whole, &p) && wb_next_parameter(cut, &q);)
                if (!wb_approx(q.array, p.array, 0, settings[k].tolerance, where, sizeof where))
                    fail_msg("%s, %lld parts: %s at %s", settings[k].name, (long long)parts, p.path,
                             where);
            wb_free(cut);
        }
        wb_free(whole);
    }
}

/* ---- what is said twice, wrongly, or by several ---- */

static wb_array *two_means(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_add(ignored_labels(model, batch, user), masked(model, batch, user));
}

static wb_array *said_twice(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = wb_divided_by(mean_of_own(model, batch, user), wb_number(5));
    return wb_divided_by(l, wb_number(3));
}

static void the_last_word_counts_and_two_means_are_none(void **state) {
    (void)state;
    const struct {
        wb_loss_fn *loss;
        double wanted;
    } cases[] = {{mean_of_own, POINTS}, {ignored_labels, 6}, {two_means, POINTS}, {said_twice, 3}};
    wb_layer *model = new_model();
    const wb_batch all = {.x = inputs(), .y = wb_from(WB_I32, labels, POINTS)};
    for (int i = 0; i < 4; i++)
        for (int64_t parts = 0; parts < 2; parts++) {
            wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = parts);
            assert_non_null(wb_train_step(cases[i].loss, model, &all, NULL, o));
            assert_true(wb_item(wb_optimiser_divisor(o)) == cases[i].wanted);
            wb_free(o);
        }
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_array *l = wb_number(1);
    assert_ptr_equal(wb_divided_by(l, wb_number(2)), l); /* nobody asks */
    assert_null(wb_divided_by(l, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_divided_by: the divisor is NULL");
    assert_null(wb_divided_by(NULL, l));
    assert_error(WB_ERROR_ARGUMENT, "wb_divided_by: the loss is NULL");
    assert_null(wb_divided_by(l, wb_vector(1, 2)));
    assert_error(WB_ERROR_SHAPE, "wb_divided_by: the divisor must be one number, got f32 of (2)");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(the_last_word_counts_and_two_means_are_none),
        TEST(mistakes),
    };
    ADD_ROWS(&tests, rows, the_mean_of_an_epoch_is_over_what_counts);
    ADD_ROWS(&tests, rows, an_evaluation_is_over_what_counts);
    ADD_ROWS(&tests, rows, micro_batches_make_the_step_of_the_whole);
    ADD_TESTS(&tests, others);
    return run_test_list("train/test_cuts", &tests, NULL, NULL);
}
