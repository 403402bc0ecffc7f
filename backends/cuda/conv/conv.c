/* Convolutions as kernels.
 *
 * A true convolution is a cross-correlation with the filter turned round: a program turns it, into
 * scratch memory before the convolution, or out of scratch memory after the gradient of the filter.
 * Filters are small.
 *
 * Convolutions go to cuDNN's backend interface as graphs of one operation, (W, H, C, N) being its
 * NCHW. Arrays that are not aligned to 16 bytes take the text. */
#include "../copy.h"
#include "product.h"

static const wb_conv_library *const library = &wb_conv_library_table;

typedef struct conv_kernel {
    wb_gpu_kernel kernel;
    wb_call_kind kind;
    wb_conv_plan *plan;
    wb_gpu_kernel *text;   /* for arrays that are not aligned as the plan wants */
    wb_gpu_kernel *flip;   /* NULL: nothing to flip */
    int64_t flipped_bytes; /* where in the scratch memory the filter turned round lies */
} conv_kernel;

/* ---- running ---- */

/* The filter to or from scratch memory, element V - 1 - i to element i of each plane. */
static wb_gpu_outcome run_flip(const conv_kernel *k, const wb_gpu_run *run,
                               const wb_command *command) {
    const wb_argument filter = command->arguments[wb_conv_argument((int32_t)k->kind, WB_CONV_W)];
    const wb_argument turned = wb_gpu_scratch(command, k->flipped_bytes);
    const bool is_result = k->kind == WB_CALL_conv_filter;
    return wb_gpu_box_run(k->flip, run, command, is_result ? turned : filter,
                          is_result ? filter : turned);
}

static wb_gpu_outcome run_conv(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                               const wb_command *command) {
    const conv_kernel *k = (const conv_kernel *)kernel;
    const gpu_pointer scratch = wb_gpu_address(run, command, command->narguments - 1);
    const bool is_result = k->kind == WB_CALL_conv_filter;
    gpu_pointer at[WB_CONV_TENSORS], all = 0;
    for (int t = 0; t < WB_CONV_TENSORS; t++)
        all |= at[t] = wb_gpu_address(run, command, wb_conv_argument((int32_t)k->kind, t));
    if (all % WB_CONV_ALIGNED_BYTES != 0) return k->text->run(k->text, run, command);
    if (k->flip) at[WB_CONV_W] = scratch + (gpu_pointer)k->flipped_bytes;
    wb_gpu_outcome o = {.error = NULL};
    if (k->flip && !is_result) o = run_flip(k, run, command);
    if (!o.error) o = wb_conv_plan_run(kernel->device, k->plan, at, scratch, run->stream);
    return !o.error && k->flip && is_result ? run_flip(k, run, command) : o;
}

/* ---- making ---- */

static void release_conv(wb_gpu_kernel *kernel) {
    conv_kernel *k = (conv_kernel *)kernel;
    if (k->text) k->text->release(k->text);
    if (k->flip) k->flip->release(k->flip);
    wb_conv_plan_put(kernel->device, k->plan);
    wb_gpu_host->release(k);
}

static wb_gpu_kernel *flip_new(wb_gpu_device *device, const wb_conv_shape *s) {
    const int64_t plane = wb_conv_volume(s->kernel);
    wb_gpu_box copy = {.from_offset = plane - 1};
    wb_gpu_box_add(&copy, plane, -1, 1);
    wb_gpu_box_add(&copy, s->channels / s->groups * s->filters, plane, plane);
    return wb_gpu_box_copy(device, (wb_dtype)s->dtype, &copy);
}

static void reserve_scratch(conv_kernel *k, const wb_conv_shape *s) {
    const int64_t filter = wb_conv_volume(s->kernel) * (s->channels / s->groups) * s->filters *
                           wb_gpu_element_bytes(s->dtype);
    k->flipped_bytes = wb_gpu_scratch_rounded(k->plan->workspace_bytes);
    k->kernel.scratch_bytes = (size_t)(k->flipped_bytes + (k->flip ? filter : 0));
    if (k->text->scratch_bytes > k->kernel.scratch_bytes)
        k->kernel.scratch_bytes = k->text->scratch_bytes;
}

/* Takes the plan over. NULL with an error recorded. */
static wb_gpu_kernel *kernel_new(wb_gpu_device *device, const wb_call *call,
                                 const wb_conv_shape *shape, wb_conv_plan *plan) {
    const bool flips = call->window.flip && wb_conv_volume(shape->kernel) > 1;
    conv_kernel *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) {
        wb_conv_plan_put(device, plan);
        return NULL;
    }
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.run = run_conv, k->kernel.release = release_conv;
    k->kernel.cannot_be_captured = library->cannot_be_captured;
    k->kind = call->kind, k->plan = plan;
    k->text = wb_gpu_text_of_call(device, call);
    k->flip = k->text && flips ? flip_new(device, shape) : NULL;
    if (k->text && (k->flip || !flips)) {
        reserve_scratch(k, shape);
        return &k->kernel;
    }
    release_conv(&k->kernel);
    return NULL;
}

static bool is_convolution(const wb_call *call) {
    return call->kind == WB_CALL_conv_forward || call->kind == WB_CALL_conv_data ||
           call->kind == WB_CALL_conv_filter;
}

wb_gpu_answer wb_conv_lower(wb_gpu_device *device, const wb_call *call, const wb_program *epilogue,
                            int split, wb_gpu_kernel **kernel) {
    char reason[256];
    wb_conv_shape shape;
    wb_conv_plan *plan;
    (void)split;
    if (!is_convolution(call) || !wb_conv_shape_of(call, &shape) ||
        !library->load(reason, sizeof reason))
        return WB_GPU_PASS;
    wb_gpu_answer answer = wb_conv_choose(device, call, &shape, &plan);
    if (answer != WB_GPU_TAKEN || !plan) return answer;
    if (!epilogue && plan->choice.way == WB_CONV_LIBRARY) {
        *kernel = kernel_new(device, call, &shape, plan);
        return WB_GPU_TAKEN;
    }
    answer = epilogue
                 ? WB_GPU_APART
                 : wb_conv_product_new(device, call, &shape, (wb_conv_way)plan->choice.way, kernel);
    wb_conv_plan_put(device, plan);
    return answer;
}
