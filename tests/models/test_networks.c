/* Whole networks of the kinds that people bring: their sizes, a step of training, and the same
 * results from a file alone, in every format. */
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/state.h>

#include "models/model_files.h"

static wb_layer *conv(int64_t in, int64_t out) {
    return wb_conv({3, 3}, in, out, wb_relu, .same_pad = true);
}
static wb_layer *back(int64_t in, int64_t out) {
    return wb_conv_transpose({2, 2}, in, out, .stride = {2});
}

/* Ronneberger, Fischer and Brox 2015, of two levels: what a level makes stands beside what came to
 * it. */
static wb_layer *u_net(void) {
    wb_layer *lowest = wb_chain(wb_maxpool({2, 2}), conv(8, 16), back(16, 8));
    wb_layer *lower = wb_chain(wb_maxpool({2, 2}), conv(4, 8), wb_skip(lowest, wb_connect_channels),
                               conv(16, 8), back(8, 4));
    return wb_chain(conv(1, 4), wb_skip(lower, wb_connect_channels), conv(8, 4),
                    wb_conv({1, 1}, 4, 2));
}

static wb_layer *characters(void) {
    return wb_chain(wb_embedding(9, 4), wb_recur(wb_lstm_cell(4, 6)), wb_recur(wb_lstm_cell(6, 5)),
                    wb_dense(5, 9));
}

static wb_layer *generator(void) {
    return wb_chain(wb_dense(3, 4 * 4 * 8, wb_relu), wb_reshape_layer({4, 4, 8}),
                    wb_batchnorm(8, wb_relu),
                    wb_conv_transpose({4, 4}, 8, 4, .stride = {2}, .pad = {1, 1}, .bias = false),
                    wb_batchnorm(4, wb_relu),
                    wb_conv_transpose({4, 4}, 4, 1, wb_tanh, .stride = {2}, .pad = {1, 1}));
}

static wb_layer *inception(void) {
    wb_layer *third =
        wb_chain(wb_maxpool({3, 3}, .stride = {1}, .pad = {1, 1}), wb_conv({1, 1}, 3, 2, wb_relu));
    return wb_chain(
        wb_parallel(wb_connect_channels, wb_conv({1, 1}, 3, 2, wb_relu), conv(3, 4), third),
        wb_global_meanpool(), wb_flatten(), wb_dense(8, 5));
}

static wb_layer *residual(void) {
    wb_layer *around = wb_chain(conv(4, 4), wb_batchnorm(4, wb_relu), conv(4, 4), wb_batchnorm(4));
    return wb_chain(conv(3, 4), wb_skip(around, wb_connect_add), wb_fn(wb_relu),
                    wb_global_meanpool(), wb_flatten(), wb_dense(4, 5));
}

static wb_layer *language(void) {
    return wb_chain(wb_embedding(9, 8), wb_position_embedding(7, 8),
                    wb_transformer_encoder(8, .heads = 2, .causal = true, .norm_first = true),
                    wb_layernorm({8}), wb_dense(8, 9));
}

static wb_layer *classifier(void) {
    wb_layer *words = wb_embedding(9, 4, .padding_idx = 0);
    return wb_chain(words, wb_bidirectional(wb_gru(4, 3), wb_gru(4, 3)), wb_layernorm({6}),
                    wb_maxout(wb_dense(6, 2), wb_dense(6, 2)));
}

/* Words are 0 to 8. */
typedef struct row {
    const char *name;
    wb_layer *(*make)(void);
    bool has_words;
    int ndim;
    int64_t sizes[4];
    wb_shape wanted;
} row;
static const row rows[] = {
    {"a U-Net gives a picture of its input's size",
     u_net,
     false,
     4,
     {16, 12, 1, 2},
     {4, {16, 12, 2, 2}}},
    {"characters by Recur(LSTM)", characters, true, 2, {2, 5}, {3, {9, 2, 5}}},
    {"a generator by ConvTranspose", generator, false, 2, {3, 2}, {4, {16, 16, 1, 2}}},
    {"branches by Parallel", inception, false, 4, {6, 5, 3, 2}, {2, {5, 2}}},
    {"a residual one by GlobalMeanPool", residual, false, 4, {6, 5, 3, 2}, {2, {5, 2}}},
    {"a language model by Embedding and LayerNorm", language, true, 2, {7, 2}, {3, {9, 7, 2}}},
    {"a classifier of words in both directions", classifier, true, 2, {5, 2}, {3, {2, 5, 2}}},
};

static wb_array *input_of(const row *r) {
    if (!r->has_words) return wb_normal_make(WB_F32, r->ndim, r->sizes);
    wb_array *u = wb_uniform_make(WB_F32, r->ndim, r->sizes);
    return wb_cast(wb_mul_number(u, 8.99), WB_I32);
}

static void sizes_are_known_before(void **state) {
    const row *r = *state;
    wb_layer *model = r->make();
    if (!model) fail_msg("%s", wb_error_message());
    wb_outputsize_desc desc = {.dtype = r->has_words ? WB_I32 : WB_F32};
    memcpy(desc.inputs[0], r->sizes, sizeof r->sizes);
    const wb_shape known = wb_outputsize_make(model, desc);
    wb_array *y = wb_apply(model, input_of(r));
    if (!y) fail_msg("%s", wb_error_message());
    assert_int_equal(known.ndim, r->wanted.ndim);
    assert_int_equal(wb_ndim(y), r->wanted.ndim);
    for (int d = 0; d < known.ndim; d++) {
        assert_int_equal(known.sizes[d], r->wanted.sizes[d]);
        assert_int_equal(wb_size(y, d), r->wanted.sizes[d]);
    }
    wb_free(model);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_reset(model);
    return wb_mean(wb_square(wb_sub(wb_apply(model, batch->x), wb_number(0.5))));
}

static void steps_make_the_loss_smaller(void **state) {
    const row *r = *state;
    wb_seed(2);
    wb_layer *model = r->make();
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), model);
    const wb_batch batch = {.x = input_of(r)};
    double first = 0, last = 0;
    for (int step = 0; step < 8; step++) {
        last = wb_item(wb_train_step(loss, model, &batch, NULL, adam));
        if (step == 0) first = last;
    }
    if (!(last < 0.95 * first)) fail_msg("%g, then %g: %s", first, last, wb_error_message());
    wb_free(adam), wb_free(model);
}

static void a_file_alone_is_the_model(void **state) {
    const row *r = *state;
    static const char *const files[] = {"n.bson", "n.safetensors", "n.npz"};
    wb_layer *model = r->make();
    wb_array *x = input_of(r), *wanted = wb_apply(model, x);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_save(path_of(files[i]), model), WB_OK);
        wb_layer *again = wb_load_model(path_of(files[i]), NULL);
        if (!again) fail_msg("%s: %s", files[i], wb_error_message());
        char where[100];
        wb_array *y = wb_apply(again, x);
        if (!wb_approx(y, wanted, 1e-6, 1e-6, where, sizeof where))
            fail_msg("%s: %s", files[i], where);
        wb_free(again);
    }
    wb_free(model);
}

/* Sizes that two halves do not give back are told where they meet. */
static void a_u_net_wants_even_sizes(void **state) {
    (void)state;
    wb_layer *model = u_net();
    assert_null(wb_apply(model, wb_ones(WB_F32, 14, 16, 1, 1)));
    assert_error(WB_ERROR_SHAPE, "SkipConnection");
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(a_u_net_wants_even_sizes)};
    ADD_ROWS(&tests, rows, sizes_are_known_before);
    ADD_ROWS(&tests, rows, steps_make_the_loss_smaller);
    ADD_ROWS(&tests, rows, a_file_alone_is_the_model);
    ADD_TESTS(&tests, single);
    return run_test_list("models/test_networks", &tests, make_folder, drop_folder);
}
