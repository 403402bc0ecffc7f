/* Attention by matrix products: large ones, for which the library's products are faster than the
 * tiles of Weber's own text.
 *
 *     forward     S = K'Q,  W = softmax(S),  Y = V W
 *     backward    S = K'Q,  dW = V'dY,  W and dS from these,  dV = dY W',  dK = Q dS',  dQ = K dS
 *
 * each for all heads of an entry of the batch in one call of the library, or for as many as have
 * scores within wb_gpu_most_scratch_bytes. What is between the products is a text (in_products of
 * wb_attention_call). Sums have one order: nothing is added to what another product wrote. */
#include <string.h>

#include "lt.h"

enum {
    MOST_KEYS = 1 << 14,         /* of a row that a group holds in registers */
    FEWEST_OPERATIONS = 1 << 27, /* of a product: below, the text's few launches are faster */
    MOST_PRODUCTS = 5,
};

typedef enum place {
    Q,
    K,
    V,
    Y,
    DY,
    DQ,
    DK,
    DV,
    SCORES,
    WEIGHTS,
    COTANGENTS,
    SLOPES,
    PLACES
} place;

/* A matrix of each head. */
typedef struct matrix {
    int64_t rows, columns, leading;
    int64_t step, turn; /* elements from a head to the next, and from an entry to the next */
    wb_dtype dtype;
    int argument;         /* of the command; -1: in scratch memory */
    int64_t offset_bytes; /* there */
} matrix;

typedef struct attention_kernel {
    wb_gpu_kernel kernel;
    wb_gpu_kernel *text;
    wb_call call;
    matrix matrices[PLACES];
    wb_lt_ready products[MOST_PRODUCTS];
    int64_t turns, heads, block; /* entries one after the other; heads of each; at the same time */
    int64_t workspace_bytes;
} attention_kernel;

/* C = op(A) op(B). What comes before the text, then what comes after it. */
static const struct product {
    place c, a, b;
    bool transpose_a, transpose_b, is_after;
} forward[] = {{SCORES, K, Q, true, false, false}, {Y, V, WEIGHTS, false, false, true}},
  backward[] = {{SCORES, K, Q, true, false, false},
                {COTANGENTS, V, DY, true, false, false},
                {DV, DY, WEIGHTS, false, true, true},
                {DK, Q, SLOPES, false, true, true},
                {DQ, K, SLOPES, false, false, true}};

static bool is_backward(const wb_call *call) { return call->kind == WB_CALL_attention_backward; }

static const struct product *products_of(const wb_call *call, int *count) {
    *count = is_backward(call) ? 5 : 2;
    return is_backward(call) ? backward : forward;
}

static bool is_half(const wb_call *call) { return call->dtype == WB_F16 || call->dtype == WB_BF16; }

/* ---- which ---- */

/* True if the heads of an entry, or entries of a single head each, are at equal distances. */
static int64_t heads_of(const wb_attention_call *a) { return a->heads > 1 ? a->heads : a->batch; }

/* Bytes of one head's scores and the arrays of the same size. Weights in halves do not share memory
 * with scores in f32. */
static int64_t scratch_of_head(const wb_call *call) {
    const wb_attention_call *a = &call->attention;
    const int64_t elements = wb_attention_leading(a->keys) * a->queries;
    const int64_t bytes = is_half(call) ? 4 + 2 : wb_gpu_element_bytes((int32_t)call->dtype);
    return elements * bytes * (is_backward(call) ? 2 : 1);
}

/* The largest number of heads that divides the heads equally and has memory for its scores; 0: not
 * even one. */
static int64_t block_of(const wb_gpu_device *device, const wb_call *call) {
    const int64_t most = wb_gpu_most_scratch_bytes(device);
    const int64_t heads = heads_of(&call->attention), bytes = scratch_of_head(call);
    for (int64_t parts = 1; parts <= heads; parts++)
        if (heads % parts == 0 && heads / parts * bytes <= most) return heads / parts;
    return 0;
}

/* Heads that share keys would add to the same gradient. */
static bool suits(const wb_gpu_device *device, const wb_call *call) {
    const wb_attention_call *a = &call->attention;
    char reason[256];
    if ((call->kind != WB_CALL_attention && !is_backward(call)) || a->kv_heads != a->heads ||
        a->batch < 1 || a->queries < 1 || a->keys < 1 || a->keys > MOST_KEYS || a->dk < 1 ||
        a->dv < 1 || (is_half(call) && a->has_bias))
        return false;
    const double operations = 2.0 * (double)a->queries * (double)a->keys * (double)a->dk;
    return (double)block_of(device, call) * operations >= FEWEST_OPERATIONS &&
           wb_lt_load(reason, sizeof reason);
}

/* ---- running ---- */

static wb_argument at_head(const attention_kernel *k, const wb_command *command, place p,
                           int64_t turn, int64_t head) {
    const matrix *m = &k->matrices[p];
    if (m->argument < 0) return wb_gpu_scratch(command, m->offset_bytes);
    wb_argument a = command->arguments[m->argument];
    a.offset_bytes += (turn * m->turn + head * m->step) * wb_gpu_element_bytes((int32_t)m->dtype);
    return a;
}

/* Numbers or strides along queries, keys, heads and entries. */
static wb_argument at_strides(const attention_kernel *k, const wb_command *command, int argument,
                              const int64_t strides[4], int64_t bytes, int64_t turn, int64_t head) {
    wb_argument a = command->arguments[argument];
    const bool has_heads = k->call.attention.heads > 1;
    a.offset_bytes +=
        bytes * (has_heads ? turn * strides[3] + head * strides[2] : head * strides[3]);
    return a;
}

static wb_gpu_outcome run_text(const attention_kernel *k, const wb_gpu_run *run,
                               const wb_command *command, int64_t turn, int64_t head) {
    const wb_attention_call *a = &k->call.attention;
    const int64_t real = is_half(&k->call) ? 4 : wb_gpu_element_bytes((int32_t)k->call.dtype);
    const int64_t of_sums[4] = {0, 1, a->queries, a->queries * a->heads};
    const bool back = is_backward(&k->call);
    wb_argument arguments[8];
    int count = 0, mask = back ? 6 : 3;
    const int bias = mask + (int)a->has_mask, sums = back ? 4 : bias + (int)a->has_bias + 1;
    arguments[count++] = at_head(k, command, SCORES, turn, head);
    if (back) arguments[count++] = at_head(k, command, COTANGENTS, turn, head);
    arguments[count++] = at_head(k, command, WEIGHTS, turn, head);
    if (back) arguments[count++] = at_head(k, command, SLOPES, turn, head);
    const wb_argument at_sums = at_strides(k, command, sums, of_sums, real, turn, head);
    if (back) arguments[count++] = at_sums;
    if (a->has_mask)
        arguments[count++] = at_strides(k, command, mask, a->mask_strides, 1, turn, head);
    if (a->has_bias)
        arguments[count++] = at_strides(k, command, bias, a->bias_strides, real, turn, head);
    if (!back) arguments[count++] = at_sums;
    const wb_command between = {
        .kernel = k->text, .narguments = count, .arguments = arguments, .what = command->what};
    return k->text->run(k->text, run, &between);
}

static wb_gpu_outcome run_products(const attention_kernel *k, bool is_after, const wb_gpu_run *run,
                                   const wb_command *command, int64_t turn, int64_t head) {
    const gpu_pointer scratch = wb_gpu_address(run, command, command->narguments - 1);
    int count;
    const struct product *list = products_of(&k->call, &count);
    wb_gpu_outcome o = {.error = NULL};
    for (int i = 0; i < count && !o.error; i++) {
        const place places[3] = {list[i].a, list[i].b, list[i].c};
        gpu_pointer at[3];
        if (list[i].is_after != is_after) continue;
        for (int j = 0; j < 3; j++)
            at[j] = wb_gpu_address_of(run, at_head(k, command, places[j], turn, head));
        o = wb_lt_run(&k->products[i], at, 0, scratch, run->stream);
    }
    return o;
}

static wb_gpu_outcome run_attention(const wb_gpu_kernel *kernel, const wb_gpu_run *run,
                                    const wb_command *command) {
    const attention_kernel *k = (const attention_kernel *)kernel;
    wb_gpu_outcome o = {.error = NULL};
    for (int64_t turn = 0; turn < k->turns; turn++)
        for (int64_t head = 0; head < k->heads && !o.error; head += k->block) {
            o = run_products(k, false, run, command, turn, head);
            if (!o.error) o = run_text(k, run, command, turn, head);
            if (!o.error) o = run_products(k, true, run, command, turn, head);
        }
    return o;
}

/* ---- making ---- */

/* An array (rows heads, columns, batch), whose columns and entries may be further apart. */
static matrix array_of(const attention_kernel *k, int argument, int64_t rows, int64_t columns,
                       const int64_t *strides) {
    const wb_attention_call *a = &k->call.attention;
    const int64_t leading = strides ? strides[0] : rows * a->heads,
                  turn = strides ? strides[1] : leading * columns;
    return (matrix){.rows = rows,
                    .columns = columns,
                    .leading = leading,
                    .step = a->heads > 1 ? rows : turn,
                    .turn = turn,
                    .dtype = k->call.dtype,
                    .argument = argument};
}

/* Of the heads in a block; one after the other in scratch memory. */
static matrix scratch_of(attention_kernel *k, wb_dtype dtype, int64_t *used_bytes) {
    const wb_attention_call *a = &k->call.attention;
    const int64_t leading = wb_attention_leading(a->keys), elements = leading * a->queries;
    const matrix m = {.rows = a->keys,
                      .columns = a->queries,
                      .leading = leading,
                      .step = elements,
                      .dtype = dtype,
                      .argument = -1,
                      .offset_bytes = *used_bytes};
    *used_bytes +=
        wb_gpu_scratch_rounded(elements * k->block * wb_gpu_element_bytes((int32_t)dtype));
    return m;
}

static void place_arrays(attention_kernel *k) {
    const wb_attention_call *a = &k->call.attention;
    const int optional = (int)(a->has_mask + a->has_bias);
    matrix *m = k->matrices;
    m[Q] = array_of(k, 0, a->dk, a->queries, a->q_strides);
    m[K] = array_of(k, 1, a->dk, a->keys, a->k_strides);
    m[V] = array_of(k, 2, a->dv, a->keys, a->v_strides);
    m[Y] = array_of(k, 3 + optional, a->dv, a->queries, NULL);
    m[DY] = array_of(k, 5, a->dv, a->queries, NULL);
    m[DQ] = array_of(k, 6 + optional, a->dk, a->queries, NULL);
    m[DK] = array_of(k, 7 + optional, a->dk, a->keys, NULL);
    m[DV] = array_of(k, 8 + optional, a->dv, a->keys, NULL);
}

/* After the workspace of the products. Returns how much there is in all. */
static int64_t place_scratch(attention_kernel *k) {
    const bool half = is_half(&k->call), back = is_backward(&k->call);
    const wb_dtype real = half ? WB_F32 : k->call.dtype;
    int64_t used = wb_gpu_scratch_rounded(k->workspace_bytes);
    matrix *m = k->matrices;
    m[SCORES] = scratch_of(k, real, &used);
    m[WEIGHTS] = half ? scratch_of(k, k->call.dtype, &used) : m[SCORES];
    if (back) m[COTANGENTS] = scratch_of(k, real, &used);
    if (back) m[SLOPES] = half ? scratch_of(k, k->call.dtype, &used) : m[COTANGENTS];
    return used;
}

static void set_shape(const attention_kernel *k, const struct product *p, wb_lt_shape *s) {
    const matrix *a = &k->matrices[p->a], *b = &k->matrices[p->b], *c = &k->matrices[p->c];
    memset(s, 0, sizeof *s);
    s->m = c->rows, s->n = c->columns, s->k = p->transpose_a ? a->rows : a->columns;
    s->lda = a->leading, s->ldb = b->leading, s->ldc = c->leading;
    s->batch = k->block;
    s->stride_a = a->step, s->stride_b = b->step, s->stride_c = c->step;
    s->dtype = (int32_t)a->dtype, s->result = (int32_t)c->dtype;
    s->transpose_a = p->transpose_a, s->transpose_b = p->transpose_b;
    s->fast = k->call.is_fast;
}

/* False where the library has not all of the products. */
static bool make_products(attention_kernel *k) {
    int count;
    const struct product *list = products_of(&k->call, &count);
    for (int i = 0; i < count; i++) {
        wb_lt_ready *ready = &k->products[i];
        set_shape(k, &list[i], &ready->shape);
        const wb_gpu_outcome o = wb_lt_make_ready(k->kernel.device, ready);
        if (o.error)
            wb_gpu_host->log(WB_LOG_DEBUG, "%s: attention without " LT_LIBRARY ": %s: %s",
                             wb_gpu_vendor_table.backend, o.call, o.error);
        if (o.error || !ready->choices.has_any) return false;
        const int64_t bytes = (int64_t)wb_lt_workspace_bytes(ready);
        if (bytes > k->workspace_bytes) k->workspace_bytes = bytes;
    }
    return true;
}

static wb_gpu_kernel *text_of(const attention_kernel *k) {
    wb_call call = k->call;
    wb_attention_call *a = &call.attention;
    const int head = a->heads > 1 ? 2 : 3; /* whose stride it is from head to head */
    a->in_products = 1;
    a->mask_strides[2] = a->mask_strides[head], a->bias_strides[2] = a->bias_strides[head];
    a->heads = a->kv_heads = k->block, a->batch = 1;
    return wb_gpu_text_of_call(k->kernel.device, &call);
}

static void release_attention(wb_gpu_kernel *kernel) {
    attention_kernel *k = (attention_kernel *)kernel;
    for (int i = 0; i < MOST_PRODUCTS; i++) wb_lt_unready(&k->products[i]);
    if (k->text) k->text->release(k->text);
    wb_gpu_host->release(k);
}

/* With its products, but without the text. NULL where the library has not all of them, or out of
 * memory. */
static attention_kernel *kernel_new(wb_gpu_device *device, const wb_call *call) {
    attention_kernel *k = wb_gpu_host->alloc(sizeof *k);
    if (!k) return NULL;
    wb_gpu_kernel_init(&k->kernel, device);
    k->kernel.run = run_attention, k->kernel.release = release_attention;
    k->call = *call, k->heads = heads_of(&call->attention), k->block = block_of(device, call);
    k->turns = call->attention.heads > 1 ? call->attention.batch : 1;
    place_arrays(k);
    (void)place_scratch(k); /* sizes, which the products want */
    if (make_products(k)) {
        k->kernel.scratch_bytes = (size_t)place_scratch(k);
        return k;
    }
    release_attention(&k->kernel);
    return NULL;
}

/* A call without a text is taken only if the library has all of its products. */
bool wb_lt_takes_attention(wb_gpu_device *device, const wb_call *call) {
    if (!suits(device, call)) return false;
    if (wb_gpu_host->has_text(call, &device->dialect)) return true;
    attention_kernel *k = kernel_new(device, call);
    if (k) release_attention(&k->kernel);
    return k != NULL;
}

wb_gpu_answer wb_lt_lower_attention(wb_gpu_device *device, const wb_call *call,
                                    const wb_program *epilogue, int split, wb_gpu_kernel **kernel) {
    (void)split;
    if (!suits(device, call)) return WB_GPU_PASS;
    if (epilogue) return WB_GPU_APART;
    attention_kernel *k = kernel_new(device, call);
    if (!k) return WB_GPU_PASS;
    k->text = text_of(k);
    if (k->text)
        *kernel = &k->kernel;
    else
        release_attention(&k->kernel);
    return WB_GPU_TAKEN;
}
