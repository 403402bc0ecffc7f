/* Upsample: images made larger, by repeating pixels or interpolating between them. */
#include <math.h>
#include <weber/device.h>

#include "array/use.h"
#include "base/memory.h"
#include "layers/layer.h"

typedef struct wb_upsample_layer {
    wb_layer layer;
    wb_upsample_desc desc;
} wb_upsample_layer;

static const wb_upsample_desc *desc_of(const wb_layer *layer) {
    return &((const wb_upsample_layer *)(const void *)layer)->desc;
}

/* Entry i of up to three numbers, one of which is for all; 0: none are given. */
static double entry(const double *numbers, int i) {
    return numbers[1] == 0 ? numbers[0] : numbers[i];
}

/* The result's spatial sizes; false with the error recorded. */
static bool result_sizes(const wb_upsample_desc *d, const wb_array *x, int64_t *sizes) {
    const int n = x->ndim - 2, given = wb_count_reals(d->scale) + wb_count_reals(d->size);
    const bool is_linear = d->mode != WB_UPSAMPLE_NEAREST;
    if (n < 1 || n > WB_MOST_SIZES || (is_linear && n != d->mode) || (given > 1 && given != n)) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "input must have %d spatial dimension%s, channels and batch, "
                      "got %s",
                      is_linear ? d->mode : given, (is_linear ? d->mode : given) == 1 ? "" : "s",
                      wb_text_of(x));
        return false;
    }
    for (int i = 0; i < n; i++) {
        const double scale = entry(d->scale, i);
        const double size = scale != 0 ? floor(scale * (double)x->sizes[i]) : entry(d->size, i);
        sizes[i] = size < 9e15 ? (int64_t)size : -1;
        const bool is_whole = is_linear || (x->sizes[i] && sizes[i] % x->sizes[i] == 0);
        if (sizes[i] >= 1 && is_whole) continue;
        (void)wb_fail(WB_ERROR_SHAPE, "size must be %s, got %g for dimension %d of %s",
                      is_linear ? "at least 1" : "a positive multiple of the input's", size, i,
                      wb_text_of(x));
        return false;
    }
    return true;
}

/* (W, ..., C, N) as (1, W, 1, ...), repeated to (r, W, r, ...), as (r W, ..., C, N). */
static wb_array *nearest(wb_array *x, const int64_t *larger) {
    const int n = x->ndim - 2;
    int64_t split[WB_MAX_DIMS], wide[WB_MAX_DIMS], sizes[WB_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        split[2 * i] = 1, wide[2 * i] = larger[i] / x->sizes[i];
        split[2 * i + 1] = wide[2 * i + 1] = x->sizes[i];
        sizes[i] = larger[i];
    }
    for (int i = n; i < n + 2; i++) split[n + i] = wide[n + i] = sizes[i] = x->sizes[i];
    wb_array *y = wb_expand_make(wb_reshape_make(x, 2 * n + 2, split), 2 * n + 2, wide);
    return wb_reshape_make(y, n + 2, sizes);
}

/* Where place i of m lies among n pixels. ratio: of the distances of places to those of pixels. */
static double source_of(const wb_upsample_desc *d, int64_t i, int64_t m, int64_t n, double ratio) {
    if (!d->align_corners) return fmax(0, ((double)i + 0.5) * ratio - 0.5);
    return m > 1 ? (double)i * (double)(n - 1) / (double)(m - 1) : 0;
}

/* For each of the m places along a dimension of n: the pixel before it, the pixel after it, and its
 * position between them, from 0 to 1. */
static bool find_places(const wb_upsample_desc *d, int dim, int64_t m, int64_t n, int64_t *before,
                        int64_t *behind, double *part) {
    const double ratio = d->by_scale ? 1 / entry(d->scale, dim) : (double)n / (double)m;
    if (!before || !behind || !part) return false;
    for (int64_t i = 0; i < m; i++) {
        const double at = source_of(d, i, m, n, ratio);
        before[i] = (int64_t)floor(at) < n - 1 ? (int64_t)floor(at) : n - 1;
        behind[i] = before[i] + 1 < n ? before[i] + 1 : n - 1;
        part[i] = at - (double)before[i];
    }
    return true;
}

/* x along one dimension: x_before + part (x_behind - x_before). */
static wb_array *between(const wb_upsample_desc *d, wb_array *x, int dim, int64_t m) {
    int64_t *before = wb_alloc_list(m, sizeof *before);
    int64_t *behind = wb_alloc_list(m, sizeof *behind);
    double *part = wb_alloc_list(m, sizeof *part);
    wb_array *y = NULL;
    if (find_places(d, dim, m, x->sizes[dim], before, behind, part)) {
        int64_t sizes[WB_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
        sizes[dim] = m;
        wb_array *far =
            wb_reshape_make(wb_cast(wb_from(WB_F64, part, m), (wb_dtype)x->dtype), x->ndim, sizes);
        wb_array *low = wb_gather(x, wb_numbers_beside(x, wb_from(WB_I64, before, m)), dim);
        wb_array *high = wb_gather(x, wb_numbers_beside(x, wb_from(WB_I64, behind, m)), dim);
        far = wb_numbers_beside(x, far);
        y = wb_add(low, wb_mul(far, wb_sub(high, low)));
    }
    wb_release(before), wb_release(behind), wb_release(part);
    return y;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_upsample_desc *d = desc_of(layer);
    int64_t sizes[WB_MOST_SIZES];
    if (!result_sizes(d, x, sizes)) return NULL;
    if (d->mode == WB_UPSAMPLE_NEAREST) return nearest(x, sizes);
    if (!wb_dtype_is_float((wb_dtype)x->dtype))
        return wb_fail_null(WB_ERROR_DTYPE, "input must be floating, got %s",
                            wb_dtype_name((wb_dtype)x->dtype));
    const int n = x->ndim - 2;
    for (int i = 0; x && i < n; i++) x = between(d, x, i, sizes[i]);
    return x;
}

static const char *const modes[] = {":nearest", ":linear", ":bilinear", ":trilinear", NULL};

static const wb_field fields[] = {
    WB_ROW(wb_upsample_layer, mode, WB_FIELD_CHOICE, .choices = modes, .usual = -1,
           .positional = true, .text_only = true, .parameter = true),
    WB_ROW(wb_upsample_layer, scale, WB_FIELD_REALS, .is_above = true),
    WB_ROW(wb_upsample_layer, size, WB_FIELD_REALS, .low = 1,
           .instead = offsetof(wb_upsample_layer, desc.scale)),
    WB_ROW_NAMED(wb_upsample_layer, align_corners, "align_corners", WB_FIELD_BOOL, .usual = true,
                 .text_only = true),
    WB_ROW(wb_upsample_layer, by_scale, WB_FIELD_BOOL, .text_only = true),
};

/* As many numbers as the mode has dimensions. Sizes are whole numbers; so are scales of nearest. */
static bool complete(wb_layer *layer) {
    const wb_upsample_desc *d = desc_of(layer);
    const bool is_size = d->size[0] != 0;
    const double *numbers = is_size ? d->size : d->scale;
    const int n = wb_count_reals(numbers);
    if (d->by_scale && (is_size || d->align_corners || d->mode == WB_UPSAMPLE_NEAREST)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "Upsample: by_scale needs a scale, a mode other than :nearest and "
                      ".align_corners = false");
        return false;
    }
    if (n > 1 && d->mode != WB_UPSAMPLE_NEAREST && n != d->mode) {
        static const char *const expected[] = {"one number", "one number or two",
                                               "one number or three"};
        (void)wb_fail(WB_ERROR_ARGUMENT, "Upsample: %s of %s must be %s, got %d",
                      is_size ? "size" : "scale", modes[d->mode], expected[d->mode - 1], n);
        return false;
    }
    if (!is_size && d->mode != WB_UPSAMPLE_NEAREST) return true;
    for (int i = 0; i < n; i++) {
        if (numbers[i] == floor(numbers[i])) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "Upsample: %s must be whole numbers, got %g",
                      is_size ? "size" : "scale of :nearest", numbers[i]);
        return false;
    }
    return true;
}

const wb_layer_class wb_upsample_class = {.name = "Upsample",
                                          WB_LAYER_ROWS(wb_upsample_layer, fields),
                                          .forward = forward,
                                          .complete = complete,
                                          .equals = " = "};

wb_layer *wb_upsample_make(wb_upsample_desc desc) {
    return wb_layer_of_desc(&wb_upsample_class, &desc, sizeof desc);
}

wb_array *wb_upsample_op_make(wb_array *x, wb_upsample_desc desc) {
    if (!wb_is_usable(x)) return wb_refuse("upsample", x, "x");
    wb_layer *layer = wb_upsample_make(desc);
    wb_array *y = layer ? wb_apply(layer, x) : NULL;
    wb_free(layer);
    return y;
}
