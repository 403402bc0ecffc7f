/* Which attention cuDNN is given, and kernels of it: the forward direction in halves, without mask
 * and bias, features in multiples of 8, causal only where there are as many keys as queries. Its
 * fast derivatives add to dq in no fixed order, so that direction is left to the texts, which read
 * the sums that it gives. */
#include <string.h>

#include "cudnn.h"

enum {
    FEATURES_UNIT = 8,       /* both kinds of features are multiples of it */
    FAULTY_FROM = 91000,     /* 9.10.0 and 9.10.1 have attention that is known to be wrong */
    FAULTY_BEFORE = 91002,   /* (cudnn-frontend, sdpa_support_surface.h) */
    SCRATCH_ALIGNMENT = 256, /* of what follows its workspace */
};

typedef struct attention_kernel {
    wb_gpu_kernel kernel;
    wb_conv_plan *plan;
    bool copies; /* arrays that are not aligned, which then lie in the scratch memory */
} attention_kernel;

/* ---- which ---- */

static bool shape_of(const wb_call *call, wb_conv_shape *s) {
    const wb_attention_call *a = &call->attention;
    memset(s, 0, sizeof *s);
    s->kind = (int32_t)call->kind, s->dtype = (int32_t)call->dtype;
    s->attention = (wb_attention_shape){.dk = a->dk,
                                        .dv = a->dv,
                                        .queries = a->queries,
                                        .keys = a->keys,
                                        .heads = a->heads,
                                        .kv_heads = a->kv_heads,
                                        .batch = a->batch,
                                        .is_causal = a->is_causal};
    const bool is_half = call->dtype == WB_F16 || call->dtype == WB_BF16;
    return call->kind == WB_CALL_attention && is_half && !a->has_mask && !a->has_bias &&
           a->queries > 0 && a->keys > 0 && a->batch > 0 && a->dk % FEATURES_UNIT == 0 &&
           a->dv % FEATURES_UNIT == 0 && (!a->is_causal || a->queries == a->keys);
}

static bool is_faulty(void) {
    return dnn.GetVersion() >= FAULTY_FROM && dnn.GetVersion() < FAULTY_BEFORE;
}

/* NULL: it is none for cuDNN. */
static wb_conv_plan *plan_of(wb_gpu_device *device, const wb_call *call) {
    char reason[256];
    wb_conv_shape shape;
    wb_gpu_outcome o;
    if (!shape_of(call, &shape) || !wb_dnn_load(reason, sizeof reason) || is_faulty()) return NULL;
    wb_conv_plan *plan = wb_conv_plan_get(device, &shape, &o);
    if (o.error)
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: attention without cuDNN: %s: %s",
                         wb_gpu_vendor_table.backend, o.call, o.error);
    return plan;
}

bool wb_dnn_takes_attention(wb_gpu_device *device, const wb_call *call) {
    wb_conv_plan *plan = plan_of(device, call);
    wb_conv_plan_put(device, plan);
    return plan != NULL;
}

/* ---- running ---- */

static int64_t rounded(int64_t bytes) {
    return (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
}

static void sizes_of(const wb_attention_shape *a, int64_t bytes[WB_ATTENTION_TENSORS]) {
    const int64_t of_queries = a->queries * a->heads * a->batch,
                  of_keys = a->keys * a->kv_heads * a->batch;
    bytes[WB_ATTENTION_Q] = of_queries * a->dk * 2, bytes[WB_ATTENTION_K] = of_keys * a->dk * 2;
    bytes[WB_ATTENTION_V] = of_keys * a->dv * 2, bytes[WB_ATTENTION_Y] = of_queries * a->dv * 2;
    bytes[WB_ATTENTION_SUMS] = of_queries * 4;
}

static wb_gpu_outcome copy(gpu_pointer to, gpu_pointer from, int64_t bytes, const wb_gpu_run *run) {
    return GPU_TRY(MemcpyDtoDAsync, to, from, (size_t)bytes, run->stream);
}

/* What is aligned stays where it is, and what is not has a place in the scratch memory. */
static void place(const attention_kernel *k, gpu_pointer scratch, const gpu_pointer *at,
                  const int64_t *bytes, gpu_pointer *placed) {
    scratch += (gpu_pointer)rounded(k->plan->workspace_bytes);
    for (int t = 0; t < WB_ATTENTION_TENSORS; t++) {
        const bool moves = k->copies && at[t] % WB_CONV_ALIGNED_BYTES != 0;
        placed[t] = moves ? scratch : at[t];
        if (k->copies) scratch += (gpu_pointer)rounded(bytes[t]);
    }
}

static wb_gpu_outcome run_attention(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                                    const wb_command *command) {
    const attention_kernel *k = (const attention_kernel *)kernel;
    const gpu_pointer scratch = wb_gpu_address(run, command, command->narguments - 1);
    gpu_pointer at[WB_ATTENTION_TENSORS], placed[WB_ATTENTION_TENSORS];
    int64_t bytes[WB_ATTENTION_TENSORS];
    wb_gpu_outcome o = {.error = NULL};
    for (int t = 0; t < WB_ATTENTION_TENSORS; t++) at[t] = wb_gpu_address(run, command, t);
    sizes_of(&k->plan->shape.attention, bytes);
    place(k, scratch, at, bytes, placed);
    for (int t = 0; t < WB_ATTENTION_Y && !o.error; t++)
        if (placed[t] != at[t]) o = copy(placed[t], at[t], bytes[t], run);
    if (!o.error) o = wb_conv_plan_run(kernel->device, k->plan, placed, scratch, run->stream);
    for (int t = WB_ATTENTION_Y; t < WB_ATTENTION_TENSORS && !o.error; t++)
        if (placed[t] != at[t]) o = copy(at[t], placed[t], bytes[t], run);
    return o;
}

/* ---- making ---- */

static void release_attention(wb_gpu_kernel *kernel) {
    wb_conv_plan_put(kernel->device, ((attention_kernel *)kernel)->plan);
    wb_gpu_host->release(kernel);
}

static size_t scratch_of(const attention_kernel *k) {
    int64_t bytes[WB_ATTENTION_TENSORS], all = rounded(k->plan->workspace_bytes);
    sizes_of(&k->plan->shape.attention, bytes);
    for (int t = 0; t < WB_ATTENTION_TENSORS && k->copies; t++) all += rounded(bytes[t]);
    return (size_t)all;
}

wb_gpu_answer wb_dnn_lower_attention(wb_gpu_device *device, const wb_call *call,
                                     const wb_program *epilogue, int split,
                                     wb_gpu_kernel **kernel) {
    (void)split;
    wb_conv_plan *plan = plan_of(device, call);
    if (!plan) return WB_GPU_PASS;
    attention_kernel *k = epilogue ? NULL : wb_gpu_host->alloc(sizeof *k);
    if (!k) {
        wb_conv_plan_put(device, plan);
        return epilogue ? WB_GPU_APART : WB_GPU_TAKEN;
    }
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.run = run_attention, k->kernel.release = release_attention;
    k->plan = plan, k->copies = !call->is_aligned;
    k->kernel.scratch_bytes = scratch_of(k);
    *kernel = &k->kernel;
    return WB_GPU_TAKEN;
}
