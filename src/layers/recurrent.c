/* Recurrent layers and their cells: RNN, LSTM, GRU (Cho et al. 2014, version 1) and GRUv3. A layer
 * runs its cell over the steps by wb_scan. */
#include <math.h>
#include <string.h>
#include <weber/scan.h>

#include "array/use.h"
#include "layers/layer.h"

enum { MOST_STATES = 2 };

typedef struct cell_layer {
    wb_layer layer;
    wb_recurrent_desc desc;
} cell_layer;

typedef struct sequence_layer {
    wb_layer layer;
    wb_recurrent_desc desc;
    wb_layer *cell;
} sequence_layer;

static wb_recurrent_desc *desc_of(wb_layer *cell) { return &((cell_layer *)(void *)cell)->desc; }
static sequence_layer *sequence_of(wb_layer *layer) { return (sequence_layer *)(void *)layer; }

/* ---- one step: state becomes the next one, whose first array is the output ---- */

/* Block number `gate` of a sum for all gates. */
static wb_array *gate(const wb_recurrent_desc *d, wb_array *sum, int number) {
    return wb_slice(sum, 0, number * d->out, (number + 1) * d->out, 1);
}

static wb_array *plus(wb_array *sum, wb_array *bias) { return bias ? wb_add(sum, bias) : sum; }

/* wh h + given_bias_h */
static wb_array *of_state(const wb_recurrent_desc *d, wb_array *h) {
    return plus(wb_matmul(d->given_wh, h), d->given_bias_h);
}

/* wi x + wh h + bias */
static wb_array *sum_of(const wb_recurrent_desc *d, wb_array *x, wb_array *h) {
    return plus(wb_add(wb_matmul(d->given_wi, x), of_state(d, h)), d->given_bias);
}

static void rnn(const wb_recurrent_desc *d, wb_array *x, wb_array **state) {
    wb_array *sum = sum_of(d, x, state[0]);
    state[0] = sum ? d->activation(sum) : NULL;
}

static void lstm(const wb_recurrent_desc *d, wb_array *x, wb_array **state) {
    wb_array *g = sum_of(d, x, state[0]);
    wb_array *input = wb_sigmoid(gate(d, g, 0)), *forget = wb_sigmoid(gate(d, g, 1)),
             *cell = wb_tanh(gate(d, g, 2)), *output = wb_sigmoid(gate(d, g, 3));
    state[1] = wb_add(wb_mul(forget, state[1]), wb_mul(input, cell));
    state[0] = wb_mul(output, wb_tanh(state[1]));
}

/* (1 - z) n + z h */
static wb_array *between(wb_array *z, wb_array *n, wb_array *h) {
    return wb_add(wb_mul(wb_sub(wb_constant(1), z), n), wb_mul(z, h));
}

static void gru(const wb_recurrent_desc *d, wb_array *x, wb_array **state) {
    wb_array *gx = plus(wb_matmul(d->given_wi, x), d->given_bias), *gh = of_state(d, state[0]);
    wb_array *r = wb_sigmoid(wb_add(gate(d, gx, 0), gate(d, gh, 0)));
    wb_array *z = wb_sigmoid(wb_add(gate(d, gx, 1), gate(d, gh, 1)));
    wb_array *n = wb_tanh(wb_add(gate(d, gx, 2), wb_mul(r, gate(d, gh, 2))));
    state[0] = between(z, n, state[0]);
}

static void gru_v3(const wb_recurrent_desc *d, wb_array *x, wb_array **state) {
    wb_array *gx = plus(wb_matmul(d->given_wi, x), d->given_bias), *h = state[0];
    wb_array *gh = wb_matmul(wb_slice(d->given_wh, 0, 0, 2 * d->out, 1), h);
    wb_array *r = wb_sigmoid(wb_add(gate(d, gx, 0), gate(d, gh, 0)));
    wb_array *z = wb_sigmoid(wb_add(gate(d, gx, 1), gate(d, gh, 1)));
    wb_array *n = wb_tanh(wb_add(gate(d, gx, 2), wb_matmul(d->given_wh_candidate, wb_mul(r, h))));
    state[0] = between(z, n, h);
}

static const struct kind {
    const wb_layer_class *cell, *layer;
    int gates, states;
    void (*step)(const wb_recurrent_desc *d, wb_array *x, wb_array **state);
} kinds[] = {
    {&wb_rnn_cell_class, &wb_rnn_class, 1, 1, rnn},
    {&wb_lstm_cell_class, &wb_lstm_class, 4, 2, lstm},
    {&wb_gru_cell_class, &wb_gru_class, 3, 1, gru},
    {&wb_gru_v3_cell_class, &wb_gru_v3_class, 3, 1, gru_v3},
};

static const struct kind *kind_of(const wb_layer *layer) {
    const struct kind *kind = kinds;
    while (kind->cell != layer->class_ && kind->layer != layer->class_) kind++;
    return kind;
}

/* ---- what is given ---- */

/* The state that a sequence begins with: the cell's own, which is (out) or (out, 1), or zeros. */
static wb_array *first_state(const wb_recurrent_desc *d, int s, int ndim, const int64_t *sizes) {
    wb_array *own = s ? d->given_cell0 : d->given_state0;
    return own ? wb_reshape(own, d->out)
               : wb_full_make((wb_dtype)d->given_wi->dtype, 0, ndim, sizes);
}

/* The states that come with x, or the first ones; x's dimension 0 has features, the last ones of
 * the state are x's from `batch` on. */
static bool take_states(const struct kind *kind, const wb_recurrent_desc *d, int count,
                        wb_array *const *inputs, int batch, wb_array **state) {
    const wb_array *x = inputs[0];
    int64_t sizes[2] = {d->out, x->ndim > batch ? x->sizes[batch] : 1};
    const int ndim = x->ndim > batch ? 2 : 1;
    if (count != 1 && count != 1 + kind->states) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "expected an input and perhaps %d states, got %d arrays",
                      kind->states, count);
        return false;
    }
    for (int s = 1; s < count; s++) {
        if (wb_dtype_is_float((wb_dtype)inputs[s]->dtype)) continue;
        (void)wb_fail(WB_ERROR_DTYPE,
                      "state %d must be floating, got %s; lengths are for layers with .lengths",
                      s - 1, wb_dtype_name((wb_dtype)inputs[s]->dtype));
        return false;
    }
    for (int s = 0; s < kind->states; s++)
        state[s] = count > 1 ? wb_convert_input(inputs[1 + s], d->given_wi)
                             : first_state(d, s, ndim, sizes);
    for (int s = 0; s < kind->states; s++) {
        if (!state[s]) return false;
        if (state[s]->sizes[0] == d->out && state[s]->ndim <= ndim && state[s]->ndim > 0) {
            state[s] = wb_expand_make(state[s], ndim, sizes);
            if (state[s]) continue;
            return false;
        }
        (void)wb_fail(WB_ERROR_SHAPE, "state %d must be %s, got %s", s, wb_sizes_text(ndim, sizes),
                      wb_text_of(state[s]));
        return false;
    }
    return true;
}

static wb_array *take_input(const wb_recurrent_desc *d, wb_array *x, int least, int most) {
    if (x->ndim < least || x->ndim > most || x->sizes[0] != d->in)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "input must have %d or %d dimensions, the first of size %lld, got %s",
                            least, most, (long long)d->in, wb_text_of(x));
    return wb_convert_input(x, d->given_wi);
}

static int forward_cell(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const struct kind *kind = kind_of(layer);
    const wb_recurrent_desc *d = desc_of(layer);
    wb_array *x = take_input(d, inputs[0], 1, 2);
    if (!x || !take_states(kind, d, count, inputs, 1, results)) return 0;
    kind->step(d, x, results);
    for (int s = 0; s < kind->states; s++)
        if (!results[s]) return 0;
    return kind->states;
}

static void scan_step(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    wb_layer *cell = context;
    kind_of(cell)->step(desc_of(cell), inputs[0], carries);
    outputs[0] = carries[0];
}

/* inputs[1]: whether the step is before the sequence's length. */
static void scan_known_step(void *context, wb_array **carries, wb_array *const *inputs,
                            wb_array **outputs) {
    wb_layer *cell = context;
    const struct kind *kind = kind_of(cell);
    wb_array *before[MOST_STATES] = {carries[0], carries[kind->states - 1]};
    kind->step(desc_of(cell), inputs[0], carries);
    outputs[0] = wb_lengths_keep(inputs[1], kind->states, carries, before);
}

/* y, and state becomes the last one. lengths: NULL, or those of the sequences. */
static wb_status run(wb_layer *cell, wb_array *x, wb_array *lengths, wb_array **state,
                     wb_array **y) {
    const int states = kind_of(cell)->states;
    if (!lengths) return wb_scan(scan_step, cell, states, state, 1, &x, 1, y, .dim = 1);
    wb_array *mask = wb_lengths_mask(&x, lengths), *inputs[] = {x, mask};
    if (!mask) return wb_error_status();
    return wb_scan(scan_known_step, cell, states, state, 2, inputs, 1, y, .dim = 1);
}

static bool check_lengths(int count) {
    if (count > 1) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "expected an input, the lengths of its sequences and perhaps "
                                     "states, got the input alone: call wb_apply_many");
    return false;
}

static int forward_sequence(wb_layer *layer, int count, wb_array *const *inputs,
                            wb_array **results) {
    sequence_layer *l = sequence_of(layer);
    const struct kind *kind = kind_of(layer);
    const wb_recurrent_desc *d = desc_of(l->cell);
    const int known = l->desc.lengths;
    wb_array *x = take_input(d, inputs[0], 2, 3), *state[MOST_STATES], *given[WB_MOST_ARRAYS] = {x};
    if (!x || (known && !check_lengths(count))) return 0;
    for (int i = 1; i < count - known; i++) given[i] = inputs[i + known];
    if (!take_states(kind, d, count - known, given, 2, state)) return 0;
    wb_array *lengths = known ? inputs[1] : NULL;
    if (run(l->cell, x, lengths, state, &results[0]) != WB_OK) return 0;
    if (known) results[1] = lengths;
    for (int s = 0; s < kind->states; s++) results[1 + known + s] = state[s];
    return 1 + known + (l->desc.return_state ? kind->states : 0);
}

/* ---- the classes ---- */

/* in and out of a weight. */
static void derive_sizes(const struct kind *kind, wb_recurrent_desc *d) {
    if (!d->given_wi || d->given_wi->ndim != 2) return;
    if (d->in == 0) d->in = d->given_wi->sizes[1];
    if (d->out == 0) d->out = d->given_wi->sizes[0] / kind->gates;
}

static void derive_cell(wb_layer *layer) { derive_sizes(kind_of(layer), desc_of(layer)); }

static bool refuse(const wb_layer *layer, const char *setting, const char *of) {
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: .%s must not be given: only %s has it",
                  layer->class_->name, setting, of);
    return false;
}

/* Settings of other kinds are errors, not left aside. */
static bool check_desc(const wb_layer *layer, const struct kind *kind, const wb_recurrent_desc *d) {
    const bool has_bias_h = d->bias_h || d->given_bias_h, is_lstm = kind->step == lstm;
    if (d->activation && kind->step != rnn) return refuse(layer, "activation", "an RNN");
    if (d->given_wh_candidate && kind->step != gru_v3)
        return refuse(layer, "wh_candidate", "a GRUv3");
    if (has_bias_h && kind->step == gru_v3) return refuse(layer, "bias_h", "an RNN, LSTM or GRU");
    if (d->given_cell0 && !is_lstm) return refuse(layer, "cell0", "an LSTM");
    if (d->forget_bias != 0 && !is_lstm) return refuse(layer, "forget_bias", "an LSTM");
    if (!isfinite(d->forget_bias)) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: forget_bias must be finite, got %g",
                      layer->class_->name, d->forget_bias);
        return false;
    }
    if (d->forget_bias == 0 || (d->bias && !d->given_bias)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: forget_bias is for a bias that is made, not for %s",
                  layer->class_->name, d->given_bias ? "a given one" : "none");
    return false;
}

static bool count_rows(const wb_layer *layer, const struct kind *kind, int64_t out, int64_t *rows) {
    if (!__builtin_mul_overflow((int64_t)kind->gates, out, rows)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: out is too large, got %lld", layer->class_->name,
                  (long long)out);
    return false;
}

/* zeros, with forget_bias in the second of four blocks */
static bool make_forget_bias(wb_recurrent_desc *d, wb_dtype dtype) {
    if (d->forget_bias == 0 || d->given_bias) return true;
    wb_array *forget = wb_full(dtype, d->forget_bias, d->out);
    d->given_bias =
        wb_hold(wb_concat(0, wb_zeros(dtype, d->out), forget, wb_zeros(dtype, 2 * d->out)));
    return d->given_bias != NULL;
}

static bool fill_biases(wb_layer *layer, wb_recurrent_desc *d, wb_dtype dtype, int64_t rows) {
    return make_forget_bias(d, dtype) &&
           wb_layer_fill(layer, &d->given_bias, wb_zeros_init, dtype, 1, &rows) &&
           (kind_of(layer)->step == gru_v3 ||
            wb_layer_fill(layer, &d->given_bias_h, wb_zeros_init, dtype, 1, &rows));
}

/* Flux had (out) until 0.11 and (out, 1) until 0.14. */
static bool fill_states(wb_layer *layer, wb_recurrent_desc *d, wb_dtype dtype) {
    wb_array **const slots[MOST_STATES] = {&d->given_state0, &d->given_cell0};
    for (int s = 0; s < kind_of(layer)->states; s++) {
        const int ndim = *slots[s] && (*slots[s])->ndim == 1 ? 1 : 2;
        if (!wb_layer_fill(layer, slots[s], wb_zeros_init, dtype, ndim, (int64_t[]){d->out, 1}))
            return false;
    }
    return true;
}

/* Until 0.14 Flux's GRUv3 had no third block; it is not used. */
static int64_t rows_of_wh(const wb_recurrent_desc *d, bool is_gru_v3, int64_t rows) {
    const bool is_old =
        is_gru_v3 && d->given_wh && d->given_wh->ndim == 2 && d->given_wh->sizes[0] == 2 * d->out;
    return is_old ? 2 * d->out : rows;
}

static bool complete_cell(wb_layer *layer) {
    wb_recurrent_desc *d = desc_of(layer);
    const struct kind *kind = kind_of(layer);
    const bool is_gru_v3 = kind->step == gru_v3;
    int64_t rows;
    if (d->return_state) return refuse(layer, "return_state", "a layer over a sequence");
    if (d->lengths) return refuse(layer, "lengths", "a layer over a sequence");
    if (!check_desc(layer, kind, d) || !count_rows(layer, kind, d->out, &rows)) return false;
    wb_init *init = d->init ? d->init : wb_glorot_uniform;
    wb_init *recurrent = d->init_recurrent ? d->init_recurrent : wb_glorot_uniform;
    if (kind->step == rnn && !d->activation) d->activation = wb_tanh;
    if (!wb_layer_fill(layer, &d->given_wi, init, d->dtype, 2, (int64_t[]){rows, d->in}))
        return false;
    const wb_dtype dtype = (wb_dtype)d->given_wi->dtype;
    const int64_t wh_rows = rows_of_wh(d, is_gru_v3, rows);
    return wb_layer_fill(layer, &d->given_wh, recurrent, dtype, 2, (int64_t[]){wh_rows, d->out}) &&
           fill_biases(layer, d, dtype, rows) && fill_states(layer, d, dtype) &&
           (!is_gru_v3 || wb_layer_fill(layer, &d->given_wh_candidate, recurrent, dtype, 2,
                                        (int64_t[]){d->out, d->out}));
}

static void derive_sequence(wb_layer *layer) {
    sequence_layer *l = sequence_of(layer);
    derive_sizes(kind_of(layer), &l->desc);
    if (!l->cell) return;
    const wb_recurrent_desc *cell = desc_of(l->cell);
    if (l->desc.in == 0) l->desc.in = cell->in;
    if (l->desc.out == 0) l->desc.out = cell->out;
    if (!l->desc.activation) l->desc.activation = cell->activation;
}

/* The cell takes the settings over, and the arrays, if they are given. */
static bool complete_sequence(wb_layer *layer) {
    sequence_layer *l = sequence_of(layer);
    wb_recurrent_desc *d = &l->desc;
    if (d->state0 || d->given_state0 || d->given_cell0) return refuse(layer, "state0", "a cell");
    wb_recurrent_desc made = *d;
    made.return_state = made.lengths = false;
    if (!l->cell && !(l->cell = wb_layer_make(kind_of(layer)->cell, &made, sizeof made)))
        return false;
    wb_recurrent_desc *cell = desc_of(l->cell);
    d->given_wi = d->given_wh = d->given_bias = d->given_wh_candidate = d->given_bias_h = NULL;
    d->bias = cell->bias, d->bias_h = cell->bias_h;
    if (d->in == cell->in && d->out == cell->out) {
        if (d->activation && kind_of(layer)->step == rnn) cell->activation = d->activation;
        d->activation = cell->activation;
        return true;
    }
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the cell must be %lld => %lld, got %lld => %lld",
                  layer->class_->name, (long long)d->in, (long long)d->out, (long long)cell->in,
                  (long long)cell->out);
    return false;
}

#define PAIR(type, ...) WB_ROW(type, in, WB_FIELD_PAIR, .low = 1, .text_only = true, __VA_ARGS__)
#define ACTIVATION(type, ...)                                                                      \
    WB_ROW_NAMED(type, activation, "activation", WB_FIELD_ACTIVATION, .usual = 1, __VA_ARGS__)
#define WITHOUT(type)                                                                              \
    WB_ROW_NAMED(type, bias, "bias", WB_FIELD_BOOL, .usual = true, .text_only = true)
#define ARRAY(member, flux_name, ...)                                                              \
    WB_ROW_NAMED(cell_layer, member, flux_name, WB_FIELD_ARRAY, .trainable = true, __VA_ARGS__)
#define WITH(type, member, name_)                                                                  \
    WB_ROW_NAMED(type, member, name_, WB_FIELD_BOOL, .text_only = true)
#define BIAS_H(...)                                                                                \
    ARRAY(given_bias_h, "bias_h", .torch = "bias_hh", .text_only = true,                           \
          .with = offsetof(cell_layer, desc.bias_h)),                                              \
        WITH(cell_layer, bias_h, "bias_h")
#define STATE0(member, name_, ...)                                                                 \
    ARRAY(member, name_, .with = offsetof(cell_layer, desc.state0), __VA_ARGS__)
#define CELL_ROWS                                                                                  \
    PAIR(cell_layer, .given_by = offsetof(cell_layer, desc.given_wi)),                             \
        ARRAY(given_wi, "Wi", .torch = "weight_ih transpose"),                                     \
        ARRAY(given_wh, "Wh", .torch = "weight_hh transpose")
#define BIAS(flux_name)                                                                            \
    ARRAY(given_bias, flux_name, .torch = "bias_ih", .with = offsetof(cell_layer, desc.bias)),     \
        WITHOUT(cell_layer)
#define SEQUENCE_ROWS(cell_class)                                                                  \
    PAIR(sequence_layer, .usual = 0),                                                              \
        {.name = "cell",                                                                           \
         .offset = offsetof(sequence_layer, cell),                                                 \
         .kind = WB_FIELD_CHILD,                                                                   \
         .trainable = true,                                                                        \
         .part = &(cell_class),                                                                    \
         .torch = "*_l#"},                                                                         \
        WITHOUT(sequence_layer),                                                                   \
        WB_ROW(sequence_layer, return_state, WB_FIELD_BOOL, .text_only = true, .parameter = true), \
        WB_ROW(sequence_layer, lengths, WB_FIELD_BOOL, .text_only = true)

static const wb_field rnn_cell_rows[] = {ACTIVATION(cell_layer, .flux = "σ", .rank = 1),
                                         CELL_ROWS,
                                         BIAS("bias"),
                                         BIAS_H(),
                                         STATE0(given_state0, "state0", .since = 5),
                                         WITH(cell_layer, state0, "state0")};
/* h and c are a tuple in Flux 0.12 to 0.14, and two fields before. */
static const wb_field lstm_cell_rows[] = {
    CELL_ROWS,
    BIAS("bias"),
    BIAS_H(),
    STATE0(given_state0, "state0", .since = 4, .tuple = "state0", .item = 1),
    STATE0(given_cell0, "cell0", .since = 5, .tuple = "state0", .item = 2),
    WITH(cell_layer, state0, "state0")};
static const wb_field gru_cell_rows[] = {CELL_ROWS, BIAS("b"), BIAS_H(),
                                         STATE0(given_state0, "state0", .since = 4),
                                         WITH(cell_layer, state0, "state0")};
static const wb_field gru_v3_cell_rows[] = {
    CELL_ROWS, BIAS("b"), ARRAY(given_wh_candidate, "Wh_h̃", .flux = "Wh_h̃"),
    STATE0(given_state0, "state0", .since = 5), WITH(cell_layer, state0, "state0")};
#define SEQUENCE_BIAS_H WITH(sequence_layer, bias_h, "bias_h")
static const wb_field rnn_rows[] = {SEQUENCE_ROWS(wb_rnn_cell_class), SEQUENCE_BIAS_H,
                                    ACTIVATION(sequence_layer, .text_only = true)};
static const wb_field lstm_rows[] = {SEQUENCE_ROWS(wb_lstm_cell_class), SEQUENCE_BIAS_H};
static const wb_field gru_rows[] = {SEQUENCE_ROWS(wb_gru_cell_class), SEQUENCE_BIAS_H};
static const wb_field gru_v3_rows[] = {SEQUENCE_ROWS(wb_gru_v3_cell_class)};

#define CELL(variable, name_, rows)                                                                \
    const wb_layer_class variable = {.name = name_,                                                \
                                     WB_LAYER_ROWS(cell_layer, rows),                              \
                                     .forward_many = forward_cell,                                 \
                                     .derive = derive_cell,                                        \
                                     .complete = complete_cell}
#define SEQUENCE(variable, name_, rows)                                                            \
    const wb_layer_class variable = {.name = name_,                                                \
                                     WB_LAYER_ROWS(sequence_layer, rows),                          \
                                     .forward_many = forward_sequence,                             \
                                     .derive = derive_sequence,                                    \
                                     .complete = complete_sequence}

CELL(wb_rnn_cell_class, "RNNCell", rnn_cell_rows);
CELL(wb_lstm_cell_class, "LSTMCell", lstm_cell_rows);
CELL(wb_gru_cell_class, "GRUCell", gru_cell_rows);
CELL(wb_gru_v3_cell_class, "GRUv3Cell", gru_v3_cell_rows);
SEQUENCE(wb_rnn_class, "RNN", rnn_rows);
SEQUENCE(wb_lstm_class, "LSTM", lstm_rows);
SEQUENCE(wb_gru_class, "GRU", gru_rows);
SEQUENCE(wb_gru_v3_class, "GRUv3", gru_v3_rows);

/* The layer of a sequence reads their sizes before its cell holds them. */
static wb_layer *make(const wb_layer_class *k, const wb_recurrent_desc *d) {
    const bool good = wb_may_use_given(k->name, d->given_wi, "wi") &&
                      wb_may_use_given(k->name, d->given_wh, "wh") &&
                      wb_may_use_given(k->name, d->given_bias, "bias") &&
                      wb_may_use_given(k->name, d->given_wh_candidate, "wh_candidate") &&
                      wb_may_use_given(k->name, d->given_bias_h, "bias_h") &&
                      wb_may_use_given(k->name, d->given_state0, "state0") &&
                      wb_may_use_given(k->name, d->given_cell0, "cell0");
    return good ? wb_layer_of_desc(k, d, sizeof *d) : NULL;
}

#define MAKER(name)                                                                                \
    wb_layer *wb_##name##_make(wb_recurrent_desc desc) { return make(&wb_##name##_class, &desc); }
MAKER(rnn_cell)
MAKER(lstm_cell)
MAKER(gru_cell)
MAKER(gru_v3_cell)
MAKER(rnn)
MAKER(lstm)
MAKER(gru)
MAKER(gru_v3)
