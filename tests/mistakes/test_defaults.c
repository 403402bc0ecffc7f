/* What is written counts, what is not is the default: zeros, switches that are on by default, descs
 * as variables, within others, and without their macro. */
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/support.h"

/* Numbers that the model trains. */
static int64_t count_of(wb_layer *model) {
    wb_array *flat = wb_destructure(model);
    assert_non_null(flat);
    return wb_count(flat);
}

/* ---- zeros ---- */

static wb_array *parameter_sum(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_get(model, "weight"));
}

/* How far two steps of the rule move one parameter from 0, with a gradient of 1. */
static double moved_by(wb_rule rule) {
    wb_layer *model = wb_dense(1, 1, .bias = false, .given_weight = wb_zeros(WB_F32, 1, 1));
    wb_optimiser *o = wb_setup(rule, model);
    const wb_batch none = {.x = NULL};
    for (int i = 0; i < 2; i++)
        assert_non_null(wb_train_step(parameter_sum, model, &none, NULL, o));
    const double x = wb_item(wb_get(model, "weight"));
    wb_free(o), wb_free(model);
    return x;
}

static void a_sweep_over_zero(void **state) {
    (void)state;
    const double rho[] = {0, .5, .9}, wanted[] = {-2, -2.5, -2.9};
    for (int i = 0; i < 3; i++)
        assert_true(is_near(moved_by(wb_momentum(.eta = 1, .rho = rho[i])), wanted[i], 1e-6));
    assert_true(moved_by(wb_descent(.eta = 0)) == 0);
    assert_true(moved_by(wb_adam(.eta = 0)) == 0);
    assert_true(moved_by(wb_rule_chain(wb_clip_grad(.delta = 0), wb_descent())) == 0);
    assert_true(is_near(moved_by(wb_rule_chain(wb_sign_decay(), wb_descent())), -.1999, 1e-4));
}

static void zeros_of_losses(void **state) {
    (void)state;
    wb_array *p = wb_vector_of(WB_F64, .25, .5), *y = wb_vector_of(WB_F64, 0, 1);
    assert_true(is_near(wb_item(wb_binary_focal_loss(p, y, .gamma = 0)),
                        wb_item(wb_binarycrossentropy(p, y)), 1e-12));
    assert_true(wb_item(wb_binary_focal_loss(p, y)) <
                wb_item(wb_binary_focal_loss(p, y, .gamma = 0)));
    assert_true(isinf(wb_item(
        wb_binarycrossentropy(wb_vector_of(WB_F64, 0), wb_vector_of(WB_F64, 1), .eps = 0))));
    wb_array *labels = wb_vector_of(WB_I32, 0, 1), *logits = wb_normal(WB_F32, 3, 2);
    const double second =
        wb_item(wb_logitcrossentropy(wb_slice(logits, 1, 1, 2, 1), wb_vector_of(WB_I32, 1)));
    assert_true(wb_item(wb_logitcrossentropy(logits, labels, .ignore = 0)) == second);
    wb_array *steps = wb_normal(WB_F32, 3, 4), *word = wb_vector_of(WB_I32, 1);
    const double first = wb_item(wb_ctc_loss(steps, word, .blank = 0));
    const double last = wb_item(wb_ctc_loss(steps, word));
    assert_true(first != last && last == wb_item(wb_ctc_loss(steps, word, .blank = 2)));
    assert_true(last == wb_item(wb_ctc_loss(steps, word, .blank = -1)));
}

static int64_t warnings;
static void count_warning(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN && strstr(line, ".epochs is 0: nothing is trained")) warnings++;
}

static void no_epochs_train_nothing(void **state) {
    (void)state;
    wb_layer *model = wb_dense(1, 1);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 4));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    const double before = wb_item(wb_get(model, "weight"));
    wb_log_to(count_warning, NULL);
    assert_int_equal(wb_train(parameter_sum, model, data, o, .epochs = 0), WB_OK);
    wb_log_to(NULL, NULL);
    assert_true(wb_item(wb_get(model, "weight")) == before);
    assert_int_equal(warnings, 1);
    assert_int_equal(wb_train(parameter_sum, model, data, o), WB_OK);
    assert_true(wb_item(wb_get(model, "weight")) != before);
    wb_free(o), wb_free(data), wb_free(model);
}

/* ---- switches ---- */

static void a_switch_is_on_unless_it_is_written(void **state) {
    (void)state;
    bool bias = false;
    wb_layer *layers[] = {wb_dense(2, 3),     wb_dense(2, 3, .bias = bias),
                          wb_batchnorm(4),    wb_batchnorm(4, .affine = false),
                          wb_instancenorm(4), wb_instancenorm(4, .affine = true),
                          wb_lstm_cell(2, 3), wb_lstm_cell(2, 3, .bias_h = true),
                          wb_layernorm({4}),  wb_layernorm({4}, .bias = false)};
    const int64_t parameters[] = {9, 6, 8, 0, 0, 8, 72, 84, 8, 4};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        assert_non_null(layers[i]);
        assert_int_equal(count_of(layers[i]), parameters[i]);
        wb_free(layers[i]);
    }
}

/* ---- descs that are variables, and descs in descs ---- */

static void a_desc_as_a_variable(void **state) {
    (void)state;
    wb_dense_desc d = WB_DESC(dense, 2, 3, .bias = false);
    static const wb_conv_desc table[] = {WB_INIT(conv, {3, 3}, 1, 2)};
    wb_layer *dense = wb_dense_make(d), *conv = wb_conv_make(table[0]);
    assert_int_equal(count_of(dense), 6);
    assert_int_equal(count_of(conv), 20);
    wb_free(dense), wb_free(conv);
}

static void a_desc_without_its_defaults_is_refused(void **state) {
    (void)state;
    wb_scope_open();
    assert_null(wb_dense_make((wb_dense_desc){.in = 2, .out = 3}));
    assert_error(WB_ERROR_ARGUMENT, "Dense: the desc lacks its defaults: make it by WB_DESC");
    wb_array *x = wb_ones(WB_F32, 2);
    assert_null(wb_mse_make((wb_loss_desc){.p = x, .y = x}));
    assert_error(WB_ERROR_ARGUMENT, "mse: the desc lacks its defaults");
    wb_layer *model = wb_dense(1, 1);
    assert_null(wb_setup(wb_adam_make((wb_adam_desc){.eta = 0.1}), model));
    assert_error(WB_ERROR_ARGUMENT, "Adam: the desc lacks its defaults");
    assert_null(wb_loader_make((wb_loader_desc){.x = x}));
    assert_error(WB_ERROR_ARGUMENT, "loader: the desc lacks its defaults");
    assert_null(wb_schedule_one_cycle_make((wb_one_cycle_desc){.n = 10, .max = 1}));
    assert_error(WB_ERROR_ARGUMENT, "wb_schedule_one_cycle: the desc lacks its defaults");
    wb_optimiser *o = wb_setup(wb_descent(), model);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 4));
    wb_plateau bare = {.factor = .1};
    assert_int_equal(wb_train(parameter_sum, model, data, o, .plateau = bare), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_train: plateau lacks its defaults: write .plateau = "
                                    "WB_PLATEAU(), with settings in the brackets");
    assert_int_equal(wb_train(parameter_sum, model, data, o, .plateau = WB_PLATEAU(.factor = .1)),
                     WB_OK);
    wb_free(data), wb_free(o), wb_free(model);
    wb_scope_close();
}

/* The first member is no setting. */
static void settings_by_position_are_refused(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        const wb_descent_desc d = {.start_ = (wb_start)n, .eta = .1};
        wb_layer *model = wb_dense(1, 1);
        assert_null(wb_setup(wb_descent_make(d), model));
        assert_error(WB_ERROR_ARGUMENT, "Descent: the desc lacks its defaults");
        wb_free(model);
    }
}

static wb_array *loss_of_pairs(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_status train_with(wb_train_desc desc) {
    wb_layer *model = wb_dense(1, 1);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 1, 4), .y = wb_ones(WB_F32, 1, 4));
    wb_optimiser *o = wb_setup(wb_descent(), model);
    desc.loss = loss_of_pairs, desc.model = model, desc.loader = desc.validation = data;
    desc.optimiser = o;
    const wb_status status = wb_train_make(desc);
    assert_int_equal(wb_step_count(o), status == WB_OK ? 4 : 0);
    wb_free(o), wb_free(data), wb_free(model);
    return status;
}

/* One that is left out is told from one that is all zeros; settings are checked before a step. */
static void descs_within_descs_are_left_out_or_whole(void **state) {
    (void)state;
    const struct {
        wb_train_desc desc;
        const char *says; /* NULL: it trains */
    } rows[] = {
        {WB_DESC(train, NULL), NULL},
        {WB_DESC(train, .metrics = WB_DESC(evaluate, .threshold = 0)), NULL},
        {WB_DESC(train, .plateau = WB_PLATEAU(.patience = 0)), NULL},
        {WB_DESC(train, .metrics = {.threshold = 0}), "wb_train: metrics lacks its defaults: write "
                                                      ".metrics = WB_DESC(evaluate, )"},
        {WB_DESC(train, .metrics = {.k = 2}), "metrics lacks its defaults"},
        {WB_DESC(train, .metrics.k = 2), "metrics lacks its defaults"},
        {WB_DESC(train, .plateau = {.patience = 0}), "plateau lacks its defaults"},
        {WB_DESC(train, .plateau.patience = 2), "plateau lacks its defaults"},
        {WB_DESC(train, .plateau = WB_PLATEAU(.factor = 2)),
         "wb_train: plateau: factor must be above 0 and below 1, got 2"},
        {WB_DESC(train, .plateau = WB_PLATEAU(.patience = -1)), "must not be negative, got -1, 0"},
        {WB_DESC(train, .metrics = WB_DESC(evaluate, .k = 0)),
         "wb_train: metrics: k must be positive, got 0"},
        {WB_DESC(train, .metrics = WB_DESC(evaluate, .threshold = NAN)),
         "wb_train: metrics: threshold must be a number, got NaN"},
        {WB_DESC(train, .metrics = WB_DESC(evaluate, .task = WB_TASK_NUMBERS, .ignore = 0)),
         "wb_train: metrics: ignore is a label of classes, but the task is numbers, got 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const wb_status status = train_with(rows[i].desc);
        if (status == WB_OK && !rows[i].says) continue;
        assert_error(WB_ERROR_ARGUMENT, rows[i].says ? rows[i].says : "no error");
    }
    const wb_plateau bare = {.patience = 3};
    wb_plateau p = bare;
    wb_layer *model = wb_dense(1, 1);
    wb_optimiser *o = wb_setup(wb_descent(), model);
    assert_int_equal(wb_plateau_step(&p, o, 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_plateau_step: the plateau lacks its defaults: write "
                                    "wb_plateau p = WB_PLATEAU(.patience = 3)");
    wb_free(o), wb_free(model);
}

/* ---- paddings ---- */

static void paddings_of_all_and_of_each(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 5, 6, 1, 1);
    assert_sizes(wb_maxpool_op(x, .kernel = {3}, .stride = {1}, .pad = WB_ALL(1)), 5, 6, 1, 1);
    assert_sizes(wb_maxpool_op(x, .kernel = {3}, .stride = {1}, .pad = WB_EACH(1, 0)), 5, 4, 1, 1);
    assert_sizes(wb_maxpool_op(x, .kernel = {3}, .stride = {1}, .pad = WB_EACH(0, 1)), 3, 6, 1, 1);
    wb_layer *conv = wb_conv({3, 3}, 1, 1, .pad = WB_EACH(1, 0), .stride = WB_ALL(1));
    assert_sizes(wb_apply(conv, x), 5, 4, 1, 1);
    wb_free(conv);
    conv = wb_conv({3, 3}, 1, 1, .pad_more = WB_EACH(1, 0));
    assert_sizes(wb_apply(conv, x), 4, 4, 1, 1);
    wb_free(conv);
    assert_sizes(wb_maxpool_op(x, .kernel = {3}, .stride = {1}, .pad_more = WB_EACH(0, 2)), 3, 6, 1,
                 1);
    assert_null(wb_conv({3, 3}, 1, 1, .pad = {1}));
    assert_error(WB_ERROR_ARGUMENT,
                 "Conv: pad is given for 1 of 2 dimensions: write WB_ALL(1) or WB_EACH(1, 0)");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_sweep_over_zero),
                                       TEST(zeros_of_losses),
                                       TEST(no_epochs_train_nothing),
                                       TEST(a_switch_is_on_unless_it_is_written),
                                       TEST(a_desc_as_a_variable),
                                       TEST(a_desc_without_its_defaults_is_refused),
                                       TEST(settings_by_position_are_refused),
                                       TEST(descs_within_descs_are_left_out_or_whole),
                                       TEST(paddings_of_all_and_of_each)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
