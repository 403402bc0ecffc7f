/* Attention in tiles, whose memory grows with the length and not with its square (Dao 2022; Milakov
 * and Gimelshein 2018). */
#ifndef WB_CPU_ATTENTION_H
#define WB_CPU_ATTENTION_H

#include "calls.h"
#include "isa.h"

/* Bytes for all threads. */
int64_t wb_cpu_attention_scratch(const wb_call *call);

/* ---- from the code for each instruction set (kernels/attention_real.h) to attention.c ---- */

enum {
    WB_ATTENTION_KEYS = 512,    /* most keys of a block: their scores stay in L1 */
    WB_ATTENTION_STRIP = 6,     /* queries whose scores are made at once */
    WB_ATTENTION_QUERIES = 768, /* most of a piece */
    /* of the derivative: most keys of a block, and queries multiplied with it at once */
    WB_ATTENTION_KEY_BLOCK = 128,
    WB_ATTENTION_QUERY_BLOCK = 48
};

/* Queries first .. first + count - 1 of one head and entry of the batch, whose arrays these are. */
typedef struct wb_attention_piece {
    const wb_attention_call *call;
    const void *q, *k, *v, *bias;
    const uint8_t *mask;
    void *y, *sums;
    int64_t first, count;
    int64_t block; /* keys of a block */
    void *packed, *scores, *largest;
    double *total; /* scratch: block keys, a strip's scores, of each query of the piece ... */
} wb_attention_piece;

/* All queries of the heads that share one head of k and v, of one entry of the batch, and a part of
 * the keys; the arrays begin at the first of these heads, dq is the share of these keys. */
typedef struct wb_attention_group {
    const wb_attention_call *call;
    int64_t first_key, end_key;
    const void *q, *k, *v, *y, *sums, *dy, *bias;
    const uint8_t *mask;
    void *dq, *dk, *dv;
    int64_t block; /* keys of a block */
    /* scratch: block keys and values, weights and cotangents of scores (block,
     * WB_ATTENTION_QUERY_BLOCK), y' dy of all queries of the group */
    void *packed_k, *packed_v, *weights, *slopes, *means;
} wb_attention_group;

#define WB_DECLARE(enumerator, suffix)                                                             \
    void wb_attention_f32_##suffix(const wb_attention_piece *piece);                               \
    void wb_attention_f64_##suffix(const wb_attention_piece *piece);                               \
    void wb_attention_back_f32_##suffix(const wb_attention_group *group);                          \
    void wb_attention_back_f64_##suffix(const wb_attention_group *group);
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE

#endif
