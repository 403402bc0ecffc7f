/* M12: every kind of layer gives the same on every device, its results and its gradients. The
 * layers are those of layers.def, which the table names by their class. */
#include <math.h>

#include <weber/gradient.h>
#include <weber/state.h>

#include "layers/layer.h"
#include "support/places.h"

typedef struct input {
    int ndim;
    int64_t sizes[4];
} input;

/* Words, 0 to 4: ndim is negative. */
static const struct row {
    const char *text;
    input inputs[2];
} rows[] = {
    {"Chain(Dense(3 => 4, tanh), Dense(4 => 2))", {{2, {3, 5}}}},
    {"Conv((3, 3), 2 => 4, relu, pad=1, groups=2)", {{4, {6, 5, 2, 2}}}},
    {"CrossCor((2, 2), 2 => 3, stride=2)", {{4, {6, 4, 2, 2}}}},
    {"DepthwiseConv((3,), 2 => 4)", {{3, {7, 2, 2}}}},
    {"ConvTranspose((3, 3), 2 => 3, stride=2, outpad=1)", {{4, {3, 4, 2, 2}}}},
    {"MaxPool((2, 2))", {{4, {5, 4, 2, 2}}}},
    {"MeanPool((3, 2), pad=1, stride=2)", {{4, {5, 4, 2, 2}}}},
    {"LPPool((3, 2), pad=1, stride=2, p=3)", {{4, {5, 4, 2, 2}}}},
    {"AdaptiveMaxPool((2, 3))", {{4, {5, 6, 2, 2}}}},
    {"AdaptiveMeanPool((2, 3))", {{4, {4, 6, 2, 2}}}},
    {"AdaptiveMeanPool((5, 3))", {{4, {4, 6, 2, 2}}}},
    {"AdaptiveMaxPool((5, 8))", {{4, {4, 6, 2, 2}}}},
    {"GlobalMaxPool", {{4, {3, 4, 2, 2}}}},
    {"GlobalMeanPool", {{4, {3, 4, 2, 2}}}},
    {"flatten", {{4, {2, 3, 2, 2}}}},
    {"ReshapeLayer((4, 3))", {{3, {2, 6, 2}}}},
    {"PixelShuffle(2)", {{4, {2, 3, 8, 2}}}},
    {"Pixelwise(Dense(4 => 3, tanh))", {{4, {2, 3, 4, 2}}}},
    {"Upsample(:nearest, scale = 2)", {{4, {2, 3, 2, 2}}}},
    {"Upsample(:bilinear, scale = 2)", {{4, {2, 3, 2, 2}}}},
    {"Dropout(0.3)", {{2, {40, 6}}}},
    {"AlphaDropout(0.3)", {{2, {40, 6}}}},
    {"BatchNorm(3, relu)", {{4, {2, 2, 3, 4}}}},
    {"InstanceNorm(3; affine=true, track_stats=true)", {{4, {3, 2, 3, 2}}}},
    {"GroupNorm(4, 2)", {{4, {3, 2, 4, 2}}}},
    {"LayerNorm(3, 2)", {{3, {3, 2, 4}}}},
    {"RMSNorm(3)", {{2, {3, 4}}}},
    {"Scale(3, 1, tanh)", {{2, {3, 4}}}},
    {"Bilinear((3, 2) => 4)", {{2, {3, 4}}, {2, {2, 4}}}},
    {"SkipConnection(Dense(3 => 3, tanh), +)", {{2, {3, 4}}}},
    {"Parallel(vcat, Dense(3 => 2), Dense(2 => 3))", {{2, {3, 4}}, {2, {2, 4}}}},
    {"Chain(PairwiseFusion(+, Dense(3 => 3), Dense(3 => 2)), Parallel(vcat, flatten, flatten))",
     {{2, {3, 4}}, {2, {3, 4}}}},
    {"Maxout(Dense(3 => 2), Dense(3 => 2))", {{2, {3, 4}}}},
    {"WeightNorm(Dense(3 => 2), :weight)", {{2, {3, 4}}}},
    {"Embedding(5 => 3)", {{-2, {4, 2}}}},
    {"EmbeddingBag(5 => 3, mean)", {{-2, {4, 2}}}},
    {"PositionEmbedding(6 => 3)", {{3, {3, 4, 2}}}},
    {"PatchEmbedding((2, 3), 2 => 5; image=6)", {{4, {6, 6, 2, 2}}}},
    {"Chain(ClassToken(3), tanh)", {{3, {3, 4, 2}}}},
    {"FirstToken()", {{3, {3, 4, 2}}}},
    {"TokenEmbedding(words = Embedding(5 => 3), positions = PositionEmbedding(6 => 3), types = "
     "Embedding(2 => 3), norm = LayerNorm(3), dropout = Dropout(0))",
     {{-2, {4, 2}}}},
    {"SinusoidalPositions()", {{3, {4, 3, 2}}}},
    {"RotaryPositions(heads=2)", {{3, {8, 3, 2}}}},
    {"RNN(3 => 4, tanh)", {{3, {3, 5, 2}}}},
    {"LSTM(3 => 4)", {{3, {3, 5, 2}}}},
    {"GRU(3 => 4)", {{3, {3, 5, 2}}}},
    {"GRUv3(3 => 4)", {{3, {3, 5, 2}}}},
    {"Chain(Recur(RNNCell(3 => 4, tanh)), Recur(LSTMCell(4 => 3)), Recur(GRUCell(3 => 2)), "
     "Recur(GRUv3Cell(2 => 2)))",
     {{3, {3, 2, 4}}}},
    {"Recurrence(GRUCell(3 => 4))", {{3, {3, 5, 2}}}},
    {"Bidirectional(LSTM(3 => 2), GRU(3 => 2))", {{3, {3, 5, 2}}}},
    {"MultiHeadAttention(4 => 4 => 4; nheads=2, causal=true)", {{3, {4, 3, 2}}}},
    {"MultiHeadAttention(4 => 4 => 4; nheads=2, kv_heads=1, window=2, rotary=9)", {{3, {4, 3, 2}}}},
    {"TransformerEncoderBlock(norm_first=true, attention = MultiHeadAttention(4; nheads=2), "
     "norm1 = LayerNorm(4), feed_forward = Dense(4 => 4, gelu), norm2 = LayerNorm(4), "
     "dropout = Dropout(0.1))",
     {{3, {4, 3, 2}}}},
    {"Chain(TransformerDecoderBlock(attention = MultiHeadAttention(4; nheads=2), "
     "norm1 = LayerNorm(4), cross_attention = MultiHeadAttention(4; nheads=2), "
     "norm2 = LayerNorm(4), feed_forward = Dense(4 => 4, relu), norm3 = LayerNorm(4), "
     "dropout = Dropout(0)), Parallel(+, flatten, flatten))",
     {{3, {4, 3, 2}}, {3, {4, 3, 2}}}},
};

enum { MOST_RESULTS = 64 };

/* What is compared: the result, then gradients of its sum of squares. */
typedef struct results {
    wb_array *list[MOST_RESULTS];
    int count;
} results;

typedef struct collector {
    wb_visitor visitor;
    wb_array *slots[MOST_RESULTS];
    int count;
} collector;

static bool collect(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    collector *c = (collector *)(void *)visitor;
    (void)path;
    if (trainable) c->slots[c->count++] = *slot;
    return c->count < MOST_RESULTS;
}

/* On the host. */
static results compute(wb_layer *model, int count, wb_array *const *xs) {
    results r = {.count = 0};
    collector c = {.visitor = {.array = collect}};
    wb_array *inputs[2], *y[1], *gradients[MOST_RESULTS];
    assert_true(wb_visit(&c.visitor, model));
    for (int i = 0; i < count; i++) {
        const wb_device *device = wb_device_of(model);
        inputs[i] = device ? put(device, xs[i]) : xs[i];
        if (wb_dtype_is_float(wb_dtype_of(xs[i]))) c.slots[c.count++] = inputs[i];
    }
    wb_seed(7);
    const bool before = wb_training(true);
    if (wb_apply_many(model, count, inputs, 1, y) != 1) fail_msg("%s", wb_error_message());
    wb_array *loss = wb_sum(wb_square(y[0]));
    if (wb_gradient_of(loss, c.count, c.slots, gradients) != WB_OK)
        fail_msg("%s", wb_error_message());
    r.list[r.count++] = wb_cpu(y[0]);
    for (int i = 0; i < c.count; i++)
        if (gradients[i]) r.list[r.count++] = wb_cpu(gradients[i]);
    for (int i = 0; i < r.count; i++) wb_eval(r.list[i]);
    (void)wb_training(before);
    return r;
}

static wb_array *make_input(const input *in) {
    if (in->ndim > 0) return wb_normal_make(WB_F32, in->ndim, in->sizes);
    wb_array *u = wb_uniform_make(WB_F32, -in->ndim, in->sizes);
    return wb_cast(wb_mul_number(u, 4.99), WB_I32);
}

static void results_and_gradients_are_the_same(void **state) {
    const struct row *row = *state;
    wb_seed(3);
    wb_layer *model = wb_parse(row->text);
    if (!model) fail_msg("%s", wb_error_message());
    wb_array *xs[2] = {NULL};
    const int count = row->inputs[1].ndim ? 2 : 1;
    for (int i = 0; i < count; i++) xs[i] = put(cpu, make_input(&row->inputs[i]));
    assert_int_equal(wb_move(cpu, model), WB_OK);
    wb_layer *there = wb_to(first, model);
    const results here = compute(model, count, xs), gone = compute(there, count, xs);
    assert_int_equal(here.count, gone.count);
    assert_true(here.count > 1 || row->inputs[0].ndim < 0);
    for (int i = 0; i < here.count; i++) {
        char where[100] = "";
        if (!wb_approx(here.list[i], gone.list[i], 1e-4, 1e-4, where, sizeof where))
            fail_msg("%s: array %d: %s %s", row->text, i, where, wb_error_message());
    }
    wb_free(model), wb_free(there);
}

/* What a rank does whose shard is at its end. Of most layers the last dimension is the batch; of
 * those over steps in a row it is time, and there are some. */
static void of_no_observations_nothing_comes(void **state) {
    const struct row *row = *state;
    input none[2] = {row->inputs[0], row->inputs[1]};
    const int count = row->inputs[1].ndim ? 2 : 1;
    wb_array *xs[2] = {NULL};
    const bool has_steps_last = strstr(row->text, "Recur(") != NULL;
    wb_layer *model = wb_parse(row->text);
    if (!model) fail_msg("%s", wb_error_message());
    for (int i = 0; i < count; i++) {
        none[i].sizes[abs(none[i].ndim) - 1 - has_steps_last] = 0;
        xs[i] = put(first, make_input(&none[i]));
    }
    wb_layer *there = wb_to(first, model);
    const results r = compute(there, count, xs);
    assert_int_equal(wb_count(r.list[0]), 0);
    for (int i = 1; i < r.count; i++) assert_true(wb_item(wb_sum(wb_abs(r.list[i]))) == 0);
    for (wb_parameter p = {0}; wb_next_parameter(there, &p);)
        if (!isfinite(wb_item(wb_sum(wb_cpu(p.array))))) fail_msg("%s of %s", p.path, row->text);
    assert_false(wb_failed());
    wb_free(model), wb_free(there);
}

/* Each class of layers.def stands in the table. */
static void the_table_has_every_layer(void **state) {
    (void)state;
    const wb_layer_class *k;
    for (int i = 0; (k = wb_class_at(i)) != NULL; i++) {
        bool is_there = false;
        const size_t length = strlen(k->name);
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (const char *at = rows[r].text; (at = strstr(at, k->name)) != NULL; at += length)
                is_there = is_there || !at[length] || strchr("(,", at[length]);
        if (!is_there) fail_msg("%s is in no row", k->name);
    }
}

int main(void) {
    static test_list tests;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_test(&tests, (struct CMUnitTest){.name = rows[i].text,
                                             .test_func = of_no_observations_nothing_comes,
                                             .setup_func = open_scope,
                                             .teardown_func = close_places,
                                             .initial_state = (void *)(uintptr_t)&rows[i]});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_test(&tests, (struct CMUnitTest){.name = rows[i].text,
                                             .test_func = results_and_gradients_are_the_same,
                                             .setup_func = open_scope,
                                             .teardown_func = close_places,
                                             .initial_state = (void *)(uintptr_t)&rows[i]});
    add_test(&tests, (struct CMUnitTest)MOVES(the_table_has_every_layer));
    return run_test_list("device/test_layers", &tests, find_places, NULL);
}
