/* Matrix products by cuBLASLt or hipBLASLt: column-major with leading dimensions as in
 * wb_matmul_call, so that nothing is converted. */
#ifndef WB_LT_H
#define WB_LT_H

#include "../kernel.h"
#include "api.h"
#include "epilogue.h"

typedef struct wb_lt_functions {
#define X(result, name, parameters) result(*name) parameters;
    LT_FUNCTION_LIST(X)
#undef X
} wb_lt_functions;
extern wb_lt_functions lt;

enum {
#define X(result, name, parameters) WB_LT_INDEX_##name,
    LT_FUNCTION_LIST(X)
#undef X
        WB_LT_FUNCTIONS
};
extern const wb_symbol wb_lt_symbols[WB_LT_FUNCTIONS]; /* of that table */

/* ---- where the vendors differ (nvidia/cublaslt.c, backends/amdgpu/hipblaslt.c) ---- */

/* Opens the library; once, from any thread. The reason says why not, or which version there is. */
bool wb_lt_load(char *reason, size_t reason_bytes);

/* Asks the device's handle what only a handle knows. An error: the library will not do. */
wb_gpu_outcome wb_lt_accept(lt_handle handle);

/* "CUBLAS_STATUS_NOT_SUPPORTED" */
const char *wb_lt_error_name(lt_code code);

/* wb_gpu_outcome o = LT_TRY(Create, &handle) */
wb_gpu_outcome wb_lt_outcome(const char *call, lt_code code);
#define LT_TRY(function, ...) wb_lt_outcome(LT_PREFIX #function, lt.function(__VA_ARGS__))

/* ---- one product, maybe of many matrices at constant distances (product.c) ---- */

/* All that a choice of algorithm depends on; compared as bytes: fill zeroed memory. */
typedef struct wb_lt_shape {
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batch, stride_a, stride_b, stride_c;
    int32_t dtype, result, epilogue; /* wb_dtype of A and B, and of C; wb_epilogue_kinds */
    int32_t transpose_a, transpose_b, fast;
} wb_lt_shape;

/* Descriptors of a shape. */
typedef struct wb_lt_product {
    lt_desc desc;
    lt_layout a, b, c;
} wb_lt_product;

wb_gpu_outcome wb_lt_product_make(const wb_lt_shape *shape, wb_lt_product *product);
void wb_lt_product_release(wb_lt_product *product);

/* ---- which algorithm (choose.c) ---- */

enum { WB_LT_ALIGNED_BYTES = 16 /* of all operands: needed by the widest loads and stores */ };

/* For operands with this alignment, and for operands that are only aligned to their elements.
 * hipBLASLt takes no alignment: it has only `any`. */
typedef struct wb_lt_choices {
    lt_choice aligned, any;
    bool has_aligned, has_any;
} wb_lt_choices;

/* What a device keeps for the library. */
typedef struct wb_lt_device wb_lt_device;

/* Made when first asked for; the device is the thread's then. NULL with the outcome. */
wb_lt_device *wb_lt_device_of(wb_gpu_device *device, wb_gpu_outcome *outcome);
lt_handle wb_lt_handle(const wb_lt_device *device);
void wb_lt_device_close(wb_gpu_device *device);

/* The same shape gets the same algorithm until the device is closed. Without an algorithm neither
 * of has_ is set. */
wb_gpu_outcome wb_lt_choose(wb_lt_device *device, const wb_lt_shape *shape,
                            const wb_lt_product *product, wb_lt_choices *choices);

/* ---- products that are ready to run (ready.c) ---- */

typedef struct wb_lt_ready {
    bool is_aligned; /* each run has operands for the aligned algorithm */
    wb_lt_device *device;
    wb_lt_shape shape;
    wb_lt_product product;
    wb_lt_choices choices;
} wb_lt_ready;

/* Fills in the rest of what has a shape and is_aligned. Where the library has no algorithm,
 * choices.has_any is false. Released by wb_lt_unready, also after an error. */
wb_gpu_outcome wb_lt_make_ready(wb_gpu_device *device, wb_lt_ready *ready);
void wb_lt_unready(wb_lt_ready *ready);
size_t wb_lt_workspace_bytes(const wb_lt_ready *ready);
/* at: A, B, C. bias: 0, or the address that has been written into the descriptor. */
wb_gpu_outcome wb_lt_run(const wb_lt_ready *ready, const gpu_pointer at[3], gpu_pointer bias,
                         gpu_pointer workspace, gpu_stream stream);

/* ---- sizes that are no multiples of 16 bytes (pad.c) ---- */

/* Operands that are computed on as larger copies in scratch memory: A, B and C. */
typedef struct wb_lt_padding {
    wb_gpu_kernel *copies[3]; /* NULL: it is used where it is */
    wb_gpu_kernel *zeros[2];  /* the rest of A or B along k; NULL: there is none */
    int64_t offset_bytes[3];  /* in scratch memory */
    int64_t zero_bytes;       /* where there is a zero */
} wb_lt_padding;

/* Widens the shape where that is worth its time. *scratch_bytes grows. False with an error. */
bool wb_lt_pad(wb_gpu_device *device, wb_lt_shape *shape, wb_lt_padding *padding,
               int64_t *scratch_bytes);
void wb_lt_padding_release(wb_lt_padding *padding);
/* The operand of this number, which the command has as `argument`; A and B are copied now. */
wb_gpu_outcome wb_lt_padded(const wb_lt_padding *padding, const wb_gpu_run *run,
                            const wb_command *command, int operand, int argument,
                            gpu_pointer *address);
/* C goes to where the command has it. */
wb_gpu_outcome wb_lt_unpad(const wb_lt_padding *padding, const wb_gpu_run *run,
                           const wb_command *command, int argument);

/* ---- kernels (lt.c) ---- */

/* Whether the library is there and has this operation as an epilogue of products. */
bool wb_lt_takes(const char *name);
wb_gpu_answer wb_lt_lower(wb_gpu_device *device, const wb_call *call, const wb_program *epilogue,
                          int split, wb_gpu_kernel **kernel);

/* ---- attention by products (attention.c) ---- */

bool wb_lt_takes_attention(wb_gpu_device *device, const wb_call *call);
wb_gpu_answer wb_lt_lower_attention(wb_gpu_device *device, const wb_call *call,
                                    const wb_program *epilogue, int split, wb_gpu_kernel **kernel);

#endif
