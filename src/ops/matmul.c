/* The batched matrix product. Attribute 0: bit 0 transposes A, bit 1 transposes B, bit 2 is
 * WB_MATMUL_FAST, bit 3 WB_MATMUL_BF16. */
#include <stdatomic.h>
#include <string.h>

#include "ops/build.h"

/* ---- precision ---- */

static const char *const precisions[] = {"highest", "high", "medium"};
static atomic_int chosen; /* one of them */

bool wb_is_matmul_fast(wb_dtype dtype) { return dtype == WB_F32 && atomic_load(&chosen) > 0; }

static int64_t precision_flags(wb_dtype dtype) {
    static const int64_t flags[] = {0, WB_MATMUL_FAST, WB_MATMUL_FAST | WB_MATMUL_BF16};
    return dtype == WB_F32 ? flags[atomic_load(&chosen)] : 0;
}

wb_status wb_matmul_precision(const char *precision) {
    if (!precision) {
        (void)wb_fail_argument_null("matmul_precision", "precision");
        return wb_error_status();
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(precision, precisions[i]) != 0) continue;
        atomic_store(&chosen, i);
        return WB_OK;
    }
    return wb_fail(WB_ERROR_ARGUMENT,
                   "matmul_precision: expected \"highest\", \"high\" or \"medium\", got \"%s\"",
                   precision);
}

/* ---- products ---- */

typedef struct product {
    int64_t m, k, k_of_b, n;
} product;

static product sizes_of(const wb_array *a, const wb_array *b, bool transpose_a, bool transpose_b) {
    return (product){a->sizes[transpose_a], a->sizes[!transpose_a], b->sizes[transpose_b],
                     b->sizes[!transpose_b]};
}

static wb_array *misfit(const wb_array *a, const wb_array *b, bool transpose_a, bool transpose_b) {
    if (a->ndim < 2 || (a->ndim > 2 && b->ndim == 1))
        return wb_fail_null(WB_ERROR_SHAPE, "matmul: A must be a matrix, got %s", wb_text_of(a));
    if (b->ndim < (transpose_b ? 2 : 1))
        return wb_fail_null(WB_ERROR_SHAPE, "matmul: B must be a matrix, got %s", wb_text_of(b));
    const int64_t k = a->sizes[!transpose_a];
    if (b->sizes[transpose_b] == k)
        return wb_fail_null(WB_ERROR_SHAPE, "matmul: the batches of A %s and B %s do not broadcast",
                            wb_text_of(a), wb_text_of(b));
    const char *what = b->ndim == 1 ? "elements" : transpose_b ? "columns" : "rows";
    return wb_fail_null(WB_ERROR_SHAPE, "matmul: A is %s%s, so B needs %lld %s, but is %s%s",
                        wb_text_of(a), transpose_a ? " transposed" : "", (long long)k, what,
                        wb_text_of(b), transpose_b ? " transposed" : "");
}

static wb_array *matmul(wb_array *a, wb_array *b, bool transpose_a, bool transpose_b) {
    const wb_dtype dtype = wb_promote((wb_dtype)a->dtype, (wb_dtype)b->dtype);
    if (!wb_dtype_is_float(dtype))
        return wb_fail_null(WB_ERROR_DTYPE,
                            "matmul: A and B must have floating types, got %s and %s",
                            wb_dtype_name((wb_dtype)a->dtype), wb_dtype_name((wb_dtype)b->dtype));
    const product p = sizes_of(a, b, transpose_a, transpose_b);
    int64_t sizes[WB_MAX_DIMS] = {p.m, p.n};
    const int batch = wb_broadcast(a->ndim - 2, a->sizes + 2, b->ndim - 2, b->sizes + 2, sizes + 2);
    if (p.k != p.k_of_b || batch < 0) return misfit(a, b, transpose_a, transpose_b);
    wb_array *inputs[2] = {wb_cast(a, dtype), wb_cast(b, dtype)};
    if (!inputs[0] || !inputs[1]) return NULL;
    const int64_t flags = (transpose_a ? WB_MATMUL_TRANSPOSE_A : 0) |
                          (transpose_b ? WB_MATMUL_TRANSPOSE_B : 0) | precision_flags(dtype);
    return wb_node_with(WB_OP_matmul, dtype, 2 + batch, sizes, 2, inputs, WB_WORDS(product, flags));
}

wb_array *wb_matmul_transposed(wb_array *a, wb_array *b, bool transpose_a, bool transpose_b) {
    if (!wb_is_usable(a)) return wb_refuse("matmul", a, "A");
    if (!wb_is_usable(b)) return wb_refuse("matmul", b, "B");
    const bool vector = b->ndim == 1 && !transpose_b;
    if (a->ndim < 2 || (b->ndim < 2 && !vector)) return misfit(a, b, transpose_a, transpose_b);
    if (!vector) return matmul(a, b, transpose_a, transpose_b);
    if (a->ndim != 2 || a->sizes[!transpose_a] != b->sizes[0])
        return misfit(a, b, transpose_a, transpose_b);
    if (!wb_check_devices(WB_OP_matmul, 2, (wb_array *const[]){a, b})) return NULL;
    wb_array *column = wb_reshape(b, b->sizes[0], 1);
    wb_array *y = column ? matmul(a, column, transpose_a, false) : NULL;
    return y ? wb_reshape(y, y->sizes[0]) : NULL;
}

wb_array *wb_matmul(wb_array *a, wb_array *b) { return wb_matmul_transposed(a, b, false, false); }

void wb_vjp_matmul(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_array *a = o->inputs[0], *b = o->inputs[1];
    const bool ta = o->attributes.product.flags & WB_MATMUL_TRANSPOSE_A,
               tb = o->attributes.product.flags & WB_MATMUL_TRANSPOSE_B;
    if (want[0])
        out[0] = ta ? wb_matmul_transposed(b, g, tb, true) : wb_matmul_transposed(g, b, false, !tb);
    if (want[1])
        out[1] = tb ? wb_matmul_transposed(g, a, true, ta) : wb_matmul_transposed(a, g, !ta, false);
}

static wb_array *check_matmul(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    wb_array *plain = wb_matmul(arrays[0], arrays[1]);
    wb_array *turned = wb_matmul_transposed(SQUARE(arrays[1]), arrays[0], true, true);
    return ADD(SQUARE(plain), SQUARE(wb_permute(turned, 1, 0, 2)));
}

const wb_check *wb_check_matmul(void) {
    static const wb_check check = {2, {{2, {2, 3}}, {3, {3, 4, 2}}}, -2, 2, check_matmul};
    return &check;
}
