/* Convolutions by a vendor's library: cuDNN or MIOpen. Dense arrays (W, H, C, N) of ours are their
 * NCHW, so that nothing is converted. And the plans that cuDNN's attention has, too. */
#ifndef WB_CONV_H
#define WB_CONV_H

#include "../kernel.h"

enum { WB_CONV_ALIGNED_BYTES = 16 }; /* of all arrays */

enum { WB_CONV_X, WB_CONV_W, WB_CONV_Y, WB_CONV_TENSORS };

/* Attention without mask and bias; q and y have `heads`, k and v `kv_heads`: those of one
 * run, which are some of the arrays' heads. */
typedef struct wb_attention_shape {
    int64_t dk, dv, queries, keys, heads, kv_heads, batch, is_causal;
    int64_t all_heads, all_kv_heads;
    /* of q, k and v in elements: from position to position, along the batch */
    int64_t q_strides[2], k_strides[2], v_strides[2];
} wb_attention_shape;

/* The arrays by number, as the calls' arguments are; means, one number in f32 for each query of a
 * run, is scratch memory of the derivative. */
enum {
    WB_ATTENTION_Q,
    WB_ATTENTION_K,
    WB_ATTENTION_V,
    WB_ATTENTION_Y,
    WB_ATTENTION_SUMS,
    WB_ATTENTION_DY,
    WB_ATTENTION_DQ,
    WB_ATTENTION_DK,
    WB_ATTENTION_DV,
    WB_ATTENTION_MEANS,
    WB_ATTENTION_TENSORS
};

/* All that a plan depends on; compared as bytes: fill zeroed memory. Cross-correlations: the fast
 * engines know nothing else. */
typedef struct wb_conv_shape {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t channels, filters, groups, batch;
    int32_t kind, dtype, fast, unused; /* wb_call_kind, wb_dtype */
    wb_attention_shape attention;      /* of attention; then the sizes above are 0 */
} wb_conv_shape;

static inline bool wb_conv_is_attention(const wb_conv_shape *shape) {
    return shape->kind == WB_CALL_attention || shape->kind == WB_CALL_attention_backward;
}

/* False: not a convolution for a library: empty, or one that takes input away instead of padding
 * it. */
bool wb_conv_shape_of(const wb_call *call, wb_conv_shape *shape);

static inline int64_t wb_conv_volume(const int64_t sizes[3]) {
    return sizes[0] * sizes[1] * sizes[2];
}

/* How much padding the end of dimension d needs, so that the window reaches the last place of the
 * output. */
int64_t wb_conv_pad_after(const wb_conv_shape *shape, int d);

/* Which of the call's arguments x, w or y is: of forward they are x, w, y; of data y, w, x; of
 * filter x, y, w. */
int wb_conv_argument(int32_t kind, int tensor);

/* ---- in the libraries' terms ---- */

/* The libraries have no convolutions of one dimension: those have a second one of size 1. */
int wb_conv_spatial(const wb_conv_shape *shape);
/* Values of the spatial dimensions with the slowest first: ours in reverse. */
void wb_conv_reverse(const wb_conv_shape *shape, const int64_t values[3], int64_t *reversed);
/* The array's sizes and strides with the slowest first; returns how many. */
int wb_conv_sizes(const wb_conv_shape *shape, int tensor, int64_t sizes[5], int64_t strides[5]);

/* ---- plans (plan.c) ---- */

enum { WB_CONV_MOST_WORKSPACE_BYTES = 1 << 28 };

/* What computes a shape: the library, Weber's own text, a product of matrices for each image, a
 * product of columns (product.h). These numbers are kept on disk. */
typedef enum wb_conv_way {
    WB_CONV_LIBRARY,
    WB_CONV_TEXT,
    WB_CONV_PRODUCT,
    WB_CONV_COLUMNS,
    WB_CONV_WAYS
} wb_conv_way;

/* Kept on disk, too. way: a wb_conv_way. source and index are the library's name for one of its
 * proposals; source 0: its first that suits and works. */
typedef struct wb_conv_choice {
    int32_t way, source, index, engine;
    double microseconds; /* 0: not timed */
    int64_t tune_ms;     /* as long as ways could be timed then */
} wb_conv_choice;

/* The same shape gets the same plan until the device is closed, or until 512 shapes are known: then
 * those that no kernel uses are dropped; if needed again, they are found on disk or made again. */
typedef struct wb_conv_plan {
    struct wb_conv_plan *next;
    wb_conv_shape shape;
    wb_conv_choice choice;
    void *by; /* the library's own; NULL: it has nothing for the shape, or is not the way */
    int64_t workspace_bytes;
    int references;
} wb_conv_plan;

/* Gets a plan of `by`, workspace and choice, and owns `by` from then on. False: wants no more
 * plans. */
typedef bool wb_conv_offer(void *context, const wb_conv_plan *plan);

/* The library (nvidia/cudnn_plan.c, backends/amdgpu/miopen_plan.c). The device is the thread's, and
 * one call is made at a time. */
typedef struct wb_conv_library {
    const char *name;
    bool cannot_be_captured;
    bool (*load)(char *reason, size_t reason_bytes);
    wb_gpu_outcome (*open)(void **handle);
    void (*close)(void *handle);
    /* Fills in `by` and the workspace, of the proposal that plan->choice names; or neither. */
    wb_gpu_outcome (*make)(void *handle, wb_conv_plan *plan);
    /* Optional: offers a plan of each proposal that suits and works, the library's favourite first.
     * Without it, the library's own choice is the best that there is. */
    wb_gpu_outcome (*propose)(void *handle, const wb_conv_shape *shape, wb_conv_offer *offer,
                              void *context);
    void (*drop)(void *by); /* what make left there */
    /* at: x, w, y, or by WB_ATTENTION_... */
    wb_gpu_outcome (*run)(void *handle, const wb_conv_plan *plan, const gpu_pointer *at,
                          gpu_pointer workspace, gpu_stream stream);
} wb_conv_library;

extern const wb_conv_library wb_conv_library_table;

/* Fills in what wb_conv_library.make does, and the choice. Graphs are paused, and no other thread
 * uses the library's handle. */
typedef wb_gpu_outcome wb_conv_maker(void *context, void *handle, wb_conv_plan *plan);

/* The shape's plan; made by the maker when first asked for. NULL with the outcome, which has no
 * error where there is nothing, or only the text, for the shape. */
wb_conv_plan *wb_conv_plan_by(wb_gpu_device *device, const wb_conv_shape *shape,
                              wb_conv_maker *maker, void *context, wb_gpu_outcome *outcome);
/* The same by the library's first proposal. */
wb_conv_plan *wb_conv_plan_get(wb_gpu_device *device, const wb_conv_shape *shape,
                               wb_gpu_outcome *outcome);
bool wb_conv_plan_is_known(wb_gpu_device *device, const wb_conv_shape *shape);
void wb_conv_plan_put(wb_gpu_device *device, wb_conv_plan *plan);
wb_gpu_outcome wb_conv_plan_run(wb_gpu_device *device, const wb_conv_plan *plan,
                                const gpu_pointer *at, gpu_pointer workspace, gpu_stream stream);
void wb_conv_device_close(wb_gpu_device *device);

/* ---- which of them is taken (choose.c) ---- */

/* The plan of a call's shape: of the fastest way, timed when first asked for or known from the
 * disk; of the library's first proposal where WEBER_TUNE=0 says so, or the library has no others.
 * WB_GPU_PASS: the text is to be taken. NULL: an error is recorded. */
wb_gpu_answer wb_conv_choose(wb_gpu_device *device, const wb_call *call, const wb_conv_shape *shape,
                             wb_conv_plan **plan);

/* ---- kernels (conv.c) ---- */

wb_gpu_answer wb_conv_lower(wb_gpu_device *device, const wb_call *call, const wb_program *epilogue,
                            int split, wb_gpu_kernel **kernel);

#endif
