/* Compressed files: how large they may become, and inflating them. */
#ifndef WB_BASE_INFLATE_H
#define WB_BASE_INFLATE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that a compressed file of this size may inflate to in total: WEBER_INFLATE_MIB mebibytes,
 * by default 2048 or four times the file, whichever is more. Zeros shrink to a thousandth, so
 * without a limit a small file could take all the memory of the machine. */
int64_t wb_most_inflated(int64_t file_bytes);

/* For messages: how to raise the limit. */
#define WB_INFLATE_ADVICE "WEBER_INFLATE_MIB sets the limit, in mebibytes"

/* Bytes that one byte may inflate to: 258 for two bits. */
enum { WB_MOST_DEFLATED = 1032 };

/* Inflates all of in to out. False if that does not give exactly out_bytes, or in is damaged.
 * is_raw: in has no header of zlib's, as in zip files. */
bool wb_inflate(bool is_raw, const unsigned char *in, int64_t in_bytes, unsigned char *out,
                int64_t out_bytes);

#endif
