/* The parser keeps the values of containers that are not yet closed on a stack; at its end, a
 * container's values are copied into the arena, side by side. Behind those of a large object lie
 * pointers to them, sorted by name: no choice of names makes looking them up slow, as it would with
 * a hash table. */
#include "formats/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/decimal.h"
#include "base/memory.h"
#include "base/utf8.h"

enum { FEW = 8 /* members that are looked through one by one */ };

/* ---- writing ---- */

void wb_json_quote(wb_text *out, const char *text) {
    wb_text_byte(out, '"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            wb_text_add(out, "\\%c", c);
        else if (c < 0x20)
            wb_text_add(out, "\\u%04x", c);
        else
            wb_text_byte(out, *text);
    }
    wb_text_byte(out, '"');
}

/* ---- questions ---- */

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    if (a_bytes != b_bytes) return a_bytes < b_bytes ? -1 : 1;
    return a_bytes ? memcmp(a, b, a_bytes) : 0;
}

/* The pointers behind the members of a large object. */
static const wb_json **sorted_of(const wb_json *object) {
    return (const wb_json **)(uintptr_t)(object->items + object->count);
}

const wb_json *wb_json_find(const wb_json *object, const char *name, size_t name_bytes) {
    if (!object || object->kind != WB_JSON_OBJECT) return NULL;
    if (object->count <= FEW) {
        for (int64_t i = 0; i < object->count; i++) {
            const wb_json *item = &object->items[i];
            if (compare(item->name, item->name_bytes, name, name_bytes) == 0) return item;
        }
        return NULL;
    }
    const wb_json **sorted = sorted_of(object);
    int64_t begin = 0, end = object->count;
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const int order =
            compare(sorted[middle]->name, sorted[middle]->name_bytes, name, name_bytes);
        if (order == 0) return sorted[middle];
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

const wb_json *wb_json_get(const wb_json *object, const char *name) {
    return wb_json_find(object, name, strlen(name));
}

bool wb_json_integer(const wb_json *value, int64_t *integer) {
    if (value && value->kind == WB_JSON_INTEGER) return *integer = value->integer, true;
    return value && value->kind == WB_JSON_REAL && fabs(value->real) < 0x1p53 &&
           wb_is_whole(value->real, integer);
}

bool wb_json_number(const wb_json *value, double *number) {
    if (!value || (value->kind != WB_JSON_INTEGER && value->kind != WB_JSON_REAL)) return false;
    *number = value->kind == WB_JSON_REAL ? value->real : (double)value->integer;
    return true;
}

bool wb_json_bool(const wb_json *value, bool *boolean) {
    if (!value || value->kind != WB_JSON_BOOL) return false;
    *boolean = value->boolean;
    return true;
}

const char *wb_json_text(const wb_json *value) {
    if (!value || value->kind != WB_JSON_TEXT) return NULL;
    return strlen(value->text) == (size_t)value->count ? value->text : NULL;
}

bool wb_json_is(const wb_json *value, const char *text) {
    const char *own = wb_json_text(value);
    return own && strcmp(own, text) == 0;
}

const char *wb_json_noun(const wb_json *value) {
    static const char *const nouns[] = {
        [WB_JSON_NULL] = "null",       [WB_JSON_BOOL] = "a bool", [WB_JSON_INTEGER] = "an integer",
        [WB_JSON_REAL] = "a number",   [WB_JSON_TEXT] = "a text", [WB_JSON_LIST] = "a list",
        [WB_JSON_OBJECT] = "an object"};
    if (value && value->kind == WB_JSON_TEXT && !wb_json_text(value))
        return "a text with a zero byte";
    return value ? nouns[value->kind] : "nothing";
}

/* ---- parsing ---- */

typedef struct parser {
    const wb_file *file;
    wb_arena *arena;
    const char *text, *at, *end;
    int64_t offset;
    char *room; /* for texts: as many bytes as the text that is parsed, which are enough */
    wb_json *stack;
    int64_t count, capacity;
    int64_t open[WB_JSON_DEPTH]; /* where the containers that are open stand on the stack */
    int depth;
} parser;

static int64_t offset_of(const parser *p, const char *at) { return p->offset + (at - p->text); }

static bool fault(const parser *p, const char *at, const char *what) {
    (void)wb_file_fault(p->file, offset_of(p, at), "this is not valid JSON: %s", what);
    return false;
}

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\r' || *p->at == '\t'))
        p->at++;
}

static bool next_is(const parser *p, char c) { return p->at < p->end && *p->at == c; }

/* ---- texts ---- */

static bool read_hex(parser *p, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char c = p->at < p->end ? *p->at : ' ';
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return fault(p, p->at, "\\u needs four hexadecimal digits");
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

/* p->at is behind "\u". */
static bool read_code(parser *p, uint32_t *code) {
    const char *begin = p->at - 2;
    uint32_t low;
    if (!read_hex(p, code)) return false;
    if (*code < 0xD800 || *code > 0xDFFF) return true;
    if (*code < 0xDC00 && p->end - p->at >= 2 && p->at[0] == '\\' && p->at[1] == 'u') {
        p->at += 2;
        if (!read_hex(p, &low)) return false;
        *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        if (low >= 0xDC00 && low <= 0xDFFF) return true;
    }
    return fault(p, begin, "half of a surrogate pair");
}

/* p->at is behind the backslash; what is written is never longer than what is read. */
static bool read_escape(parser *p, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char c = p->at < p->end ? *p->at++ : 0;
    if (c == 'u') {
        uint32_t code;
        if (!read_code(p, &code)) return false;
        *out += wb_utf8_bytes(code, *out);
        return true;
    }
    const char *place = c ? strchr(from, c) : NULL;
    if (!place) return fault(p, p->at - (c != 0), "an unknown escape");
    *(*out)++ = to[place - from];
    return true;
}

/* p->at is at the first quote. */
static bool read_text(parser *p, const char **text, int64_t *bytes) {
    const char *begin = p->at++;
    char *out = p->room;
    for (;;) {
        const char *plain = p->at;
        while (p->at < p->end && *p->at != '"' && *p->at != '\\' && (unsigned char)*p->at >= 0x20)
            p->at++;
        memcpy(out, plain, (size_t)(p->at - plain));
        out += p->at - plain;
        if (p->at == p->end) return fault(p, begin, "a text without its end");
        const char c = *p->at++;
        if (c == '"') break;
        if (c != '\\') return fault(p, p->at - 1, "a control character within a text");
        if (!read_escape(p, &out)) return false;
    }
    *text = p->room;
    *bytes = out - p->room;
    *out = 0;
    p->room = out + 1;
    return true;
}

/* ---- numbers ---- */

static bool skip_digits(parser *p) {
    const char *begin = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return p->at > begin;
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool skip_number(parser *p, bool *is_integer) {
    const char *begin = p->at;
    p->at += next_is(p, '-');
    const bool has_zero = next_is(p, '0');
    const char *digits = p->at;
    if (!skip_digits(p)) return fault(p, begin, "a value is expected");
    if (has_zero && p->at > digits + 1) return fault(p, begin, "a number that begins with a zero");
    *is_integer = true;
    if (next_is(p, '.')) {
        *is_integer = false;
        p->at++;
        if (!skip_digits(p)) return fault(p, p->at, "a digit is expected after the point");
    }
    if (next_is(p, 'e') || next_is(p, 'E')) {
        *is_integer = false;
        p->at++;
        p->at += next_is(p, '+') || next_is(p, '-');
        if (!skip_digits(p)) return fault(p, p->at, "a digit is expected in the exponent");
    }
    return true;
}

static bool integer_of(const char *at, const char *end, int64_t *integer) {
    const bool is_negative = *at == '-';
    *integer = 0;
    for (at += is_negative; at < end; at++) {
        const int64_t digit = *at - '0';
        if (__builtin_mul_overflow(*integer, (int64_t)10, integer) ||
            __builtin_add_overflow(*integer, is_negative ? -digit : digit, integer))
            return false;
    }
    return *integer != 0 || !is_negative;
}

static bool read_number(parser *p, wb_json *value) {
    const char *begin = p->at;
    bool is_integer;
    if (!skip_number(p, &is_integer)) return false;
    value->kind = WB_JSON_INTEGER;
    if (is_integer && integer_of(begin, p->at, &value->integer)) return true;
    value->kind = WB_JSON_REAL;
    return wb_read_decimal(begin, (size_t)(p->at - begin), &value->real) ||
           fault(p, begin, "a number beyond the range of f64, or of more than 500 characters");
}

/* ---- words ---- */

static bool take_word(parser *p, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

static bool read_word(parser *p, wb_json *value) {
    static const char *const foreign[] = {"NaN", "Infinity", "-Infinity"};
    const char *begin = p->at;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (take_word(p, foreign[i]))
            return fault(p, begin, "NaN and Infinity, which JSON does not have");
    if (take_word(p, "null")) return true;
    value->kind = WB_JSON_BOOL;
    if (take_word(p, "false")) return true;
    value->boolean = true;
    if (take_word(p, "true")) return true;
    return *begin == '-' || (*begin >= '0' && *begin <= '9') ? read_number(p, value)
                                                             : fault(p, begin,
                                                                     "a value is "
                                                                     "expected");
}

/* ---- containers ---- */

static int by_name(const void *a, const void *b) {
    const wb_json *const *left = a, *const *right = b;
    return compare((*left)->name, (*left)->name_bytes, (*right)->name, (*right)->name_bytes);
}

static bool fault_of_name(const parser *p, const wb_json *item) {
    (void)wb_file_fault(p->file, item->offset, "the name \"%.80s\" appears twice", item->name);
    return false;
}

static bool check_few(const parser *p, const wb_json *object) {
    for (int64_t i = 1; i < object->count; i++)
        for (int64_t j = 0; j < i; j++) {
            const wb_json *a = &object->items[i], *b = &object->items[j];
            if (compare(a->name, a->name_bytes, b->name, b->name_bytes) == 0)
                return fault_of_name(p, a);
        }
    return true;
}

static const wb_json **sort(const wb_json *object) {
    const wb_json **sorted = sorted_of(object);
    for (int64_t i = 0; i < object->count; i++) sorted[i] = &object->items[i];
    qsort(sorted, (size_t)object->count, sizeof *sorted, by_name);
    return sorted;
}

static bool sort_names(const parser *p, const wb_json *object) {
    const wb_json **sorted = sort(object);
    for (int64_t i = 1; i < object->count; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0) return fault_of_name(p, sorted[i]);
    return true;
}

static bool is_large(const wb_json *container) {
    return container->kind == WB_JSON_OBJECT && container->count > FEW;
}

/* Copies of the items, with room for the sorted pointers. */
static bool set_items(wb_arena *arena, wb_json *container, const wb_json *items) {
    const size_t item_bytes = sizeof *items + (is_large(container) ? sizeof(wb_json *) : 0);
    wb_json *copies = wb_arena_list(arena, container->count, item_bytes);
    if (copies && container->count) memcpy(copies, items, (size_t)container->count * sizeof *items);
    container->items = copies;
    return copies != NULL;
}

const wb_json *wb_json_object(wb_arena *arena, const wb_json *members, int64_t count) {
    wb_json *object = wb_arena_take(arena, sizeof *object);
    if (!object) return NULL;
    *object = (wb_json){.kind = WB_JSON_OBJECT, .count = count};
    if (!set_items(arena, object, members)) return NULL;
    if (is_large(object)) (void)sort(object);
    return object;
}

/* The values above the innermost container become its items. */
static bool close_container(parser *p) {
    p->at++;
    const int64_t place = p->open[--p->depth];
    wb_json *container = &p->stack[place];
    container->count = p->count - place - 1;
    if (!set_items(p->arena, container, container + 1)) return false;
    p->count = place + 1;
    if (container->kind == WB_JSON_LIST) return true;
    return is_large(container) ? sort_names(p, container) : check_few(p, container);
}

static bool open_container(parser *p, wb_json *value) {
    if (p->depth == WB_JSON_DEPTH) {
        (void)wb_file_fault(p->file, offset_of(p, p->at), "JSON may be nested at most %d deep here",
                            WB_JSON_DEPTH);
        return false;
    }
    value->kind = *p->at++ == '[' ? WB_JSON_LIST : WB_JSON_OBJECT;
    p->open[p->depth++] = p->count;
    return true;
}

/* "name": */
static bool read_name(parser *p, wb_json *value) {
    int64_t bytes;
    if (!next_is(p, '"')) return fault(p, p->at, "a name in quotes is expected");
    if (!read_text(p, &value->name, &bytes)) return false;
    value->name_bytes = (uint32_t)bytes;
    skip_space(p);
    if (!next_is(p, ':')) return fault(p, p->at, "a colon is expected after a name");
    p->at++;
    skip_space(p);
    return true;
}

static bool is_in_object(const parser *p) {
    return p->depth && p->stack[p->open[p->depth - 1]].kind == WB_JSON_OBJECT;
}

/* One value, or the beginning of a container. */
static bool read_value(parser *p) {
    wb_json value = {.offset = offset_of(p, p->at)};
    if (is_in_object(p) && !read_name(p, &value)) return false;
    if (p->at == p->end) return fault(p, p->at, "the text ends where a value is expected");
    bool is_fine = true;
    if (*p->at == '"') {
        value.kind = WB_JSON_TEXT;
        is_fine = read_text(p, &value.text, &value.count);
    } else if (*p->at == '[' || *p->at == '{') {
        is_fine = open_container(p, &value);
    } else {
        is_fine = read_word(p, &value);
    }
    if (!is_fine || !WB_GROW(p->stack, p->count, p->capacity)) return false;
    p->stack[p->count++] = value;
    return true;
}

static char closing(const parser *p) { return is_in_object(p) ? '}' : ']'; }

/* Behind a value: closes containers, until a comma says that another value follows, or all ends. */
static bool read_end(parser *p) {
    while (p->depth) {
        skip_space(p);
        const bool is_empty = p->open[p->depth - 1] == p->count - 1;
        if (next_is(p, closing(p))) {
            if (!close_container(p)) return false;
            continue;
        }
        if (is_empty) return true;
        if (next_is(p, ',')) {
            p->at++;
            skip_space(p);
            if (next_is(p, closing(p))) return fault(p, p->at, "a comma before the end");
            return true;
        }
        return fault(p, p->at,
                     is_in_object(p) ? "a comma or } is expected" : "a comma or ] is expected");
    }
    return true;
}

static bool read_all(parser *p) {
    skip_space(p);
    do {
        if (!read_value(p) || !read_end(p)) return false;
    } while (p->depth);
    skip_space(p);
    return p->at == p->end || fault(p, p->at, "something follows its end");
}

static wb_json *root_of(parser *p) {
    wb_json *root = wb_arena_take(p->arena, sizeof *root);
    if (root) *root = *p->stack;
    return root;
}

static bool check_text(const parser *p, size_t size_bytes) {
    if (size_bytes > WB_JSON_MOST_BYTES) {
        (void)wb_file_fault(p->file, p->offset, "JSON may have at most %d bytes, but has %zu",
                            WB_JSON_MOST_BYTES, size_bytes);
        return false;
    }
    const int64_t place = wb_utf8_fault(p->text, size_bytes);
    if (place >= 0) {
        (void)wb_file_fault(p->file, p->offset + place, "a byte is not valid UTF-8");
        return false;
    }
    if (size_bytes >= 3 && memcmp(p->text, "\xEF\xBB\xBF", 3) == 0)
        return fault(p, p->text, "it begins with a byte order mark");
    return true;
}

const wb_json *wb_json_parse(const wb_file *file, wb_arena *arena, const char *text,
                             size_t size_bytes, int64_t offset) {
    parser p = {.file = file, .arena = arena, .offset = offset};
    p.text = p.at = size_bytes ? text : "";
    p.end = p.text + size_bytes;
    wb_json *root = NULL;
    if (check_text(&p, size_bytes) && (p.room = wb_arena_take(arena, size_bytes + 1)) &&
        read_all(&p))
        root = root_of(&p);
    wb_release(p.stack);
    return root;
}

wb_file *wb_json_open(const char *path, const wb_json **root) {
    wb_file *file = wb_file_mapped(path);
    if (!file) return NULL;
    *root = wb_json_parse(file, &file->arena, (const char *)file->map.bytes,
                          (size_t)file->map.size_bytes, 0);
    if (*root) return file;
    wb_free(file);
    return NULL;
}
