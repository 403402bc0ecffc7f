/* Gather and scatter_add. Attribute 0: the dimension; 1: the number (origin) of the name that
 * errors of a device give a bad index, 0: the operation's name. */
#include <stdio.h>
#include <string.h>

#include "array/origin.h"
#include "base/error.h"
#include "ops/build.h"

/* ---- names of indices ---- */

/* A number for the name that late errors use: the current layers and `what`; -1 when out of memory.
 * Indices that can be read were checked before. */
static int64_t number_of_name(const char *what, wb_op op, const wb_array *index) {
    char text[WB_MESSAGE_BYTES / 2];
    if (wb_is_readable(index)) return 0;
    const size_t used = wb_places_text(text, sizeof text);
    (void)snprintf(text + used, sizeof text - used, "%s", what);
    return strcmp(text, wb_op_name(op)) == 0 ? 0 : wb_origin_number(text);
}

const char *wb_index_name(wb_op op, const wb_attributes *attributes) {
    const bool has_name = (op == WB_OP_gather || op == WB_OP_scatter_add) && attributes->index.name;
    return has_name ? wb_origin_layer((uint16_t)attributes->index.name) : wb_op_name(op);
}

/* ---- gather ---- */

/* The index as i32 or i64; NULL with the error recorded where it is neither. */
static wb_array *index_array(const char *function, wb_array *index) {
    if (index->dtype == WB_I32 || index->dtype == WB_I64) return index;
    if (index->dtype == WB_U8) return wb_cast(index, WB_I32);
    return wb_fail_null(WB_ERROR_DTYPE,
                        "%s: the index must have an integer type, got %s: wb_cast(index, WB_I32)",
                        function, wb_dtype_name((wb_dtype)index->dtype));
}

/* x's sizes with dimension dim replaced by the index's. */
static int gathered_sizes(const wb_array *x, const wb_array *index, int dim, int64_t *sizes) {
    const int ndim = x->ndim - 1 + index->ndim;
    if (ndim > WB_MAX_DIMS) return -1;
    int d = 0;
    for (int i = 0; i < dim; i++) sizes[d++] = x->sizes[i];
    for (int i = 0; i < index->ndim; i++) sizes[d++] = index->sizes[i];
    for (int i = dim + 1; i < x->ndim; i++) sizes[d++] = x->sizes[i];
    return ndim;
}

static wb_array *gather(const char *what, const char *late, wb_array *x, wb_array *index, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("gather", x, "x");
    if (!wb_is_usable(index)) return wb_refuse("gather", index, "index");
    dim = wb_check_dim_of("gather", dim, x);
    index = dim < 0 ? NULL : index_array("gather", index);
    if (!index) return NULL;
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = gathered_sizes(x, index, dim, sizes);
    if (ndim < 0)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "gather: %s at %s positions has more than %d dimensions", wb_text_of(x),
                            wb_text_of(index), WB_MAX_DIMS);
    if (x->sizes[dim] == 0 && wb_count(index) > 0)
        return wb_fail_null(WB_ERROR_SHAPE, "gather: dimension %d of %s is empty", dim,
                            wb_text_of(x));
    if (!wb_check_positions(what, index, x->sizes[dim])) return NULL;
    const int64_t name = number_of_name(late, WB_OP_gather, index);
    if (name < 0) return NULL;
    return wb_node_with(WB_OP_gather, (wb_dtype)x->dtype, ndim, sizes, 2, (wb_array *[]){x, index},
                        WB_WORDS(index, dim, name));
}

wb_array *wb_gather(wb_array *x, wb_array *index, int dim) {
    return gather("gather: index", "gather", x, index, dim);
}

wb_array *wb_gather_named(const char *what, wb_array *x, wb_array *index, int dim) {
    return gather(what, what, x, index, dim);
}

wb_array *wb_index_guard(const char *what, wb_array *index, int64_t size) {
    return wb_gather_named(what, wb_zeros(WB_I32, size), index, 0);
}

wb_array *wb_guarded_index(const char *what, wb_array *index, int64_t size) {
    wb_array *guard = wb_index_guard(what, index, size); /* before anything computes the index */
    wb_array *is_good = AND(GE(index, NUM(0)), LT(index, NUM((double)size)));
    wb_array *same = ADD(index, guard);
    return wb_cast(SELECT(is_good, same, NUM(0)), (wb_dtype)index->dtype);
}

/* ---- scatter_add ---- */

bool wb_scatter_check(const char *function, wb_array *base, wb_array **index, wb_array **updates,
                      int *dim) {
    if (!wb_is_usable(base)) return wb_refuse(function, base, "base");
    if (!wb_is_usable(*index)) return wb_refuse(function, *index, "index");
    if (!wb_is_usable(*updates)) return wb_refuse(function, *updates, "updates");
    *dim = wb_check_dim_of(function, *dim, base);
    *index = *dim < 0 ? NULL : index_array(function, *index);
    if (!*index) return false;
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = gathered_sizes(base, *index, *dim, sizes);
    if (ndim < 0)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: updates for %s at %s positions would have more "
                            "than %d dimensions",
                            function, wb_text_of(base), wb_text_of(*index), WB_MAX_DIMS);
    bool fits = ndim == (*updates)->ndim;
    for (int d = 0; fits && d < ndim; d++) fits = sizes[d] == (*updates)->sizes[d];
    if (!fits)
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "%s: base is %s and index %s along dimension %d, so updates must be %s, got %s",
            function, wb_text_of(base), wb_text_of(*index), *dim, wb_sizes_text(ndim, sizes),
            wb_text_of(*updates));
    if (base->dtype == WB_BOOL)
        return wb_fail_null(WB_ERROR_DTYPE, "%s: base must not be bool", function);
    char index_name[64];
    snprintf(index_name, sizeof index_name, "%s: index", function);
    if (!wb_check_positions(index_name, *index, base->sizes[*dim])) return false;
    *updates = wb_stored_as(function, *updates, (wb_dtype)base->dtype);
    return *updates != NULL;
}

/* name: the number of what late errors call the index; NULL: as it is called here and now. */
static wb_array *scatter_add(wb_array *base, wb_array *index, wb_array *updates, int dim,
                             const int64_t *name) {
    if (!wb_scatter_check("scatter_add", base, &index, &updates, &dim)) return NULL;
    const int64_t number = name ? *name : number_of_name("scatter_add", WB_OP_scatter_add, index);
    if (number < 0) return NULL;
    return wb_node_with(WB_OP_scatter_add, (wb_dtype)base->dtype, base->ndim, base->sizes, 3,
                        (wb_array *[]){base, index, updates}, WB_WORDS(index, dim, number));
}

wb_array *wb_scatter_add(wb_array *base, wb_array *index, wb_array *updates, int dim) {
    return scatter_add(base, index, updates, dim, NULL);
}

/* ---- gradients ---- */

void wb_vjp_gather(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_array *x = o->inputs[0];
    if (!want[0] || !g) return;
    wb_array *zeros = wb_full_make((wb_dtype)x->dtype, 0, x->ndim, x->sizes);
    out[0] = scatter_add(zeros, o->inputs[1], g, (int)o->attributes.index.dim,
                         &o->attributes.index.name);
}

void wb_vjp_scatter_add(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    if (want[0]) out[0] = g;
    if (want[2]) out[2] = wb_gather(g, o->inputs[1], (int)o->attributes.index.dim);
}

static wb_array *check_gather(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    wb_array *index = wb_from(WB_I32, ((const int32_t[]){2, 0, 2, 1}), 2, 2);
    return SQUARE(wb_gather(SQUARE(arrays[0]), index, 1));
}

const wb_check *wb_check_gather(void) {
    static const wb_check check = {1, {{3, {2, 3, 2}}}, -2, 2, check_gather};
    return &check;
}

static wb_array *check_scatter_add(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    wb_array *index = wb_from(WB_I64, ((const int64_t[]){2, 0, 2}), 3);
    return SQUARE(wb_scatter_add(SQUARE(arrays[0]), index, SQUARE(arrays[1]), 1));
}

const wb_check *wb_check_scatter_add(void) {
    static const wb_check check = {2, {{2, {2, 3}}, {2, {2, 3}}}, -2, 2, check_scatter_add};
    return &check;
}
