/* Memory runs out at the n-th allocation of a training step, for every n: an error, nothing
 * changed, nothing left behind. */
#include <string.h>

#include <weber/layers.h>
#include <weber/losses.h>
#include <weber/optimise.h>

#include "base/memory.h"
#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *regression(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *l = wb_mse(wb_aux("p", wb_apply(model, batch->x)), batch->y);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        l = wb_add(l, wb_mul_number(wb_sum(wb_square(p.array)), 1e-3));
    return l;
}

/* How a step is taken: with its gradients, as a whole, in halves with a scale, of two sums, in two
 * micro-batches. */
typedef enum way { APART, WHOLE, HALVES, SUMS, PARTS, WAYS } way;
static way taken;

static wb_status step_of_sums(wb_optimiser *o, wb_layer *model, const wb_batch *batch) {
    wb_gradients *g, *sum = NULL;
    wb_status status = WB_ERROR_MEMORY;
    if (wb_withgradient(regression, model, batch, NULL, &g)) sum = wb_gradients_keep(g);
    if (sum && wb_withgradient(regression, model, batch, NULL, &g))
        status = wb_gradients_add(sum, g);
    if (status == WB_OK) status = wb_gradients_scale(sum, 0.5);
    if (status == WB_OK && !wb_gradients_clip_total_norm(sum, 1)) status = wb_error_status();
    if (status == WB_OK) status = wb_update(o, model, sum);
    wb_free(sum);
    return status;
}

static wb_status step_apart(wb_optimiser *o, wb_layer *model, const wb_batch *batch) {
    wb_gradients *g;
    wb_array *l = wb_withgradient(regression, model, batch, NULL, &g);
    return l ? wb_update(o, model, g) : wb_error_status();
}

static wb_status step_whole(wb_optimiser *o, wb_layer *model, const wb_batch *batch) {
    return wb_train_step(regression, model, batch, NULL, o) ? WB_OK : wb_error_status();
}

static wb_status step(wb_optimiser *o, wb_layer *model, const wb_batch *batch) {
    wb_scope_open();
    wb_status status = taken == SUMS    ? step_of_sums(o, model, batch)
                       : taken == APART ? step_apart(o, model, batch)
                                        : step_whole(o, model, batch);
    const wb_status closed = wb_scope_close();
    return status == WB_OK ? closed : status;
}

/* A model of other sizes each time, so that its plan is new. True if the step had all the memory it
 * wanted. */
static bool fail_at(int64_t n) {
    wb_layer *model =
        wb_chain(wb_dense(1, 2 + n, wb_tanh), wb_dropout(.p = 0.5), wb_dense(2 + n, 1));
    wb_layer *before = wb_clone(model);
    wb_optimiser *o = taken == HALVES ? wb_setup(wb_adam(), model, .compute = WB_BF16,
                                                 .loss_scale = 8, .clip_total_norm = 1)
                                      : wb_setup(wb_adam(), model, .clip_total_norm = 1,
                                                 .micro_batches = taken == PARTS ? 2 : 0);
    const wb_batch batch = {.x = wb_ones(WB_F32, 1, 3), .y = wb_ones(WB_F32, 1, 3)};
    (void)wb_eval(batch.x, batch.y);
    (void)wb_fail_allocation(n);
    const wb_status status = step(o, model, &batch);
    (void)wb_fail_allocation(0);
    if (status != WB_OK) {
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.3.weight",
                                            "layers.3.bias"};
        for (int i = 0; i < 4; i++)
            assert_true(
                wb_approx(wb_get(model, paths[i]), wb_get(before, paths[i]), 0, 0, NULL, 0));
        assert_int_equal(wb_step_count(o), 0);
        assert_int_equal(step(o, model, &batch), WB_OK);
    }
    assert_false(wb_failed());
    wb_free(o), wb_free(model), wb_free(before);
    return status == WB_OK;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (taken = APART; taken < WAYS; taken++) {
        int64_t n = 1;
        while (!fail_at(n)) assert_true(++n < 5000);
    }
}

/* The same for making a model and its optimiser. */
static bool make_failing_at(int64_t n) {
    (void)wb_fail_allocation(n);
    wb_layer *model = wb_chain_named({"a", wb_conv({2, 2}, 1, 1 + n)}, {"b", wb_fn(wb_relu)},
                                     {"c", wb_tree(wb_dense(2, 1 + n))});
    wb_layer *copy = model ? wb_clone(model) : NULL;
    wb_optimiser *o = copy ? wb_setup(wb_adam(), copy) : NULL;
    (void)wb_fail_allocation(0);
    const bool good = o != NULL;
    if (!good) assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
    wb_free(o), wb_free(copy), wb_free(model);
    return good;
}

static void every_maker_may_fail(void **state) {
    (void)state;
    int64_t n = 1;
    while (!make_failing_at(n)) assert_true(++n < 5000);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {TEST(every_allocation_may_fail), TEST(every_maker_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
