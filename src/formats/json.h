/* JSON (RFC 8259): a parser for whole files and for texts within a file, and writing a text.
 *
 *     const wb_json *root;
 *     wb_file *file = wb_json_open("config.json", &root);
 *     if (!file) return NULL;
 *     int64_t layers;
 *     const wb_json *item = wb_json_get(root, "num_hidden_layers");
 *     if (!wb_json_integer(item, &layers))
 *         (void)wb_json_fault(file, item ? item : root, "num_hidden_layers must be an integer");
 *     wb_free(file);
 *
 * What is refused, with file and offset: what the standard refuses (NaN, comments, trailing commas,
 * numbers that begin with a zero), invalid UTF-8, a byte order mark, half of a surrogate pair, a
 * name that an object has twice, numbers beyond f64, nesting deeper than WB_JSON_DEPTH, texts above
 * WB_JSON_MOST_BYTES. The values take at most some 30 times the text's bytes. */
#ifndef WB_FORMATS_JSON_H
#define WB_FORMATS_JSON_H

#include "formats/record.h"

enum { WB_JSON_DEPTH = 64, WB_JSON_MOST_BYTES = 1 << 30 };

typedef enum wb_json_kind {
    WB_JSON_NULL,
    WB_JSON_BOOL,
    WB_JSON_INTEGER, /* written without point and exponent, from -2^63 to 2^63 - 1; -0 is real */
    WB_JSON_REAL,
    WB_JSON_TEXT,
    WB_JSON_LIST,
    WB_JSON_OBJECT
} wb_json_kind;

typedef struct wb_json {
    uint8_t kind; /* wb_json_kind */
    bool boolean;
    uint32_t name_bytes;
    const char *name; /* of a member, UTF-8, ended by a zero byte, may contain others; else NULL */
    int64_t offset;   /* of its first byte in the file; a member begins with its name */
    int64_t count;    /* text: bytes; list, object: items */
    union {
        int64_t integer;
        double real;
        const char *text;            /* UTF-8, ended by a zero byte; may contain others (\u0000) */
        const struct wb_json *items; /* in the order of the text; members have names */
    };
} wb_json;

/* Maps the file and parses all of it; release the file, which owns the values, with wb_free. */
wb_file *wb_json_open(const char *path, const wb_json **root);

/* Parses a text that begins at the offset in the file; the values belong to the arena. NULL on
 * failure: WB_ERROR_FORMAT (the text) or WB_ERROR_MEMORY. */
const wb_json *wb_json_parse(const wb_file *file, wb_arena *arena, const char *text,
                             size_t size_bytes, int64_t offset);

/* An object in the arena, of values from elsewhere that have different names; NULL with an
 * error. */
const wb_json *wb_json_object(wb_arena *arena, const wb_json *members, int64_t count);

/* ---- questions; a value of NULL has no answer ---- */

/* The member with this name; NULL: there is none, or the value is not an object. */
const wb_json *wb_json_get(const wb_json *object, const char *name);
const wb_json *wb_json_find(const wb_json *object, const char *name, size_t name_bytes);

/* An integer, or a real (1e3, 2.0) that is whole and below 2^53; false for anything else. */
bool wb_json_integer(const wb_json *value, int64_t *integer);
bool wb_json_number(const wb_json *value, double *number);
bool wb_json_bool(const wb_json *value, bool *boolean);
/* A text without zero bytes; NULL for anything else. */
const char *wb_json_text(const wb_json *value);
/* Whether the value is this text. */
bool wb_json_is(const wb_json *value, const char *text);

/* For messages: "an integer", "nothing" for NULL. */
const char *wb_json_noun(const wb_json *value);
/* wb_file_fault at the value. */
#define wb_json_fault(file, value, ...) wb_file_fault(file, (value)->offset, __VA_ARGS__)

/* ---- writing ---- */

/* The text in quotes, escaped; it is UTF-8. */
void wb_json_quote(wb_text *out, const char *text);

#endif
