/* Views as arithmetic on sizes, strides and offset; no data. */
#ifndef WB_ARRAY_VIEW_H
#define WB_ARRAY_VIEW_H

#include "array/array.h"

typedef struct wb_layout {
    int ndim;
    int64_t sizes[WB_MAX_DIMS], strides[WB_MAX_DIMS], offset;
} wb_layout;

wb_layout wb_layout_of(const wb_array *x); /* of data; dense if x is pending */
wb_layout wb_layout_dense(int ndim, const int64_t *sizes);
bool wb_layout_is_dense(const wb_layout *layout);

void wb_layout_slice(const wb_layout *in, int dim, int64_t start, int64_t count, int64_t step,
                     wb_layout *out);

/* The layout of the view, from that of its input; false: a copy is needed. */
bool wb_view_layout(const wb_array *view, const wb_layout *in, wb_layout *out);

/* Gives the view node its input's buffer, if the input is evaluated and strides can express the
 * view. */
wb_array *wb_view_share(wb_array *view);

/* Dimensions of a permutation, four bits each, as the node's attribute. */
int64_t wb_permutation_pack(int ndim, const int *dims);
void wb_permutation_unpack(int64_t packed, int ndim, int *dims);

#endif
