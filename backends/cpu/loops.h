/* The loops that programs are run with, one table per instruction set.
 *
 * Registers hold up to WB_WHOLE_ROW elements of float, double, int32_t, int64_t; bool is int32_t 0
 * or 1. Element loops are called with n rounded up to a multiple of 16; what lies beyond the tile
 * is never looked at. */
#ifndef WB_CPU_LOOPS_H
#define WB_CPU_LOOPS_H

#include <weber/plugin.h>

#include "isa.h"

enum { WB_TILE = 1024, WB_LANES = 16 };

/* Bytes of a register beyond the last whole lanes, which a loop may write. */
enum { WB_REGISTER_REST = 64 };

/* Elements of the longest reduced row that is a tile of its own. */
enum { WB_WHOLE_ROW = 4096 };

/* One running sum or largest value: of f32 and f64 in f64, of integers in i64. */
typedef union wb_accumulator {
    double f;
    int64_t i;
} wb_accumulator;

/* Two steps in one loop. */
typedef enum wb_fused {
    WB_NOT_FUSED,
    WB_PRODUCT_ADDED,      /* x y + z */
    WB_PRODUCT_SUBTRACTED, /* z - x y */
    WB_PRODUCT_NEGATED,    /* -(x y) */
    WB_PRODUCT_SUMMED,     /* a sum of x y */
    WB_DIFFERENCE_TIMES,   /* (x - y) z */
    WB_EXP_OF_EXCESS,      /* e^(x - y), 1 where x = y */
    WB_MOMENTS,            /* the sums of x - y and of (x - y)^2, y a row value */
    WB_FUSED_COUNT
} wb_fused;

typedef void wb_element_loop(int64_t n, void *o, const void *x, const void *y, const void *z);
typedef void wb_convert_loop(int64_t n, const void *from, void *to);
/* a register of `outer` rows of `inner` elements, into one accumulator per row, or per column */
typedef void wb_reduce_loop(int64_t inner, int64_t outer, const void *x, wb_accumulator *sums);
/* the same of the products of two registers */
typedef void wb_dot_loop(int64_t inner, int64_t outer, const void *x, const void *y,
                         wb_accumulator *sums);
/* the sums of x - mean and of (x - mean)^2, with a mean for each accumulator */
typedef void wb_moment_loop(int64_t inner, int64_t outer, const void *x, const void *means,
                            wb_accumulator *sums, wb_accumulator *squares);
typedef void wb_fill_loop(void *out, int64_t first, int64_t n, uint64_t key, uint64_t counter);

/* `inner` times each of `outer` adjacent elements of 4 or 8 bytes, into a register */
typedef void wb_repeat_loop(int64_t inner, int64_t outer, const void *from, void *to);

typedef struct wb_loops {
    wb_element_loop *element[WB_CODE_select + 1]
                            [WB_R_COUNT]; /* by type of the operands; NULL: not of that class */
    wb_element_loop *cast[WB_R_COUNT][WB_R_COUNT]; /* from, to */
    wb_element_loop *round_f16, *round_bf16;       /* f32 to the nearest number of that type */
    /* the same where the last, or the one before the last, operand is one number for all elements;
     * NULL: no such loop */
    wb_element_loop *by_number[WB_CODE_select + 1][WB_R_COUNT],
        *of_number[WB_CODE_select + 1][WB_R_COUNT];
    wb_element_loop *fused[WB_FUSED_COUNT][4][2]; /* f32 and f64; + 1: y is a number, + 2: z is */
    wb_convert_loop *load[WB_DTYPE_COUNT],
        *store[WB_DTYPE_COUNT]; /* memory to register and back, contiguous */
    wb_convert_loop *repeat[2]; /* one element of 4 or 8 bytes, which may be to[0], into all n */
    wb_repeat_loop *repeat_rows[2];
    wb_reduce_loop *reduce_rows[2][WB_R_COUNT], *reduce_columns[2][WB_R_COUNT]; /* sum, max */
    wb_dot_loop *dot_rows[2], *dot_columns[2];                                  /* f32 and f64 */
    wb_moment_loop *moment_rows[2], *moment_columns[2];
    wb_fill_loop *uniform[2], *normal[2];
} wb_loops;

#define WB_LOOPS_DECLARE(isa, suffix) extern const wb_loops wb_loops_##suffix;
WB_ISA_LIST(WB_LOOPS_DECLARE)
#undef WB_LOOPS_DECLARE

#endif
