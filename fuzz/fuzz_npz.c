#include "fuzz_safetensors.h"

#include <zlib.h>

/* In place of zlib's: every checksum is 0, as in the corpus, so that what is behind it can be reached. */
unsigned long crc32_z(unsigned long crc, const unsigned char *bytes, z_size_t size) {
    (void)crc, (void)bytes, (void)size;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_one(&wb_format_npz, data, size);
}
