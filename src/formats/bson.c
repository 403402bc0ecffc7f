/* The bytes of BSON: documents of elements, each with a type byte, a key and what it holds. All
 * numbers have their least significant byte first. */
#include "formats/bson.h"

#include <string.h>

enum { LEAST_DOCUMENT = 5, STEPS_PER_BYTE = 16, STEPS_AT_LEAST = 1 << 16 };

static int64_t int32_at(const wb_bson *b, int64_t at) {
    return (int32_t)(uint32_t)wb_julia_bits(b->map.bytes + at, 4);
}

bool wb_bson_may_take(wb_bson *b, int64_t size_bytes, int64_t offset) {
    enum { ROUNDED_BY = 16 };
    const wb_arena *arena = &b->file->arena;
    if (b->status != WB_OK) return false;
    if (!arena->limit_bytes || size_bytes + ROUNDED_BY <= arena->limit_bytes - arena->used_bytes)
        return true;
    wb_bson_fault(b, offset, "its sizes need more data than the file has");
    return false;
}

/* ---- elements ---- */

/* The bytes of a number by type, or -1. */
static int64_t fixed_size(uint8_t type) {
    switch (type) {
    case WB_BSON_DOUBLE:
    case WB_BSON_INT64:
        return 8;
    case WB_BSON_INT32:
        return 4;
    case WB_BSON_BOOL:
        return 1;
    case WB_BSON_NULL:
        return 0;
    default:
        return -1;
    }
}

static bool too_long(wb_bson *b, const wb_bson_element *e, const char *what, int64_t says,
                     int64_t has) {
    wb_bson_fault(b, e->at, "%s needs %lld bytes, but only %lld are left", what, (long long)says,
                  (long long)has);
    return false;
}

static bool measure_document(wb_bson *b, wb_bson_element *e, int64_t left) {
    const int64_t size = int32_at(b, e->at);
    if (size < LEAST_DOCUMENT || size > left) return too_long(b, e, "a document", size, left);
    if (b->map.bytes[e->at + size - 1] != 0) {
        wb_bson_fault(b, e->at + size - 1,
                      "the document that begins at %lld must end with a "
                      "zero byte",
                      (long long)e->at);
        return false;
    }
    e->size_bytes = size;
    return true;
}

static bool measure_string(wb_bson *b, wb_bson_element *e, int64_t left) {
    const int64_t size = int32_at(b, e->at);
    if (size < 1 || size > left - 4) return too_long(b, e, "a text", size, left - 4);
    if (b->map.bytes[e->at + 4 + size - 1] != 0) {
        wb_bson_fault(b, e->at + 4 + size - 1,
                      "the text that begins at %lld must end with a "
                      "zero byte",
                      (long long)e->at + 4);
        return false;
    }
    e->at += 4, e->size_bytes = size - 1;
    return true;
}

static bool measure_binary(wb_bson *b, wb_bson_element *e, int64_t left) {
    const int64_t size = int32_at(b, e->at);
    if (size < 0 || size > left - 5) return too_long(b, e, "data", size, left - 5);
    const int kind = b->map.bytes[e->at + 4];
    if (kind != 0) {
        wb_bson_fault(b, e->at + 4, "the kind of binary data must be 0, but is %d", kind);
        return false;
    }
    e->at += 5, e->size_bytes = size;
    return true;
}

/* Sets what the element holds; left bytes follow its key. */
static bool measure(wb_bson *b, wb_bson_element *e, int64_t left) {
    const int64_t fixed = fixed_size(e->type);
    const int64_t least = fixed >= 0 ? fixed : e->type == WB_BSON_BINARY ? 5 : 4;
    if (left < least) return too_long(b, e, "a value", least, left);
    if (fixed >= 0) {
        e->size_bytes = fixed;
        if (e->type != WB_BSON_BOOL || b->map.bytes[e->at] <= 1) return true;
        wb_bson_fault(b, e->at, "a bool is %d", b->map.bytes[e->at]);
        return false;
    }
    if (e->type == WB_BSON_STRING) return measure_string(b, e, left);
    if (e->type == WB_BSON_BINARY) return measure_binary(b, e, left);
    return measure_document(b, e, left);
}

static bool is_known(uint8_t type) {
    return fixed_size(type) >= 0 || (type >= WB_BSON_STRING && type <= WB_BSON_BINARY);
}

static bool read_key(wb_bson *b, const wb_bson_cursor *c, wb_bson_element *e) {
    const unsigned char *key = b->map.bytes + c->at + 1;
    const unsigned char *end = memchr(key, 0, (size_t)(c->end - c->at - 1));
    if (!end) {
        wb_bson_fault(b, c->at + 1, "a key must end with a zero byte");
        return false;
    }
    e->key = (const char *)key;
    e->key_bytes = end - key;
    e->at = c->at + 1 + e->key_bytes + 1;
    return true;
}

wb_bson_cursor wb_bson_enter(const wb_bson_element *document) {
    return (wb_bson_cursor){document->at + 4, document->at + document->size_bytes - 1};
}

bool wb_bson_next(wb_bson *b, wb_bson_cursor *c, wb_bson_element *e) {
    *e = (wb_bson_element){.offset = c->at};
    if (b->status != WB_OK || c->at == c->end) return false;
    if (b->steps-- == 0) {
        wb_bson_fault(b, c->at, "too many back-references lead here");
        return false;
    }
    const uint8_t type = b->map.bytes[c->at];
    if (!is_known(type)) {
        wb_bson_fault(b, c->at, "%s (type %02x), in a document that ends at offset %lld",
                      type ? "a value that Julia does not write" : "an end", (unsigned)type,
                      (long long)c->end);
        return false;
    }
    e->type = type;
    if (!read_key(b, c, e) || !measure(b, e, c->end - e->at)) return false;
    c->at = e->at + e->size_bytes + (type == WB_BSON_STRING);
    return true;
}

int64_t wb_bson_count(wb_bson *b, const wb_bson_element *document) {
    int64_t count = 0;
    wb_bson_element e;
    for (wb_bson_cursor c = wb_bson_enter(document); wb_bson_next(b, &c, &e);) count++;
    return count;
}

/* ---- what they hold ---- */

bool wb_bson_key_is(const wb_bson_element *e, const char *key) {
    return e->key_bytes == (int64_t)strlen(key) && memcmp(e->key, key, strlen(key)) == 0;
}

const unsigned char *wb_bson_bytes(const wb_bson *b, const wb_bson_element *e) {
    return b->map.bytes + e->at;
}

bool wb_bson_text_is(const wb_bson *b, const wb_bson_element *e, const char *text) {
    return e->type == WB_BSON_STRING && e->size_bytes == (int64_t)strlen(text) &&
           memcmp(wb_bson_bytes(b, e), text, strlen(text)) == 0;
}

bool wb_bson_is_plain(const wb_bson *b, const wb_bson_element *e) {
    return e->type == WB_BSON_STRING && !memchr(wb_bson_bytes(b, e), 0, (size_t)e->size_bytes);
}

bool wb_bson_is_integer(const wb_bson_element *e) {
    return e->type == WB_BSON_INT32 || e->type == WB_BSON_INT64;
}

int64_t wb_bson_integer(const wb_bson *b, const wb_bson_element *e) {
    if (e->type == WB_BSON_INT32) return int32_at(b, e->at);
    return (int64_t)wb_julia_bits(wb_bson_bytes(b, e), 8);
}

/* ---- the whole ---- */

static bool measure_top(wb_bson *b, wb_bson_element *top) {
    const wb_mapping *map = &b->map;
    *top = (wb_bson_element){.type = WB_BSON_DOCUMENT, .key = ""};
    if (map->size_bytes < LEAST_DOCUMENT) {
        wb_bson_fault(b, 0,
                      "the file is cut short: it has %lld bytes, but a BSON file has at "
                      "least 5",
                      (long long)map->size_bytes);
        return false;
    }
    const int64_t says = int32_at(b, 0);
    if (says == map->size_bytes) return measure_document(b, top, says);
    bool is_text = true;
    for (int i = 0; i < 4; i++)
        is_text =
            is_text && (map->bytes[i] == '\n' || (map->bytes[i] >= ' ' && map->bytes[i] < 127));
    if (is_text)
        wb_bson_fault(b, 0, "this is a text, not BSON, which begins with its length");
    else
        wb_bson_fault(b, 0, "the document should have %lld bytes, but the file has %lld",
                      (long long)says, (long long)map->size_bytes);
    return false;
}

wb_status wb_bson_check(wb_bson *b, wb_bson_element *top) {
    b->steps = b->map.size_bytes * STEPS_PER_BYTE + STEPS_AT_LEAST;
    if (!measure_top(b, top)) return b->status;
    wb_bson_cursor open[WB_BSON_DEPTH];
    int depth = 1;
    open[0] = wb_bson_enter(top);
    while (depth > 0 && b->status == WB_OK) {
        wb_bson_element e;
        if (!wb_bson_next(b, &open[depth - 1], &e))
            depth--;
        else if (e.type != WB_BSON_DOCUMENT && e.type != WB_BSON_ARRAY)
            continue;
        else if (depth == WB_BSON_DEPTH)
            wb_bson_fault(b, e.offset, "documents may be nested at most %d deep", WB_BSON_DEPTH);
        else {
            if (e.type == WB_BSON_DOCUMENT) wb_bson_check_tagged(b, &e);
            open[depth++] = wb_bson_enter(&e);
        }
    }
    return b->status;
}

/* ---- the format ---- */

static bool recognises(const wb_mapping *map) {
    return map->size_bytes >= LEAST_DOCUMENT &&
           wb_julia_bits(map->bytes, 4) == (uint64_t)map->size_bytes &&
           (is_known(map->bytes[4]) || map->size_bytes == LEAST_DOCUMENT);
}

const wb_format wb_format_bson = {.name = "BSON",
                                  .extension = ".bson",
                                  .recognises = recognises,
                                  .read = wb_bson_read,
                                  .write = wb_bson_write,
                                  .refuses = wb_bson_refuses,
                                  .has_values = true};
