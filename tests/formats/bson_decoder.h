/* Julia's BSON a second time, from the description of the format alone, for the tests of what
 * src/formats/bson_write.c writes: text as Julia would show it, or "error: ..." for what BSON.load
 * would not take. Nothing of the library is used.
 *
 *     {model: (weight = Float32(2, 1)[1, 2], bias = false, σ = ()), epoch: 3}
 *
 * It is as strict as a reader can be: keys of lists are their numbers, lengths fit exactly, a
 * NamedTuple's types are those of its values. */
#ifndef WB_TESTS_FORMATS_BSON_DECODER_H
#define WB_TESTS_FORMATS_BSON_DECODER_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text that grows ---- */

typedef struct decoded {
    char *text;
    size_t used, room;
} decoded;

static void say(decoded *d, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const size_t length = (size_t)vsnprintf(NULL, 0, format, list);
    if (d->used + length + 1 > d->room) {
        d->room = 2 * d->room + length + 64;
        d->text = realloc(d->text, d->room);
    }
    vsnprintf(d->text + d->used, length + 1, format, again);
    d->used += length;
    va_end(list);
    va_end(again);
}

/* ---- a tree of elements ---- */

typedef struct element {
    int type;
    const char *key;
    const unsigned char *bytes; /* of strings and binaries, and of numbers */
    size_t size;
    struct element *children;
    size_t count;
} element;

typedef struct decoder {
    const char *error; /* the first */
    const element *backrefs;
} decoder;

static int64_t little(const unsigned char *p, int n) {
    uint64_t x = 0;
    for (int i = 0; i < n; i++) x |= (uint64_t)p[i] << 8 * i;
    return n == 4 ? (int32_t)x : (int64_t)x;
}

static void wrong(decoder *d, const char *what) {
    if (!d->error) d->error = what;
}

static void release_elements(element *e) {
    for (size_t i = 0; i < e->count; i++) release_elements(&e->children[i]);
    free(e->children);
}

static size_t parse_document(decoder *d, const unsigned char *p, size_t left, element *e);

/* What follows an element's key; returns its length. */
static size_t parse_payload(decoder *d, const unsigned char *p, size_t left, element *e) {
    size_t head = 0, size = 0;
    switch (e->type) {
    case 0x01:
    case 0x12:
        size = 8;
        break;
    case 0x10:
        size = 4;
        break;
    case 0x08:
        size = 1;
        break;
    case 0x0A:
        break;
    case 0x02:
    case 0x05:
        head = e->type == 2 ? 4 : 5;
        if (left < head || little(p, 4) < 0) {
            wrong(d, "length");
            return left;
        }
        size = (size_t)little(p, 4);
        if (e->type == 5 && p[4] != 0) wrong(d, "subtype");
        break;
    case 0x03:
    case 0x04:
        return parse_document(d, p, left, e);
    default:
        wrong(d, "type byte");
    }
    if (size > left - head || left < head) {
        wrong(d, "payload beyond its document");
        return left;
    }
    e->bytes = p + head;
    e->size = size;
    if (e->type == 2) {
        if (size == 0 || e->bytes[size - 1] != 0) wrong(d, "string without its zero byte");
        e->size -= size > 0;
    }
    return head + size;
}

static size_t parse_document(decoder *d, const unsigned char *p, size_t left, element *e) {
    if (left < 5 || little(p, 4) < 5 || (size_t)little(p, 4) > left) {
        wrong(d, "document length");
        return left;
    }
    const size_t size = (size_t)little(p, 4);
    size_t at = 4;
    while (!d->error && at < size && p[at]) {
        element child = {.type = p[at], .key = (const char *)p + at + 1};
        const size_t key = strnlen(child.key, size - at - 1);
        at += 1 + key + 1;
        if (at >= size) {
            wrong(d, "key");
            return size;
        }
        char number[24];
        snprintf(number, sizeof number, "%zu", e->count);
        if (e->type == 4 && strcmp(number, child.key) != 0) wrong(d, "key of a list's element");
        at += parse_payload(d, p + at, size - at, &child);
        e->children = realloc(e->children, (e->count + 1) * sizeof child);
        e->children[e->count++] = child;
    }
    if (at != size - 1) wrong(d, "document does not end where it says");
    return size;
}

static const element *child_named(const element *e, const char *key) {
    for (size_t i = 0; e && i < e->count; i++)
        if (strcmp(e->children[i].key, key) == 0) return &e->children[i];
    return NULL;
}

static int is_string(const element *e, const char *text) {
    return e && e->type == 2 && e->size == strlen(text) && memcmp(e->bytes, text, e->size) == 0;
}

static int has_tag(const element *e, const char *tag) {
    return e && e->type == 3 && is_string(child_named(e, "tag"), tag);
}

/* The element, with back-references followed. */
static const element *follow(decoder *d, const element *e) {
    for (int i = 0; i < 64 && has_tag(e, "backref"); i++) {
        const element *ref = child_named(e, "ref");
        const int64_t n = ref && ref->type == 0x12 ? little(ref->bytes, 8) : 0;
        if (!d->backrefs || n < 1 || n > (int64_t)d->backrefs->count) {
            wrong(d, "back-reference");
            return NULL;
        }
        e = &d->backrefs->children[n - 1];
    }
    return e;
}

/* ---- types ---- */

static void say_type(decoder *d, decoded *out, const element *e);

static void say_list_of_types(decoder *d, decoded *out, const element *list) {
    for (size_t i = 0; list && i < list->count; i++) {
        if (i) say(out, ", ");
        say_type(d, out, &list->children[i]);
    }
}

/* A datatype, or what may be a type's parameter: an integer, a tuple of symbols. */
static void say_type(decoder *d, decoded *out, const element *e) {
    e = follow(d, e);
    if (!e) return;
    if (e->type == 0x12) {
        say(out, "%lld", (long long)little(e->bytes, 8));
        return;
    }
    if (has_tag(e, "tuple")) {
        say(out, "(");
        say_list_of_types(d, out, child_named(e, "data"));
        say(out, ")");
        return;
    }
    if (has_tag(e, "symbol")) {
        const element *name = child_named(e, "name");
        if (!name || name->type != 2) {
            wrong(d, "symbol");
            return;
        }
        say(out, ":%.*s", (int)name->size, (const char *)name->bytes);
        return;
    }
    const element *name = child_named(e, "name"), *params = child_named(e, "params");
    if (!has_tag(e, "datatype") || !name || name->type != 4 || !params || params->type != 4) {
        wrong(d, "type");
        return;
    }
    for (size_t i = 0; i < name->count; i++) {
        if (i == 0 && is_string(&name->children[i], "Core")) continue;
        if (name->children[i].type != 2) {
            wrong(d, "type name");
            return;
        }
        say(out, "%s%.*s", i > 1 ? "." : "", (int)name->children[i].size,
            (const char *)name->children[i].bytes);
    }
    const element *last = name->count ? &name->children[name->count - 1] : NULL;
    if (!params->count && !is_string(last, "Tuple")) return;
    say(out, "{");
    say_list_of_types(d, out, params);
    say(out, "}");
}

static char *type_text(decoder *d, const element *e) {
    decoded out = {0};
    say(&out, "%s", "");
    if (e) say_type(d, &out, e);
    return out.text;
}

/* The type of the value itself. */
static void say_type_of(decoder *d, decoded *out, const element *e) {
    static const char *const names[] = {
        [1] = "Float64",  [2] = "String", [5] = "Array{UInt8, 1}", [8] = "Bool",
        [10] = "Nothing", [16] = "Int32", [18] = "Int64"};
    e = follow(d, e);
    if (!e || d->error) return;
    if (e->type != 3 && e->type != 4)
        say(out, "%s", names[e->type]);
    else if (has_tag(e, "array")) {
        const element *size = child_named(e, "size");
        say(out, "Array{");
        say_type(d, out, child_named(e, "type"));
        say(out, ", %zu}", size ? size->count : 0);
    } else if (has_tag(e, "tuple")) {
        const element *data = child_named(e, "data");
        say(out, "Tuple{");
        for (size_t i = 0; data && i < data->count; i++) {
            if (i) say(out, ", ");
            say_type_of(d, out, &data->children[i]);
        }
        say(out, "}");
    } else if (has_tag(e, "struct"))
        say_type(d, out, child_named(e, "type"));
    else
        wrong(d, "a value whose type is not known");
}

/* ---- values ---- */

static void say_value(decoder *d, decoded *out, const element *e);

static void say_number(decoder *d, decoded *out, const char *type, const unsigned char *p) {
    float single;
    double real;
    if (strcmp(type, "Float32") == 0)
        say(out, "%.9g", (memcpy(&single, p, 4), (double)single));
    else if (strcmp(type, "Float64") == 0)
        say(out, "%.17g", (memcpy(&real, p, 8), real));
    else if (strcmp(type, "Float16") == 0)
        say(out, "0x%04x", (unsigned)(p[0] | p[1] << 8));
    else if (strcmp(type, "Int64") == 0)
        say(out, "%lld", (long long)little(p, 8));
    else if (strcmp(type, "Int32") == 0)
        say(out, "%lld", (long long)little(p, 4));
    else if (strcmp(type, "UInt8") == 0 || strcmp(type, "Bool") == 0)
        say(out, "%u", *p);
    else
        wrong(d, "element type");
}

static size_t size_of_number(const char *type) {
    if (strstr(type, "64")) return 8;
    if (strstr(type, "32")) return 4;
    return strstr(type, "16") ? 2 : 1;
}

static void say_numbers(decoder *d, decoded *out, const char *type, const element *data,
                        size_t count) {
    const size_t size = size_of_number(type);
    if (!data || data->type != 5 || data->size != count * size) {
        wrong(d, "data of another size");
        return;
    }
    say(out, "[");
    for (size_t i = 0; i < count; i++) {
        if (i) say(out, ", ");
        say_number(d, out, type, data->bytes + i * size);
    }
    say(out, "]");
}

static void say_array(decoder *d, decoded *out, const element *e) {
    char *type = type_text(d, child_named(e, "type"));
    const element *size = child_named(e, "size");
    size_t count = 1;
    if (!size || size->type != 4) {
        free(type);
        wrong(d, "size");
        return;
    }
    say(out, "%s(", type);
    for (size_t i = 0; i < size->count; i++) {
        const element *one = &size->children[i];
        if (one->type != 0x12) {
            free(type);
            wrong(d, "size");
            return;
        }
        count *= (size_t)little(one->bytes, 8);
        say(out, "%s%lld", i ? ", " : "", (long long)little(one->bytes, 8));
    }
    say(out, ")");
    say_numbers(d, out, type, child_named(e, "data"), count);
    free(type);
}

static void say_list(decoder *d, decoded *out, const char *ends, const element *list) {
    say(out, "%c", ends[0]);
    for (size_t i = 0; list && i < list->count; i++) {
        if (i) say(out, ", ");
        say_value(d, out, &list->children[i]);
    }
    say(out, "%c", ends[1]);
}

/* Declared types are those of the values, or Any. */
static void check_types(decoder *d, const element *types, const element *data) {
    for (size_t i = 0; i < data->count && !d->error; i++) {
        decoded actual = {0};
        char *declared = type_text(d, &types->children[i]);
        say_type_of(d, &actual, &data->children[i]);
        if (!d->error && !strstr(declared, "Any") && strcmp(declared, actual.text) != 0)
            wrong(d, "a value of another type than its NamedTuple says");
        free(declared);
        free(actual.text);
    }
}

static void say_struct(decoder *d, decoded *out, const element *e) {
    const element *type = follow(d, child_named(e, "type")), *data = child_named(e, "data");
    const element *name = child_named(type, "name"), *params = child_named(type, "params");
    if (!name || name->count != 2 || !is_string(&name->children[1], "NamedTuple") || !params ||
        params->count != 2 || !data || data->type != 4) {
        wrong(d, "a struct that is no NamedTuple");
        return;
    }
    const element *names = child_named(&params->children[0], "data");
    const element *types = child_named(&params->children[1], "params");
    if (!names || !types || names->count != data->count || types->count != data->count) {
        wrong(d, "a NamedTuple of other counts");
        return;
    }
    check_types(d, types, data);
    say(out, "(");
    for (size_t i = 0; i < data->count; i++) {
        const element *symbol = child_named(&names->children[i], "name");
        if (!symbol) {
            wrong(d, "symbol");
            return;
        }
        say(out, "%s%.*s = ", i ? ", " : "", (int)symbol->size, (const char *)symbol->bytes);
        say_value(d, out, &data->children[i]);
    }
    say(out, ")");
}

static void say_document(decoder *d, decoded *out, const element *e) {
    size_t said = 0;
    if (child_named(e, "tag")) {
        wrong(d, "a key called tag");
        return;
    }
    say(out, "{");
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->children[i].key, "_backrefs") == 0) continue;
        say(out, "%s%s: ", said++ ? ", " : "", e->children[i].key);
        say_value(d, out, &e->children[i]);
    }
    say(out, "}");
}

static void say_value(decoder *d, decoded *out, const element *e) {
    e = follow(d, e);
    if (!e || d->error) return;
    switch (e->type) {
    case 0x01:
        say_number(d, out, "Float64", e->bytes);
        break;
    case 0x02:
        say(out, "\"%.*s\"", (int)e->size, (const char *)e->bytes);
        break;
    case 0x04:
        say_list(d, out, "[]", e);
        break;
    case 0x05:
        say(out, "UInt8(%zu)", e->size);
        say_numbers(d, out, "UInt8", e, e->size);
        break;
    case 0x08:
        say(out, e->bytes[0] ? "true" : "false");
        break;
    case 0x0A:
        say(out, "nothing");
        break;
    case 0x12:
        say_number(d, out, "Int64", e->bytes);
        break;
    case 0x03:
        if (has_tag(e, "array"))
            say_array(d, out, e);
        else if (has_tag(e, "tuple"))
            say_list(d, out, "()", child_named(e, "data"));
        else if (has_tag(e, "struct"))
            say_struct(d, out, e);
        else
            say_document(d, out, e);
        break;
    default:
        wrong(d, "a value");
    }
}

/* The file as text, to be freed; *backrefs is how many entries there are. */
static inline char *decode_bson(const void *bytes, size_t size, size_t *backrefs) {
    decoder d = {0};
    decoded out = {0};
    element top = {.type = 3, .key = ""};
    if (parse_document(&d, bytes, size, &top) != size) wrong(&d, "bytes behind the document");
    d.backrefs = child_named(&top, "_backrefs");
    *backrefs = d.backrefs ? d.backrefs->count : 0;
    if (!d.error) say_value(&d, &out, &top);
    if (d.error) {
        out.used = 0;
        say(&out, "error: %s", d.error);
    }
    release_elements(&top);
    return out.text;
}

#endif
