/* src/optimise/mean.c, in one process: batches that are computed in parts. tests/ranks has the
 * rest. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { OBSERVATIONS = 23, BATCH = 10, EPOCHS = 3 };

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    int *calls = user;
    if (calls) ++*calls;
    wb_array *p = wb_apply(model, batch->x);
    return wb_mse(wb_aux("p", p), batch->y);
}

static wb_array *numbers(int rows, int columns, double step) {
    wb_array *i = wb_iota_make(WB_F32, 1, 2, (int64_t[]){rows, columns});
    wb_array *j = wb_iota_make(WB_F32, 0, 2, (int64_t[]){rows, columns});
    return wb_sin(wb_add(wb_mul(i, wb_number(step)), j));
}

static wb_layer *dense(void) { return wb_chain(wb_dense(3, 8, wb_tanh), wb_dense(8, 2)); }

/* ---- the step of the whole batch ---- */

typedef struct row {
    const char *name;
    int64_t parts, batchsize;
    double clip;
    wb_dtype compute;
    double loss_scale;
    bool by_hand; /* batches without a loader */
} row;

/* Trains; the mean of all losses. */
static double train(const row *r, wb_layer *model) {
    wb_optimiser *o =
        wb_setup(wb_momentum(.eta = 0.05), model, .clip_total_norm = r->clip,
                 .micro_batches = r->parts, .compute = r->compute, .loss_scale = r->loss_scale);
    assert_non_null(o);
    wb_loader *data = wb_loader_new(.x = numbers(3, OBSERVATIONS, 0.7),
                                    .y = numbers(2, OBSERVATIONS, 0.3), .batchsize = r->batchsize);
    double sum = 0;
    for (int e = 0; e < EPOCHS; e++)
        for (wb_batch batch = {0}; wb_next(data, &batch);) {
            const wb_batch bare = {.x = batch.x, .y = batch.y};
            wb_array *l = wb_train_step(loss, model, r->by_hand ? &bare : &batch, NULL, o);
            assert_non_null(l);
            sum += wb_item(l);
        }
    assert_int_equal(wb_skipped(o), 0);
    wb_free(data), wb_free(o);
    return sum;
}

static void parts_are_the_whole(void **state) {
    (void)state;
    const row rows[] = {
        {"one", 1, BATCH, .clip = 0},
        {"two", 2, BATCH, .clip = 0},
        {"parts that do not divide a batch", 3, BATCH, .clip = 0},
        {"a tree", 7, BATCH, .clip = 0},
        {"more parts than observations", 16, BATCH, .clip = 0},
        {"batches larger than the data", 4, 2 * OBSERVATIONS, .clip = 0},
        {"clipped", 4, BATCH, .clip = 0.1},
        {"by hand", 4, BATCH, .by_hand = true},
        {"by hand, many", 16, BATCH, .by_hand = true},
        {"bf16", 4, BATCH, .compute = WB_BF16},
        {"f16 with a scale", 4, BATCH, .compute = WB_F16, .loss_scale = 1024},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row whole = rows[i];
        whole.parts = 0;
        wb_seed(3);
        wb_layer *a = dense(), *b = wb_clone(a);
        const bool is_exact = whole.compute == WB_F32;
        const double expected = train(&whole, a), given = train(&rows[i], b);
        char where[64];
        if (fabs(expected - given) > (is_exact ? 1e-5 : 2e-2)) fail_msg("%s: loss", rows[i].name);
        for (wb_parameter p = {0}, q = {0}; wb_next_parameter(a, &p) && wb_next_parameter(b, &q);)
            if (!wb_approx(p.array, q.array, 0, is_exact ? 1e-6 : 1e-2, where, sizeof where))
                fail_msg("%s: %s at %s", rows[i].name, p.path, where);
        wb_free(a), wb_free(b);
    }
}

/* ---- what else a step does ---- */

static void running_statistics_are_means_of_parts(void **state) {
    (void)state;
    wb_layer *model = wb_batchnorm(1, .momentum = 0.5);
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 2);
    const wb_batch batch = {.x = wb_from(WB_F32, ((float[]){1, 3, 10, 20}), 1, 4),
                            .y = wb_zeros(WB_F32, 1, 4)};
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    /* means 2 and 15, variances 2 and 50; half way from 0 and 1 */
    assert_values(wb_get(model, "μ"), 1e-6, 4.25);
    assert_values(wb_get(model, "σ²"), 1e-5, 13.5);
    wb_free(o), wb_free(model);
}

static void a_loss_is_called_for_each_part(void **state) {
    (void)state;
    int calls = 0;
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 4);
    const wb_batch batch = {.x = numbers(3, 8, 0.7), .y = numbers(2, 8, 0.3)};
    assert_non_null(wb_train_step(loss, model, &batch, &calls, o));
    assert_int_equal(calls, 4);
    assert_sizes(wb_optimiser_aux(o, "p"), 2, 2);
    assert_int_equal(wb_step_count(o), 1);
    wb_free(o), wb_free(model);
}

static wb_array *size_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)wb_aux("size", wb_number((double)batch->size));
    return loss(model, batch, user);
}

/* 23 observations by tens, in parts of 3, 3, 3 and 1; of the last three, the first part has all. */
static void a_loss_hands_out_that_of_the_last_observations(void **state) {
    (void)state;
    wb_layer *model = dense();
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 4);
    wb_loader *data = wb_loader_new(.x = numbers(3, OBSERVATIONS, 0.7),
                                    .y = numbers(2, OBSERVATIONS, 0.3), .batchsize = BATCH);
    static const double sizes[] = {1, 1, 3};
    int k = 0;
    for (wb_batch batch = {0}; wb_next(data, &batch); k++) {
        assert_non_null(wb_train_step(size_loss, model, &batch, NULL, o));
        assert_true(k < 3 && wb_item(wb_optimiser_aux(o, "size")) == sizes[k]);
    }
    assert_int_equal(k, 3);
    wb_free(data), wb_free(o), wb_free(model);
}

/* All parts of all steps have the plans of the first step's. */
static void parts_have_one_plan(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(3, 8, wb_tanh), wb_batchnorm(8), wb_dense(8, 2));
    wb_optimiser *o = wb_setup(wb_adam(), model, .micro_batches = 4);
    int64_t made[2] = {0};
    for (int k = 0; k < 2; k++) {
        wb_scope_open();
        const wb_batch batch = {.x = numbers(3, 16, 0.7), .y = numbers(2, 16, 0.3)};
        assert_int_equal(wb_eval(batch.x, batch.y), WB_OK);
        const int64_t before = wb_plan_status().misses;
        assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
        made[k] = wb_plan_status().misses - before;
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    if (!getenv("WEBER_EAGER")) assert_true(made[0] <= 3 && made[1] == 0);
    wb_free(o), wb_free(model);
}

/* ---- integers and bools that layers write ---- */

/* y = w x, and in training: one more in count, whether an x was above 1. */
typedef struct Notes {
    wb_layer layer;
    wb_array *w, *count, *flag;
} Notes;

static wb_array *note(wb_layer *layer, wb_array *x) {
    const Notes *n = (const Notes *)(const void *)layer;
    wb_array *is_large = wb_gt(wb_maximum(x), wb_number(1));
    if (!wb_is_active(layer)) return wb_mul(x, n->w);
    if (wb_set(layer, "count", wb_add_number(n->count, 1)) != WB_OK ||
        wb_set(layer, "flag", wb_or(n->flag, is_large)) != WB_OK)
        return NULL;
    return wb_mul(x, n->w);
}

WB_FUNCTOR(Notes, note, WB_ARRAY_FIELD(Notes, w), WB_STATE_FIELD(Notes, count),
           WB_STATE_FIELD(Notes, flag));

static wb_layer *notes(void) {
    Notes *n = wb_new(Notes);
    n->w = wb_keep(wb_scalar(WB_F32, 1));
    n->count = wb_keep(wb_scalar(WB_I64, 40));
    n->flag = wb_keep(wb_full(WB_BOOL, 0, 2));
    return wb_chain(&n->layer);
}

static void integers_that_agree_are_written(void **state) {
    (void)state;
    for (int64_t parts = 0; parts <= 5; parts++) {
        wb_layer *model = notes();
        wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = parts);
        const wb_batch batch = {.x = wb_full(WB_F32, 2, 1, 4), .y = wb_zeros(WB_F32, 1, 4)};
        for (int i = 0; i < 3; i++) assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
        assert_value(wb_get(model, "layers.1.count"), 43, 0);
        assert_int_equal(wb_dtype_of(wb_get(model, "layers.1.count")), WB_I64);
        assert_values(wb_get(model, "layers.1.flag"), 0, 1, 1);
        wb_free(o), wb_free(model);
    }
}

static void integers_that_differ_are_refused(void **state) {
    (void)state;
    wb_layer *model = notes();
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 3);
    const wb_batch batch = {.x = wb_from(WB_F32, ((float[]){0, 0, 0, 2, 0, 0}), 1, 6),
                            .y = wb_zeros(WB_F32, 1, 6)};
    assert_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_error(WB_ERROR_ARGUMENT,
                 "a state of bool has no mean: all micro-batches and ranks of a step must write "
                 "the same to layers.1.flag, but 2 of 2 elements differ");
    assert_value(wb_get(model, "layers.1.count"), 40, 0);
    assert_values(wb_get(model, "layers.1.flag"), 0, 0, 0);
    assert_value(wb_get(model, "layers.1.w"), 1, 0);
    wb_free(o), wb_free(model);
}

/* ---- hidden states ---- */

static wb_layer *recurrent(void) {
    return wb_chain(wb_recur(wb_lstm_cell(3, 4)), wb_recur(wb_rnn_cell(4, 2)));
}

static wb_array *begins_anew(wb_layer *model, const wb_batch *batch, void *user) {
    return wb_reset(model) == WB_OK ? loss(model, batch, user) : NULL;
}
static wb_array *ends_it(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = loss(model, batch, user);
    return wb_reset(model) == WB_OK ? l : NULL;
}
/* Two steps of a sequence in a loss. */
static wb_array *two_steps(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = loss(model, batch, user);
    return wb_add(l, wb_mse(wb_apply(model, batch->x), batch->y));
}

static const struct sequence {
    const char *name;
    wb_loss_fn *loss;
    int columns[5]; /* of batch after batch */
} sequences[] = {
    {"a sequence goes on from batch to batch", loss, {6, 6, 6, 6, 6}},
    {"two steps in a loss", two_steps, {6, 6, 6, 6, 6}},
    {"a loss begins a sequence", begins_anew, {6, 6, 5, 6, 1}},
    {"a loss ends a sequence", ends_it, {6, 2, 6, 6, 3}},
};

static double train_sequence(const struct sequence *s, int64_t parts) {
    wb_seed(3);
    wb_layer *model = recurrent();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.5), model, .micro_batches = parts);
    double sum = 0;
    for (int i = 0; i < 5; i++) {
        wb_scope_open();
        const wb_batch batch = {.x = numbers(3, s->columns[i], 0.7 + i),
                                .y = numbers(2, s->columns[i], 0.3 + i)};
        wb_array *l = wb_train_step(s->loss, model, &batch, NULL, o);
        if (!l) fail_msg("%s, %d parts: %s", s->name, (int)parts, wb_error_message());
        sum += (i + 1) * wb_item(l);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_array *y = wb_apply(model, numbers(3, s->columns[4], 0.1)); /* where the sequence is */
    sum += wb_item(wb_sum(wb_mul(y, numbers(2, s->columns[4], 0.2))));
    wb_free(o), wb_free(model);
    return sum;
}

static void parts_have_the_hidden_states_of_their_observations(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++) {
        const double whole = train_sequence(&sequences[i], 0);
        for (int64_t parts = 1; parts <= 7; parts++) {
            const double cut = train_sequence(&sequences[i], parts);
            if (fabs(cut - whole) > 1e-5)
                fail_msg("%s, %d parts: %g, not %g", sequences[i].name, (int)parts, cut, whole);
        }
    }
}

static wb_array *only_in_some(wb_layer *model, const wb_batch *batch, void *user) {
    int *calls = user;
    wb_array *l = loss(model, batch, NULL);
    return (*calls)++ ? l : wb_reset(model) == WB_OK ? l : NULL;
}

static void hidden_states_that_do_not_fit_are_refused(void **state) {
    (void)state;
    wb_layer *model = recurrent();
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 2);
    wb_batch batch = {.x = numbers(3, 4, 0.7), .y = numbers(2, 4, 0.3)};
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    /* half of another batch: as large as a part */
    const wb_batch small = {.x = numbers(3, 2, 0.7), .y = numbers(2, 2, 0.3)};
    assert_null(wb_train_step(loss, model, &small, NULL, o));
    assert_error(WB_ERROR_SHAPE, "was left by another batch");
    /* dimensions in which the last one is time */
    batch.x = wb_ones(WB_F32, 3, 4, 6), batch.y = wb_zeros(WB_F32, 2, 4, 6);
    assert_int_equal(wb_reset(model), WB_OK);
    assert_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_error(WB_ERROR_SHAPE, "wb_train_step: with micro_batches a hidden state must have a "
                                 "column for each of the 3 observations of a part, got (4, 4)");
    int calls = 0;
    batch.x = numbers(3, 4, 0.7), batch.y = numbers(2, 4, 0.3);
    assert_null(wb_train_step(only_in_some, model, &batch, &calls, o));
    assert_error(WB_ERROR_ARGUMENT,
                 "a loss must write the same hidden states in all micro-batches of a step");
    wb_free(o), wb_free(model);
}

static void a_cache_is_refused(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_multi_head_attention(4, .heads = 2, .causal = true));
    wb_test_mode(model);
    assert_int_equal(wb_cache(model, 8), WB_OK);
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 2);
    const wb_batch batch = {.x = wb_ones(WB_F32, 4, 2, 6), .y = wb_zeros(WB_F32, 4, 2, 6)};
    assert_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_train_step: micro_batches and the cache of a MultiHeadAttention cannot be "
                 "used together: wb_cache(model, 0) removes it");
    assert_int_equal(wb_cache(model, 0), WB_OK);
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    wb_free(o), wb_free(model);
}

/* ---- mistakes ---- */

static wb_array *changing_loss(wb_layer *model, const wb_batch *batch, void *user) {
    int *calls = user;
    wb_array *p = wb_apply(model, batch->x);
    return (*calls)++ ? wb_sum(wb_square(wb_get(model, "layers.1.bias"))) : wb_mse(p, batch->y);
}

static wb_array *failing_loss(wb_layer *model, const wb_batch *batch, void *user) {
    int *calls = user;
    return ++*calls == 3 ? NULL : loss(model, batch, NULL);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = dense(), *before = wb_clone(model);
    assert_null(wb_setup(wb_descent(), model, .micro_batches = -1));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: micro_batches must be at least 1, got -1");
    assert_null(wb_setup(wb_descent(), model, .may_miss = true));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: may_miss is for gradients that some ranks lack, so "
                                    "it needs .distributed = true");
    assert_null(
        wb_setup(wb_descent(), model, .distributed = true, .may_miss = true, .micro_batches = 2));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: may_miss and micro_batches cannot be used together");
    wb_optimiser *o = wb_setup(wb_descent(), model, .micro_batches = 4);
    const wb_batch batch = {.x = numbers(3, 8, 0.7), .y = numbers(2, 8, 0.3)};
    int calls = 0;
    assert_null(wb_train_step(loss, model, NULL, NULL, o));
    assert_error(WB_ERROR_ARGUMENT, "micro_batches is 4, so there must be a batch with an x");
    assert_null(wb_train_step(changing_loss, model, &batch, &calls, o));
    assert_error(WB_ERROR_ARGUMENT, "gradients of the same arrays");
    calls = 0;
    assert_null(wb_train_step(failing_loss, model, &batch, &calls, o));
    assert_error(WB_ERROR_ARGUMENT, "the loss");
    for (wb_parameter p = {0}, q = {0}; wb_next_parameter(model, &p);) {
        assert_true(wb_next_parameter(before, &q));
        assert_true(wb_approx(p.array, q.array, 0, 0, NULL, 0));
    }
    assert_non_null(wb_train_step(loss, model, &batch, NULL, o));
    assert_int_equal(wb_step_count(o), 1);
    wb_free(o), wb_free(model), wb_free(before);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(parts_are_the_whole),
        TEST(running_statistics_are_means_of_parts),
        TEST(a_loss_is_called_for_each_part),
        TEST(a_loss_hands_out_that_of_the_last_observations),
        TEST(parts_have_one_plan),
        TEST(integers_that_agree_are_written),
        TEST(integers_that_differ_are_refused),
        TEST(parts_have_the_hidden_states_of_their_observations),
        TEST(hidden_states_that_do_not_fit_are_refused),
        TEST(a_cache_is_refused),
        TEST(mistakes),
    };
    return cmocka_run_group_tests_name("optimise/test_mean", tests, NULL, NULL);
}
