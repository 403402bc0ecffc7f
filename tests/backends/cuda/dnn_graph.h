/* Graphs of products, sums and elementwise operations of cuDNN's stand-in: one operation after the
 * other, in f64, rounded where a tensor is bf16. */
#ifndef WB_TESTS_CUDA_DNN_GRAPH_H
#define WB_TESTS_CUDA_DNN_GRAPH_H

#include <math.h>

#include "backends/cuda/dnn_object.h"
#include "backends/cuda/on_device.h"

enum { MOST_TENSORS = 48 };

typedef struct evaluation {
    const object *pack;
    gpu_stream stream;
    int count;
    struct {
        const object *tensor;
        double *numbers; /* (batch, heads, rows, columns), dense */
    } known[MOST_TENSORS];
    bool failed;
} evaluation;

static const int64_t *sizes_of(const object *tensor) { return value(tensor, DNN_TENSOR_SIZES); }
static int64_t elements(const object *tensor) {
    const int64_t *s = sizes_of(tensor);
    return s[0] * s[1] * s[2] * s[3];
}

/* ---- in memory ---- */

static double from_bits(const char *at, int type) {
    uint32_t bits = 0;
    float number;
    memcpy(&bits, at, type == DNN_F32 ? 4 : 2);
    if (type == DNN_BF16) bits <<= 16;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

static uint32_t to_bits(double x, int type) {
    const float number = (float)x;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return type == DNN_BF16 ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits;
}

static double rounded_to(double x, int type) {
    const uint32_t bits = to_bits(x, type);
    return type == DNN_F32 || type == DNN_BF16 ? from_bits((const char *)&bits, type) : x;
}

/* Where element i of the dense order lies, in elements. */
static int64_t place_of(const object *tensor, int64_t i) {
    const int64_t *s = sizes_of(tensor), *strides = value(tensor, DNN_TENSOR_STRIDES);
    int64_t at = 0;
    for (int d = 3; d >= 0; d--) at += i % s[d] * strides[d], i /= s[d];
    return at;
}

static void *pointer_of(evaluation *e, const object *tensor) {
    const int64_t *ids = value(e->pack, DNN_PACK_IDS),
                  id = *(const int64_t *)value(tensor, DNN_TENSOR_ID);
    void *const *pointers = value(e->pack, DNN_PACK_POINTERS);
    for (int64_t i = 0; i < count_of(e->pack, DNN_PACK_IDS); i++)
        if (ids[i] == id) return pointers[i];
    e->failed = true;
    return NULL;
}

static bool is_aligned(const object *tensor, const void *pointer) {
    const int64_t alignment = *(const int64_t *)value(tensor, DNN_TENSOR_ALIGNMENT);
    return (uintptr_t)pointer % (uintptr_t)alignment == 0;
}

/* Columns of halves, too. */
static bool is_aligned_throughout(const object *tensor, const void *pointer) {
    const int64_t *strides = value(tensor, DNN_TENSOR_STRIDES);
    bool all = is_aligned(tensor, pointer);
    for (int d = 0; d < 4 && type_of(tensor) != DNN_F32; d++)
        all = all &&
              (strides[d] == 1 || is_aligned(tensor, (const void *)(uintptr_t)(2 * strides[d])));
    return all;
}

/* Reads the array into the numbers, or writes it. */
static void transfer(evaluation *e, const object *tensor, double *numbers, bool writes) {
    const int type = type_of(tensor);
    const int64_t count = elements(tensor), element = type == DNN_F32 ? 4 : 2;
    const size_t bytes = (size_t)((place_of(tensor, count - 1) + 1) * element);
    char *copy, *pointer = pointer_of(e, tensor);
    if (!pointer || !is_aligned_throughout(tensor, pointer) ||
        !fetch(e->stream, pointer, bytes, &copy)) {
        e->failed = true;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        char *at = copy + place_of(tensor, i) * element;
        const uint32_t bits = writes ? to_bits(numbers[i], type) : 0;
        if (writes)
            memcpy(at, &bits, (size_t)element);
        else
            numbers[i] = from_bits(at, type);
    }
    if (writes && !put_back(e->stream, pointer, copy, bytes)) e->failed = true;
    free(copy);
}

/* ---- values ---- */

static double *numbers_of(evaluation *e, const object *tensor) {
    for (int i = 0; i < e->count; i++)
        if (e->known[i].tensor == tensor) return e->known[i].numbers;
    double *numbers = calloc((size_t)elements(tensor), sizeof *numbers);
    e->known[e->count].tensor = tensor, e->known[e->count++].numbers = numbers;
    if (value(tensor, DNN_TENSOR_IS_VALUE)) {
        const char *at = pointer_of(e, tensor);
        if (at) numbers[0] = from_bits(at, DNN_F32);
    } else if (value(tensor, DNN_TENSOR_IS_VIRTUAL))
        e->failed = true; /* read before it is made */
    else
        transfer(e, tensor, numbers, false);
    return numbers;
}

static double *new_numbers(evaluation *e, const object *tensor) {
    double *numbers = calloc((size_t)elements(tensor), sizeof *numbers);
    e->known[e->count].tensor = tensor, e->known[e->count++].numbers = numbers;
    return numbers;
}

static void settle(evaluation *e, const object *tensor, double *numbers) {
    for (int64_t i = 0; i < elements(tensor); i++)
        numbers[i] = rounded_to(numbers[i], type_of(tensor));
    if (!value(tensor, DNN_TENSOR_IS_VIRTUAL)) transfer(e, tensor, numbers, true);
}

/* The number at a place of a larger tensor; sizes of 1 repeat, and groups of heads share one. */
static double number_at(const object *tensor, const double *numbers, const int64_t place[4],
                        int64_t heads) {
    const int64_t *s = sizes_of(tensor);
    const int64_t head = s[1] == 1 ? 0 : place[1] / (heads / s[1]);
    const int64_t at[4] = {s[0] == 1 ? 0 : place[0], head, s[2] == 1 ? 0 : place[2],
                           s[3] == 1 ? 0 : place[3]};
    return numbers[((at[0] * s[1] + at[1]) * s[2] + at[2]) * s[3] + at[3]];
}

static void place_at(const int64_t *sizes, int64_t i, int64_t place[4]) {
    for (int d = 3; d >= 0; d--) place[d] = i % sizes[d], i /= sizes[d];
}

/* ---- operations ---- */

static void do_matmul(evaluation *e, const object *operation) {
    const object *a = part(operation, DNN_DO_MATMUL_A), *b = part(operation, DNN_DO_MATMUL_B),
                 *c = part(operation, DNN_DO_MATMUL_C);
    const double *x = numbers_of(e, a), *y = numbers_of(e, b);
    double *result = new_numbers(e, c);
    const int64_t *s = sizes_of(c), inner = sizes_of(a)[3];
    if (sizes_of(b)[2] != inner || sizes_of(a)[2] != s[2] || sizes_of(b)[3] != s[3])
        e->failed = true;
    for (int64_t i = 0; i < elements(c) && !e->failed; i++) {
        int64_t row[4], column[4];
        place_at(s, i, row), place_at(s, i, column);
        for (int64_t k = 0; k < inner; k++) {
            row[3] = column[2] = k;
            result[i] += number_at(a, x, row, s[1]) * number_at(b, y, column, s[1]);
        }
    }
    settle(e, c, result);
}

/* Adds up, or takes the largest of, columns, or heads that lie side by side. */
static void do_reduction(evaluation *e, const object *operation) {
    const object *x = part(operation, DNN_DO_REDUCTION_X), *y = part(operation, DNN_DO_REDUCTION_Y);
    const int kind =
        *(const int *)value(part(operation, DNN_DO_REDUCTION_WHAT), DNN_REDUCTION_OPERATOR);
    const double *from = numbers_of(e, x);
    double *result = new_numbers(e, y);
    const int64_t *s = sizes_of(x), *to = sizes_of(y), sharing = s[1] / to[1];
    if (to[0] != s[0] || s[1] % to[1] != 0 || to[2] != s[2] || (to[3] != s[3] && to[3] != 1))
        e->failed = true;
    for (int64_t i = 0; i < elements(x) && !e->failed; i++) {
        int64_t place[4];
        place_at(s, i, place);
        const bool is_first = place[1] % sharing == 0 && (to[3] == s[3] || place[3] == 0);
        double *at = &result[((place[0] * to[1] + place[1] / sharing) * to[2] + place[2]) * to[3] +
                             place[3] % to[3]];
        *at = is_first ? from[i] : kind == DNN_REDUCE_MAX ? fmax(*at, from[i]) : *at + from[i];
    }
    settle(e, y, result);
}

/* An element goes where it would lie in the same memory. */
static void do_reshape(evaluation *e, const object *operation) {
    const object *x = part(operation, DNN_DO_RESHAPE_X), *y = part(operation, DNN_DO_RESHAPE_Y);
    const double *from = numbers_of(e, x);
    double *result = new_numbers(e, y);
    const int64_t count = elements(x), places = place_of(x, count - 1) + 1;
    if (elements(y) != count || place_of(y, count - 1) + 1 != places) e->failed = true;
    double *memory = calloc((size_t)places, sizeof *memory);
    for (int64_t i = 0; i < count; i++) memory[place_of(x, i)] = from[i];
    for (int64_t i = 0; i < count && !e->failed; i++) result[i] = memory[place_of(y, i)];
    free(memory);
    settle(e, y, result);
}

static double pointwise_of(int mode, double x, double b, double t, int64_t index) {
    switch (mode) {
    case DNN_ADD:
        return x + b;
    case DNN_SUB:
        return x - b;
    case DNN_MUL:
        return x * b;
    case DNN_DIV:
        return x / b;
    case DNN_EXP:
        return exp(x);
    case DNN_LOG:
        return log(x);
    case DNN_NOT_BELOW:
        return x >= b;
    case DNN_INDEX:
        return (double)index;
    case DNN_SELECT:
        return t != 0 ? x : b;
    default:
        return (double)NAN;
    }
}

static void do_pointwise(evaluation *e, const object *operation) {
    static const dnn_name names[3] = {DNN_DO_POINTWISE_X, DNN_DO_POINTWISE_B, DNN_DO_POINTWISE_T};
    const object *what = part(operation, DNN_DO_POINTWISE_WHAT),
                 *y = part(operation, DNN_DO_POINTWISE_Y), *in[3] = {NULL};
    const int mode = *(const int *)value(what, DNN_POINTWISE_MODE);
    const int64_t *axis = value(what, DNN_POINTWISE_AXIS), *s = sizes_of(y);
    const double *numbers[3] = {NULL};
    for (int i = 0; i < 3; i++)
        if (value(operation, names[i])) {
            in[i] = part(operation, names[i]);
            numbers[i] = numbers_of(e, in[i]);
        }
    double *result = new_numbers(e, y);
    for (int64_t i = 0; i < elements(y); i++) {
        int64_t place[4];
        double x[3] = {0};
        place_at(s, i, place);
        for (int n = 0; n < 3; n++)
            if (in[n]) x[n] = number_at(in[n], numbers[n], place, s[1]);
        result[i] = pointwise_of(mode, x[0], x[1], x[2], axis ? place[*axis] : 0);
    }
    settle(e, y, result);
}

/* False: the graph cannot be computed with what is given. */
static bool evaluate(const object *graph, const object *pack, gpu_stream stream) {
    evaluation e = {.pack = pack, .stream = stream};
    const object *const *operations = value(graph, DNN_GRAPH_OPERATIONS);
    for (int64_t i = 0; i < count_of(graph, DNN_GRAPH_OPERATIONS) && !e.failed; i++)
        switch ((int)operations[i]->kind) {
        case DNN_DO_MATMUL:
            do_matmul(&e, operations[i]);
            break;
        case DNN_DO_REDUCTION:
            do_reduction(&e, operations[i]);
            break;
        case DNN_DO_RESHAPE:
            do_reshape(&e, operations[i]);
            break;
        default:
            do_pointwise(&e, operations[i]);
        }
    for (int i = 0; i < e.count; i++) free(e.known[i].numbers);
    return !e.failed;
}

#endif
