/* The gradients of each layer of the table beside differences: of its inputs and of all its
 * parameters, of first and second order. A row is a model as text and the sizes of its inputs. */
#include <weber/gradient.h>
#include <weber/parameters.h>

#include "layers/layer.h"
#include "support/support.h"

enum { MOST_INPUTS = 3, MOST_PARAMETERS = 64 };

/* Integers that follow the inputs; the gradient does not go to them. */
typedef struct words {
    int count;
    int32_t at[6];
} words;

#define AFTER(part)                                                                                \
    "feed_forward = Chain(Dense(2 => 3, tanh), Dense(3 => 2)), norm" #part                         \
    " = LayerNorm(2, eps=0.1)"
#define ENCODER(first)                                                                             \
    "TransformerEncoderBlock(norm_first=" #first ", attention = MultiHeadAttention(2; nheads=1), " \
    "norm1 = LayerNorm(2), " AFTER(2) ", dropout = Dropout(0))"
#define DECODER(first)                                                                             \
    "TransformerDecoderBlock(norm_first=" #first ", attention = MultiHeadAttention(2; nheads=2, "  \
    "causal=true), norm1 = LayerNorm(2, eps=0.1), cross_attention = MultiHeadAttention(2; "        \
    "nheads=2), norm2 = LayerNorm(2, eps=0.1), " AFTER(3) ", dropout = Dropout(0))"

static const struct gradient_row {
    const char *name; /* the model, as text */
    int64_t sizes[MOST_INPUTS][4];
    words words[2];
    double tolerance;
} rows[] = {
    {"Dense(3 => 2, tanh)", .sizes = {{3, 4}}},
    {"Dense(3 => 2, softmax; bias=false)", .sizes = {{3, 2, 2}}},
    {"Bilinear((2, 3) => 2, tanh)", .sizes = {{2, 3}, {3, 3}}},
    {"Bilinear(2 => 2)", .sizes = {{2, 3}}},
    {"Scale(3, tanh)", .sizes = {{3, 4}}},
    {"Scale(3; bias=false)", .sizes = {{3, 4}}},
    {"Embedding(3 => 2, padding_idx=2)", .words = {{4, {0, 1, 2, 0}}}},
    {"EmbeddingBag(4 => 2)", .words = {{5, {0, 1, 3, 2, 2}}, {2, {0, 3}}}},
    {"EmbeddingBag(4 => 2, +)", .words = {{5, {0, 1, 3, 2, 2}}, {2, {0, 3}}}},
    {"EmbeddingBag(4 => 2, max)", .words = {{5, {0, 1, 3, 2, 2}}, {2, {0, 3}}}},
    {"PositionEmbedding(4 => 3)", .sizes = {{3, 2, 2}}},
    {"TokenEmbedding(words = Embedding(3 => 3), positions = PositionEmbedding(4 => 3), types = "
     "Embedding(2 => 3), norm = LayerNorm(3, eps=0.1), dropout = Dropout(0))",
     .words = {{4, {0, 1, 2, 0}}, {4, {0, 1, 1, 0}}}},
    {"PatchEmbedding((2, 1), 2 => 3)", .sizes = {{4, 2, 2, 2}}},
    {"Chain(ClassToken(3), square)", .sizes = {{3, 2, 2}}},
    {"Chain(ClassToken(3), LayerNorm(3, 4), FirstToken())", .sizes = {{3, 3, 2}}},
    {"SinusoidalPositions()", .sizes = {{4, 3}}},
    {"RotaryPositions(heads=2)", .sizes = {{4, 3}}},
    /* convolutions and pools */
    {"Conv((3,), 2 => 2, tanh, pad=1)", .sizes = {{4, 2, 2}}},
    {"Conv((2, 2), 2 => 4, stride=2, groups=2, bias=false)", .sizes = {{4, 3, 2, 1}}},
    {"CrossCor((3,), 2 => 2, dilation=2)", .sizes = {{6, 2, 1}}},
    {"DepthwiseConv((2,), 2 => 4)", .sizes = {{4, 2, 1}}},
    {"ConvTranspose((2,), 3 => 2, tanh, stride=2)", .sizes = {{2, 3, 2}}},
    {"ConvTranspose((2, 3), 1 => 2, stride=2, pad=1, outpad=1)", .sizes = {{2, 3, 1, 1}}},
    {"MaxPool((2,), pad=1)", .sizes = {{5, 2, 1}}},
    {"MeanPool((2, 2), stride=1)", .sizes = {{3, 3, 1, 2}}},
    {"LPPool((2,), pad=1, stride=1, p=3.0)", .sizes = {{4, 1, 2}}},
    {"Chain(PixelShuffle(2), AdaptiveMeanPool((3, 3)), square, GlobalMeanPool())",
     .sizes = {{2, 3, 4, 2}}},
    {"Chain(AdaptiveMaxPool((2, 2)), square, GlobalMaxPool())", .sizes = {{4, 5, 2, 1}}},
    {"Chain(AdaptiveMeanPool((5, 2)), square)", .sizes = {{3, 4, 2, 1}}},
    {"Chain(AdaptiveMaxPool((7, 5)), square)", .sizes = {{3, 4, 2, 1}}},
    {"Upsample(:nearest, scale = (2, 3))", .sizes = {{2, 3, 2, 2}}},
    {"Upsample(:bilinear, scale = 1.5)", .sizes = {{2, 3, 2, 2}}},
    {"Upsample(:bilinear, size = (3, 5), align_corners=false)", .sizes = {{2, 3, 2, 2}}},
    {"Chain(ReshapeLayer((3, 2)), softmax, flatten)", .sizes = {{6, 2}}},
    {"Pixelwise(Chain(LayerNorm(3), Dense(3 => 2, tanh)))", .sizes = {{2, 3, 3, 2}}},
    /* normalisation */
    {"BatchNorm(3, tanh, active=true)", .sizes = {{4, 3, 2}}},
    {"BatchNorm(3, tanh, active=false)", .sizes = {{4, 3, 2}}},
    {"BatchNorm(3, affine=false, track_stats=false)", .sizes = {{4, 3, 2}}},
    {"InstanceNorm(3, tanh, affine=true, track_stats=true, active=true)", .sizes = {{3, 2, 3, 2}}},
    {"InstanceNorm(3, tanh, affine=true, track_stats=true, active=false)", .sizes = {{3, 2, 3, 2}}},
    {"GroupNorm(4, 2, tanh)", .sizes = {{3, 4, 2}}},
    {"GroupNorm(4, 2, affine=false)", .sizes = {{3, 4, 2}}},
    {"LayerNorm(3, 2, tanh)", .sizes = {{3, 2, 4}}},
    {"LayerNorm(4, affine=false)", .sizes = {{4, 3}}},
    {"RMSNorm(3, 2)", .sizes = {{3, 2, 4}}},
    {"WeightNorm(Dense(3 => 4, tanh), :weight, dims=2)", .sizes = {{3, 2}}},
    {"WeightNorm(Dense(2 => 2), :weight, dims=(1, 2))", .sizes = {{2, 2}}},
    /* random numbers are the same in each call */
    {"Dropout(0.5, active=true)", .sizes = {{3, 4}}},
    {"AlphaDropout(0.25, active=true)", .sizes = {{3, 4}}},
    /* containers */
    {"Chain(Maxout(sin, square), PairwiseFusion(*, tanh, square))", .sizes = {{3, 2}}},
    {"Chain(SkipConnection(Dense(3 => 3, tanh), *), Parallel(+, square, sin))", .sizes = {{3, 2}}},
    {"Parallel(vcat, Dense(2 => 3, tanh), sin)", .sizes = {{2, 2}, {3, 2}}},
    /* sequences */
    {"RNN(2 => 2, sin, return_state=true)", .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    {"LSTM(2 => 2, return_state=true)", .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    {"GRU(2 => 2)", .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    {"GRUv3(2 => 2)", .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    {"RNNCell(2 => 2)", .sizes = {{2, 2}, {2, 2}}, .tolerance = 2e-6},
    {"LSTMCell(2 => 2)", .sizes = {{2, 2}, {2, 2}, {2, 2}}, .tolerance = 2e-6},
    {"GRUCell(2 => 2)", .sizes = {{2, 2}, {2, 2}}, .tolerance = 2e-6},
    {"GRUv3Cell(2 => 2)", .sizes = {{2, 2}, {2, 2}}, .tolerance = 2e-6},
    {"Recurrence(GRUCell(2 => 2), return_state=true)", .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    {"Recur(RNNCell(2 => 2, state0=true))", .sizes = {{2, 2, 3}}, .tolerance = 2e-6},
    {"Recur(LSTMCell(2 => 2, state0=true))", .sizes = {{2, 2, 3}}, .tolerance = 2e-6},
    {"Recur(GRUCell(2 => 2, state0=true))", .sizes = {{2, 2, 3}}, .tolerance = 2e-6},
    {"Recur(GRUv3Cell(2 => 2, state0=true))", .sizes = {{2, 2, 3}}, .tolerance = 2e-6},
    {"Chain(Bidirectional(RNN(2 => 2), RNN(2 => 2)), Bidirectional(LSTM(4 => 1), GRU(4 => 2)))",
     .sizes = {{2, 3, 2}}, .tolerance = 2e-6},
    /* attention */
    {"MultiHeadAttention(4; nheads=2, bias=true)", .sizes = {{4, 2}, {4, 3}, {4, 3}}},
    {"MultiHeadAttention(4; nheads=2, causal=true, rotary=55)", .sizes = {{4, 3}}},
    {"MultiHeadAttention(4; nheads=2, kv_heads=1, causal=true, window=2)", .sizes = {{4, 4}}},
    {"MultiHeadAttention(4; nheads=2, window=2, rotary=55, rotary_factor=2)", .sizes = {{4, 4}}},
    {ENCODER(false), .sizes = {{2, 2}}, .tolerance = 1e-4},
    {ENCODER(true), .sizes = {{2, 2}}, .tolerance = 1e-4},
    {DECODER(false), .sizes = {{2, 2}, {2, 3}}, .tolerance = 1e-4},
    {DECODER(true), .sizes = {{2, 2}, {2, 3}}, .tolerance = 1e-4},
};

/* ---- a model as a function of arrays ---- */

typedef struct problem {
    wb_visitor visitor; /* notes the parameters */
    const struct gradient_row *row;
    wb_layer *model;
    wb_array *parameters[MOST_PARAMETERS];
    int parameter_count, input_count;
    wb_array *const *inputs; /* of this call */
} problem;

static bool note_parameter(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                           bool trainable) {
    problem *p = (problem *)(void *)visitor;
    (void)path;
    assert_true(p->parameter_count < MOST_PARAMETERS);
    if (trainable) p->parameters[p->parameter_count++] = *slot;
    return true;
}

/* All results as one vector. Squared, so that what is linear has a second derivative, too. */
static wb_array *all_results(void *context, wb_layer *model) {
    const problem *p = context;
    wb_array *inputs[MOST_INPUTS + 2], *results[WB_MOST_ARRAYS];
    int count = p->input_count;
    for (int i = 0; i < count; i++) inputs[i] = p->inputs[i];
    for (int i = 0; i < 2; i++) {
        const words *w = &p->row->words[i];
        if (w->count > 0) inputs[count++] = wb_from(WB_I32, w->at, w->count);
    }
    wb_seed(1);
    if (wb_reset(model) != WB_OK) return NULL;
    const int given = wb_apply_many(model, count, inputs, WB_MOST_ARRAYS, results);
    for (int i = 0; i < given; i++) results[i] = wb_reshape(results[i], -1);
    return given > 0 ? wb_square(wb_concat_make(0, given, results)) : NULL;
}

/* arrays: all parameters in one vector, then the inputs. */
static wb_array *value_of(void *context, int count, wb_array *const *arrays) {
    problem p = *(const problem *)context;
    wb_array *parts[MOST_PARAMETERS];
    int64_t start = 0;
    (void)count;
    for (int i = 0; i < p.parameter_count; i++) {
        const wb_array *like = p.parameters[i];
        const int64_t stop = start + wb_count(like);
        parts[i] = wb_reshape_make(wb_slice(arrays[0], 0, start, stop, 1), like->ndim, like->sizes);
        start = stop;
    }
    p.inputs = arrays + 1;
    return wb_call_with(p.model, p.parameter_count, parts, all_results, &p);
}

/* Random numbers, of a row's sizes. */
static wb_array *input_of(const int64_t *sizes) {
    int ndim = 0;
    while (ndim < 4 && sizes[ndim] > 0) ndim++;
    return wb_normal_make(WB_F64, ndim, sizes);
}

static void agree_with_differences(void **state) {
    const struct gradient_row *row = *state;
    wb_array *arrays[1 + MOST_INPUTS];
    wb_seed(7);
    wb_layer *narrow = wb_parse(row->name), *model = narrow ? wb_f64(narrow) : NULL;
    if (!model) fail_msg("%s", wb_error_message());
    problem p = {.visitor = {.array = note_parameter}, .row = row, .model = model};
    assert_true(wb_visit(&p.visitor, model));
    while (p.input_count < MOST_INPUTS && row->sizes[p.input_count][0] > 0) p.input_count++;
    arrays[0] = wb_normal(WB_F64, wb_parameter_count(model));
    for (int i = 0; i < p.input_count; i++) arrays[1 + i] = input_of(row->sizes[i]);
    if (wb_gradient_check(value_of, &p, 1 + p.input_count, arrays, 2, row->tolerance) != WB_OK)
        fail_msg("%s", wb_error_message());
    wb_free(narrow), wb_free(model);
}

/* ---- the table ---- */

/* Each layer that files may have. */
static void each_layer_has_a_row(void **state) {
    (void)state;
    for (int i = 0; wb_class_at(i); i++) {
        const char *name = wb_class_at(i)->name;
        bool has_row = false;
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            const char *at = strstr(rows[r].name, name);
            has_row = has_row || (at && at[strlen(name)] == '(') || strcmp(rows[r].name, name) == 0;
        }
        if (!has_row && strcmp(name, "flatten") != 0) fail_msg("%s has no row", name);
    }
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest whole[] = {TEST(each_layer_has_a_row)};
    ADD_ROWS(&tests, rows, agree_with_differences);
    ADD_TESTS(&tests, whole);
    return run_test_list("gradients", &tests, NULL, NULL);
}
