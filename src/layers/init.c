/* Initialisers. */
#include <math.h>

#include "evaluate/evaluate.h"
#include "layers/layer.h"

typedef struct fans {
    double in, out;
} fans;

/* (out, in); (kernel..., in, out): prod(kernel) in and prod(kernel) out; (n): 1 and n. */
static fans fans_of(int ndim, const int64_t *sizes) {
    if (ndim == 0) return (fans){1, 1};
    if (ndim == 1) return (fans){1, (double)sizes[0]};
    if (ndim == 2) return (fans){(double)sizes[1], (double)sizes[0]};
    double window = 1;
    for (int d = 0; d < ndim - 2; d++) window *= (double)sizes[d];
    return (fans){window * (double)sizes[ndim - 2], window * (double)sizes[ndim - 1]};
}

/* Parameters are data: evaluates x, made in the innermost scope, and passes it on to the one
 * around. */
static wb_array *finish(wb_array *x) {
    wb_array *left = x && wb_evaluate_roots(1, &x) == WB_OK ? x : NULL;
    return wb_scope_close_leaving(1, &left) == WB_OK ? left : NULL;
}

/* Without fans (a size of zero) there is nothing to scale. */
static double guarded(double fan) { return fan > 0 ? fan : 1; }

static wb_array *uniform(int ndim, const int64_t *sizes, wb_dtype dtype, double bound) {
    if (!wb_scope_begin()) return NULL;
    wb_array *u = wb_uniform_make(dtype, ndim, sizes);
    return finish(wb_mul_number(wb_add_number(u, -0.5), 2 * bound));
}

static wb_array *normal(int ndim, const int64_t *sizes, wb_dtype dtype, double deviation) {
    if (!wb_scope_begin()) return NULL;
    return finish(wb_mul_number(wb_normal_make(dtype, ndim, sizes), deviation));
}

static wb_array *full(int ndim, const int64_t *sizes, wb_dtype dtype, double value) {
    if (!wb_scope_begin()) return NULL;
    return finish(wb_full_make(dtype, value, ndim, sizes));
}

wb_array *wb_glorot_uniform(int ndim, const int64_t *sizes, wb_dtype dtype) {
    const fans f = fans_of(ndim, sizes);
    return uniform(ndim, sizes, dtype, sqrt(6 / guarded(f.in + f.out)));
}

wb_array *wb_glorot_normal(int ndim, const int64_t *sizes, wb_dtype dtype) {
    const fans f = fans_of(ndim, sizes);
    return normal(ndim, sizes, dtype, sqrt(2 / guarded(f.in + f.out)));
}

wb_array *wb_kaiming_uniform(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return uniform(ndim, sizes, dtype, sqrt(6 / guarded(fans_of(ndim, sizes).in)));
}

wb_array *wb_kaiming_normal(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return normal(ndim, sizes, dtype, sqrt(2 / guarded(fans_of(ndim, sizes).in)));
}

wb_array *wb_zeros_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return full(ndim, sizes, dtype, 0);
}

wb_array *wb_ones_init(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return full(ndim, sizes, dtype, 1);
}
