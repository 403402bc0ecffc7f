/* Kernels: what is left of a rendered source, and its pipelines; and running lists of them. */
#include <string.h>

#include "../common/source.h"
#include "mps.h"
#include "program.h"

typedef struct kernel {
    wb_metal_device *device;
    wb_source source;          /* without its text */
    wb_text *text;             /* NULL: nothing is launched */
    wb_metal_product *product; /* done by MetalPerformanceShaders; then there is no source */
    int64_t cost;              /* in plain commands, of which a command buffer has a number */
} kernel;

/* ---- costs ---- */

static double product_of(const int64_t numbers[3]) {
    return (double)numbers[0] * (double)numbers[1] * (double)numbers[2];
}

/* 0 of calls that add up no products. */
static double multiply_adds(const wb_call *call) {
    const wb_matmul_call *p = &call->matmul;
    const wb_window_call *w = &call->window;
    const wb_attention_call *a = &call->attention;
    const double pairs = (double)(a->queries * a->keys) * (double)(a->heads * a->batch);
    switch (call->kind) {
    case WB_CALL_matmul:
        return (double)(p->m * p->n) * (double)(p->k * p->batch);
    case WB_CALL_conv_forward:
    case WB_CALL_conv_data:
    case WB_CALL_conv_filter:
        return product_of(w->out) * product_of(w->kernel) * (double)(w->filters * w->batch) *
               (double)w->channels / (double)w->groups;
    case WB_CALL_attention:
        return pairs * (double)(a->dk + a->dv);
    case WB_CALL_attention_backward:
        return 3 * pairs * (double)(a->dk + a->dv);
    default:
        return 0;
    }
}

/* A plain command takes up to 10 ms; a slow GPU adds up this many products in that time. */
static int64_t cost_of(const wb_call *call) {
    static const double in_one = 4e9;
    return 1 + (int64_t)(multiply_adds(call) / in_one);
}

/* ---- making ---- */

void wb_metal_release(void *any) {
    kernel *k = any;
    if (!k) return;
    WB_METAL_POOL(pool);
    wb_metal_product_release(k->product);
    if (k->text) wb_texts_put(&k->device->texts, k->text);
    wb_source_drop(wb_metal_host, &k->source);
    wb_metal_host->release(k);
}

/* A kernel has 31 places for buffers; the block and the status words take one each. */
static bool fits(const wb_source *source) {
    enum { MOST_BUFFERS = 31 };
    return source->buffer_count + source->uses_status + 1 <= MOST_BUFFERS;
}

static void *new_kernel(wb_metal_device *device, const wb_source *source) {
    kernel *k = wb_metal_host->alloc(sizeof *k);
    if (!k) return NULL;
    k->device = device;
    k->cost = 1;
    const bool is_kept = wb_source_keep(wb_metal_host, source, &k->source);
    if (is_kept && source->launch_count > 0) k->text = wb_texts_get(&device->texts, source);
    if (is_kept && (k->text || source->launch_count == 0)) return k;
    wb_metal_release(k);
    return NULL;
}

/* Takes the source over. NULL without an error if it has too many parameters: then the host cuts
 * the program into smaller ones. */
static void *kernel_of(wb_metal_device *device, wb_source *source) {
    WB_METAL_POOL(pool);
    if (!source) return NULL;
    void *k = fits(source) ? new_kernel(device, source) : NULL;
    wb_metal_host->release_source(source);
    return k;
}

void *wb_metal_kernel(void *any, const wb_program *program) {
    wb_metal_device *device = any;
    return kernel_of(device, wb_metal_host->render(program, &device->dialect));
}

/* NULL without an error where there is none for the call. */
static void *product_kernel(wb_metal_device *device, const wb_call *call) {
    WB_METAL_POOL(pool);
    wb_metal_product *product = wb_metal_product_new(device, call);
    kernel *k = product ? wb_metal_host->alloc(sizeof *k) : NULL;
    if (k)
        *k = (kernel){.device = device, .product = product, .cost = cost_of(call)};
    else
        wb_metal_product_release(product);
    return k;
}

void *wb_metal_lower(void *any, const wb_call *call, const wb_program *epilogue, int split) {
    wb_metal_device *device = any;
    void *product = epilogue ? NULL : product_kernel(device, call);
    if (product) return product;
    kernel *k =
        kernel_of(device, wb_metal_host->render_call(call, epilogue, split, &device->dialect));
    if (k) k->cost = cost_of(call);
    return k;
}

bool wb_metal_takes(void *any, const char *name, const wb_call *call) {
    const wb_metal_device *device = any;
    (void)name;
    return call && wb_metal_host->has_text(call, &device->dialect);
}

size_t wb_metal_scratch_bytes(const void *any) {
    return ((const kernel *)any)->source.scratch_bytes;
}

/* ---- running ---- */

typedef struct running {
    wb_metal_device *device;
    wb_metal_queue *queue;
    const wb_memory *memory;
    const uint64_t *late;
} running;

/* The block of a run: in the caller's memory if it is small, else in a buffer, which must be
 * released after it is set. */
typedef struct block {
    int64_t words[WB_METAL_MOST_BYTES / sizeof(int64_t)];
    size_t size_bytes;
    mtl_id buffer;
} block;

static bool fill_block(const running *r, const wb_command *command, const wb_source *source,
                       block *b) {
    int64_t *words = b->words;
    b->size_bytes = (size_t)source->word_count * sizeof *words;
    b->buffer = NULL;
    if (b->size_bytes > sizeof b->words) {
        b->buffer = wb_metal_shared(r->device, b->size_bytes, command->what);
        if (!b->buffer) return false;
        words = mtl_contents(b->buffer);
    }
    wb_source_fill(source, command, r->memory, words);
    for (int32_t i = 0; i < source->late_count; i++)
        memcpy(&words[source->first_late + i], &r->late[source->late[i]], sizeof *words);
    return true;
}

static void set_arguments(const running *r, const wb_command *command, const wb_source *source,
                          mtl_id encoder, mtl_id status, const block *b) {
    mtl_uint place = 0;
    for (int32_t i = 0; i < source->buffer_count; i++) {
        const mtl_id buffer = r->memory[command->arguments[i].memory].handle;
        mtl_set_buffer(encoder, buffer ? buffer : r->device->dummy, 0, place++);
    }
    if (source->uses_status) mtl_set_buffer(encoder, status, 0, place++);
    if (b->buffer)
        mtl_set_buffer(encoder, b->buffer, 0, place);
    else
        mtl_set_bytes(encoder, b->words, b->size_bytes, place);
}

static void dispatch(const running *r, const kernel *k, mtl_id encoder) {
    const wb_metal_program *program = k->text->binary;
    const mtl_size items = {(mtl_uint)r->device->dialect.group, 1, 1};
    for (int i = 0; i < k->source.launch_count; i++) {
        if (k->source.launches[i].groups == 0) continue; /* Metal refuses empty launches */
        mtl_set_pipeline(encoder, program->pipelines[i]);
        mtl_dispatch(encoder, (mtl_size){(mtl_uint)k->source.launches[i].groups, 1, 1}, items);
    }
}

static wb_status run_command(const running *r, const wb_command *command) {
    const kernel *k = command->kernel;
    const wb_source *source = &k->source;
    mtl_id status = NULL;
    block b;
    if (k->product)
        return wb_metal_product_encode(k->product, r->queue, command, r->memory, k->cost);
    if (!k->text) return WB_OK;
    if (source->uses_status) {
        status = wb_metal_slot_take(r->device, r->queue, command->what);
        if (!status) return WB_ERROR_DEVICE;
    }
    if (!fill_block(r, command, source, &b)) return WB_ERROR_DEVICE;
    const mtl_id encoder = wb_metal_encoder(r->queue, command->what, k->cost);
    if (encoder) {
        set_arguments(r, command, source, encoder, status, &b);
        dispatch(r, k, encoder);
    }
    mtl_release(b.buffer);
    return encoder ? WB_OK : WB_ERROR_DEVICE;
}

wb_status wb_metal_run(void *any, void *queue, const wb_command *commands, int count,
                       const wb_memory *memory, const uint64_t *late) {
    WB_METAL_POOL(pool);
    wb_metal_device *device = any;
    const running r = {device, wb_metal_queue_of(device, queue), memory, late};
    wb_status status = WB_OK;
    pthread_mutex_lock(&r.queue->lock);
    for (int i = 0; i < count && status == WB_OK; i++) status = run_command(&r, &commands[i]);
    wb_metal_commit(r.queue);
    pthread_mutex_unlock(&r.queue->lock);
    return status;
}
