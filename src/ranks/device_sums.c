/* Sums over ranks of device memory, in the order of reduce.c: a program with one load for each
 * rank. Many ranks are added in blocks first, which are whole branches of the tree. */
#include "ranks/device_sums.h"

#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "program/keep.h"
#include "ranks/ranks.h"

enum {
    ROOM_BYTES = 32 << 20,
    BLOCK = 32,                        /* ranks of a program, a power of two: 32 * 32 are most */
    MOST_INSTRUCTIONS = 2 * BLOCK + 2, /* loads, sums, a constant, a division, a store */
    STEP = 64                          /* elements: slots begin at multiples of this many */
};
_Static_assert(BLOCK *BLOCK >= WB_MOST_RANKS, "two levels are enough");

/* What is added up: `leaves` slots of type `from`, `count` elements apart. */
typedef struct sum_form {
    wb_dtype from, to;
    wb_reduction reduction;
    int leaves;
    int64_t count;
} sum_form;

typedef struct wb_sum_kernel {
    sum_form form;
    void *kernel, *scratch; /* memory that the kernel wants; or NULL */
    size_t scratch_bytes;
} wb_sum_kernel;

/* ---- sizes: few, so that few kernels serve all ---- */

/* Four sizes for each power of two. */
static int64_t step_of(int64_t count) {
    int64_t step = STEP;
    while (8 * step < count) step *= 2;
    return step;
}

static int64_t rounded(int64_t count) {
    const int64_t step = step_of(count);
    return (count + step - 1) / step * step;
}

static int block_count(const wb_device_sums *s) {
    return s->ranks > BLOCK ? (s->ranks + BLOCK - 1) / BLOCK : 0;
}

/* Blocks' sums are f32 of halves, and i32 of bytes. */
static wb_dtype type_between(wb_dtype dtype) {
    static const wb_dtype types[WB_R_COUNT] = {
        [WB_R_F32] = WB_F32, [WB_R_F64] = WB_F64, [WB_R_I32] = WB_I32, [WB_R_I64] = WB_I64};
    return types[wb_register_of(dtype)];
}

static wb_dtype stored_type(wb_dtype dtype) { return dtype == WB_BOOL ? WB_U8 : dtype; }

/* The slots, the blocks' sums, the sum of all: bytes of one element in each. */
static size_t slots_bytes(const wb_device_sums *s, wb_dtype dtype) {
    return (size_t)s->ranks * wb_dtype_size(dtype);
}
static size_t blocks_bytes(const wb_device_sums *s, wb_dtype dtype) {
    return (size_t)block_count(s) * wb_dtype_size(type_between(dtype));
}

int64_t wb_device_sums_most(const wb_device_sums *s, wb_dtype of) {
    const wb_dtype dtype = stored_type(of);
    const int64_t most = (int64_t)(ROOM_BYTES / (slots_bytes(s, dtype) + blocks_bytes(s, dtype) +
                                                 wb_dtype_size(dtype)));
    return most / step_of(most) * step_of(most);
}

wb_memory wb_device_sums_slots(const wb_device_sums *s, wb_dtype dtype, int64_t count,
                               size_t *stride_bytes) {
    *stride_bytes = (size_t)rounded(count) * wb_dtype_size(dtype);
    return (wb_memory){s->room, 0};
}

bool wb_device_sums_open(wb_device_sums *s, const wb_device *device, void *queue, int ranks) {
    *s = (wb_device_sums){.device = device, .queue = queue, .ranks = ranks};
    s->room = wb_device_alloc(device, ROOM_BYTES);
    return s->room;
}

void wb_device_sums_close(wb_device_sums *s) {
    for (int64_t i = 0; i < s->kernel_count; i++) {
        const wb_sum_kernel *k = &s->kernels[i];
        s->device->backend->release(k->kernel);
        wb_device_free(s->device, k->scratch, k->scratch_bytes);
    }
    wb_release(s->kernels);
    if (s->device) wb_device_free(s->device, s->room, ROOM_BYTES);
    *s = (wb_device_sums){.ranks = 0};
}

/* ---- the program ---- */

typedef struct writer {
    const sum_form *form;
    wb_program program;
    wb_instruction instructions[MOST_INSTRUCTIONS];
    wb_access accesses[BLOCK + 1];
} writer;

static uint16_t write(writer *w, wb_code code, wb_register type, uint16_t x, uint16_t y) {
    w->instructions[w->program.ninstructions] =
        (wb_instruction){.code = (uint8_t)code,
                         .type = (uint8_t)type,
                         .from = (uint8_t)type,
                         .in = {x, y, WB_NO_VALUE},
                         .index = (uint16_t)w->program.naccesses};
    return (uint16_t)w->program.ninstructions++;
}

/* Of the access that a load or store needs: argument 0 is what is read, 1 what is written. */
static uint16_t write_access(writer *w, wb_code code, wb_dtype dtype, int64_t offset, uint16_t x) {
    w->accesses[w->program.naccesses] = (wb_access){.dtype = (uint8_t)dtype,
                                                    .argument = code == WB_CODE_store,
                                                    .offset = offset,
                                                    .strides = {1}};
    const uint16_t made = write(w, code, wb_register_of(dtype), x, WB_NO_VALUE);
    w->program.naccesses++;
    return made;
}

static uint16_t write_tree(writer *w, int lo, int hi) {
    static const wb_code codes[] = {[WB_REDUCE_SUM] = WB_CODE_add,
                                    [WB_REDUCE_MEAN] = WB_CODE_add,
                                    [WB_REDUCE_MAX] = WB_CODE_max,
                                    [WB_REDUCE_MIN] = WB_CODE_min};
    const sum_form *f = w->form;
    if (hi - lo == 1) return write_access(w, WB_CODE_load, f->from, lo * f->count, WB_NO_VALUE);
    const int middle = lo + wb_power_below(hi - lo);
    const uint16_t a = write_tree(w, lo, middle), b = write_tree(w, middle, hi);
    return write(w, codes[f->reduction], wb_register_of(f->from), a, b);
}

/* NULL with an error recorded. */
static void *new_kernel(const wb_device *device, int ranks, const sum_form *form) {
    writer w = {.form = form,
                .program = {.ndim = 1, .sizes = {form->count}, .phases = 1, .narguments = 2}};
    const wb_register type = wb_register_of(form->from);
    w.program.instructions = w.instructions, w.program.accesses = w.accesses;
    uint16_t sum = write_tree(&w, 0, form->leaves);
    if (form->reduction == WB_REDUCE_MEAN) {
        const uint16_t by = write(&w, WB_CODE_constant, type, WB_NO_VALUE, WB_NO_VALUE);
        w.instructions[by].constant = ranks;
        sum = write(&w, WB_CODE_div, type, sum, by);
    }
    (void)write_access(&w, WB_CODE_store, form->to, 0, sum);
    wb_program_keep(&w.program);
    return device->backend->kernel(device->context, &w.program);
}

static bool is_same(const sum_form *a, const sum_form *b) {
    return a->from == b->from && a->to == b->to && a->reduction == b->reduction &&
           a->leaves == b->leaves && a->count == b->count;
}

static bool make(const wb_device_sums *s, const sum_form *form, wb_sum_kernel *k) {
    *k = (wb_sum_kernel){.form = *form, .kernel = new_kernel(s->device, s->ranks, form)};
    if (!k->kernel) return false;
    k->scratch_bytes = s->device->backend->scratch_bytes(k->kernel);
    if (k->scratch_bytes == 0) return true;
    k->scratch = wb_device_alloc(s->device, k->scratch_bytes);
    if (!k->scratch) s->device->backend->release(k->kernel);
    return k->scratch;
}

/* NULL with an error recorded. */
static const wb_sum_kernel *kernel_of(wb_device_sums *s, const sum_form *form) {
    for (int64_t i = 0; i < s->kernel_count; i++)
        if (is_same(&s->kernels[i].form, form)) return &s->kernels[i];
    if (!WB_GROW(s->kernels, s->kernel_count, s->kernel_capacity) ||
        !make(s, form, &s->kernels[s->kernel_count]))
        return NULL;
    return &s->kernels[s->kernel_count++];
}

/* ---- adding ---- */

static wb_status add(wb_device_sums *s, const sum_form *form, size_t from, size_t to) {
    const wb_device *device = s->device;
    const wb_sum_kernel *k = kernel_of(s, form);
    if (!k) return wb_error_status();
    const wb_memory memory[] = {{s->room, 0}, {k->scratch, 0}};
    const wb_argument arguments[] = {{0, (int64_t)from}, {0, (int64_t)to}, {1, 0}};
    const wb_command command = {.kernel = k->kernel,
                                .narguments = k->scratch ? 3 : 2,
                                .arguments = arguments,
                                .what = "sum over ranks"};
    return device->backend->run(device->context, s->queue, &command, 1, memory, NULL);
}

/* The blocks' sums, one after another. */
static wb_status add_blocks(wb_device_sums *s, const sum_form *all, size_t to) {
    sum_form form = *all;
    wb_status status = WB_OK;
    form.to = type_between(all->from);
    if (form.reduction == WB_REDUCE_MEAN) form.reduction = WB_REDUCE_SUM;
    for (int b = 0; status == WB_OK && b < block_count(s); b++) {
        const int left = s->ranks - b * BLOCK;
        form.leaves = left < BLOCK ? left : BLOCK;
        const size_t elements = (size_t)b * (size_t)form.count;
        status = add(s, &form, elements * BLOCK * wb_dtype_size(form.from),
                     to + elements * wb_dtype_size(form.to));
    }
    return status;
}

wb_status wb_device_sums_add(wb_device_sums *s, wb_dtype of, wb_reduction reduction, int64_t count,
                             wb_memory *sum) {
    const wb_dtype dtype = stored_type(of);
    const size_t n = (size_t)rounded(count), blocks = n * slots_bytes(s, dtype),
                 at = blocks + n * blocks_bytes(s, dtype);
    sum_form form = {dtype, dtype, reduction, s->ranks, (int64_t)n};
    *sum = (wb_memory){s->room, (int64_t)at};
    if (block_count(s) == 0) return add(s, &form, 0, at);
    const wb_status status = add_blocks(s, &form, blocks);
    form.from = type_between(dtype), form.leaves = block_count(s);
    return status == WB_OK ? add(s, &form, blocks, at) : status;
}
