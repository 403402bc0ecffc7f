/* src/optimise/precision.c */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/files.h"
#include "support/numbers.h"
#include "support/scoped.h"

/* ---- computing in halves ---- */

enum { STEPS = 30 };

typedef struct seen {
    wb_dtype wanted;
    int calls;
} seen;

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    seen *s = user;
    for (wb_parameter p = {0}; s && wb_next_parameter(model, &p);)
        assert_int_equal(wb_dtype_of(p.array), p.is_trainable ? s->wanted : WB_F32);
    if (s) s->calls++;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static wb_batch batch_of(int k) {
    float x[6][3];
    int32_t labels[6];
    for (int i = 0; i < 6; i++) {
        labels[i] = (i + k) % 4;
        for (int j = 0; j < 3; j++) x[i][j] = (float)((i * 3 + j * 5 + k) % 7) / 7;
    }
    return (wb_batch){.x = wb_from(WB_F32, x, 3, 6), .y = wb_from(WB_I32, labels, 6)};
}

static wb_layer *network(void) {
    wb_seed(3);
    return wb_chain(wb_dense(3, 16, wb_tanh), wb_batchnorm(16), wb_dense(16, 4));
}

static double train(wb_optimiser *o, wb_layer *model, bool whole, wb_dtype compute) {
    seen s = {.wanted = compute};
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        wb_scope_open();
        const wb_batch batch = batch_of(0);
        wb_gradients *g;
        wb_array *l = whole ? wb_train_step(loss, model, &batch, &s, o)
                            : wb_withgradient_for(o, loss, model, &batch, &s, &g);
        if (!whole) {
            for (wb_parameter p = {0}; wb_next_gradient(g, &p);)
                assert_int_equal(wb_dtype_of(p.gradient), WB_F32);
            assert_int_equal(wb_update(o, model, g), WB_OK);
        }
        assert_int_equal(wb_dtype_of(l), WB_F32);
        last = wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_int_equal(s.calls, STEPS);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        assert_int_equal(wb_dtype_of(p.array), WB_F32);
    return last;
}

static void halves_learn_as_well(void **state) {
    (void)state;
    double wanted = 0;
    const struct {
        const char *name;
        wb_dtype compute;
        double scale;
        bool apart;
    } rows[] = {
        {"f32", WB_F32, 0, false},
        {"f32, scaled", WB_F32, 1024, false},
        {"bf16", WB_BF16, 0, false},
        {"f16", WB_F16, 0, false},
        {"f16, scaled", WB_F16, 1024, false},
        {"f16, scaled, apart", WB_F16, 1024, true},
        {"bf16, apart", WB_BF16, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = network();
        wb_optimiser *o = wb_setup(wb_adam(.eta = 0.05), model, .compute = rows[i].compute,
                                   .loss_scale = rows[i].scale);
        const double got = train(o, model, !rows[i].apart, rows[i].compute);
        if (i == 0) wanted = got;
        if (!(fabs(got - wanted) < 0.05)) fail_msg("%s: %g, not %g", rows[i].name, got, wanted);
        assert_int_equal(wb_skipped(o), 0);
        wb_free(o), wb_free(model);
    }
}

static void it_stays_one_plan_in_place(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER") || getenv("WEBER_FUSE")) skip();
    wb_layer *model = network();
    wb_optimiser *o = wb_setup(wb_adam(), model, .compute = WB_F16, .loss_scale = 32768,
                               .loss_scale_interval = 2, .clip_total_norm = 1);
    wb_plan_counts before = {0};
    for (int i = 0; i < 8; i++) {
        if (i == 3) before = wb_plan_status();
        wb_scope_open();
        const wb_batch batch = batch_of(i);
        assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    const wb_plan_counts after = wb_plan_status();
    assert_int_equal(after.misses, before.misses);
    assert_int_equal(after.missed_donations, before.missed_donations);
    assert_int_equal(after.evaluations - before.evaluations, 5);
    wb_free(o), wb_free(model);
}

/* Whatever ends the loss, the model has its own arrays again. */
static wb_array *failing(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_apply(model, wb_transpose(batch->x));
}

static void a_failing_loss_leaves_the_model(void **state) {
    (void)state;
    wb_layer *model = network();
    wb_array *w = wb_get(model, "layers.1.weight");
    wb_optimiser *o = wb_setup(wb_adam(), model, .compute = WB_F16);
    const wb_batch batch = batch_of(0);
    assert_null(wb_train_step(failing, model, &batch, NULL, o));
    assert_error(WB_ERROR_SHAPE, "Dense(3 => 16), layer 1 of Chain");
    assert_ptr_equal(wb_get(model, "layers.1.weight"), w);
    wb_free(o), wb_free(model);
}

static wb_array *tied(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    assert_ptr_equal(wb_get(model, "1"), wb_get(model, "2"));
    assert_int_equal(wb_dtype_of(wb_get(model, "1")), *(wb_dtype *)user);
    return wb_sum(wb_mul(wb_get(model, "1"), wb_get(model, "2")));
}

static void ties_stay(void **state) {
    (void)state;
    wb_array *w = wb_vector(1, 2);
    wb_layer *model = wb_tree(w, w);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model, .compute = WB_BF16);
    wb_dtype wanted = WB_BF16;
    assert_non_null(wb_train_step(tied, model, &(const wb_batch){.x = NULL}, &wanted, o));
    assert_values(wb_get(model, "1"), 0, 0.5, 1);
    assert_ptr_equal(wb_get(model, "1"), wb_get(model, "2"));
    wb_free(o), wb_free(model);
}

/* ---- the scale ---- */

/* d / dw = 1e-9, which f16 does not have, times user's number */
static wb_array *tiny(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    return wb_mul_number(wb_sum(wb_get(model, "1")), 1e-9 * *(double *)user);
}

static void small_gradients_do_not_vanish(void **state) {
    (void)state;
    double one = 1;
    wb_layer *model = wb_tree(wb_zeros(WB_F32, 2));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1), model, .compute = WB_F16, .loss_scale = 32768);
    assert_non_null(wb_train_step(tiny, model, &(const wb_batch){.x = NULL}, &one, o));
    assert_true(fabs(wb_at(wb_get(model, "1"), 0) + 1e-9) < 1e-11);
    wb_free(o), wb_free(model);
}

/* f16 parameters: their gradients come back in f32. */
static void parameters_that_are_halves(void **state) {
    (void)state;
    double one = 1;
    wb_layer *model = wb_tree(wb_zeros(WB_F16, 2));
    wb_optimiser *o =
        wb_setup(wb_mixed_precision(wb_descent(.eta = 1)), model, .loss_scale = 32768);
    wb_gradients *g;
    assert_non_null(wb_withgradient_for(o, tiny, model, &(const wb_batch){.x = NULL}, &one, &g));
    assert_int_equal(wb_dtype_of(wb_gradients_get(g, "1")), WB_F32);
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_true(fabs(wb_at(wb_optimiser_get(o, "1", "master"), 0) + 1e-9) < 1e-11);
    wb_free(o), wb_free(model);
}

/* gradient user's number */
static wb_array *straight(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    wb_array *w = wb_get(model, "1"), *zero = wb_sub(w, wb_stop_gradient(w));
    return wb_sum(wb_mul(zero, wb_late(*(double *)user))); /* the loss itself is finite */
}

/* Good steps and bad ones; A25: where a gradient is no number nothing changes. */
static void the_scale_follows_the_gradients(void **state) {
    (void)state;
    const double good = 1, bad = (double)NAN, large = 1e38;
    const struct {
        double gradient, scale;
    } rows[] = {{good, 8}, {good, 8},  {good, 16}, {good, 16}, {bad, 8},  {good, 8},
                {good, 8}, {large, 4}, {good, 4},  {good, 4},  {good, 8}, {bad, 4},
                {bad, 2},  {bad, 1},   {bad, 1},   {good, 1},  {good, 1}, {good, 2}};
    wb_layer *model = wb_tree(wb_zeros(WB_F32, 1));
    wb_optimiser *o =
        wb_setup(wb_descent(.eta = 1), model, .loss_scale = 8, .loss_scale_interval = 3);
    int64_t steps = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double gradient = rows[i].gradient;
        wb_scope_open();
        assert_non_null(wb_train_step(straight, model, &(const wb_batch){.x = NULL}, &gradient, o));
        steps += gradient == good;
        assert_int_equal(wb_step_count(o), steps);
        assert_int_equal(wb_skipped(o), (int64_t)i + 1 - steps);
        assert_value(wb_get(model, "1"), -(double)steps, 0);
        const double scale = wb_item(wb_loss_scale(o));
        if (scale != rows[i].scale) fail_msg("step %zu: %g, not %g", i, scale, rows[i].scale);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_free(o), wb_free(model);
}

static void it_does_not_grow_for_ever(void **state) {
    (void)state;
    double gradient = 1e-9;
    wb_layer *model = wb_tree(wb_zeros(WB_F32, 1));
    wb_optimiser *o = wb_setup(wb_descent(), model, .loss_scale = 0x1p23, .loss_scale_interval = 1);
    for (int i = 0; i < 3; i++)
        assert_non_null(wb_train_step(straight, model, &(const wb_batch){.x = NULL}, &gradient, o));
    assert_value(wb_loss_scale(o), 0x1p24, 0);
    wb_free(o), wb_free(model);
}

static void a_file_has_the_scale(void **state) {
    (void)state;
    double gradients[] = {1, 1, (double)NAN, 1, 1, 1, 1};
    wb_layer *models[2];
    wb_optimiser *o[2];
    for (int k = 0; k < 2; k++) {
        models[k] = wb_tree(wb_zeros(WB_F32, 1));
        o[k] = wb_setup(wb_descent(.eta = 1), models[k], .loss_scale = 8, .loss_scale_interval = 4);
    }
    for (int i = 0; i < 7; i++) {
        assert_non_null(
            wb_train_step(straight, models[0], &(const wb_batch){.x = NULL}, &gradients[i], o[0]));
        if (i > 4)
            assert_non_null(wb_train_step(straight, models[1], &(const wb_batch){.x = NULL},
                                          &gradients[i], o[1]));
        if (i != 4) continue;
        const char *path = path_of("scaled.npz");
        assert_int_equal(wb_save_named(path, {"model", models[0]}, {"o", o[0]}), WB_OK);
        assert_int_equal(wb_load_named(path, {"model", models[1]}, {"o", o[1]}), WB_OK);
    }
    assert_value(wb_loss_scale(o[0]), 8, 0);
    assert_value(wb_loss_scale(o[1]), 8, 0);
    assert_int_equal(wb_skipped(o[1]), 1);
    for (int k = 0; k < 2; k++) wb_free(o[k]), wb_free(models[k]);
}

static void it_moves_with_the_optimiser(void **state) {
    (void)state;
    double gradient = 1;
    wb_layer *model = wb_tree(wb_zeros(WB_F32, 1));
    wb_optimiser *o = wb_setup(wb_adam(), model, .loss_scale = 8, .loss_scale_interval = 1);
    const wb_device *there = wb_get_device("checked", 0);
    wb_clear_error();
    if (there) assert_int_equal(wb_move(there, o), WB_OK);
    assert_non_null(wb_train_step(straight, model, &(const wb_batch){.x = NULL}, &gradient, o));
    if (there) assert_int_equal(wb_move(wb_cpu_device(), model), WB_OK); /* alone */
    assert_value(wb_loss_scale(o), 16, 0);
    wb_free(o), wb_free(model);
}

/* ---- mistakes ---- */

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1);
    assert_null(wb_setup(wb_adam(), model, .compute = WB_F64));
    assert_error(WB_ERROR_DTYPE, "wb_setup: compute must be f16 or bf16, got f64");
    assert_null(wb_setup(wb_adam(), model, .loss_scale = 0.5));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: loss_scale must be from 1 to 2^24, got 0.5");
    assert_null(wb_setup(wb_adam(), model, .loss_scale = (double)NAN));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: loss_scale must be from 1 to 2^24, got nan");
    assert_null(wb_setup(wb_adam(), model, .loss_scale_interval = -1));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: loss_scale_interval must be positive, got -1");
    wb_optimiser *o = wb_setup(wb_adam(), model);
    assert_null(wb_loss_scale(o));
    assert_false(wb_failed());
    wb_gradients *g;
    assert_null(wb_withgradient_for(NULL, loss, model, NULL, NULL, &g));
    assert_error(WB_ERROR_ARGUMENT, "wb_withgradient_for: the optimiser is NULL");
    assert_null(g);
    assert_null(wb_withgradient_for(o, NULL, model, NULL, NULL, &g));
    assert_error(WB_ERROR_ARGUMENT, "wb_withgradient_for: the loss function is NULL");
    wb_free(o), wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(halves_learn_as_well),
        TEST(it_stays_one_plan_in_place),
        TEST(a_failing_loss_leaves_the_model),
        TEST(ties_stay),
        TEST(small_gradients_do_not_vanish),
        TEST(parameters_that_are_halves),
        TEST(the_scale_follows_the_gradients),
        TEST(it_does_not_grow_for_ever),
        TEST(a_file_has_the_scale),
        TEST(it_moves_with_the_optimiser),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
