/* What a stranger is told: what failed, what was expected, what was given, and what helps. */
#include <weber.h>

#include "support/support.h"

static wb_array *ones(int64_t a, int64_t b) { return wb_ones(WB_F32, a, b); }

static wb_array *mse(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static wb_layer *model;
static wb_optimiser *optimiser;

/* ---- layers ---- */

static void apply_and_free(wb_layer *layer, wb_array *x) {
    assert_null(wb_apply(layer, x));
    wb_free(layer);
}

static wb_layer *small_conv(int64_t channels) {
    return wb_chain(wb_conv({3, 3}, channels, 8), wb_dense(8, 2));
}

static void channels_first(void) { apply_and_free(small_conv(3), wb_ones(WB_F32, 2, 3, 28, 28)); }
static void channels_last(void) { apply_and_free(small_conv(3), wb_ones(WB_F32, 2, 28, 28, 3)); }
static void no_channels(void) { apply_and_free(small_conv(1), wb_ones(WB_F32, 28, 28, 4)); }
static void not_flat(void) { apply_and_free(small_conv(3), wb_ones(WB_F32, 28, 28, 3, 2)); }
static void grey_and_not_flat(void) { apply_and_free(wb_dense(12, 2), wb_ones(WB_F32, 4, 3, 5)); }
static void transposed_first(void) {
    apply_and_free(wb_conv_transpose({3, 3}, 3, 8), wb_ones(WB_F32, 2, 3, 28, 28));
}

static void padded_twice(void) {
    assert_null(wb_conv({3, 3}, 1, 1, .pad = {1, 1}, .same_pad = true));
}
static void pool_padded_twice(void) {
    assert_null(wb_maxpool({3, 3}, .pad = {1, 1}, .same_pad = true));
}
static void norm_pool_padded_twice(void) {
    assert_null(wb_lppool({3, 3}, .pad = {1, 1}, .same_pad = true));
}
static void transposed_padded_twice(void) {
    assert_null(wb_conv_transpose({3, 3}, 1, 1, .pad = {1, 1}, .same_pad = true));
}
static void activation_of_an_lstm(void) { assert_null(wb_lstm_cell(2, 3, wb_tanh)); }
static void chain_after_an_error(void) { assert_null(wb_chain(wb_dense(-1, 2))); }
static void too_large_a_layer(void) { assert_null(wb_dense(INT64_C(1) << 22, INT64_C(1) << 22)); }

typedef struct Good {
    wb_layer layer;
    wb_layer *a, *b;
} Good;
static wb_array *apply_a(wb_layer *layer, wb_array *x) {
    return wb_apply(((Good *)(void *)layer)->a, x);
}
WB_FUNCTOR(Good, apply_a, WB_CHILD_FIELD(Good, a), WB_CHILD_FIELD(Good, b));
static void child_never_set(void) {
    Good *good = wb_new(Good);
    good->b = wb_dense(2, 2);
    apply_and_free(&good->layer, ones(2, 1));
}

typedef struct Late {
    int64_t number;
    wb_layer layer;
} Late;
static void layer_not_first(void) {
    Late late = {.number = 3};
    assert_null(wb_apply((wb_layer *)(void *)&late, ones(2, 1)));
}

typedef struct Empty {
    wb_layer layer;
    int number;
} Empty;
static int give_nothing(wb_layer *layer, int count, wb_array *const *x, wb_array **y) {
    (void)layer, (void)count, (void)x, (void)y;
    return 0;
}
WB_FUNCTOR_MANY(Empty, give_nothing, WB_VALUE_FIELD(Empty, number));
static void no_results(void) { apply_and_free(&wb_new(Empty)->layer, ones(2, 1)); }

/* ---- operations ---- */

static void sum_outside(void) { assert_null(wb_sum_dims(ones(2, 3), 2)); }
static void slice_outside(void) { assert_null(wb_slice(ones(2, 3), -3, 0, 1, 1)); }
static void real_onehot(void) { assert_null(wb_onehot(wb_zeros(WB_F32, 4), 3)); }
static void real_index(void) { assert_null(wb_gather(ones(3, 3), wb_vector(0, 1), 0)); }
static void real_words(void) { apply_and_free(wb_embedding(10, 4), wb_vector(1, 2)); }

static wb_array *half_a_gradient(void *context, int count, wb_array *const *x) {
    (void)context, (void)count;
    return wb_mul(wb_stop_gradient(x[0]), x[0]);
}
static void wrong_derivative(void) {
    if (widest() != WB_F64) skip();
    wb_array *x = wb_vector_of(WB_F64, 1, 2);
    assert_int_equal(wb_gradient_check(half_a_gradient, NULL, 1, &x, 1, 0), WB_ERROR_GRADIENT);
}

/* ---- training ---- */

static wb_loader *loader_of(wb_array *x, wb_array *y) {
    return wb_loader_new(.x = x, .y = y, .batchsize = 2);
}

static void train_and_free(wb_loader *loader, wb_loader *validation) {
    assert_int_not_equal(wb_train(mse, model, loader, optimiser, .validation = validation), WB_OK);
    wb_free(loader), wb_free(validation);
}

static void evaluate_and_free(wb_loader *loader, wb_task task) {
    assert_int_not_equal(wb_evaluate(model, loader, .task = task).status, WB_OK);
    wb_free(loader);
}

static void failing_map(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_add(batch->x, wb_vector(1, 2, 3));
}
static void map_fails(void) {
    train_and_free(wb_loader_new(.x = ones(2, 4), .y = ones(1, 4), .map = failing_map), NULL);
}
static void no_targets(void) { train_and_free(loader_of(ones(2, 4), NULL), NULL); }
static void nothing_to_compare(void) { evaluate_and_free(loader_of(ones(2, 4), NULL), 0); }
static void no_batch(void) { assert_null(wb_train_step(mse, model, NULL, NULL, optimiser)); }
static void other_inputs(void) {
    train_and_free(loader_of(ones(2, 4), ones(1, 4)), loader_of(ones(3, 4), ones(1, 4)));
}
static void other_targets(void) {
    train_and_free(loader_of(ones(2, 4), ones(1, 4)), loader_of(ones(2, 4), ones(2, 4)));
}
static void real_labels(void) {
    wb_layer *before = model;
    model = wb_dense(2, 3);
    evaluate_and_free(loader_of(ones(2, 4), wb_zeros(WB_F32, 4)), WB_TASK_CLASSES);
    wb_free(model);
    model = before;
}
static void no_model(void) { assert_null(wb_setup(wb_adam(), NULL)); }
static void frozen_by_no_name(void) {
    assert_int_equal(wb_freeze(optimiser, "layers.1.weigth"), WB_ERROR_ARGUMENT);
}
static void rule_of_no_name(void) {
    assert_null(wb_setup(wb_adam(), model, .paths = {{"layers.2.*", wb_descent(.1)}}));
}

/* ---- devices ---- */

static void no_device(void) { assert_null(wb_get_device_named("")); }

static const struct row {
    const char *name;
    void (*make)(void);
    wb_status status;
    const char *said;
} rows[] = {
    {"images of PyTorch's order", channels_first, WB_ERROR_SHAPE,
     "Conv((3, 3), 3 => 8), layer 1 of Chain: input has 28 channels in (2, 3, 28, 28), expected 3; "
     "sizes must be (width, height, channels, batch); if x is (batch, channels, height, width), "
     "wb_permute(x, 3, 2, 1, 0) makes it so"},
    {"images of TensorFlow's order", channels_last, WB_ERROR_SHAPE,
     "if x is (batch, height, width, channels), wb_permute(x, 2, 1, 3, 0) makes it so"},
    {"images for a transposed convolution", transposed_first, WB_ERROR_SHAPE,
     "input has 28 channels in (2, 3, 28, 28), expected 3; sizes must be (width, height,"},
    {"grey images without channels", no_channels, WB_ERROR_SHAPE,
     "expected 4: 2 spatial, channels, batch; wb_unsqueeze(x, 2) adds the channel"},
    {"no Flatten before a Dense", not_flat, WB_ERROR_SHAPE,
     "input has 26 features in (26, 26, 8, 2), expected 8; wb_flatten() before this layer makes it "
     "(5408, 2)"},
    {"no Flatten of grey images", grey_and_not_flat, WB_ERROR_SHAPE,
     "expected 12; wb_flatten() before this layer makes it (12, 5)"},
    {"a padding beside same_pad", padded_twice, WB_ERROR_ARGUMENT,
     "Conv: .pad and .same_pad must not both be given"},
    {"that of a pool", pool_padded_twice, WB_ERROR_ARGUMENT, "MaxPool: .pad and .same_pad must"},
    {"that of a pool of norms", norm_pool_padded_twice, WB_ERROR_ARGUMENT, "LPPool: .pad and"},
    {"that of a transposed convolution", transposed_padded_twice, WB_ERROR_ARGUMENT,
     "ConvTranspose: .pad and .same_pad must"},
    {"an activation of an LSTM", activation_of_an_lstm, WB_ERROR_ARGUMENT,
     "LSTMCell: .activation must not be given: only an RNN has it"},
    {"a chain of a layer that failed", chain_after_an_error, WB_ERROR_ARGUMENT,
     "Dense: in must be positive, got -1; so wb_chain got NULL as layer 1"},
    {"a layer beyond all memory", too_large_a_layer, WB_ERROR_MEMORY,
     "Dense(4194304 => 4194304): "},
    {"a child that was never set", child_never_set, WB_ERROR_ARGUMENT,
     "Good: wb_apply: the layer Good.a is NULL"},
    {"a struct whose layer is not first", layer_not_first, WB_ERROR_ARGUMENT,
     "wb_apply: this is not a layer; a struct of your own must have a wb_layer as its first "
     "member"},
    {"a forward function that gives no arrays", no_results, WB_ERROR_ARGUMENT,
     "Empty: the forward function must give 1 to 16 arrays, got 0 without an error"},
    {"a sum along a dimension that is not there", sum_outside, WB_ERROR_ARGUMENT,
     "sum: dimension 2 is outside an array of 2 dimensions, (2, 3)"},
    {"a slice along one", slice_outside, WB_ERROR_ARGUMENT,
     "slice: dimension -3 is outside an array of 2 dimensions, (2, 3)"},
    {"floating labels, one-hot", real_onehot, WB_ERROR_DTYPE,
     "onehot: labels must be integers, got f32: wb_cast(labels, WB_I32)"},
    {"a floating index", real_index, WB_ERROR_DTYPE, "got f32: wb_cast(index, WB_I32)"},
    {"floating words", real_words, WB_ERROR_SHAPE,
     "Embedding(10 => 4): input must be integers (wb_cast(x, WB_I32)), or one-hot"},
    {"floating labels, evaluated", real_labels, WB_ERROR_SHAPE,
     "the target f32 of (2); labels of classes must be integers: wb_cast(y, WB_I32)"},
    {"a wrong derivative", wrong_derivative, WB_ERROR_GRADIENT,
     "gradient check of order 1: element 0 of array 0: 0.39"},
    {"a map that fails", map_fails, WB_ERROR_SHAPE,
     "loader: map of batch 0 of epoch 0: add: sizes (2, 1) and (3)"},
    {"a loader without targets", no_targets, WB_ERROR_ARGUMENT,
     "mse: the target is NULL, as batch->y is when the loader has no .y"},
    {"an evaluation without targets", nothing_to_compare, WB_ERROR_ARGUMENT,
     "wb_evaluate: the loader must have a .y, with which predictions are compared"},
    {"a step without a batch", no_batch, WB_ERROR_ARGUMENT, "wb_apply: x is NULL"},
    {"validation data of other inputs", other_inputs, WB_ERROR_SHAPE,
     "input has 3 features in (3, 2), expected 2; the x of the validation data is (3, 4), that of "
     "the training data (2, 4)"},
    {"validation data of other targets", other_targets, WB_ERROR_SHAPE,
     "; the y of the validation data is (2, 4), that of the training data (1, 4)"},
    {"an optimiser of no model", no_model, WB_ERROR_ARGUMENT, "wb_setup: the model is NULL"},
    {"a path to freeze that is misspelt", frozen_by_no_name, WB_ERROR_ARGUMENT,
     "wb_freeze: \"layers.1.weigth\" matches no trainable array of Chain; it has layers.1.weight, "
     "layers.1.bias"},
    {"a path of a rule that is misspelt", rule_of_no_name, WB_ERROR_ARGUMENT,
     "wb_setup: \"layers.2.*\" matches no trainable array of Chain; it has layers.1.weight,"},
    {"a device without a name", no_device, WB_ERROR_ARGUMENT,
     "a device must be named as BACKEND or BACKEND:INDEX, got \"\"; supported backends are: CUDA,"},
};

static void is_told(void **state) {
    const struct row *row = *state;
    model = wb_chain(wb_dense(2, 1));
    optimiser = wb_setup(wb_descent(.1), model);
    row->make();
    assert_error(row->status, row->said);
    wb_free(optimiser), wb_free(model);
}

/* The plan wants more than there is: the error names what is largest in it. */
static void memory_that_a_plan_lacks(void **state) {
    (void)state;
    NEEDS_64_BITS();
    wb_array *x = wb_full(WB_F32, 1, INT64_C(1) << 22), *y = wb_reshape(x, 1, -1);
    assert_true(isnan(wb_item(wb_sum(wb_cumsum(wb_exp(wb_add(x, y)), 0)))));
    assert_error(WB_ERROR_MEMORY, "the largest array of the plan is f32 (4194304, 4194304), made ");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {TEST(memory_that_a_plan_lacks)};
    ADD_ROWS(&tests, rows, is_told);
    ADD_TESTS(&tests, others);
    return run_test_list("mistakes/test_messages", &tests, NULL, NULL);
}
