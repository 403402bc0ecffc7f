/* Categories are asked for by their numbers in utf8proc.h, which are those of its enum. */
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "base/utf8.h"

/* utf8proc_category_t */
enum { CN, LU, LL, LT, LM, LO, MN, MC, ME, ND, NL, NO, PC, PD, PS, PE, PI, PF, PO };
enum { CC = 26, CF, CS, CO };

wb_status wb_unicode_open(wb_unicode *unicode) {
    static const char *const names[] = {"libutf8proc.so.2", "libutf8proc.so.3",
                                        "libutf8proc.2.dylib", "libutf8proc.3.dylib", NULL};
    const wb_library_function functions[] = {
        {"utf8proc_category", &unicode->category},
        {"utf8proc_tolower", &unicode->tolower},
        {"utf8proc_map", &unicode->map},
        {"utf8proc_grapheme_break_stateful", &unicode->is_break},
        {NULL, NULL},
    };
    wb_library utf8proc = {names, "utf8proc", "libutf8proc2", functions, NULL};
    if (unicode->category) return WB_OK;
    return wb_library_open(&utf8proc, NULL,
                           "what it does with characters (normal forms, case, classes)");
}

/* ---- characters ---- */

uint32_t wb_utf8_code(const char *text, size_t *bytes) {
    const unsigned char *at = (const unsigned char *)text;
    if (*at < 0x80) return *bytes = 1, *at;
    if (*at < 0xE0) return *bytes = 2, (uint32_t)(at[0] & 0x1F) << 6 | (at[1] & 0x3F);
    if (*at < 0xF0) {
        *bytes = 3;
        return (uint32_t)(at[0] & 0xF) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    }
    *bytes = 4;
    return (uint32_t)(at[0] & 7) << 18 | (uint32_t)(at[1] & 0x3F) << 12 |
           (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
}

void wb_utf8_put(wb_text *out, uint32_t code) {
    char bytes[4];
    wb_text_bytes(out, bytes, wb_utf8_bytes(code, bytes));
}

/* ---- normal forms and case ---- */

static bool is_ascii(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

bool wb_unicode_normalise(const wb_unicode *unicode, wb_normal_form form, const char *text,
                          size_t bytes, wb_text *out) {
    enum { STABLE = 1 << 1, COMPAT = 1 << 2, COMPOSE = 1 << 3, DECOMPOSE = 1 << 4 };
    static const int options[] = {[WB_NFC] = STABLE | COMPOSE,
                                  [WB_NFD] = STABLE | DECOMPOSE,
                                  [WB_NFKC] = STABLE | COMPOSE | COMPAT,
                                  [WB_NFKD] = STABLE | DECOMPOSE | COMPAT};
    if (is_ascii(text, bytes)) return wb_text_bytes(out, text, bytes), true;
    uint8_t *result = NULL;
    const ptrdiff_t length =
        unicode->map((const uint8_t *)text, (ptrdiff_t)bytes, &result, options[form]);
    if (length >= 0) wb_text_bytes(out, result, (size_t)length);
    free(result);
    if (length < 0) (void)wb_fail(WB_ERROR_MEMORY, "there is no memory for a text's normal form");
    return length >= 0;
}

void wb_unicode_lower(const wb_unicode *unicode, uint32_t code, wb_text *out) {
    if (code < 0x80)
        wb_text_byte(out, (char)(code >= 'A' && code <= 'Z' ? code + 'a' - 'A' : code));
    else if (code == 0x130) /* the one letter that becomes two: i and a dot above */
        wb_text_put(out, "i\xCC\x87");
    else
        wb_utf8_put(out, (uint32_t)unicode->tolower((int32_t)code));
}

/* ---- properties ---- */

static int category(const wb_unicode *unicode, uint32_t code) {
    return unicode->category((int32_t)code);
}

bool wb_is_space(const wb_unicode *unicode, uint32_t code) {
    (void)unicode;
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static bool is_letter_or_digit(uint32_t code) {
    return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
           (code >= 'a' && code <= 'z');
}

bool wb_is_punctuation(const wb_unicode *unicode, uint32_t code) {
    if (code < 0x80) return code > ' ' && code < 0x7F && !is_letter_or_digit(code);
    const int own = category(unicode, code);
    return own >= PC && own <= PO;
}

bool wb_is_numeric(const wb_unicode *unicode, uint32_t code) {
    if (code < 0x80) return code >= '0' && code <= '9';
    const int own = category(unicode, code);
    return own >= ND && own <= NO;
}

bool wb_is_mark(const wb_unicode *unicode, uint32_t code) {
    if (code < 0x80) return false;
    const int own = category(unicode, code);
    return own >= MN && own <= ME;
}

bool wb_is_nonspacing(const wb_unicode *unicode, uint32_t code) {
    return code >= 0x80 && category(unicode, code) == MN;
}

bool wb_is_other(const wb_unicode *unicode, uint32_t code) {
    if (code < 0x80) return code < ' ' || code == 0x7F;
    const int own = category(unicode, code);
    return own == CC || own == CF || own == CS || own == CO;
}

bool wb_is_word_character(const wb_unicode *unicode, uint32_t code) {
    if (code < 0x80) return is_letter_or_digit(code) || code == '_';
    const int own = category(unicode, code);
    return (own >= LU && own <= ND) || own == NL || own == PC || code == 0x200C || code == 0x200D ||
           (code >= 0x24B6 && code <= 0x24E9);
}
