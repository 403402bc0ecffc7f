/* src/train/evaluate.c, sums.c: metrics against numbers of plain loops, and by hand. */
#include <weber.h>

#include "base/memory.h"
#include "support/support.h"

enum { POINTS = 23, BATCH = 5, CLASSES = 4 };

/* A model that gives what it is given. */
static wb_layer *mirror(void) { return wb_chain(wb_fn(wb_identity)); }

static wb_loader *loader_of(wb_array *x, wb_array *y) {
    return wb_loader_new(.x = x, .y = y, .batchsize = BATCH);
}

static void assert_near(const char *name, double value, double wanted) {
    const bool same = isnan(wanted) ? isnan(value) : fabs(value - wanted) <= 1e-6;
    if (!same) fail_msg("%s: %.9g, not %.9g: %s", name, value, wanted, wb_error_message());
}

static wb_array *cross_entropy(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* ---- classes ---- */

typedef struct counts {
    int64_t matrix[CLASSES][CLASSES]; /* [label][answer] */
    int64_t right, top, count;
} counts;

static counts count_by_hand(const float *p, const int32_t *y, int64_t n, int64_t k, int ignore) {
    counts c = {.right = 0};
    for (int64_t i = 0; i < n; i++) {
        int answer = 0, before = 0;
        const float *column = p + i * CLASSES;
        if (y[i] == ignore) continue;
        for (int j = 0; j < CLASSES; j++) {
            if (column[j] > column[answer]) answer = j;
            before += column[j] > column[y[i]] || (column[j] == column[y[i]] && j < y[i]);
        }
        c.matrix[y[i]][answer]++;
        c.right += answer == y[i];
        c.top += before < k;
        c.count++;
    }
    return c;
}

static void classes(void **state) {
    (void)state;
    float p[POINTS * CLASSES];
    int32_t y[POINTS];
    wb_seed(3);
    wb_array *x = wb_floor(wb_mul(wb_uniform(WB_F32, CLASSES, POINTS), wb_number(6))); /* ties */
    assert_int_equal(wb_read_f32(x, p, POINTS * CLASSES), WB_OK);
    for (int i = 0; i < POINTS; i++) y[i] = i * i % CLASSES ? i % 3 : 1;
    wb_array *labels = wb_from(WB_I32, y, POINTS);
    wb_array *hot = wb_eq(wb_iota(WB_I32, 0, CLASSES, 1), wb_unsqueeze(labels, 0));
    wb_layer *model = mirror();
    for (int kind = 0; kind < 3; kind++) {
        const int ignore = kind == 2 ? 1 : -1;
        const counts wanted = count_by_hand(p, y, POINTS, 2, ignore);
        wb_loader *data = loader_of(x, kind == 1 ? hot : labels);
        const wb_evaluation e =
            wb_evaluate(model, data, .k = 2, .loss = kind ? NULL : cross_entropy,
                        .ignore = kind == 2 ? 1 : INT64_MIN);
        int64_t matrix[CLASSES][CLASSES];
        assert_int_equal(e.status, WB_OK);
        assert_int_equal(e.task, WB_TASK_CLASSES);
        assert_int_equal(e.observations, POINTS);
        assert_int_equal(e.count, wanted.count);
        assert_near("accuracy", e.accuracy, (double)wanted.right / (double)wanted.count);
        assert_near("top 2", e.top_k, (double)wanted.top / (double)wanted.count);
        assert_int_equal(wb_read(e.confusion, matrix, sizeof matrix), WB_OK);
        assert_memory_equal(matrix, wanted.matrix, sizeof matrix);
        const double loss = kind ? (double)NAN : wb_item(wb_logitcrossentropy(x, labels));
        assert_near("loss", e.loss, loss);
        assert_near("perplexity", e.perplexity, exp(loss));
        assert_near("mse", e.mse, (double)NAN);
        wb_free(data);
    }
    wb_free(model);
}

/* Labels 0 0 0 0 1 1 2, answers 0 0 0 1 1 3 1: class 3 is only answered. */
static void averages_of_classes(void **state) {
    (void)state;
    const int32_t y[] = {0, 0, 0, 0, 1, 1, 2}, answers[] = {0, 0, 0, 1, 1, 3, 1};
    wb_array *x = wb_cast(wb_eq(wb_iota(WB_I32, 0, 5, 1), wb_from(WB_I32, answers, 1, 7)), WB_F32);
    wb_layer *model = mirror();
    wb_loader *data = loader_of(x, wb_from(WB_I32, y, 7));
    const wb_evaluation e = wb_evaluate(model, data);
    assert_near("accuracy", e.accuracy, 4. / 7);
    assert_near("top 5", e.top_k, 1);
    assert_near("precision", e.precision, (1 + 1. / 3 + 0 + 0) / 4);
    assert_near("recall", e.recall, (.75 + .5 + 0 + 0) / 4);
    assert_near("f1", e.f1, (6. / 7 + .4 + 0 + 0) / 4);
    wb_free(data), wb_free(model);
}

/* Labels 0 1 0 1; a column of NaN, one with a NaN, and two whole ones. */
static void a_column_with_a_nan_is_wrong(void **state) {
    (void)state;
    const float nan = NAN, p[] = {nan, nan, nan, 1, nan, 9, 3, 2, 1, 1, 2, 3};
    const int32_t y[] = {0, 2, 0, 1};
    wb_layer *model = mirror();
    wb_array *x = wb_from(WB_F32, p, 3, 4), *labels = wb_from(WB_I32, y, 4);
    wb_loader *data = loader_of(x, labels);
    const wb_evaluation e = wb_evaluate(model, data, .k = 2);
    assert_int_equal(e.count, 4);
    assert_near("accuracy", e.accuracy, .25);
    assert_near("accuracy of a batch", wb_item(wb_accuracy(x, labels)), .25);
    assert_near("top 2", e.top_k, .5);
    int64_t matrix[3][3];
    const int64_t wanted[3][3] = {{1, 0, 0}, {0, 0, 1}, {0, 0, 0}};
    assert_int_equal(wb_read(e.confusion, matrix, sizeof matrix), WB_OK);
    assert_memory_equal(matrix, wanted, sizeof wanted);
    assert_near("recall", e.recall, (.5 + 0 + 0) / 3);
    assert_near("precision", e.precision, (1. + 0 + 0) / 3);
    wb_free(data), wb_free(model);
}

/* Yes, no, no, yes: of scores that are NaN none is the answer no. */
static void a_nan_is_neither_yes_nor_no(void **state) {
    (void)state;
    const float p[] = {NAN, NAN, .2f, .7f}, y[] = {1, 0, 0, 1};
    wb_layer *model = mirror();
    wb_array *is_yes = wb_gt(wb_from(WB_F32, y, 4), wb_number(0));
    wb_loader *data = loader_of(wb_from(WB_F32, p, 1, 4), is_yes);
    const wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.count, 4);
    assert_near("accuracy", e.accuracy, .5);
    assert_near("precision", e.precision, 1);
    assert_near("recall", e.recall, .5);
    assert_near("auc", e.auc, (double)NAN);
    wb_free(data), wb_free(model);
}

static void sequences_have_a_label_a_step(void **state) {
    (void)state;
    const int32_t y[] = {0, 1, 1, 0, 1, 1};
    wb_array *x = wb_ones(WB_F32, 2, 3, 2); /* the first of equals answers */
    wb_layer *model = mirror();
    wb_loader *data = loader_of(x, wb_from(WB_I32, y, 3, 2));
    const wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.observations, 2);
    assert_int_equal(e.count, 6);
    assert_near("accuracy", e.accuracy, 1. / 3);
    wb_free(data), wb_free(model);
}

/* ---- yes or no ---- */

static void yes_or_no(void **state) {
    (void)state;
    const float p[] = {.1f, .4f, .35f, .8f, .4f, .9f, .6f}, y[] = {0, 0, 1, 1, 1, 1, 0};
    wb_layer *model = mirror();
    wb_array *is_yes = wb_gt(wb_from(WB_F32, y, 7), wb_number(0));
    wb_loader *data = loader_of(wb_from(WB_F32, p, 1, 7), is_yes);
    const wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.task, WB_TASK_YES_OR_NO);
    assert_int_equal(e.count, 7);
    assert_near("accuracy", e.accuracy, 4. / 7);
    assert_near("precision", e.precision, 2. / 3);
    assert_near("recall", e.recall, .5);
    assert_near("f1", e.f1, 4. / 7);
    /* .35 beats .1; .8 and .9 beat all; .4 beats .1, and equals .4 */
    assert_near("auc", e.auc, (1 + 3 + 3 + 1.5) / 12);
    const wb_evaluation low = wb_evaluate(model, data, .threshold = 0);
    assert_near("recall of all", low.recall, 1);
    wb_free(data);
    data = loader_of(wb_from(WB_F32, p, 1, 7), wb_ones(WB_BOOL, 7));
    assert_near("auc without a no", wb_evaluate(model, data).auc, (double)NAN);
    wb_free(data), wb_free(model);
}

/* ---- numbers ---- */

static void numbers(void **state) {
    (void)state;
    wb_seed(9);
    wb_array *y = wb_add(wb_normal(WB_F32, 2, POINTS), wb_number(1000));
    wb_array *x = wb_add(y, wb_mul(wb_normal(WB_F32, 2, POINTS), wb_number(.5)));
    double p[2 * POINTS], t[2 * POINTS], mse = 0, mae = 0, mean = 0, spread = 0;
    assert_int_equal(wb_read_f64(x, p, 2 * POINTS), WB_OK);
    assert_int_equal(wb_read_f64(y, t, 2 * POINTS), WB_OK);
    for (int i = 0; i < 2 * POINTS; i++) mean += t[i] / (2 * POINTS);
    for (int i = 0; i < 2 * POINTS; i++) {
        mse += (p[i] - t[i]) * (p[i] - t[i]) / (2 * POINTS);
        mae += fabs(p[i] - t[i]) / (2 * POINTS);
        spread += (t[i] - mean) * (t[i] - mean) / (2 * POINTS);
    }
    wb_layer *model = mirror();
    wb_loader *data = loader_of(x, y);
    const wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.task, WB_TASK_NUMBERS);
    assert_int_equal(e.count, 2 * POINTS);
    assert_near("mse", e.mse, mse);
    assert_near("mae", e.mae, mae);
    assert_near("r2", e.r2, 1 - mse / spread);
    assert_near("accuracy", e.accuracy, (double)NAN);
    assert_null(e.confusion);
    wb_free(data), wb_free(model);
}

/* ---- how it runs ---- */

static wb_array *flat(wb_layer *model, const wb_batch *batch, void *user) {
    ++*(int *)user;
    return wb_apply(model, wb_flatten_batch(batch->x));
}

static void a_batch_is_one_plan_and_layers_are_in_test_mode(void **state) {
    (void)state;
    int calls = 0;
    int32_t y[20];
    for (int i = 0; i < 20; i++) y[i] = i % 3;
    wb_layer *model = wb_chain(wb_dense(4, 3), wb_dropout(.p = 0.9));
    wb_loader *data = loader_of(wb_normal(WB_F32, 2, 2, 20), wb_from(WB_I32, y, 20));
    (void)wb_training(true);
    const wb_evaluation once = wb_evaluate(model, data, .predict = flat, .user = &calls);
    const wb_plan_counts before = wb_plan_status();
    const wb_evaluation again = wb_evaluate(model, data, .predict = flat, .user = &calls);
    const wb_plan_counts after = wb_plan_status();
    assert_true(wb_training(false)); /* as it was */
    assert_int_equal(calls, 8);
    assert_true(once.accuracy == again.accuracy && once.accuracy >= 0);
    if (!getenv("WEBER_EAGER")) {
        assert_int_equal(after.misses, before.misses);
        assert_true(after.evaluations - before.evaluations <= 4 + 4); /* batches; reading */
    }
    wb_free(data), wb_free(model);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_layer *model = mirror();
    wb_loader *data = wb_loader_new(.x = wb_normal(WB_F32, 1, 9), .y = wb_ones(WB_BOOL, 9),
                                    .batchsize = 5, .background = false);
    for (int64_t n = 1;; n += 1 + n / 20) {
        (void)wb_fail_allocation(n);
        wb_scope_open();
        const wb_evaluation e = wb_evaluate(model, data);
        wb_scope_close();
        (void)wb_fail_allocation(0);
        if (e.status == WB_OK) {
            wb_clear_error();
            break;
        }
        assert_true(isnan(e.accuracy));
        assert_error(e.status, "");
    }
    wb_free(data), wb_free(model);
}

static wb_array *mse(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void hidden_states_wait_meanwhile(void **state) {
    (void)state;
    wb_layer *model = wb_recur(wb_lstm_cell(2, 2));
    wb_loader *data =
        wb_loader_new(.x = wb_ones(WB_F32, 2, 6), .y = wb_zeros(WB_F32, 2, 6), .batchsize = 3);
    (void)wb_apply(model, wb_ones(WB_F32, 2, 4)); /* another batch size */
    float before[8], after[8];
    assert_int_equal(wb_read_f32(wb_get(model, "hidden"), before, 8), WB_OK);
    const wb_evaluation first = wb_evaluate(model, data, .loss = mse);
    const wb_evaluation second = wb_evaluate(model, data, .loss = mse);
    assert_int_equal(first.status, WB_OK);
    assert_true(first.loss == second.loss);
    assert_int_equal(wb_read_f32(wb_get(model, "hidden"), after, 8), WB_OK);
    assert_memory_equal(before, after, sizeof before);
    wb_free(data), wb_free(model);
}

/* Where they can be read without a copy. */
static void labels_are_checked(wb_layer *model) {
    wb_array *y = wb_vector_of(WB_I32, 0, -5);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 3, 2), .y = y);
    const wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.status, WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: label -5 at position ");
    assert_null(wb_accuracy(wb_ones(WB_F32, 2, 2), wb_vector_of(WB_I32, 0, 7)));
    assert_error(WB_ERROR_ARGUMENT, "accuracy: label 7 at position 1 is out of range: 2 classes");
    wb_free(data);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = mirror();
    wb_loader *data = loader_of(wb_ones(WB_F32, 3, 8), wb_ones(WB_I32, 7 + 1, 1));
    assert_null(data); /* 8 observations against one */
    wb_clear_error();
    data = loader_of(wb_ones(WB_F32, 3, 8), wb_ones(WB_F32, 2, 8));
    wb_evaluation e = wb_evaluate(model, data);
    assert_int_equal(e.status, WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_evaluate: expected floating numbers and as many targets; the "
                                 "prediction is f32 of (3, 5), the target f32 of (2, 5)");
    e = wb_evaluate(model, data, .task = WB_TASK_CLASSES);
    assert_error(WB_ERROR_SHAPE, "wb_evaluate: expected floating scores (K, ...) and labels");
    e = wb_evaluate(model, data, .k = -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: k must be positive, got -1");
    e = wb_evaluate(model, data, .k = 0);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: k must be positive, got 0");
    e = wb_evaluate(model, data, .threshold = NAN);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: threshold must be a number, got NaN");
    e = wb_evaluate(model, data, .ignore = -1);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_evaluate: ignore is a label of classes, but the task is numbers, got -1");
    e = wb_evaluate(model, data, .task = WB_TASK_YES_OR_NO, .ignore = 0);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_evaluate: ignore is a label of classes, but the task is yes or no, got 0");
    e = wb_evaluate(model, data, .task = (wb_task)9);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: task must be from 0 to 3, got 9");
    if (is_on_host()) labels_are_checked(model);
    e = wb_evaluate(model, NULL);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: the loader is NULL");
    wb_free(data);
    data = wb_loader_new(.x = wb_ones(WB_F32, 3, 8), .batchsize = 4);
    e = wb_evaluate(model, data);
    assert_error(WB_ERROR_ARGUMENT, "wb_evaluate: the loader must have a .y");
    assert_int_equal(e.status, WB_ERROR_ARGUMENT);
    wb_free(data), wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(classes),
        TEST(averages_of_classes),
        TEST(a_column_with_a_nan_is_wrong),
        TEST(a_nan_is_neither_yes_nor_no),
        TEST(sequences_have_a_label_a_step),
        TEST(yes_or_no),
        TEST(numbers),
        TEST(a_batch_is_one_plan_and_layers_are_in_test_mode),
        TEST(every_allocation_may_fail),
        TEST(hidden_states_wait_meanwhile),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
