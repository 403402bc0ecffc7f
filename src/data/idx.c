/* The IDX format: 0, 0, type, dimensions; sizes as 32-bit numbers, slowest first; elements. All
 * big-endian. LeCun, Cortes and Burges: The MNIST database, http://yann.lecun.com/exdb/mnist. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include <weber/data.h>

#include "array/array.h"
#include "base/memory.h"

enum { INPUT_BYTES = 1 << 16 };

/* A file read front to back, through zlib where it begins as gzip does. */
typedef struct reader {
    const char *path;
    FILE *file;
    bool zipped, ended;   /* ended: the compressed stream is complete */
    z_stream stream;      /* also keeps what was read of a plain file: next_in, avail_in */
    int64_t offset;       /* bytes given out */
    int64_t file_offset;  /* bytes taken from the file */
    unsigned char *input; /* INPUT_BYTES */
} reader;

static wb_status fail_at(const reader *r, const char *what) {
    return wb_fail(WB_ERROR_FORMAT, "%s: %s at offset %lld%s", r->path, what, (long long)r->offset,
                   r->zipped ? " of the unzipped bytes" : "");
}

static bool refill(reader *r) {
    const size_t got = fread(r->input, 1, INPUT_BYTES, r->file);
    r->stream.next_in = r->input;
    r->stream.avail_in = (uInt)got;
    r->file_offset += (int64_t)got;
    return got > 0;
}

static wb_status reader_open(reader *r, const char *path) {
    *r = (reader){.path = path, .file = fopen(path, "rb")};
    if (!r->file) return wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
    r->input = wb_alloc(INPUT_BYTES);
    if (!r->input) return WB_ERROR_MEMORY;
    if (!refill(r) && ferror(r->file)) return wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
    const bool gzip = r->stream.avail_in >= 2 && r->input[0] == 0x1f && r->input[1] == 0x8b;
    if (!gzip) return WB_OK;
    if (inflateInit2(&r->stream, 16 + MAX_WBITS) != Z_OK)
        return wb_fail(WB_ERROR_MEMORY, "%s: no memory for zlib", path);
    r->zipped = true;
    return WB_OK;
}

static void reader_close(reader *r) {
    if (r->zipped) (void)inflateEnd(&r->stream);
    if (r->file) (void)fclose(r->file);
    wb_release(r->input);
}

/* Up to size bytes; fewer at the end, or where the stream is damaged. */
static size_t read_zipped(reader *r, unsigned char *out, size_t size) {
    r->stream.next_out = out;
    r->stream.avail_out = (uInt)size;
    while (r->stream.avail_out && !r->ended) {
        if (r->stream.avail_in == 0 && !refill(r)) break;
        const int result = inflate(&r->stream, Z_NO_FLUSH);
        if (result == Z_STREAM_END)
            r->ended = true;
        else if (result != Z_OK)
            break;
    }
    r->stream.next_out = NULL;
    return size - r->stream.avail_out;
}

static size_t read_plain(reader *r, unsigned char *out, size_t size) {
    size_t done = 0;
    while (done < size && (r->stream.avail_in || refill(r))) {
        const size_t part = size - done < r->stream.avail_in ? size - done : r->stream.avail_in;
        memcpy(out + done, r->stream.next_in, part);
        r->stream.next_in += part;
        r->stream.avail_in -= (uInt)part;
        done += part;
    }
    return done;
}

static wb_status read_bytes(reader *r, void *out, int64_t size) {
    unsigned char *bytes = out;
    while (size > 0) {
        const size_t part = size < (1 << 30) ? (size_t)size : 1u << 30;
        const size_t got = r->zipped ? read_zipped(r, bytes, part) : read_plain(r, bytes, part);
        r->offset += (int64_t)got;
        if (got < part) return fail_at(r, "the file is cut short or damaged");
        bytes += part, size -= (int64_t)part;
    }
    return WB_OK;
}

/* Nothing may follow, and a compressed stream has to reach its end with a right checksum. */
static wb_status expect_end(reader *r) {
    unsigned char more = 0;
    const size_t got = r->zipped ? read_zipped(r, &more, 1) : read_plain(r, &more, 1);
    if (got) return fail_at(r, "the file goes on behind its last element");
    if (!r->zipped) return WB_OK;
    if (!r->ended) return fail_at(r, "the compressed stream is cut short or damaged");
    if (r->stream.avail_in == 0 && !refill(r)) return WB_OK;
    return wb_fail(WB_ERROR_FORMAT,
                   "%s: the file goes on behind the compressed stream, at offset %lld", r->path,
                   (long long)(r->file_offset - r->stream.avail_in));
}

/* ---- the header ---- */

typedef struct header {
    wb_dtype dtype;
    int ndim;
    int64_t sizes[WB_MAX_DIMS];
} header;

static bool dtype_of_code(int code, wb_dtype *dtype) {
    switch (code) {
    case 0x08:
        *dtype = WB_U8;
        return true;
    case 0x0C:
        *dtype = WB_I32;
        return true;
    case 0x0D:
        *dtype = WB_F32;
        return true;
    case 0x0E:
        *dtype = WB_F64;
        return true;
    default:
        return false;
    }
}

static wb_status read_header(reader *r, header *h) {
    unsigned char bytes[4] = {0};
    if (read_bytes(r, bytes, 4) != WB_OK) return WB_ERROR_FORMAT;
    if (bytes[0] || bytes[1] || bytes[2] < 0x08 || bytes[2] > 0x0E)
        return wb_fail(WB_ERROR_FORMAT,

                       "%s: not an IDX file: it begins with %02x %02x %02x %02x at offset 0",
                       r->path, bytes[0], bytes[1], bytes[2], bytes[3]);
    if (!dtype_of_code(bytes[2], &h->dtype))
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

/* Bytes of the elements, or -1 with the error recorded: the sizes must be possible in a file of
 * this length. Deflate shrinks at most 1032 to 1. */
static int64_t payload_bytes(const reader *r, const header *h) {
    struct stat info;
    const int64_t count = wb_count_sizes(h->ndim, h->sizes);
    const int64_t limit =
        fstat(fileno(r->file), &info) == 0 ? (int64_t)info.st_size * 1040 : INT64_MAX;
    const int64_t element = (int64_t)wb_dtype_size(h->dtype);
    if (count >= 0 && count <= limit / element) return count * element;
    (void)wb_fail(WB_ERROR_FORMAT,
                  "%s: sizes %s (up to offset %lld) are more than the file can hold: it is cut "
                  "short or damaged",
                  r->path, wb_sizes_text(h->ndim, h->sizes), (long long)r->offset);
    return -1;
}

static void swap_bytes(unsigned char *bytes, int64_t count, size_t element) {
    for (int64_t i = 0; i < count; i++, bytes += element)
        for (size_t lo = 0, hi = element - 1; lo < hi; lo++, hi--) {
            const unsigned char moved = bytes[lo];
            bytes[lo] = bytes[hi], bytes[hi] = moved;
        }
}

static wb_array *read_idx(reader *r) {
    header h = {0};
    if (read_header(r, &h) != WB_OK) return NULL;
    const int64_t size = payload_bytes(r, &h);
    wb_buffer *buffer = size < 0 ? NULL : wb_buffer_new(wb_cpu_device(), wb_bytes(size), "data");
    if (!buffer) return NULL;
    if (read_bytes(r, buffer->handle, size) != WB_OK || expect_end(r) != WB_OK) {
        wb_buffer_unref(buffer);
        return NULL;
    }
    const int one = 1;
    const size_t element = wb_dtype_size(h.dtype);
    if (*(const char *)&one) swap_bytes(buffer->handle, size / (int64_t)element, element);
    return wb_node_data(h.dtype, h.ndim, h.sizes, buffer);
}

wb_array *wb_read_idx(const char *path) {
    if (wb_failed()) return wb_not_run_null("wb_read_idx");
    if (!path) return wb_fail_argument_null("wb_read_idx", "path");
    reader r;
    wb_array *x = reader_open(&r, path) == WB_OK ? read_idx(&r) : NULL;
    reader_close(&r);
    return x;
}
