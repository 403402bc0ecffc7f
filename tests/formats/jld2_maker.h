/* JLD2 files made by hand, from the inside out: what is referred to comes first, then what refers
 * to it by its address. */
#ifndef WB_TESTS_FORMATS_JLD2_MAKER_H
#define WB_TESTS_FORMATS_JLD2_MAKER_H

#include "base/lookup3.h"
#include "formats/trees.h"

enum { JLD2_BASE = 512, JLD2_MOST = 1 << 15, JLD2_SUMS = 512 };

typedef struct jld2 {
    unsigned char bytes[JLD2_MOST];
    size_t count;
    size_t sums[JLD2_SUMS][2]; /* from, to: where the checksums of headers stand */
    int sum_count;
    uint64_t types; /* address of the committed datatype of Julia's types */
} jld2;

/* Bytes of a header, a datatype, a value. */
typedef struct chunk {
    unsigned char bytes[4096];
    size_t count;
} chunk;

static inline void add(chunk *c, const void *bytes, size_t count) {
    assert_true(c->count + count <= sizeof c->bytes);
    if (count) memcpy(c->bytes + c->count, bytes, count);
    c->count += count;
}

static inline void add_bits(chunk *c, uint64_t bits, int size) {
    for (int i = 0; i < size; i++) add(c, (unsigned char[]){(unsigned char)(bits >> 8 * i)}, 1);
}

static inline void store_bits(unsigned char *at, uint64_t bits, int size) {
    for (int i = 0; i < size; i++) at[i] = (unsigned char)(bits >> 8 * i);
}

static inline uint64_t put(jld2 *j, const void *bytes, size_t count) {
    const size_t at = j->count;
    assert_true(at + count <= sizeof j->bytes);
    if (count) memcpy(j->bytes + at, bytes, count);
    j->count += count;
    return at - JLD2_BASE;
}

/* ---- headers ---- */

static inline void sum_up(jld2 *j, size_t from, size_t to) {
    store_bits(j->bytes + to, wb_lookup3(j->bytes + from, to - from), 4);
}

static inline void note_sum(jld2 *j, size_t from, size_t to) {
    assert_true(j->sum_count < JLD2_SUMS);
    j->sums[j->sum_count][0] = from, j->sums[j->sum_count++][1] = to;
    sum_up(j, from, to);
}

static inline void message(chunk *c, int type, int flags, const void *body, size_t count) {
    add_bits(c, (uint64_t)type, 1);
    add_bits(c, count, 2);
    add_bits(c, (uint64_t)flags, 1);
    add(c, body, count);
}

static inline uint64_t put_header(jld2 *j, const chunk *messages) {
    chunk head = {.count = 0};
    add(&head, "OHDR\2\2", 6);
    add_bits(&head, messages->count, 4);
    const uint64_t address = put(j, head.bytes, head.count);
    (void)put(j, messages->bytes, messages->count);
    const size_t end = j->count;
    (void)put(j, "\0\0\0\0", 4);
    note_sum(j, address + JLD2_BASE, end);
    return address;
}

/* ---- heaps: one for each object ---- */

/* A value of 16 bytes: how many elements, and where. */
static inline void add_in_heap(jld2 *j, chunk *c, const void *bytes, size_t count,
                               size_t element_bytes) {
    chunk heap = {.count = 0};
    const size_t size = count * element_bytes, padded = (size + 7) / 8 * 8;
    add(&heap, "GCOL\1\0\0\0", 8);
    add_bits(&heap, 16 + padded, 8);
    add(&heap, "\1\0\1\0\0\0\0\0", 8);
    add_bits(&heap, size, 8);
    add(&heap, bytes, size);
    add(&heap, "\0\0\0\0\0\0\0", padded - size);
    const uint64_t address = put(j, heap.bytes, heap.count);
    add_bits(c, count, 4);
    add_bits(c, address, 8);
    add_bits(c, 1, 4);
}

static inline void add_text(jld2 *j, chunk *c, const char *text) {
    add_in_heap(j, c, text, strlen(text), 1);
}

/* ---- datatypes ---- */

#define BYTES_OF(text) text, sizeof text - 1
static const unsigned char t_i64[] = {0x30, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0};
static const unsigned char t_i16[] = {0x30, 8, 0, 0, 2, 0, 0, 0, 0, 0, 16, 0};
static const unsigned char t_u64[] = {0x30, 0, 0, 0, 8, 0, 0, 0, 0, 0, 64, 0};
static const unsigned char t_f32[] = {0x31, 0x20, 0x1f, 0, 4, 0,  0,   0, 0, 0,
                                      32,   0,    23,   8, 0, 23, 127, 0, 0, 0};
static const unsigned char t_f64[] = {0x31, 0x20, 0x3f, 0,  8, 0,  0,    0, 0, 0,
                                      64,   0,    52,   11, 0, 52, 0xff, 3, 0, 0};
static const unsigned char t_bool[] = {0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8, 0};
static const unsigned char t_ref[] = {0x37, 0, 0, 0, 8, 0, 0, 0};
static const unsigned char t_text[] = {0x39, 0x11, 1, 0, 16, 0, 0, 0, 0x30, 0,
                                       0,    0,    1, 0, 0,  0, 0, 0, 8,    0};
static const unsigned char t_refs[] = {0x39, 0, 0, 0, 16, 0, 0, 0, 0x37, 0, 0, 0, 8, 0, 0, 0};
static const unsigned char t_empty[] = {0x35, 0, 0, 0, 1, 0, 0, 0};

typedef struct member {
    const char *name;
    const unsigned char *type;
    size_t type_bytes, size;
} member;
#define MEMBER(name, type, size) (name), (type), sizeof(type), (size)

static inline void add_compound(chunk *c, int count, const member *members) {
    size_t size = 0;
    for (int i = 0; i < count; i++) size += members[i].size;
    add(c, "\x36", 1);
    add_bits(c, (uint64_t)count, 3);
    add_bits(c, size, 4);
    for (int i = 0, offset = 0; i < count; offset += (int)members[i++].size) {
        add(c, members[i].name, strlen(members[i].name) + 1);
        add_bits(c, (uint64_t)offset, 1);
        add(c, members[i].type, members[i].type_bytes);
    }
}

/* ---- dataspaces, attributes ---- */

enum { SCALAR = 0, SIMPLE = 1, NOTHING = 2 };

/* Sizes fastest first; they are reversed. */
static inline void add_space(chunk *c, int kind, int ndim, const int64_t *sizes) {
    add(c, (unsigned char[]){2, (unsigned char)ndim, 0, (unsigned char)kind}, 4);
    for (int d = ndim; d-- > 0;) add_bits(c, (uint64_t)sizes[d], 8);
}

static inline void add_shared(chunk *c, uint64_t address) {
    add(c, "\3\2", 2);
    add_bits(c, address, 8);
}

/* type NULL: the committed datatype at `shared`. */
static inline void attribute(chunk *c, const char *name, const unsigned char *type,
                             size_t type_bytes, uint64_t shared, int64_t count,
                             const chunk *value) {
    chunk space = {.count = 0}, body = {.count = 0}, own = {.count = 0};
    add_space(&space, count < 0 ? SCALAR : SIMPLE, count >= 0, &count);
    if (type)
        add(&own, type, type_bytes);
    else
        add_shared(&own, shared);
    add(&body, (unsigned char[]){2, !type}, 2);
    add_bits(&body, strlen(name) + 1, 2);
    add_bits(&body, own.count, 2);
    add_bits(&body, space.count, 2);
    add(&body, name, strlen(name) + 1);
    add(&body, own.bytes, own.count);
    add(&body, space.bytes, space.count);
    add(&body, value->bytes, value->count);
    message(c, 0x0c, 0, body.bytes, body.count);
}

/* ---- Julia's types ---- */

static inline void add_julia(jld2 *j, chunk *c, const char *name, int count,
                             const uint64_t *parameters) {
    chunk list = {.count = 0};
    for (int i = 0; i < count; i++) add_bits(&list, parameters[i], 8);
    add_text(j, c, name);
    if (count)
        add_in_heap(j, c, list.bytes, (size_t)count, 8);
    else
        add(c, (unsigned char[16]){0}, 16);
}

static inline void add_type_of_types(chunk *c) {
    const member members[] = {{MEMBER("name", t_text, 16)}, {MEMBER("parameters", t_refs, 16)}};
    add_compound(c, 2, members);
}

/* What a committed datatype says beside its Julia type. */
typedef struct committed {
    const char *name;
    int count;                  /* of parameters */
    const uint64_t *parameters; /* or NULL */
    const char *written;        /* or NULL */
    bool is_empty;
    int fields;               /* with names, if there are some */
    const char *const *names; /* NULL: field_datatypes, if there are types */
    const uint64_t *field_types;
} committed;

static inline uint64_t commit(jld2 *j, committed what, const void *type, size_t type_bytes) {
    chunk value = {.count = 0}, written = {.count = 0}, names = {.count = 0}, types = {.count = 0},
          c = {.count = 0};
    add_julia(j, &value, what.name, what.count, what.parameters);
    if (what.written) add_julia(j, &written, what.written, 0, NULL);
    for (int i = 0; i < what.fields; i++) {
        if (what.names) add_text(j, &names, what.names[i]);
        add_bits(&types, what.field_types[i], 8);
    }
    message(&c, 0x03, 1, type, type_bytes);
    attribute(&c, "julia_type", NULL, 0, j->types, -1, &value);
    if (what.written) attribute(&c, "written_type", NULL, 0, j->types, -1, &written);
    if (what.is_empty) {
        chunk one = {.bytes = {1}, .count = 1};
        attribute(&c, "empty", t_bool, sizeof t_bool, 0, -1, &one);
    }
    if (what.fields && what.names)
        attribute(&c, "field_names", t_text, sizeof t_text, 0, what.fields, &names);
    if (what.fields)
        attribute(&c, what.names ? "field_types" : "field_datatypes", t_ref, sizeof t_ref, 0,
                  what.fields, &types);
    return put_header(j, &c);
}

static inline uint64_t commit_empty(jld2 *j, const char *name, int count,
                                    const uint64_t *parameters) {
    return commit(
        j, (committed){.name = name, .count = count, .parameters = parameters, .is_empty = true},
        t_empty, sizeof t_empty);
}

/* ---- datasets ---- */

typedef struct dataset {
    const unsigned char *type; /* NULL: the committed datatype at shared */
    size_t type_bytes;
    uint64_t shared;
    int kind, ndim;
    const int64_t *sizes;
    const void *data;
    size_t data_bytes;
    bool is_contiguous;
    const void *filters; /* message of filters: the data is one chunk */
    size_t filters_bytes;
    int64_t dimensions; /* the attribute's number of sizes + 1 */
} dataset;

static inline void add_layout(jld2 *j, chunk *layout, const dataset *d) {
    if (!d->is_contiguous && !d->filters) {
        add(layout, "\4\0", 2);
        add_bits(layout, d->data_bytes, 2);
        add(layout, d->data, d->data_bytes);
        return;
    }
    while (j->count % 8) (void)put(j, "", 1);
    const uint64_t address = put(j, d->data, d->data_bytes);
    add(layout, d->filters ? "\4\2" : "\4\1", 2);
    if (d->filters) {
        add(layout, (unsigned char[]){2, (unsigned char)(d->ndim + 1), 8}, 3);
        for (int i = 0; i <= d->ndim; i++) add_bits(layout, 1, 8);
        add(layout, "\1", 1);
        add_bits(layout, d->data_bytes, 8);
        add_bits(layout, 0, 4);
    }
    add_bits(layout, address, 8);
    if (!d->filters) add_bits(layout, d->data_bytes, 8);
}

static inline uint64_t put_dataset(jld2 *j, dataset d) {
    chunk c = {.count = 0}, space = {.count = 0}, layout = {.count = 0}, shared = {.count = 0};
    add_layout(j, &layout, &d);
    add_space(&space, d.kind, d.dimensions && d.kind == SIMPLE ? 1 : d.ndim,
              d.dimensions ? (const int64_t[]){1} : d.sizes);
    add_shared(&shared, d.shared);
    message(&c, 0x05, 0, "\3\x09", 2);
    message(&c, 0x01, 0, space.bytes, space.count);
    if (d.dimensions) {
        chunk sizes = {.count = 0};
        for (int64_t i = d.dimensions - 1; i-- > 0;) add_bits(&sizes, (uint64_t)d.sizes[i], 8);
        attribute(&c, "dimensions", t_i64, sizeof t_i64, 0, d.dimensions - 1, &sizes);
    }
    if (d.type)
        message(&c, 0x03, 1, d.type, d.type_bytes);
    else
        message(&c, 0x03, 3, shared.bytes, shared.count);
    if (d.filters) message(&c, 0x0b, 0, d.filters, d.filters_bytes);
    message(&c, 0x08, 0, layout.bytes, layout.count);
    message(&c, 0x00, 0, (unsigned char[16]){0}, 16);
    return put_header(j, &c);
}

#define TYPE(t) .type = (t), .type_bytes = sizeof(t)
#define DATA(...)                                                                                  \
    .data = (const unsigned char[]){__VA_ARGS__},                                                  \
    .data_bytes = sizeof((unsigned char[]){__VA_ARGS__})
#define VALUE(c) .data = (c).bytes, .data_bytes = (c).count
#define SIZES(...)                                                                                 \
    .kind = SIMPLE, .ndim = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),             \
    .sizes = (const int64_t[]) {                                                                   \
        __VA_ARGS__                                                                                \
    }

static inline uint64_t put_integer(jld2 *j, int64_t value) {
    chunk c = {.count = 0};
    add_bits(&c, (uint64_t)value, 8);
    return put_dataset(j, (dataset){TYPE(t_i64), VALUE(c)});
}

/* A type that is a dataset. */
static inline uint64_t put_julia(jld2 *j, const char *name, int count, const uint64_t *parameters) {
    chunk c = {.count = 0};
    add_julia(j, &c, name, count, parameters);
    return put_dataset(j, (dataset){.shared = j->types, VALUE(c)});
}

/* A list of references. */
static inline uint64_t put_references(jld2 *j, int count, const uint64_t *addresses) {
    chunk c = {.count = 0};
    for (int i = 0; i < count; i++) add_bits(&c, addresses[i], 8);
    return put_dataset(j, (dataset){TYPE(t_ref), SIZES(count), VALUE(c)});
}

/* ---- groups, the file ---- */

typedef struct entry {
    const char *name;
    uint64_t address;
} entry;

static inline uint64_t put_group(jld2 *j, int count, const entry *entries) {
    chunk c = {.count = 0};
    message(&c, 0x02, 0, "\0\0\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377\377",
            18);
    message(&c, 0x0a, 0, "\0\0", 2);
    for (int i = 0; i < count; i++) {
        chunk link = {.count = 0};
        add(&link, "\1\x10\1", 3);
        add_bits(&link, strlen(entries[i].name), 1);
        add(&link, entries[i].name, strlen(entries[i].name));
        add_bits(&link, entries[i].address, 8);
        message(&c, 0x06, 0, link.bytes, link.count);
    }
    return put_header(j, &c);
}

#define JLD2_NEW "HDF5-based Julia Data Format, version 0.2.0"
#define JLD2_OLD "HDF5-based Julia Data Format, version 0.1.1"

static inline void begin_jld2(jld2 *j, const char *text) {
    *j = (jld2){.count = 0};
    memcpy(j->bytes, text, strlen(text));
    j->count = JLD2_BASE + 48;
    /* the datatype of types names itself */
    chunk type = {.count = 0}, value = {.count = 0}, c = {.count = 0};
    add_julia(j, &value, "Core.DataType", 0, NULL);
    j->types = j->count - JLD2_BASE;
    add_type_of_types(&type);
    message(&c, 0x03, 1, type.bytes, type.count);
    attribute(&c, "julia_type", NULL, 0, j->types, -1, &value);
    (void)put_header(j, &c);
}

static inline void end_jld2(jld2 *j, uint64_t root) {
    unsigned char *s = j->bytes + JLD2_BASE;
    memcpy(s, "\211HDF\r\n\032\n\2\10\10", 12);
    store_bits(s + 12, JLD2_BASE, 8);
    store_bits(s + 20, UINT64_MAX, 8);
    store_bits(s + 28, j->count, 8);
    store_bits(s + 36, root, 8);
    note_sum(j, JLD2_BASE, JLD2_BASE + 44);
}

#endif
