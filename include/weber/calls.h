/* What heavy operations do (matrix products, convolutions, attention ...): sizes, and where the
 * operands lie. These structs are what devices get (weber/plugin.h), and the keys of kernels and
 * plans. Members have 8 bytes, so that there are none between them that nobody sets. */
#ifndef WEBER_CALLS_H
#define WEBER_CALLS_H

#include <stdint.h>

/* The shapes of calls: wb_SHAPE_call, the member SHAPE of wb_call. */
#define WB_CALL_SHAPES(SHAPE) SHAPE(matmul) SHAPE(window) SHAPE(index) SHAPE(attention) SHAPE(grid)

/* C (m, n) = op(A) op(B), column-major with leading dimensions; batch entries at offsets in
 * elements. */
typedef struct wb_matmul_call {
    int64_t transpose_a, transpose_b; /* 0 or 1 */
    int64_t m, n, k, lda, ldb, ldc, batch;
    const int64_t *offset_a, *offset_b,
        *offset_c; /* batch numbers each; NULL for batch 1; live as long as the kernel */
} wb_matmul_call;

/* x (in..., channels, batch), the filter (kernel..., channels / groups, filters) and y (out...,
 * filters, batch) are dense; unused spatial dimensions have size 1. pad: before x; what lies beyond
 * its end follows from in and out. flip, 0 or 1: the kernel is read backwards (Flux's Conv), and so
 * are the taps of unfold and fold. Of pools, unfold and fold, filters equals channels. */
typedef struct wb_window_call {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t channels, filters, groups, batch, flip;
} wb_window_call;

/* x (inner, size, outer); index has count entries (0: there is none); y (inner, count, outer).
 *
 * merge_runs: keys (inner, size, outer), and positions of the same sizes in i64; each run of `run`
 * positions is in the keys' order. The result has the positions with each run of `merged` in order,
 * made of at most 32 of the former. The last run of either kind may be shorter. -0 equals 0, a NaN
 * is above all numbers, equals stay in order.
 *
 * argmax: keys (inner, size, outer); y (inner, ceil(size / run), outer) in i64 is, for each run of
 * `run`, the position along the dimension of its first largest key, in the same order. */
typedef struct wb_index_call {
    int64_t inner, size, outer, count;
    int64_t run;         /* argmax, merge_runs */
    int64_t merged;      /* merge_runs */
    int64_t index_dtype; /* WB_I32 or WB_I64; of keys, also WB_F32 or WB_F64 */
} wb_index_call;

/* q (dk, heads, queries, batch), k (dk, kv_heads, keys, batch), v (dv, kv_heads, keys, batch), y
 * (dv, heads, queries, batch), in the call's type; sums (queries, heads, batch). All are dense, but
 * q, k and v may be parts of wider arrays on devices that read those (reads_parts). Head h reads k
 * and v of head h / (heads / kv_heads). For each head and entry of the batch
 *
 *     s(j, i) = k_j' q_i / sqrt(dk) + bias(j, i);  y_i = sum over j of softmax(s)(j, i) v_j
 *     sums(i) = log(sum over j of e^s(j, i))
 *
 * over the keys j that query i sees: those of its mask and, if causal, up to i + keys - queries,
 * whose scores are not -inf. A query that sees none has y 0 and sums infinite. Arguments of
 * attention: q, k, v, mask, bias, y, sums; of attention_backward, which is given y, sums and the
 * cotangent dy: q, k, v, y, sums, dy, mask, bias, dq, dk, dv. */
typedef struct wb_attention_call {
    int64_t dk, dv, queries, keys, heads, kv_heads, batch;
    int64_t is_causal, has_mask, has_bias; /* 0 or 1; without, there is no such argument */
    /* of mask (bool) and bias, in elements: from key to key, query to query, head to head and along
     * the batch; 0: the same for all */
    int64_t mask_strides[4], bias_strides[4];
    /* of q, k and v, in elements: from query to query or key to key, and along the batch */
    int64_t q_strides[2], k_strides[2], v_strides[2];
} wb_attention_call;

/* What a place outside of x means. */
typedef enum wb_grid_padding {
    WB_GRID_ZEROS,     /* x is 0 there */
    WB_GRID_BORDER,    /* the nearest place within */
    WB_GRID_REFLECTION /* the place that it is reflected to, as often as it takes */
} wb_grid_padding;

/* x (in..., channels, batch), grid (dims, out..., batch), y (out..., channels, batch), dense; sizes
 * of unused spatial dimensions are 1. Along dimension d the coordinate g of the grid means place p
 * of x, whose elements are at 0, 1 ... in[d] - 1:
 *
 *     p = (g + 1) (in[d] - 1) / 2 with align_corners, else ((g + 1) in[d] - 1) / 2
 *
 * and padding (wb_grid_padding) says what a place outside of them means. With i = floor(p), f = p -
 * i, x counts there with 1 - f at i and f at i + 1; with nearest, with 1 at the nearest i, the even
 * one of two. A dimension whose bit is set in slopes has the derivatives of these weights by g in
 * their place: -dp/dg and dp/dg, with nearest 0. Weights of several dimensions are multiplied.
 * grid_sample: y = the sum of weights times x, NaN where p is. grid_put is its adjoint: x = the sum
 * of weights times y, from first to last, without those whose p is NaN. */
typedef struct wb_grid_call {
    int64_t in[3], out[3], channels, batch, dims;
    int64_t nearest, padding, align_corners, slopes;
} wb_grid_call;

#endif
