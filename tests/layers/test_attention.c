/* MultiHeadAttention against wb_attention between its Dense layers, its text, and Flux's struct. */
#include "models/flux_structs.h"

static wb_array *by_hand(wb_layer *m, wb_attention_desc d) {
    d.q = wb_apply(wb_get_layer(m, "q_proj"), d.q);
    d.k = wb_apply(wb_get_layer(m, "k_proj"), d.k);
    d.v = wb_apply(wb_get_layer(m, "v_proj"), d.v);
    return wb_apply(wb_get_layer(m, "out_proj"), wb_attention_make(d));
}

static void it_is_attention_between_dense_layers(void **state) {
    (void)state;
    wb_layer *m = wb_multi_head_attention(8, .k_in = 4, .qk = 12, .v = 6, .out = 3, .heads = 2,
                                          .bias = true, .dtype = WB_F64);
    wb_array *q = wb_normal(WB_F64, 8, 5, 2), *k = wb_normal(WB_F64, 4, 7, 2), *y[1];
    wb_array *v = wb_normal(WB_F64, 4, 7, 2), *bias = wb_normal(WB_F64, 7, 5);
    wb_array *mask = wb_gt(wb_normal(WB_F64, 7, 5), wb_number(0));
    assert_int_equal(wb_apply_many(m, 2, (wb_array *[]){q, k}, 1, y), 1);
    assert_sizes(y[0], 3, 5, 2);
    wb_array *wanted = by_hand(m, WB_DESC(attention, q, k, k, .heads = 2));
    assert_true(wb_approx(y[0], wanted, 1e-12, 1e-12, NULL, 0));
    assert_int_equal(wb_apply_many(m, 5, (wb_array *[]){q, k, v, bias, mask}, 1, y), 1);
    wanted = by_hand(m, WB_DESC(attention, q, k, v, .heads = 2, .bias = bias, .mask = mask));
    assert_true(wb_approx(y[0], wanted, 1e-12, 1e-12, NULL, 0));
    assert_int_equal(wb_count_model(m).numbers, 12 * 9 + 12 * 5 + 6 * 5 + 3 * 7);
    wb_free(m);
}

static void heads_share_keys(void **state) {
    (void)state;
    wb_layer *m = wb_multi_head_attention(8, .heads = 4, .kv_heads = 2, .v = 12, .bias = true,
                                          .out_bias = false, .dtype = WB_F64);
    wb_array *x = wb_normal(WB_F64, 8, 5);
    assert_sizes(wb_get(m, "k_proj.weight"), 4, 8);
    assert_sizes(wb_get(m, "v_proj.weight"), 6, 8);
    assert_int_equal(wb_count_model(m).numbers, 8 * 9 + 4 * 9 + 6 * 9 + 12 * 8);
    wb_array *wanted = by_hand(m, WB_DESC(attention, x, x, x, .heads = 4, .kv_heads = 2));
    assert_true(wb_approx(wb_apply(m, x), wanted, 1e-12, 1e-12, NULL, 0));
    wb_free(m);
    assert_null(wb_multi_head_attention(8, .heads = 4, .kv_heads = 3));
    assert_error(WB_ERROR_ARGUMENT, "kv_heads must divide heads, got 3 and 4");
}

/* Keys that are at least 3 positions away do not matter, with the causal mask and without. */
static void windows_hide_what_is_far(void **state) {
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        wb_layer *m =
            wb_multi_head_attention(8, .heads = 2, .causal = causal, .window = 3, .dtype = WB_F64);
        wb_array *x = wb_normal(WB_F64, 8, 9), *key = wb_iota(WB_I32, 0, 9, 9);
        wb_array *query = wb_iota(WB_I32, 1, 9, 9);
        wb_array *mask = wb_lt(wb_abs(wb_sub(key, query)), wb_number(3));
        const wb_attention_desc d =
            WB_DESC(attention, x, x, x, .heads = 2, .causal = causal, .mask = mask);
        assert_true(wb_approx(wb_apply(m, x), by_hand(m, d), 1e-12, 1e-12, NULL, 0));
        wb_free(m);
    }
}

static void one_array_is_all_three(void **state) {
    (void)state;
    wb_layer *m = wb_multi_head_attention(8, .heads = 2, .causal = true, .dtype = WB_F64);
    wb_array *x = wb_normal(WB_F64, 8, 4), *y = wb_apply(m, x);
    const wb_attention_desc d = WB_DESC(attention, x, x, x, .heads = 2, .causal = true);
    assert_true(wb_approx(y, by_hand(m, d), 1e-12, 1e-12, NULL, 0));
    wb_free(m);
}

static void dropout_is_for_training(void **state) {
    (void)state;
    wb_layer *m = wb_multi_head_attention(8, .heads = 2, .dropout = 0.5);
    wb_array *x = wb_normal(WB_F32, 8, 4);
    assert_true(wb_approx(wb_apply(m, x), wb_apply(m, x), 0, 0, NULL, 0));
    wb_train_mode(m);
    assert_false(wb_approx(wb_apply(m, x), wb_apply(m, x), 1e-3, 1e-3, NULL, 0));
    wb_free(m);
}

static void texts(void **state) {
    (void)state;
    wb_layer *models[] = {
        wb_multi_head_attention(64),
        wb_multi_head_attention(3, .qk = 6, .v = 7, .out = 8, .heads = 1, .bias = true,
                                .dropout = 0.1),
        wb_multi_head_attention(8, .k_in = 4, .heads = 4, .causal = true),
        wb_multi_head_attention(8, .heads = 4, .kv_heads = 2, .bias = true, .out_bias = false,
                                .causal = true, .window = 4, .rotary = 500, .rotary_factor = 8,
                                .rotary_low = 1, .rotary_high = 4, .rotary_length = 64),
    };
    static const char *const texts[] = {
        "MultiHeadAttention(64 => 64 => 64)",
        "MultiHeadAttention(3 => (6, 7) => 8; nheads=1, bias=true, dropout_prob=0.1)",
        "MultiHeadAttention((8, 4, 4) => 8 => 8; nheads=4, causal=true)",
        "MultiHeadAttention(8 => 8 => 8; nheads=4, kv_heads=2, bias=true, out_bias=false, "
        "causal=true, window=4, rotary=5e+02, rotary_factor=8, rotary_low=1, rotary_high=4, "
        "rotary_length=64)",
    };
    for (int i = 0; i < 4; i++) {
        if (!models[i]) fail_msg("%s", wb_error_message());
        assert_structure(models[i], texts[i]);
        wb_layer *again = wb_parse(texts[i]);
        if (!again) fail_msg("%s", wb_error_message());
        assert_structure(again, texts[i]);
        wb_free(models[i]), wb_free(again);
    }
    wb_layer *pair = wb_parse("MultiHeadAttention((8, 4) => 8 => 3; nheads=2)");
    assert_structure(pair, "MultiHeadAttention((8, 4, 4) => 8 => 3; nheads=2)");
    wb_layer *one = wb_parse("MultiHeadAttention(16)");
    assert_structure(one, "MultiHeadAttention(16 => 16 => 16)");
    wb_free(pair), wb_free(one);
}

#define ROW_OF_TWO ARRAY("Float32", "1, 2", ONE " " TWO)
#define ATTENTION(bias)                                                                            \
    MODEL(                                                                                         \
        STRUCT("Flux", "MultiHeadAttention",                                                       \
               "1, " DENSE(W, bias, IDENTITY) ", " DENSE(W, bias, IDENTITY) ", " DENSE(            \
                   W, bias, IDENTITY) ", " STRUCT("Flux", "Dropout",                               \
                                                  "0.25, null, null, null") ", " DENSE(ROW_OF_TWO, \
                                                                                       "false",    \
                                                                                       IDENTITY)))
static const flux_row structs[] = {
    FLUX("attention of Flux", ATTENTION("false"),
         "MultiHeadAttention(1 => 2 => 1; nheads=1, dropout_prob=0.25)", "out_proj.weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(it_is_attention_between_dense_layers),
        TEST(heads_share_keys),
        TEST(windows_hide_what_is_far),
        TEST(one_array_is_all_three),
        TEST(dropout_is_for_training),
        TEST(texts),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_attention", &tests, make_folder, drop_folder);
}
