/* The networks of the benchmarks; transformer.h has one more. Weights are those of numbers.h,
 * biases are zero. tiny: the same graph with sizes of 1 or 2, so that what is left is the host's
 * work. NULL, with Weber's error pending, on failure. */
#ifndef BENCH_NETWORKS_H
#define BENCH_NETWORKS_H

#include <weber.h>

/* Their sizes, which their loops by hand need too. */
enum {
    A_BATCH = 16,
    A_HIDDEN = 256,
    B_BATCH = 64,
    B_IN = 784,
    B_HIDDEN = 256,
    C_BATCH = 256,
    C_HIDDEN = 1024,
    D_BATCH = 64,
    D_SIDE = 28,
    I_BATCH = 32,
    I_SIDE = 32,
    N_BATCH = 16,
    N_SIDE = 64,
    S_SIDE = 224,
    TINY_D_SIDE = 6,
    TINY_I_SIDE = 4,
    TINY_N_SIDE = 32,
    CLASSES = 10,
};

wb_layer *bench_curve_mlp(bool tiny); /* 1 - 256 - 1, tanh */
wb_layer *bench_mlp(bool tiny);       /* 784 - 256 - 10, relu */
wb_layer *bench_wide_mlp(bool tiny);  /* 784 - 1024 - 1024 - 10, relu */
wb_layer *bench_cnn(bool tiny);       /* conv 3x3 32, 64, maxpool 2, 128 - 10, relu */
/* Convs 3x3 of 64, 64, 128, 128, 256 filters with BatchNorm and relu, maxpool 2 after each pair,
 * meanpool 8 - 10 (Simonyan and Zisserman 2014). */
wb_layer *bench_vgg(bool tiny);
/* ResNet-18 (He et al. 2015) with 10 classes; shortcuts between sizes are convs 1x1 with norms. */
wb_layer *bench_resnet(bool tiny);
/* ResNet-50 with 10 classes: blocks of convs 1x1, 3x3 (with the stride) and 1x1. */
wb_layer *bench_resnet50(bool tiny);
/* MobileNetV2 (Sandler et al. 2018) with 10 classes: convs 1x1, depthwise 3x3, 1x1, with norms. */
wb_layer *bench_mobilenet(bool tiny);

/* An LSTM of `inputs` to `cells`; its wi, wh and bias, in blocks of gates i, f, c, o. */
typedef struct bench_lstm {
    int64_t inputs, cells, length, batch;
} bench_lstm;
wb_layer *bench_lstm_make(const bench_lstm *sizes);

/* One step of it, as the body of a scan: carries h and c, an input x (inputs, N), an output h. */
typedef struct bench_lstm_weights {
    wb_array *wi, *wh, *bias;
} bench_lstm_weights;
void bench_lstm_step(void *weights, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs);
/* All steps in a loop, each with nodes of its own: x (inputs, N, length) to (cells, N, length). */
wb_array *bench_lstm_unrolled(bench_lstm_weights *weights, wb_array **carries, wb_array *x);

#endif
