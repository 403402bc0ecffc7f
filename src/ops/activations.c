/* Activations and similar functions that are not functions of one number alone. */
#include <math.h>

#include "array/thread.h"
#include "ops/build.h"

/* ---- x log x ---- */

/* log y; 0 where x is 0 and y has no finite logarithm (but is no NaN), so that neither the product
 * nor its derivative meets 0 inf. */
static wb_array *log_beside(wb_array *x, wb_array *y) {
    wb_array *has_none = OR(LE(y, NUM(0)), EQ(y, NUM((double)INFINITY)));
    return LOG(SELECT(AND(EQ(x, NUM(0)), has_none), NUM(1), y));
}

wb_array *wb_xlogx(wb_array *x) {
    return wb_is_usable(x) ? MUL(x, log_beside(x, x)) : wb_refuse("xlogx", x, "x");
}

wb_array *wb_xlogy(wb_array *x, wb_array *y) {
    if (!wb_is_usable(x)) return wb_refuse("xlogy", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("xlogy", y, "y");
    return MUL(x, log_beside(x, y));
}

/* ---- rrelu ---- */

static wb_array *slopes(const wb_array *x, double low, double high) {
    const wb_thread *thread = wb_thread_get();
    if (!thread || !thread->training) return NUM((low + high) / 2);
    wb_array *u = wb_uniform_make((wb_dtype)x->dtype, x->ndim, x->sizes);
    return ADD(NUM(low), MUL(NUM(high - low), u));
}

wb_array *wb_rrelu_with(wb_array *x, double low, double high) {
    if (!wb_is_usable(x)) return wb_refuse("rrelu", x, "x");
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "rrelu: low and high must be finite, low not above high, got low %g, "
                            "high %g",
                            low, high);
    x = wb_floating(x);
    return x ? SELECT(GT(x, NUM(0)), x, MUL(x, slopes(x, low, high))) : NULL;
}

wb_array *wb_rrelu(wb_array *x) { return wb_rrelu_with(x, 1.0 / 8, 1.0 / 3); }

/* ---- glu ---- */

wb_array *wb_glu_dim(wb_array *x, int dim) {
    if (!wb_is_usable(x)) return wb_refuse("glu", x, "x");
    dim = wb_check_dim_of("glu", dim, x);
    if (dim < 0) return NULL;
    const int64_t size = x->sizes[dim], half = size / 2;
    if (size % 2)
        return wb_fail_null(WB_ERROR_SHAPE, "glu: dimension %d of %s must have an even size", dim,
                            wb_text_of(x));
    return MUL(wb_slice(x, dim, 0, half, 1), SIGMOID(wb_slice(x, dim, half, size, 1)));
}

wb_array *wb_glu(wb_array *x) { return wb_glu_dim(x, 0); }
