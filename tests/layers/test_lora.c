/* src/layers/lora.c */
#include <string.h>

#include <weber.h>

#include "support/scoped.h"

static wb_layer *small_llama(void) {
    wb_seed(1);
    return wb_llama(.vocabulary = 11, .features = 8, .layers = 2, .heads = 2, .kv_heads = 1,
                    .hidden = 12);
}

static wb_array *tokens(void) {
    static const int32_t ids[] = {1, 5, 3, 10, 0, 2, 7, 7};
    return wb_from(WB_I32, ids, 4, 2);
}

static bool equal(wb_array *a, wb_array *b) { return wb_approx(a, b, 1e-5, 1e-6, NULL, 0); }

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static void train(wb_layer *model, int steps) {
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.05), model);
    const wb_batch batch = {.x = tokens(), .y = wb_onehot(tokens(), 11)};
    for (int i = 0; i < steps; i++) assert_non_null(wb_train_step(loss, model, &batch, NULL, adam));
    wb_free(adam);
}

static void an_adapter_changes_nothing_at_first(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    const int64_t all = wb_parameter_count(model);
    wb_array *before = wb_apply(model, tokens());
    assert_int_equal(wb_lora(model, .rank = 3), WB_OK);
    assert_true(equal(wb_apply(model, tokens()), before));
    /* q_proj 8 => 8, v_proj 8 => 4, in two blocks */
    assert_int_equal(wb_parameter_count(model), 2 * 3 * (8 + 8 + 8 + 4));
    assert_int_equal(wb_lora_remove(model), WB_OK);
    assert_int_equal(wb_parameter_count(model), all);
    assert_true(equal(wb_apply(model, tokens()), before));
    wb_free(model);
}

static void adapters_alone_are_trained(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    assert_int_equal(wb_lora(model, .rank = 2, .alpha = 8, .targets = {"layers.2", "*_proj"}),
                     WB_OK);
    wb_array *weight = wb_get(model, "layers.2.attention.q_proj.weight"),
             *a = wb_get(model, "layers.2.attention.q_proj.adapter.a"),
             *before = wb_apply(model, tokens());
    train(model, 3);
    assert_ptr_equal(wb_get(model, "layers.2.attention.q_proj.weight"), weight);
    assert_false(equal(wb_get(model, "layers.2.attention.q_proj.adapter.a"), a));
    wb_array *trained = wb_apply(model, tokens());
    assert_false(equal(trained, before));
    wb_layer *copy = wb_clone(model);
    assert_int_equal(wb_lora_merge(model), WB_OK);
    assert_true(equal(wb_apply(model, tokens()), trained));
    assert_true(equal(wb_apply(copy, tokens()), trained));
    assert_int_equal(wb_lora_remove(copy), WB_OK);
    assert_true(equal(wb_apply(copy, tokens()), before));
    wb_free(model), wb_free(copy);
}

static void a_training_goes_on_after_adapters_change(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    train(model, 1);
    assert_int_equal(wb_lora(model), WB_OK);
    train(model, 2);
    assert_int_equal(wb_lora_merge(model), WB_OK);
    train(model, 1);
    assert_int_equal(wb_lora(model, .rank = 1, .targets = {"*.k_proj"}), WB_OK);
    train(model, 1);
    wb_free(model);
}

static void adapters_of_two_ranks_are_trained(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    assert_int_equal(wb_lora(model, .rank = 3, .targets = {"layers.2.attention.q_proj"}), WB_OK);
    assert_int_equal(wb_lora(model, .rank = 2, .targets = {"layers.3.attention.q_proj"}), WB_OK);
    assert_int_equal(wb_parameter_count(model), 3 * (8 + 8) + 2 * (8 + 8));
    assert_int_equal(wb_set_trainable(model, "layers.2", false), WB_OK);
    assert_int_equal(wb_lora(model, .rank = 1, .targets = {"*.k_proj"}), WB_OK);
    assert_int_equal(wb_parameter_count(model), 2 * (8 + 8) + 2 * (8 + 4));
    wb_free(model);
}

/* y = tanh(W x + b + alpha / rank B A x), by its parts, and merged in the weight's own type. */
static void the_formula(void **state) {
    (void)state;
    static const wb_dtype types[] = {WB_F64, WB_F32, WB_BF16};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        wb_layer *d = wb_dense(5, 3, .activation = wb_tanh, .dtype = types[i]);
        assert_int_equal(wb_lora(d, .rank = 2, .alpha = 6, .targets = {"*"}), WB_OK);
        const wb_dtype own = types[i] == WB_F64 ? WB_F64 : WB_F32;
        wb_array *b = wb_normal(own, 3, 2), *x = wb_cast(wb_normal(WB_F64, 5, 4), types[i]);
        assert_int_equal(wb_set(d, "adapter.b", b), WB_OK);
        wb_array *a = wb_get(d, "adapter.a"), *w = wb_get(d, "weight");
        assert_int_equal(wb_dtype_of(a), own);
        wb_array *low = wb_matmul(b, wb_matmul(a, wb_cast(x, own)));
        wb_array *y = wb_tanh(wb_add(wb_cast(wb_matmul(w, x), own), wb_mul_number(low, 3)));
        const double tolerance = types[i] == WB_BF16 ? 0.05 : 1e-5;
        wb_array *got = wb_apply(d, x);
        assert_int_equal(wb_dtype_of(got), types[i]);
        assert_true(wb_approx(wb_cast(got, own), y, tolerance, tolerance, NULL, 0));
        assert_int_equal(wb_lora_merge(d), WB_OK);
        assert_int_equal(wb_dtype_of(wb_get(d, "weight")), types[i]);
        assert_true(wb_approx(wb_cast(wb_apply(d, x), own), y, tolerance, tolerance, NULL, 0));
        wb_free(d);
    }
}

static void a_tie_ends_where_an_adapter_is_merged(void **state) {
    (void)state;
    wb_layer *model =
        wb_gpt2(.vocabulary = 7, .positions = 4, .features = 4, .layers = 1, .heads = 1);
    assert_int_equal(wb_lora(model, .rank = 1, .targets = {"layers.6"}), WB_OK);
    assert_int_equal(wb_set(model, "layers.6.adapter.b", wb_ones(WB_F32, 7, 1)), WB_OK);
    wb_array *words = wb_get(model, "layers.1.weight");
    wb_array *x = wb_cast(wb_iota(WB_I32, 0, 4, 1), WB_I32), *y = wb_apply(model, x);
    assert_int_equal(wb_lora_merge(model), WB_OK);
    assert_ptr_equal(wb_get(model, "layers.1.weight"), words);
    assert_true(equal(wb_apply(model, x), y));
    wb_free(model);
}

static void models_with_adapters_are_saved(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    assert_int_equal(wb_lora(model, .targets = {"*"}), WB_OK);
    train(model, 1);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a.safetensors", "a.bson", "a.npz"};
        wb_file *file = wb_save_memory(names[i], {"model", model});
        wb_layer *again = file ? wb_file_model(file, NULL, NULL) : NULL;
        assert_non_null(again);
        assert_true(equal(wb_apply(again, tokens()), wb_apply(model, tokens())));
        assert_int_equal(wb_load_from(again, file), WB_OK);
        wb_free(again), wb_free(file);
    }
    wb_free(model);
}

/* Several calls, of different ranks: all adapters are trained. alpha counts, even 0. */
static void more_adapters_join_the_first(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    wb_array *before = wb_apply(model, tokens());
    assert_int_equal(wb_lora(model, .rank = 1, .targets = {"*.q_proj"}), WB_OK);
    assert_int_equal(wb_lora(model, .rank = 2, .alpha = 0, .targets = {"*.k_proj"}), WB_OK);
    assert_int_equal(wb_parameter_count(model), 2 * (8 + 8 + 2 * (8 + 4)));
    assert_true(wb_item(wb_get(model, "layers.2.attention.k_proj.adapter.scale")) == 0);
    train(model, 2);
    assert_false(equal(wb_apply(model, tokens()), before));
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    wb_array *before = wb_apply(model, tokens());
    (void)wb_lora(model, .rank = 0);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora: rank must be positive, got 0");
    (void)wb_lora(model, .alpha = 1e300 * 1e300);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora: alpha must be finite, got inf");
    (void)wb_lora(model, .alpha = 1e300);
    assert_error(WB_ERROR_ARGUMENT, "alpha / rank is 1.25e+299, which f32 cannot hold");
    (void)wb_lora(model, .targets = {"*.q_proj", "layers.1"});
    assert_error(WB_ERROR_ARGUMENT, "wb_lora: \"layers.1\" matches no Dense layer of Chain; it has "
                                    "layers.2.attention.q_proj, layers.2.attention.k_proj");
    (void)wb_lora_merge(model);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora_merge: Chain has no adapters");
    (void)wb_lora_remove(model);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora_remove: Chain has no adapters");
    (void)wb_lora(NULL);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora: the model is NULL");
    assert_true(equal(wb_apply(model, tokens()), before));
    assert_int_equal(wb_lora(model), WB_OK);
    (void)wb_lora(model, .targets = {"*.k_proj", "*.q_proj"});
    assert_error(WB_ERROR_ARGUMENT, "wb_lora: layers.2.attention.q_proj has an adapter already");
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(an_adapter_changes_nothing_at_first),
        TEST(adapters_alone_are_trained),
        TEST(a_training_goes_on_after_adapters_change),
        TEST(adapters_of_two_ranks_are_trained),
        TEST(the_formula),
        TEST(a_tie_ends_where_an_adapter_is_merged),
        TEST(models_with_adapters_are_saved),
        TEST(more_adapters_join_the_first),
        TEST(mistakes),
    };
    return cmocka_run_group_tests_name("layers/test_lora", tests, NULL, NULL);
}
