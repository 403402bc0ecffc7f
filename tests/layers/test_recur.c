/* src/layers/recur.c: states from call to call, wb_reset, Flux's structs until 0.14 */
#include <weber/gradient.h>
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/state.h>

#include "models/flux_structs.h"
#include "support/support.h"

typedef wb_layer *maker(wb_recurrent_desc desc);

static const struct kind {
    const char *name;
    maker *cell, *layer;
    int states;
} kinds[] = {
    {"RNN", wb_rnn_cell_make, wb_rnn_make, 1},
    {"LSTM", wb_lstm_cell_make, wb_lstm_make, 2},
    {"GRU", wb_gru_cell_make, wb_gru_make, 1},
    {"GRUv3", wb_gru_v3_cell_make, wb_gru_v3_make, 1},
};

static bool are_near(wb_array *a, wb_array *b) { return wb_approx(a, b, 1e-5, 1e-6, NULL, 0); }

static wb_array *step_of(wb_array *x, int64_t t) {
    return wb_squeeze(wb_slice(x, 2, t, t + 1, 1), 2);
}

/* x (in, N, time): step by step, all at once, in two pieces, and by the layer of Flux 0.16 over the
 * same arrays, which has time second. */
static void steps_are_a_sequence(void **state) {
    const struct kind *k = *state;
    wb_layer *cell = k->cell(WB_DESC(recurrent, .in = 3, .out = 4));
    const bool is_gru = strncmp(k->name, "GRU", 3) == 0;
    wb_recurrent_desc arrays =
        WB_DESC(recurrent, .given_wi = wb_get(cell, "Wi"), .given_wh = wb_get(cell, "Wh"),
                .given_bias = wb_get(cell, is_gru ? "b" : "bias"));
    if (strcmp(k->name, "GRUv3") == 0) arrays.given_wh_candidate = wb_get(cell, "Wh_h̃");
    wb_layer *layer = k->layer(arrays), *recur = wb_recur(cell);
    wb_array *x = wb_normal(WB_F32, 3, 2, 5), *y[5];
    wb_array *wanted = wb_permute(wb_apply(layer, wb_permute(x, 0, 2, 1)), 0, 2, 1);
    for (int t = 0; t < 5; t++) y[t] = wb_apply(recur, step_of(x, t));
    assert_true(are_near(wb_stack_make(2, 5, y), wanted));
    assert_true(are_near(wb_get(recur, "hidden"), y[4]));
    assert_int_equal(wb_reset(recur), WB_OK);
    assert_true(are_near(wb_apply(recur, x), wanted)); /* H7: the same again */
    assert_int_equal(wb_reset(recur), WB_OK);
    y[0] = wb_apply(recur, wb_slice(x, 2, 0, 2, 1));
    y[1] = wb_apply(recur, wb_slice(x, 2, 2, 5, 1));
    assert_true(are_near(wb_concat(2, y[0], y[1]), wanted));
    wb_free(layer), wb_free(recur);
}

static void reset_begins_with_the_trained_state(void **state) { /* H7 */
    (void)state;
    wb_layer *recur = wb_recur(wb_lstm_cell(3, 2, .given_state0 = wb_vector(1, -1), .state0 = true,
                                            .given_cell0 = wb_reshape(wb_vector(2, 3), 2, 1)));
    wb_layer *plain =
        wb_lstm_cell(.given_wi = wb_get(recur, "cell.Wi"), .given_wh = wb_get(recur, "cell.Wh"));
    wb_array *x = wb_normal(WB_F32, 3), *h[2];
    wb_array *xs[] = {x, wb_vector(1, -1), wb_vector(2, 3)};
    assert_int_equal(wb_apply_many(plain, 3, xs, 2, h), 2);
    wb_array *first = wb_apply(recur, x), *second = wb_apply(recur, x);
    assert_true(are_near(first, h[0]));
    assert_false(are_near(second, first));
    assert_int_equal(wb_reset(recur), WB_OK);
    assert_same_bits(wb_apply(recur, x), first, "the first output again");
    assert_same_bits(wb_apply(recur, x), second, "the second output again");
    assert_int_equal(wb_parameter_count(recur), 4 * 2 * 3 + 4 * 2 * 2 + 8 + 4);
    wb_free(plain), wb_free(recur);
}

/* ---- training ---- */

/* A new sequence each time, so that it is a function of its inputs. */
static wb_array *of_sequence(void *model, int count, wb_array *const *inputs) {
    (void)count;
    if (wb_reset(model) != WB_OK) return NULL;
    wb_array *first = wb_apply(model, step_of(inputs[0], 0));
    return wb_add(wb_apply(model, step_of(inputs[0], 1)), wb_square(first));
}

static wb_array *of_whole(void *model, int count, wb_array *const *inputs) {
    (void)count;
    return wb_reset(model) == WB_OK ? wb_apply(model, inputs[0]) : NULL;
}

static void gradients_go_through_the_calls(void **state) {
    const struct kind *k = *state;
    wb_layer *model =
        wb_recur(k->cell(WB_DESC(recurrent, .in = 2, .out = 2, .state0 = true, .dtype = WB_F64)));
    wb_array *x = wb_normal(WB_F64, 2, 2, 3);
    for (int order = 1; order <= 2; order++) {
        if (wb_gradient_check(of_sequence, model, 1, &x, order, 2e-6) != WB_OK)
            fail_msg("order %d, steps: %s", order, wb_error_message());
        if (wb_gradient_check(of_whole, model, 1, &x, order, 2e-6) != WB_OK)
            fail_msg("order %d, all: %s", order, wb_error_message());
    }
    wb_free(model);
}

/* A loss that goes on from the step before: its gradient stops there, its numbers do not. */
static wb_array *loss_of(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    return wb_sum(wb_apply(model, user));
}

static void steps_of_a_training_are_truncated(void **state) {
    (void)state;
    wb_array *wi = wb_full(WB_F64, 1, 1, 1), *wh = wb_full(WB_F64, 2, 1, 1);
    wb_layer *model = wb_recur(
        wb_rnn_cell(.given_wi = wi, .given_wh = wh, .activation = wb_identity, .bias = false));
    wb_optimiser *descent = wb_setup(wb_descent(.eta = 1), model);
    wb_array *x = wb_full(WB_F64, 1, 1);
    assert_value(wb_train_step(loss_of, model, NULL, x, descent), 1, 0); /* h = 1, wi' = 0 */
    assert_value(wb_get(model, "cell.Wi"), 0, 0);
    assert_value(wb_train_step(loss_of, model, NULL, x, descent), 2, 0); /* h = 2, wh' = 2 - 1 */
    assert_value(wb_get(model, "cell.Wh"), 1, 0);
    assert_value(wb_get(model, "cell.Wi"), -1, 0);
    assert_value(wb_get(model, "hidden"), 2, 0);
    wb_free(descent), wb_free(model);
}

static wb_array *failing(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch;
    (void)wb_reset(model);
    (void)wb_apply(model, user);
    return wb_add(user, NULL);
}

static void a_loss_that_fails_leaves_the_states(void **state) {
    (void)state;
    wb_layer *model = wb_recur(wb_gru_cell(2, 3));
    wb_array *x = wb_normal(WB_F32, 2), *y = wb_apply(model, x);
    wb_gradients *g;
    assert_null(wb_withgradient(failing, model, NULL, x, &g));
    wb_clear_error();
    assert_same_bits(wb_get(model, "hidden"), y, "the hidden state");
    wb_free(model);
}

/* ---- copies, files, mistakes ---- */

static void a_copy_begins_anew(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_recur(wb_lstm_cell(2, 3)), wb_dense(3, 1));
    wb_array *x = wb_normal(WB_F32, 2, 4), *first = wb_apply(model, x);
    assert_false(are_near(wb_apply(model, x), first));
    wb_layer *copy = wb_clone(model);
    assert_same_bits(wb_apply(copy, x), first, "a copy's first output");
    const char *const files[] = {"m.bson", "m.safetensors", "m.npz"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_save(path_of(files[i]), model), WB_OK);
        wb_layer *again = wb_load_model(path_of(files[i]), NULL);
        assert_non_null(again);
        assert_structure(again, "Chain(Recur(LSTMCell(2 => 3)), Dense(3 => 1))");
        assert_same_bits(wb_apply(again, x), first, files[i]);
        wb_free(again);
    }
    wb_free(model), wb_free(copy);
}

/* A model that moves takes its sequence along. */
static void a_sequence_goes_on_elsewhere(void **state) {
    (void)state;
    wb_layer *model = wb_recur(wb_gru_cell(2, 3)), *stays = wb_clone(model);
    wb_array *x = wb_normal(WB_F32, 2);
    const wb_device *there = wb_get_device("checked", 1);
    assert_non_null(wb_apply(model, x));
    assert_non_null(wb_apply(stays, x));
    assert_int_equal(wb_move(there, model), WB_OK);
    wb_array *y = wb_to(wb_device_of(wb_get(stays, "cell.Wi")), wb_apply(model, wb_to(there, x)));
    assert_true(are_near(y, wb_apply(stays, x)));
    wb_free(model), wb_free(stays);
    assert_int_equal(wb_device_sync(there), WB_OK);
}

static void it_is_printed_as_flux_printed_it(void **state) {
    (void)state;
    char text[1000];
    wb_layer *model = wb_chain(wb_recur(wb_lstm_cell(3, 5, .state0 = true)), wb_dense(5, 2));
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "Chain(\n"
                                 "  Recur(\n"
                                 "    LSTMCell(3 => 5, state0=true),      # 190 parameters\n"
                                 "  ),\n"
                                 "  Dense(5 => 2),"));
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_recur(wb_lstm_cell(2, 3)));
    assert_non_null(wb_apply(model, wb_ones(WB_F32, 2, 4)));
    assert_null(wb_apply(model, wb_ones(WB_F32, 2, 5)));
    assert_error(WB_ERROR_SHAPE,
                 "Recur, layer 1 of Chain: the hidden state (3, 4) was left by another batch, got "
                 "input (2, 5): call wb_reset before a new sequence");
    assert_null(wb_apply(model, wb_ones(WB_F32, 2)));
    assert_error(WB_ERROR_SHAPE, "call wb_reset");
    assert_int_equal(wb_reset(model), WB_OK);
    assert_null(wb_apply(model, wb_ones(WB_F32, 3)));
    assert_error(WB_ERROR_SHAPE, "cell of Recur, layer 1 of Chain: input must have 1 or 2");
    assert_null(wb_apply(model, wb_ones(WB_F32, 2, 4, 0)));
    assert_error(WB_ERROR_SHAPE, "input (2, 4, 0) has no steps");
    assert_null(wb_apply(model, wb_ones(WB_F32, 2, 4, 1, 1)));
    assert_error(WB_ERROR_SHAPE,
                 "input must be (features), (features, batch) or (features, batch, time)");
    wb_free(model);
}

static void the_forget_block_begins_with_a_number(void **state) { /* H8 */
    (void)state;
    wb_layer *old = wb_lstm_cell(1, 2, .forget_bias = 1), *new = wb_lstm(1, 2);
    assert_values(wb_get(old, "bias"), 0, 0, 0, 1, 1, 0, 0, 0, 0);
    assert_values(wb_get(new, "cell.bias"), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    wb_free(old), wb_free(new);
}

/* ---- Flux's structs ---- */

#define TWICE(x)      x " " x
#define FOUR(x)       TWICE(x) " " TWICE(x)
#define M(r, c, data) ARRAY("Float32", r ", " c, data)
#define V(n, data)    ARRAY("Float32", n, data)
/* ---- Recurrence ---- */

static wb_array *apply_all(wb_layer *layer, int count, wb_array *const *inputs, int results) {
    wb_array *y[3];
    if (wb_apply_many(layer, count, inputs, 3, y) != results) fail_msg("%s", wb_error_message());
    return y[results - 1];
}

/* As the layer of the cell's own kind; of a user's, by hand. */
static void a_recurrence_is_its_cell_over_a_sequence(void **state) {
    (void)state;
    wb_layer *lstm = wb_lstm(3, 4, .return_state = true);
    wb_layer *same = wb_recurrence(
        wb_lstm_cell(.given_wi = wb_get(lstm, "cell.Wi"), .given_wh = wb_get(lstm, "cell.Wh")),
        .return_state = true);
    wb_array *xs[] = {wb_normal(WB_F32, 3, 5), wb_normal(WB_F32, 3, 5, 2), wb_normal(WB_F32, 3, 1)};
    for (int i = 0; i < 3; i++) {
        wb_array *y = apply_all(lstm, 1, &xs[i], 3), *z = apply_all(same, 1, &xs[i], 3);
        assert_true(wb_approx(y, z, 1e-5, 1e-6, NULL, 0)); /* the last c */
    }
    wb_array *more[] = {xs[0], wb_normal(WB_F32, 4), wb_normal(WB_F32, 4)};
    assert_true(
        wb_approx(apply_all(lstm, 3, more, 3), apply_all(same, 3, more, 3), 1e-5, 1e-6, NULL, 0));
    assert_structure(same, "Recurrence(LSTMCell(3 => 4), return_state=true)");
    wb_free(lstm), wb_free(same);
    wb_layer *gru = wb_gru(2, 3);
    same = wb_recurrence(
        wb_gru_cell(.given_wi = wb_get(gru, "cell.Wi"), .given_wh = wb_get(gru, "cell.Wh")));
    wb_array *x = wb_normal(WB_F32, 2, 4, 3);
    assert_true(wb_approx(wb_apply(same, x), wb_apply(gru, x), 1e-5, 1e-6, NULL, 0));
    assert_null(wb_apply(same, wb_ones(WB_F32, 2)));
    assert_error(WB_ERROR_SHAPE, "Recurrence: expected (features, time) or (features, time, "
                                 "batch), then at most 2 states, got 1 arrays, the first one (2)");
    assert_null(wb_apply(same, wb_ones(WB_F32, 2, 0)));
    assert_error(WB_ERROR_SHAPE, "Recurrence: input (2, 0) has no steps");
    wb_free(gru), wb_free(same);
}

#define W8            M("8", "1", FOUR(ONE " " TWO))
#define W82           M("8", "2", FOUR(FOUR(ONE)))
#define B8            V("8", FOUR(ONE " " TWO))
#define W6            M("6", "1", ONE " " ONE " " FOUR(ONE))
#define W62           M("6", "2", FOUR(ONE " " ONE " " ONE))
#define W42           M("4", "2", FOUR(TWICE(ONE)))
#define W22           M("2", "2", FOUR(ONE))
#define B6            V("6", ONE " " ONE " " FOUR(ONE))
#define RECUR(cell)   MODEL(STRUCT("Flux", "Recur", cell ", " W))
#define RECUR_3(cell) MODEL(STRUCT("Flux", "Recur", cell ", " W1 ", " W1))
#define TANH          FUNCTION("Base", "tanh")
#define CELL(name, d) STRUCT("Flux", name "Cell", d)
#define RETURNING(state, name, d)                                                                  \
    MODEL("{tag: 'struct', type: {tag: 'datatype', params: [" state                                \
          ", " TYPE("Flux", name "Cell") "], name: ['Flux', '" name "']}, data: [" d "]}")

static const flux_row structs[] = {
    FLUX("an RNN of Flux 0.11", RECUR_3(CELL("RNN", TANH ", " W ", " W22 ", " B ", " W1)),
         "Recur(RNNCell(1 => 2, tanh, state0=true))", "cell.state0"),
    FLUX("an RNN of Flux 0.12 to 0.14", RECUR(CELL("RNN", RELU ", " W ", " W22 ", " B ", " W)),
         "Recur(RNNCell(1 => 2, relu, state0=true))", "cell.state0"),
    FLUX("an RNN of Flux 0.15 and later",
         MODEL(STRUCT("Flux", "RNN", CELL("RNN", RELU ", " W ", " W22 ", false"))),
         "RNN(1 => 2, relu, bias=false)", "cell.Wi"),
    FLUX("an LSTM of Flux 0.11",
         RECUR_3(CELL("LSTM", W8 ", " W82 ", " B8 ", " W1 ", " V("2", TWO " " ONE))),
         "Recur(LSTMCell(1 => 2, state0=true))", "cell.state0"),
    FLUX("the c of an LSTM of Flux 0.11",
         RECUR_3(CELL("LSTM", W8 ", " W82 ", " B8 ", " V("2", TWO " " ONE) ", " W1)),
         "Recur(LSTMCell(1 => 2, state0=true))", "cell.cell0"),
    FLUX("an LSTM of Flux 0.12 to 0.14",
         RECUR(CELL("LSTM", W8 ", " W82 ", " B8 ", " TUPLE(W ", " M("2", "1", TWO " " ONE)))),
         "Recur(LSTMCell(1 => 2, state0=true))", "cell.state0"),
    FLUX("the c of an LSTM of Flux 0.12 to 0.14",
         RECUR(CELL("LSTM", W8 ", " W82 ", " B8 ", " TUPLE(M("2", "1", TWO " " ONE) ", " W))),
         "Recur(LSTMCell(1 => 2, state0=true))", "cell.cell0"),
    FLUX("an LSTM of Flux 0.15 and later",
         MODEL(STRUCT("Flux", "LSTM", CELL("LSTM", W8 ", " W82 ", " B8))), "LSTM(1 => 2)", NULL),
    FLUX("a GRU of Flux 0.12 to 0.14", RECUR(CELL("GRU", W6 ", " W62 ", " B6 ", " W)),
         "Recur(GRUCell(1 => 2, state0=true))", "cell.state0"),
    FLUX("a GRU of Flux 0.15 and later",
         MODEL(STRUCT("Flux", "GRU", CELL("GRU", W6 ", " W62 ", " B6))), "GRU(1 => 2)", NULL),
    FLUX("a GRUv3 of Flux 0.12 to 0.14", RECUR(CELL("GRUv3", W6 ", " W42 ", " B6 ", " W22 ", " W)),
         "Recur(GRUv3Cell(1 => 2, state0=true))", "cell.state0"),
    FLUX("a GRUv3 of Flux 0.15 and later",
         MODEL(STRUCT("Flux", "GRUv3", CELL("GRUv3", W6 ", " W62 ", " B6 ", " W22))),
         "GRUv3(1 => 2)", NULL),
    FLUX("an LSTM of Flux 0.16 that gives its states",
         RETURNING("true", "LSTM", CELL("LSTM", W8 ", " W82 ", " B8)),
         "LSTM(1 => 2, return_state=true)", NULL),
    FLUX("a Recurrence of Flux 0.16",
         "{model: {tag: 'struct', type: {tag: 'datatype', params: [true], name: ['Flux', "
         "'Recurrence']}, data: [" CELL("GRU", W6 ", " W62 ", " B6) "]}}",
         "Recurrence(GRUCell(1 => 2), return_state=true)", NULL),
    FLUX("one that does not", RETURNING("false", "GRU", CELL("GRU", W6 ", " W62 ", " B6)),
         "GRU(1 => 2)", NULL),
};

/* Into a model that is there, too. */
static void a_struct_is_loaded_into_places(void **state) {
    (void)state;
    wb_layer *model = wb_recur(wb_lstm_cell(1, 2, .state0 = true));
    const char *path = write_bson(
        RECUR(CELL("LSTM", W8 ", " W82 ", " B8 ", " TUPLE(M("2", "1", TWO " " ONE) ", " W))));
    if (wb_load(path, model) != WB_OK) fail_msg("%s", wb_error_message());
    assert_values(wb_get(model, "cell.state0"), 0, 2, 1);
    assert_values(wb_get(model, "cell.cell0"), 0, 1, 2);
    wb_free(model);
}

/* Flux.state until 0.14 has other names, and the state that was kept, which a table leaves out. */
static void a_state_is_loaded_by_a_table(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_recur(wb_lstm_cell(1, 2, .state0 = true)));
    const char *path = write_bson(
        "{model_state: {layers: {tag: 'tuple', data: [{cell: {Wi: " W8 ", Wh: " W82 ", b: " B8
        ", state0: " TUPLE(M("2", "1", TWO " " ONE) ", " W) "}, state: " TUPLE(W ", " W) "}]}}}");
    static const char table[] = "**.b -> **.bias\n"
                                "**.state0.1 -> **.state0\n"
                                "**.state0.2 -> **.cell0\n"
                                "**.state.* ->\n";
    if (wb_load(path, model, .key = "model_state", .rename = table) != WB_OK)
        fail_msg("%s", wb_error_message());
    assert_values(wb_get(model, "layers.1.cell.state0"), 0, 2, 1);
    assert_values(wb_get(model, "layers.1.cell.cell0"), 0, 1, 2);
    assert_values(wb_get(model, "layers.1.cell.bias"), 0, 1, 2, 1, 2, 1, 2, 1, 2);
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(reset_begins_with_the_trained_state),
        TEST(steps_of_a_training_are_truncated),
        TEST(a_loss_that_fails_leaves_the_states),
        TEST(a_copy_begins_anew),
        TEST(a_sequence_goes_on_elsewhere),
        TEST(it_is_printed_as_flux_printed_it),
        TEST(mistakes),
        TEST(the_forget_block_begins_with_a_number),
        TEST(a_struct_is_loaded_into_places),
        TEST(a_state_is_loaded_by_a_table),
        TEST(a_recurrence_is_its_cell_over_a_sequence),
    };
    ADD_ROWS(&tests, kinds, steps_are_a_sequence);
    ADD_ROWS(&tests, kinds, gradients_go_through_the_calls);
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_recur", &tests, make_folder, drop_folder);
}
