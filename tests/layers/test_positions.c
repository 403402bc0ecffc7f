/* src/layers/positions.c, and where attention and its blocks use it. */

#include "models/flux_structs.h"
#include "support/support.h"

static bool alike(wb_array *a, wb_array *b) {
    return a && b && wb_approx(a, b, 1e-12, 1e-12, NULL, 0);
}

static void sinusoidal_ones_are_added(void **state) {
    (void)state;
    wb_layer *p = wb_sinusoidal_positions();
    wb_array *x = wb_normal(WB_F64, 6, 5, 2);
    assert_true(alike(wb_apply(p, x), wb_add(x, wb_sinusoidal(WB_F64, 6, 5))));
    assert_int_equal(wb_dtype_of(wb_apply(p, wb_ones(WB_F16, 4, 3))), WB_F16);
    assert_structure(p, "SinusoidalPositions()");
    assert_int_equal(wb_parameter_count(p), 0);
    wb_free(p);
}

static void rotary_ones_turn(void **state) {
    (void)state;
    wb_layer *p = wb_rotary_positions(.heads = 2, .base = 64);
    wb_array *x = wb_normal(WB_F64, 8, 5, 2);
    assert_true(alike(wb_apply(p, x), wb_rotary(x, .heads = 2, .base = 64)));
    assert_structure(p, "RotaryPositions(heads=2, base=64)");
    wb_free(p);
    p = wb_rotary_positions();
    assert_true(alike(wb_apply(p, x), wb_rotary(x)));
    assert_structure(p, "RotaryPositions()");
    wb_free(p);
}

/* Positions may be any numbers, and need not be those of the plan. */
static void positions_are_given(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F64, 8, 3), *at = wb_vector(7, 8, 9);
    assert_true(alike(wb_rotary(x, .positions = at), wb_rotary(x, .first = 7)));
    wb_array *all = wb_sinusoidal(WB_F64, 8, 10);
    assert_true(alike(wb_sinusoidal_at(WB_F64, 8, at), wb_slice(all, 1, 7, 10, 1)));
    at = wb_add(wb_iota(WB_I32, 0, 3), wb_cast(wb_late(7), WB_I32));
    assert_true(alike(wb_sinusoidal_at(WB_F64, 8, at), wb_slice(all, 1, 7, 10, 1)));
}

/* The layer's q and k are turned, and nothing else. */
static void attention_turns_its_heads(void **state) {
    (void)state;
    wb_layer *l = wb_multi_head_attention(8, .heads = 2, .rotary = 55, .dtype = WB_F64);
    wb_array *x = wb_normal(WB_F64, 8, 5, 2);
    wb_array *q = wb_apply(wb_get_layer(l, "q_proj"), x);
    wb_array *k = wb_apply(wb_get_layer(l, "k_proj"), x);
    wb_array *v = wb_apply(wb_get_layer(l, "v_proj"), x);
    q = wb_rotary(q, .heads = 2, .base = 55), k = wb_rotary(k, .heads = 2, .base = 55);
    wb_array *y = wb_apply(wb_get_layer(l, "out_proj"), wb_attention(q, k, v, .heads = 2));
    assert_true(alike(wb_apply(l, x), y));
    assert_structure(l, "MultiHeadAttention(8 => 8 => 8; nheads=2, rotary=55)");
    wb_free(l);
}

/* What comes piece by piece is what it is in the whole. */
static void pieces_are_the_whole(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain(wb_sinusoidal_positions(), wb_transformer_encoder(8, .heads = 2, .causal = true,
                                                                   .rotary = 100, .bias = false));
    wb_array *x = wb_normal(WB_F32, 8, 7, 2), *whole = wb_apply(model, x);
    wb_eval(x, whole);
    assert_int_equal(wb_cache(model, 9), WB_OK);
    for (int64_t from = 0, end = 3; from < 7; from = end, end += 2) {
        wb_array *y = wb_apply(model, wb_slice(x, 1, from, end, 1));
        assert_true(wb_approx(y, wb_slice(whole, 1, from, end, 1), 1e-5, 1e-5, NULL, 0));
    }
    wb_free(model);
}

static void blocks_have_no_biases(void **state) {
    (void)state;
    wb_layer *b = wb_transformer_decoder(8, .heads = 2, .bias = false);
    wb_parameter p = {0};
    while (wb_next_parameter(b, &p))
        if (strstr(p.path, "bias")) fail_msg("%s", p.path);
    wb_free(b);
    wb_layer *n = wb_layernorm({4}, .bias = false);
    assert_structure(n, "LayerNorm(4, bias=false)");
    assert_int_equal(wb_parameter_count(n), 4);
    wb_free(n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sinusoidal_ones_are_added), TEST(rotary_ones_turn),     TEST(positions_are_given),
        TEST(attention_turns_its_heads), TEST(pieces_are_the_whole), TEST(blocks_have_no_biases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
