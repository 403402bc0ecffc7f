/* The IDX format: 0, 0, type, dimensions; sizes as 32-bit numbers, slowest first; elements. All
 * big-endian. LeCun, Cortes and Burges: The MNIST database, http://yann.lecun.com/exdb/mnist. */
#include <string.h>

#include <weber/data.h>

#include "array/array.h"
#include "base/memory.h"
#include "base/widen.h"
#include "data/stream.h"

/* Bytes that must be there. */
static wb_status read_bytes(wb_stream *s, void *out, int64_t size) {
    const size_t got = wb_stream_read(s, out, (size_t)size);
    return got == (size_t)size ? WB_OK : wb_stream_fault(s, "the file is cut short or damaged");
}

/* ---- the header ---- */

static const struct type {
    int code, size_bytes; /* of an element in the file */
    wb_dtype dtype;
} types[] = {{0x08, 1, WB_U8},  {0x09, 1, WB_I32}, {0x0B, 2, WB_I32},
             {0x0C, 4, WB_I32}, {0x0D, 4, WB_F32}, {0x0E, 8, WB_F64}};

static const struct type *type_of_code(int code) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code) return &types[i];
    return NULL;
}

typedef struct header {
    const struct type *type;
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
} header;

static wb_status read_header(wb_stream *r, header *h) {
    unsigned char bytes[4] = {0};
    if (read_bytes(r, bytes, 4) != WB_OK) return WB_ERROR_FORMAT;
    if (bytes[0] || bytes[1] || bytes[2] < 0x08 || bytes[2] > 0x0E)
        return wb_fail(WB_ERROR_FORMAT,
                       "%s: not an IDX file: it begins with %02x %02x %02x %02x at offset 0",
                       r->path, bytes[0], bytes[1], bytes[2], bytes[3]);
    if (!(h->type = type_of_code(bytes[2])))
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "%s: elements of IDX type %02x (at offset 2) are not supported", r->path,
                       bytes[2]);
    h->ndim = bytes[3];
    if (h->ndim > WB_MAX_DIMS)
        return wb_fail(WB_ERROR_FORMAT, "%s: %d dimensions (at offset 3); at most %d are possible",
                       r->path, h->ndim, WB_MAX_DIMS);
    for (int d = h->ndim - 1; d >= 0; d--) {
        if (read_bytes(r, bytes, 4) != WB_OK) return WB_ERROR_FORMAT;
        h->sizes[d] =
            (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 | bytes[3];
    }
    return WB_OK;
}

/* Elements, or -1 with the error recorded: the sizes must be possible in a file of this length.
 * Deflate shrinks at most 1032 to 1. */
static int64_t count_elements(const wb_stream *r, const header *h) {
    const int64_t count = wb_count_sizes(h->ndim, h->sizes);
    const int64_t limit = r->file_bytes < 0 ? INT64_MAX : r->file_bytes * 1040;
    if (count < 0 || count > limit / h->type->size_bytes) {
        (void)wb_fail(WB_ERROR_FORMAT,
                      "%s: sizes %s (up to offset %lld) are more than the file can hold: it is cut "
                      "short or damaged",
                      r->path, wb_sizes_text(h->ndim, h->sizes), (long long)r->offset);
        return -1;
    }
    return wb_stream_may_become(r, r->offset + count * h->type->size_bytes) == WB_OK ? count : -1;
}

static void swap_bytes(unsigned char *bytes, int64_t count, size_t element) {
    for (int64_t i = 0; i < count; i++, bytes += element)
        for (size_t lo = 0, hi = element - 1; lo < hi; lo++, hi--) {
            const unsigned char moved = bytes[lo];
            bytes[lo] = bytes[hi], bytes[hi] = moved;
        }
}

/* i8 and i16 become i32. */
static wb_status read_widened(wb_stream *r, const header *h, int64_t count, void *out) {
    const int64_t size = count * h->type->size_bytes;
    unsigned char *bytes = wb_alloc(wb_bytes(size));
    if (!bytes) return WB_ERROR_MEMORY;
    const wb_status status = read_bytes(r, bytes, size);
    if (status == WB_OK)
        (void)wb_widen((wb_integers){h->type->size_bytes, true, true}, bytes, count, out);
    wb_release(bytes);
    return status;
}

static wb_status read_elements(wb_stream *r, const header *h, int64_t count, void *out) {
    const size_t element = wb_dtype_size(h->type->dtype);
    if ((size_t)h->type->size_bytes != element) return read_widened(r, h, count, out);
    const wb_status status = read_bytes(r, out, count * (int64_t)element);
    const int one = 1;
    if (status == WB_OK && *(const char *)&one) swap_bytes(out, count, element);
    return status;
}

static wb_array *read_idx(wb_stream *r) {
    header h = {0};
    if (read_header(r, &h) != WB_OK) return NULL;
    const int64_t count = count_elements(r, &h);
    if (count < 0) return NULL;
    const int64_t size = count * (int64_t)wb_dtype_size(h.type->dtype);
    wb_buffer *buffer = wb_buffer_new(wb_cpu_device(), wb_bytes(size), "data");
    if (!buffer) return NULL;
    if (read_elements(r, &h, count, buffer->handle) == WB_OK && wb_stream_expect_end(r) == WB_OK)
        return wb_node_data(h.type->dtype, h.ndim, h.sizes, buffer);
    wb_buffer_unref(buffer);
    return NULL;
}

wb_array *wb_read_idx(const char *path) {
    if (wb_failed()) return wb_not_run_null("wb_read_idx");
    if (!path) return wb_fail_argument_null("wb_read_idx", "path");
    wb_stream r;
    wb_array *x = wb_stream_open(&r, path) == WB_OK ? read_idx(&r) : NULL;
    wb_stream_close(&r);
    return x;
}
