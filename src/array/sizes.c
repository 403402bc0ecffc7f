/* Sizes, strides and element types: counting, checking and printing them, and the questions that
 * users ask about an array. Sizes that pass wb_check_sizes have so few elements that their number
 * of bytes cannot overflow. */
#include <stdio.h>

#include "array/use.h"
#include "base/scratch.h"

int64_t wb_count_sizes(int ndim, const int64_t *sizes) {
    int64_t count = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] < 0) return -1;
        if (sizes[d] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, sizes[d], &count) || count > PTRDIFF_MAX / 16)
            return -1; /* else their number of bytes exceeds the address space */
    }
    return empty ? 0 : count;
}

void wb_dense_strides(int ndim, const int64_t *sizes, int64_t *strides) {
    int64_t stride = 1;
    for (int d = 0; d < ndim; d++) {
        strides[d] = stride;
        stride *= sizes[d];
    }
}

void wb_node_strides(const wb_array *x, int64_t *strides) {
    if (!(x->flags & WB_NODE_STRIDED)) {
        wb_dense_strides(x->ndim, x->sizes, strides);
        return;
    }
    for (int d = 0; d < x->ndim; d++) strides[d] = x->strides[d];
}

bool wb_node_is_dense(const wb_array *x) {
    if (!(x->flags & WB_NODE_STRIDED)) return true;
    int64_t stride = 1;
    for (int d = 0; d < x->ndim; d++) {
        if (x->sizes[d] != 1 && x->strides[d] != stride) return false;
        stride *= x->sizes[d];
    }
    return true;
}

static bool is_slowest_first; /* __atomic */

bool wb_sizes_slowest_first(bool slowest_first) {
    return __atomic_exchange_n(&is_slowest_first, slowest_first, __ATOMIC_RELAXED);
}

const char *wb_sizes_text(int ndim, const int64_t *sizes) {
    const bool is_reversed = __atomic_load_n(&is_slowest_first, __ATOMIC_RELAXED);
    enum { TEXTS = 8, BYTES = 160 };
    static _Thread_local unsigned turn;
    char *text = wb_scratch(WB_SCRATCH_SIZES, TEXTS * BYTES) + turn++ % TEXTS * BYTES;
    size_t used = (size_t)snprintf(text, BYTES, "(");
    for (int d = 0; d < ndim && used < BYTES; d++)
        used += (size_t)snprintf(text + used, BYTES - used, d ? ", %lld" : "%lld",
                                 (long long)sizes[is_reversed ? ndim - 1 - d : d]);
    if (used < BYTES) (void)snprintf(text + used, BYTES - used, ")");
    return text;
}

const char *wb_text_of(const wb_array *x) { return wb_sizes_text(x->ndim, x->sizes); }

bool wb_check_sizes(const char *function, int ndim, const int64_t *sizes) {
    if (ndim < 0 || ndim > WB_MAX_DIMS) {
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %d dimensions; an array has 0 to %d", function, ndim,
                      WB_MAX_DIMS);
        return false;
    }
    if (!wb_check_list(function, ndim, sizes)) return false;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] >= 0) continue;
        (void)wb_fail(WB_ERROR_SHAPE, "%s: size %lld of dimension %d in %s is negative", function,
                      (long long)sizes[d], d, wb_sizes_text(ndim, sizes));
        return false;
    }
    if (wb_count_sizes(ndim, sizes) >= 0) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: %s has more elements than memory can hold", function,
                  wb_sizes_text(ndim, sizes));
    return false;
}

bool wb_check_dtype(const char *function, wb_dtype dtype) {
    if ((unsigned)dtype < WB_DTYPE_COUNT) return true;
    const int value = (int)dtype;
    const int number = value < WB_NO_DTYPE / 2 ? value : value - WB_NO_DTYPE; /* see WB_DTYPE */
    (void)wb_fail(WB_ERROR_DTYPE, "%s: %d is not an element type: write WB_F32, WB_F64, ...",
                  function, number);
    return false;
}

static const char *name_of_numbers(int numbers) {
    return numbers == WB_FLOATS              ? "float"
           : numbers == WB_DOUBLES           ? "double"
           : numbers == WB_BOOLS             ? "bool"
           : numbers == WB_OTHER_NUMBERS     ? "long double, complex or __int128"
           : numbers == WB_WHOLE_NUMBERS     ? "uint8_t or int8_t"
           : numbers == WB_WHOLE_NUMBERS * 2 ? "uint16_t or int16_t"
           : numbers == WB_WHOLE_NUMBERS * 4 ? "int32_t or uint32_t"
           : numbers == WB_WHOLE_NUMBERS * 8 ? "int64_t or uint64_t"
                                             : "uint8_t or bool";
}

bool wb_check_numbers(const char *function, wb_dtype dtype, int numbers) {
    if (numbers == 0 || (WB_NUMBERS_OF(dtype) & numbers) != 0) return true;
    (void)wb_fail(WB_ERROR_DTYPE,
                  "%s: the pointer is to %s, but elements of type %s need a pointer to %s (a "
                  "pointer to void is not checked)",
                  function, name_of_numbers(numbers), wb_dtype_name(dtype),
                  name_of_numbers(WB_NUMBERS_OF(dtype)));
    return false;
}

int wb_check_dim(const char *function, int dim, int ndim) {
    if (dim >= -ndim && dim < ndim) return dim < 0 ? dim + ndim : dim;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: dimension %d is outside an array of %d dimensions",
                  function, dim, ndim);
    return -1;
}

int wb_check_dim_of(const char *function, int dim, const wb_array *x) {
    if (dim >= -x->ndim && dim < x->ndim) return dim < 0 ? dim + x->ndim : dim;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: dimension %d is outside an array of %d dimensions, %s",
                  function, dim, x->ndim, wb_text_of(x));
    return -1;
}

/* ---- questions ---- */

int64_t wb_node_count(const wb_array *x) { return x ? wb_count_sizes(x->ndim, x->sizes) : 0; }

wb_dtype wb_dtype_of(const wb_array *x) {
    return wb_may_ask("dtype_of", x) ? (wb_dtype)x->dtype : WB_F32;
}

int wb_ndim(const wb_array *x) { return wb_may_ask("ndim", x) ? x->ndim : 0; }

const int64_t *wb_sizes(const wb_array *x) { return wb_may_ask("sizes", x) ? x->sizes : NULL; }

int64_t(wb_count)(const wb_array *x) { return wb_may_ask("count", x) ? wb_node_count(x) : 0; }

int64_t wb_size(const wb_array *x, int dim) {
    if (!wb_may_ask("size", x)) return 0;
    if (dim < 0) dim += x->ndim;
    return dim >= 0 && dim < x->ndim ? x->sizes[dim] : 1;
}
