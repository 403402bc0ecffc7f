/* A small compressed file can claim gigabytes, so there is a limit: WEBER_INFLATE_MIB, else 2 GiB
 * or four times the size of the file, whichever is more. */
#include "base/inflate.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int64_t wb_most_inflated(int64_t file_bytes) {
    enum { DEFAULT_MIB = 2048, TIMES = 4, MOST_DIGITS = 12 };
    const char *text = getenv("WEBER_INFLATE_MIB");
    const size_t digits = text ? strspn(text, "0123456789") : 0;
    const int64_t given = digits && digits <= MOST_DIGITS && !text[digits] ? atoll(text) : 0;
    const int64_t usual = (int64_t)DEFAULT_MIB << 20;
    if (given > 0) return given << 20;
    return file_bytes > usual / TIMES && file_bytes < INT64_MAX / TIMES ? file_bytes * TIMES
                                                                        : usual;
}

/* zlib's counts are of 32 bits. */
enum { MOST_PIECE = 1 << 30 };

bool wb_inflate(bool is_raw, const unsigned char *in, int64_t in_bytes, unsigned char *out,
                int64_t out_bytes) {
    const union {
        const unsigned char *from;
        unsigned char *to; /* zlib only reads it */
    } given = {.from = in};
    z_stream stream = {.next_in = given.to, .next_out = out};
    int result = Z_OK;
    if (inflateInit2(&stream, is_raw ? -MAX_WBITS : MAX_WBITS) != Z_OK) return false;
    while (result == Z_OK) {
        const int64_t in_piece = in_bytes < MOST_PIECE ? in_bytes : MOST_PIECE;
        const int64_t out_piece = out_bytes < MOST_PIECE ? out_bytes : MOST_PIECE;
        stream.avail_in = (uInt)in_piece, stream.avail_out = (uInt)out_piece;
        result = inflate(&stream, Z_NO_FLUSH);
        in_bytes -= in_piece - stream.avail_in, out_bytes -= out_piece - stream.avail_out;
    }
    (void)inflateEnd(&stream);
    return result == Z_STREAM_END && in_bytes == 0 && out_bytes == 0;
}
