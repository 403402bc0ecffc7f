/* NULL where a list of a given length is expected: an error that names the function. */
#include <weber.h>

#include "support/support.h"

static void assert_null_list(const char *function) {
    char wanted[80], message[300];
    (void)snprintf(wanted, sizeof wanted, "%s: a list of ", function);
    assert_int_equal(wb_take_error(message, sizeof message), WB_ERROR_ARGUMENT);
    if (strstr(message, wanted) != message || !strstr(message, " is NULL"))
        fail_msg("\"%s\" does not begin with \"%s\"", message, wanted);
}

#define NULL_LIST(function, call)                                                                  \
    (void)(call);                                                                                  \
    assert_null_list(function)

static void of_arrays(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3), *s = wb_sum(x), *g[1];
    NULL_LIST("gradient", wb_gradient_of(s, 1, NULL, g));
    NULL_LIST("gradient", wb_gradient_of(s, 1, &x, NULL));
    assert_int_equal(wb_read(x, NULL, 24), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read: out is NULL");
    assert_int_equal(wb_read_f64(x, NULL, 6), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f64: out is NULL");
    assert_int_equal(wb_read_f32(x, NULL, 6), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_f32: out is NULL");
    NULL_LIST("eval", wb_eval_make(1, NULL));
    NULL_LIST("concat", wb_concat_make(0, 2, NULL));
    NULL_LIST("stack", wb_stack_make(0, 2, NULL));
    NULL_LIST("einsum", wb_einsum_make("ij,jk", 2, NULL));
}

static void of_sizes(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3);
    NULL_LIST("full", wb_full_make(WB_F32, 1, 2, NULL));
    NULL_LIST("uniform", wb_uniform_make(WB_F32, 2, NULL));
    NULL_LIST("iota", wb_iota_make(WB_F32, 0, 2, NULL));
    NULL_LIST("reshape", wb_reshape_make(x, 2, NULL));
    NULL_LIST("expand", wb_expand_make(x, 2, NULL));
    NULL_LIST("permute", wb_permute_make(x, 2, NULL));
    NULL_LIST("tile", wb_tile_make(x, 2, NULL));
    NULL_LIST("sum", wb_sum_make(x, 1, NULL));
    NULL_LIST("maximum", wb_maximum_make(x, 1, NULL));
    NULL_LIST("softmax", wb_softmax_make(x, 1, NULL));
    NULL_LIST("at", wb_at_make(x, 2, NULL));
    NULL_LIST("uniform", wb_glorot_uniform(2, NULL, WB_F32));
    NULL_LIST("orthogonal", wb_orthogonal(2, NULL, WB_F32));
    NULL_LIST("identity_init", wb_identity_init(2, NULL, WB_F32));
    NULL_LIST("sparse_init", wb_sparse_init_with(2, NULL, WB_F32, 0.5, 1));
}

static void of_layers(void **state) {
    (void)state;
    wb_layer *chain = wb_chain(wb_flatten());
    wb_array *x = wb_ones(WB_F32, 2, 3), *y[1];
    NULL_LIST("wb_apply_many", wb_apply_many(chain, 1, NULL, 1, y));
    NULL_LIST("wb_apply_many", wb_apply_many(chain, 1, &x, 1, NULL));
    NULL_LIST("wb_activations", wb_activations(chain, x, 1, NULL));
    NULL_LIST("wb_chain", wb_chain_make(2, NULL));
    NULL_LIST("wb_chain_named", wb_chain_named_make(2, NULL));
    NULL_LIST("wb_parallel", wb_parallel_make(wb_connect_add, 2, NULL));
    NULL_LIST("wb_maxout", wb_maxout_make(2, NULL));
    NULL_LIST("wb_tree", wb_tree_make(2, NULL));
    assert_false(wb_is_active(NULL));
    wb_free(chain);
}

static wb_array *sum(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_sum(arrays[0]);
}

/* Places that a function fills, and what it calls. */
static void of_places(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, 3), *parts[2];
    NULL_LIST("splitobs", wb_splitobs_make(x, NULL, 1, (const double[]){0.5}));
    NULL_LIST("splitobs", wb_splitobs_make(x, parts, 1, NULL));
    NULL_LIST("gradient_check", wb_gradient_check(sum, NULL, 1, NULL, 1, 1e-3));
    NULL_LIST("wb_rule_chain", wb_rule_chain_make(2, NULL));
    (void)wb_gradient_check(NULL, NULL, 1, &x, 1, 1e-3);
    assert_error(WB_ERROR_ARGUMENT, "gradient_check: fn is NULL");
    (void)wb_fashion_mnist(WB_SPLIT_TEST, &x, NULL);
    assert_error(WB_ERROR_ARGUMENT, "wb_fashion_mnist: labels is NULL");
    (void)wb_device_properties_at("CPU", 0, NULL);
    assert_error(WB_ERROR_ARGUMENT, "wb_device_properties_at: properties is NULL");
    (void)wb_device_choice(NULL);
    assert_error(WB_ERROR_ARGUMENT, "wb_device_choice: choice is NULL");
    assert_int_equal(wb_device_sync(NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_device_sync: the device is NULL");
}

static void of_other_things(void **state) {
    (void)state;
    NULL_LIST("wb_schedule_sequence", wb_schedule_sequence_make(2, NULL));
    NULL_LIST("wb_schedule_stages", wb_schedule_stages_make(1, 0.5, 2, NULL));
    NULL_LIST("wb_save", wb_save_make("never.npz", 2, NULL));
    NULL_LIST("wb_load_named", wb_load_named_make("never.npz", 2, NULL));
    assert_false(wb_patience_is_over(NULL, true));
    assert_error(WB_ERROR_ARGUMENT, "wb_patience_is_over: the patience is NULL");
    assert_false(wb_early_stopping_ends(NULL, 1));
    assert_error(WB_ERROR_ARGUMENT, "wb_early_stopping_ends: the watch is NULL");
    assert_false(wb_throttle_passes(NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_throttle_passes: the throttle is NULL");
    assert_false(wb_throttle_has_rest(NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_throttle_has_rest: the throttle is NULL");
    assert_null(wb_concat_make(0, -1, NULL));
    assert_error(WB_ERROR_ARGUMENT, "concat: needs at least one array");
    assert_int_equal(wb_eval_make(-1, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "eval: a list must not have a negative length, got -1");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(of_arrays), TEST(of_sizes), TEST(of_layers),
                                     TEST(of_places), TEST(of_other_things)};
    ADD_TESTS(&tests, all);
    return run_test_list("mistakes/test_null_lists", &tests, NULL, NULL);
}
