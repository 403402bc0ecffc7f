/* Convolutions, pools, unfold and fold: arrays (spatial..., channels, batch) with one to three
 * spatial dimensions. Their description is the wb_window_call that devices get; nodes of a
 * derivative share that of the node that they belong to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "array/payload.h"
#include "ops/build.h"

/* What is read from a desc: the call, its filters, batch and results once they are known. */
typedef struct window {
    wb_window_call call;
    int nspatial;
    int64_t pad_more[3];
} window;

/* A node of the type of its first input. Takes over the reference to the payload. */
static wb_array *node_over(wb_payload *payload, wb_op op, int ndim, const int64_t *sizes,
                           int ninputs, wb_array *const *inputs) {
    const bool is_conv =
        op == WB_OP_conv_forward || op == WB_OP_conv_data || op == WB_OP_conv_filter;
    const wb_dtype dtype = (wb_dtype)inputs[0]->dtype;
    const int64_t flags = is_conv && wb_is_matmul_fast(dtype) ? WB_MATMUL_FAST : 0;
    return wb_node_described(op, dtype, ndim, sizes, ninputs, inputs, WB_WORDS(product, flags),
                             payload);
}

static wb_array *window_node(wb_op op, int ndim, const int64_t *sizes, int ninputs,
                             wb_array *const *inputs, const window *w) {
    wb_payload *payload = wb_payload_of_words(&w->call, sizeof w->call);
    return payload ? node_over(payload, op, ndim, sizes, ninputs, inputs) : NULL;
}

/* A node over the same window as o. */
static wb_array *sibling(const wb_array *o, wb_op op, const wb_array *like, int ninputs,
                         wb_array *const *inputs) {
    return node_over(wb_payload_ref(o->payload), op, like->ndim, like->sizes, ninputs, inputs);
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

bool wb_has_gap(int n, const int64_t *numbers) {
    for (int i = 1; i < n; i++)
        if (numbers[i - 1] == 0 && numbers[i] != 0) return true;
    return false;
}

/* The numbers are for the dimensions that there are; with_zeros: a 0 among them counts. */
static bool check_list(const char *function, const char *what, int n, const int64_t *numbers,
                       bool with_zeros) {
    int64_t got[3];
    int count = 0;
    for (int i = 0; i < 3; i++) {
        got[i] = numbers[i] == WB_NONE_ ? 0 : numbers[i];
        if (numbers[i] != 0 && numbers[i] != WB_SAME_) count = i + 1;
    }
    if (count > n)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must have at most %d number%s, got %s", function,
                      what, n, n == 1 ? "" : "s", wb_sizes_text(count, got));
    else if (!with_zeros && wb_has_gap(n, numbers))
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be positive, got %s", function, what,
                      wb_sizes_text(count, got));
    else
        return true;
    return false;
}

static bool check_lists(const char *function, int n, const wb_window_desc *d) {
    return check_list(function, "kernel", n, d->kernel, false) &&
           check_list(function, "stride", n, d->stride, false) &&
           check_list(function, "dilation", n, d->dilation, false) &&
           check_list(function, "pad", n, d->pad, true) &&
           check_list(function, "pad_more", n, d->pad_more, true);
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
static bool read_desc(const char *function, const wb_window_desc *given, const wb_array *x,
                      bool is_pool, window *w) {
    wb_window_desc filled = *given, *desc = &filled;
    wb_window_call *c = &w->call;
    const int n = x->ndim - 2;
    *w = (window){
        .nspatial = n,
        .call = {.groups = desc->groups ? desc->groups : 1, .flip = !desc->cross_correlation}};
    if (n < 1 || n > 3) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: x must have 1 to 3 spatial dimensions, channels and batch, got %s",
                      function, wb_text_of(x));
        return false;
    }
    c->channels = c->filters = x->sizes[n], c->batch = x->sizes[n + 1];
    if (!check_lists(function, n, desc)) return false;
    wb_repeat_last(n, desc->kernel);
    wb_repeat_last(n, desc->stride);
    wb_repeat_last(n, desc->dilation);
    wb_plain_numbers(n, desc->pad_more);
    if (!wb_check_padding(function, n, desc->pad)) return false;
    for (int i = 0; i < 3; i++) {
        const bool used = i < n;
        c->in[i] = used ? x->sizes[i] : 1;
        c->kernel[i] = used && desc->kernel[i] ? desc->kernel[i] : 1;
        c->stride[i] = !used ? 1 : desc->stride[i] ? desc->stride[i] : is_pool ? c->kernel[i] : 1;
        c->dilation[i] = used && desc->dilation[i] ? desc->dilation[i] : 1;
        c->pad[i] = used ? desc->pad[i] : 0;
        w->pad_more[i] = used ? desc->pad_more[i] : 0;
        if (!check_range(function, "kernel size", c->kernel[i], 1) ||
            !check_range(function, "stride", c->stride[i], 1) ||
            !check_range(function, "dilation", c->dilation[i], 1) ||
            !check_range(function, "padding", c->pad[i], 0) ||
            !check_range(function, "more padding after", w->pad_more[i], 1 - (1 << 20)) ||
            !check_range(function, "padding after", c->pad[i] + w->pad_more[i], 0))
            return false;
    }
    return true;
}

/* Spatial sizes of the result. */
static bool set_out(const char *function, window *w, const wb_array *x) {
    wb_window_call *c = &w->call;
    for (int i = 0; i < 3; i++) {
        const int64_t reach = c->dilation[i] * (c->kernel[i] - 1) + 1,
                      padding = 2 * c->pad[i] + w->pad_more[i];
        if (c->in[i] + padding < reach) {
            (void)wb_fail(WB_ERROR_SHAPE,
                          "%s: the window covers %lld elements of dimension %d, but x is %s with "
                          "%lld elements of padding",
                          function, (long long)reach, i, wb_text_of(x), (long long)padding);
            return false;
        }
        c->out[i] = (c->in[i] + padding - reach) / c->stride[i] + 1;
    }
    return true;
}

/* Sizes of y; how many. */
static int y_sizes(const window *w, int64_t *sizes) {
    for (int i = 0; i < w->nspatial; i++) sizes[i] = w->call.out[i];
    sizes[w->nspatial] = w->call.filters;
    sizes[w->nspatial + 1] = w->call.batch;
    return w->nspatial + 2;
}

static bool float_types(const char *function, wb_dtype dtype) {
    if (wb_dtype_is_float(dtype)) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "%s: the type must be floating, got %s", function,
                  wb_dtype_name(dtype));
    return false;
}

/* ---- convolution ---- */

/* Kernel sizes from w's sizes; channels and groups checked. */
static bool read_conv(const char *function, wb_window_desc *desc, const wb_array *x, int wdim,
                      const int64_t *w_sizes, window *w) {
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
    wb_window_call *c = &w->call;
    if (!read_desc(function, desc, x, false, w) || !check_range(function, "groups", c->groups, 1))
        return false;
    const int64_t per_group = w_sizes[w->nspatial];
    c->filters = w_sizes[w->nspatial + 1];
    if (c->channels != per_group * c->groups) {
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: the filter takes %lld input channels, but x has %lld in %s", function,
                      (long long)(per_group * c->groups), (long long)c->channels, wb_text_of(x));
        return false;
    }
    if (c->filters % c->groups != 0) {
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %lld groups do not divide %lld filters", function,
                      (long long)c->groups, (long long)c->filters);
        return false;
    }
    return set_out(function, w, x);
}

wb_array *wb_conv_op_make(wb_array *x, wb_array *filter, wb_window_desc desc) {
    window w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("conv", x, "x");
    if (!wb_is_usable(filter)) return wb_refuse("conv", filter, "w");
    if (!read_conv("conv", &desc, x, filter->ndim, filter->sizes, &w)) return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)x->dtype, (wb_dtype)filter->dtype);
    if (!float_types("conv", dtype)) return NULL;
    wb_array *inputs[2] = {wb_cast(x, dtype), wb_cast(filter, dtype)};
    return inputs[0] && inputs[1]
               ? window_node(WB_OP_conv_forward, y_sizes(&w, sizes), sizes, 2, inputs, &w)
               : NULL;
}

/* True if y has the sizes that a convolution of x by the filter gives. */
static bool check_y(const char *function, const window *w, const wb_array *y) {
    int64_t sizes[WB_MAX_DIMS];
    const int ndim = y_sizes(w, sizes);
    if (y->ndim == ndim && memcmp(y->sizes, sizes, sizeof *sizes * (size_t)ndim) == 0) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: y must be %s, got %s", function, wb_sizes_text(ndim, sizes),
                  wb_text_of(y));
    return false;
}

wb_array *wb_conv_data_make(wb_array *y, wb_array *filter, const int64_t *x_sizes,
                            wb_window_desc desc) {
    window w;
    if (!wb_is_usable(y)) return wb_refuse("conv_data", y, "y");
    if (!wb_is_usable(filter)) return wb_refuse("conv_data", filter, "w");
    if (!x_sizes) return wb_fail_argument_null("conv_data", "x_sizes");
    if (!wb_check_sizes("conv_data", y->ndim, x_sizes)) return NULL;
    wb_array like = {.ndim = y->ndim};
    for (int d = 0; d < y->ndim; d++) like.sizes[d] = x_sizes[d];
    if (!read_conv("conv_data", &desc, &like, filter->ndim, filter->sizes, &w) ||
        !check_y("conv_data", &w, y))
        return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)y->dtype, (wb_dtype)filter->dtype);
    if (!float_types("conv_data", dtype)) return NULL;
    wb_array *inputs[2] = {wb_cast(y, dtype), wb_cast(filter, dtype)};
    return inputs[0] && inputs[1] ? window_node(WB_OP_conv_data, y->ndim, x_sizes, 2, inputs, &w)
                                  : NULL;
}

wb_array *wb_conv_filter_make(wb_array *x, wb_array *y, const int64_t *w_sizes,
                              wb_window_desc desc) {
    window w;
    if (!wb_is_usable(x)) return wb_refuse("conv_filter", x, "x");
    if (!wb_is_usable(y)) return wb_refuse("conv_filter", y, "y");
    if (!w_sizes) return wb_fail_argument_null("conv_filter", "w_sizes");
    if (!wb_check_sizes("conv_filter", x->ndim, w_sizes) ||
        !read_conv("conv_filter", &desc, x, x->ndim, w_sizes, &w) || !check_y("conv_filter", &w, y))
        return NULL;
    const wb_dtype dtype = wb_promote((wb_dtype)x->dtype, (wb_dtype)y->dtype);
    if (!float_types("conv_filter", dtype)) return NULL;
    wb_array *inputs[2] = {wb_cast(x, dtype), wb_cast(y, dtype)};
    return inputs[0] && inputs[1] ? window_node(WB_OP_conv_filter, x->ndim, w_sizes, 2, inputs, &w)
                                  : NULL;
}

/* The three are linear in each of two of x, the filter w and y = conv(x, w): each derivative is
 * another one of them. */
void wb_vjp_conv_forward(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_array *x = o->inputs[0], *w = o->inputs[1];
    if (want[0]) out[0] = sibling(o, WB_OP_conv_data, x, 2, (wb_array *[]){g, w});
    if (want[1]) out[1] = sibling(o, WB_OP_conv_filter, w, 2, (wb_array *[]){x, g});
}

void wb_vjp_conv_data(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_array *y = o->inputs[0], *w = o->inputs[1];
    if (want[0]) out[0] = sibling(o, WB_OP_conv_forward, y, 2, (wb_array *[]){g, w});
    if (want[1]) out[1] = sibling(o, WB_OP_conv_filter, w, 2, (wb_array *[]){g, y});
}

void wb_vjp_conv_filter(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    wb_array *x = o->inputs[0], *y = o->inputs[1];
    if (want[0]) out[0] = sibling(o, WB_OP_conv_data, x, 2, (wb_array *[]){y, g});
    if (want[1]) out[1] = sibling(o, WB_OP_conv_forward, y, 2, (wb_array *[]){x, g});
}

/* ---- pools ---- */

static bool read_pool(const char *function, const wb_array *x, const wb_window_desc *desc,
                      window *w) {
    return float_types(function, (wb_dtype)x->dtype) && read_desc(function, desc, x, true, w) &&
           set_out(function, w, x);
}

wb_array *wb_maxpool_op_make(wb_array *x, wb_window_desc desc) {
    window w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("maxpool", x, "x");
    if (!read_pool("maxpool", x, &desc, &w)) return NULL;
    const wb_window_call *c = &w.call;
    for (int i = 0; i < w.nspatial; i++)
        if (c->pad[i] >= c->dilation[i] * (c->kernel[i] - 1) + 1 || x->sizes[i] == 0)
            return wb_fail_null(
                WB_ERROR_SHAPE,
                "maxpool: padding %lld must be smaller than window %lld in dimension %d of %s",
                (long long)c->pad[i], (long long)c->kernel[i], i, wb_text_of(x));
    wb_array *node = window_node(WB_OP_maxpool, y_sizes(&w, sizes), sizes, 1, &x, &w);
    return wb_result_of(node, 0, (wb_dtype)x->dtype, x->ndim, sizes);
}

void wb_vjp_maxpool(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    wb_array *index = wb_result_of(o, 1, WB_I32, o->ndim, o->sizes);
    if (index) out[0] = sibling(o, WB_OP_pool_scatter, o->inputs[0], 2, (wb_array *[]){g, index});
}

/* Each is the adjoint of the other, at the places that the index says. */
void wb_vjp_pool_scatter(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    if (want[0] && g)
        out[0] = sibling(o, WB_OP_pool_gather, o->inputs[0], 2, (wb_array *[]){g, o->inputs[1]});
}

void wb_vjp_pool_gather(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    if (want[0] && g)
        out[0] = sibling(o, WB_OP_pool_scatter, o->inputs[0], 2, (wb_array *[]){g, o->inputs[1]});
}

wb_array *wb_meanpool_op_make(wb_array *x, wb_window_desc desc) {
    window w;
    int64_t sizes[WB_MAX_DIMS];
    if (!wb_is_usable(x)) return wb_refuse("meanpool", x, "x");
    if (!read_pool("meanpool", x, &desc, &w)) return NULL;
    return window_node(WB_OP_meanpool, y_sizes(&w, sizes), sizes, 1, &x, &w);
}

/* x^p, and 0 where x is 0, with no gradient there. */
static wb_array *power(wb_array *x, double p) {
    wb_array *is_zero = EQ(x, NUM(0));
    return SELECT(is_zero, NUM(0), wb_pow_number(SELECT(is_zero, NUM(1), x), p));
}

wb_array *wb_lppool_op_make(wb_array *x, double p, wb_window_desc desc) {
    window w;
    if (!wb_is_usable(x)) return wb_refuse("lppool", x, "x");
    if (!(p > 0)) return wb_fail_null(WB_ERROR_ARGUMENT, "lppool: p must be above 0, got %g", p);
    if (!read_pool("lppool", x, &desc, &w)) return NULL;
    if (isinf(p)) return wb_maxpool_op_make(ABS(x), desc);
    const wb_dtype dtype = (wb_dtype)x->dtype;
    double count = 1;
    for (int i = 0; i < 3; i++) count *= (double)w.call.kernel[i];
    if (wb_dtype_size(dtype) < 4) x = wb_cast(x, WB_F32);
    wb_array *sum = wb_mul_number(wb_meanpool_op_make(power(ABS(x), p), desc), count);
    return wb_cast(power(sum, 1 / p), dtype);
}

/* Linear pairs: each is the adjoint of the other. */
static void vjp_pair(wb_op other, const wb_array *o, wb_array *g, wb_array **out) {
    if (g) out[0] = sibling(o, other, o->inputs[0], 1, &g);
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

static bool read_unfold(const char *function, const wb_array *x, wb_dtype dtype,
                        const wb_window_desc *desc, window *w) {
    return float_types(function, dtype) && read_desc(function, desc, x, false, w) &&
           set_out(function, w, x);
}

static void column_sizes(const wb_window_call *c, int64_t columns[3]) {
    columns[0] = 1, columns[1] = c->channels, columns[2] = c->batch;
    for (int i = 0; i < 3; i++) columns[0] *= c->out[i], columns[1] *= c->kernel[i];
}

wb_array *wb_unfold_make(wb_array *x, wb_window_desc desc) {
    window w;
    int64_t columns[3];
    if (!wb_is_usable(x)) return wb_refuse("unfold", x, "x");
    if (!read_unfold("unfold", x, (wb_dtype)x->dtype, &desc, &w)) return NULL;
    column_sizes(&w.call, columns);
    return window_node(WB_OP_unfold, 3, columns, 1, &x, &w);
}

wb_array *wb_fold_make(wb_array *columns, int ndim, const int64_t *x_sizes, wb_window_desc desc) {
    window w;
    int64_t wanted[3];
    if (!wb_is_usable(columns)) return wb_refuse("fold", columns, "columns");
    if (!wb_check_sizes("fold", ndim, x_sizes)) return NULL;
    wb_array like = {.ndim = (uint8_t)ndim};
    for (int d = 0; d < ndim; d++) like.sizes[d] = x_sizes[d];
    if (!read_unfold("fold", &like, (wb_dtype)columns->dtype, &desc, &w)) return NULL;
    column_sizes(&w.call, wanted);
    if (columns->ndim != 3 || memcmp(columns->sizes, wanted, sizeof wanted) != 0)
        return wb_fail_null(WB_ERROR_SHAPE, "fold: columns must be %s, got %s",
                            wb_sizes_text(3, wanted), wb_text_of(columns));
    return window_node(WB_OP_fold, ndim, x_sizes, 1, &columns, &w);
}

void wb_vjp_unfold(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_fold, o, g, out);
}

void wb_vjp_fold(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    vjp_pair(WB_OP_unfold, o, g, out);
}
