#include "networks.h"

#include <math.h>
#include <stdlib.h>

#include "numbers.h"

static wb_layer *dense(uint32_t number, int64_t in, int64_t out, wb_activation *activation) {
    const float bound = sqrtf(6.0f / (float)(in + out));
    wb_array *w = bench_weight_array(SEQUENCE_WEIGHT + number, bound, out, in);
    return w ? wb_dense(in, out, activation, .given_weight = w) : NULL;
}

/* torch's kernel (out, in, kh, kw) is ours (kw, kh, in, out): the same memory. */
static wb_layer *with_kernel(wb_layer *conv, uint32_t number, int64_t side, int64_t in,
                             int64_t out) {
    const float bound = sqrtf(6.0f / (float)(side * side * (in + out)));
    const int64_t sizes[4] = {side, side, in, out};
    wb_array *kernel = bench_array(SEQUENCE_WEIGHT + number, -bound, bound, 4, sizes);
    if (wb_set(conv, "weight", kernel) == WB_OK) return conv;
    wb_free(conv);
    return NULL;
}

/* 3x3, with a bias and relu. */
static wb_layer *conv(uint32_t number, int64_t in, int64_t out) {
    wb_layer *made = wb_cross_cor(.kernel = {3, 3}, .in = in, .out = out, .activation = wb_relu);
    return with_kernel(made, number, 3, in, out);
}

/* Without a bias, as a norm follows; the result of stride 1 has x's size. */
static wb_layer *normed_groups(uint32_t number, int64_t side, int64_t stride, int64_t in,
                               int64_t out, int64_t groups, wb_activation *activation) {
    const int64_t pad = side / 2;
    wb_layer *made =
        pad ? wb_cross_cor(.kernel = {side, side}, .in = in, .out = out, .stride = {stride},
                           .pad = {pad, pad}, .groups = groups, .bias = false)
            : wb_cross_cor(.kernel = {side, side}, .in = in, .out = out, .stride = {stride},
                           .groups = groups, .bias = false);
    return wb_chain(with_kernel(made, number, side, in / groups, out),
                    wb_batchnorm(out, activation));
}

static wb_layer *normed(uint32_t number, int64_t side, int64_t stride, int64_t in, int64_t out,
                        wb_activation *activation) {
    return normed_groups(number, side, stride, in, out, 1, activation);
}

/* ---- perceptrons ---- */

wb_layer *bench_curve_mlp(bool tiny) {
    const int64_t hidden = tiny ? 1 : A_HIDDEN;
    return wb_chain(dense(1, 1, hidden, wb_tanh), dense(2, hidden, 1, NULL));
}

wb_layer *bench_mlp(bool tiny) {
    const int64_t in = tiny ? 2 : B_IN, hidden = tiny ? 2 : B_HIDDEN;
    return wb_chain(dense(1, in, hidden, wb_relu), dense(2, hidden, CLASSES, NULL));
}

wb_layer *bench_wide_mlp(bool tiny) {
    const int64_t in = tiny ? 2 : B_IN, hidden = tiny ? 2 : C_HIDDEN;
    return wb_chain(dense(1, in, hidden, wb_relu), dense(2, hidden, hidden, wb_relu),
                    dense(3, hidden, CLASSES, NULL));
}

/* ---- of images ---- */

wb_layer *bench_cnn(bool tiny) {
    const int64_t side = ((tiny ? TINY_D_SIDE : D_SIDE) - 4) / 2;
    const int64_t first = tiny ? 2 : 32, second = tiny ? 2 : 64, wide = tiny ? 2 : 128;
    return wb_chain(conv(1, 1, first), conv(2, first, second), wb_maxpool(.kernel = {2, 2}),
                    wb_flatten(), dense(3, side * side * second, wide, wb_relu),
                    dense(4, wide, CLASSES, NULL));
}

static wb_layer *vgg_conv(uint32_t number, int64_t in, int64_t out) {
    return normed(number, 3, 1, in, out, wb_relu);
}

wb_layer *bench_vgg(bool tiny) {
    const int64_t left = (tiny ? TINY_I_SIDE : I_SIDE) / 4;
    const int64_t narrow = tiny ? 2 : 64, middle = tiny ? 2 : 128, wide = tiny ? 2 : 256;
    return wb_chain(vgg_conv(1, 3, narrow), vgg_conv(2, narrow, narrow),
                    wb_maxpool(.kernel = {2, 2}), vgg_conv(3, narrow, middle),
                    vgg_conv(4, middle, middle), wb_maxpool(.kernel = {2, 2}),
                    vgg_conv(5, middle, wide), wb_meanpool(.kernel = {left, left}), wb_flatten(),
                    dense(6, wide, CLASSES, NULL));
}

/* Weights are numbered from first on: two, and one of a shortcut that is a conv. */
static wb_layer *residual(uint32_t first, int64_t in, int64_t out) {
    const int64_t stride = in == out ? 1 : 2;
    wb_layer *block = wb_chain(normed(first, 3, stride, in, out, wb_relu),
                               normed(first + 1, 3, 1, out, out, NULL));
    wb_layer *sum =
        in == out ? wb_skip(block, wb_connect_add)
                  : wb_parallel(wb_connect_add, block, normed(first + 2, 1, stride, in, out, NULL));
    return wb_chain(sum, wb_fn(wb_relu));
}

static wb_layer *resnet_stem(int64_t out) {
    return wb_chain(normed(1, 7, 2, 3, out, wb_relu),
                    wb_maxpool(.kernel = {3, 3}, .stride = {2}, .pad = {1, 1}));
}

wb_layer *bench_resnet(bool tiny) {
    enum { STAGES = 4, BLOCK_WEIGHTS = 3 };
    wb_layer *stages[STAGES];
    int64_t in = tiny ? 2 : 64;
    uint32_t number = 2;
    wb_layer *stem = resnet_stem(in);
    for (int s = 0; s < STAGES; s++, number += 2 * BLOCK_WEIGHTS) {
        const int64_t out = s == 0 ? in : 2 * in;
        stages[s] = wb_chain(residual(number, in, out), residual(number + BLOCK_WEIGHTS, out, out));
        in = out;
    }
    return wb_chain(stem, wb_chain_make(STAGES, stages), wb_global_meanpool(), wb_flatten(),
                    dense(number, in, CLASSES, NULL));
}

/* Weights are numbered from first on: three, and one of a shortcut that is a conv. */
static wb_layer *bottleneck(uint32_t first, int64_t stride, int64_t in, int64_t width) {
    const int64_t out = 4 * width;
    wb_layer *block = wb_chain(normed(first, 1, 1, in, width, wb_relu),
                               normed(first + 1, 3, stride, width, width, wb_relu),
                               normed(first + 2, 1, 1, width, out, NULL));
    wb_layer *sum =
        in == out ? wb_skip(block, wb_connect_add)
                  : wb_parallel(wb_connect_add, block, normed(first + 3, 1, stride, in, out, NULL));
    return wb_chain(sum, wb_fn(wb_relu));
}

wb_layer *bench_resnet50(bool tiny) {
    static const int blocks[] = {3, 4, 6, 3};
    enum { STAGES = sizeof blocks / sizeof *blocks, MOST_BLOCKS = 6, BLOCK_WEIGHTS = 4 };
    wb_layer *stages[STAGES], *stem = resnet_stem(tiny ? 2 : 64);
    int64_t in = tiny ? 2 : 64, width = in;
    uint32_t number = 2;
    for (int s = 0; s < STAGES; s++, width *= 2) {
        wb_layer *chain[MOST_BLOCKS];
        for (int b = 0; b < blocks[s]; b++, number += BLOCK_WEIGHTS, in = 4 * width)
            chain[b] = bottleneck(number, s > 0 && b == 0 ? 2 : 1, in, width);
        stages[s] = wb_chain_make(blocks[s], chain);
    }
    return wb_chain(stem, wb_chain_make(STAGES, stages), wb_global_meanpool(), wb_flatten(),
                    dense(number, in, CLASSES, NULL));
}

/* Wider inside than at its ends, weights numbered from first on. */
static wb_layer *inverted(uint32_t first, int64_t widening, int64_t stride, int64_t in,
                          int64_t out) {
    const int64_t wide = widening * in;
    wb_layer *narrow = wb_chain(normed_groups(first + 1, 3, stride, wide, wide, wide, wb_relu6),
                                normed(first + 2, 1, 1, wide, out, NULL));
    wb_layer *block =
        widening == 1 ? narrow : wb_chain(normed(first, 1, 1, in, wide, wb_relu6), narrow);
    return stride == 1 && in == out ? wb_skip(block, wb_connect_add) : block;
}

wb_layer *bench_mobilenet(bool tiny) {
    static const struct {
        int64_t widening, out;
        int blocks;
        int64_t stride; /* of the first block */
    } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    enum { STAGES = sizeof stages / sizeof *stages, MOST_BLOCKS = 4, BLOCK_WEIGHTS = 3 };
    const int64_t unit = tiny ? 16 : 1, last = 1280 / unit;
    int64_t in = 32 / unit;
    uint32_t number = 2;
    wb_layer *chains[STAGES], *stem = normed(1, 3, 2, 3, in, wb_relu6);
    for (int s = 0; s < STAGES; s++) {
        wb_layer *blocks[MOST_BLOCKS];
        for (int b = 0; b < stages[s].blocks; b++, number += BLOCK_WEIGHTS) {
            const int64_t out = stages[s].out / unit, stride = b == 0 ? stages[s].stride : 1;
            blocks[b] = inverted(number, stages[s].widening, stride, in, out);
            in = out;
        }
        chains[s] = wb_chain_make(stages[s].blocks, blocks);
    }
    return wb_chain(stem, wb_chain_make(STAGES, chains), normed(number, 1, 1, in, last, wb_relu6),
                    wb_global_meanpool(), wb_flatten(), dense(number + 1, last, CLASSES, NULL));
}

/* ---- LSTM ---- */

wb_layer *bench_lstm_make(const bench_lstm *s) {
    const float bound = 1 / sqrtf((float)s->cells);
    wb_array *wi = bench_weight_array(SEQUENCE_WEIGHT + 1, bound, 4 * s->cells, s->inputs);
    wb_array *wh = bench_weight_array(SEQUENCE_WEIGHT + 2, bound, 4 * s->cells, s->cells);
    return wi && wh ? wb_lstm(.given_wi = wi, .given_wh = wh) : NULL;
}

static wb_array *gate(wb_array *g, int number) {
    const int64_t cells = wb_size(g, 0) / 4;
    return wb_slice(g, 0, number * cells, (number + 1) * cells, 1);
}

void bench_lstm_step(void *weights, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    const bench_lstm_weights *w = weights;
    wb_array *g =
        wb_add(wb_add(wb_matmul(w->wi, inputs[0]), wb_matmul(w->wh, carries[0])), w->bias);
    wb_array *i = wb_sigmoid(gate(g, 0)), *f = wb_sigmoid(gate(g, 1)), *c = wb_tanh(gate(g, 2)),
             *o = wb_sigmoid(gate(g, 3));
    carries[1] = wb_add(wb_mul(f, carries[1]), wb_mul(i, c));
    outputs[0] = carries[0] = wb_mul(o, wb_tanh(carries[1]));
}

wb_array *bench_lstm_unrolled(bench_lstm_weights *weights, wb_array **carries, wb_array *x) {
    const int64_t length = wb_size(x, 2);
    wb_array **y = calloc((size_t)length, sizeof(wb_array *));
    if (!y) return NULL;
    for (int64_t t = 0; t < length; t++) {
        wb_array *slice = wb_squeeze(wb_slice(x, 2, t, t + 1, 1), 2);
        bench_lstm_step(weights, carries, &slice, &y[t]);
    }
    wb_array *all = wb_stack_make(2, (int)length, y);
    free(y);
    return all;
}
