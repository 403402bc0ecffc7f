/* BSON from a notation that tests can be written in, damaged on purpose or not:
 *
 *     {a: 1, b: 2i, c: 1.5, d: 'text', e: [true, null], f: <00 ff>, g: !07}
 *
 * int64, int32, double, string, array, bool, null, binary; !07 is a type byte without a payload.
 * Keys of arrays are made. `$Name` is {tag: 'datatype', params: [], name: ['Core', 'Name']}. */
#ifndef WB_TESTS_FORMATS_BSON_MAKER_H
#define WB_TESTS_FORMATS_BSON_MAKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bson_maker {
    const char *in;
    unsigned char bytes[1 << 16];
    size_t used;
} bson_maker;

static inline void out(bson_maker *m, const void *bytes, size_t size) {
    if (m->used + size > sizeof m->bytes) abort();
    memcpy(m->bytes + m->used, bytes, size);
    m->used += size;
}

static inline void out_int(bson_maker *m, int64_t x, int size) {
    for (int i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)((uint64_t)x >> 8 * i);
        out(m, &byte, 1);
    }
}

static inline char peek(bson_maker *m) {
    while (*m->in == ' ' || *m->in == '\n' || *m->in == ',') m->in++;
    return *m->in;
}

static inline void make_children(bson_maker *m, char ends, int has_keys);

static inline void make_text(bson_maker *m) {
    const char *end = strchr(++m->in, '\'');
    out_int(m, end - m->in + 1, 4);
    out(m, m->in, (size_t)(end - m->in));
    out_int(m, 0, 1);
    m->in = end + 1;
}

static inline void make_binary(bson_maker *m) {
    const size_t at = m->used;
    out_int(m, 0, 5);
    m->in++;
    while (peek(m) != '>') {
        char *end;
        const int64_t byte = strtol((char[]){m->in[0], m->in[1], 0}, &end, 16);
        out_int(m, byte, 1);
        m->in += 2;
    }
    m->in++;
    const uint32_t size = (uint32_t)(m->used - at - 5);
    memcpy(m->bytes + at, &size, 4);
}

static inline void make_number(bson_maker *m, size_t type_at) {
    char *end, *real_end;
    const long long integer = strtoll(m->in, &end, 10);
    const double real = strtod(m->in, &real_end);
    m->bytes[type_at] = real_end != end ? 0x01 : *end == 'i' ? 0x10 : 0x12;
    if (real_end != end)
        out(m, &real, 8);
    else
        out_int(m, integer, *end == 'i' ? 4 : 8);
    m->in = real_end != end ? real_end : end + (*end == 'i');
}

static inline void make_type(bson_maker *m) {
    char name[64], text[256];
    sscanf(++m->in, "%63[A-Za-z0-9]", name);
    const char *rest = m->in + strlen(name);
    snprintf(text, sizeof text, "{tag: 'datatype', params: [], name: ['Core', '%s']}", name);
    m->in = text + 1;
    make_children(m, '}', 1);
    m->in = rest;
}

/* A value; its type byte, left open, is at type_at. */
static inline void make_value(bson_maker *m, size_t type_at) {
    const char first = peek(m);
    unsigned char *type = &m->bytes[type_at];
    if (first == '{')
        *type = 3, m->in++, make_children(m, '}', 1);
    else if (first == '[')
        *type = 4, m->in++, make_children(m, ']', 0);
    else if (first == '$')
        *type = 3, make_type(m);
    else if (first == '\'')
        *type = 2, make_text(m);
    else if (first == '<')
        *type = 5, make_binary(m);
    else if (first == '!')
        *type = (unsigned char)strtol(m->in + 1, NULL, 16), m->in += 3;
    else if (strncmp(m->in, "null", 4) == 0)
        *type = 10, m->in += 4;
    else if (strncmp(m->in, "true", 4) == 0)
        *type = 8, m->in += 4, out_int(m, 1, 1);
    else if (strncmp(m->in, "false", 5) == 0)
        *type = 8, m->in += 5, out_int(m, 0, 1);
    else
        make_number(m, type_at);
}

static inline void make_children(bson_maker *m, char ends, int has_keys) {
    const size_t at = m->used;
    out_int(m, 0, 4);
    for (int i = 0; peek(m) != ends; i++) {
        const size_t type_at = m->used;
        out_int(m, 0, 1);
        char key[128];
        if (has_keys) {
            const char *colon = strchr(m->in, ':');
            snprintf(key, sizeof key, "%.*s", (int)(colon - m->in), m->in);
            m->in = colon + 1;
        } else
            snprintf(key, sizeof key, "%d", i);
        out(m, key, strlen(key) + 1);
        make_value(m, type_at);
    }
    m->in++;
    out_int(m, 0, 1);
    const uint32_t size = (uint32_t)(m->used - at);
    memcpy(m->bytes + at, &size, 4);
}

static inline void make_bson(bson_maker *m, const char *text) {
    m->in = strchr(text, '{') + 1;
    m->used = 0;
    make_children(m, '}', 1);
}

#endif
