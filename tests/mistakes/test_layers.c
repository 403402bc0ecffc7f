/* Mistakes with layers: a call, its status, and words of its message. */
#include <weber.h>

#include "mistakes/refused.h"

static void of_norms(void **state) {
    (void)state;
    REFUSED(wb_batchnorm(0), ARGUMENT, "BatchNorm: channels must be positive, got 0");
    REFUSED(wb_batchnorm(2, .momentum = 1.5), ARGUMENT,
            "BatchNorm: momentum must be from 0 to 1, got 1.5");
    REFUSED(wb_batchnorm(2, .eps = NAN), ARGUMENT, "BatchNorm: eps must be above 0, got nan");
    REFUSED(wb_batchnorm(2, .affine = false, .given_gamma = wb_ones(WB_F32, 2)), ARGUMENT,
            "BatchNorm: affine is false, but γ (2) was given");
    REFUSED(wb_batchnorm(2, .track_stats = false, .given_mean = wb_ones(WB_F32, 2)), ARGUMENT,
            "BatchNorm: track_stats is false, but μ (2) was given");
    REFUSED(wb_batchnorm(2, .dtype = WB_I32), DTYPE, "BatchNorm: dtype must be floating, got i32");
    REFUSED(wb_batchnorm(2, .given_gamma = wb_ones(WB_F32, 3)), SHAPE,
            "BatchNorm: γ must be (2), got (3)");
    REFUSED(wb_groupnorm(4, 3), SHAPE, "GroupNorm: 3 groups do not divide 4 channels");
    REFUSED(wb_instancenorm(0), ARGUMENT, "InstanceNorm: channels must be positive, got 0");
    REFUSED(wb_instancenorm(2, .momentum = 2), ARGUMENT,
            "InstanceNorm: momentum must be from 0 to 1, got 2");
    REFUSED(wb_instancenorm(3, .given_gamma = wb_ones(WB_F32, 2)), SHAPE,
            "InstanceNorm: γ must be (3), got (2)");
    REFUSED(wb_weight_norm(wb_dense(2, 3), "wait"), ARGUMENT,
            "WeightNorm: no \"wait\" in Dense; it has weight, bias");
    REFUSED(wb_weight_norm(wb_dense(2, 3), "bias"), ARGUMENT,
            "WeightNorm: bias is all zeros: it has no direction");
    REFUSED(wb_weight_norm(wb_dense(2, 3, .bias = false), "bias"), ARGUMENT,
            "WeightNorm: the layer was made without bias");
    REFUSED(wb_weight_norm(wb_dense(2, 3), .dims = WB_DIM(2)), ARGUMENT,
            "WeightNorm: dims must be among the 2 of weight (3, 2), got 0x4");
    REFUSED(wb_weight_norm(wb_dense(2, 3), .given_g = wb_ones(WB_F32, 2)), SHAPE,
            "WeightNorm: g must have 2 dimensions, got (2)");
    REFUSED(wb_weight_norm(wb_dense(2, 3), .dims = 1, .given_g = wb_ones(WB_F32, 3, 1)), SHAPE,
            "WeightNorm: g must be (1, 2), got (3, 1)");
    REFUSED(wb_weight_norm(NULL), ARGUMENT, "wb_weight_norm: layer 1 is NULL");
    REFUSED(wb_weight_norm(wb_dense(2, 3), "a.path.that.is.much.too.long.for.any.layer.that.is"),
            ARGUMENT, "WeightNorm: which must be below 48 bytes");
    REFUSED(wb_weight_norm(wb_batchnorm(2), "σ²"), ARGUMENT,
            "WeightNorm: σ² is a state, which is not trained");
    REFUSED(wb_remove_weight_norms(NULL), ARGUMENT, "wb_remove_weight_norms: the model is NULL");
}

static void of_containers(void **state) {
    (void)state;
    REFUSED(wb_chain(wb_dense(3, 4), wb_dense(-1, 4), wb_dense(4, 2)), ARGUMENT,
            "Dense: in must be positive, got -1; so wb_chain got NULL as layer 2");
    REFUSED(wb_chain(wb_dense(3, 4), NULL), ARGUMENT, "wb_chain: layer 2 is NULL");
    REFUSED(
        wb_chain_make(2, (wb_layer *[]){wb_dense(3, 4), (wb_layer *)(void *)wb_ones(WB_F32, 1)}),
        ARGUMENT, "wb_chain: layer 2 is not a layer");
    REFUSED(wb_chain_named({"layers", wb_dense(2, 2)}), ARGUMENT, "cannot be named \"layers\"");
    REFUSED(wb_chain_named({"a", wb_dense(2, 2)}, {"a", wb_dense(2, 2)}), ARGUMENT,
            "entry 2 cannot be named \"a\"");
    REFUSED(wb_chain_named({"a.b", wb_dense(2, 2)}), ARGUMENT, "cannot be named");
    REFUSED(wb_tree(wb_dense(1, 1), NULL), ARGUMENT, "wb_tree: entry 2 is NULL");
    REFUSED(wb_fn(NULL), ARGUMENT, "wb_fn: the function is NULL");
    FAILS(wb_list_append(NULL, "blocks", NULL, wb_dense(1, 1)), ARGUMENT,
          "wb_list_append: the layer is NULL");
    REFUSED(wb_maxout_make(0, NULL), ARGUMENT, "Maxout: at least one layer is needed, got none");
    REFUSED(wb_pairwise_fusion_make(NULL, 0, NULL), ARGUMENT,
            "PairwiseFusion: layers must be from 1 to 16, got 0");
    REFUSED(wb_parallel_make(wb_connect_add, 0, NULL), ARGUMENT,
            "Parallel: layers must be from 1 to 16, got 0");
    REFUSED(wb_parallel(wb_connect_add, wb_fn(wb_abs), wb_dense(-1, 2)), ARGUMENT,
            "Dense: in must be positive, got -1; so wb_parallel got NULL as layer 2");
    REFUSED(wb_skip(wb_dense(-1, 2), wb_connect_add), ARGUMENT, "Dense: in must be positive");
}

static void of_convolutions(void **state) {
    (void)state;
    REFUSED(wb_conv(.kernel = {3, 3}, .in = 3, .out = 10, .groups = 2), SHAPE,
            "Conv: 2 groups do not divide 3 => 10 channels");
    REFUSED(wb_depthwise_conv({3}, 3, 7), SHAPE,
            "DepthwiseConv: 3 groups do not divide 3 => 7 channels");
    REFUSED(wb_depthwise_conv({3}, 4, 8, .groups = 2), ARGUMENT,
            "DepthwiseConv: groups must be as many as channels, 4, got 2");
    REFUSED(wb_maxpool(), ARGUMENT, "MaxPool: kernel must be from 1 to 1048575, got (0)");
    REFUSED(wb_conv_transpose({3, 3, 1}, 16), ARGUMENT,
            "got 0; the kernel is (3, 3, 1): write its sizes in braces");
    REFUSED(wb_maxpool({2, 2}, .pad = {1, 1}, .pad_more = {INT64_MAX, 0}), ARGUMENT,
            "MaxPool: pad + pad_more must be from 0 to 1048575");
    REFUSED(wb_conv_transpose({2}, 1, 2, .stride = {3}, .same_pad = true), ARGUMENT,
            "the kernel must be at least the stride (3), got (2)");
    REFUSED(wb_conv_transpose({3}, 3, 4, .groups = 2), SHAPE,
            "2 groups do not divide 3 => 4 channels");
    REFUSED(wb_lppool({2}, .p = -1), ARGUMENT, "LPPool: p must be above 0, got -1");
    REFUSED(wb_upsample_op(wb_ones(WB_F32, 2, 2), .scale = {2}), SHAPE, "input must have");
}

static void of_cells(void **state) {
    (void)state;
    REFUSED(wb_gru_cell(2, 3, .lengths = true), ARGUMENT,
            "GRUCell: .lengths must not be given: only a layer over a sequence has it");
    REFUSED(wb_recur(NULL), ARGUMENT, "wb_recur: layer 1 is NULL");
    REFUSED(wb_recur(wb_gru_cell(0, 4)), ARGUMENT,
            "GRUCell: in must be positive, got 0; so wb_recur got NULL as layer 1");
    REFUSED(
        wb_recur(wb_dense(2, 3)), ARGUMENT,
        "Recur: the cell must take x and its states, as wb_lstm_cell's does, got Dense(2 => 3)");
    REFUSED(wb_recurrence(wb_flatten()), ARGUMENT,
            "Recurrence: the cell must take x and its states, as wb_lstm_cell's does, got flatten");
    REFUSED(wb_rnn_cell(2, 3, .return_state = true), ARGUMENT,
            "RNNCell: .return_state must not be given: only a layer over a sequence has it");
    REFUSED(wb_lstm(2, 3, .state0 = true), ARGUMENT,
            "LSTM: .state0 must not be given: only a cell has it");
    REFUSED(wb_gru_cell(2, 3, .given_cell0 = wb_ones(WB_F32, 3)), ARGUMENT,
            "GRUCell: .cell0 must not be given: only an LSTM has it");
    REFUSED(wb_lstm_cell(2, 3, .given_state0 = wb_ones(WB_F32, 4)), SHAPE,
            "LSTMCell: state0 must be (3), got (4)");
    FAILS(wb_reset(NULL), ARGUMENT, "wb_reset: the layer is NULL");
    REFUSED(wb_gru(1, 2, .forget_bias = 1), ARGUMENT,
            "GRUCell: .forget_bias must not be given: only an LSTM has it");
    REFUSED(wb_lstm(1, 2, .forget_bias = 1, .bias = false), ARGUMENT,
            "LSTMCell: forget_bias is for a bias that is made, not for none");
    REFUSED(wb_recurrence(.return_state = true), ARGUMENT, "wb_recurrence: layer 1 is NULL");
    REFUSED(wb_lstm(2, 3, wb_relu), ARGUMENT, ".activation must not be given: only an RNN has it");
    REFUSED(wb_rnn_cell(2, 3, .given_wh_candidate = wb_ones(WB_F32, 3, 3)), ARGUMENT,
            "RNNCell: .wh_candidate must not be given: only a GRUv3 has it");
    REFUSED(wb_lstm(2, INT64_MAX / 2), ARGUMENT, "out is too large");
}

static void of_small_layers(void **state) {
    (void)state;
    FAILS(wb_cache(NULL, 4), ARGUMENT, "wb_cache: the layer is NULL");
    REFUSED(wb_dense(-1, 4), ARGUMENT, "Dense: in must be positive, got -1");
    REFUSED(wb_dense(), ARGUMENT, "Dense: in must be positive, got 0");
    REFUSED(wb_dense(10), ARGUMENT, "Dense: out must be positive, got 0");
    REFUSED(wb_dense(3, 4, .bias = false, .given_bias = wb_ones(WB_F32, 4)), ARGUMENT,
            "Dense: bias is false, but bias (4) was given");
    REFUSED(wb_dense(3, 4, .given_weight = wb_ones(WB_F32, 3, 4)), SHAPE,
            "Dense: weight must be (4, 3), got (3, 4)");
    REFUSED(wb_dense(.given_weight = wb_ones(WB_F32, 3)), SHAPE,
            "Dense: weight must have 2 dimensions, got (3)");
    REFUSED(wb_dense(3, 4, .dtype = WB_I32), DTYPE, "Dense: dtype must be floating, got i32");
    REFUSED(wb_apply(NULL, wb_ones(WB_F32, 3)), ARGUMENT, "wb_apply: the layer is NULL");
    REFUSED(wb_destructure(NULL), ARGUMENT, "destructure");
    REFUSED(wb_dropout(.p = 1.1), ARGUMENT, "Dropout: p must be from 0 to 1, got 1.1");
    REFUSED(wb_dropout(.p = NAN), ARGUMENT, "got nan");
    REFUSED(wb_dropout(.p = 0.5, .dims = WB_DIM(8)), ARGUMENT,
            "Dropout: dims must be among WB_DIM(0) to WB_DIM(7), got 0x100");
    REFUSED(wb_embedding_bag(4), ARGUMENT, "EmbeddingBag: out must be positive, got 0");
    REFUSED(wb_embedding_bag(4, 2, 3), ARGUMENT,
            "EmbeddingBag: reduction must be from 0 to 2, got 3");
}

static void of_attention(void **state) {
    (void)state;
    REFUSED(wb_multi_head_attention(10, .heads = 3), ARGUMENT,
            "MultiHeadAttention: qk must be divisible by heads, got 10 features and 3 heads");
    REFUSED(wb_multi_head_attention(8, .heads = 2, .rotary = -1), ARGUMENT,
            "MultiHeadAttention: rotary must be at least 0, got -1");
    REFUSED(wb_multi_head_attention(), ARGUMENT, "MultiHeadAttention: in must be positive, got 0");
    REFUSED(wb_multi_head_attention(8, .dropout = 2), ARGUMENT,
            "MultiHeadAttention: dropout_prob must be from 0 to 1, got 2");
    REFUSED(wb_parse("MultiHeadAttention((1, 2, 3, 4) => 8 => 8)"), FORMAT,
            "MultiHeadAttention: in must be a number, or sizes like (q, k, v) => (qk, v) => out");
    wb_layer *m = wb_multi_head_attention(8);
    REFUSED(wb_apply(m, wb_ones(WB_F32, 4, 2)), SHAPE, "q_proj");
    wb_array *x = wb_ones(WB_F32, 8, 2), *y[1];
    wb_array *mask = wb_gt(x, wb_number(0));
    REFUSED(wb_apply_many(m, 1, &mask, 1, y), ARGUMENT,
            "a bool mask as the last one, got 1 arrays");
    REFUSED(wb_apply_many(m, 2, (wb_array *[]){x, mask}, 1, y), SHAPE,
            "attention: mask must broadcast to (keys, queries, heads, ...) = (2, 2, 8), got");
    wb_free(m);
}

static void of_bidirectional(void **state) {
    (void)state;
    wb_layer *model = wb_bidirectional(wb_lstm(3, 4), wb_lstm(3, 4, .return_state = true));
    REFUSED(wb_apply(model, wb_ones(WB_F32, 3)), SHAPE,
            "Bidirectional: input must have features and time, got (3)");
    REFUSED(wb_apply(model, wb_ones(WB_F32, 3, 2)), ARGUMENT,
            "backward of Bidirectional: gives 3 arrays, expected 1");
    REFUSED(wb_apply(model, wb_ones(WB_F32, 4, 2)), SHAPE,
            "forward of Bidirectional: input must have 2 or 3 dimensions");
    REFUSED(wb_bidirectional(wb_lstm(3, 4), NULL), ARGUMENT, "wb_bidirectional: layer 2 is NULL");
    wb_layer *one = wb_lstm(3, 4);
    REFUSED(wb_bidirectional(one, one), ARGUMENT,
            "Bidirectional: layer 2, LSTM(3 => 4), belongs to another container already");
    wb_free(model);
}

static void of_bilinear(void **state) {
    (void)state;
    wb_layer *layer = wb_bilinear(3, 2, 4);
    wb_array *xs[] = {wb_ones(WB_F32, 3, 3), wb_ones(WB_F32, 2, 4), wb_ones(WB_F32, 2)}, *z[1];
    REFUSED(wb_apply_many(layer, 2, xs, 1, z), SHAPE,
            "Bilinear((3, 2) => 4): inputs must have equally many columns, got (3, 3) and (2, 4)");
    REFUSED(wb_apply(layer, xs[0]), SHAPE,
            "inputs must be (3, N) and (2, N), got (3, 3) and (3, 3)");
    REFUSED(wb_apply_many(layer, 3, xs, 1, z), ARGUMENT, "takes one array or two, got 3");
    REFUSED(wb_bilinear(3, 2), ARGUMENT, "Bilinear: out must be positive, got 0");
    REFUSED(wb_bilinear(3, -2, 4), ARGUMENT, "Bilinear: in2 must be positive, got -2");
    wb_free(layer);
}

static void of_conv(void **state) {
    (void)state;
    wb_layer *conv = wb_chain(wb_conv(.kernel = {3, 3}, .in = 1, .out = 32));
    REFUSED(wb_apply(conv, wb_ones(WB_F32, 32, 32, 4, 8)), SHAPE,
            "Conv((3, 3), 1 => 32), layer 1 of Chain: input has 4 channels in (32, 32, 4, 8), "
            "expected 1");
    REFUSED(wb_apply(conv, wb_ones(WB_F32, 32, 32)), SHAPE,
            "input has 2 dimensions in (32, 32), expected 4");
    REFUSED(wb_apply(conv, wb_ones(WB_F32, 2, 2, 1, 1)), SHAPE,
            "Conv((3, 3), 1 => 32), layer 1 of Chain: ");
    REFUSED(wb_conv(.kernel = {3, 3}, .in = 1), ARGUMENT, "Conv: out must be positive, got 0");
    REFUSED(wb_conv({3, 3}, 1, 2, .same_pad = true, .dilation = {INT64_MAX, 1}), ARGUMENT,
            "Conv: dilation must be from 1 to 1048575, got (9223");
    REFUSED(wb_conv({3, 3}, 1, 2, .pad = {1, 1}, .pad_more = {INT64_MAX, 0}), ARGUMENT,
            "Conv: pad + pad_more must be from 0 to 1048575, got (1, 1)");
    REFUSED(wb_conv({3, 3}, 1, 2, .stride = {1, 1, 5}), ARGUMENT,
            "Conv: stride must have at most 2 numbers, got (1, 1, 5)");
    REFUSED(wb_conv({3}, 1, 2, .dilation = WB_EACH(1, 0)), ARGUMENT,
            "Conv: dilation must have at most 1 number, got (1, 0)");
    REFUSED(wb_maxpool({2, 2}, .pad = {1, 1, 1}), ARGUMENT,
            "MaxPool: pad must have at most 2 numbers, got (1, 1, 1)");
    REFUSED(wb_cross_cor({3}, 1, 2, .pad = {1}, .pad_more = {0, 1}), ARGUMENT,
            "CrossCor: pad_more must have at most 1 number, got (0, 1)");
    REFUSED(wb_conv({3}, 1, 2, .bias = false, .given_bias = wb_ones(WB_F32, 2)), ARGUMENT,
            "Conv: bias is false, but bias (2) was given");
    wb_free(conv);
}

static void of_dense(void **state) {
    (void)state;
    wb_layer *inner = wb_chain(wb_flatten(), wb_dense(784, 128, wb_relu));
    wb_layer *model = wb_chain(wb_fn(wb_relu), wb_dropout(.p = 0.5), inner);
    REFUSED(wb_apply(inner, wb_ones(WB_F32, 100, 64)), SHAPE,
            "Dense(784 => 128), layer 2 of Chain: input has 100 features in (100, 64)");
    REFUSED(wb_apply(model, wb_ones(WB_F32, 100, 64)), SHAPE,
            "Dense(784 => 128), layer 2 of Chain, layer 3 of Chain: input has 100 features in "
            "(100, 64)");
    wb_free(model);
}

static void of_layernorm(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_layernorm({3, 4}));
    REFUSED(
        wb_apply(model, wb_ones(WB_F32, 3, 5)), SHAPE,
        "LayerNorm(3, 4), layer 1 of Chain: input must begin with the sizes (3, 4), got (3, 5)");
    REFUSED(wb_apply(model, wb_ones(WB_F32, 3)), SHAPE, "got (3)");
    wb_free(model);
}

static void of_position_embedding(void **state) {
    (void)state;
    wb_layer *p = wb_position_embedding(3, 2);
    REFUSED(wb_apply(p, wb_ones(WB_F32, 2, 4)), SHAPE,
            "PositionEmbedding(3 => 2): input must be (2, length, ...) with at most 3 positions, "
            "got (2, 4)");
    REFUSED(wb_apply(p, wb_ones(WB_F32, 3, 2)), SHAPE, "at most 3 positions, got (3, 2)");
    REFUSED(wb_apply(p, wb_ones(WB_F32, 2)), SHAPE, "at most 3 positions, got (2)");
    REFUSED(wb_position_embedding(3), ARGUMENT, "PositionEmbedding: out must be positive, got 0");
    REFUSED(wb_position_embedding(3, 2, .given_weight = wb_ones(WB_F32, 2, 2)), SHAPE,
            "PositionEmbedding: weight must be (2, 3), got (2, 2)");
    wb_free(p);
}

static void of_positions(void **state) {
    (void)state;
    wb_layer *s = wb_sinusoidal_positions(), *r = wb_rotary_positions(.heads = 2);
    REFUSED(wb_apply(s, wb_ones(WB_F32, 4)), SHAPE,
            "SinusoidalPositions(): input must be (features, length, ...), got (4)");
    REFUSED(wb_apply(s, wb_ones(WB_I32, 4, 2)), DTYPE, "input must be floating, got");
    REFUSED(wb_apply(s, wb_ones(WB_F32, 5, 2)), SHAPE,
            "SinusoidalPositions(): features must be even and at least 4, got input (5, 2)");
    REFUSED(wb_apply(r, wb_ones(WB_F32, 6, 2)), ARGUMENT,
            "rotary: features must be even for each of 2 heads, got 6");
    REFUSED(wb_rotary_positions(.heads = -1), ARGUMENT,
            "RotaryPositions: heads must be positive, got -1");
    REFUSED(wb_multi_head_attention(6, .heads = 2, .rotary = 55), ARGUMENT,
            "MultiHeadAttention: with rotary each head must have an even number of features, got 6 "
            "/ 2");
    REFUSED(wb_rotary(wb_ones(WB_F32, 4, 3), .positions = wb_vector(1, 2)), SHAPE,
            "rotary: positions must be numbers (3), got (2)");
    REFUSED(wb_sinusoidal_at(WB_F32, 4, wb_ones(WB_F32, 2, 2)), SHAPE,
            "sinusoidal: positions must be numbers (length), got (2, 2)");
    wb_free(s), wb_free(r);
}

static void of_recurrent(void **state) {
    (void)state;
    wb_layer *layer = wb_lstm(3, 5);
    REFUSED(wb_apply(layer, wb_ones(WB_F32, 4, 6)), SHAPE,
            "LSTM(3 => 5): input must have 2 or 3 dimensions, the first of size 3, got (4, 6)");
    wb_array *arrays[3] = {wb_ones(WB_F32, 3, 6, 2), wb_ones(WB_F32, 4), wb_ones(WB_F32, 5)};
    wb_array *results[WB_MOST_ARRAYS];
    REFUSED(wb_apply_many(layer, 3, arrays, WB_MOST_ARRAYS, results), SHAPE,
            "state 0 must be (5, 2), got (4)");
    REFUSED(wb_apply_many(layer, 2, arrays, WB_MOST_ARRAYS, results), ARGUMENT,
            "expected an input and perhaps 2 states, got 2 arrays");
    REFUSED(wb_gru(0, 4), ARGUMENT, "GRU");
    wb_free(layer);
}

static void of_tokens(void **state) {
    (void)state;
    wb_layer *p = wb_patch_embedding({4, 2}, 3, 5, .image = {8, 8}), *t = wb_class_token(5);
    wb_layer *any = wb_patch_embedding({4, 2}, 3, 5), *f = wb_first_token();
    REFUSED(wb_apply(p, wb_ones(WB_F32, 8, 6, 3, 1)), SHAPE,
            "PatchEmbedding((4, 2), 3 => 5): images must be (8, 8), got (8, 6, 3, 1)");
    REFUSED(wb_apply(any, wb_ones(WB_F32, 8, 5, 3, 1)), SHAPE,
            "PatchEmbedding((4, 2), 3 => 5): sizes of images must be multiples of the patch (4, "
            "2), got (8, 5, 3, 1)");
    REFUSED(wb_apply(any, wb_ones(WB_F32, 8, 4, 1, 1)), SHAPE,
            "input has 1 channels in (8, 4, 1, 1), expected 3");
    REFUSED(wb_apply(any, wb_ones(WB_F32, 8, 4, 3)), SHAPE,
            "input has 3 dimensions in (8, 4, 3), expected 4");
    REFUSED(wb_patch_embedding({4, 2}, 3, 5, .image = {8, 5}), ARGUMENT,
            "PatchEmbedding: image must be a multiple of the patch (4, 2), got (8, 5)");
    REFUSED(wb_patch_embedding({4, 2}, 3, 5, .image = {-8, 8}), ARGUMENT,
            "PatchEmbedding: image must be from 0 to 1048575, got (-8, 8)");
    REFUSED(wb_patch_embedding({4, 2}, 3), ARGUMENT, "PatchEmbedding: out must be positive");
    REFUSED(wb_apply(t, wb_ones(WB_F32, 4, 2, 1)), SHAPE,
            "ClassToken(5): input must be (5, tokens, ...), got (4, 2, 1)");
    REFUSED(wb_apply(t, wb_ones(WB_F32, 5)), SHAPE, "(5, tokens, ...), got (5)");
    REFUSED(wb_class_token(), ARGUMENT, "ClassToken: features must be positive, got 0");
    REFUSED(wb_apply(f, wb_ones(WB_F32, 5, 0, 2)), SHAPE,
            "FirstToken(): input must be (features, tokens, ...), got (5, 0, 2)");
    wb_free(p), wb_free(any), wb_free(t), wb_free(f);
}

static void of_pixelwise(void **state) {
    (void)state;
    wb_layer *norm = wb_pixelwise(wb_layernorm({3})), *flat = wb_pixelwise(wb_flatten());
    REFUSED(wb_apply(norm, wb_ones(WB_F32, 3, 2)), SHAPE,
            "Pixelwise: input must have spatial dimensions, channels and batch, got (3, 2)");
    REFUSED(wb_apply(norm, wb_ones(WB_F32, 3, 2, 4, 1)), SHAPE,
            "input must begin with the sizes (3), got (4, 3, 2, 1)");
    REFUSED(wb_apply(flat, wb_ones(WB_F32, 5, 2, 3, 1)), SHAPE,
            "the layer must keep all sizes of its input (3, 5, 2, 1) but the first, got (30, 1)");
    REFUSED(wb_pixelwise(NULL), ARGUMENT, "wb_pixelwise");
    wb_free(norm), wb_free(flat);
}

static void of_reshape(void **state) {
    (void)state;
    wb_layer *layer = wb_reshape_layer({2, 3});
    REFUSED(wb_apply(layer, wb_ones(WB_F32, 5, 2)), SHAPE,
            "ReshapeLayer((2, 3)): observations must have as many elements as (2, 3), got input "
            "(5, 2)");
    REFUSED(wb_reshape_layer(), ARGUMENT, "ReshapeLayer: dims must be positive, got (0)");
    REFUSED(wb_reshape_layer({2, -3}), ARGUMENT,
            "ReshapeLayer: dims must be positive, got (2, -3)");
    wb_free(layer);
}

static void of_transformer(void **state) {
    (void)state;
    REFUSED(wb_transformer_encoder(), ARGUMENT,
            "TransformerEncoderBlock: in must be positive, got 0");
    REFUSED(wb_transformer_decoder(8, .hidden = -4), ARGUMENT,
            "TransformerDecoderBlock: hidden must be positive, got -4");
    REFUSED(wb_transformer_decoder(8, .dropout = 2), ARGUMENT,
            "TransformerDecoderBlock: dropout must be from 0 to 1, got 2");
    REFUSED(wb_transformer_encoder(8, .heads = 3), ARGUMENT,
            "MultiHeadAttention: qk must be divisible by heads, got 8 features and 3 heads");
    REFUSED(wb_transformer_encoder(8, .eps = -1), ARGUMENT,
            "LayerNorm: eps must be above 0, got -1");
    REFUSED(wb_parse("TransformerEncoderBlock(attention = Dense(2 => 2))"), ARGUMENT,
            "TransformerEncoderBlock: norm1 must be a layer, but is missing");
    wb_layer *b = wb_transformer_encoder(8, .heads = 2), *d = wb_transformer_decoder(8);
    REFUSED(wb_apply(b, wb_ones(WB_F32, 4, 2)), SHAPE, "attention of TransformerEncoderBlock");
    wb_array *x = wb_ones(WB_F32, 8, 2), *y[4];
    REFUSED(wb_apply_many(b, 4, (wb_array *[]){x, x, x, x}, 4, y), ARGUMENT,
            "TransformerEncoderBlock: expected x, and perhaps a bias and a mask, got 4 arrays");
    REFUSED(wb_apply(d, x), ARGUMENT,
            "TransformerDecoderBlock: expected x and memory, and perhaps a bias and a mask, got 1 "
            "arrays");
    wb_free(b), wb_free(d);
}

static void of_upsample(void **state) {
    (void)state;
    REFUSED(wb_upsample(), ARGUMENT, "Upsample: either scale or size must be given, got none");
    REFUSED(wb_upsample(.scale = {2}, .size = {4}), ARGUMENT,
            "Upsample: either scale or size must be given, got both");
    REFUSED(wb_upsample(.scale = {1.5}), ARGUMENT,
            "Upsample: scale of :nearest must be whole numbers, got 1.5");
    REFUSED(wb_upsample(WB_UPSAMPLE_LINEAR, .size = {1.5}), ARGUMENT,
            "Upsample: size must be whole numbers, got 1.5");
    REFUSED(wb_upsample(WB_UPSAMPLE_BILINEAR, {2, 2, 2}), ARGUMENT,
            "Upsample: scale of :bilinear must be one number or two, got 3");
    REFUSED(wb_upsample(WB_UPSAMPLE_LINEAR, {2, 3}), ARGUMENT,
            "Upsample: scale of :linear must be one number, got 2");
    REFUSED(wb_upsample(WB_UPSAMPLE_TRILINEAR, .size = {4, 4}), ARGUMENT,
            "Upsample: size of :trilinear must be one number or three, got 2");
    REFUSED(
        wb_upsample(WB_UPSAMPLE_LINEAR, {2}, .by_scale = true), ARGUMENT,
        "Upsample: by_scale needs a scale, a mode other than :nearest and .align_corners = false");
    wb_layer *u = wb_upsample(WB_UPSAMPLE_BILINEAR, .scale = {0.2});
    REFUSED(wb_apply(u, wb_ones(WB_F32, 4, 4, 1, 1)), SHAPE,
            "size must be at least 1, got 0 for dimension 0 of (4, 4, 1, 1)");
    REFUSED(wb_upsample(7, {2}), ARGUMENT, "Upsample: mode must be from 0 to 3, got 7");
    REFUSED(wb_upsample(.scale = {-2}), ARGUMENT, "Upsample: scale must be above 0, got -2");
    REFUSED(wb_upsample(.scale = {2, (double)INFINITY}), ARGUMENT,
            "Upsample: scale must be finite, got inf");
    REFUSED(wb_upsample(WB_UPSAMPLE_LINEAR, .scale = {(double)NAN}), ARGUMENT,
            "Upsample: scale must be above 0, got nan");
    REFUSED(wb_upsample(.size = {(double)INFINITY}), ARGUMENT,
            "Upsample: size must be finite, got inf");
    wb_layer *far = wb_upsample(WB_UPSAMPLE_LINEAR, .scale = {1e300});
    REFUSED(wb_apply(far, wb_ones(WB_F32, 3, 1, 1)), SHAPE,
            "got 3e+300 for dimension 0 of (3, 1, 1)");
    wb_layer *layer = wb_upsample(WB_UPSAMPLE_BILINEAR, {2}), *two = wb_upsample(.scale = {2, 2});
    REFUSED(wb_apply(layer, wb_ones(WB_F32, 3, 1, 1)), SHAPE,
            "Upsample(:bilinear): input must have 2 spatial dimensions, channels and batch, got "
            "(3, 1, 1)");
    REFUSED(wb_apply(two, wb_ones(WB_F32, 3, 1, 1)), SHAPE, "input must have 2 spatial dimensions");
    REFUSED(wb_apply(layer, wb_ones(WB_I32, 3, 3, 1, 1)), DTYPE, "input must be floating, got i32");
    wb_free(u), wb_free(far), wb_free(layer), wb_free(two);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(of_norms),         TEST(of_containers),   TEST(of_convolutions),
        TEST(of_cells),         TEST(of_small_layers), TEST(of_attention),
        TEST(of_bidirectional), TEST(of_bilinear),     TEST(of_conv),
        TEST(of_dense),         TEST(of_layernorm),    TEST(of_position_embedding),
        TEST(of_positions),     TEST(of_recurrent),    TEST(of_reshape),
        TEST(of_transformer),   TEST(of_upsample),     TEST(of_tokens),
        TEST(of_pixelwise)};
    ADD_TESTS(&tests, all);
    return run_test_list("mistakes/test_layers", &tests, NULL, NULL);
}
