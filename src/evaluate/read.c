/* Reading values: what makes an evaluation happen. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "array/view.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "ops/ops.h"

static wb_status refuse_null(const char *function) {
    if (!wb_failed()) (void)wb_fail_argument_null(function, "x");
    return wb_error_status();
}

/* x evaluated, with its bytes where the host can read them; NULL on failure. */
static const char *bytes_of(const char *function, wb_array *x) {
    if (!x) {
        (void)refuse_null(function);
        return NULL;
    }
    if (x->flags & WB_NODE_LOST)
        return wb_fail_null(WB_ERROR_LOST,
                            "%s: the values of %s were lost in an earlier device error", function,
                            wb_text_of(x));
    if (wb_evaluate(1, &x) != WB_OK) return NULL;
    return (const char *)x->buffer->handle + x->offset * (int64_t)wb_dtype_size((wb_dtype)x->dtype);
}

/* ---- one element as a double ---- */

static double half_to_double(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double sign = h >> 15 ? -1 : 1;
    if (exponent == 31) return fraction ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double brain_to_double(uint16_t b) {
    const uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double element(const char *bytes, wb_dtype dtype, int64_t i) {
    const char *at = bytes + i * (int64_t)wb_dtype_size(dtype);
    union {
        float f32;
        double f64;
        uint16_t half;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
    } v;
    memcpy(&v, at, wb_dtype_size(dtype));
    switch (dtype) {
    case WB_F32:
        return (double)v.f32;
    case WB_F64:
        return v.f64;
    case WB_F16:
        return half_to_double(v.half);
    case WB_BF16:
        return brain_to_double(v.half);
    case WB_I32:
        return v.i32;
    case WB_I64:
        return (double)v.i64;
    default:
        return v.u8;
    }
}

/* ---- walking the elements in order ---- */

typedef struct walk {
    wb_layout layout;
    int64_t index[WB_MAX_DIMS], place;
} walk;

static walk walk_of(const wb_array *x) {
    walk w = {.layout = wb_layout_of(x)};
    w.layout.offset = 0;
    return w;
}

static void advance(walk *w) {
    for (int d = 0; d < w->layout.ndim; d++) {
        w->place += w->layout.strides[d];
        if (++w->index[d] < w->layout.sizes[d]) return;
        w->place -= w->layout.strides[d] * w->layout.sizes[d];
        w->index[d] = 0;
    }
}

double wb_item(wb_array *x) {
    if (x && wb_count(x) != 1) {
        (void)wb_fail(WB_ERROR_SHAPE, "item: %s has %lld elements; one is wanted", wb_text_of(x),
                      (long long)wb_count(x));
        return (double)NAN;
    }
    const char *bytes = bytes_of("item", x);
    return bytes ? element(bytes, (wb_dtype)x->dtype, 0) : (double)NAN;
}

wb_status wb_read(wb_array *x, void *out, size_t size_bytes) {
    const char *bytes = bytes_of("read", x);
    if (!bytes) return wb_error_status();
    const size_t size = wb_dtype_size((wb_dtype)x->dtype), total = (size_t)wb_count(x) * size;
    if (size_bytes != total)
        return wb_fail(WB_ERROR_ARGUMENT, "read: %s of %s has %zu bytes, the place for it %zu",
                       wb_text_of(x), wb_dtype_name((wb_dtype)x->dtype), total, size_bytes);
    if (wb_node_is_dense(x)) {
        if (total) memcpy(out, bytes, total);
        return WB_OK;
    }
    walk w = walk_of(x);
    for (char *to = out, *end = to + total; to < end; to += size, advance(&w))
        memcpy(to, bytes + w.place * (int64_t)size, size);
    return WB_OK;
}

static wb_status check_count(const char *function, wb_array *x, int64_t count) {
    if (!x) return refuse_null(function);
    if (count == wb_count(x)) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT, "%s: %s has %lld elements, the place for it %lld", function,
                   wb_text_of(x), (long long)wb_count(x), (long long)count);
}

wb_status wb_read_f64(wb_array *x, double *out, int64_t count) {
    if (check_count("read_f64", x, count) != WB_OK) return wb_error_status();
    const char *bytes = bytes_of("read_f64", x);
    if (!bytes) return wb_error_status();
    walk w = walk_of(x);
    for (int64_t i = 0; i < count; i++, advance(&w))
        out[i] = element(bytes, (wb_dtype)x->dtype, w.place);
    return WB_OK;
}

wb_status wb_read_f32(wb_array *x, float *out, int64_t count) {
    if (check_count("read_f32", x, count) != WB_OK) return wb_error_status();
    const char *bytes = bytes_of("read_f32", x);
    if (!bytes) return wb_error_status();
    walk w = walk_of(x);
    for (int64_t i = 0; i < count; i++, advance(&w))
        out[i] = (float)element(bytes, (wb_dtype)x->dtype, w.place);
    return WB_OK;
}

/* A dense view is read where it lies; of any other a dense copy lives as long as x's scope. */
const void *wb_read_begin(wb_array *x) {
    const char *bytes = bytes_of("read_begin", x);
    if (!bytes) return NULL;
    if (wb_node_is_dense(x)) {
        (void)wb_ref(x);
        return bytes;
    }
    wb_array *dense = wb_copy(x);
    const char *copied = dense ? bytes_of("read_begin", dense) : NULL;
    if (copied) (void)wb_ref(x);
    return copied;
}

void wb_read_end(wb_array *x) { wb_unref(x); }

double wb_at_make(wb_array *x, int ndim, const int64_t *index) {
    if (!x) {
        (void)refuse_null("at");
        return (double)NAN;
    }
    bool inside = ndim == x->ndim;
    for (int d = 0; inside && d < ndim; d++) inside = index[d] >= 0 && index[d] < x->sizes[d];
    if (!inside) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "at: there is no element %s in %s",
                      wb_sizes_text(ndim < 8 ? ndim : 8, index), wb_text_of(x));
        return (double)NAN;
    }
    const char *bytes = bytes_of("at", x);
    if (!bytes) return (double)NAN;
    const wb_layout l = wb_layout_of(x);
    int64_t place = 0;
    for (int d = 0; d < ndim; d++) place += index[d] * l.strides[d];
    return element(bytes, (wb_dtype)x->dtype, place);
}

static bool close_enough(double a, double b, double relative, double absolute) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= absolute + relative * fmax(fabs(a), fabs(b));
}

bool wb_approx(wb_array *a, wb_array *b, double relative, double absolute, char *where,
               size_t where_bytes) {
    const char *x = bytes_of("approx", a), *y = x ? bytes_of("approx", b) : NULL;
    if (!x || !y) {
        if (where && where_bytes) (void)snprintf(where, where_bytes, "%s", wb_error_message());
        return false;
    }
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) same = a->sizes[d] == b->sizes[d];
    if (!same) {
        if (where && where_bytes)
            (void)snprintf(where, where_bytes, "sizes %s and %s", wb_text_of(a), wb_text_of(b));
        return false;
    }
    walk wa = walk_of(a), wb = walk_of(b);
    const int64_t count = wb_count(a);
    for (int64_t i = 0; i < count; i++, advance(&wa), advance(&wb)) {
        const double u = element(x, (wb_dtype)a->dtype, wa.place),
                     v = element(y, (wb_dtype)b->dtype, wb.place);
        if (close_enough(u, v, relative, absolute)) continue;
        if (where && where_bytes)
            (void)snprintf(where, where_bytes, "%s: %.9g and %.9g",
                           wb_sizes_text(a->ndim, wa.index), u, v);
        return false;
    }
    return true;
}

wb_array *wb_copy(wb_array *x) {
    const char *bytes = bytes_of("copy", x);
    if (!bytes) return NULL;
    const size_t size = (size_t)wb_count(x) * wb_dtype_size((wb_dtype)x->dtype);
    wb_buffer *buffer = wb_buffer_new(x->device, size);
    if (!buffer) return NULL;
    if (wb_read(x, buffer->handle, size) == WB_OK)
        return wb_node_data((wb_dtype)x->dtype, x->ndim, x->sizes, buffer);
    wb_buffer_unref(buffer);
    return NULL;
}
