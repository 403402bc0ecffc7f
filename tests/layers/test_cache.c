/* src/layers/cache.c, and the caches of MultiHeadAttention and PositionEmbedding. */
#include <weber/device.h>
#include <weber/gradient.h>
#include <weber/metrics.h>

#include "support/support.h"

enum { WORDS = 11, FEATURES = 8, LENGTH = 100 };

static wb_layer *block(void) {
    return wb_transformer_encoder(FEATURES, .heads = 2, .hidden = 6, .causal = true,
                                  .norm_first = true);
}

/* As in Llama and Mistral. */
static wb_layer *grouped(void) {
    wb_layer *attention =
        wb_multi_head_attention(FEATURES, .heads = 4, .kv_heads = 2, .causal = true, .window = 5,
                                .rotary = 10000, .rotary_factor = 2);
    return wb_transformer_encoder(FEATURES, .attention = attention, .norm_first = true,
                                  .rms = true);
}

static wb_layer *gpt(void) {
    return wb_chain(wb_embedding(WORDS, FEATURES), wb_position_embedding(LENGTH, FEATURES), block(),
                    grouped(), wb_dense(FEATURES, WORDS));
}

static wb_array *random_words(int64_t length, int64_t batch) {
    wb_array *x = wb_mul_number(wb_uniform(WB_F32, length, batch), WORDS - 0.01);
    return wb_cast(wb_floor(x), WB_I32);
}

typedef struct pieces_row {
    const char *name;
    int64_t batch, pieces[6]; /* 0 ends them */
} pieces_row;

static const pieces_row rows[] = {
    {"one by one", 1, {1, 1, 1, 1, 1}},
    {"a prompt, then one by one", 1, {7, 1, 1, 1}},
    {"all at once", 2, {9}},
    {"pieces of several", 3, {2, 5, 1, 3}},
    {"until the cache is full", 1, {60, 40}},
};

/* The results for later positions are the same as in the whole sequence. */
static void pieces_are_the_whole(void **state) {
    const pieces_row *row = *state;
    wb_layer *model = gpt();
    int64_t length = 0, from = 0;
    for (int i = 0; i < 6; i++) length += row->pieces[i];
    wb_array *x = random_words(length, row->batch);
    wb_array *whole = wb_apply(model, x);
    wb_eval(x, whole);
    assert_int_equal(wb_cache(model, LENGTH), WB_OK);
    for (int round = 0; round < 2; round++, from = 0) {
        for (int i = 0; row->pieces[i] && i < 6; i++) {
            const int64_t end = from + row->pieces[i];
            wb_array *y = wb_apply(model, wb_slice(x, 0, from, end, 1));
            assert_true(wb_approx(y, wb_slice(whole, 1, from, end, 1), 1e-5, 1e-5, NULL, 0));
            from = end;
        }
        assert_int_equal(wb_reset(model), WB_OK);
    }
    assert_int_equal(wb_cache(model, 0), WB_OK);
    assert_true(wb_approx(wb_apply(model, x), whole, 1e-5, 1e-5, NULL, 0));
    wb_free(model);
}

/* The positions are no part of a plan. */
static void a_hundred_words_are_few_plans(void **state) {
    (void)state;
    wb_layer *model = gpt();
    assert_int_equal(wb_cache(model, LENGTH), WB_OK);
    const int64_t before = wb_plan_status().misses;
    int32_t word = 3;
    for (int i = 0; i < LENGTH; i++) {
        wb_scope_open();
        wb_array *logits = wb_apply(model, wb_from(WB_I32, &word, 1));
        word = (int32_t)wb_item(wb_argmax(logits, 0));
        wb_scope_close();
    }
    const int64_t misses = wb_plan_status().misses - before;
    const char *mode = getenv("WEBER_EAGER"), *fuse = getenv("WEBER_FUSE");
    if (!mode && !fuse && misses > 3) fail_msg("%lld plans", (long long)misses);
    wb_free(model);
}

/* In a decoder only its own sequence goes on; memory is all there. */
static void a_decoder_goes_on(void **state) {
    (void)state;
    wb_layer *b = wb_transformer_decoder(FEATURES, .heads = 2, .causal = true);
    wb_array *x = wb_normal(WB_F32, FEATURES, 5, 2), *memory = wb_normal(WB_F32, FEATURES, 3, 2);
    wb_array *whole[2], *y[2];
    assert_int_equal(wb_apply_many(b, 2, (wb_array *[]){x, memory}, 2, whole), 2);
    assert_int_equal(wb_cache(b, 8), WB_OK);
    for (int64_t i = 0; i < 5; i++) {
        wb_array *inputs[] = {wb_slice(x, 1, i, i + 1, 1), memory};
        assert_int_equal(wb_apply_many(b, 2, inputs, 2, y), 2);
        assert_true(wb_approx(y[0], wb_slice(whole[0], 1, i, i + 1, 1), 1e-5, 1e-5, NULL, 0));
    }
    wb_free(b);
}

static void sizes_need_no_cache(void **state) {
    (void)state;
    wb_layer *model = gpt();
    assert_int_equal(wb_cache(model, 6), WB_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wb_outputsize(model, {{5, 2}}, .dtype = WB_I32).sizes[1], 5);
    assert_non_null(wb_apply(model, random_words(6, 1)));
    wb_free(model);
}

/* A model in the middle of a sequence, and what comes next of it. */
static wb_array *next_piece(wb_layer *model, wb_array *x, int64_t from) {
    return wb_apply(model, wb_slice(x, 0, from, from + 2, 1));
}

/* The original goes on. */
static void a_copy_begins_anew(void **state) {
    (void)state;
    wb_layer *(*const copies[])(wb_layer *) = {wb_clone, wb_share};
    wb_layer *model = gpt();
    wb_array *x = random_words(6, 1);
    wb_array *whole = wb_apply(model, x);
    wb_eval(x, whole);
    assert_int_equal(wb_cache(model, LENGTH), WB_OK);
    assert_non_null(next_piece(model, x, 0));
    for (int i = 0; i < 2; i++) {
        wb_layer *copy = copies[i](model);
        assert_non_null(copy);
        assert_true(
            wb_approx(next_piece(copy, x, 0), wb_slice(whole, 1, 0, 2, 1), 1e-5, 1e-5, NULL, 0));
        wb_free(copy);
    }
    assert_true(
        wb_approx(next_piece(model, x, 2), wb_slice(whole, 1, 2, 4, 1), 1e-5, 1e-5, NULL, 0));
    wb_free(model);
}

/* Positions that passed before another layer failed have not passed. */
static void a_call_that_fails_changes_nothing(void **state) {
    (void)state;
    wb_layer *model = gpt();
    wb_array *x = random_words(6, 2), *other = random_words(2, 3);
    wb_array *whole = wb_apply(model, x);
    wb_eval(x, other, whole);
    assert_int_equal(wb_cache(model, LENGTH), WB_OK);
    assert_non_null(next_piece(model, x, 0));
    assert_null(wb_apply(model, other));
    assert_error(WB_ERROR_SHAPE, "was filled by another batch");
    assert_true(
        wb_approx(next_piece(model, x, 2), wb_slice(whole, 1, 2, 4, 1), 1e-5, 1e-5, NULL, 0));
    wb_free(model);
}

/* An evaluation takes the model without its sequence, which goes on then. */
static void an_evaluation_is_beside_the_sequence(void **state) {
    (void)state;
    wb_layer *model = gpt();
    wb_array *x = random_words(6, 2);
    wb_array *whole = wb_apply(model, x);
    wb_eval(x, whole);
    assert_int_equal(wb_cache(model, 6), WB_OK);
    assert_non_null(next_piece(model, x, 0));
    wb_loader *data = wb_loader_new(.x = x, .y = wb_copy(x), .batchsize = 2);
    assert_int_equal(wb_evaluate(model, data).status, WB_OK);
    assert_true(
        wb_approx(next_piece(model, x, 2), wb_slice(whole, 1, 2, 4, 1), 1e-5, 1e-5, NULL, 0));
    wb_free(data);
    wb_free(model);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_apply(model, batch->x));
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = gpt();
    assert_int_equal(wb_cache(model, -1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_cache: length must be at least 0, got -1");
    assert_int_equal(wb_cache(model, LENGTH + 1), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_cache: length must be at most the 100 positions of PositionEmbedding, "
                 "got 101");
    assert_int_equal(wb_cache(model, 4), WB_OK);
    assert_null(wb_apply(model, random_words(5, 1)));
    assert_error(WB_ERROR_SHAPE, "the cache has room for 4 positions, got input (8, 5, 1): "
                                 "wb_cache(model, 5) makes room for these");
    assert_non_null(wb_apply(model, random_words(3, 1)));
    assert_null(wb_apply(model, random_words(2, 1)));
    assert_error(WB_ERROR_SHAPE, "the cache has room for 4 positions, 3 of them used, got input "
                                 "(8, 2, 1): call wb_reset before a new sequence");
    assert_int_equal(wb_reset(model), WB_OK);
    assert_non_null(wb_apply(model, random_words(1, 3)));
    assert_null(wb_apply(model, random_words(1, 2)));
    assert_error(WB_ERROR_SHAPE, "the cache (8, 4, 3) was filled by another batch, got keys (8, 1, "
                                 "2): call wb_reset before a new sequence");
    assert_int_equal(wb_reset(model), WB_OK);
    const wb_batch batch = {.x = random_words(2, 1)};
    wb_gradients *gradients = NULL;
    assert_null(wb_withgradient(loss, model, &batch, NULL, &gradients));
    assert_error(WB_ERROR_ARGUMENT, "training does not work with a cache: wb_cache(model, 0)");
    assert_null(gradients);
    wb_free(model);
    wb_layer *shared = block();
    model = wb_chain(wb_keep_layer(shared), shared);
    assert_int_equal(wb_cache(model, 4), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_cache: a layer that depends on positions must appear in "
                                    "the model once, got a MultiHeadAttention that appears twice");
    assert_int_equal(wb_cache(model, 0), WB_OK);
    wb_free(model);
    model = wb_chain(wb_multi_head_attention(8, .heads = 2));
    assert_int_equal(wb_cache(model, 4), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "wb_cache: the model must have a MultiHeadAttention that is "
                                    "causal, got Chain");
    wb_free(model);
    model = wb_multi_head_attention(8, .heads = 2, .causal = true);
    assert_int_equal(wb_cache(model, 4), WB_OK);
    wb_array *x = wb_ones(WB_F32, 8, 2), *y[1];
    assert_int_equal(wb_apply_many(model, 2, (wb_array *[]){x, x}, 1, y), 0);
    assert_error(WB_ERROR_ARGUMENT, "with a cache it takes one array, x, got 2");
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(a_hundred_words_are_few_plans),
                                     TEST(a_decoder_goes_on),
                                     TEST(sizes_need_no_cache),
                                     TEST(a_copy_begins_anew),
                                     TEST(a_call_that_fails_changes_nothing),
                                     TEST(an_evaluation_is_beside_the_sequence),
                                     TEST(mistakes)};
    ADD_TESTS(&tests, all);
    ADD_ROWS(&tests, rows, pieces_are_the_whole);
    return run_test_list("layers/test_cache", &tests, NULL, NULL);
}
