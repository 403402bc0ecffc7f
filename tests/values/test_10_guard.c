/* Rule 10: a step has a guard: where the loss is not finite, parameters and state keep their
 * values. */
#include <math.h>

#include <weber.h>

#include "support/numbers.h"
#include "values/modes.h"

/* sum of p . x: the gradient is x. */
static wb_array *along(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_mul(wb_get(model, "1"), batch->x));
}

static wb_status step(wb_optimiser *o, wb_layer *model, double x1, double x2) {
    wb_scope_open();
    const wb_batch batch = {.x = wb_vector((float)x1, (float)x2)};
    wb_gradients *g;
    wb_array *l = wb_withgradient(along, model, &batch, NULL, &g);
    const wb_status status = l ? wb_update(o, model, g) : wb_error_status();
    const wb_status closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

static const struct row {
    const char *name;
    double x1, x2, clip_norm;
} rows[] = {
    {"nan in one place stops the whole step", NAN, 1, 0},
    {"an infinite loss stops the step", INFINITY, 1, 0},
    {"minus infinity does, too", -INFINITY, 1, 0},
    {"opposite infinities do, too", INFINITY, -INFINITY, 0},
    {"the guard holds when clipping", NAN, 1, 1},
    {"a norm that overflows stops the step", 3e38, -3e38, 1},
};

static wb_rule rule_of(int i) {
    return i == 0   ? wb_descent()
           : i == 1 ? wb_momentum(.eta = 0.5)
           : i == 2 ? wb_adam(.eta = 0.5)
                    : wb_adamw(.eta = 0.5, .lambda = 0.5);
}

/* The same for all rules, and for the state: after the bad step, momentum goes on as if it had not
 * been. */
static void a_bad_step_changes_nothing(void **state) {
    const struct row *row = *state;
    for (int i = 0; i < 4; i++) {
        wb_layer *model = wb_tree(wb_vector(1, 1)), *spared = wb_clone(model);
        wb_optimiser *o = wb_setup(rule_of(i), model, .clip_total_norm = row->clip_norm);
        wb_optimiser *of_spared = wb_setup(rule_of(i), spared, .clip_total_norm = row->clip_norm);
        assert_int_equal(step(o, model, 0.5, -2), WB_OK);
        assert_int_equal(step(of_spared, spared, 0.5, -2), WB_OK);
        assert_int_equal(step(o, model, row->x1, row->x2), WB_OK);
        assert_same_bits(wb_get(model, "1"), wb_get(spared, "1"), row->name);
        assert_int_equal(step(o, model, 0.25, 3), WB_OK);
        assert_int_equal(step(of_spared, spared, 0.25, 3), WB_OK);
        assert_same_bits(wb_get(model, "1"), wb_get(spared, "1"), row->name);
        assert_int_equal(wb_skipped(o), 1);
        assert_int_equal(wb_step_count(o), 2);
        assert_int_equal(step(o, model, 0.25, 3), WB_OK);
        assert_true(isfinite(wb_item(wb_sum(wb_get(model, "1")))));
        wb_free(o), wb_free(of_spared), wb_free(model), wb_free(spared);
    }
}

/* ---- one array's norm ---- */

/* The gradient of the first array is infinite where it is 0, the loss is finite. */
static wb_array *root(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_add(wb_sum(wb_sqrt(wb_get(model, "1"))), wb_sum(wb_get(model, "2")));
}

/* wb_clip_norm and .clip_norm behave alike, wherever in a chain, and for any norm. */
static void a_norm_of_one_array_stops_the_whole_step(void **state) {
    (void)state;
    const struct {
        wb_rule rule;
        double clip_norm;
    } cases[] = {
        {wb_clip_norm(), 0},
        {wb_rule_chain(wb_clip_norm(), wb_adam()), 0},
        {wb_rule_chain(wb_weight_decay(), wb_clip_norm(.p = 1), wb_momentum()), 0},
        {wb_momentum(), 1},
    };
    for (int i = 0; i < 4; i++) {
        wb_layer *model = wb_tree(wb_vector(0, 1), wb_vector(2, 3));
        wb_optimiser *o = wb_setup(cases[i].rule, model, .clip_total_norm = cases[i].clip_norm);
        const wb_batch none = {0};
        for (int k = 0; k < 2; k++) assert_non_null(wb_train_step(root, model, &none, NULL, o));
        assert_int_equal(wb_skipped(o), 2);
        assert_int_equal(wb_step_count(o), 0);
        assert_values(wb_get(model, "1"), 0, 0, 1);
        assert_values(wb_get(model, "2"), 0, 2, 3);
        assert_int_equal(wb_set(model, "1", wb_vector(4, 1)), WB_OK);
        assert_non_null(wb_train_step(root, model, &none, NULL, o));
        assert_int_equal(wb_step_count(o), 1);
        assert_true(wb_at(wb_get(model, "2"), 0) < 2);
        wb_free(o), wb_free(model);
    }
}

/* ---- what layers and losses write ---- */

enum { FEATURES = 3, COLUMNS = 4 };

/* y = w x, and in training: mean moves towards that of x, count counts, flag remembers. */
typedef struct Notes {
    wb_layer layer;
    wb_array *w, *mean, *count, *flag;
} Notes;

static wb_array *note(wb_layer *layer, wb_array *x) {
    Notes *n = (Notes *)(void *)layer;
    if (wb_is_active(layer)) {
        wb_array *near = wb_add(wb_mul_number(n->mean, 0.5), wb_mul_number(wb_mean(x), 0.5));
        wb_array *is_large = wb_not(wb_le(wb_maximum(x), wb_number(1)));
        if (wb_set(layer, "mean", near) != WB_OK ||
            wb_set(layer, "count", wb_add_number(n->count, 1)) != WB_OK ||
            wb_set(layer, "flag", wb_or(n->flag, is_large)) != WB_OK)
            return NULL;
    }
    return wb_mul(x, n->w);
}

WB_FUNCTOR(Notes, note, WB_ARRAY_FIELD(Notes, w), WB_STATE_FIELD(Notes, mean),
           WB_STATE_FIELD(Notes, count), WB_STATE_FIELD(Notes, flag));

static wb_layer *notes(void) {
    Notes *n = wb_new(Notes);
    n->w = wb_keep(wb_scalar(WB_F32, 0.5));
    n->mean = wb_keep(wb_scalar(WB_F32, 0));
    n->count = wb_keep(wb_scalar(WB_I64, 0));
    n->flag = wb_keep(wb_scalar(WB_BOOL, 0));
    return wb_chain(&n->layer, wb_dense(FEATURES, 2));
}

static wb_layer *norm(void) {
    return wb_chain(wb_dense(FEATURES, 3), wb_batchnorm(3, wb_tanh), wb_dense(3, 2));
}
static wb_layer *recurrent(void) { return wb_recur(wb_lstm_cell(FEATURES, 2)); }

static wb_array *squared(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}
static wb_array *linear(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_mul(wb_apply(model, batch->x), batch->y));
}
/* A sequence begins in each loss: what was there is cleared, then written. */
static wb_array *anew(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_reset(model) == WB_OK ? squared(model, batch, user) : NULL;
}

typedef enum way { BY_STEP, BY_UPDATE, BY_KEEPING, WAYS } way;

static const struct state_row {
    const char *name;
    wb_layer *(*make)(void);
    wb_loss_fn *loss;
    bool at_once;  /* the first step of all is the bad one */
    double scaled; /* the loss is finite, but not its gradients times this */
} state_rows[] = {
    {"running statistics", norm, squared, .at_once = false},
    {"a mean, a count and a flag of one's own", notes, squared, .at_once = false},
    {"hidden states", recurrent, squared, .at_once = false},
    {"hidden states that begin with it", recurrent, squared, .at_once = true},
    {"hidden states of losses that begin anew", recurrent, anew, .at_once = false},
    {"running statistics where only gradients are not finite", norm, linear, .scaled = 0x1p24},
};

static wb_array *batch_of(int step, bool is_bad, int rows) {
    wb_array *i = wb_iota_make(WB_F32, 1, 2, (int64_t[]){rows, COLUMNS});
    wb_array *j = wb_iota_make(WB_F32, 0, 2, (int64_t[]){rows, COLUMNS});
    wb_array *x = wb_sin(wb_add(wb_add_number(wb_mul_number(j, 3), step), i));
    wb_array *is_there = wb_and(wb_eq(i, wb_number(2)), wb_eq(j, wb_number(1)));
    return is_bad ? wb_select(is_there, wb_number(NAN), wb_mul_number(x, 9)) : x;
}

static wb_status step_by(way how, const struct state_row *r, wb_optimiser *o, wb_layer *model,
                         int step, bool is_bad) {
    wb_scope_open();
    const bool has_nan = is_bad && r->scaled == 0;
    wb_batch batch = {.x = batch_of(step, has_nan, FEATURES), .y = batch_of(step, false, 2)};
    if (is_bad && !has_nan) batch.y = wb_mul_number(batch.y, 1e35); /* times the scale: infinite */
    wb_gradients *g = NULL;
    if (how == BY_STEP)
        assert_non_null(wb_train_step(r->loss, model, &batch, NULL, o));
    else
        assert_non_null(wb_withgradient_for(o, r->loss, model, &batch, NULL, &g));
    if (how == BY_KEEPING) assert_non_null(wb_gradients_keep(g));
    const wb_status status = g ? wb_update(o, model, g) : WB_OK;
    if (how == BY_KEEPING) wb_free(g);
    const wb_status closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

/* All arrays, states and what hidden states make of an input. */
static void assert_same_models(wb_layer *a, wb_layer *b, const char *name) {
    wb_scope_open();
    for (wb_parameter p = {0}, q = {0}; wb_next_parameter(a, &p);) {
        assert_true(wb_next_parameter(b, &q));
        assert_same_bits(p.array, q.array, name);
    }
    wb_array *x = batch_of(7, false, FEATURES);
    assert_same_bits(wb_apply(a, x), wb_apply(b, x), name);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void check_states(const struct state_row *r, way how, int64_t parts) {
    wb_seed(6);
    wb_layer *model = r->make(), *spared = wb_clone(model);
    wb_optimiser *o =
        wb_setup(wb_adam(.eta = 0.1), model, .micro_batches = parts, .loss_scale = r->scaled);
    wb_optimiser *of_spared =
        wb_setup(wb_adam(.eta = 0.1), spared, .micro_batches = parts, .loss_scale = r->scaled);
    if (!r->at_once) {
        assert_int_equal(step_by(how, r, o, model, 1, false), WB_OK);
        assert_int_equal(step_by(how, r, of_spared, spared, 1, false), WB_OK);
    }
    assert_int_equal(step_by(how, r, o, model, 2, true), WB_OK);
    assert_int_equal(wb_skipped(o), 1);
    assert_same_models(model, spared, r->name);
    if (r->scaled == 0) { /* the scale is another one */
        assert_int_equal(step_by(how, r, o, model, 3, false), WB_OK);
        assert_int_equal(step_by(how, r, of_spared, spared, 3, false), WB_OK);
        assert_same_models(model, spared, r->name);
    }
    assert_int_equal(wb_skipped(o), 1);
    wb_free(o), wb_free(of_spared), wb_free(model), wb_free(spared);
}

static void a_bad_step_changes_no_state(void **state) {
    for (int64_t parts = 0; parts < 3; parts++) check_states(*state, BY_STEP, parts);
    check_states(*state, BY_UPDATE, 0);
    check_states(*state, BY_KEEPING, 0);
}

/* ---- wb_train reads the guard ---- */

static bool note_step(const wb_train_event *event) {
    *(int *)event->user = (int)event->step;
    return true;
}

static void train_until(double bad, const char *message) {
    float x[2 * 6];
    for (int i = 0; i < 12; i++) x[i] = (float)(i % 3) + 1;
    x[7] = (float)
        bad; /* observation 3, of the third epoch's fourth batch if nothing stops it before */
    wb_layer *model = wb_tree(wb_vector(1, 1));
    wb_loader *data = wb_loader_new(.x = wb_from(WB_F32, x, 2, 6));
    wb_optimiser *o = wb_setup(wb_momentum(.eta = 0.125), model);
    wb_layer *wanted = wb_clone(model);
    wb_optimiser *of_wanted = wb_setup(wb_momentum(.eta = 0.125), wanted);
    for (int i = 0; i < 3; i++)
        assert_int_equal(step(of_wanted, wanted, (double)x[2 * i], (double)x[2 * i + 1]), WB_OK);
    int steps = 0;
    assert_int_equal(
        wb_train(along, model, data, o, .epochs = 3, .on_step = note_step, .user = &steps),
        WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, message);
    assert_int_equal(steps, 3);
    assert_int_equal(wb_step_count(o), 3);
    assert_same_bits(wb_get(model, "1"), wb_get(wanted, "1"), "parameters before the bad batch");
    wb_free(of_wanted), wb_free(wanted), wb_free(o), wb_free(data), wb_free(model);
}

static void training_stops_and_names_the_batch(void **state) {
    (void)state;
    train_until((double)NAN, "loss is nan at batch 4 of epoch 1; WEBER_DEBUG=nan "
                             "names the operation");
    train_until((double)INFINITY, "loss is infinite at batch 4 of epoch 1");
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(a_norm_of_one_array_stops_the_whole_step),
        TEST(training_stops_and_names_the_batch),
    };
    ADD_ROWS(&tests, rows, a_bad_step_changes_nothing);
    ADD_ROWS(&tests, state_rows, a_bad_step_changes_no_state);
    ADD_TESTS(&tests, others);
    return run_test_list("values 10", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
