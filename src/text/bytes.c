/* Byte-level models read characters: of the 256 bytes, those that are printable in Latin-1 stand
 * for themselves, the others for U+0100 and on (Radford et al. 2019); a space is U+0120. */
#include "base/utf8.h"
#include "text/tokenizer.h"

static bool is_printable(unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* The others are 0 to 0x20, 0x7F to 0xA0, and 0xAD. */
enum { FIRST = 0x100, BEFORE = 0x21, OTHERS = 0x44 };

static uint32_t code_of(unsigned byte) {
    if (is_printable(byte)) return byte;
    if (byte == 0xAD) return FIRST + OTHERS - 1;
    return FIRST + (byte < BEFORE ? byte : byte - 0x7F + BEFORE);
}

void wb_byte_level(wb_text *out, const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) wb_utf8_put(out, code_of((unsigned char)text[i]));
}

/* -1: the character stands for none. */
static int byte_of(uint32_t code) {
    if (code < FIRST) return is_printable(code) ? (int)code : -1;
    const uint32_t place = code - FIRST;
    if (place >= OTHERS) return -1;
    if (place == OTHERS - 1) return 0xAD;
    return (int)(place < BEFORE ? place : place - BEFORE + 0x7F);
}

bool wb_byte_level_back(wb_text *out, const char *text, size_t bytes) {
    size_t length;
    for (size_t i = 0; i < bytes; i += length)
        if (byte_of(wb_utf8_code(text + i, &length)) < 0) return false;
    for (size_t i = 0; i < bytes; i += length)
        wb_text_byte(out, (char)byte_of(wb_utf8_code(text + i, &length)));
    return true;
}

/* ---- bytes that may not be characters ---- */

size_t wb_unfinished_bytes(const char *text, size_t bytes) {
    for (size_t back = 1; back <= 3 && back <= bytes; back++) {
        const unsigned char c = (unsigned char)text[bytes - back];
        if ((c & 0xC0) == 0x80) continue;
        const size_t wanted = c >= 0xF0 && c <= 0xF4   ? 4
                              : c >= 0xE0 && c <= 0xEF ? 3
                              : c >= 0xC2 && c <= 0xDF ? 2
                                                       : 1;
        if (wanted <= back) return 0;
        if (back == 1) return 1;
        const unsigned char next = (unsigned char)text[bytes - back + 1];
        const bool fits = !(c == 0xE0 && next < 0xA0) && !(c == 0xED && next > 0x9F) &&
                          !(c == 0xF0 && next < 0x90) && !(c == 0xF4 && next > 0x8F);
        return fits ? back : 0;
    }
    return 0;
}

void wb_put_valid(wb_text *out, const char *text, size_t bytes) {
    while (bytes) {
        const int64_t fault = wb_utf8_fault(text, bytes);
        const size_t good = fault < 0 ? bytes : (size_t)fault;
        wb_text_bytes(out, text, good);
        text += good, bytes -= good;
        if (!bytes) return;
        size_t bad = 1;
        while (bad < bytes && bad < 3 && wb_unfinished_bytes(text, bad + 1) == bad + 1) bad++;
        wb_text_put(out, "\xEF\xBF\xBD");
        text += bad, bytes -= bad;
    }
}
