/* Characters and their properties. Normal forms and categories beyond ASCII are utf8proc's, which
 * is opened when a file needs it. */
#ifndef WB_TEXT_UNICODE_H
#define WB_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef struct wb_unicode {
    /* utf8proc's; NULL: it is not open yet */
    int (*category)(int32_t code);
    int32_t (*tolower)(int32_t code);
    ptrdiff_t (*map)(const uint8_t *text, ptrdiff_t bytes, uint8_t **out, int options);
    bool (*is_break)(int32_t code, int32_t next, int32_t *state); /* between two clusters */
} wb_unicode;

/* Opens utf8proc, once; WB_ERROR_UNSUPPORTED names its package. */
wb_status wb_unicode_open(wb_unicode *unicode);

/* The character that begins at text, which is valid UTF-8; *bytes is its length. */
uint32_t wb_utf8_code(const char *text, size_t *bytes);
void wb_utf8_put(wb_text *out, uint32_t code);

typedef enum wb_normal_form { WB_NFC, WB_NFD, WB_NFKC, WB_NFKD } wb_normal_form;
bool wb_unicode_normalise(const wb_unicode *unicode, wb_normal_form form, const char *text,
                          size_t bytes, wb_text *out);
/* Appends the character in lower case, which may be two. */
void wb_unicode_lower(const wb_unicode *unicode, uint32_t code, wb_text *out);

bool wb_is_space(const wb_unicode *unicode, uint32_t code);          /* White_Space */
bool wb_is_punctuation(const wb_unicode *unicode, uint32_t code);    /* P, and symbols of ASCII */
bool wb_is_numeric(const wb_unicode *unicode, uint32_t code);        /* N */
bool wb_is_mark(const wb_unicode *unicode, uint32_t code);           /* M */
bool wb_is_nonspacing(const wb_unicode *unicode, uint32_t code);     /* Mn */
bool wb_is_other(const wb_unicode *unicode, uint32_t code);          /* C */
bool wb_is_word_character(const wb_unicode *unicode, uint32_t code); /* letters, marks, digits, _ */

#endif
