/* Reading values, which triggers an evaluation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "array/view.h"
#include "base/half.h"
#include "base/memory.h"
#include "device/device.h"
#include "evaluate/evaluate.h"
#include "ops/ops.h"
#include "platform/locks.h"

/* x evaluated; false on failure. */
static bool evaluate(const char *function, wb_array *x) {
    if (!wb_may_use_array(function, x, "x") || wb_is_tracing(function)) return false;
    if (wb_evaluate_roots(1, &x) != WB_OK) return false;
    if (wb_is_lost(x)) {
        (void)wb_fail_lost(function, x);
        return false;
    }
    const wb_device *device = x->buffer->device;
    if (!device->has_failed) return true;
    (void)wb_fail(WB_ERROR_LOST, "%s: the values of %s were lost when %s failed: %s", function,
                  wb_text_of(x), device->name, device->failure);
    return false;
}

/* x's first byte, where the host can read it and the device is in step; x is on the host, and
 * evaluated. */
static const char *bytes_of_host(const wb_array *x) {
    if (wb_device_sync(x->buffer->device) != WB_OK) return NULL;
    return (const char *)x->buffer->handle + x->offset * (int64_t)wb_dtype_size((wb_dtype)x->dtype);
}

/* x evaluated, with its bytes where the host can read them; NULL on failure. Of an array elsewhere
 * a copy is read, which belongs to the scope and takes x's place. */
static const char *bytes_of(const char *function, wb_array **x) {
    if (!evaluate(function, *x)) return NULL;
    if (!wb_buffer_is_host((*x)->buffer)) {
        wb_array *copy = wb_move_node(wb_cpu_device(), *x);
        if (!copy || wb_evaluate_roots(1, &copy) != WB_OK) return NULL;
        *x = copy;
    }
    return bytes_of_host(*x);
}

/* ---- one element as a double ---- */

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
        return wb_of_f16(v.half);
    case WB_BF16:
        return (double)wb_of_bf16(v.half);
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

/* ---- one element ---- */

/* The element of x, evaluated, that lies `place` elements after its first. */
static double element_of(const wb_array *x, int64_t place) {
    char bytes[8];
    const int64_t size = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    if (wb_buffer_read(x->buffer, (x->offset + place) * size, bytes, (size_t)size) != WB_OK)
        return (double)NAN;
    return element(bytes, (wb_dtype)x->dtype, 0);
}

double wb_item(wb_array *x) {
    if (!wb_may_use_array("item", x, "x")) return (double)NAN;
    if (wb_count(x) != 1) {
        (void)wb_fail(WB_ERROR_SHAPE, "item: the array must have one element, but %s has %lld",
                      wb_text_of(x), (long long)wb_count(x));
        return (double)NAN;
    }
    return evaluate("item", x) ? element_of(x, 0) : (double)NAN;
}

static int scalar_forbidden, scalar_reads; /* __atomic */
enum { MANY_SCALAR_READS = 1000 };

void wb_allow_scalar(bool allowed) {
    __atomic_store_n(&scalar_forbidden, !allowed, __ATOMIC_RELAXED);
    __atomic_store_n(&scalar_reads, 0, __ATOMIC_RELAXED);
}

static bool may_read_scalars(const wb_array *x) {
    if (wb_buffer_is_host(x->buffer)) return true;
    if (__atomic_load_n(&scalar_forbidden, __ATOMIC_RELAXED)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "at: single elements of %s on %s cannot be read after "
                      "wb_allow_scalar(false); wb_cpu copies the whole array",
                      wb_text_of(x), wb_device_name(x->buffer->device));
        return false;
    }
    if (__atomic_add_fetch(&scalar_reads, 1, __ATOMIC_RELAXED) == MANY_SCALAR_READS)
        wb_log_line(WB_LOG_WARN,
                    "at: %d single elements were read from %s, each waiting for the device; wb_cpu "
                    "copies a whole array at once",
                    MANY_SCALAR_READS, wb_device_name(x->buffer->device));
    return true;
}

double wb_at_make(wb_array *x, int ndim, const int64_t *index) {
    if (!wb_may_use_array("at", x, "x") || !wb_check_list("at", ndim, index)) return (double)NAN;
    bool inside = ndim == x->ndim;
    int64_t at[WB_MAX_DIMS];
    for (int d = 0; inside && d < ndim; d++) {
        at[d] = index[d] + (index[d] < 0 ? x->sizes[d] : 0);
        inside = at[d] >= 0 && at[d] < x->sizes[d];
    }
    if (!inside) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "at: there is no element %s in %s",
                      wb_sizes_text(ndim < 8 ? ndim : 8, index), wb_text_of(x));
        return (double)NAN;
    }
    if (!evaluate("at", x) || !may_read_scalars(x)) return (double)NAN;
    const wb_layout l = wb_layout_of(x);
    int64_t place = 0;
    for (int d = 0; d < ndim; d++) place += at[d] * l.strides[d];
    return element_of(x, place);
}

/* ---- all elements ---- */

/* An array while the host reads it; of one elsewhere a copy, in a scope of its own. */
typedef struct reading {
    wb_array *x;
    const char *bytes;
    bool is_copy;
} reading;

static void end_reading(const reading *r) {
    if (r->is_copy) (void)wb_scope_leave();
}

static bool begin_reading(reading *r, const char *function, wb_array *x) {
    *r = (reading){.x = x};
    if (!evaluate(function, x)) return false;
    r->is_copy = !wb_buffer_is_host(x->buffer);
    if (r->is_copy && wb_scope_open() != WB_OK) return false;
    r->bytes = bytes_of(function, &r->x);
    if (!r->bytes) end_reading(r);
    return r->bytes != NULL;
}

static bool check_out(const char *function, int64_t count, const void *out) {
    if (out || count == 0) return true;
    (void)wb_fail_argument_null(function, "out");
    return false;
}

wb_status(wb_read)(wb_array *x, void *out, size_t size_bytes) {
    return wb_read_make(x, out, size_bytes, 0);
}

wb_status wb_read_make(wb_array *x, void *out, size_t size_bytes, int numbers) {
    if (!wb_may_use_array("read", x, "x") ||
        !wb_check_numbers("read", (wb_dtype)x->dtype, numbers) || !evaluate("read", x))
        return wb_error_status();
    const size_t size = wb_dtype_size((wb_dtype)x->dtype), total = (size_t)wb_count(x) * size;
    if (size_bytes != total)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "read: %s of %s needs %zu bytes, but there is room for %zu", wb_text_of(x),
                       wb_dtype_name((wb_dtype)x->dtype), total, size_bytes);
    if (!check_out("read", (int64_t)total, out)) return wb_error_status();
    if (wb_node_is_dense(x))
        return wb_buffer_read(x->buffer, x->offset * (int64_t)size, out, total);
    reading r;
    if (!begin_reading(&r, "read", x)) return wb_error_status();
    walk w = walk_of(r.x);
    for (char *to = out, *end = to + total; to < end; to += size, advance(&w))
        memcpy(to, r.bytes + w.place * (int64_t)size, size);
    end_reading(&r);
    return WB_OK;
}

static wb_status check_room(const char *function, wb_array *x, int64_t count, const void *out) {
    if (!wb_may_use_array(function, x, "x")) return wb_error_status();
    if (count != wb_count(x))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: %s has %lld elements, but there is room for %lld",
                       function, wb_text_of(x), (long long)wb_count(x), (long long)count);
    return check_out(function, count, out) ? WB_OK : wb_error_status();
}

wb_status wb_read_f64(wb_array *x, double *out, int64_t count) {
    reading r;
    if (check_room("read_f64", x, count, out) != WB_OK || !begin_reading(&r, "read_f64", x))
        return wb_error_status();
    walk w = walk_of(r.x);
    for (int64_t i = 0; i < count; i++, advance(&w))
        out[i] = element(r.bytes, (wb_dtype)x->dtype, w.place);
    end_reading(&r);
    return WB_OK;
}

wb_status wb_read_f32(wb_array *x, float *out, int64_t count) {
    reading r;
    if (check_room("read_f32", x, count, out) != WB_OK || !begin_reading(&r, "read_f32", x))
        return wb_error_status();
    walk w = walk_of(r.x);
    for (int64_t i = 0; i < count; i++, advance(&w))
        out[i] = (float)element(r.bytes, (wb_dtype)x->dtype, w.place);
    end_reading(&r);
    return WB_OK;
}

/* ---- lending ---- */

/* Arrays that are being read, each as often as wb_read_end is still to come, and the copies that
 * are read in their place; of all threads. */
static struct loan {
    const wb_array *x;
    wb_array *copy; /* NULL: x itself is read */
    int64_t readers;
} * loans;
static int64_t loan_count, loan_capacity;

/* NULL: x is not being read. */
static struct loan *loan_of(const wb_array *x) {
    for (int64_t i = 0; i < loan_count; i++)
        if (loans[i].x == x) return &loans[i];
    return NULL;
}

static wb_array *lent(wb_array *x) {
    wb_lock_take(WB_LOCK_LOANS);
    const struct loan *l = loan_of(x);
    wb_array *copy = l && l->copy ? l->copy : x;
    wb_lock_give(WB_LOCK_LOANS);
    return copy;
}

static bool lend(wb_array *x, wb_array *copy) {
    wb_lock_take(WB_LOCK_LOANS);
    struct loan *l = loan_of(x);
    const bool good = l || WB_GROW(loans, loan_count, loan_capacity);
    if (!l && good) {
        l = &loans[loan_count++];
        *l = (struct loan){.x = x, .copy = copy ? wb_ref(copy) : NULL};
    }
    if (good) l->readers++;
    wb_lock_give(WB_LOCK_LOANS);
    return good;
}

/* False if x is not being read. *copy is the copy that nobody reads any more, or NULL. */
static bool take_back(const wb_array *x, wb_array **copy) {
    *copy = NULL;
    wb_lock_take(WB_LOCK_LOANS);
    struct loan *l = loan_of(x);
    if (l && --l->readers == 0) {
        *copy = l->copy;
        *l = loans[--loan_count];
    }
    wb_lock_give(WB_LOCK_LOANS);
    return l != NULL;
}

/* A dense array is read where it lies, if that is the host's memory; of any other a dense copy is
 * lent. */
const void *wb_read_begin(wb_array *x) {
    if (!wb_may_use_array("read_begin", x, "x")) return NULL;
    wb_array *read = lent(x);
    const char *bytes = bytes_of("read_begin", &read);
    if (bytes && !wb_node_is_dense(read)) {
        read = wb_data_copy(read);
        bytes = read ? bytes_of("read_begin", &read) : NULL;
    }
    if (!bytes || !lend(x, read != x ? read : NULL)) return NULL;
    (void)wb_ref(x);
    return bytes;
}

/* After a wb_read_begin that failed there is nothing to end. */
void wb_read_end(wb_array *x) {
    wb_array *copy;
    if (!x || !take_back(x, &copy)) {
        if (x) (void)wb_may_use_array("read_end", x, "x");
        return;
    }
    wb_unref(copy);
    wb_unref(x);
}

static bool close_enough(double a, double b, double relative, double absolute) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= absolute + relative * fmax(fabs(a), fabs(b));
}

static bool say_error(char *where, size_t where_bytes) {
    if (where && where_bytes) (void)snprintf(where, where_bytes, "%s", wb_error_message());
    return false;
}

static bool approx(const reading *x, const reading *y, double relative, double absolute,
                   char *where, size_t where_bytes) {
    const wb_array *a = x->x, *b = y->x;
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
        const double u = element(x->bytes, (wb_dtype)a->dtype, wa.place),
                     v = element(y->bytes, (wb_dtype)b->dtype, wb.place);
        if (close_enough(u, v, relative, absolute)) continue;
        if (where && where_bytes)
            (void)snprintf(where, where_bytes, "%s: %.9g and %.9g",
                           wb_sizes_text(a->ndim, wa.index), u, v);
        return false;
    }
    return true;
}

bool wb_approx(wb_array *a, wb_array *b, double relative, double absolute, char *where,
               size_t where_bytes) {
    reading x, y;
    if (!begin_reading(&x, "approx", a)) return say_error(where, where_bytes);
    if (!begin_reading(&y, "approx", b)) {
        end_reading(&x);
        return say_error(where, where_bytes);
    }
    const bool same = approx(&x, &y, relative, absolute, where, where_bytes);
    end_reading(&y);
    end_reading(&x);
    return same;
}

/* A dense copy where x is. */
static wb_buffer *copy_there(wb_array *x) {
    /* a join of one: the device's own kernel */
    wb_array *dense = wb_node_with(WB_OP_concat, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x,
                                   WB_WORDS(along, 0));
    if (!dense || wb_evaluate_roots(1, &dense) != WB_OK) return NULL;
    return wb_buffer_ref(dense->buffer);
}

/* The numbers of x, which are computed, in memory of their own. */
static wb_buffer *copy_numbers(wb_array *x) {
    const bool is_dense = wb_node_is_dense(x);
    if (!is_dense && !wb_buffer_is_host(x->buffer)) return copy_there(x);
    const size_t size = wb_dtype_size((wb_dtype)x->dtype), total = (size_t)wb_count(x) * size;
    wb_buffer *buffer = wb_buffer_new(x->buffer->device, total, "copy");
    if (!buffer) return NULL;
    const wb_status status =
        is_dense ? wb_buffer_copy(buffer, 0, x->buffer, x->offset * (int64_t)size, total)
                 : wb_read(x, buffer->handle, total);
    if (status == WB_OK) return buffer;
    wb_buffer_unref(buffer);
    return NULL;
}

wb_array *wb_data_copy(wb_array *x) {
    if (!evaluate("copy", x)) return NULL;
    return wb_node_data((wb_dtype)x->dtype, x->ndim, x->sizes, copy_numbers(x));
}

wb_array *wb_copy(wb_array *x) {
    if (!evaluate("copy", x)) return NULL;
    wb_array *y = wb_copied(x);
    wb_buffer *buffer = y ? copy_numbers(x) : NULL;
    if (!buffer) return NULL;
    y->buffer = buffer, y->device = buffer->device;
    return y;
}
