/* The input as a file. Its first four bytes, the length of the whole, are put right: nearly nothing
 * that a fuzzer makes would have them. */
#include "bson_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    check_bson(bytes, size);
    if (size < 5) return 0;
    unsigned char *right = malloc(size); /* of this size, so that a read past its end is noticed */
    const uint32_t length = (uint32_t)size;
    memcpy(right, bytes, size);
    memcpy(right, &length, 4);
    right[size - 1] = 0;
    check_bson(right, size);
    free(right);
    return 0;
}
