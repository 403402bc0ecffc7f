/* Ties: two slots over the same numbers, as the same array or as views of each other (a
 * transpose). */
#include <stdlib.h>

#include "base/memory.h"
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

bool wb_lies_dense(const wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    return memory_order(x, dims);
}

bool wb_is_tied(const wb_array *a, const wb_array *b) {
    if (a == b) return true;
    if (!a->buffer || a->buffer != b->buffer || a->offset != b->offset || a->dtype != b->dtype)
        return false;
    int64_t dims[WB_MAX_DIMS];
    return wb_count(a) == wb_count(b) && memory_order(a, dims) && memory_order(b, dims);
}

/* What is the same for all arrays that are tied. */
static uint64_t key_of(const wb_array *x) {
    if (!x) return 0;
    const uint64_t where = (uint64_t)(uintptr_t)(x->buffer ? (const void *)x->buffer : x);
    return x->buffer ? wb_table_mix(where, (uint64_t)x->offset) : where;
}

bool wb_ties_add(wb_ties *ties, const wb_array *x) {
    const int64_t number = ties->table.count;
    if (!WB_GROW(ties->arrays, number, ties->capacity) || !wb_table_add(&ties->table, key_of(x)))
        return false;
    ties->arrays[number] = x;
    return true;
}

int64_t wb_ties_find(const wb_ties *ties, const wb_array *x) {
    const wb_table *table = &ties->table;
    int64_t first = -1;
    for (int64_t i = wb_table_find(table, key_of(x)); i >= 0; i = wb_table_next(table, i))
        if (ties->arrays[i] && wb_is_tied(ties->arrays[i], x)) first = i;
    return first;
}

void wb_ties_release(wb_ties *ties) {
    wb_table_release(&ties->table);
    wb_release(ties->arrays);
    *ties = (wb_ties){.capacity = 0};
}

/* An array's place in its buffer, in bytes. */
typedef struct range {
    const wb_buffer *buffer;
    int64_t begin, end, number;
} range;

static range range_of(const wb_array *x, int64_t number) {
    const int64_t size = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    int64_t strides[WB_MAX_DIMS], first = x->offset, last = x->offset;
    wb_node_strides(x, strides);
    for (int i = 0; i < x->ndim; i++) {
        const int64_t reach = (x->sizes[i] - 1) * strides[i];
        *(reach < 0 ? &first : &last) += reach;
    }
    return (range){x->buffer, first * size, (last + 1) * size, number};
}

static int by_place(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->buffer != y->buffer) return x->buffer < y->buffer ? -1 : 1;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Compares each range, in order, with the one before it that reaches furthest. */
static bool find_overlap(const wb_ties *ties, const range *ranges, int64_t count, int64_t *first,
                         int64_t *second) {
    for (int64_t i = 1, furthest = 0; i < count; i++) {
        const range *x = &ranges[furthest], *y = &ranges[i];
        const bool overlap = x->buffer == y->buffer && y->begin < x->end;
        if (overlap && !wb_is_tied(ties->arrays[x->number], ties->arrays[y->number])) {
            *first = x->number < y->number ? x->number : y->number;
            *second = x->number < y->number ? y->number : x->number;
            return true;
        }
        if (!overlap || y->end > x->end) furthest = i;
    }
    return false;
}

int wb_find_overlap(const wb_ties *ties, int64_t *first, int64_t *second) {
    range *ranges = wb_alloc((size_t)(ties->table.count + 1) * sizeof *ranges);
    int64_t count = 0;
    if (!ranges) return -1;
    for (int64_t i = 0; i < ties->table.count; i++) {
        const wb_array *x = ties->arrays[i];
        if (x && x->buffer && wb_count(x) > 0) ranges[count++] = range_of(x, i);
    }
    qsort(ranges, (size_t)count, sizeof *ranges, by_place);
    const bool found = find_overlap(ties, ranges, count, first, second);
    wb_release(ranges);
    return found;
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
