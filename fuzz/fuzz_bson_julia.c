/* The input as a list of words, from which a file is made whose lengths are right: what it means is
 * what may be wrong. */
#include "bson_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { MOST_BYTES = 1 << 15, MOST_DEPTH = 1100, LONGEST = 256 };

typedef struct maker {
    const uint8_t *in, *end;
    unsigned char bytes[MOST_BYTES];
    size_t used;
    struct {
        size_t at;
        int next; /* key of a list; -1: a document */
    } open[MOST_DEPTH];
    int depth;
} maker;

static const char *const keys[] = {"tag", "type", "size", "data",      "name",     "params",
                                   "ref", "path", "a",    "_backrefs", "metadata", ""};
static const char *const texts[] = {
    "array",   "struct",   "datatype", "tuple",    "symbol", "svec",    "ref",
    "backref", "unionall", "Main",     "Core",     "Base",   "Float32", "Float64",
    "Float16", "Int64",    "UInt8",    "Bool",     "UInt64", "Complex", "Dict",
    "IdDict",  "CuArray",  "weight",   "jl_other", "Tuple",  "Array",   "NamedTuple"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static unsigned take(maker *m) { return m->in < m->end ? *m->in++ : 0; }

static void put(maker *m, const void *bytes, size_t size) {
    memcpy(m->bytes + m->used, bytes, size);
    m->used += size;
}

static void put_number(maker *m, int64_t x, size_t size) { put(m, &x, size); }

static void put_key(maker *m, unsigned char type, const char *key) {
    put(m, &type, 1);
    put(m, key, strlen(key) + 1);
}

/* The next element's type and key: a word of the input, or its place in a list. */
static void begin_element(maker *m, unsigned char type) {
    char number[16];
    int *next = &m->open[m->depth - 1].next;
    if (*next < 0) {
        put_key(m, type, keys[take(m) % COUNT(keys)]);
        return;
    }
    (void)snprintf(number, sizeof number, "%d", (*next)++);
    put_key(m, type, number);
}

static void open_at(maker *m, bool is_list) {
    m->open[m->depth].at = m->used;
    m->open[m->depth++].next = is_list ? 0 : -1;
    put_number(m, 0, 4);
}

static void close_last(maker *m) {
    const size_t at = m->open[--m->depth].at;
    put_number(m, 0, 1);
    const uint32_t size = (uint32_t)(m->used - at);
    memcpy(m->bytes + at, &size, 4);
}

static void put_text(maker *m, const char *text) {
    put_number(m, (int64_t)strlen(text) + 1, 4);
    put(m, text, strlen(text) + 1);
}

/* {tag: tag, and the document stays open */
static void open_tagged(maker *m, const char *tag) {
    open_at(m, false);
    put_key(m, 2, "tag");
    put_text(m, tag);
}

static void put_reference(maker *m) {
    begin_element(m, 3);
    open_tagged(m, "backref");
    put_key(m, 0x12, "ref");
    put_number(m, take(m) % 16, 8);
    close_last(m);
}

static void put_type(maker *m) {
    begin_element(m, 3);
    open_tagged(m, "datatype");
    put_key(m, 4, "name");
    open_at(m, true);
    for (int i = 0; i < 2; i++) {
        begin_element(m, 2);
        put_text(m, texts[take(m) % COUNT(texts)]);
    }
    close_last(m);
    close_last(m);
}

static void put_binary(maker *m) {
    const unsigned size = take(m) % 64;
    begin_element(m, 5);
    put_number(m, size, 5);
    for (unsigned i = 0; i < size; i++) put_number(m, i & 1, 1);
}

static void put_scalar(maker *m, unsigned char type, size_t size) {
    begin_element(m, type);
    put_number(m, type == 8 ? (int)(take(m) & 1) : (int8_t)take(m), size);
}

static void put_word(maker *m) {
    const unsigned word = take(m) % 14;
    if (word < 3) {
        begin_element(m, 3);
        word == 2 ? open_at(m, false) : open_tagged(m, texts[take(m) % COUNT(texts)]);
    } else if (word < 5)
        begin_element(m, 4), open_at(m, true);
    else if (word == 5)
        begin_element(m, 2), put_text(m, texts[take(m) % COUNT(texts)]);
    else if (word == 6)
        put_reference(m);
    else if (word == 7)
        put_type(m);
    else if (word == 8)
        put_binary(m);
    else if (word == 9)
        put_scalar(m, 0x12, 8);
    else if (word == 10)
        put_scalar(m, 0x10, 4);
    else if (word == 11)
        put_scalar(m, 0x08, 1);
    else if (word == 12)
        begin_element(m, 0x0A);
    else if (m->depth > 1)
        close_last(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static maker m;
    m.in = bytes;
    m.end = bytes + size;
    m.used = 0;
    m.depth = 0;
    open_at(&m, false);
    while (m.in < m.end && m.used + LONGEST + MOST_DEPTH < MOST_BYTES && m.depth < MOST_DEPTH - 3)
        put_word(&m);
    while (m.depth > 0) close_last(&m);
    unsigned char *file = malloc(m.used);
    memcpy(file, m.bytes, m.used);
    check_bson(file, m.used);
    free(file);
    return 0;
}
