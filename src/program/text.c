/* The hash of a text (FNV-1a, 64 bits), by which compiled kernels are found again. */
#include "program/text.h"

uint64_t wb_text_hash(uint64_t hash, const char *string) {
    if (hash == 0) hash = 0xCBF29CE484222325ull;
    for (const unsigned char *at = (const unsigned char *)string; *at; at++)
        hash = (hash ^ *at) * 0x100000001B3ull;
    return hash;
}
