/* Matrix products as kernels.
 *
 * Products go to cuBLASLt or hipBLASLt as they are: column-major with leading dimensions. A batch
 * whose offsets are not regular becomes up to 64 regular runs, more than that the text. Each shape
 * has two algorithms, for operands aligned to 16 bytes and to their elements; the addresses of a
 * run choose. The program after a product is computed with it if it is exactly a bias, relu, gelu
 * (by tanh) or one of these with a bias, and nobody else reads the product
 * (wb_call.is_result_private): a table in epilogue.c from the operations that programs list to
 * epilogues. */
#include "lt.h"

#include <string.h>

enum { MOST_RUNS = 64 /* runs of one call: with more the text is used, which takes any offsets */ };

typedef struct product_kernel {
    wb_gpu_kernel kernel;
    wb_lt_ready ready;
    wb_lt_padding padding;
    int64_t workspace_offset_bytes; /* in scratch memory, after what is padded */
    wb_epilogue epilogue;
    pthread_mutex_t lock; /* addresses are written into the descriptor */
    int64_t runs;
    int64_t offsets[MOST_RUNS][3]; /* in bytes, of A, B and C, where each run of matrices begins */
} product_kernel;

/* ---- running ---- */

static wb_gpu_outcome run_all(const product_kernel *k, const wb_gpu_run *run,
                              const gpu_pointer base[3], gpu_pointer bias, gpu_pointer workspace) {
    wb_gpu_outcome o = {.error = NULL};
    for (int64_t i = 0; i < k->runs && !o.error; i++) {
        gpu_pointer at[3];
        for (int j = 0; j < 3; j++) at[j] = base[j] + (gpu_pointer)k->offsets[i][j];
        o = wb_lt_run(&k->ready, at, bias, workspace, run->stream);
    }
    return o;
}

/* With the address of the bias in the descriptor. */
static wb_gpu_outcome run_biased(product_kernel *k, const wb_gpu_run *run,
                                 const wb_command *command, const gpu_pointer base[3],
                                 gpu_pointer workspace) {
    const wb_epilogue *e = &k->epilogue;
    const gpu_pointer bias =
        wb_gpu_address(run, command, 3 + e->bias) + (gpu_pointer)e->bias_offset_bytes;
    pthread_mutex_lock(&k->lock);
    wb_gpu_outcome o =
        LT_TRY(MatmulDescSetAttribute, k->ready.product.desc, LT_BIAS_POINTER, &bias, sizeof bias);
    if (!o.error) o = run_all(k, run, base, bias, workspace);
    pthread_mutex_unlock(&k->lock);
    return o;
}

static wb_gpu_outcome run_product(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                                  const wb_command *command) {
    product_kernel *k = (product_kernel *)(uintptr_t)kernel;
    const gpu_pointer workspace = wb_gpu_address(run, command, command->narguments - 1) +
                                  (gpu_pointer)k->workspace_offset_bytes;
    const int arguments[3] = {0, 1, k->epilogue.kind ? 3 + k->epilogue.result : 2};
    wb_gpu_outcome o = {.error = NULL};
    gpu_pointer base[3];
    for (int j = 0; j < 3 && !o.error; j++)
        o = wb_lt_padded(&k->padding, run, command, j, arguments[j], &base[j]);
    if (o.error) return o;
    o = k->epilogue.kind & WB_EPILOGUE_BIAS ? run_biased(k, run, command, base, workspace)
                                            : run_all(k, run, base, 0, workspace);
    return o.error ? o : wb_lt_unpad(&k->padding, run, command, arguments[2]);
}

/* ---- batches ---- */

/* True if the matrices of each run of `length` are at the distances of the first two, and not
 * backwards, which hipBLASLt refuses. */
static bool is_regular(const int64_t *offsets, int64_t batch, int64_t length) {
    const int64_t stride = length > 1 ? offsets[1] - offsets[0] : 0;
    if (stride < 0) return false;
    for (int64_t i = 0; i < batch; i++)
        if (offsets[i] - offsets[i - i % length] != i % length * stride) return false;
    return true;
}

/* The longest runs that cut the batch into equal parts, each regular in all three arrays. */
static int64_t run_length(const wb_matmul_call *p) {
    if (p->batch == 1) return 1;
    for (int64_t runs = 1; runs <= MOST_RUNS && runs <= p->batch; runs++) {
        if (p->batch % runs != 0) continue;
        const int64_t length = p->batch / runs;
        if (is_regular(p->offset_a, p->batch, length) &&
            is_regular(p->offset_b, p->batch, length) && is_regular(p->offset_c, p->batch, length))
            return length;
    }
    return 0;
}

static void set_runs(product_kernel *k, const wb_matmul_call *p, int64_t element_bytes) {
    const int64_t *const lists[3] = {p->offset_a, p->offset_b, p->offset_c};
    k->runs = p->batch / k->ready.shape.batch;
    for (int64_t i = 0; i < k->runs; i++)
        for (int j = 0; j < 3; j++)
            k->offsets[i][j] =
                p->batch > 1 ? lists[j][i * k->ready.shape.batch] * element_bytes : 0;
}

/* ---- making ---- */

static int64_t stride_of(const int64_t *offsets, int64_t length) {
    return length > 1 ? offsets[1] - offsets[0] : 0;
}

static void set_shape(wb_lt_shape *s, const wb_call *call, int64_t length, int32_t epilogue) {
    const wb_matmul_call *p = &call->matmul;
    *s = (wb_lt_shape){.m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .lda = p->lda,
                       .ldb = p->ldb,
                       .ldc = p->ldc,
                       .batch = length,
                       .stride_a = stride_of(p->offset_a, length),
                       .stride_b = stride_of(p->offset_b, length),
                       .stride_c = stride_of(p->offset_c, length),
                       .dtype = (int32_t)call->dtype,
                       .result = (int32_t)call->dtype,
                       .epilogue = epilogue,
                       .transpose_a = p->transpose_a != 0,
                       .transpose_b = p->transpose_b != 0,
                       .fast = call->is_fast};
}

static void release_product(wb_gpu_kernel *kernel) {
    product_kernel *k = (product_kernel *)kernel;
    wb_lt_unready(&k->ready);
    wb_lt_padding_release(&k->padding);
    (void)pthread_mutex_destroy(&k->lock);
    wb_gpu_host->release(k);
}

bool wb_lt_takes(const char *name) {
    char reason[256];
    return wb_epilogue_takes(name) && wb_lt_load(reason, sizeof reason);
}

static bool is_taken(const wb_call *call) {
    const wb_matmul_call *p = &call->matmul;
    char reason[256];
    return call->kind == WB_CALL_matmul && p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0 &&
           wb_lt_load(reason, sizeof reason);
}

/* NULL: the library has nothing for this; an error is only logged. */
static product_kernel *kernel_new(wb_gpu_device *device, const wb_call *call, int64_t length,
                                  const wb_epilogue *epilogue, wb_gpu_answer *answer) {
    product_kernel *k = wb_gpu_host->alloc(sizeof *k);
    *answer = WB_GPU_TAKEN;
    if (!k) return NULL;
    wb_gpu_kernel_init(&k->kernel, device);
    (void)pthread_mutex_init(&k->lock, NULL);
    k->kernel.run = run_product, k->kernel.release = release_product;
    k->epilogue = *epilogue;
    set_shape(&k->ready.shape, call, length, epilogue->kind);
    set_runs(k, &call->matmul, wb_gpu_element_bytes((int32_t)call->dtype));
    k->ready.is_aligned =
        call->is_aligned && k->runs == 1 && wb_epilogue_is_aligned(call, epilogue);
    if (k->runs == 1 &&
        !wb_lt_pad(device, &k->ready.shape, &k->padding, &k->workspace_offset_bytes)) {
        release_product(&k->kernel);
        return NULL;
    }
    const wb_gpu_outcome o = wb_lt_make_ready(device, &k->ready);
    k->kernel.scratch_bytes = (size_t)k->workspace_offset_bytes + wb_lt_workspace_bytes(&k->ready);
    if (!o.error && k->ready.choices.has_any) return k;
    if (o.error)
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: matmul without " LT_LIBRARY ": %s: %s",
                         wb_gpu_vendor_table.backend, o.call, o.error);
    release_product(&k->kernel);
    *answer = WB_GPU_PASS;
    return NULL;
}

wb_gpu_answer wb_lt_lower(wb_gpu_device *device, const wb_call *call, const wb_program *program,
                          int split, wb_gpu_kernel **kernel) {
    wb_epilogue epilogue = {.kind = WB_EPILOGUE_NONE};
    wb_gpu_answer answer;
    if (!is_taken(call)) return WB_GPU_PASS;
    const int64_t length = run_length(&call->matmul);
    if (length == 0) return WB_GPU_PASS;
    if (program && !wb_epilogue_find(call, program, split, &epilogue)) return WB_GPU_APART;
    product_kernel *k = kernel_new(device, call, length, &epilogue, &answer);
    *kernel = k ? &k->kernel : NULL;
    return !k && answer == WB_GPU_PASS && program ? WB_GPU_APART : answer;
}
