/* The checksum of zip files: zlib's crc32, folded with carry-less products where the processor has
 * them (Gopal and others, Intel 2009). */
#ifndef WB_FORMATS_CRC_H
#define WB_FORMATS_CRC_H

#include <stdint.h>

/* crc: of what came before, 0 at the beginning. */
uint32_t wb_crc32(uint32_t crc, const void *bytes, int64_t size_bytes);

#endif
