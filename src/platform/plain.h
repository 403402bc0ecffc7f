/* Untrusted text for a terminal: control characters are escaped. The library's default log and the
 * command line tool share this. */
#ifndef WB_PLATFORM_PLAIN_H
#define WB_PLATFORM_PLAIN_H

#include <stdbool.h>
#include <stdio.h>

/* Length in bytes of the UTF-8 character that begins here; 0: not UTF-8. Overlong and surrogate
 * forms are accepted. */
static inline int wb_letter_bytes(const unsigned char *text) {
    const int bytes = text[0] < 0x80                      ? 1
                      : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                      : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
                      : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                          : 0;
    for (int i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return bytes;
}

/* U+0080 to U+009F control terminals, too, and so do the marks that change the direction of
 * writing: U+202A to U+202E and U+2066 to U+2069. */
static inline bool wb_letter_steers(const unsigned char *letter) {
    const bool turns =
        letter[0] == 0xe2 && ((letter[1] == 0x80 && letter[2] >= 0xaa && letter[2] <= 0xae) ||
                              (letter[1] == 0x81 && letter[2] >= 0xa6 && letter[2] <= 0xa9));
    return letter[0] < 0x20 || letter[0] == 0x7f || (letter[0] == 0xc2 && letter[1] < 0xa0) ||
           turns;
}

/* Appends as much of the text as there is room for to `used` bytes in out, ended by 0; returns the
 * new number of bytes. Control characters and bytes that are not UTF-8 are written as \x1b (their
 * code). With keeps_lines a line end stays and gets two spaces after it, so that no later line
 * looks like the first line of another message. */
static inline size_t wb_plain_text(char *out, size_t size_bytes, size_t used, const char *text,
                                   bool keeps_lines) {
    enum { MOST = 8 }; /* bytes of one escaped character, with the final 0 */
    for (const unsigned char *at = (const unsigned char *)text; *at && used + MOST < size_bytes;) {
        const int bytes = wb_letter_bytes(at);
        const bool is_plain = bytes > 0 && !wb_letter_steers(at);
        const int step = is_plain ? bytes : 1;
        if (*at == '\n' && keeps_lines)
            used += (size_t)snprintf(out + used, MOST, "\n  ");
        else if (is_plain)
            used += (size_t)snprintf(out + used, MOST, "%.*s", bytes, (const char *)at);
        else
            used += (size_t)snprintf(out + used, MOST, "\\x%02x", *at);
        at += step;
    }
    out[used] = 0;
    return used;
}

#endif
