/* Descriptions of the heavy operations (matrix products, convolutions, attention ...): sizes, and
 * where the operands are in memory. Devices get these structs (weber/plugin.h), and kernels and
 * plans are found by their bytes. So every member has 8 bytes, except pointers on machines of 32
 * bits: there is no padding, whose bytes would be undefined. */
#ifndef WEBER_CALLS_H
#define WEBER_CALLS_H

#include <stdint.h>

/* The shapes of calls. Each SHAPE has a struct wb_SHAPE_call, which is the member SHAPE of
 * wb_call. */
#define WB_CALL_SHAPES(SHAPE) SHAPE(matmul) SHAPE(window) SHAPE(index) SHAPE(attention) SHAPE(grid)

/* C (m, n) = op(A) op(B), column-major with leading dimensions; batch entries at offsets in
 * elements. */
typedef struct wb_matmul_call {
    int64_t transpose_a, transpose_b; /* 0 or 1 */
    int64_t m, n, k, lda, ldb, ldc, batch;
    const int64_t *offset_a, *offset_b,
        *offset_c; /* `batch` offsets each; NULL for batch 1; they live as long as the kernel */
} wb_matmul_call;

/* x (in..., channels, batch), the filter (kernel..., channels / groups, filters) and y (out...,
 * filters, batch) are dense; unused spatial dimensions have size 1. pad: padding before x; the
 * padding after x follows from in and out. flip, 0 or 1: the kernel is read in reverse (Flux's
 * Conv), and so are the window's elements in unfold and fold. For pools, unfold and fold, filters
 * equals channels. */
typedef struct wb_window_call {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t channels, filters, groups, batch, flip;
} wb_window_call;

/* x (inner, size, outer); index has count entries (0: no index); y (inner, count, outer).
 *
 * merge_runs, a step of sorting: keys (inner, size, outer), and positions of the same sizes in i64,
 * whose runs of `run` positions are already sorted by key. The result has the positions in sorted
 * runs of `merged`, each merged from at most 32 runs of the input. The last run of either kind may
 * be shorter. -0 equals 0, a NaN is above all numbers, equal keys stay in order.
 *
 * argmax: keys (inner, size, outer); y (inner, ceil(size / run), outer) in i64 is, for each run of
 * `run` keys, the position along the dimension of its first largest key, by the same order. */
typedef struct wb_index_call {
    int64_t inner, size, outer, count;
    int64_t run;         /* argmax, merge_runs */
    int64_t merged;      /* merge_runs */
    int64_t index_dtype; /* WB_I32 or WB_I64; for keys, also WB_F32 or WB_F64 */
} wb_index_call;

/* q (dk, heads, queries, batch), k (dk, kv_heads, keys, batch), v (dv, kv_heads, keys, batch), y
 * (dv, heads, queries, batch), in the call's type; sums (queries, heads, batch). All are dense,
 * except that q, k and v may be slices of wider arrays on devices with wb_device_info.reads_parts.
 * Head h reads k and v of head h / (heads / kv_heads). For each head and entry of the batch
 *
 *     s(j, i) = k_j' q_i / sqrt(dk) + bias(j, i);  y_i = sum over j of softmax(s)(j, i) v_j
 *     sums(i) = log(sum over j of e^s(j, i))
 *
 * over the keys j that query i sees: j is allowed by the mask, j <= i + keys - queries if causal,
 * and s(j, i) is not -inf. For a query that sees no key y is 0 and sums infinite. The arguments of
 * attention are q, k, v, mask, bias, y, sums; those of attention_backward, which reads y, sums and
 * the cotangent dy, are q, k, v, y, sums, dy, mask, bias, dq, dk, dv.
 *
 * in_products, which is 0 in nodes: a device that computes the products by a library asks for the
 * text of what is between them. Then the arrays in its scratch memory are (keys, queries, heads),
 * columns wb_attention_leading elements apart. attention has the arguments scores k_j' q_i in f32
 * (f64 calls: f64), softmax(s) in the call's type, mask, bias, sums; attention_backward scores,
 * cotangents v_j' dy_i of softmax(s), softmax(s), cotangents of scores, sums, mask, bias. Results
 * may take the place of what they are computed from. */
typedef struct wb_attention_call {
    int64_t dk, dv, queries, keys, heads, kv_heads, batch;
    int64_t is_causal, has_mask, has_bias; /* 0 or 1; if 0, that argument is left out */
    int64_t in_products;                   /* 0 or 1 */
    /* strides of mask (bool) and bias, in elements: from key to key, query to query, head to head,
     * and along the batch; 0: the same for all */
    int64_t mask_strides[4], bias_strides[4];
    /* strides of q, k and v, in elements: from query to query or key to key; along the batch */
    int64_t q_strides[2], k_strides[2], v_strides[2];
} wb_attention_call;

/* The leading dimension of these arrays, so that 8 numbers of 16 bits can be loaded at once. */
static inline int64_t wb_attention_leading(int64_t keys) { return (keys + 7) / 8 * 8; }

/* What is read at a place outside of x. */
typedef enum wb_grid_padding {
    WB_GRID_ZEROS,     /* x is 0 there */
    WB_GRID_BORDER,    /* the nearest place inside */
    WB_GRID_REFLECTION /* the place inside after reflections at the borders */
} wb_grid_padding;

/* x (in..., channels, batch), grid (dims, out..., batch), y (out..., channels, batch), dense; sizes
 * of unused spatial dimensions are 1. Along dimension d a coordinate g of the grid stands for the
 * place p in x, whose elements are at 0, 1 ... in[d] - 1:
 *
 *     p = (g + 1) (in[d] - 1) / 2 with align_corners, else ((g + 1) in[d] - 1) / 2
 *
 * and padding (wb_grid_padding) says what is read outside of these. With i = floor(p) and f = p -
 * i, element i has weight 1 - f and element i + 1 weight f; with nearest, the nearest element (of
 * two the even one) has weight 1. For a dimension whose bit is set in slopes, the weights are their
 * derivatives by g instead: -dp/dg and dp/dg, or 0 with nearest. The weights of several dimensions
 * are multiplied. If in[d] is 1 with align_corners, p is 0 for every g but NaN.
 *
 * grid_sample: y = sum of weights times x; where p is NaN, y is NaN, or 0 with skips. grid_put is
 * its adjoint: x = sum of weights times y, added from the first y to the last, leaving out those
 * whose p is NaN. */
typedef struct wb_grid_call {
    int64_t in[3], out[3], channels, batch, dims;
    int64_t nearest, padding, align_corners, slopes, skips;
} wb_grid_call;

#endif
