/* Whole numbers in files whose types Weber lacks: they are read into the next type that holds
 * them. */
#ifndef WB_BASE_WIDEN_H
#define WB_BASE_WIDEN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wb_integers {
    int size_bytes; /* of each: 1, 2, 4, 8 */
    bool is_signed, is_big_endian;
} wb_integers;

/* Bytes of each number once it is read: 4 (i32) for signed ones of one and two bytes and for
 * unsigned ones of two; 8 (i64) for unsigned ones of four and eight. */
int wb_widened_bytes(wb_integers from);

/* Reads count numbers into out, wb_widened_bytes each. Returns the index of the first that does not
 * fit (possible only for unsigned ones of eight bytes); -1: all fit. */
int64_t wb_widen(wb_integers from, const unsigned char *bytes, int64_t count, void *out);

#endif
