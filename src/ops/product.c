/* Products along dimensions, by halves, and running products: multiplications alone, so that their
 * derivatives need no division. */
#include "ops/build.h"

/* Halves are multiplied in f32: f16 can hold 300 * 300 / 1000, but not 300 * 300. */
static wb_array *factors(wb_array *x) {
    return wb_is_half(x->dtype) ? wb_cast(x, WB_F32) : wb_widened(x);
}

static wb_array *rounded(wb_array *y, const wb_array *x) {
    return y && wb_is_half(x->dtype) ? wb_cast(y, (wb_dtype)x->dtype) : y;
}

static wb_array *ones_along(const wb_array *x, int dim) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == dim ? 1 : x->sizes[d];
    return wb_full_make((wb_dtype)x->dtype, 1, x->ndim, sizes);
}

static wb_array *product(wb_array *x, int dim) {
    wb_array *rest = NULL; /* product of the odd ones */
    if (x->sizes[dim] == 0) return ones_along(x, dim);
    while (x && x->sizes[dim] > 1) {
        const int64_t n = x->sizes[dim], half = n / 2;
        if (n % 2) {
            wb_array *last = wb_slice(x, dim, n - 1, n, 1);
            rest = rest ? MUL(rest, last) : last;
            if (!rest) return NULL;
        }
        x = MUL(wb_slice(x, dim, 0, half, 1), wb_slice(x, dim, half, 2 * half, 1));
    }
    return rest ? MUL(x, rest) : x;
}

wb_array *wb_prod_make(wb_array *x, int ndim, const int64_t *dims) {
    int64_t mask;
    if (!wb_is_usable(x)) return wb_refuse("prod", x, "x");
    if (!wb_dims_mask("prod", x, ndim, dims, &mask)) return NULL;
    wb_array *y = factors(x);
    for (int d = 0; y && d < x->ndim; d++)
        if (mask >> d & 1) y = product(y, d);
    return rounded(y, x);
}

wb_array *wb_prod(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("prod", x, "x");
    wb_array *y = factors(x), *flat = y ? wb_reshape(y, wb_count(x)) : NULL;
    wb_array *one = flat ? product(flat, 0) : NULL;
    return one ? rounded(wb_reshape_make(one, 0, NULL), x) : NULL;
}

/* After the round with distance s, y_i is the product of the last 2 s numbers up to i. */
wb_array *wb_cumprod(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("cumprod", x, "x");
    dim = wb_check_dim_of("cumprod", dim, x);
    if (dim < 0) return NULL;
    const int64_t n = x->sizes[dim];
    wb_array *y = factors(x);
    for (int64_t s = 1; y && s < n; s *= 2) {
        wb_array *before = wb_pad(wb_slice(y, dim, 0, n - s, 1), dim, s, 0, 1);
        y = MUL(y, before);
    }
    return rounded(y, x);
}
