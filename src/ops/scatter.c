/* Scatter with the largest, the smallest and the product: updates sorted by their positions, and
 * combined in log2(n) rounds. */
#include "array/use.h"
#include "ops/build.h"
#include "ops/custom.h"

typedef wb_array *combine_fn(wb_array *x, wb_array *y);

static wb_array *larger(wb_array *x, wb_array *y) { return MAX(x, y); }
static wb_array *smaller(wb_array *x, wb_array *y) { return MIN(x, y); }
static wb_array *product(wb_array *x, wb_array *y) { return MUL(x, y); }

/* A vector along dim of ndim dimensions. */
static wb_array *along(wb_array *x, int dim, int ndim) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < ndim; d++) sizes[d] = d == dim ? -1 : 1;
    return wb_reshape_make(x, ndim, sizes);
}

/* The updates with the dimensions of the index as one. */
static wb_array *one_by_one(wb_array *updates, const wb_array *index, int dim, int ndim) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        sizes[d] =
            d == dim ? wb_node_count(index) : updates->sizes[d < dim ? d : d + index->ndim - 1];
    return wb_reshape_make(updates, ndim, sizes);
}

/* y_i combines x_i with all earlier updates of the same position; updates are sorted by
 * position. */
static wb_array *combined(wb_array *x, wb_array *place, int dim, combine_fn *combine) {
    const int64_t n = wb_count(place);
    for (int64_t s = 1; x && s < n; s *= 2) {
        wb_array *late = wb_slice(x, dim, s, n, 1), *early = wb_slice(x, dim, 0, n - s, 1);
        wb_array *same = EQ(wb_slice(place, 0, s, n, 1), wb_slice(place, 0, 0, n - s, 1));
        /* not a choice of results: 0 times infinity would be in its gradient */
        early = SELECT(along(same, dim, x->ndim), early, combine == product ? NUM(1) : late);
        x = wb_concat(dim, wb_slice(x, dim, 0, s, 1), combine(early, late));
    }
    return x;
}

/* base with the slices at these positions replaced by x; if a position appears several times, the
 * last x counts. */
static wb_array *put_last(wb_array *base, wb_array *place, wb_array *x, int dim) {
    const int64_t n = wb_count(place);
    wb_array *next = wb_slice(place, 0, 1, n, 1);
    wb_array *is_last = wb_pad(NE(wb_slice(place, 0, 0, n - 1, 1), next), 0, 0, 1, 1);
    wb_array *zeros = wb_full_make((wb_dtype)base->dtype, 0, base->ndim, base->sizes);
    wb_array *none = wb_full_make(WB_I32, 0, 1, &base->sizes[dim]);
    x = SELECT(along(is_last, dim, base->ndim), x, NUM(0));
    wb_array *count = wb_scatter_add(none, place, wb_cast(is_last, WB_I32), 0);
    return SELECT(along(GT(count, NUM(0)), dim, base->ndim), wb_scatter_add(zeros, place, x, dim),
                  base);
}

/* The index, which is an error of the function when it is computed and out of range. */
static wb_array *guarded(const char *function, wb_array *index, int64_t size) {
    return wb_is_readable(index) ? index : wb_guarded_index(function, index, size);
}

static wb_array *scattered(wb_array *base, wb_array *index, wb_array *updates, int dim,
                           combine_fn *combine) {
    wb_array *x = one_by_one(updates, index, dim, base->ndim);
    wb_array *flat = wb_reshape(index, -1), *order = wb_argsort(flat, 0, false);
    wb_array *place = wb_gather(flat, order, 0);
    x = combined(wb_gather(x, order, dim), place, dim, combine);
    if (!x) return NULL;
    return put_last(base, place, combine(wb_gather(base, place, dim), x), dim);
}

wb_array *wb_scatter_mul(wb_array *base, wb_array *index, wb_array *updates, int dim) {
    if (!wb_scatter_check("scatter_mul", base, &index, &updates, &dim)) return NULL;
    if (wb_count(index) == 0) return base;
    if (!(index = guarded("scatter_mul", index, base->sizes[dim]))) return NULL;
    if (!wb_is_half((wb_dtype)base->dtype)) return scattered(base, index, updates, dim, product);
    /* in f32, as wb_prod: products in the middle may be beyond halves */
    wb_array *wide = wb_cast(base, WB_F32);
    wb_array *y = wide ? scattered(wide, index, wb_cast(updates, WB_F32), dim, product) : NULL;
    return y ? wb_cast(y, (wb_dtype)base->dtype) : NULL;
}

/* ---- the largest and the smallest: equal ones share the gradient ---- */

static combine_fn *const extremes[] = {larger, smaller};

/* o's inputs are the value, base, index and updates; context is the dimension, times two, and which
 * of the extremes. The comparison is not with o: if o was read before, base and updates are
 * computed again here, and their sums may be rounded differently. */
static void pull_share(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const int dim = (int)(intptr_t)context / 2, which = (int)(intptr_t)context % 2;
    wb_array *base = o->inputs[1], *index = o->inputs[2], *updates = o->inputs[3];
    const wb_dtype dtype = (wb_dtype)g->dtype;
    wb_array *most = scattered(base, index, updates, dim, extremes[which]);
    wb_array *base_is = EQ(base, most), *update_is = EQ(updates, wb_gather(most, index, dim));
    wb_array *count =
        wb_scatter_add(wb_cast(base_is, dtype), index, wb_cast(update_is, dtype), dim);
    wb_array *share = DIV(g, count);
    if (want[1]) out[1] = SELECT(base_is, share, NUM(0));
    if (want[3]) out[3] = SELECT(update_is, wb_gather(share, index, dim), NUM(0));
}

static wb_array *extreme(const char *function, wb_array *base, wb_array *index, wb_array *updates,
                         int dim, int which) {
    if (!wb_scatter_check(function, base, &index, &updates, &dim)) return NULL;
    if (wb_count(index) == 0) return base;
    if (!(index = guarded(function, index, base->sizes[dim]))) return NULL;
    wb_array *y = scattered(base, index, updates, dim, extremes[which]);
    wb_array *inputs[] = {base, index, updates};
    void *context = (void *)(intptr_t)(2 * dim + which);
    return y ? wb_custom_node(y, 3, inputs, pull_share, context, NULL) : NULL;
}

wb_array *wb_scatter_max(wb_array *base, wb_array *index, wb_array *updates, int dim) {
    return extreme("scatter_max", base, index, updates, dim, 0);
}

wb_array *wb_scatter_min(wb_array *base, wb_array *index, wb_array *updates, int dim) {
    return extreme("scatter_min", base, index, updates, dim, 1);
}
