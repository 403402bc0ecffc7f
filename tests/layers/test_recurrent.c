/* src/layers/recurrent.c: numbers of the definitions (rows H of the acceptance cases), sequences
 * against cells in a loop, gradients, text, mistakes. */
#include <math.h>

#include <weber/gradient.h>

#include "models/flux_structs.h"
#include "support/support.h"

typedef wb_layer *maker(wb_recurrent_desc desc);

/* ---- one cell of one number ---- */

static const struct known {
    const char *name;
    maker *make;
    int gates, states;
    double wi[4], wh[4], bias[4], candidate, first[2];
    double wanted[2][2]; /* states after x = 1 and x = -1 */
} knowns[] = {
    {"LSTM of one number",
     wb_lstm_cell_make,
     4,
     2,
     {0.1, 0.2, 0.3, 0.4},
     {0.5, 0.6, 0.7, 0.8},
     {0, 1, 0, 0},
     0,
     {0, 0},
     {{0.0908519395, 0.1529330586}, {-0.0023448148, -0.0055977017}}},
    {"GRU of one number",
     wb_gru_cell_make,
     3,
     1,
     {0.1, 0.2, 0.3},
     {0.5, 0.6, 0.7},
     {0.1, 0.2, 0.3},
     0,
     {0.5},
     {{0.5569520297}, {0.4156698688}}},
    {"GRUv3 of one number",
     wb_gru_v3_cell_make,
     3,
     1,
     {0.1, 0.2, 0.3},
     {0.5, 0.6, 0.7},
     {0.1, 0.2, 0.3},
     0.9,
     {0.5},
     {{0.5676228199}, {0.4495031192}}},
};

static wb_array *column(const double *numbers, int64_t n) {
    return wb_reshape(wb_from(WB_F64, numbers, n), n, 1);
}

static void known_numbers(void **state) {
    const struct known *k = *state;
    wb_recurrent_desc desc =
        WB_DESC(recurrent, .given_wi = column(k->wi, k->gates), .given_wh = column(k->wh, k->gates),
                .given_bias = wb_from(WB_F64, k->bias, k->gates));
    if (k->candidate != 0) desc.given_wh_candidate = wb_full(WB_F64, k->candidate, 1, 1);
    wb_layer *cell = k->make(desc);
    wb_array *arrays[3] = {NULL}, *results[WB_MOST_ARRAYS];
    for (int s = 0; s < k->states; s++) arrays[1 + s] = wb_full(WB_F64, k->first[s], 1);
    for (int t = 0; t < 2; t++) {
        arrays[0] = wb_full(WB_F64, t ? -1 : 1, 1);
        assert_int_equal(wb_apply_many(cell, 1 + k->states, arrays, WB_MOST_ARRAYS, results),
                         k->states);
        for (int s = 0; s < k->states; s++) {
            arrays[1 + s] = results[s];
            assert_true(fabs(wb_item(results[s]) - k->wanted[t][s]) < 1e-9);
        }
    }
    wb_free(cell);
}

/* ---- rows H ---- */

static wb_array *filled(int64_t rows, int64_t columns, double at_row, double at_column,
                        double more) {
    double numbers[32] = {0};
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = 0; r < rows; r++)
            numbers[c * rows + r] = at_row * (double)r + at_column * (double)c + more;
    return wb_from(WB_F64, numbers, rows, columns);
}

static const struct sequence {
    const char *name;
    maker *make;
    int gates;
    double wanted[4];
} sequences[] = {
    {"RNN (H1)", wb_rnn_make, 1, {-0.04995837496, 0.00499995833, -0.117206742905, 0.114499817132}},
    {"GRU (H3)",
     wb_gru_make,
     3,
     {0.1343721725213, 0.0007737517877, 0.3591681537047, 0.2787042896831}},
};

static void sequences_are_the_definitions(void **state) {
    const struct sequence *s = *state;
    const int64_t rows = 2 * s->gates;
    wb_array *bias = wb_reshape(filled(rows, 1, 0.01, 0, 0.01), rows);
    wb_layer *layer = s->make(WB_DESC(recurrent, .given_wi = filled(rows, 2, 0.1, 0.05, -0.1),
                                      .given_wh = filled(rows, 2, 0.05, -0.1, 0.05),
                                      .given_bias = bias, .in = 2, .out = 2));
    wb_array *arrays[2] = {wb_from(WB_F64, ((const double[]){1, -0.5, 0.25, 2}), 2, 2),
                           wb_from(WB_F64, ((const double[]){0.1, -0.2}), 2)};
    wb_array *results[WB_MOST_ARRAYS];
    assert_int_equal(wb_apply_many(layer, 2, arrays, WB_MOST_ARRAYS, results), 1);
    assert_values(results[0], 1e-10, s->wanted[0], s->wanted[1], s->wanted[2], s->wanted[3]);
    wb_free(layer);
}

/* ---- a sequence is its cell, step by step ---- */

static const struct both {
    const char *name;
    maker *layer, *cell;
    int states;
    const char *text;
    int64_t parameters; /* of 3 => 5 */
} both[] = {
    {"RNN", wb_rnn_make, wb_rnn_cell_make, 1, "RNN(3 => 5, tanh, return_state=true)", 45},
    {"LSTM", wb_lstm_make, wb_lstm_cell_make, 2, "LSTM(3 => 5, return_state=true)", 180},
    {"GRU", wb_gru_make, wb_gru_cell_make, 1, "GRU(3 => 5, return_state=true)", 135},
    {"GRUv3", wb_gru_v3_make, wb_gru_v3_cell_make, 1, "GRUv3(3 => 5, return_state=true)", 160},
};

static wb_recurrent_desc as_cell(wb_layer *layer) {
    wb_recurrent_desc d = WB_DESC(recurrent, .given_wi = wb_get(layer, "cell.Wi"),
                                  .given_wh = wb_get(layer, "cell.Wh"));
    d.given_bias = wb_get(layer, "cell.bias");
    if (!d.given_bias) wb_clear_error(), d.given_bias = wb_get(layer, "cell.b");
    d.given_wh_candidate = wb_get(layer, "cell.Wh_h̃");
    if (!d.given_wh_candidate) wb_clear_error();
    return d;
}

static void a_layer_is_its_cell_in_a_loop(void **state) {
    const struct both *b = *state;
    wb_layer *layer = b->layer(WB_DESC(recurrent, .in = 3, .out = 5, .return_state = true));
    assert_int_equal(wb_parameter_count(layer), b->parameters);
    assert_structure(layer, b->text);
    wb_layer *cell = b->cell(as_cell(layer));
    wb_array *x = wb_normal(WB_F32, 3, 4, 2), *all[WB_MOST_ARRAYS], *step[3] = {NULL}, *h[4];
    assert_int_equal(wb_apply_many(layer, 1, &x, WB_MOST_ARRAYS, all), 1 + b->states);
    for (int s = 0; s < b->states; s++) step[1 + s] = wb_zeros(WB_F32, 5, 2);
    for (int t = 0; t < 4; t++) {
        wb_array *next[WB_MOST_ARRAYS];
        step[0] = wb_squeeze(wb_slice(x, 1, t, t + 1, 1), 1);
        assert_int_equal(wb_apply_many(cell, 1 + b->states, step, WB_MOST_ARRAYS, next), b->states);
        for (int s = 0; s < b->states; s++) step[1 + s] = next[s];
        h[t] = next[0];
    }
    char where[128];
    if (!wb_approx(all[0], wb_stack_make(1, 4, h), 1e-5, 1e-6, where, sizeof where))
        fail_msg("%s", where);
    for (int s = 0; s < b->states; s++)
        assert_true(wb_approx(all[1 + s], step[1 + s], 1e-5, 1e-6, NULL, 0));
    wb_free(layer), wb_free(cell);
}

/* h = 5 x + 4 h from 7, with x = 2 and 3. */
static wb_array *last_of(void *user, int count, wb_array *const *arrays) {
    wb_layer *layer = wb_rnn(.activation = wb_identity, .given_wi = arrays[0],
                             .given_wh = arrays[1], .given_bias = arrays[2]);
    wb_array *inputs[2] = {wb_reshape(wb_vector_of(WB_F64, 2, 3), 1, 2), arrays[3]}, *y[1];
    (void)user, (void)count;
    const int given = wb_apply_many(layer, 2, inputs, 1, y);
    wb_free(layer);
    return given ? y[0] : NULL;
}

static void gradients_go_through_time(void **state) { /* H5 */
    (void)state;
    wb_array *arrays[4] = {wb_full(WB_F64, 5, 1, 1), wb_full(WB_F64, 4, 1, 1),
                           wb_full(WB_F64, 0, 1), wb_full(WB_F64, 7, 1)};
    wb_array *y = last_of(NULL, 4, arrays), *g[4];
    assert_values(y, 0, 38, 167);
    assert_int_equal(wb_gradient_of(wb_sum(wb_slice(y, 1, 1, 2, 1)), 4, arrays, g), WB_OK);
    const double wanted[4] = {11, 66, 5, 16};
    for (int i = 0; i < 4; i++) assert_value(wb_sum(g[i]), wanted[i], 0);
}

static void sequences_have_time_second(void **state) { /* H6 */
    (void)state;
    wb_layer *layer = wb_rnn(3, 5);
    assert_sizes(wb_apply(layer, wb_ones(WB_F32, 3, 7, 2)), 5, 7, 2);
    assert_sizes(wb_apply(layer, wb_ones(WB_F32, 3, 7)), 5, 7);
    const char *const paths[] = {"cell.Wi", "cell.Wh", "cell.bias"};
    int64_t numbers = 0;
    for (int i = 0; i < 3; i++) numbers += wb_count(wb_get(layer, paths[i]));
    assert_int_equal(wb_parameter_count(layer), numbers);
    wb_free(layer);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, knowns, known_numbers);
    ADD_ROWS(&tests, sequences, sequences_are_the_definitions);
    ADD_ROWS(&tests, both, a_layer_is_its_cell_in_a_loop);
    const struct CMUnitTest others[] = {
        TEST(gradients_go_through_time),
        TEST(sequences_have_time_second),
    };
    ADD_TESTS(&tests, others);
    return run_test_list("layers/test_recurrent", &tests, NULL, NULL);
}
