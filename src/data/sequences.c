/* Windows, chunks, padding. */
#include <weber/ops.h>

#include "array/array.h"
#include "base/memory.h"
#include "data/places.h"
#include "ops/ops.h"

wb_array *wb_slidingwindow(wb_array *x, int64_t size, int64_t stride) {
    if (!wb_is_usable(x)) return wb_refuse("slidingwindow", x, "x");
    const int64_t n = wb_numobs(x);
    if (size < 1 || size > n || stride < 1)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "slidingwindow: the size must be from 1 to %lld, the observations of "
                            "%s, and the stride at least 1, got %lld and %lld",
                            (long long)n, wb_text_of(x), (long long)size, (long long)stride);
    if (x->ndim == WB_MAX_DIMS)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "slidingwindow: x must have at most %d dimensions, got %s",
                            WB_MAX_DIMS - 1, wb_text_of(x));
    const int64_t windows = (n - size) / stride + 1;
    const double step = windows > 1 ? (double)stride : 0;
    wb_array *within = wb_iota(WB_I64, 0, size, windows);
    wb_array *window = wb_iota(WB_I64, 1, size, windows);
    wb_array *places = wb_add(within, wb_mul_number(window, step));
    places = wb_move_array(wb_node_device(x), places, WB_ELTYPE_DEFAULT);
    return places ? wb_gather(x, places, -1) : NULL;
}

/* ---- chunks ---- */

wb_status wb_chunk_sizes(wb_array *x, int count, const int64_t *sizes, int dim, wb_array **chunks) {
    static const char function[] = "chunk_sizes";
    if (!wb_check_list(function, count, sizes) || !wb_check_list(function, count, chunks))
        return wb_error_status();
    for (int i = 0; i < count; i++) chunks[i] = NULL;
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x"), wb_error_status();
    dim = wb_check_dim_of(function, dim, x);
    if (dim < 0) return wb_error_status();
    int64_t sum = 0;
    bool good = true;
    for (int i = 0; i < count; i++)
        good = !__builtin_add_overflow(sum, sizes[i], &sum) && good && sizes[i] >= 0;
    if (!good || sum != x->sizes[dim])
        return wb_fail(WB_ERROR_SHAPE,
                       "%s: sizes must not be negative, and their sum must be %lld, dimension %d "
                       "of %s, got %lld",
                       function, (long long)x->sizes[dim], dim, wb_text_of(x), (long long)sum);
    int64_t start = 0;
    for (int i = 0; good && i < count; start += sizes[i++])
        good = (chunks[i] = wb_slice(x, dim, start, start + sizes[i], 1)) != NULL;
    for (int i = 0; !good && i < count; i++) chunks[i] = NULL;
    return good ? WB_OK : wb_error_status();
}

int64_t wb_chunk(wb_array *x, int64_t n, int dim, wb_array **chunks) {
    if (!wb_is_usable(x)) return wb_refuse("chunk", x, "x"), -1;
    if (!wb_check_list("chunk", n, chunks)) return -1;
    dim = wb_check_dim_of("chunk", dim, x);
    if (dim < 0) return -1;
    if (n < 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "chunk: n must be at least 1, got %lld", (long long)n);
        return -1;
    }
    const int64_t whole = x->sizes[dim], size = whole / n + (whole % n != 0);
    int64_t count = 0;
    for (int64_t start = 0; start < whole; start += size, count++) {
        const int64_t stop = start + size < whole ? start + size : whole;
        if ((chunks[count] = wb_slice(x, dim, start, stop, 1))) continue;
        while (count > 0) chunks[--count] = NULL;
        return -1;
    }
    return count;
}

/* ---- padding ---- */

wb_array *wb_rpad(wb_array *x, int64_t size, double value, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("rpad", x, "x");
    dim = wb_check_dim_of("rpad", dim, x);
    if (dim < 0 || !wb_check_number("rpad", (wb_dtype)x->dtype, value)) return NULL;
    return size > x->sizes[dim] ? wb_pad(x, dim, 0, size - x->sizes[dim], value) : x;
}

/* The longest sequence; -1 with the error recorded. */
static int64_t longest(int count, wb_array *const *sequences) {
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        const wb_array *x = sequences[i], *first = sequences[0];
        if (!wb_is_usable(sequences[i]))
            return wb_refuse("batchseq", sequences[i], "a sequence"), -1;
        bool good = x->ndim == first->ndim && x->ndim > 0 && x->dtype == first->dtype;
        for (int d = 0; good && d + 1 < x->ndim; d++) good = x->sizes[d] == first->sizes[d];
        if (!good) {
            (void)wb_fail(WB_ERROR_SHAPE,
                          "batchseq: sequences must have one type and the same sizes but for the "
                          "last, sequence 0 is %s %s, sequence %d is %s %s",
                          wb_dtype_name((wb_dtype)first->dtype), wb_text_of(first), i,
                          wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
            return -1;
        }
        if (wb_numobs(x) > most) most = wb_numobs(x);
    }
    return most;
}

wb_array *wb_batchseq(int count, wb_array *const *sequences, double pad) {
    if (!wb_check_list("batchseq", count, sequences)) return NULL;
    if (count < 1)
        return wb_fail_null(WB_ERROR_ARGUMENT, "batchseq: at least one sequence is needed, got %d",
                            count);
    const int64_t size = longest(count, sequences);
    wb_array **padded = size < 0 ? NULL : wb_alloc_list(count, sizeof *padded);
    bool good = padded != NULL;
    for (int i = 0; good && i < count; i++)
        good = (padded[i] = wb_rpad(sequences[i], size, pad, -1)) != NULL;
    wb_array *batch = good ? wb_stack_make(sequences[0]->ndim, count, padded) : NULL;
    wb_release(padded);
    return batch;
}
