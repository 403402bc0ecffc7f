/* One input of a format: read, walked byte by byte, written, and read again. What can be written
 * has to come back. */
#ifndef WB_FUZZ_SAFETENSORS_H
#define WB_FUZZ_SAFETENSORS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned fuzz_sum;

/* The bytes of an array that is packed, in memory to be freed. */
static inline unsigned char *fuzz_unpack(const wb_record *r) {
    unsigned char *elements = malloc((size_t)r->data_bytes);
    if (elements) r->packed->unpack(r->packed->bytes, wb_count_sizes(r->ndim, r->sizes), elements);
    return elements;
}

/* Shared records are walked once each: number says that it was. */
static inline int64_t fuzz_walk(wb_record *r) {
    int64_t count = 1;
    if (r->number) return 0;
    r->number = 1;
    unsigned char *unpacked = r->packed ? fuzz_unpack(r) : NULL;
    const unsigned char *bytes = unpacked ? unpacked : r->data;
    for (int64_t i = 0; bytes && i < r->data_bytes; i++) fuzz_sum += bytes[i];
    free(unpacked);
    if (r->text) fuzz_sum += (unsigned)strlen(r->text);
    if (r->type) fuzz_sum += (unsigned)strlen(r->type);
    for (int64_t i = 0; i < r->count; i++) {
        if (r->names) fuzz_sum += (unsigned)strlen(r->names[i]);
        count += fuzz_walk(r->children[i]);
    }
    return count;
}

static inline void fuzz_forget(wb_record *r) {
    if (!r->number) return;
    r->number = 0;
    for (int64_t i = 0; i < r->count; i++) fuzz_forget(r->children[i]);
}

static inline wb_file fuzz_file(const uint8_t *data, size_t size) {
    static char path[] = "fuzz";
    return (wb_file){.path = path,
                     .map = {size ? data : NULL, (int64_t)size},
                     .arena = {.limit_bytes = (int64_t)size * 64 + (1 << 20)}};
}

/* The records in bytes, or -1. */
static inline int64_t fuzz_read(const wb_format *format, wb_file *file) {
    wb_clear_error();
    const wb_status status = format->read(file);
    if ((status == WB_OK) != (file->root != NULL) || (status != WB_OK) != wb_failed()) abort();
    if (status != WB_OK) return -1;
    const int64_t count = fuzz_walk(file->root);
    fuzz_forget(file->root);
    return count;
}

static inline void fuzz_again(const wb_format *format, const wb_file *file, int64_t count) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) abort();
    wb_text out = {.file = stream, .path = "again"};
    const wb_status status = format->write(file->root, file->metadata, &out);
    if (fclose(stream) != 0) abort();
    wb_file again = fuzz_file((const uint8_t *)text, size);
    if (status == WB_OK && fuzz_read(format, &again) != count) {
        fprintf(stderr, "%lld records, then: %s\n", (long long)count, wb_error_message());
        abort();
    }
    wb_arena_release(&again.arena);
    free(text);
}

static inline int fuzz_one(const wb_format *format, const uint8_t *data, size_t size) {
    wb_file file = fuzz_file(data, size);
    const int64_t count = fuzz_read(format, &file);
    if (count >= 0) fuzz_again(format, &file, count);
    wb_arena_release(&file.arena);
    wb_clear_error();
    return 0;
}

#endif
