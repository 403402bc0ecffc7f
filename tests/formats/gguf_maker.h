/* GGUF files, byte by byte. */
#ifndef WB_TESTS_FORMATS_GGUF_MAKER_H
#define WB_TESTS_FORMATS_GGUF_MAKER_H

#include "support/support.h"

typedef struct builder {
    unsigned char bytes[8192];
    size_t size, data_size;
    unsigned char data[4096];
} builder;

static inline void put(builder *b, const void *bytes, size_t size) {
    assert_true(b->size + size <= sizeof b->bytes);
    if (size) memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static inline void put_u32(builder *b, uint32_t number) { put(b, &number, sizeof number); }
static inline void put_u64(builder *b, uint64_t number) { put(b, &number, sizeof number); }

static inline void put_text(builder *b, const char *text) {
    put_u64(b, strlen(text));
    put(b, text, strlen(text));
}

static inline void put_pair(builder *b, const char *key, uint32_t type) {
    put_text(b, key);
    put_u32(b, type);
}

/* A tensor of bytes 1, 2, 3, ... */
static inline void put_tensor(builder *b, const char *name, int ndim, const uint64_t *sizes,
                              uint32_t type, size_t data_bytes) {
    put_text(b, name);
    put_u32(b, (uint32_t)ndim);
    for (int d = 0; d < ndim; d++) put_u64(b, sizes[d]);
    put_u32(b, type);
    put_u64(b, b->data_size);
    assert_true(b->data_size + data_bytes + 32 <= sizeof b->data);
    for (size_t i = 0; i < data_bytes; i++) b->data[b->data_size + i] = (unsigned char)(i + 1);
    b->data_size = (b->data_size + data_bytes + 31) / 32 * 32;
}

/* The data, without the padding behind the last tensor. */
static inline void put_data(builder *b, size_t padding) {
    while (b->size % 32) put(b, "", 1);
    put(b, b->data, b->data_size - padding);
}

#endif
