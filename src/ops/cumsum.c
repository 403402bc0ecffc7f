/* Running sums. */
#include "ops/check.h"

wb_array *wb_cumsum(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("cumsum", x, "x");
    dim = wb_check_dim_of("cumsum", dim, x);
    if (dim < 0) return NULL;
    x = wb_widened(x);
    return x ? wb_node_with(WB_OP_cumsum, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x,
                            WB_WORDS(along, dim))
             : NULL;
}

/* An element is in the sums from its own place on: the cotangents are added up from the end. */
void wb_vjp_cumsum(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const int dim = (int)o->attributes.along.dim;
    if (want[0]) out[0] = wb_flip(wb_cumsum(wb_flip(g, dim), dim), dim);
}

CHECK(cumsum, SQUARE(wb_cumsum(SQUARE(x), 1)), 1, {{3, {2, 4, 3}}}, -2, 2)
