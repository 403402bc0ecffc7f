/* Computes sizes, strides and offset of each view (reshape, permute, slice, expand) from those of
 * its input. An expanded dimension has stride 0. A reshape that strides cannot express has to be
 * copied. */
#include "array/view.h"

wb_layout wb_layout_dense(int ndim, const int64_t *sizes) {
    wb_layout layout = {.ndim = ndim};
    for (int d = 0; d < ndim; d++) layout.sizes[d] = sizes[d];
    wb_dense_strides(ndim, sizes, layout.strides);
    return layout;
}

wb_layout wb_layout_of(const wb_array *x) {
    wb_layout layout = wb_layout_dense(x->ndim, x->sizes);
    layout.offset = x->offset;
    if (x->flags & WB_NODE_STRIDED)
        for (int d = 0; d < x->ndim; d++) layout.strides[d] = x->strides[d];
    return layout;
}

bool wb_layout_is_dense(const wb_layout *layout) {
    int64_t stride = 1;
    for (int d = 0; d < layout->ndim; d++) {
        if (layout->sizes[d] != 1 && layout->strides[d] != stride) return false;
        stride *= layout->sizes[d];
    }
    return true;
}

/* Runs of dimensions that lie one after another in memory are one long dimension; a new size list
 * works if each of its sizes divides up one such run. */
/* False if strides cannot say it: then the data has to be copied. */
static bool reshape_layout(const wb_layout *in, int ndim, const int64_t *sizes, wb_layout *out) {
    *out = wb_layout_dense(ndim, sizes);
    out->offset = in->offset;
    if (wb_count_sizes(ndim, sizes) <= 1) return true;
    int next = 0; /* dimension of out to be filled */
    for (int d = 0; d < in->ndim;) {
        if (in->sizes[d] == 1) {
            d++;
            continue;
        }
        int64_t run = in->sizes[d];
        const int64_t stride = in->strides[d];
        int64_t end = stride * in->sizes[d];
        for (d++; d < in->ndim && (in->sizes[d] == 1 || in->strides[d] == end); d++) {
            run *= in->sizes[d];
            if (in->sizes[d] != 1) end *= in->sizes[d];
        }
        for (int64_t filled = 1; filled < run; next++) {
            if (next == ndim) return false;
            out->strides[next] = stride * filled;
            filled *= sizes[next];
            if (filled > run || run % filled != 0) return false;
        }
    }
    return true;
}

static void permute_layout(const wb_layout *in, const int *dims, wb_layout *out) {
    wb_layout result = *in;
    for (int d = 0; d < in->ndim; d++) {
        result.sizes[d] = in->sizes[dims[d]];
        result.strides[d] = in->strides[dims[d]];
    }
    *out = result;
}

void wb_layout_slice(const wb_layout *in, int dim, int64_t start, int64_t count, int64_t step,
                     wb_layout *out) {
    *out = *in;
    if (count > 0) out->offset += start * in->strides[dim];
    out->sizes[dim] = count;
    out->strides[dim] = in->strides[dim] * step;
}

static void expand_layout(const wb_layout *in, int ndim, const int64_t *sizes, wb_layout *out) {
    wb_layout result = {.ndim = ndim, .offset = in->offset};
    for (int d = 0; d < ndim; d++) {
        result.sizes[d] = sizes[d];
        result.strides[d] = d < in->ndim && in->sizes[d] == sizes[d] ? in->strides[d] : 0;
    }
    *out = result;
}

int64_t wb_permutation_pack(int ndim, const int *dims) {
    int64_t packed = 0;
    for (int d = 0; d < ndim; d++) packed |= (int64_t)dims[d] << (4 * d);
    return packed;
}

void wb_permutation_unpack(int64_t packed, int ndim, int *dims) {
    for (int d = 0; d < ndim; d++) dims[d] = (int)(packed >> (4 * d)) & 15;
}

bool wb_view_layout(const wb_array *view, const wb_layout *in, wb_layout *out) {
    int dims[WB_MAX_DIMS];
    switch (view->op) {
    case WB_OP_reshape:
        return reshape_layout(in, view->ndim, view->sizes, out);
    case WB_OP_expand:
        expand_layout(in, view->ndim, view->sizes, out);
        return true;
    case WB_OP_permute:
        wb_permutation_unpack(view->attributes.permute.order, view->ndim, dims);
        permute_layout(in, dims, out);
        return true;
    default: /* slice */
        wb_layout_slice(in, (int)view->attributes.slice.dim, view->attributes.slice.start,
                        view->sizes[view->attributes.slice.dim], view->attributes.slice.step, out);
        return true;
    }
}

wb_array *wb_view_share(wb_array *view) {
    if (!view || !wb_is_evaluated(view->inputs[0])) return view;
    const wb_array *base = view->inputs[0];
    const wb_layout in = wb_layout_of(base);
    wb_layout out;
    if (!wb_view_layout(view, &in, &out)) return view;
    view->buffer = wb_buffer_ref(base->buffer);
    view->offset = out.offset;
    if (!wb_layout_is_dense(&out)) {
        view->flags |= WB_NODE_STRIDED;
        for (int d = 0; d < out.ndim; d++) view->strides[d] = out.strides[d];
    }
    return view;
}
