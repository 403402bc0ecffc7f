#include <stdio.h>

#include "tool.h"

/* Bytes of the letter that begins here; 0: no UTF-8. Overlong and surrogate forms are let
 * through. */
int letter_bytes(const unsigned char *text) {
    const int bytes = text[0] < 0x80                      ? 1
                      : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                      : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                      : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                          : 0;
    for (int i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

/* U+0080 to U+009F steer terminals too. */
static bool is_control(const unsigned char *letter) {
    return *letter < 0x20 || *letter == 0x7f || (*letter == 0xc2 && letter[1] < 0xa0);
}

void put_plain(const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int bytes = letter_bytes(at);
        if (bytes == 0 || is_control(at))
            (void)printf("\\x%02x", *at++);
        else
            at += printf("%.*s", bytes, (const char *)at);
    }
}
