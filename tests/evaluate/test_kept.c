/* Weights of convolutions that a plan keeps in another form: made once, and never those of another
 * array or of what the array held before. */
#include <string.h>
#include <weber.h>

#include "evaluate/plan.h"
#include "support/support.h"

enum { SIDE = 9, CHANNELS = 24, FILTERS = 32, TURNS = 4 };

/* The CPU, which counts. */
static wb_backend counting;
static const wb_device *counted;
static int prepared;

static wb_status prepare(void *device, void *queue, const wb_command *commands, int count,
                         const wb_memory *memory) {
    prepared += count;
    return wb_cpu_backend.prepare(device, queue, commands, count, memory);
}

static wb_array *there(wb_array *x) {
    x = wb_to(counted, x);
    assert_int_equal(wb_eval(x), WB_OK);
    return x;
}

static wb_array *picture(void) { return there(wb_uniform(WB_F32, SIDE, SIDE, CHANNELS, 1)); }
static wb_array *weights(void) { return there(wb_uniform(WB_F32, 3, 3, CHANNELS, FILTERS)); }

/* Evaluating conv(x, w) makes `made` weights ready. The result is compared with that of the same
 * weights as a product, w * 1: of what the plan computes itself it keeps nothing. */
static void check(wb_array *x, wb_array *w, int made, const char *what) {
    wb_array *one = wb_to(x->buffer->device, wb_ones(WB_F32, 1));
    wb_array *y = wb_conv_op(x, w, .pad = {1, 1}),
             *wanted = wb_conv_op(x, wb_mul(w, one), .pad = {1, 1});
    prepared = 0;
    assert_int_equal(wb_eval(y), WB_OK);
    assert_int_equal(prepared, made);
    assert_int_equal(wb_eval(wanted), WB_OK);
    assert_int_equal(prepared, made);
    assert_same_bits(y, wanted, what);
}

static void weights_are_made_ready_once(void **state) {
    (void)state;
    wb_array *w = weights();
    for (int turn = 0; turn < TURNS; turn++) check(picture(), w, turn == 0, "the same weights");
    w = weights();
    for (int turn = 0; turn < TURNS; turn++) check(picture(), w, turn == 0, "other weights");
}

/* Memory that is given back comes again for the next array of its size. */
static void other_weights_in_the_same_memory_are_others(void **state) {
    (void)state;
    const void *before = NULL;
    int same = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        assert_int_equal(wb_scope_open(), WB_OK);
        wb_array *x = picture(), *w = weights();
        same += w->buffer->handle == before;
        before = w->buffer->handle;
        check(x, w, 1, "weights of one turn");
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    assert_true(same > 0);
}

static void parts_of_an_array_are_others(void **state) {
    (void)state;
    wb_array *x = picture(), *all = there(wb_uniform(WB_F32, 3, 3, CHANNELS, FILTERS, 3));
    for (int turn = 0; turn < 2; turn++)
        for (int part = 0; part < 3; part++) {
            wb_array *w = wb_squeeze(wb_slice(all, 4, part, part + 1, 1), 4);
            assert_int_equal(wb_eval(w), WB_OK);
            check(x, w, 1, "a part");
        }
}

static wb_array *squares(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_square(wb_get(model, "1")));
}

static wb_array *convolved(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_conv_op(batch->x, wb_get(model, "1"), .pad = {1, 1}));
}

typedef struct training {
    wb_layer *model;
    wb_optimiser *optimiser;
} training;

/* Of weights of no scope. */
static training begin(void) {
    assert_int_equal(wb_scope_open(), WB_OK);
    training t = {.model = wb_tree(weights())};
    assert_int_equal(wb_scope_close(), WB_OK);
    t.optimiser = wb_setup(wb_descent(.eta = 0.1), t.model);
    return t;
}

static const void *memory_of(const training *t) {
    wb_array *w = wb_get(t->model, "1");
    const void *memory = w->buffer->handle;
    wb_free(w);
    return memory;
}

/* Writes over the old weights. */
static void step(const training *t, wb_loss_fn *loss, wb_array *x) {
    const void *before = memory_of(t);
    assert_int_equal(wb_scope_open(), WB_OK);
    const wb_batch batch = {.x = x};
    assert_non_null(wb_train_step(loss, t->model, &batch, NULL, t->optimiser));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_ptr_equal(memory_of(t), before);
}

/* They are made ready again, once. */
static void weights_written_in_place_are_others(void **state) {
    (void)state;
    wb_array *x = picture();
    training t = begin();
    for (int turn = 0; turn < TURNS; turn++) {
        step(&t, squares, x);
        assert_int_equal(wb_scope_open(), WB_OK);
        wb_array *w = wb_get(t.model, "1");
        check(x, w, 1, "weights after a step");
        check(x, w, 0, "the same weights");
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_free(t.optimiser), wb_free(t.model);
}

/* They would be made ready in each step, and memory held for it. */
static void what_a_plan_writes_over_is_not_kept(void **state) {
    (void)state;
    wb_array *x = picture();
    training t = begin();
    prepared = 0;
    for (int turn = 0; turn < TURNS; turn++) step(&t, convolved, x);
    assert_int_equal(prepared, 0);
    wb_free(t.optimiser), wb_free(t.model);
}

/* ---- what is not computed ---- */

static wb_array *of_cpu(wb_array *x) {
    assert_int_equal(wb_eval(x), WB_OK);
    return x;
}

static void batches_are_others(void **state) {
    (void)state;
    wb_array *x = of_cpu(wb_uniform(WB_F32, SIDE, SIDE, CHANNELS, 1));
    for (int alone = 0; alone < 2; alone++) {
        wb_loader *loader =
            wb_loader_new(.x = of_cpu(wb_uniform(WB_F32, 3, 3, CHANNELS, 8 * FILTERS)),
                          .batchsize = FILTERS, .shuffle = true, .background = !alone);
        wb_batch batch = {.x = NULL};
        while (wb_next(loader, &batch)) check(x, batch.x, 0, "a batch as weights");
        assert_int_equal(wb_error_status(), WB_OK);
        wb_free(loader);
    }
}

static void borrowed_memory_is_read_anew(void **state) {
    (void)state;
    static float memory[9 * CHANNELS * FILTERS];
    wb_array *x = of_cpu(wb_uniform(WB_F32, SIDE, SIDE, CHANNELS, 1));
    wb_array *w = wb_borrow(WB_F32, memory, NULL, NULL, 3, 3, CHANNELS, FILTERS);
    for (int turn = 0; turn < TURNS; turn++) {
        wb_array *fresh = wb_uniform(WB_F32, 3, 3, CHANNELS, FILTERS);
        memcpy(memory, wb_read_begin(fresh), sizeof memory);
        wb_read_end(fresh);
        check(x, w, 0, "borrowed weights");
    }
}

/* ---- scans ---- */

static void add_conv(void *context, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    (void)outputs;
    carries[0] = wb_add(wb_conv_op(carries[0], context, .pad = {1, 1}), inputs[0]);
}

/* Over the steps of a scan weights are kept by its body, and made ready in each run. */
static void a_scan_makes_them_ready_once(void **state) {
    (void)state;
    enum { STEPS = 3 };
    wb_array *inputs = there(wb_uniform(WB_F32, SIDE, SIDE, CHANNELS, 1, STEPS)),
             *start = picture();
    for (int turn = 0; turn < TURNS; turn++) {
        wb_array *w = there(wb_mul_number(wb_uniform(WB_F32, 3, 3, CHANNELS, CHANNELS), 0.01)),
                 *carry = start, *loop = start;
        prepared = 0;
        assert_int_equal(wb_scan(add_conv, w, 1, &carry, 1, &inputs, 0, NULL), WB_OK);
        assert_int_equal(wb_eval(carry), WB_OK);
        assert_int_equal(prepared, 1);
        for (int64_t t = 0; t < STEPS; t++) {
            wb_array *slice = wb_squeeze(wb_slice(inputs, 4, t, t + 1, 1), 4);
            add_conv(w, &loop, &slice, NULL);
        }
        assert_same_bits(carry, loop, "a convolution in a scan");
    }
}

/* ---- what it costs ---- */

/* Many positions for each weight: bringing it into its form is little then, and nothing is kept. */
static void weights_of_large_planes_are_not_kept(void **state) {
    (void)state;
    wb_array *w = weights();
    check(there(wb_uniform(WB_F32, 4 * SIDE, 4 * SIDE, CHANNELS, 1)), w, 0, "a large plane");
    check(there(wb_uniform(WB_F32, SIDE, SIDE, CHANNELS, 16)), w, 0, "many planes");
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    (void)unsetenv("WEBER_DEVICE");
    counting = wb_cpu_backend;
    counting.name = "Counting", counting.prepare = prepare;
    counted = wb_device_new(&counting, 0);
    if (!counted) return 1;
    const struct CMUnitTest tests[] = {
        TEST(weights_are_made_ready_once),
        TEST(other_weights_in_the_same_memory_are_others),
        TEST(parts_of_an_array_are_others),
        TEST(weights_written_in_place_are_others),
        TEST(what_a_plan_writes_over_is_not_kept),
        TEST(a_scan_makes_them_ready_once),
        TEST(batches_are_others),
        TEST(borrowed_memory_is_read_anew),
        TEST(weights_of_large_planes_are_not_kept),
    };
    return cmocka_run_group_tests_name("evaluate/test_kept", tests, NULL, NULL);
}
