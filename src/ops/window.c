/* Convolutions, pools, unfold and fold: arrays (spatial..., channels, batch) with one to three
 * spatial dimensions. Attributes: kernel, stride, dilation, pad, pad_more (three 21-bit fields
 * each), groups, flip and nspatial and WB_WINDOW_FAST. */
#include <math.h>
#include <stdio.h>

#include "ops/build.h"

static int64_t pack(const int64_t v[3]) {
    int64_t packed = 0;
    for (int i = 0; i < 3; i++) packed |= (v[i] & 0x1fffff) << (21 * i);
    return packed;
}

static void unpack(int64_t packed, int64_t v[3]) {
    for (int i = 0; i < 3; i++)
        v[i] = (int64_t)((uint64_t)(packed >> (21 * i)) << 43) >> 43; /* sign kept */
}

wb_window_geometry wb_window_of(const wb_array *node) {
    wb_window_geometry w = {.groups = node->attributes[5],
                            .flip = node->attributes[6] & 1,
                            .nspatial = (int)(node->attributes[6] >> 1 & 3)};
    unpack(node->attributes[0], w.kernel);
    unpack(node->attributes[1], w.stride);
    unpack(node->attributes[2], w.dilation);
    unpack(node->attributes[3], w.pad);
    unpack(node->attributes[4], w.pad_more);
    return w;
}

static wb_array *window_node(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                             wb_array *const *inputs, const wb_window_geometry *w) {
    const bool is_conv =
        op == WB_OP_conv_forward || op == WB_OP_conv_data || op == WB_OP_conv_filter;
    const int64_t attributes[7] = {pack(w->kernel),
                                   pack(w->stride),
                                   pack(w->dilation),
                                   pack(w->pad),
                                   pack(w->pad_more),
                                   w->groups,
                                   (w->flip ? 1 : 0) | w->nspatial << 1 |
                                       (is_conv && wb_is_matmul_fast(dtype) ? WB_WINDOW_FAST : 0)};
    return wb_node_with(op, dtype, ndim, sizes, ninputs, inputs, 7, attributes);
}

/* ---- geometry ---- */

bool wb_window_takes(int64_t value, int64_t low) { return value >= low && value < 1 << 20; }

static bool check_range(const char *function, const char *what, int64_t value, int64_t low) {
    if (wb_window_takes(value, low)) return true;
    const bool is_low = value < low;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be %s %lld, got %lld", function, what,
                  is_low ? "at least" : "below", is_low ? (long long)low : 1LL << 20,
                  (long long)value);
    return false;
}

void wb_spread_all(int n, int64_t *numbers) {
    for (int i = 1; i < 3; i++)
        if (numbers[i] == WB_SAME_) numbers[i] = i < n ? numbers[i - 1] : 0;
}

void wb_plain_numbers(int n, int64_t *numbers) {
    wb_spread_all(n, numbers);
    for (int i = 0; i < 3; i++)
        if (numbers[i] == WB_NONE_) numbers[i] = 0;
}

void wb_repeat_last(int n, int64_t *numbers) {
    wb_spread_all(n, numbers);
    for (int i = 1; i < n; i++)
        if (numbers[i] == 0) numbers[i] = numbers[i - 1];
}

/* "WB_EACH(1, 0)": n paddings as they would count. */
static void write_each(int n, const int64_t *pad, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "WB_EACH(");
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                 (long long)(pad[i] == WB_NONE_ ? 0 : pad[i]));
    if (used < size) (void)snprintf(text + used, size - used, ")");
}

bool wb_check_padding(const char *function, int n, int64_t *pad) {
    int given = 0;
    wb_spread_all(n, pad);
    for (int i = 0; i < n; i++)
        if (pad[i] != 0) given = i + 1;
    if (given > 0 && given < n) {
        char each[100], all[40] = "";
        write_each(n, pad, each, sizeof each);
        if (given == 1) (void)snprintf(all, sizeof all, "WB_ALL(%lld) or ", (long long)pad[0]);
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: pad is given for %d of %d dimensions: write %s%s",
                      function, given, n, all, each);
        return false;
    }
    wb_plain_numbers(n, pad);
    return true;
}

/* The desc with defaults filled in; false with the error recorded. */
static bool geometry(const char *function, const wb_window_desc *given, const wb_array *x,
                     bool is_pool, wb_window_geometry *w) {
    wb_window_desc filled = *given, *desc = &filled;
    *w = (wb_window_geometry){.nspatial = x->ndim - 2,
                              .groups = desc->groups ? desc->groups : 1,
                              .flip = !desc->cross_correlation};
    if (w->nspatial < 1 || w->nspatial > 3) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: x must have 1 to 3 spatial dimensions, channels and batch, got %s",
                      function, wb_text_of(x));
        return false;
    }
    wb_repeat_last(w->nspatial, desc->kernel);
    wb_repeat_last(w->nspatial, desc->stride);
    wb_repeat_last(w->nspatial, desc->dilation);
    wb_plain_numbers(w->nspatial, desc->pad_more);
    if (!wb_check_padding(function, w->nspatial, desc->pad)) return false;
    for (int i = 0; i < 3; i++) {
        const bool used = i < w->nspatial;
        w->kernel[i] = used && desc->kernel[i] ? desc->kernel[i] : 1;
        w->stride[i] = !used ? 1 : desc->stride[i] ? desc->stride[i] : is_pool ? w->kernel[i] : 1;
        w->dilation[i] = used && desc->dilation[i] ? desc->dilation[i] : 1;
        w->pad[i] = used ? desc->pad[i] : 0;
        w->pad_more[i] = used ? desc->pad_more[i] : 0;
        if (!check_range(function, "kernel size", w->kernel[i], 1) ||
            !check_range(function, "stride", w->stride[i], 1) ||
            !check_range(function, "dilation", w->dilation[i], 1) ||
            !check_range(function, "padding", w->pad[i], 0) ||
            !check_range(function, "more padding after", w->pad_more[i], 1 - (1 << 20)) ||
            !check_range(function, "padding after", w->pad[i] + w->pad_more[i], 0))
            return false;
    }
    return true;
}

/* Spatial sizes of the result. */
static bool out_sizes(const char *function, const wb_window_geometry *w, const wb_array *x,
                      int64_t *sizes) {
    for (int i = 0; i < w->nspatial; i++) {
        const int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1;
        const int64_t padded = x->sizes[i] + 2 * w->pad[i] + w->pad_more[i];
        if (padded < reach) {
            (void)wb_fail(
                WB_ERROR_SHAPE,
                "%s: the window covers %lld in dimension %d, but x is %s with %lld of padding",
                function, (long long)reach, i, wb_text_of(x),
                (long long)(2 * w->pad[i] + w->pad_more[i]));
            return false;
        }
        sizes[i] = (padded - reach) / w->stride[i] + 1;
    }
    return true;
}

static bool float_types(const char *function, wb_dtype dtype) {
    if (wb_dtype_is_float(dtype)) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "%s: the type must be floating, got %s", function,
                  wb_dtype_name(dtype));
    return false;
}

static void sizes_copy(const wb_array *x, int64_t *sizes) {
    for (int d = 0; d < x->ndim; d++) sizes[d] = x->sizes[d];
}

/* ---- convolution ---- */

/* Kernel sizes from w's sizes; channels and groups checked. */
static bool conv_geometry(const char *function, wb_window_desc *desc, const wb_array *x, int wdim,
                          const int64_t *w_sizes, wb_window_geometry *w) {
    if (wdim != x->ndim) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: x is %s, so the filter needs as many dimensions, but is %s", function,
                      wb_text_of(x), wb_sizes_text(wdim, w_sizes));
        return false;
    }
    for (int i = 0; i < 3 && i < x->ndim - 2; i++) {
        if (!check_range(function, "kernel size", w_sizes[i], 1)) return false;
        desc->kernel[i] = w_sizes[i];
    }
    if (!geometry(function, desc, x, false, w) || !check_range(function, "groups", w->groups, 1))
        return false;
    const int64_t channels = x->sizes[w->nspatial], per_group = w_sizes[w->nspatial],
                  filters = w_sizes[w->nspatial + 1];
    if (channels != per_group * w->groups) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: the filter takes %lld input channels, but x has %lld in %s", function,
                      (long long)(per_group * w->groups), (long long)channels, wb_text_of(x));
        return false;
    }
    if (filters % w->groups != 0) {
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %lld groups do not divide %lld filters", function,
                      (long long)w->groups, (long long)filters);
        return false;
    }
    return true;
}

wb_array *wb_conv_op_make(wb_array *x, wb_array *filter, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("conv", x, "x");
    if (!wb_is_usable(filter)) return wb_refuse("conv", filter, "w");
    if (!conv_geometry("conv", &desc, x, filter->ndim, filter->sizes, &w) ||
        !out_sizes("conv", &w, x, sizes))
        return NULL;
    sizes[w.nspatial] = filter->sizes[w.nspatial + 1];
    sizes[w.nspatial + 1] = x->sizes[w.nspatial + 1];
    const wb_dtype dtype = wb_promote((wb_dtype)x->dtype, (wb_dtype)filter->dtype);
    if (!float_types("conv", dtype)) return NULL;
    wb_array *inputs[2] = {wb_cast(x, dtype), wb_cast(filter, dtype)};
    return inputs[0] && inputs[1]
               ? window_node(WB_OP_conv_forward, dtype, x->ndim, sizes, 2, inputs, &w)
               : NULL;
}

static wb_array *conv_data(wb_array *y, wb_array *filter, const int64_t *x_sizes,
                           const wb_window_geometry *w) {
    return window_node(WB_OP_conv_data, (wb_dtype)y->dtype, y->ndim, x_sizes, 2,
                       (wb_array *[]){y, filter}, w);
}

static wb_array *conv_filter(wb_array *x, wb_array *y, const int64_t *w_sizes,
                             const wb_window_geometry *w) {
    return window_node(WB_OP_conv_filter, (wb_dtype)x->dtype, x->ndim, w_sizes, 2,
                       (wb_array *[]){x, y}, w);
}

static wb_array *conv_forward(wb_array *x, wb_array *filter, const int64_t *y_sizes,
                              const wb_window_geometry *w) {
    return window_node(WB_OP_conv_forward, (wb_dtype)x->dtype, x->ndim, y_sizes, 2,
                       (wb_array *[]){x, filter}, w);
}

/* True if y has the sizes that a convolution of x by the filter gives. */
static bool check_result(const char *function, const wb_window_geometry *w, const wb_array *x,
                         const int64_t *w_sizes, const wb_array *y) {
    int64_t sizes[WB_MAX_DIMS];
    if (!out_sizes(function, w, x, sizes)) return false;
    sizes[w->nspatial] = w_sizes[w->nspatial + 1];
    sizes[w->nspatial + 1] = x->sizes[w->nspatial + 1];
    bool fits = y->ndim == x->ndim;
    for (int d = 0; fits && d < y->ndim; d++) fits = y->sizes[d] == sizes[d];
    if (!fits)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: y must be %s, got %s", function,
                      wb_sizes_text(x->ndim, sizes), wb_text_of(y));
    return fits;
}

wb_array *wb_conv_data_make(wb_array *y, wb_array *filter, const int64_t *x_sizes,
                            wb_window_desc desc) {
    wb_window_geometry w;
    if (!wb_is_usable(y)) return wb_refuse("conv_data", y, "y");
    if (!wb_is_usable(filter)) return wb_refuse("conv_data", filter, "w");
    if (!x_sizes) return wb_fail_argument_null("conv_data", "x_sizes");
    if (!wb_check_sizes("conv_data", y->ndim, x_sizes)) return NULL;
    wb_array like = {.ndim = y->ndim};
    for (int d = 0; d < y->ndim; d++) like.sizes[d] = x_sizes[d];
    if (!conv_geometry("conv_data", &desc, &like, filter->ndim, filter->sizes, &w) ||
        !check_result("conv_data", &w, &like, filter->sizes, y))
        return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)y->dtype, (wb_dtype)filter->dtype);
    if (!float_types("conv_data", dtype)) return NULL;
    y = wb_cast(y, dtype), filter = wb_cast(filter, dtype);
    return y && filter ? conv_data(y, filter, x_sizes, &w) : NULL;
}

wb_array *wb_conv_filter_make(wb_array *x, wb_array *y, const int64_t *w_sizes,
                              wb_window_desc desc) {
    wb_window_geometry w;
    if (!wb_is_usable(x)) return wb_refuse("conv_filter", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("conv_filter", y, "y");
    if (!w_sizes) return wb_fail_argument_null("conv_filter", "w_sizes");
    if (!wb_check_sizes("conv_filter", x->ndim, w_sizes) ||
        !conv_geometry("conv_filter", &desc, x, x->ndim, w_sizes, &w) ||
        !check_result("conv_filter", &w, x, w_sizes, y))
        return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)x->dtype, (wb_dtype)y->dtype);
    if (!float_types("conv_filter", dtype)) return NULL;
    x = wb_cast(x, dtype), y = wb_cast(y, dtype);
    return x && y ? conv_filter(x, y, w_sizes, &w) : NULL;
}

void wb_vjp_conv_forward(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    wb_array *x = o->inputs[0], *filter = o->inputs[1];
    if (want[0]) out[0] = conv_data(g, filter, x->sizes, &w);
    if (want[1]) out[1] = conv_filter(x, g, filter->sizes, &w);
}

void wb_vjp_conv_data(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    wb_array *y = o->inputs[0], *filter = o->inputs[1];
    if (want[0]) out[0] = conv_forward(g, filter, y->sizes, &w);
    if (want[1]) out[1] = conv_filter(g, y, filter->sizes, &w);
}

void wb_vjp_conv_filter(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    wb_array *x = o->inputs[0], *y = o->inputs[1];
    if (want[0]) out[0] = conv_data(y, g, x->sizes, &w);
    if (want[1]) out[1] = conv_forward(x, g, y->sizes, &w);
}

/* ---- pools ---- */

static bool pool_geometry(const char *function, wb_array *x, const wb_window_desc *desc,
                          wb_window_geometry *w, int64_t *sizes) {
    if (!float_types(function, (wb_dtype)x->dtype) || !geometry(function, desc, x, true, w))
        return false;
    sizes_copy(x, sizes);
    return out_sizes(function, w, x, sizes);
}

wb_array *wb_maxpool_op_make(wb_array *x, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("maxpool", x, "x");
    if (!pool_geometry("maxpool", x, &desc, &w, sizes)) return NULL;
    for (int i = 0; i < w.nspatial; i++)
        if (w.pad[i] >= w.dilation[i] * (w.kernel[i] - 1) + 1 || x->sizes[i] == 0)
            return wb_fail_null(
                WB_ERROR_SHAPE,
                "maxpool: padding %lld must be smaller than window %lld in dimension %d of %s",
                (long long)w.pad[i], (long long)w.kernel[i], i, wb_text_of(x));
    wb_array *node = window_node(WB_OP_maxpool, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x, &w);
    return wb_result_of(node, 0, (wb_dtype)x->dtype, x->ndim, sizes);
}

static wb_array *pool_scatter(wb_array *y, wb_array *index, const wb_array *x,
                              const wb_window_geometry *w) {
    if (!y || !index) return NULL;
    return window_node(WB_OP_pool_scatter, (wb_dtype)y->dtype, x->ndim, x->sizes, 2,
                       (wb_array *[]){y, index}, w);
}

void wb_vjp_maxpool(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const wb_window_geometry w = wb_window_of(o);
    out[0] = pool_scatter(g, wb_result_of(o, 1, WB_I32, o->ndim, o->sizes), o->inputs[0], &w);
}

void wb_vjp_pool_scatter(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    const wb_array *y = o->inputs[0];
    if (want[0] && g)
        out[0] = window_node(WB_OP_pool_gather, (wb_dtype)g->dtype, y->ndim, y->sizes, 2,
                             (wb_array *[]){g, o->inputs[1]}, &w);
}

void wb_vjp_pool_gather(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    if (want[0]) out[0] = pool_scatter(g, o->inputs[1], o->inputs[0], &w);
}

wb_array *wb_meanpool_op_make(wb_array *x, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("meanpool", x, "x");
    if (!pool_geometry("meanpool", x, &desc, &w, sizes)) return NULL;
    return window_node(WB_OP_meanpool, (wb_dtype)x->dtype, x->ndim, sizes, 1, &x, &w);
}

/* x^p, and 0 where x is 0, with no gradient there. */
static wb_array *power(wb_array *x, double p) {
    wb_array *is_zero = EQ(x, NUM(0));
    return SELECT(is_zero, NUM(0), wb_pow_number(SELECT(is_zero, NUM(1), x), p));
}

wb_array *wb_lppool_op_make(wb_array *x, double p, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("lppool", x, "x");
    if (!(p > 0)) return wb_fail_null(WB_ERROR_ARGUMENT, "lppool: p must be above 0, got %g", p);
    if (!pool_geometry("lppool", x, &desc, &w, sizes)) return NULL;
    if (isinf(p)) return wb_maxpool_op_make(ABS(x), desc);
    const wb_dtype dtype = (wb_dtype)x->dtype;
    double count = 1;
    for (int i = 0; i < w.nspatial; i++) count *= (double)w.kernel[i];
    if (wb_dtype_size(dtype) < 4) x = wb_cast(x, WB_F32);
    wb_array *sum = wb_mul_number(wb_meanpool_op_make(power(ABS(x), p), desc), count);
    return wb_cast(power(sum, 1 / p), dtype);
}

/* Linear pairs: each is the adjoint of the other. */
static void vjp_pair(wb_op other, wb_array *o, wb_array *g, wb_array **out) {
    const wb_window_geometry w = wb_window_of(o);
    const wb_array *x = o->inputs[0];
    if (g) out[0] = window_node(other, (wb_dtype)g->dtype, x->ndim, x->sizes, 1, &g, &w);
}

void wb_vjp_meanpool(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_meanpool_data, o, g, out);
}

void wb_vjp_meanpool_data(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_meanpool, o, g, out);
}

/* ---- unfold, fold ---- */

static void column_sizes(const wb_window_geometry *w, const int64_t *out, int64_t channels,
                         int64_t batch, int64_t columns[3]) {
    columns[0] = 1, columns[1] = channels, columns[2] = batch;
    for (int i = 0; i < w->nspatial; i++) columns[0] *= out[i], columns[1] *= w->kernel[i];
}

wb_array *wb_unfold_make(wb_array *x, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t out[WB_MAX_DIMS], columns[3];
    if (!wb_is_usable(x)) return wb_refuse("unfold", x, "x");
    if (!float_types("unfold", (wb_dtype)x->dtype) || !geometry("unfold", &desc, x, false, &w) ||
        !out_sizes("unfold", &w, x, out))
        return NULL;
    column_sizes(&w, out, x->sizes[w.nspatial], x->sizes[w.nspatial + 1], columns);
    return window_node(WB_OP_unfold, (wb_dtype)x->dtype, 3, columns, 1, &x, &w);
}

wb_array *wb_fold_make(wb_array *columns, int ndim, const int64_t *x_sizes, wb_window_desc desc) {
    wb_window_geometry w;
    int64_t out[WB_MAX_DIMS], wanted[3];
    if (!wb_is_usable(columns)) return wb_refuse("fold", columns, "columns");
    if (!wb_check_sizes("fold", ndim, x_sizes)) return NULL;
    wb_array like = {.ndim = (uint8_t)ndim};
    for (int d = 0; d < ndim; d++) like.sizes[d] = x_sizes[d];
    if (!float_types("fold", (wb_dtype)columns->dtype) ||
        !geometry("fold", &desc, &like, false, &w) || !out_sizes("fold", &w, &like, out))
        return NULL;
    column_sizes(&w, out, x_sizes[w.nspatial], x_sizes[w.nspatial + 1], wanted);
    if (columns->ndim != 3 || columns->sizes[0] != wanted[0] || columns->sizes[1] != wanted[1] ||
        columns->sizes[2] != wanted[2])
        return wb_fail_null(WB_ERROR_SHAPE, "fold: columns must be %s, got %s",
                            wb_sizes_text(3, wanted), wb_text_of(columns));
    return window_node(WB_OP_fold, (wb_dtype)columns->dtype, ndim, x_sizes, 1, &columns, &w);
}

void wb_vjp_unfold(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_fold, o, g, out);
}

void wb_vjp_fold(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_unfold, o, g, out);
}
