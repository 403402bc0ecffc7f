/* UTF-8 as the standard allows it: the shortest form of each character, no surrogates, nothing
 * above U+10FFFF. (Unicode 15, table 3-7.) */
#include "base/utf8.h"

#include <stdbool.h>

static int64_t length_of_character(const unsigned char *at, size_t left) {
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    for (size_t extra = 0; extra < 4; extra++) {
        if ((*at & forms[extra].mask) != forms[extra].lead) continue;
        uint32_t code = *at & (unsigned char)~forms[extra].mask;
        if (extra >= left) return -1;
        for (size_t i = 1; i <= extra; i++) {
            if ((at[i] & 0xC0) != 0x80) return -1;
            code = code << 6 | (at[i] & 0x3F);
        }
        const bool is_surrogate = code >= 0xD800 && code < 0xE000;
        return code >= forms[extra].least && code <= 0x10FFFF && !is_surrogate ? (int64_t)extra + 1
                                                                               : -1;
    }
    return -1;
}

int64_t wb_utf8_fault(const char *text, size_t size_bytes) {
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; i < size_bytes;) {
        if (bytes[i] < 0x80) {
            i++;
            continue;
        }
        const int64_t length = length_of_character(bytes + i, size_bytes - i);
        if (length < 0) return (int64_t)i;
        i += (size_t)length;
    }
    return -1;
}

size_t wb_utf8_bytes(uint32_t code, char bytes[4]) {
    size_t count = 0;
    if (code < 0x80) return bytes[0] = (char)code, 1;
    if (code < 0x800) {
        bytes[count++] = (char)(0xC0 | code >> 6);
    } else {
        if (code < 0x10000) {
            bytes[count++] = (char)(0xE0 | code >> 12);
        } else {
            bytes[count++] = (char)(0xF0 | code >> 18);
            bytes[count++] = (char)(0x80 | (code >> 12 & 0x3F));
        }
        bytes[count++] = (char)(0x80 | (code >> 6 & 0x3F));
    }
    bytes[count++] = (char)(0x80 | (code & 0x3F));
    return count;
}
