/* What a node needs beside its inputs and sizes, in at most eight words: a struct for each kind of
 * operation. The words are part of the key of a plan, so every member has 8 bytes, and there is no
 * padding. An operation that needs more words has a payload (array/payload.h). */
#ifndef WB_ARRAY_ATTRIBUTES_H
#define WB_ARRAY_ATTRIBUTES_H

#include <stdint.h>

enum { WB_ATTRIBUTES = 8 }; /* words */

/* Bits of product.flags. FAST and BF16: when the node was made, wb_matmul_precision allowed less
 * than f32, or bf16. */
enum {
    WB_MATMUL_TRANSPOSE_A = 1,
    WB_MATMUL_TRANSPOSE_B = 2,
    WB_MATMUL_FAST = 4,
    WB_MATMUL_BF16 = 8
};

typedef union wb_attributes {
    int64_t words[WB_ATTRIBUTES];
    struct {
        double value;
    } number; /* of full, and of macros with a number */
    struct {
        int64_t number;
    } part; /* which placeholder of the body, or which result of the node */
    struct {
        int64_t rounds;
    } cast; /* of values in a plan: 1 for a cast to f16 or bf16 */
    struct {
        int64_t dim;
    } along; /* iota, concat, cumsum; slice, pad, index and runs begin with it, too */
    struct {
        int64_t dims, is_total; /* is_total: no dimensions are left (else size 1) */
        double eps;             /* normalise */
    } reduce;
    struct {
        int64_t order; /* see wb_permutation_pack */
    } permute;
    struct {
        int64_t dim, start, step;
    } slice; /* of slice and slice_put */
    struct {
        int64_t dim, start;
        double value;
    } pad;
    struct {
        int64_t dim, name; /* name: origin with the index's name in errors; or 0 */
    } index;               /* gather, scatter_add */
    struct {
        int64_t dim, run, merged; /* see wb_index_call */
    } runs;                       /* argmax, merge_runs */
    struct {
        int64_t flags;
    } product; /* matmul, convolutions */
    struct {
        int64_t kind, reduction, root;
    } collective; /* late[] of the node has its number and terms */
    struct {
        int64_t steps, reverse, carries, slices;
    } scan; /* inputs: carries, inputs with the steps last, captured arrays */
    struct {
        int64_t flags, more[WB_ATTRIBUTES - 1]; /* see ops/step.c */
    } step;                                     /* step_numbers */
} wb_attributes;

_Static_assert(sizeof(wb_attributes) == sizeof(int64_t) * WB_ATTRIBUTES, "words alone");

/* The arguments "count, words" of wb_node_with, from the members of one of these structs. */
#define WB_WORDS(member, ...)                                                                      \
    (int)(sizeof((wb_attributes *)NULL)->member / sizeof(int64_t)),                                \
        (wb_attributes){.member = {__VA_ARGS__}}.words

#endif
