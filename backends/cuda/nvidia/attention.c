/* Which attention cuDNN is given, and kernels of it: in halves, without mask and bias, features in
 * multiples of 8, causal only where there are as many keys as queries.
 *
 * The derivative is the graph whose last product writes dq: it stores a number in halves for each
 * query and key of each head, where engines that need not add the parts of dq in the order in which
 * their groups end. So that this stays within wb_gpu_most_scratch_bytes, large calls run
 * a part of the batch, or of the heads, after the other.
 *
 * q, k and v that are slices of wider arrays are read where they lie; where cuDNN does not, dense
 * ones are made of them in scratch memory. */
#include <string.h>

#include "../copy.h"
#include "cudnn.h"

enum {
    FEATURES_UNIT = 8,      /* both kinds of features are multiples of it */
    FAULTY_FROM = 91000,    /* 9.10.0 and 9.10.1 have attention that is known to be wrong */
    FAULTY_BEFORE = 91002,  /* (cudnn-frontend, sdpa_support_surface.h) */
    WHOLE_TILES_TO = 91500, /* up to 9.15.0 the derivative needs keys in whole tiles */
    KEYS_UNIT = 128,        /* (cudnn-frontend pads them then) */
    MOST_FEATURES = 128,    /* of the derivative: what all engines have */
    SUMS_UNIT = 4,          /* sums of as many queries keep the alignment */
};

typedef struct attention_kernel {
    wb_gpu_kernel kernel;
    wb_conv_plan *plan; /* of one run */
    int64_t entry_runs, head_runs;
    bool copies; /* arrays that are not aligned, which then lie in the scratch memory */
    wb_gpu_kernel *gather[WB_ATTENTION_V + 1]; /* makes dense ones of slices; NULL: as it lies */
} attention_kernel;

/* Which of the arrays it reads and writes: the first is 0. */
typedef struct tensor_range {
    int results, end;
} tensor_range;

static tensor_range range_of(int32_t kind) {
    return kind == WB_CALL_attention ? (tensor_range){WB_ATTENTION_Y, WB_ATTENTION_SUMS + 1}
                                     : (tensor_range){WB_ATTENTION_DQ, WB_ATTENTION_MEANS};
}

/* ---- which ---- */

/* 0: dense (plan_as_it_lies). */
static void set_strides(int64_t to[2], const int64_t from[2], int64_t row, int64_t length) {
    to[0] = from[0] ? from[0] : row;
    to[1] = from[0] ? from[1] : row * length;
}

static void fill_shape(const wb_call *call, wb_conv_shape *s) {
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
                                        .is_causal = a->is_causal,
                                        .all_heads = a->heads,
                                        .all_kv_heads = a->kv_heads};
    set_strides(s->attention.q_strides, a->q_strides, a->dk * a->heads, a->queries);
    set_strides(s->attention.k_strides, a->k_strides, a->dk * a->kv_heads, a->keys);
    set_strides(s->attention.v_strides, a->v_strides, a->dv * a->kv_heads, a->keys);
}

static int64_t largest_divisor_below(int64_t n) {
    int64_t d = n - 1;
    while (n % d != 0) d--;
    return d;
}

/* Reduces the run to the largest part of the batch, or of an entry's heads, that may be stored at
 * once. False: not even one head may be, or parts of the sums would not be aligned. */
static bool cut(wb_attention_shape *a, int64_t most_bytes) {
    const int64_t sharing = a->heads / a->kv_heads;
    if (wb_dnn_stored_bytes(a) <= most_bytes) return true;
    while (wb_dnn_stored_bytes(a) > most_bytes) {
        if (a->batch > 1)
            a->batch = largest_divisor_below(a->batch);
        else if (a->kv_heads > 1)
            a->kv_heads = largest_divisor_below(a->kv_heads), a->heads = a->kv_heads * sharing;
        else
            return false;
    }
    return a->queries % SUMS_UNIT == 0;
}

static bool suits_derivative(const wb_gpu_device *device, wb_attention_shape *a) {
    return a->dk <= MOST_FEATURES && a->dv <= MOST_FEATURES && (a->queries > 1 || a->keys > 1) &&
           (a->keys % KEYS_UNIT == 0 || dnn.GetVersion() > WHOLE_TILES_TO) &&
           cut(a, wb_gpu_most_scratch_bytes(device));
}

static bool is_faulty(void) {
    return dnn.GetVersion() >= FAULTY_FROM && dnn.GetVersion() < FAULTY_BEFORE;
}

static bool has_aligned_columns(const wb_attention_shape *a) {
    const int64_t all = a->q_strides[0] | a->q_strides[1] | a->k_strides[0] | a->k_strides[1] |
                        a->v_strides[0] | a->v_strides[1];
    return all * 2 % WB_CONV_ALIGNED_BYTES == 0;
}

/* Of one run. The library is loaded. */
static bool shape_of(const wb_gpu_device *device, const wb_call *call, wb_conv_shape *s) {
    const wb_attention_call *a = &call->attention;
    fill_shape(call, s);
    const bool is_half = call->dtype == WB_F16 || call->dtype == WB_BF16;
    return is_half && has_aligned_columns(&s->attention) && !is_faulty() && !a->has_mask &&
           !a->has_bias && a->queries > 0 && a->keys > 0 && a->batch > 0 && a->dk > 0 &&
           a->dv > 0 && a->dk % FEATURES_UNIT == 0 && a->dv % FEATURES_UNIT == 0 &&
           (!a->is_causal || a->queries == a->keys) &&
           (call->kind == WB_CALL_attention || suits_derivative(device, &s->attention));
}

static bool is_attention(const wb_call *call) {
    return call->kind == WB_CALL_attention || call->kind == WB_CALL_attention_backward;
}

/* NULL with the outcome, which has no error if the call does not suit cuDNN. */
static wb_conv_plan *plan_of(wb_gpu_device *device, const wb_call *call, wb_gpu_outcome *o) {
    char reason[256];
    wb_conv_shape shape;
    *o = (wb_gpu_outcome){.error = NULL};
    if (!is_attention(call) || !wb_dnn_load(reason, sizeof reason) ||
        !shape_of(device, call, &shape))
        return NULL;
    wb_conv_plan *plan = wb_conv_plan_get(device, &shape, o);
    if (o->error)
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: attention without cuDNN: %s: %s",
                         wb_gpu_vendor_table.backend, o->call, o->error);
    return plan;
}

bool wb_dnn_takes_attention(wb_gpu_device *device, const wb_call *call) {
    wb_gpu_outcome o;
    wb_conv_plan *plan = plan_of(device, call, &o);
    wb_conv_plan_put(device, plan);
    return plan != NULL;
}

/* ---- memory ---- */

/* From the first byte of the whole array to its last. */
static int64_t bytes_of(const attention_kernel *k, int tensor) {
    const wb_attention_shape *a = &k->plan->shape.attention;
    const int64_t batch = a->batch * k->entry_runs;
    if (tensor == WB_ATTENTION_SUMS) return a->queries * a->all_heads * batch * 4;
    const wb_attention_sizes s = wb_attention_sizes_of(a, tensor);
    return 2 * ((batch - 1) * s.strides[1] + (s.length - 1) * s.strides[0] +
                s.features * s.heads * k->head_runs);
}

/* Numbers that the derivative is given room for. */
static int64_t means_bytes(const wb_conv_shape *s) {
    const wb_attention_shape *a = &s->attention;
    return s->kind == WB_CALL_attention ? 0 : a->queries * a->heads * a->batch * 4;
}

static bool is_gathered(const attention_kernel *k, int tensor) {
    return tensor <= WB_ATTENTION_V && k->gather[tensor];
}

static bool may_move(const attention_kernel *k, int tensor) {
    return k->copies || is_gathered(k, tensor);
}

static size_t scratch_of(const attention_kernel *k) {
    int64_t all = wb_gpu_scratch_rounded(k->plan->workspace_bytes) +
                  wb_gpu_scratch_rounded(means_bytes(&k->plan->shape));
    for (int t = 0; t < range_of(k->plan->shape.kind).end; t++)
        if (may_move(k, t)) all += wb_gpu_scratch_rounded(bytes_of(k, t));
    return (size_t)all;
}

/* Arrays that are aligned and not gathered are used where they lie; others are copied to the
 * scratch memory. */
static void place(const attention_kernel *k, gpu_pointer scratch, const gpu_pointer *at,
                  gpu_pointer *placed) {
    const wb_conv_shape *s = &k->plan->shape;
    placed[WB_ATTENTION_MEANS] = scratch +=
        (gpu_pointer)wb_gpu_scratch_rounded(k->plan->workspace_bytes);
    scratch += (gpu_pointer)wb_gpu_scratch_rounded(means_bytes(s));
    for (int t = 0; t < range_of(s->kind).end; t++) {
        const bool moves =
            may_move(k, t) && (is_gathered(k, t) || at[t] % WB_CONV_ALIGNED_BYTES != 0);
        placed[t] = moves ? scratch : at[t];
        if (may_move(k, t)) scratch += (gpu_pointer)wb_gpu_scratch_rounded(bytes_of(k, t));
    }
}

/* Where the run begins that has this entry of the batch and these keys' head first, in bytes. */
static int64_t offset_of(const wb_attention_shape *a, int tensor, int64_t entry, int64_t kv_head) {
    const int64_t head = kv_head * (a->heads / a->kv_heads);
    if (tensor == WB_ATTENTION_MEANS) return 0;
    if (tensor == WB_ATTENTION_SUMS) return (entry * a->all_heads + head) * a->queries * 4;
    const wb_attention_sizes s = wb_attention_sizes_of(a, tensor);
    return 2 * (entry * s.strides[1] + (s.heads == a->heads ? head : kv_head) * s.features);
}

/* ---- running ---- */

static wb_gpu_outcome copy(gpu_pointer to, gpu_pointer from, int64_t bytes, const wb_gpu_run *run) {
    return GPU_TRY(MemcpyDtoDAsync, to, from, (size_t)bytes, run->stream);
}

/* Copies the slice, dense, to this offset in the scratch memory. */
static wb_gpu_outcome gather(const wb_gpu_kernel *by, const wb_gpu_run *run,
                             const wb_command *command, int tensor, int64_t scratch_offset) {
    return wb_gpu_box_run(by, run, command, command->arguments[tensor],
                          wb_gpu_scratch(command, scratch_offset));
}

static wb_gpu_outcome run_part(const attention_kernel *k, const wb_gpu_run *run,
                               const gpu_pointer *placed, gpu_pointer scratch, int64_t part) {
    const wb_attention_shape *a = &k->plan->shape.attention;
    const int64_t entry = part / k->head_runs * a->batch,
                  kv_head = part % k->head_runs * a->kv_heads;
    gpu_pointer at[WB_ATTENTION_TENSORS] = {0};
    for (int t = 0; t < WB_ATTENTION_TENSORS; t++)
        at[t] = placed[t] + (gpu_pointer)offset_of(a, t, entry, kv_head);
    return wb_conv_plan_run(k->kernel.device, k->plan, at, scratch, run->stream);
}

static wb_gpu_outcome run_attention(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                                    const wb_command *command) {
    const attention_kernel *k = (const attention_kernel *)kernel;
    const tensor_range range = range_of(k->plan->shape.kind);
    const gpu_pointer scratch = wb_gpu_address(run, command, command->narguments - 1);
    gpu_pointer at[WB_ATTENTION_TENSORS], placed[WB_ATTENTION_TENSORS] = {0};
    wb_gpu_outcome o = {.error = NULL};
    for (int t = 0; t < range.end; t++) at[t] = wb_gpu_address(run, command, t);
    place(k, scratch, at, placed);
    for (int t = 0; t < range.results && !o.error; t++)
        if (is_gathered(k, t))
            o = gather(k->gather[t], run, command, t, (int64_t)(placed[t] - scratch));
        else if (placed[t] != at[t])
            o = copy(placed[t], at[t], bytes_of(k, t), run);
    for (int64_t part = 0; part < k->entry_runs * k->head_runs && !o.error; part++)
        o = run_part(k, run, placed, scratch, part);
    for (int t = range.results; t < range.end && !o.error; t++)
        if (placed[t] != at[t]) o = copy(at[t], placed[t], bytes_of(k, t), run);
    return o;
}

/* ---- making ---- */

static void release_attention(wb_gpu_kernel *kernel) {
    attention_kernel *k = (attention_kernel *)kernel;
    for (int t = 0; t <= WB_ATTENTION_V; t++)
        if (k->gather[t]) k->gather[t]->release(k->gather[t]);
    wb_conv_plan_put(kernel->device, k->plan);
    wb_gpu_host->release(kernel);
}

/* Without a plan: a call in halves that cuDNN was offered and took has no text. */
static wb_gpu_answer without_plan(const wb_gpu_outcome *o) {
    if (!o->error) return WB_GPU_PASS;
    (void)wb_gpu_host->fail(WB_ERROR_DEVICE,
                            "%s: attention: cuDNN no longer has a plan for it: %s: %s",
                            wb_gpu_vendor_table.backend, o->call, o->error);
    return WB_GPU_TAKEN;
}

/* Copies `sizes` elements from strides to a dense array. NULL with an error recorded. */
static wb_gpu_kernel *gather_new(wb_gpu_device *device, wb_dtype dtype, const int64_t sizes[3],
                                 const int64_t strides[2]) {
    wb_gpu_box copy = {.ndim = 0};
    wb_gpu_box_add(&copy, sizes[0], 1, 1);
    wb_gpu_box_add(&copy, sizes[1], strides[0], sizes[0]);
    wb_gpu_box_add(&copy, sizes[2], strides[1], sizes[0] * sizes[1]);
    return wb_gpu_box_copy(device, dtype, &copy);
}

/* What the plan does not read as the call has it. False with an error recorded. */
static bool add_gathers(attention_kernel *k, wb_gpu_device *device, const wb_call *call) {
    wb_conv_shape given;
    fill_shape(call, &given);
    for (int t = 0; t <= WB_ATTENTION_V; t++) {
        const wb_attention_sizes from = wb_attention_sizes_of(&given.attention, t),
                                 to = wb_attention_sizes_of(&k->plan->shape.attention, t);
        if (memcmp(from.strides, to.strides, sizeof to.strides) == 0) continue;
        const int64_t sizes[] = {from.features * from.heads, from.length, call->attention.batch};
        k->gather[t] = gather_new(device, call->dtype, sizes, from.strides);
        if (!k->gather[t]) return false;
    }
    return true;
}

/* Dense ones will be made of slices that begin anywhere, or that cuDNN does not read. */
static wb_conv_plan *plan_as_it_lies(wb_gpu_device *device, const wb_call *call,
                                     wb_gpu_outcome *o) {
    wb_conv_plan *plan = call->is_aligned ? plan_of(device, call, o) : NULL;
    wb_call dense = *call;
    memset(dense.attention.q_strides, 0, sizeof dense.attention.q_strides);
    memset(dense.attention.k_strides, 0, sizeof dense.attention.k_strides);
    memset(dense.attention.v_strides, 0, sizeof dense.attention.v_strides);
    return plan ? plan : plan_of(device, &dense, o);
}

/* Takes the plan over. NULL with an error recorded. */
static wb_gpu_kernel *kernel_new(wb_gpu_device *device, const wb_call *call, wb_conv_plan *plan) {
    attention_kernel *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) {
        wb_conv_plan_put(device, plan);
        return NULL;
    }
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.run = run_attention, k->kernel.release = release_attention;
    k->plan = plan, k->copies = !call->is_aligned;
    k->entry_runs = call->attention.batch / plan->shape.attention.batch;
    k->head_runs = call->attention.kv_heads / plan->shape.attention.kv_heads;
    if (!add_gathers(k, device, call)) {
        release_attention(&k->kernel);
        return NULL;
    }
    k->kernel.scratch_bytes = scratch_of(k);
    return &k->kernel;
}

wb_gpu_answer wb_dnn_lower_attention(wb_gpu_device *device, const wb_call *call,
                                     const wb_program *epilogue, int split,
                                     wb_gpu_kernel **kernel) {
    wb_gpu_outcome o;
    (void)split;
    if (!is_attention(call)) return WB_GPU_PASS;
    wb_conv_plan *plan = plan_as_it_lies(device, call, &o);
    if (!plan) return without_plan(&o);
    if (epilogue) {
        wb_conv_plan_put(device, plan);
        return WB_GPU_APART;
    }
    *kernel = kernel_new(device, call, plan);
    return WB_GPU_TAKEN;
}
