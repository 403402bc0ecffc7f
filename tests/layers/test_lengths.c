/* Sequences of different lengths in one batch: src/layers/lengths.c, .lengths of recurrent layers,
 * Bidirectional, and what goes past layers of one array. */
#include <weber/gradient.h>

#include "models/flux_structs.h"
#include "support/support.h"

enum { TIME = 4, BATCH = 4, MOST_PARAMETERS = 24 };

static const int64_t known[BATCH] = {4, 0, 1, 3};

static bool are_near(wb_array *a, wb_array *b) { return wb_approx(a, b, 1e-12, 1e-13, NULL, 0); }

/* (features, TIME, BATCH), with NaN where there is padding. */
static wb_array *padded(int64_t features) {
    wb_array *step = wb_iota(WB_I64, 0, TIME, BATCH);
    wb_array *is_known = wb_lt(step, wb_from(WB_I64, known, 1, BATCH));
    return wb_select(wb_reshape(is_known, 1, TIME, BATCH), wb_normal(WB_F64, features, TIME, BATCH),
                     wb_number((double)NAN));
}

static wb_array *lengths(void) { return wb_from(WB_I64, known, BATCH); }

static wb_array *sequence(wb_array *x, int64_t n) {
    return wb_squeeze(wb_slice(wb_slice(x, 2, n, n + 1, 1), 1, 0, known[n], 1), 2);
}

static wb_array *square_sum(int count, wb_array *const *arrays) {
    wb_array *sum = wb_number(0);
    for (int i = 0; i < count; i++) sum = wb_add(sum, wb_sum(wb_square(arrays[i])));
    return sum;
}

/* y and, with return_state, the states of all sequences, each by itself. */
static wb_array *one_by_one(wb_layer *model, wb_array *x) {
    wb_array *sum = wb_number(0), *results[WB_MOST_ARRAYS];
    for (int64_t n = 0; n < BATCH; n++) {
        if (known[n] == 0) continue;
        wb_array *own = wb_from(WB_I64, &known[n], 1);
        wb_array *inputs[] = {sequence(x, n), own};
        const int count = wb_apply_many(model, 2, inputs, WB_MOST_ARRAYS, results);
        assert_true(count >= 2);
        results[1] = wb_zeros(WB_F64, 1);
        sum = wb_add(sum, square_sum(count, results));
    }
    return sum;
}

static int parameters_of(wb_layer *model, wb_array **arrays) {
    int count = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) arrays[count++] = p.array;
    return count;
}

/* Values and gradients are those of each sequence by itself. */
static void check(wb_layer *model, int64_t features) {
    wb_array *parameters[MOST_PARAMETERS], *g[MOST_PARAMETERS], *wanted[MOST_PARAMETERS];
    wb_array *x = padded(features), *inputs[] = {x, lengths()}, *results[WB_MOST_ARRAYS];
    const int count = parameters_of(model, parameters);
    assert_int_equal(wb_eval(x), WB_OK);
    const int given = wb_apply_many(model, 2, inputs, WB_MOST_ARRAYS, results);
    if (given < 2) fail_msg("%s", wb_error_message());
    assert_ptr_equal(results[1], inputs[1]);
    results[1] = wb_zeros(WB_F64, 1);
    wb_array *sum = square_sum(given, results), *right = one_by_one(model, x);
    assert_int_equal(wb_gradient_of(sum, count, parameters, g), WB_OK);
    assert_int_equal(wb_gradient_of(right, count, parameters, wanted), WB_OK);
    assert_true(wb_item(sum) > 0 && are_near(sum, right));
    for (int i = 0; i < count; i++)
        if (!are_near(g[i], wanted[i])) fail_msg("the gradient of parameter %d", i);
    wb_free(model);
}

static void padding_changes_nothing(void **state) {
    (void)state;
    check(wb_rnn(2, 3, .dtype = WB_F64, .lengths = true, .return_state = true), 2);
    check(wb_lstm(2, 3, .dtype = WB_F64, .lengths = true, .return_state = true), 2);
    check(wb_gru(2, 3, .dtype = WB_F64, .lengths = true, .return_state = true), 2);
    check(wb_gru_v3(2, 3, .dtype = WB_F64, .lengths = true, .return_state = true), 2);
    check(wb_recurrence(wb_lstm_cell(2, 3, .dtype = WB_F64), .lengths = true, .return_state = true),
          2);
    check(wb_recurrence(wb_gru_cell(2, 3, .dtype = WB_F64, .state0 = true), .lengths = true,
                        .return_state = true),
          2);
}

static void both_directions_know_where_a_sequence_ends(void **state) {
    (void)state;
    check(wb_bidirectional(wb_lstm(2, 3, .dtype = WB_F64, .lengths = true),
                           wb_gru(2, 2, .dtype = WB_F64, .lengths = true)),
          2);
    check(wb_chain(wb_bidirectional(wb_rnn(2, 3, .dtype = WB_F64, .lengths = true),
                                    wb_rnn(2, 2, .dtype = WB_F64, .lengths = true)),
                   wb_lstm(5, 2, .dtype = WB_F64, .lengths = true)),
          2);
    check(wb_bidirectional(wb_recurrence(wb_lstm_cell(2, 3, .dtype = WB_F64), .lengths = true),
                           wb_gru(2, 2, .dtype = WB_F64, .lengths = true)),
          2);
}

static void y_is_zero_in_the_padding(void **state) {
    (void)state;
    wb_layer *model = wb_lstm(2, 3, .dtype = WB_F64, .lengths = true);
    wb_array *inputs[] = {padded(2), lengths()}, *results[2];
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, results), 2);
    wb_array *y = results[0];
    assert_sizes(y, 3, TIME, BATCH);
    assert_true(wb_item(wb_sum(wb_abs(wb_slice(wb_slice(y, 2, 2, 3, 1), 1, 1, TIME, 1)))) == 0);
    assert_true(wb_item(wb_sum(wb_abs(wb_slice(y, 2, 1, 2, 1)))) == 0);
    assert_true(wb_item(wb_minimum(wb_abs(wb_slice(y, 2, 0, 1, 1)))) > 0);
    wb_free(model);
}

static void lengths_beyond_time_are_time(void **state) {
    (void)state;
    wb_layer *model = wb_bidirectional(wb_gru(2, 3, .dtype = WB_F64, .lengths = true),
                                       wb_gru(2, 3, .dtype = WB_F64, .lengths = true));
    const int32_t many[] = {9, 3};
    wb_array *x = wb_normal(WB_F64, 2, 3, 2);
    wb_array *inputs[] = {x, wb_from(WB_I32, many, 2)}, *results[2], *same[2];
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, results), 2);
    inputs[1] = wb_full(WB_U8, 3, 2);
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, same), 2);
    assert_true(are_near(results[0], same[0]));
    wb_free(model);
}

static void lengths_below_zero_are_zero(void **state) {
    (void)state;
    wb_layer *model = wb_gru(2, 3, .dtype = WB_F64, .lengths = true);
    const int64_t few[] = {INT64_MIN, 2}, none[] = {0, 2};
    wb_array *inputs[] = {wb_normal(WB_F64, 2, 3, 2), wb_from(WB_I64, few, 2)}, *y[2], *same[2];
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, y), 2);
    inputs[1] = wb_from(WB_I64, none, 2);
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, same), 2);
    assert_true(are_near(y[0], same[0]));
    wb_free(model);
}

/* Words and their lengths: the Embedding, the Dropout and the Dense take one array. */
static void lengths_go_past_layers_of_one_array(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_embedding(9, 2, .dtype = WB_F64), wb_dropout(0.5),
                               wb_lstm(2, 3, .dtype = WB_F64, .lengths = true),
                               wb_skip(wb_dense(3, 3, .dtype = WB_F64), wb_connect_add));
    const int32_t words[TIME * 2] = {1, 2, 3, 4, 5, 0, 0, 0};
    const int32_t many[] = {4, 1}, one[] = {1};
    wb_array *inputs[] = {wb_from(WB_I32, words, TIME, 2), wb_from(WB_I32, many, 2)}, *y[2], *z[2];
    assert_int_equal(wb_apply_many(model, 2, inputs, 2, y), 2);
    assert_ptr_equal(y[1], inputs[1]);
    wb_array *short_ones[] = {wb_from(WB_I32, words + TIME, 1, 1), wb_from(WB_I32, one, 1)};
    assert_int_equal(wb_apply_many(model, 2, short_ones, 2, z), 2);
    assert_true(are_near(wb_slice(wb_slice(y[0], 2, 1, 2, 1), 1, 0, 1, 1), z[0]));
    wb_free(model);
}

/* A mask comes to the block after an Embedding and positions. */
static void masks_go_past_layers_of_one_array(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_embedding(9, 4), wb_position_embedding(TIME, 4),
                               wb_transformer_encoder(4, 2), wb_dense(4, 2));
    wb_array *words = wb_ones(WB_I32, TIME, 1), *mask = wb_ones(WB_BOOL, TIME, TIME, 1, 1);
    wb_array *inputs[] = {words, mask}, *y[2];
    if (wb_apply_many(model, 2, inputs, 2, y) != 2) fail_msg("%s", wb_error_message());
    assert_sizes(y[0], 2, TIME, 1);
    assert_true(wb_approx(y[0], wb_apply(model, words), 1e-5, 1e-6, NULL, 0));
    wb_free(model);
}

static void the_setting_is_kept(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_lstm(2, 3, .lengths = true), wb_dense(3, 1));
    assert_structure(model, "Chain(LSTM(2 => 3, lengths=true), Dense(3 => 1))");
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_array *x = wb_ones(WB_F32, 2, TIME, 3), *results[2];
    wb_array *inputs[] = {x, wb_ones(WB_F32, 3)};
    wb_layer *with = wb_gru(2, 3, .lengths = true), *without = wb_gru(2, 3);
    assert_null(wb_apply(with, x));
    assert_error(WB_ERROR_ARGUMENT, "GRU(2 => 3): expected an input, the lengths of its sequences "
                                    "and perhaps states, got the input alone: call wb_apply_many");
    assert_int_equal(wb_apply_many(with, 2, inputs, 2, results), 0);
    assert_error(WB_ERROR_DTYPE, "GRU(2 => 3): lengths must be integers, got f32: "
                                 "wb_cast(lengths, WB_I32)");
    inputs[1] = wb_ones(WB_I32, 2);
    assert_int_equal(wb_apply_many(with, 2, inputs, 2, results), 0);
    assert_error(WB_ERROR_SHAPE, "GRU(2 => 3): lengths must be 3 numbers, one for "
                                 "each sequence of input (2, 4, 3), got (2)");
    inputs[1] = wb_ones(WB_I32, 3);
    assert_int_equal(wb_apply_many(without, 2, inputs, 2, results), 0);
    assert_error(WB_ERROR_DTYPE, "GRU(2 => 3): state 0 must be floating, got i32; lengths are "
                                 "for layers with .lengths");
    wb_free(with), wb_free(without);
}

static int run(void) {
    const struct CMUnitTest tests[] = {TEST(padding_changes_nothing),
                                       TEST(both_directions_know_where_a_sequence_ends),
                                       TEST(y_is_zero_in_the_padding),
                                       TEST(lengths_beyond_time_are_time),
                                       TEST(lengths_below_zero_are_zero),
                                       TEST(lengths_go_past_layers_of_one_array),
                                       TEST(masks_go_past_layers_of_one_array),
                                       TEST(the_setting_is_kept),
                                       TEST(mistakes)};
    return cmocka_run_group_tests_name("layers/test_lengths", tests, NULL, NULL);
}

int main(void) { return run_with(NULL, NULL, run); }
