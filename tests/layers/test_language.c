/* Known models of language, TokenEmbedding, and texts (weber/language.h). */
#include <math.h>
#include <string.h>
#include <weber/language.h>
#include <weber/metrics.h>

#include "base/memory.h"
#include "support/support.h"

enum { VOCABULARY = 30, LENGTH = 12 };

static wb_array *random_tokens(int64_t length, int64_t batch) {
    wb_array *x = wb_mul_number(wb_uniform(WB_F32, length, batch), VOCABULARY - 0.01);
    return wb_cast(wb_floor(x), WB_I32);
}

static wb_layer *small_gpt2(void) {
    return wb_gpt2(.vocabulary = VOCABULARY, .positions = 40, .features = 16, .layers = 2,
                   .heads = 2);
}

static wb_layer *small_llama(void) {
    return wb_llama(.vocabulary = VOCABULARY, .features = 16, .layers = 2, .heads = 4,
                    .kv_heads = 2, .hidden = 24, .bias = true, .tied = true);
}

/* The numbers of parameters that the papers' models have: those of GPT-2's and BERT's published
 * weights (124,439,808, and 108,891,648 without BERT's pooler), and of Llama 2's, counted by the
 * sizes in its configuration. Zeros take no memory until they are used. */
static void models_have_their_parameters(void **state) {
    (void)state;
    wb_layer *models[] = {
        wb_gpt2(.init = wb_zeros_init),
        wb_bert(.init = wb_zeros_init),
        wb_llama(.vocabulary = 320, .features = 64, .layers = 2, .heads = 4, .hidden = 172),
        wb_llama(.vocabulary = 320, .features = 64, .layers = 2, .heads = 4, .kv_heads = 2,
                 .head_features = 8, .hidden = 172, .tied = true, .head = true),
    };
    static const int64_t counts[] = {
        124439808,
        108891648,
        2 * 320 * 64 + 64 + 2 * (2 * 64 + 4 * 64 * 64 + 3 * 64 * 172),
        320 * 64 + 64 + 2 * (2 * 64 + 2 * 32 * 64 + 2 * 16 * 64 + 3 * 64 * 172),
    };
    for (int i = 0; i < 4; i++) {
        if (!models[i]) fail_msg("%s", wb_error_message());
        assert_int_equal(wb_parameter_count(models[i]), counts[i]);
        wb_free(models[i]);
    }
}

/* A head that is left out gives features. */
static void models_give_logits(void **state) {
    (void)state;
    wb_layer *models[] = {small_gpt2(), small_llama(),
                          wb_bert(.vocabulary = VOCABULARY, .positions = 20, .features = 16,
                                  .layers = 1, .heads = 2)};
    for (int i = 0; i < 3; i++) {
        wb_array *x = random_tokens(LENGTH, 2), *y = wb_apply(models[i], x);
        if (!y) fail_msg("%s", wb_error_message());
        assert_sizes(y, i < 2 ? VOCABULARY : 16, LENGTH, 2);
        wb_free(models[i]);
    }
    wb_layer *body = wb_gpt2(.vocabulary = VOCABULARY, .positions = 20, .features = 16, .layers = 1,
                             .heads = 2, .head = false);
    assert_sizes(wb_apply(body, random_tokens(5, 1)), 16, 5, 1);
    wb_free(body);
}

static void wrong_sizes_are_named(void **state) {
    (void)state;
    assert_null(wb_gpt2(.features = 10, .heads = 3));
    assert_error(WB_ERROR_ARGUMENT, "wb_gpt2: MultiHeadAttention: qk must be divisible by heads");
    assert_null(wb_llama(.vocabulary = 10, .features = 8, .layers = 1, .heads = 4, .hidden = 6,
                         .kv_heads = 3)); /* and no block with another attention */
    assert_error(WB_ERROR_ARGUMENT, "wb_llama: MultiHeadAttention: kv_heads must divide heads");
    assert_null(wb_gpt2(.layers = 0));
    assert_error(WB_ERROR_ARGUMENT, "wb_gpt2: layers must be from 1 to 1024, got 0");
    assert_null(wb_llama(.vocabulary = 10, .features = 34, .layers = 1, .heads = 4, .hidden = 6));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_llama: heads must divide features, unless head_features is given, got 4 and "
                 "34");
    assert_null(wb_llama(.vocabulary = 10, .features = 8, .layers = 1, .heads = 2));
    assert_error(WB_ERROR_ARGUMENT, "wb_llama: hidden must be positive, got 0");
    assert_null(wb_bert(.types = -1));
    assert_error(WB_ERROR_ARGUMENT, "wb_bert: types must be positive, got -1");
}

/* ---- TokenEmbedding ---- */

static void it_is_a_sum_with_a_norm(void **state) {
    (void)state;
    wb_layer *m = wb_token_embedding(VOCABULARY, 6, .positions = 9, .types = 3, .dtype = WB_F64);
    wb_array *x = random_tokens(4, 2), *types = wb_cast(wb_ge(x, wb_number(9)), WB_I32), *y[2];
    wb_array *mask = wb_lt(wb_iota(WB_I32, 0, 4, 2), wb_number(3));
    wb_array *words = wb_gather(wb_get(m, "words.weight"), x, 1);
    wb_array *places = wb_unsqueeze(wb_slice(wb_get(m, "positions.weight"), 1, 0, 4, 1), 2);
    wb_array *kind = wb_gather(wb_get(m, "types.weight"), types, 1);
    wb_array *wanted = wb_apply(wb_get_layer(m, "norm"), wb_add(wb_add(words, places), kind));
    assert_int_equal(wb_apply_many(m, 2, (wb_array *[]){x, types}, 2, y), 1);
    assert_true(wb_approx(y[0], wanted, 1e-12, 1e-12, NULL, 0));
    assert_int_equal(wb_apply_many(m, 3, (wb_array *[]){x, types, mask}, 2, y), 2);
    assert_true(wb_approx(y[0], wanted, 1e-12, 1e-12, NULL, 0));
    assert_sizes(y[1], 4, 1, 1, 2);
    wb_array *none = wb_cast(wb_zeros(WB_F32, 4, 2), WB_I32);
    assert_int_equal(wb_apply_many(m, 2, (wb_array *[]){x, none}, 2, y), 1);
    assert_true(wb_approx(y[0], wb_apply(m, x), 1e-12, 1e-12, NULL, 0));
    assert_int_equal(wb_apply_many(m, 2, (wb_array *[]){x, wb_slice(mask, 0, 0, 3, 1)}, 2, y), 0);
    assert_error(WB_ERROR_SHAPE, "the mask must have the sizes of the tokens, (4, 2)");
    assert_null(wb_apply(m, wb_zeros(WB_F32, 4, 2)));
    assert_error(WB_ERROR_DTYPE, "tokens must be integers");
    wb_free(m);
}

/* What a shorter text has behind its end does not matter. */
static void masks_hide_what_is_behind_the_end(void **state) {
    (void)state;
    wb_layer *m =
        wb_bert(.vocabulary = VOCABULARY, .positions = 20, .features = 16, .layers = 2, .heads = 2);
    wb_array *x = random_tokens(5, 2), *y[2];
    wb_array *mask = wb_lt(wb_iota(WB_I32, 0, 5, 2), wb_from(WB_I32, ((int32_t[]){3, 5}), 1, 2));
    assert_int_equal(wb_apply_many(m, 2, (wb_array *[]){x, mask}, 2, y), 2);
    wb_array *alone = wb_apply(m, wb_slice(wb_slice(x, 1, 0, 1, 1), 0, 0, 3, 1));
    wb_array *beside = wb_slice(wb_slice(y[0], 2, 0, 1, 1), 1, 0, 3, 1);
    assert_true(wb_approx(beside, alone, 1e-5, 1e-5, NULL, 0));
    wb_free(m);
}

/* ---- texts ---- */

/* The likeliest tokens, by the whole text each time. */
static void by_hand(wb_layer *model, int64_t count, int32_t *tokens, int64_t most) {
    for (; count < most; count++) {
        wb_array *y = wb_apply(model, wb_from(WB_I32, tokens, count));
        wb_array *last = wb_slice(y, 1, count - 1, count, 1);
        tokens[count] = (int32_t)wb_item(wb_argmax(last, 0));
    }
}

static void the_likeliest_tokens(void **state) {
    (void)state;
    wb_layer *models[] = {small_gpt2(), small_llama()};
    for (int i = 0; i < 2; i++) {
        int32_t wanted[20] = {3, 1, 4}, got[20] = {3, 1, 4}, by_top[20] = {3, 1, 4};
        by_hand(models[i], 3, wanted, 20);
        assert_int_equal(wb_generate(models[i], 3, got, .most = 20, .temperature = 0), 20);
        assert_memory_equal(got, wanted, sizeof wanted);
        assert_int_equal(wb_generate(models[i], 3, by_top, .most = 20, .top_k = 1), 20);
        assert_memory_equal(by_top, wanted, sizeof wanted);
        wb_free(models[i]);
    }
}

/* Gives token i the logit i / 2, whatever came before; it has a cache, as all models here. */
static int stairs(void *user, int count, wb_array *const *x, wb_array **y) {
    (void)user, (void)count;
    y[0] = wb_mul_number(wb_iota(WB_F32, 0, 8, wb_size(x[0], 1)), 0.5);
    return y[0] != NULL;
}

static wb_layer *stair_model(void) {
    return wb_chain(wb_embedding(8, 4), wb_multi_head_attention(4, .heads = 1, .causal = true),
                    wb_fn_with(stairs));
}

/* How often each token comes among 2,000. */
static void frequencies(wb_layer *model, wb_generate_desc d, double counts[8]) {
    static int32_t tokens[2001];
    d.model = model, d.count = 1, d.tokens = tokens, d.most = 2001;
    memset(counts, 0, 8 * sizeof *counts);
    assert_int_equal(wb_generate_make(d), 2001);
    for (int i = 1; i < 2001; i++) counts[tokens[i]] += 1 / 2000.0;
}

/* Of 2,000 draws a frequency p is right to 5 sqrt(p / 2000). */
static void tokens_are_drawn_by_their_probabilities(void **state) {
    (void)state;
    wb_layer *model = stair_model();
    static const struct {
        wb_generate_desc d;
        int first; /* of the tokens that are left */
        double temperature;
    } rows[] = {
        {{.temperature = 1, .top_p = 1, .repetition = 1}, 0, 1},
        {{.temperature = 0.5, .top_p = 1, .repetition = 1}, 0, 0.5},
        {{.temperature = 1, .top_k = 3, .top_p = 1, .repetition = 1}, 5, 1},
        /* the two likeliest have 0.64 */
        {{.temperature = 1, .top_p = 0.7, .repetition = 1}, 5, 1},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double counts[8], sum = 0;
        wb_generate_desc d = WB_DESC(generate, NULL);
        d.temperature = rows[r].d.temperature, d.top_k = rows[r].d.top_k;
        d.top_p = rows[r].d.top_p;
        frequencies(model, d, counts);
        for (int i = rows[r].first; i < 8; i++) sum += exp(i / 2.0 / rows[r].temperature);
        for (int i = 0; i < 8; i++) {
            const double p = i < rows[r].first ? 0 : exp(i / 2.0 / rows[r].temperature) / sum;
            if (fabs(counts[i] - p) > 5 * sqrt(p / 2000) + 1e-12)
                fail_msg("row %zu, token %d: %g, not %g", r, i, counts[i], p);
        }
    }
    wb_free(model);
}

/* Logits of known tokens are divided: the text goes down the stairs. */
static void repetition_is_dear(void **state) {
    (void)state;
    wb_layer *model = stair_model();
    int32_t tokens[7] = {7};
    static const int32_t wanted[] = {7, 6, 5, 4, 3, 2, 1};
    assert_int_equal(wb_generate(model, 1, tokens, .most = 7, .temperature = 0, .repetition = 100),
                     7);
    assert_memory_equal(tokens, wanted, sizeof wanted);
    wb_free(model);
}

static bool until_the_third(void *user, int32_t token) {
    int32_t *count = user;
    (void)token;
    return ++*count < 3;
}

static void texts_end(void **state) {
    (void)state;
    wb_layer *model = stair_model();
    int32_t tokens[20] = {1}, seen = 0;
    assert_int_equal(wb_generate(model, 1, tokens, .most = 20, .temperature = 0, .end = 7), 2);
    assert_int_equal(tokens[1], 7);
    assert_int_equal(
        wb_generate(model, 1, tokens, .most = 20, .each = until_the_third, .user = &seen), 4);
    assert_int_equal(wb_generate(model, 2, tokens, .most = 2), 2);
    wb_free(model);
}

/* The last of `all` logits is the highest; the number grows with each call. */
static int growing(void *user, int count, wb_array *const *x, wb_array **y) {
    int64_t *all = user;
    (void)count;
    y[0] = wb_iota(WB_F32, 0, *all, wb_size(x[0], 1));
    *all *= 50;
    return y[0] != NULL;
}

static void the_vocabulary_may_change(void **state) {
    (void)state;
    int64_t all = 5000;
    wb_layer *model =
        wb_chain(wb_embedding(5000, 4), wb_multi_head_attention(4, .heads = 1, .causal = true),
                 wb_fn_with(growing, &all));
    int32_t tokens[3] = {0};
    static const int32_t wanted[] = {0, 4999, 249999};
    assert_int_equal(wb_generate(model, 1, tokens, .most = 3, .temperature = 0), 3);
    assert_memory_equal(tokens, wanted, sizeof wanted);
    wb_free(model);
}

/* Logits from -7 to -14. */
static int cellar(void *user, int count, wb_array *const *x, wb_array **y) {
    (void)user, (void)count;
    y[0] = wb_add_number(wb_neg(wb_iota(WB_F32, 0, 8, wb_size(x[0], 1))), -7);
    return y[0] != NULL;
}

/* -7 times 1e308 is beyond the range of numbers. */
static void repetition_may_be_very_dear(void **state) {
    (void)state;
    wb_layer *model =
        wb_chain(wb_embedding(8, 4), wb_multi_head_attention(4, .heads = 1, .causal = true),
                 wb_fn_with(cellar));
    int32_t tokens[9] = {0};
    static const int32_t wanted[] = {0, 1, 2, 3, 4, 5, 6, 7, 0};
    assert_int_equal(wb_generate(model, 1, tokens, .most = 9, .top_p = 1e-9, .repetition = 1e308),
                     9);
    assert_memory_equal(tokens, wanted, sizeof wanted);
    wb_free(model);
}

static bool use_model(void *model, int32_t token) {
    int32_t tokens[4] = {token};
    return wb_generate(model, 1, tokens, .most = 4) == 4;
}

static bool reset_model(void *model, int32_t token) {
    (void)token;
    return wb_reset(model) == WB_OK;
}

static bool release_model(void *model, int32_t token) {
    (void)token;
    wb_free(model);
    return true;
}

static void texts_do_not_share_a_cache(void **state) {
    (void)state;
    wb_layer *model = small_gpt2();
    int32_t tokens[9] = {1};
    wb_token_fn *const each[] = {use_model, reset_model};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wb_generate(model, 1, tokens, .most = 9, .each = each[i], .user = model),
                         -1);
        assert_error(WB_ERROR_ARGUMENT, "wb_generate: .each must not use the model");
    }
    assert_int_equal(wb_generate(model, 1, tokens, .most = 9, .each = release_model, .user = model),
                     -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_generate: .each: the layer was released");
}

/* Whatever fails, the model has no cache afterwards, and takes a longer text. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_layer *model = small_llama();
    for (int64_t n = 1;; n++) {
        int32_t tokens[20] = {1};
        (void)wb_fail_allocation(n);
        const int64_t length = wb_generate(model, 1, tokens, .most = 3, .top_k = 2);
        (void)wb_fail_allocation(0);
        if (length == 3) break;
        assert_int_equal(length, -1);
        assert_error(WB_ERROR_MEMORY, "");
        wb_scope_open();
        assert_int_equal(wb_eval(wb_apply(model, wb_from(WB_I32, tokens, 20))), WB_OK);
        wb_scope_close();
    }
    wb_free(model);
}

static void wrong_settings_are_named(void **state) {
    (void)state;
    wb_layer *model = small_gpt2(), *dense = wb_dense(3, 4);
    int32_t tokens[100] = {1, VOCABULARY + 5};
    assert_int_equal(wb_generate(model, 1, tokens), -1);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_generate: .most, the length of the whole text, must be at least count, got 0");
    assert_int_equal(wb_generate(model, 1, tokens, .most = 9, .temperature = -1), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_generate: temperature must be at least 0, got -1");
    assert_int_equal(wb_generate(model, 1, tokens, .most = 9, .top_p = 0), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_generate: top_p must be above 0 and at most 1, got 0");
    assert_int_equal(wb_generate(model, 1, tokens, .most = 41), -1);
    assert_error(WB_ERROR_ARGUMENT, "at most the 40 positions of PositionEmbedding, got 41");
    assert_int_equal(wb_generate(model, 2, tokens, .most = 9), -1);
    assert_error(WB_ERROR_ARGUMENT, "wb_generate: ");
    wb_layer *body = wb_gpt2(.vocabulary = VOCABULARY, .positions = 40, .features = 16, .layers = 1,
                             .heads = 2, .head = false);
    assert_int_equal(wb_generate(body, 1, tokens, .most = 9), -1);
    assert_error(WB_ERROR_SHAPE, "wb_generate: the model has 30 words, but gives 16 numbers");
    wb_free(body);
    assert_int_equal(wb_generate(dense, 1, tokens, .most = 9), -1);
    assert_error(WB_ERROR_ARGUMENT, "MultiHeadAttention that is causal");
    int32_t again[9] = {1};
    assert_int_equal(wb_generate(model, 1, again, .most = 9), 9); /* the model is as before */
    wb_free(model), wb_free(dense);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(models_have_their_parameters),
        TEST(models_give_logits),
        TEST(wrong_sizes_are_named),
        TEST(it_is_a_sum_with_a_norm),
        TEST(masks_hide_what_is_behind_the_end),
        TEST(the_likeliest_tokens),
        TEST(tokens_are_drawn_by_their_probabilities),
        TEST(repetition_is_dear),
        TEST(texts_end),
        TEST(the_vocabulary_may_change),
        TEST(repetition_may_be_very_dear),
        TEST(texts_do_not_share_a_cache),
        TEST(every_allocation_may_fail),
        TEST(wrong_settings_are_named),
    };
    ADD_TESTS(&tests, all);
    return run_test_list("layers/test_language", &tests, NULL, NULL);
}
