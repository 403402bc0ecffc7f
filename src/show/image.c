/* Images as PNG files (W3C, Portable Network Graphics, third edition): 8 bits, grey or RGB, rows
 * without filters. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <weber/show.h>
#include <zlib.h>

#include "array/use.h"
#include "base/memory.h"
#include "base/replace.h"

enum { MOST = 0x7FFFFFFF, PIECE = 1 << 16 };

/* ---- numbers as bytes ---- */

static bool has_pixels(const char *path, const wb_array *x) {
    const int64_t channels = wb_size(x, 2), width = wb_size(x, 0), height = wb_size(x, 1);
    const bool fits = (x->ndim == 2 || x->ndim == 3) && (channels == 1 || channels == 3);
    if (fits && width > 0 && height > 0 && width <= MOST && height <= MOST) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "image_write: %s: an image must be (W, H), (W, H, 1) or (W, H, 3), with pixels, "
                  "got %s",
                  path, wb_text_of(x));
    return false;
}

/* Into bytes, first dimension fastest; false with an error. */
static bool read_bytes(const char *path, wb_array *x, unsigned char *bytes, float *numbers) {
    const int64_t count = wb_count(x);
    if (x->dtype == WB_U8) return wb_read(x, bytes, (size_t)count) == WB_OK;
    if (wb_read_f32(x, numbers, count) != WB_OK) return false;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(numbers[i]))
            return wb_fail(WB_ERROR_NUMBER, "image_write: %s: pixel (%lld, %lld) of %s is NaN",
                           path, (long long)(i % x->sizes[0]),
                           (long long)(i / x->sizes[0] % x->sizes[1]), wb_text_of(x)) == WB_OK;
        bytes[i] = (unsigned char)lroundf(255 * fminf(fmaxf(numbers[i], 0), 1));
    }
    return true;
}

static unsigned char *bytes_of(const char *path, wb_array *x) {
    const int64_t count = wb_count(x);
    if (x->dtype == WB_I32 || x->dtype == WB_I64)
        return wb_fail_null(WB_ERROR_DTYPE,
                            "image_write: %s: an image must be u8, bool or floating, got %s", path,
                            wb_dtype_name((wb_dtype)x->dtype));
    unsigned char *bytes = wb_alloc_list(count, 1);
    float *numbers = bytes ? wb_alloc_list(x->dtype == WB_U8 ? 1 : count, sizeof *numbers) : NULL;
    const bool is_read = numbers && read_bytes(path, x, bytes, numbers);
    wb_release(numbers);
    if (is_read) return bytes;
    wb_release(bytes);
    return NULL;
}

/* ---- the file ---- */

static void put32(unsigned char *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* Length, name, data, and the checksum of the last two. */
static bool write_chunk(FILE *file, const char *name, const unsigned char *data, uint32_t size) {
    unsigned char length[4], sum[4];
    uLong crc = crc32(0, (const Bytef *)name, 4);
    if (size) crc = crc32(crc, data, size);
    put32(length, size), put32(sum, (uint32_t)crc);
    return fwrite(length, 1, 4, file) == 4 && fwrite(name, 1, 4, file) == 4 &&
           fwrite(data, 1, size, file) == size && fwrite(sum, 1, 4, file) == 4;
}

/* Compresses what the stream has been given, piece by piece. */
static bool write_pieces(FILE *file, z_stream *stream, unsigned char *piece, int flush) {
    do {
        stream->next_out = piece, stream->avail_out = PIECE;
        (void)deflate(stream, flush); /* has room, and so cannot fail */
        const uint32_t size = PIECE - stream->avail_out;
        if (size && !write_chunk(file, "IDAT", piece, size)) return false;
    } while (stream->avail_out == 0);
    return true;
}

/* Each row begins with the number of its filter, 0; planes become pixels. */
static bool write_rows(FILE *file, z_stream *stream, const wb_array *x, const unsigned char *bytes,
                       unsigned char *row, unsigned char *piece) {
    const int64_t width = x->sizes[0], height = x->sizes[1], channels = wb_size(x, 2);
    bool good = true;
    for (int64_t h = 0; h < height && good; h++) {
        row[0] = 0;
        for (int64_t w = 0; w < width; w++)
            for (int64_t c = 0; c < channels; c++)
                row[1 + w * channels + c] = bytes[(c * height + h) * width + w];
        stream->next_in = row, stream->avail_in = (uInt)(1 + width * channels);
        good = write_pieces(file, stream, piece, h + 1 < height ? Z_NO_FLUSH : Z_FINISH);
    }
    return good;
}

static bool write_png(FILE *file, const wb_array *x, const unsigned char *bytes, unsigned char *row,
                      unsigned char *piece) {
    static const unsigned char signature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    z_stream stream = {.zalloc = Z_NULL};
    unsigned char header[13] = {0};
    put32(header, (uint32_t)x->sizes[0]), put32(header + 4, (uint32_t)x->sizes[1]);
    header[8] = 8, header[9] = wb_size(x, 2) == 3 ? 2 : 0; /* bits; colour: RGB or grey */
    if (deflateInit(&stream, Z_DEFAULT_COMPRESSION) != Z_OK) return errno = ENOMEM, false;
    const bool good = fwrite(signature, 1, sizeof signature, file) == sizeof signature &&
                      write_chunk(file, "IHDR", header, sizeof header) &&
                      write_rows(file, &stream, x, bytes, row, piece) &&
                      write_chunk(file, "IEND", header, 0);
    (void)deflateEnd(&stream);
    return good;
}

static wb_status io_error(const char *path, const char *what) {
    return wb_fail(WB_ERROR_IO, "image_write: %s: %s: %s", path, what, wb_replace_words(errno));
}

static wb_status write_file(const char *path, const wb_array *x, const unsigned char *bytes,
                            unsigned char *row, unsigned char *piece) {
    wb_replacement file;
    if (!wb_replace_begin(&file, path)) return io_error(path, "cannot be made");
    const bool good = write_png(file.stream, x, bytes, row, piece);
    const int why = errno;
    const bool is_replaced = wb_replace_end(&file, good);
    if (!good) errno = why;
    return good && is_replaced ? WB_OK : io_error(path, "cannot be written");
}

/* How other programs interpret the bytes. */
static bool is_named_png(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *ending = strrchr(name, '.');
    if (!ending || strcasecmp(ending, ".png") == 0) return true;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "image_write: the file is a PNG, so its name must end in "
                   ".png, got %s",
                   path) == WB_OK;
}

wb_status wb_image_write(const char *path, wb_array *x) {
    if (!wb_may_use_array("image_write", x, "x")) return wb_error_status();
    if (!path) return (void)wb_fail_argument_null("image_write", "the path"), WB_ERROR_ARGUMENT;
    if (!is_named_png(path) || !has_pixels(path, x)) return wb_error_status();
    unsigned char *bytes = bytes_of(path, x);
    unsigned char *row = bytes ? wb_alloc_list(x->sizes[0] * wb_size(x, 2) + 1, 1) : NULL;
    unsigned char *piece = row ? wb_alloc(PIECE) : NULL;
    const wb_status status = piece ? write_file(path, x, bytes, row, piece) : wb_error_status();
    wb_release(bytes), wb_release(row), wb_release(piece);
    return status;
}
