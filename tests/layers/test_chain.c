/* src/layers/chain.c, tree.c, list.c, fn.c, and paths */
#include <string.h>

#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

static wb_array *square(wb_array *x) { return wb_square(x); }
static wb_array *less_three(wb_array *x) { return wb_add_number(x, -3); }

static void an_empty_chain_is_the_identity(void **state) { /* D12 */
    (void)state;
    wb_layer *chain = wb_chain();
    wb_array *x = wb_vector(1, 2), *out[1];
    assert_true(wb_apply(chain, x) == x);
    assert_int_equal(wb_activations(chain, x, 1, out), 0);
    wb_free(chain);
}

static void activations_of_a_chain(void **state) { /* D13 */
    (void)state;
    wb_layer *chain = wb_chain(wb_fn(square), wb_fn(less_three), wb_fn(wb_tanh));
    wb_array *out[3];
    assert_int_equal(wb_activations(chain, wb_vector(1, 2), 3, out), 3);
    assert_values(out[0], 1e-6, 1, 4);
    assert_values(out[1], 1e-6, -2, 1);
    assert_values(out[2], 1e-6, -0.9640275800758169, 0.7615941559557649);
    wb_free(chain);
}

static void names(void **state) { /* D12 */
    (void)state;
    wb_layer *chain = wb_chain_named({"encoder", wb_dense(4, 2)}, {"decoder", wb_dense(2, 4)});
    assert_sizes(wb_get(chain, "layers.encoder.weight"), 2, 4);
    assert_sizes(wb_apply(chain, wb_ones(WB_F32, 4, 3)), 4, 3);
    assert_null(wb_apply(chain, wb_ones(WB_F32, 5, 3)));
    assert_error(WB_ERROR_SHAPE, "Dense(4 => 2), encoder of Chain: input has 5 features");
    wb_free(chain);
}

static void an_unknown_path_lists_the_valid_ones(void **state) {
    (void)state;
    wb_layer *chain = wb_chain(wb_dense(4, 2), wb_dense(2, 4, .bias = false));
    assert_sizes(wb_get(chain, "layers.2.weight"), 4, 2);
    assert_null(wb_get(chain, "layers.3.weight"));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_get: no \"layers.3.weight\" in Chain; it has layers.1.weight, "
                 "layers.1.bias, layers.2.weight");
    assert_null(wb_get(chain, "layers.2.bias"));
    assert_error(WB_ERROR_ARGUMENT, "has no \"layers.2.bias\"");
    assert_null(wb_get(chain, "layers.1"));
    assert_error(WB_ERROR_ARGUMENT, "no \"layers.1\"");
    assert_non_null(wb_get_layer(chain, "layers.1"));
    wb_free(chain);
}

static void setting_an_array(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(2, 3);
    wb_array *old = wb_keep(wb_get(dense, "weight"));
    assert_int_equal(wb_set(dense, "weight", wb_ones(WB_F64, 3, 2)), WB_OK);
    assert_int_equal(wb_dtype_of(wb_get(dense, "weight")), WB_F32);
    assert_values(wb_apply(dense, wb_vector(1, 2)), 1e-6, 3, 3, 3);
    assert_true(wb_item(wb_maximum(old)) < 1.1);
    assert_int_equal(wb_set(dense, "weight", wb_ones(WB_F32, 2, 3)), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "wb_set: weight has sizes (3, 2), the new array (2, 3)");
    wb_free(old), wb_free(dense);
}

static void trees_hold_arrays_and_layers(void **state) {
    (void)state;
    wb_layer *tree =
        wb_tree(wb_vector(1, 2), wb_tree_named({"a", wb_vector(3)}, {"d", wb_dense(1, 1)}));
    assert_values(wb_get(tree, "1"), 0, 1, 2);
    assert_values(wb_get(tree, "2.a"), 0, 3);
    assert_sizes(wb_get(tree, "2.d.weight"), 1, 1);
    assert_int_equal(wb_parameter_count(tree), 5);
    assert_null(wb_apply(tree, wb_vector(1)));
    assert_error(WB_ERROR_ARGUMENT, "Tree: cannot be applied");
    wb_free(tree);
}

static void a_chain_is_looked_into(void **state) {
    (void)state;
    wb_layer *a = wb_dense(4, 3), *b = wb_dense(3, 2), *c = wb_fn(wb_relu);
    wb_layer *chain = wb_chain(a, b, c),
             *named = wb_chain_named({"enc", wb_keep_layer(a)}, {"dec", wb_keep_layer(b)});
    assert_int_equal(wb_chain_count(chain), 3);
    assert_ptr_equal(wb_chain_at(chain, 1), a);
    assert_ptr_equal(wb_chain_at(chain, -1), c);
    assert_ptr_equal(wb_chain_get(named, "dec"), b);
    assert_null(wb_chain_at(chain, 0));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_at: layer must be from 1 to 3, or -1 to -3, got 0");
    assert_null(wb_chain_at(chain, -4));
    assert_error(WB_ERROR_ARGUMENT, "got -4");
    assert_null(wb_chain_get(named, "head"));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_get: the chain has no layer \"head\"");
    assert_int_equal(wb_chain_count(a), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_count: expected a Chain, got Dense");
    wb_free(chain), wb_free(named);
}

static void slices_share_their_layers(void **state) {
    (void)state;
    wb_layer *chain =
        wb_chain_named({"a", wb_dense(4, 3)}, {"b", wb_dense(3, 2)}, {"c", wb_dense(2, 1)});
    wb_layer *slice = wb_chain_slice(chain, 2, -1);
    assert_int_equal(wb_chain_count(slice), 2);
    assert_ptr_equal(wb_chain_get(slice, "c"), wb_chain_at(chain, 3));
    assert_sizes(wb_apply(slice, wb_ones(WB_F32, 3, 5)), 1, 5);
    assert_null(wb_chain_slice(chain, 3, 2));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_slice: first must not be after last, got 3 and 2");
    assert_null(wb_chain_slice(chain, 1, 4));
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_slice: layer must be from 1 to 3");
    wb_free(chain);
    assert_sizes(wb_get(slice, "layers.b.weight"), 2, 3);
    wb_free(slice);
}

static void layers_are_appended(void **state) {
    (void)state;
    wb_layer *chain = wb_chain(), *named = wb_chain_named({"a", wb_dense(4, 3)});
    assert_int_equal(wb_chain_append(chain, NULL, wb_dense(4, 3)), WB_OK);
    assert_int_equal(wb_chain_append(chain, NULL, wb_dense(3, 2)), WB_OK);
    assert_sizes(wb_apply(chain, wb_ones(WB_F32, 4, 5)), 2, 5);
    assert_int_equal(wb_chain_append(named, "b", wb_fn(wb_relu)), WB_OK);
    assert_int_equal(wb_chain_count(named), 2);
    assert_int_equal(wb_chain_append(named, NULL, wb_fn(wb_relu)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_chain_append: the other layers have names, so the new one needs one");
    assert_int_equal(wb_chain_append(chain, "x", wb_fn(wb_relu)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "the other layers have no names, so the new one must have none");
    assert_int_equal(wb_chain_append(chain, NULL, chain), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_append: a layer cannot be part of itself");
    wb_layer *around = wb_chain(wb_keep_layer(chain));
    assert_int_equal(wb_chain_append(chain, NULL, around), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the one given is Chain or contains it");
    wb_free(around);
    assert_int_equal(wb_chain_append(named, "a", wb_fn(wb_relu)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "a layer is named \"a\" already");
    assert_int_equal(wb_chain_append(named, "7", wb_fn(wb_relu)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "cannot be named \"7\"");
    assert_int_equal(wb_chain_append(chain, NULL, wb_dense(0, 1)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "Dense: in must be positive, got 0; so wb_chain_append got NULL as layer 3");
    assert_int_equal(wb_chain_append(chain, NULL, wb_chain_at(chain, 1)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_chain_append: layer 3, Dense(4 => 3), belongs to another");
    assert_int_equal(wb_chain_count(chain), 2);
    wb_free(chain), wb_free(named);
}

/* ---- lists of a struct ---- */

typedef struct Blocks {
    wb_layer layer;
    wb_layer_list blocks, gains;
} Blocks;

static wb_array *forward_blocks(wb_layer *layer, wb_array *x) {
    const Blocks *b = (const Blocks *)(void *)layer;
    for (int64_t i = 0; i < b->blocks.count; i++)
        x = wb_mul(wb_apply(b->blocks.items[i].layer, x), b->gains.items[i].array);
    return x;
}

WB_FUNCTOR(Blocks, forward_blocks, WB_LIST_FIELD(Blocks, blocks), WB_LIST_FIELD(Blocks, gains));

static void a_list_is_filled_from_c(void **state) {
    (void)state;
    Blocks *b = wb_new(Blocks);
    wb_layer *layer = &b->layer;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_list_append(layer, "blocks", NULL, wb_dense(2, 2, wb_square)), WB_OK);
        assert_int_equal(wb_list_append(layer, "gains", NULL, wb_full(WB_F32, i, 1)), WB_OK);
    }
    assert_int_equal(b->blocks.count, 3);
    assert_int_equal(wb_parameter_count(layer), 3 * (6 + 1));
    assert_sizes(wb_get(layer, "blocks.2.weight"), 2, 2);
    assert_values(wb_get(layer, "gains.3"), 0, 2);
    wb_layer *copy = wb_clone(layer);
    wb_array *x = wb_normal(WB_F32, 2, 5);
    assert_true(wb_approx(wb_apply(copy, x), wb_apply(layer, x), 0, 0, NULL, 0));
    wb_free(copy), wb_free(layer);
}

static void what_a_list_refuses_is_named(void **state) {
    (void)state;
    wb_layer *layer = (wb_layer *)(void *)wb_new(Blocks), *chain = wb_chain(wb_dense(1, 1));
    assert_int_equal(wb_list_append(layer, "block", NULL, wb_dense(2, 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_list_append: Blocks has no list \"block\"; it has blocks, "
                                    "gains");
    assert_int_equal(wb_list_append(layer, NULL, NULL, wb_dense(2, 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the list's name is NULL");
    assert_int_equal(wb_list_append(layer, "blocks", NULL, wb_dense(0, 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "Dense: in must be positive, got 0; so wb_list_append got NULL as entry 1");
    assert_int_equal(wb_list_append(layer, "blocks", "a", wb_dense(2, 2)), WB_OK);
    assert_int_equal(wb_list_append(layer, "blocks", "a", wb_dense(2, 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "named \"a\" already");
    assert_int_equal(wb_list_append(layer, "blocks", NULL, wb_dense(2, 2)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the other layers have names, so the new one needs one");
    assert_int_equal(wb_list_append(layer, "blocks", "b", layer), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_list_append: a layer cannot be part of itself, but the one "
                                    "given is Blocks or contains it");
    assert_int_equal(wb_list_append(chain, "layers", NULL, wb_dense(1, 1)), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "a struct of your own is expected, got Chain, for "
                                    "wb_chain_append");
    wb_free(layer), wb_free(chain);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(a_list_is_filled_from_c),
        TEST(what_a_list_refuses_is_named),
        TEST(an_empty_chain_is_the_identity),
        TEST(activations_of_a_chain),
        TEST(names),
        TEST(an_unknown_path_lists_the_valid_ones),
        TEST(setting_an_array),
        TEST(trees_hold_arrays_and_layers),
        TEST(a_chain_is_looked_into),
        TEST(slices_share_their_layers),
        TEST(layers_are_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
