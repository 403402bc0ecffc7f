/* Large products whose sizes are no multiples of 16 bytes, as 50,257 halves. The library's fast
 * kernels load 16 bytes at once, so that columns must begin and end there; without them a product
 * takes five times as long (an H200, 768 x 50,257 x 8,192 in bf16: 5.1 ms, and 0.9 ms for 50,264).
 * Operands are copied to scratch memory with more rows and columns, if there is room
 * (wb_gpu_most_scratch_bytes). What is added to k is 0 in both A and B; what is added to m and n
 * is computed and left out of the result. */
#include "../copy.h"
#include "lt.h"

/* A product that is not aligned takes some 7 fs more for each multiplication, a copy some 1.5 ps
 * for each element; twice that, to be sure. */
static const double MULTIPLICATIONS_FOR_A_COPY = 400;
enum { ZERO_BYTES = 256, C = 2 };

static int64_t up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

/* As it lies in memory. */
typedef struct stored {
    int64_t rows, columns, leading;
} stored;

static void operands_of(const wb_lt_shape *s, stored list[3]) {
    list[0] = s->transpose_a ? (stored){s->k, s->m, s->lda} : (stored){s->m, s->k, s->lda};
    list[1] = s->transpose_b ? (stored){s->n, s->k, s->ldb} : (stored){s->k, s->n, s->ldb};
    list[2] = (stored){s->m, s->n, s->ldc};
}

/* With the sizes of rows, which are next to one another in memory, rounded up. */
static wb_lt_shape widened(const wb_lt_shape *s, int64_t unit) {
    wb_lt_shape wide = *s;
    wide.m = up(s->m, unit);
    if (s->transpose_a || !s->transpose_b) wide.k = up(s->k, unit);
    if (s->transpose_b) wide.n = up(s->n, unit);
    return wide;
}

static bool moves(const stored *from, const stored *to, int64_t unit) {
    return from->rows != to->rows || from->columns != to->columns || from->leading % unit != 0;
}

/* Products of f32 that are not rounded have no such kernels; a bias has m elements. */
static bool may_move(const wb_lt_shape *s, const wb_lt_shape *wide) {
    const bool has_kernels = s->dtype == WB_F16 || s->dtype == WB_BF16 || s->fast;
    return has_kernels && s->batch == 1 && s->dtype == s->result &&
           (wide->m == s->m || !(s->epilogue & WB_EPILOGUE_BIAS));
}

static bool is_worth_it(const wb_lt_shape *s, const stored from[3], const stored to[3],
                        int64_t unit) {
    double elements = 0;
    for (int i = 0; i < 3; i++)
        if (moves(&from[i], &to[i], unit)) elements += (double)to[i].rows * (double)to[i].columns;
    return (double)s->m * (double)s->n * (double)s->k > elements * MULTIPLICATIONS_FOR_A_COPY;
}

static int64_t bytes_moved(const wb_lt_shape *s, const stored from[3], const stored to[3],
                           int64_t unit) {
    int64_t bytes = 0;
    for (int i = 0; i < 3; i++)
        if (moves(&from[i], &to[i], unit))
            bytes += to[i].rows * to[i].columns * wb_gpu_element_bytes(s->dtype);
    return bytes;
}

/* Reserves the bytes. Returns where they are. */
static int64_t reserve(int64_t *scratch_bytes, int64_t bytes) {
    const int64_t at = *scratch_bytes;
    *scratch_bytes += wb_gpu_scratch_rounded(bytes);
    return at;
}

static wb_gpu_kernel *copy_of(wb_gpu_device *device, wb_dtype dtype, const stored *o,
                              int64_t from_leading, int64_t to_leading) {
    wb_gpu_box box = {.ndim = 0};
    wb_gpu_box_add(&box, o->rows, 1, 1);
    wb_gpu_box_add(&box, o->columns, from_leading, to_leading);
    return wb_gpu_box_copy(device, dtype, &box);
}

/* Writes zeros to what was added along k, which is the operand's rows or its columns. */
static wb_gpu_kernel *zeros_of(wb_gpu_device *device, wb_dtype dtype, const stored *o,
                               bool k_is_rows, int64_t k, int64_t added) {
    wb_gpu_box box = {.to_offset = k_is_rows ? k : k * o->rows};
    wb_gpu_box_add(&box, k_is_rows ? added : o->rows, 0, 1);
    wb_gpu_box_add(&box, k_is_rows ? o->columns : added, 0, o->rows);
    return wb_gpu_box_copy(device, dtype, &box);
}

/* False with an error recorded. */
static bool pad_one(wb_gpu_device *device, int i, const wb_lt_shape *s, const wb_lt_shape *wide,
                    const stored *from, const stored *to, wb_lt_padding *padding,
                    int64_t *scratch_bytes) {
    const wb_dtype dtype = (wb_dtype)s->dtype;
    const bool k_is_rows = i == 0 ? s->transpose_a : !s->transpose_b;
    padding->offset_bytes[i] =
        reserve(scratch_bytes, to->rows * to->columns * wb_gpu_element_bytes(s->dtype));
    padding->copies[i] = i == C ? copy_of(device, dtype, from, to->rows, from->leading)
                                : copy_of(device, dtype, from, from->leading, to->rows);
    if (!padding->copies[i]) return false;
    if (i == C || wide->k == s->k) return true;
    padding->zeros[i] = zeros_of(device, dtype, to, k_is_rows, s->k, wide->k - s->k);
    return padding->zeros[i] != NULL;
}

bool wb_lt_pad(wb_gpu_device *device, wb_lt_shape *shape, wb_lt_padding *padding,
               int64_t *scratch_bytes) {
    const int64_t unit = WB_LT_ALIGNED_BYTES / wb_gpu_element_bytes(shape->dtype);
    wb_lt_shape wide = widened(shape, unit);
    stored from[3], to[3];
    operands_of(shape, from), operands_of(&wide, to);
    if (!may_move(shape, &wide) || !is_worth_it(shape, from, to, unit) ||
        bytes_moved(shape, from, to, unit) > wb_gpu_most_scratch_bytes(device))
        return true;
    int64_t *const leading[3] = {&wide.lda, &wide.ldb, &wide.ldc};
    padding->zero_bytes = reserve(scratch_bytes, ZERO_BYTES);
    for (int i = 0; i < 3; i++) {
        if (!moves(&from[i], &to[i], unit)) continue;
        if (!pad_one(device, i, shape, &wide, &from[i], &to[i], padding, scratch_bytes))
            return false;
        *leading[i] = to[i].rows;
    }
    *shape = wide;
    return true;
}

void wb_lt_padding_release(wb_lt_padding *padding) {
    wb_gpu_kernel *const kernels[] = {padding->copies[0], padding->copies[1], padding->copies[2],
                                      padding->zeros[0], padding->zeros[1]};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i]) kernels[i]->release(kernels[i]);
}

/* ---- running ---- */

wb_gpu_outcome wb_lt_padded(const wb_lt_padding *padding, const wb_gpu_run *run,
                            const wb_command *command, int operand, int argument,
                            gpu_pointer *address) {
    const gpu_pointer scratch = wb_gpu_address(run, command, command->narguments - 1);
    const wb_gpu_kernel *copy = padding->copies[operand];
    wb_gpu_outcome o = {.error = NULL};
    *address = copy ? scratch + (gpu_pointer)padding->offset_bytes[operand]
                    : wb_gpu_address(run, command, argument);
    if (!copy || operand == C) return o;
    const wb_argument to = wb_gpu_scratch(command, padding->offset_bytes[operand]);
    o = wb_gpu_box_run(copy, run, command, command->arguments[argument], to);
    if (o.error || !padding->zeros[operand]) return o;
    o = GPU_TRY(MemsetD8Async, scratch + (gpu_pointer)padding->zero_bytes, 0, ZERO_BYTES,
                run->stream);
    return o.error ? o
                   : wb_gpu_box_run(padding->zeros[operand], run, command,
                                    wb_gpu_scratch(command, padding->zero_bytes), to);
}

wb_gpu_outcome wb_lt_unpad(const wb_lt_padding *padding, const wb_gpu_run *run,
                           const wb_command *command, int argument) {
    if (!padding->copies[C]) return (wb_gpu_outcome){.error = NULL};
    return wb_gpu_box_run(padding->copies[C], run, command,
                          wb_gpu_scratch(command, padding->offset_bytes[C]),
                          command->arguments[argument]);
}
