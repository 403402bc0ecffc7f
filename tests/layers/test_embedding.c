/* src/layers/embedding.c */

#include "models/flux_structs.h"
#include "support/support.h"

static wb_layer *made(int64_t padding_idx) { /* 3 => 2: columns 1 2, 3 4, 5 6 */
    return wb_embedding(.given_weight = wb_reshape(wb_vector_of(WB_F64, 1, 2, 3, 4, 5, 6), 2, 3),
                        .padding_idx = padding_idx);
}

static void words_are_columns(void **state) {
    (void)state;
    wb_layer *layer = made(-1);
    wb_array *words = wb_reshape(wb_vector_of(WB_I32, 2, 0, 0, 1), 2, 2);
    wb_array *y = wb_apply(layer, words);
    assert_sizes(y, 2, 2, 2);
    assert_values(y, 0, 5, 6, 1, 2, 1, 2, 3, 4);
    assert_values(wb_apply(layer, wb_scalar(WB_I64, 1)), 0, 3, 4);
    assert_values(wb_apply(layer, wb_onehot(wb_vector_of(WB_I32, 2, 0), 3)), 0, 5, 6, 1, 2);
    assert_null(wb_apply(layer, wb_ones(WB_F32, 2, 2)));
    assert_error(WB_ERROR_SHAPE, "Embedding(3 => 2): input must be integers (wb_cast(x, "
                                 "WB_I32)), or one-hot with 3 rows, got f32 (2, 2)");
    wb_free(layer);
}

static void the_word_of_padding_is_zeros(void **state) {
    (void)state;
    wb_layer *layer = made(2), *fresh = wb_embedding(4, 5, .padding_idx = 1);
    assert_values(wb_apply(layer, wb_vector_of(WB_I32, 2, 1)), 0, 0, 0, 3, 4);
    assert_value(wb_sum(wb_abs(wb_slice(wb_get(fresh, "weight"), 1, 1, 2, 1))), 0, 0);
    assert_true(wb_item(wb_sum(wb_abs(wb_get(fresh, "weight")))) > 1);
    assert_structure(layer, "Embedding(3 => 2, padding_idx=3)");
    assert_null(made(3));
    assert_error(WB_ERROR_ARGUMENT,
                 "Embedding: padding_idx must be one of the words, from 0 to 2 in C and "
                 "from 1 to 3 in text, got 3, which is 4 in text");
    wb_free(layer), wb_free(fresh);
}

static const flux_row structs[] = {
    FLUX("an Embedding of Flux 0.13", MODEL(STRUCT("Flux", "Embedding", W)), "Embedding(1 => 2)",
         "weight"),
    FLUX("one of Flux 0.16.11", MODEL(STRUCT("Flux", "Embedding", W ", null")), "Embedding(1 => 2)",
         "weight"),
    FLUX("one with padding", MODEL(STRUCT("Flux", "Embedding", W ", 1")),
         "Embedding(1 => 2, padding_idx=1)", "weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(words_are_columns),
                                        TEST(the_word_of_padding_is_zeros)};
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_embedding", &tests, make_folder, drop_folder);
}
