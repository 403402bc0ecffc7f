/* weber/plugin.h: what a backend sees of Weber, and all it sees.
 *
 * A backend gives memory, turns programs and calls into kernels, and runs lists of commands. Memory is always
 * (handle, offset). A program is a fused elementwise or row kernel as data; a call is a library operation, which a
 * backend may refuse (lower gives NULL): every call of the table below has to be answered by somebody, so a
 * complete backend answers all.
 *
 * The ABI is not frozen before 1.0: WB_PLUGIN_ABI changes with it. */
#ifndef WEBER_PLUGIN_H
#define WEBER_PLUGIN_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { WB_PLUGIN_ABI = 1 };

/* ---- programs ---- */

/* Types of a program's registers; storage may be narrower. */
typedef enum wb_register {
    WB_R_F32,
    WB_R_F64,
    WB_R_I32,
    WB_R_I64,
    WB_R_BOOL,
    WB_R_COUNT
} wb_register;

/* What an instruction does. The elementwise ones are the primitives of ops.def, in its order. */
typedef enum wb_code {
#define WB_UNARY(name, ...)  WB_CODE_##name,
#define WB_BINARY(name, ...) WB_CODE_##name,
#include "ops.def"
    WB_CODE_select,   /* in[0] ? in[1] : in[2] */
    WB_CODE_cast,     /* in[0], of type `from`, as `type` */
    WB_CODE_load,     /* access `index` */
    WB_CODE_store,    /* in[0] to access `index` */
    WB_CODE_constant, /* `constant` */
    WB_CODE_late,     /* late value number `index` (a double) */
    WB_CODE_iota, /* the number that access `index` (without an argument) gives: offset + sum of i * stride */
    WB_CODE_uniform, /* Philox; element numbers by access `index`; key and counter are late words constant, constant + 1 */
    WB_CODE_normal,
    WB_CODE_sum, /* of in[0] along the reduced dimensions: a row value */
    WB_CODE_max_reduce,
    WB_CODE_spread, /* the row value in[0] at every element */
    WB_CODE_COUNT
} wb_code;

enum { WB_NO_VALUE = 0xffff };

/* One instruction; its value is known by its number (single assignment). */
typedef struct wb_instruction {
    uint8_t code; /* wb_code */
    uint8_t type; /* wb_register of the operands, for compare, cast (result), store (value) too */
    uint8_t
        from; /* cast: the operand's register; elementwise operations: the result's (bool for comparisons) */
    uint8_t phase;  /* the first phase in which the value can be computed */
    bool row;       /* a row value: one per combination of the dimensions that are not reduced */
    uint16_t in[3]; /* numbers of earlier instructions; WB_NO_VALUE: none */
    uint16_t index; /* access, late value or dimension */
    double constant;
} wb_instruction;

/* The register of an instruction's value. */
static inline wb_register wb_result_register(const wb_instruction *i) {
    return (wb_register)(i->code < WB_CODE_select ? i->from : i->type);
}

/* How a program walks one array: element (i0, i1, ...) of the domain lies at offset + sum of i * stride, in elements. */
typedef struct wb_access {
    uint8_t dtype;     /* wb_dtype in memory */
    uint16_t argument; /* which of the command's arguments */
    int64_t offset;
    int64_t strides[8];
} wb_access;

/* A fused kernel: a domain of dimensions, some of them reduced, walked once per phase. Values that depend on a reduction belong to
 * a later phase; row values (reduced sizes 1) are computed between phases. */
typedef struct wb_program {
    int32_t ndim;
    uint32_t reduced; /* bit d: dimension d is reduced; 0: an elementwise map */
    int64_t sizes[8];
    int32_t phases;
    int32_t ninstructions, naccesses, narguments;
    wb_instruction *instructions;
    wb_access *accesses;
} wb_program;

/* ---- calls ---- */

typedef enum wb_call_kind {
    WB_CALL_matmul,        /* a, b, c */
    WB_CALL_conv_forward,  /* x, w, y */
    WB_CALL_conv_data,     /* y, w, x */
    WB_CALL_conv_filter,   /* x, y, w */
    WB_CALL_maxpool,       /* x, y, index (i32: place in x's plane) */
    WB_CALL_pool_scatter,  /* y, index, x */
    WB_CALL_pool_gather,   /* x, index, y */
    WB_CALL_meanpool,      /* x, y */
    WB_CALL_meanpool_data, /* y, x */
    WB_CALL_unfold,        /* x, columns */
    WB_CALL_fold,          /* columns, x */
    WB_CALL_gather,        /* x, index, y */
    WB_CALL_scatter_add,   /* index, updates, result, which holds the base */
} wb_call_kind;

/* C (m, n) = op(A) op(B), column-major with leading dimensions; batch entries at offsets in elements. */
typedef struct wb_matmul_call {
    bool transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc, batch;
    const int64_t *offset_a, *offset_b,
        *offset_c; /* batch numbers each; NULL for batch 1; live as long as the kernel */
} wb_matmul_call;

/* Dense arrays (spatial..., channels, batch); unused spatial dimensions have size 1. */
typedef struct wb_window_call {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t channels, filters, groups, batch;
    bool flip;
} wb_window_call;

/* x (inner, size, outer); index has count entries; y (inner, count, outer). */
typedef struct wb_index_call {
    int64_t inner, size, outer, count;
    uint8_t index_dtype; /* WB_I32 or WB_I64 */
} wb_index_call;

typedef struct wb_call {
    wb_call_kind kind;
    wb_dtype dtype;
    wb_matmul_call matmul; /* of these the one that the kind is about */
    wb_window_call window;
    wb_index_call index;
} wb_call;

/* ---- commands ---- */

typedef struct wb_memory {
    void *handle;
    int64_t offset_bytes;
} wb_memory;

/* An argument: entry number `memory` of the table given to run, plus an offset. */
typedef struct wb_argument {
    uint32_t memory;
    int64_t offset_bytes;
} wb_argument;

typedef struct wb_command {
    void *kernel;
    int32_t narguments;
    const wb_argument *arguments; /* of the call or program, of the epilogue, then scratch memory */
    const char *what;             /* the operations it serves, for messages */
} wb_command;

/* ---- the tables ---- */

/* What a backend may ask of its host. */
typedef struct wb_host {
    uint32_t abi, size_bytes;
    void *(*alloc)(size_t size_bytes); /* zeroed; NULL with the error recorded */
    void (*release)(void *block);
    void *(*alloc_aligned)(size_t size_bytes); /* for arrays: to 64 bytes, not zeroed */
    void (*release_aligned)(void *block);
    wb_status (*fail)(wb_status status, const char *format,
                      ...); /* records an error; returns status */
} wb_host;

typedef struct wb_backend {
    uint32_t abi, size_bytes;
    const char *name;                  /* "CPU" */
    void *(*alloc)(size_t size_bytes); /* NULL: out of memory */
    void (*free)(void *handle, size_t size_bytes);
    /* A kernel for the program; NULL with an error recorded. The program may be released afterwards. */
    void *(*kernel)(const wb_program *program);
    /* A kernel for the call, with an elementwise program over the result's elements fused behind it, or without (NULL). NULL without
     * an error: not supported in this combination. The program's arguments follow the call's; it may read the call's result,
     * and write over it. split: the number of leading dimensions of its domain that make up the call's rows (m; the positions of
     * a plane). */
    void *(*lower)(const wb_call *call, const wb_program *epilogue, int split);
    size_t (*scratch_bytes)(const void *kernel);
    void (*release)(void *kernel);
    wb_status (*run)(const wb_command *commands, int count, const wb_memory *memory,
                     const uint64_t *late);
} wb_backend;

#ifdef __cplusplus
}
#endif
#endif
