/* Ties: two slots over the same numbers, as the same array or as views of each other (a transpose).
 * */
#include "layers/layer.h"

/* The dimensions of x by growing stride; false unless, in this order, x is dense. */
static bool memory_order(const wb_array *x, int64_t *dims) {
    int64_t strides[WB_MAX_DIMS], expected = 1;
    wb_node_strides(x, strides);
    for (int i = 0; i < x->ndim; i++) {
        int at = i;
        for (; at > 0 && strides[dims[at - 1]] > strides[i]; at--) dims[at] = dims[at - 1];
        dims[at] = i;
    }
    for (int i = 0; i < x->ndim; i++) {
        const int64_t size = x->sizes[dims[i]];
        if (size != 1 && strides[dims[i]] != expected) return false;
        expected *= size;
    }
    return true;
}

bool wb_is_tied(const wb_array *a, const wb_array *b) {
    if (a == b) return true;
    if (!a->buffer || a->buffer != b->buffer || a->offset != b->offset || a->dtype != b->dtype)
        return false;
    int64_t dims[WB_MAX_DIMS];
    return wb_count(a) == wb_count(b) && memory_order(a, dims) && memory_order(b, dims);
}

/* First and last element of x's range in its buffer. */
static void range_of(const wb_array *x, int64_t *first, int64_t *last) {
    int64_t strides[WB_MAX_DIMS];
    wb_node_strides(x, strides);
    *first = *last = x->offset;
    for (int i = 0; i < x->ndim; i++) {
        const int64_t reach = (x->sizes[i] - 1) * strides[i];
        if (reach < 0)
            *first += reach;
        else
            *last += reach;
    }
}

bool wb_overlaps(const wb_array *a, const wb_array *b) {
    if (!a->buffer || a->buffer != b->buffer || wb_count(a) == 0 || wb_count(b) == 0) return false;
    int64_t a_first, a_last, b_first, b_last;
    range_of(a, &a_first, &a_last);
    range_of(b, &b_first, &b_last);
    const int64_t a_size = (int64_t)wb_dtype_size((wb_dtype)a->dtype);
    const int64_t b_size = (int64_t)wb_dtype_size((wb_dtype)b->dtype);
    return a_first * a_size < (b_last + 1) * b_size && b_first * b_size < (a_last + 1) * a_size;
}

wb_array *wb_through_memory(const wb_array *from, wb_array *x, const wb_array *to) {
    if (from == to) return x;
    int64_t from_dims[WB_MAX_DIMS], to_dims[WB_MAX_DIMS], inverse[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    (void)memory_order(from, from_dims);
    (void)memory_order(to, to_dims);
    for (int i = 0; i < to->ndim; i++) {
        sizes[i] = to->sizes[to_dims[i]];
        inverse[to_dims[i]] = i;
    }
    wb_array *y = from->ndim ? wb_permute_make(x, from->ndim, from_dims) : x;
    if (y) y = wb_reshape_make(y, to->ndim, sizes);
    return y && to->ndim ? wb_permute_make(y, to->ndim, inverse) : y;
}

bool wb_tie_dims(const wb_array *from, const wb_array *to, int64_t *dims) {
    int64_t from_dims[WB_MAX_DIMS], to_dims[WB_MAX_DIMS];
    if (from->ndim != to->ndim || !memory_order(from, from_dims) || !memory_order(to, to_dims))
        return false;
    for (int i = 0; i < to->ndim; i++) {
        if (from->sizes[from_dims[i]] != to->sizes[to_dims[i]]) return false;
        dims[to_dims[i]] = from_dims[i];
    }
    return true;
}
