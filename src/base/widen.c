/* Reads integers of 1 to 8 bytes, signed or unsigned, in either byte order, as i32 or i64. The only
 * value that can fail to fit is an unsigned one above the largest i64. */
#include "base/widen.h"

int wb_widened_bytes(wb_integers from) { return from.size_bytes <= 2 ? 4 : 8; }

static uint64_t read_one(wb_integers from, const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < from.size_bytes; i++)
        value = value << 8 | at[from.is_big_endian ? i : from.size_bytes - 1 - i];
    const uint64_t sign = (uint64_t)1 << (8 * from.size_bytes - 1);
    return from.is_signed ? (value ^ sign) - sign : value;
}

int64_t wb_widen(wb_integers from, const unsigned char *bytes, int64_t count, void *out) {
    int32_t *small = out;
    int64_t *large = out;
    for (int64_t i = 0; i < count; i++, bytes += from.size_bytes) {
        const uint64_t value = read_one(from, bytes);
        if (!from.is_signed && value > INT64_MAX) return i;
        if (wb_widened_bytes(from) == 4)
            small[i] = (int32_t)(int64_t)value;
        else
            large[i] = (int64_t)value;
    }
    return -1;
}
