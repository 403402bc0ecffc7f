/* What a node says beside its inputs and sizes, as far as eight words hold it: a struct for each
 * kind of operation. The words belong to the key of a plan, so that every member has 8 bytes, and
 * there is nothing between them that nobody sets. What needs more words is a payload
 * (array/payload.h). */
#ifndef WB_ARRAY_ATTRIBUTES_H
#define WB_ARRAY_ATTRIBUTES_H

#include <stdint.h>

enum { WB_ATTRIBUTES = 8 }; /* words */

/* Of product.flags. The latter two: wb_matmul_precision allowed less than f32, or bf16, when the
 * node was made. */
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
    } number; /* full; macros with a number */
    struct {
        int64_t number;
    } part; /* placeholder: of the body's; result: of its node's */
    struct {
        int64_t rounds;
    } cast; /* of values: to the halves */
    struct {
        int64_t dim;
    } along; /* iota, concat, cumsum; the first word of slice, pad, index and runs as well */
    struct {
        int64_t dims, is_total; /* bits; without dimensions, where others keep size 1 */
        double eps;             /* normalise */
    } reduce;
    struct {
        int64_t order; /* see wb_permutation_pack */
    } permute;
    struct {
        int64_t dim, start, step;
    } slice; /* and slice_put */
    struct {
        int64_t dim, start;
        double value;
    } pad;
    struct {
        int64_t dim, name; /* what errors call the index: an origin's number; 0: the operation */
    } index;               /* gather, scatter_add */
    struct {
        int64_t dim, run, merged; /* see wb_index_call */
    } runs;                       /* argmax, merge_runs */
    struct {
        int64_t flags;
    } product; /* matmul, convolutions */
    struct {
        int64_t kind, reduction, root;
    } collective; /* its late words are its number and terms */
    struct {
        int64_t steps, reverse, carries, slices;
    } scan; /* inputs: carries, inputs with the steps last, captured arrays */
    struct {
        int64_t flags, more[WB_ATTRIBUTES - 1]; /* see ops/step.c */
    } step;                                     /* step_numbers */
} wb_attributes;

_Static_assert(sizeof(wb_attributes) == sizeof(int64_t) * WB_ATTRIBUTES, "words alone");

/* "count, words" of one of these structs, as wb_node_with takes them. */
#define WB_WORDS(member, ...)                                                                      \
    (int)(sizeof((wb_attributes *)NULL)->member / sizeof(int64_t)),                                \
        (wb_attributes){.member = {__VA_ARGS__}}.words

#endif
