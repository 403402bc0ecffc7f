/* Zip files made by hand. */
#ifndef WB_TESTS_FORMATS_ZIP_MAKER_H
#define WB_TESTS_FORMATS_ZIP_MAKER_H

#include <zlib.h>

#include "formats/trees.h"

/* A zip file made by hand, each part of which a test may bend. */
typedef struct zip_entry {
    const char *name;
    const unsigned char *data;
    size_t size, stored; /* stored: 0 as size */
    int method, flags;
    uint32_t crc_flip;
    const char *local_name; /* NULL: name */
    bool wide;              /* sizes in the extra field */
} zip_entry;

typedef struct zip {
    unsigned char bytes[16384];
    size_t count, directory, end;
} zip;

static inline void put(zip *z, uint64_t value, int size) {
    for (int i = 0; i < size; i++, value >>= 8) z->bytes[z->count++] = (unsigned char)value;
}

static inline void put_bytes(zip *z, const void *bytes, size_t size) {
    if (size) memcpy(z->bytes + z->count, bytes, size);
    z->count += size;
}

/* Of what comes out. */
static inline uint32_t crc_of(const zip_entry *e, size_t stored) {
    static unsigned char out[9 << 20];
    if (e->method != 8) return (uint32_t)crc32(0, e->data, (uInt)e->size);
    z_stream s = {.next_in = (unsigned char *)(uintptr_t)e->data};
    s.avail_in = (uInt)stored, s.next_out = out, s.avail_out = sizeof out;
    assert_int_equal(inflateInit2(&s, -15), Z_OK);
    (void)inflate(&s, Z_FINISH);
    assert_int_equal(inflateEnd(&s), Z_OK);
    return (uint32_t)crc32(0, out, (uInt)s.total_out);
}

static inline void put_head(zip *z, const zip_entry *e, size_t stored, const char *name) {
    put(z, (uint64_t)e->flags, 2), put(z, (uint64_t)e->method, 2), put(z, 0, 4);
    put(z, crc_of(e, stored) ^ e->crc_flip, 4);
    put(z, e->wide ? 0xFFFFFFFF : stored, 4), put(z, e->wide ? 0xFFFFFFFF : e->size, 4);
    put(z, strlen(name), 2);
}

static inline void put_wide(zip *z, const zip_entry *e, size_t stored) {
    if (!e->wide) return;
    put(z, 0x7777, 2), put(z, 3, 2), put(z, 0, 3); /* another one before it */
    put(z, 1, 2), put(z, 16, 2), put(z, e->size, 8), put(z, stored, 8);
}

static inline void put_zip(zip *z, int count, const zip_entry *entries) {
    size_t begins[8];
    z->count = 0;
    for (int i = 0; i < count; i++) {
        const zip_entry *e = &entries[i];
        const size_t stored = e->stored ? e->stored : e->size;
        const char *name = e->local_name ? e->local_name : e->name;
        begins[i] = z->count;
        put(z, 0x04034b50, 4), put(z, 20, 2);
        put_head(z, e, stored, name);
        put(z, e->wide ? 27 : 0, 2);
        put_bytes(z, name, strlen(name));
        put_wide(z, e, stored);
        put_bytes(z, e->data, stored);
    }
    z->directory = z->count;
    for (int i = 0; i < count; i++) {
        const zip_entry *e = &entries[i];
        const size_t stored = e->stored ? e->stored : e->size;
        put(z, 0x02014b50, 4), put(z, 20, 2), put(z, 20, 2);
        put_head(z, e, stored, e->name);
        put(z, e->wide ? 27 : 0, 2), put(z, 0, 10), put(z, begins[i], 4);
        put_bytes(z, e->name, strlen(e->name));
        put_wide(z, e, stored);
    }
    z->end = z->count;
    put(z, 0x06054b50, 4), put(z, 0, 4);
    put(z, (uint64_t)count, 2), put(z, (uint64_t)count, 2);
    put(z, z->end - z->directory, 4), put(z, z->directory, 4), put(z, 0, 2);
}

#endif
