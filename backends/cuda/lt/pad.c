/* Operands whose columns do not begin at multiples of 16 bytes, as those of 50,257 halves. The
 * library's fast kernels load 16 bytes at once; without them a large product takes five times as
 * long (an H200, 768 x 50,257 x 8,192: 5.1 ms, and 0.9 ms where columns have 50,264 elements). So a
 * large product has copies of such operands in scratch memory. */
#include "../copy.h"
#include "lt.h"

/* A product on columns that are not aligned takes some 7 fs more for each multiplication, a copy
 * some 1.5 ps for each element; twice that, to be sure. */
static const double MULTIPLICATIONS_FOR_A_COPY = 400;
enum { SCRATCH_ALIGNMENT = 256, C = 2 };

static int64_t bytes_of(int dtype) { return dtype == WB_F64 ? 8 : dtype == WB_F32 ? 4 : 2; }

typedef struct stored {
    int64_t rows, columns;
    int64_t *leading;
} stored;

static void operands_of(wb_lt_shape *s, stored list[3]) {
    list[0] = s->transpose_a ? (stored){s->k, s->m, &s->lda} : (stored){s->m, s->k, &s->lda};
    list[1] = s->transpose_b ? (stored){s->n, s->k, &s->ldb} : (stored){s->k, s->n, &s->ldb};
    list[2] = (stored){s->m, s->n, &s->ldc};
}

static bool is_aligned(const stored *o, int64_t element_bytes) {
    return *o->leading * element_bytes % WB_LT_ALIGNED_BYTES == 0;
}

/* Products of f32 that are not rounded have no such kernels. */
static bool is_worth_it(const wb_lt_shape *s, const stored list[3]) {
    double elements = 0;
    for (int i = 0; i < 3; i++)
        if (!is_aligned(&list[i], bytes_of(s->dtype)))
            elements += (double)list[i].rows * (double)list[i].columns;
    const bool has_kernels = s->dtype == WB_F16 || s->dtype == WB_BF16 || s->fast;
    return has_kernels && s->batch == 1 && s->dtype == s->result &&
           (double)s->m * (double)s->n * (double)s->k > elements * MULTIPLICATIONS_FOR_A_COPY;
}

bool wb_lt_pad(wb_gpu_device *device, wb_lt_shape *shape, wb_lt_padding *padding,
               int64_t *scratch_bytes) {
    const int64_t element_bytes = bytes_of(shape->dtype),
                  unit = WB_LT_ALIGNED_BYTES / element_bytes;
    stored list[3];
    operands_of(shape, list);
    if (!is_worth_it(shape, list)) return true;
    for (int i = 0; i < 3; i++) {
        const stored *o = &list[i];
        if (is_aligned(o, element_bytes)) continue;
        const int64_t padded = (o->rows + unit - 1) / unit * unit;
        const int64_t from = i == C ? padded : *o->leading, to = i == C ? *o->leading : padded;
        wb_gpu_box copy = {.ndim = 0};
        wb_gpu_box_add(&copy, o->rows, 1, 1);
        wb_gpu_box_add(&copy, o->columns, from, to);
        padding->copies[i] = wb_gpu_box_copy(device, (wb_dtype)shape->dtype, &copy);
        if (!padding->copies[i]) return false;
        padding->offset_bytes[i] = *scratch_bytes;
        const int64_t bytes = padded * o->columns * element_bytes;
        *scratch_bytes += (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
        *o->leading = padded;
    }
    return true;
}

void wb_lt_padding_release(wb_lt_padding *padding) {
    for (int i = 0; i < 3; i++)
        if (padding->copies[i]) padding->copies[i]->release(padding->copies[i]);
}

static wb_argument in_scratch(const wb_lt_padding *padding, const wb_command *command,
                              int operand) {
    wb_argument a = command->arguments[command->narguments - 1];
    a.offset_bytes += padding->offset_bytes[operand];
    return a;
}

wb_gpu_outcome wb_lt_padded(const wb_lt_padding *padding, const wb_gpu_run *run,
                            const wb_command *command, int operand, int argument,
                            gpu_pointer *address) {
    const wb_gpu_kernel *copy = padding->copies[operand];
    *address = copy ? wb_gpu_address(run, command, command->narguments - 1) +
                          (gpu_pointer)padding->offset_bytes[operand]
                    : wb_gpu_address(run, command, argument);
    if (!copy || operand == C) return (wb_gpu_outcome){.error = NULL};
    return wb_gpu_box_run(copy, run, command, command->arguments[argument],
                          in_scratch(padding, command, operand));
}

wb_gpu_outcome wb_lt_unpad(const wb_lt_padding *padding, const wb_gpu_run *run,
                           const wb_command *command, int argument) {
    if (!padding->copies[C]) return (wb_gpu_outcome){.error = NULL};
    return wb_gpu_box_run(padding->copies[C], run, command, in_scratch(padding, command, C),
                          command->arguments[argument]);
}
