/* Rule 19: state writes belong to the step: computed with the next update, or when the scope
 * closes. */
#include <weber/gradient.h>

#include "array/state.h"
#include "evaluate/evaluate.h"
#include "values/modes.h"

/* y = w x, and in training: mean = mean / 2 + mean(x) / 2, drift = drift + mean. */
typedef struct Watcher {
    wb_layer layer;
    wb_array *w, *mean, *drift;
} Watcher;

static wb_array *watch(wb_layer *layer, wb_array *x) {
    Watcher *m = (Watcher *)(void *)layer;
    if (wb_is_active(layer)) {
        wb_array *before = m->mean;
        wb_array *mean = wb_add(wb_mul_number(before, 0.5), wb_mul_number(wb_mean(x), 0.5));
        if (wb_state_write(&m->mean, mean) != WB_OK) return NULL;
        wb_array *drift = wb_add(m->drift, mean);
        if (wb_state_write(&m->drift, drift) != WB_OK) return NULL;
    }
    return wb_mul(x, m->w);
}

WB_FUNCTOR(Watcher, watch, WB_ARRAY_FIELD(Watcher, w), WB_STATE_FIELD(Watcher, mean),
           WB_STATE_FIELD(Watcher, drift));

static wb_layer *watcher(wb_dtype dtype) {
    Watcher *m = wb_new(Watcher);
    assert_non_null(m);
    m->w = wb_keep(wb_scalar(dtype, 1));
    m->mean = wb_keep(wb_scalar(dtype, 0));
    m->drift = wb_keep(wb_scalar(dtype, 0));
    assert_int_equal(wb_eval(m->w, m->mean, m->drift), WB_OK);
    return &m->layer;
}

static void assert_state(wb_layer *model, const char *mean_path, double mean, double drift) {
    char path[64];
    (void)snprintf(path, sizeof path, "%smean", mean_path);
    assert_value(wb_get(model, path), mean, 1e-6);
    (void)snprintf(path, sizeof path, "%sdrift", mean_path);
    assert_value(wb_get(model, path), drift, 1e-6);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *y = wb_apply(model, batch->x);
    if (user) y = wb_add(y, wb_apply(model, wb_mul_number(batch->x, 3))); /* twice in one loss */
    return wb_mean(wb_square(y));
}

/* x = 2; user not NULL: and 6. */
static void step(wb_optimiser *o, wb_layer *model, void *user, int64_t *evaluations) {
    const wb_batch batch = {.x = wb_copy(wb_full(WB_F32, 2, 10))};
    wb_scope_open();
    wb_gradients *g;
    const int64_t before = wb_plan_status().evaluations;
    assert_non_null(wb_withgradient(loss, model, &batch, user, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    *evaluations = wb_plan_status().evaluations - before;
    assert_int_equal(wb_scope_close(), WB_OK);
    *evaluations += wb_plan_status().evaluations - before - *evaluations;
}

static void an_update_computes_them_in_its_plan(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0), model);
    int64_t evaluations;
    step(o, model, NULL, &evaluations);
    assert_state(model, "", 1, 1);
    step(o, model, NULL, &evaluations);
    assert_state(model, "", 1.5, 2.5);
    if (!is_eager()) assert_int_equal(evaluations, 1);
    assert_int_equal(wb_parameter_count(model), 1);
    wb_free(o), wb_free(model);
}

static void two_applications_in_one_loss_follow_each_other(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0), model);
    int64_t evaluations;
    step(o, model, &evaluations, &evaluations);
    assert_state(model, "", 0.5 * 1 + 3, 1 + 3.5); /* mean: 1, then 3.5 */
    if (!is_eager()) assert_int_equal(evaluations, 1);
    wb_free(o), wb_free(model);
}

static void a_closing_scope_computes_them_too(void **state) {
    (void)state;
    wb_layer *model = wb_chain(watcher(WB_F32), wb_fn(wb_tanh));
    (void)wb_training(true);
    wb_scope_open();
    wb_array *y = wb_keep(wb_apply(model, wb_full(WB_F32, 2, 10)));
    const int64_t evaluations = wb_plan_status().evaluations;
    assert_int_equal(wb_scope_close(), WB_OK);
    (void)wb_training(false);
    if (!is_eager()) assert_int_equal(wb_plan_status().evaluations, evaluations + 1); /* and y */
    assert_state(model, "layers.1.", 1, 1);
    wb_free(y);
    wb_array *mean = wb_get(model, "layers.1.mean");
    assert_true(wb_is_evaluated(mean));
    assert_int_equal(mean->ninputs, 0);
    wb_free(model);
}

static void two_thousand_steps_leave_nothing_behind(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    (void)wb_training(true);
    wb_live_counts first = {0};
    for (int i = 0; i < 2000; i++) {
        wb_scope_open();
        (void)wb_apply(model, wb_full(WB_F32, 2, 10));
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 2) first = live_now();
    }
    (void)wb_training(false);
    assert_int_equal(live_now().arrays, first.arrays);
    assert_int_equal(live_now().buffers, first.buffers);
    assert_value(wb_get(model, "mean"), 2, 1e-6);
    wb_free(model);
}

/* y = w x, and in training mean = mean / 2 + mean(x) / 2, through public functions alone. */
typedef struct Averager {
    wb_layer layer;
    wb_array *w, *mean;
} Averager;

static wb_array *average(wb_layer *layer, wb_array *x) {
    wb_array *now = wb_add(wb_get(layer, "mean"), wb_mean(x));
    if (wb_is_active(layer) && wb_set(layer, "mean", wb_mul_number(now, 0.5)) != WB_OK) return NULL;
    return wb_mul(x, ((Averager *)(void *)layer)->w);
}

WB_FUNCTOR(Averager, average, WB_ARRAY_FIELD(Averager, w), WB_STATE_FIELD(Averager, mean));

static void a_layer_of_ones_own_sets_its_state(void **state) {
    (void)state;
    Averager *m = wb_new(Averager);
    m->w = wb_keep(wb_scalar(WB_F32, 1));
    m->mean = wb_keep(wb_scalar(WB_F32, 0));
    wb_layer *model = wb_chain(&m->layer, wb_fn(wb_tanh));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0), model);
    wb_live_counts first = {0};
    int64_t evaluations;
    for (int i = 0; i < 20; i++) {
        wb_scope_open(); /* of the batch */
        step(o, model, NULL, &evaluations);
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 2) first = live_now();
    }
    if (!is_eager()) assert_int_equal(evaluations, 1);
    assert_int_equal(live_now().arrays, first.arrays);
    assert_int_equal(live_now().buffers, first.buffers);
    assert_value(wb_get(model, "layers.1.mean"), 2, 1e-5);
    assert_int_equal(wb_set(model, "layers.1.mean", wb_scalar(WB_F32, 5)), WB_OK);
    assert_value(m->mean, 5, 0); /* not while it is applied: at once */
    wb_free(o), wb_free(model);
}

static void test_mode_writes_none(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    wb_scope_open();
    assert_value(wb_sum(wb_apply(model, wb_full(WB_F32, 2, 10))), 20, 1e-6);
    assert_int_equal(wb_state_pending(1, (wb_array *[1]){NULL}), 0);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_state(model, "", 0, 0);
    wb_free(model);
}

static wb_array *apply_to(void *context, int count, wb_array *const *arrays) {
    assert_int_equal(count, 1);
    return wb_apply(context, arrays[0]);
}

static void the_gradient_checker_drops_them(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F64);
    wb_array *x = wb_full(WB_F64, 2, 5);
    (void)wb_training(true);
    assert_int_equal(wb_gradient_check(apply_to, model, 1, &x, 2, 0), WB_OK);
    (void)wb_training(false);
    assert_int_equal(wb_state_pending(1, (wb_array *[1]){NULL}), 0);
    assert_state(model, "", 0, 0);
    wb_free(model);
}

/* A model that goes before its scope closes takes its writes along. */
static void a_model_that_is_freed_takes_its_writes_along(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    (void)wb_training(true);
    wb_scope_open();
    (void)wb_apply(model, wb_full(WB_F32, 2, 10));
    (void)wb_training(false);
    wb_free(model);
    assert_int_equal(wb_scope_close(), WB_OK);
}

/* Who holds the old statistics keeps them. */
static void held_statistics_keep_their_value(void **state) {
    (void)state;
    wb_layer *model = watcher(WB_F32);
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0), model);
    int64_t evaluations;
    wb_array *held[3];
    for (int i = 0; i < 3; i++) {
        held[i] = wb_keep(wb_get(model, "mean"));
        step(o, model, NULL, &evaluations);
    }
    const double wanted[] = {0, 1, 1.5};
    for (int i = 0; i < 3; i++) {
        assert_value(held[i], wanted[i], 1e-6);
        wb_free(held[i]);
    }
    wb_free(o), wb_free(model);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_update_computes_them_in_its_plan),
        TEST(two_applications_in_one_loss_follow_each_other),
        TEST(a_closing_scope_computes_them_too),
        TEST(two_thousand_steps_leave_nothing_behind),
        TEST(a_layer_of_ones_own_sets_its_state),
        TEST(test_mode_writes_none),
        TEST(the_gradient_checker_drops_them),
        TEST(a_model_that_is_freed_takes_its_writes_along),
        TEST(held_statistics_keep_their_value),
    };
    return cmocka_run_group_tests_name("values 19", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
