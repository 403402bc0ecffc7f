/* Reads plain files as they are and gzip files through zlib, also several gzip files joined into
 * one. Errors name the offset in the unzipped bytes, and how much a file may inflate to is
 * limited. */
#include "data/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/inflate.h"
#include "base/memory.h"

enum { INPUT_BYTES = 1 << 16, MOST_PIECE = 1 << 30 };

wb_status wb_stream_fault(const wb_stream *s, const char *what) {
    return wb_fail(WB_ERROR_FORMAT, "%s: %s at offset %lld%s", s->path, what, (long long)s->offset,
                   s->zipped ? " of the unzipped bytes" : "");
}

wb_status wb_stream_may_become(const wb_stream *s, int64_t bytes) {
    const int64_t most = wb_most_inflated(s->file_bytes);
    if (!s->zipped || bytes <= most) return WB_OK;
    return wb_fail(WB_ERROR_FORMAT,
                   "%s: inflates to %lld bytes or more; at most %lld are allowed "
                   "(" WB_INFLATE_ADVICE ")",
                   s->path, (long long)bytes, (long long)most);
}

static bool refill(wb_stream *s) {
    const size_t got = fread(s->input, 1, INPUT_BYTES, s->file);
    s->zlib.next_in = s->input;
    s->zlib.avail_in = (uInt)got;
    s->file_offset += (int64_t)got;
    return got > 0;
}

/* Bytes 1f 8b begin a member; the buffer may end between them, so only the first is checked here,
 * and zlib refuses a wrong second one. */
static bool begins_member(const wb_stream *s) {
    return s->zlib.avail_in && *s->zlib.next_in == 0x1f;
}

wb_status wb_stream_open(wb_stream *s, const char *path) {
    struct stat info;
    *s = (wb_stream){.path = path, .file = fopen(path, "rb"), .file_bytes = -1};
    if (!s->file) return wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
    if (fstat(fileno(s->file), &info) == 0 && S_ISREG(info.st_mode)) s->file_bytes = info.st_size;
    s->input = wb_alloc(INPUT_BYTES);
    if (!s->input) return WB_ERROR_MEMORY;
    if (!refill(s) && ferror(s->file)) return wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
    if (s->zlib.avail_in < 2 || s->input[0] != 0x1f || s->input[1] != 0x8b) return WB_OK;
    if (inflateInit2(&s->zlib, 16 + MAX_WBITS) != Z_OK)
        return wb_fail(WB_ERROR_MEMORY, "%s: no memory for zlib", path);
    s->zipped = true;
    return WB_OK;
}

void wb_stream_close(wb_stream *s) {
    if (s->zipped) (void)inflateEnd(&s->zlib);
    if (s->file) (void)fclose(s->file);
    wb_release(s->input);
}

/* True at the end of the last member. */
static bool has_ended(wb_stream *s, int result) {
    if (result != Z_STREAM_END) return false;
    if (s->zlib.avail_in == 0) (void)refill(s);
    return !begins_member(s) || inflateReset(&s->zlib) != Z_OK;
}

static size_t read_zipped(wb_stream *s, unsigned char *out, size_t size) {
    s->zlib.next_out = out;
    s->zlib.avail_out = (uInt)size;
    while (s->zlib.avail_out && !s->ended) {
        if (s->zlib.avail_in == 0 && !refill(s)) break;
        const int result = inflate(&s->zlib, Z_NO_FLUSH);
        if (result != Z_OK && result != Z_STREAM_END) break;
        s->ended = has_ended(s, result);
    }
    s->zlib.next_out = NULL;
    return size - s->zlib.avail_out;
}

static size_t read_plain(wb_stream *s, unsigned char *out, size_t size) {
    size_t done = 0;
    while (done < size && (s->zlib.avail_in || refill(s))) {
        const size_t part = size - done < s->zlib.avail_in ? size - done : s->zlib.avail_in;
        memcpy(out + done, s->zlib.next_in, part);
        s->zlib.next_in += part;
        s->zlib.avail_in -= (uInt)part;
        done += part;
    }
    return done;
}

size_t wb_stream_read(wb_stream *s, void *out, size_t size) {
    unsigned char *bytes = out;
    size_t done = 0;
    while (done < size) {
        const size_t part = size - done < MOST_PIECE ? size - done : MOST_PIECE;
        const size_t got =
            s->zipped ? read_zipped(s, bytes + done, part) : read_plain(s, bytes + done, part);
        done += got;
        if (got < part) break;
    }
    s->offset += (int64_t)done;
    return done;
}

wb_status wb_stream_expect_end(wb_stream *s) {
    unsigned char more;
    const int64_t end = s->offset;
    const bool goes_on = wb_stream_read(s, &more, 1) > 0;
    s->offset = end;
    if (goes_on) return wb_stream_fault(s, "the file goes on after its last element");
    if (!s->zipped) return WB_OK;
    if (!s->ended) return wb_stream_fault(s, "the compressed stream is cut short or damaged");
    if (s->zlib.avail_in == 0 && !refill(s)) return WB_OK;
    return wb_fail(WB_ERROR_FORMAT,
                   "%s: the file goes on after the compressed stream, at offset %lld", s->path,
                   (long long)(s->file_offset - s->zlib.avail_in));
}
