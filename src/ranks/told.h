/* Text from another rank, which is not trusted. */
#ifndef WB_RANKS_TOLD_H
#define WB_RANKS_TOLD_H

#include <stddef.h>

/* Copies a text of at most `most` bytes, which need not end with 0, so that it can be printed:
 * control characters become "?". */
static inline void wb_copy_told(char *to, size_t size, const char *from, size_t most) {
    size_t used = 0;
    for (size_t i = 0; i < most && from[i] && used + 1 < size; i++) {
        const unsigned char c = (unsigned char)from[i];
        const int is_sign = c < ' ' || c == 0x7f;
        to[used++] = is_sign && c != '\n' && c != '\t' ? '?' : from[i];
    }
    to[used] = 0;
}

#endif
