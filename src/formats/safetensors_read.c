/* safetensors: reading. The rules are those of the format's own library: offsets begin at 0, each
 * array begins where the one before ends, the last ends with the file. */
#include "formats/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define TYPE_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

typedef struct tensor {
    const char *name;
    wb_record *record;
    int64_t begin, end; /* in the data */
} tensor;

typedef struct reader {
    wb_file *file;
    int64_t header_bytes;
    wb_flat flat;
    tensor *tensors;
    int64_t count, capacity;
} reader;

/* ---- places for messages ---- */

static const char *header_of(const reader *r) {
    return (const char *)r->file->map.bytes + WB_SAFETENSORS_LENGTH_BYTES;
}

/* Where the header has "name":, if the name stands there without escapes; else where the header
 * begins. */
static int64_t offset_of(const reader *r, const char *name) {
    const char *header = header_of(r), *end = header + r->header_bytes;
    const size_t length = strlen(name);
    for (const char *at = header; (at = memmem(at, (size_t)(end - at), name, length)); at++) {
        if (at + length == end) break;
        if (at > header && at[-1] == '"' && at[length] == '"')
            return at - 1 - header + WB_SAFETENSORS_LENGTH_BYTES;
    }
    return WB_SAFETENSORS_LENGTH_BYTES;
}

static wb_status fault(const reader *r, const char *name, const char *what) {
    return wb_file_fault(r->file, offset_of(r, name), "tensor \"%.80s\": %s", name, what);
}

/* ---- one tensor ---- */

typedef struct claim {
    const wb_json *dtype, *shape, *offsets;
} claim;

/* Other members mean nothing. */
static wb_status find_claim(const reader *r, const wb_json *item, claim *c) {
    if (item->kind != WB_JSON_OBJECT)
        return fault(r, item->name, "an object with dtype, shape and data_offsets is expected");
    *c = (claim){wb_json_get(item, "dtype"), wb_json_get(item, "shape"),
                 wb_json_get(item, "data_offsets")};
    if (!c->dtype || c->dtype->kind != WB_JSON_TEXT) return fault(r, item->name, "it has no dtype");
    if (!c->shape || c->shape->kind != WB_JSON_LIST) return fault(r, item->name, "it has no shape");
    if (!c->offsets || c->offsets->kind != WB_JSON_LIST)
        return fault(r, item->name, "data_offsets is missing");
    return WB_OK;
}

static wb_status read_offsets(const reader *r, const wb_json *item, const claim *c, tensor *t) {
    const int64_t data_bytes =
        r->file->map.size_bytes - WB_SAFETENSORS_LENGTH_BYTES - r->header_bytes;
    if (c->offsets->count != 2 || !wb_json_integer(&c->offsets->items[0], &t->begin) ||
        !wb_json_integer(&c->offsets->items[1], &t->end))
        return fault(r, item->name, "data_offsets must be two integers");
    if (t->begin < 0 || t->begin > t->end)
        return fault(r, item->name, "the first of data_offsets must not be above the second");
    if (t->end > data_bytes) return fault(r, item->name, "data_offsets reach beyond the file");
    return WB_OK;
}

/* Sizes and their product; elements is -1 where it is too large. More sizes than Weber has are
 * counted only. */
static wb_status read_shape(const reader *r, const wb_json *item, const claim *c, wb_record *record,
                            int64_t *elements) {
    *elements = 1;
    bool is_empty = false, is_huge = false;
    for (int64_t i = 0; i < c->shape->count; i++) {
        const int64_t d = c->shape->count - 1 - i;
        int64_t value;
        if (!wb_json_integer(&c->shape->items[i], &value) || value < 0)
            return fault(r, item->name, "each size must be an integer from 0 on");
        if (d < WB_MAX_DIMS) record->sizes[d] = value;
        is_empty = is_empty || value == 0;
        is_huge = is_huge || (value && __builtin_mul_overflow(*elements, value, elements)) ||
                  *elements > INT64_MAX / 64;
    }
    if (is_huge) return fault(r, item->name, "its shape has more elements than can be counted");
    if (is_empty) *elements = 0;
    return WB_OK;
}

static wb_status check_length(const reader *r, const tensor *t, const wb_safetensors_dtype *dtype,
                              int64_t elements) {
    const int64_t bits = elements * dtype->bits;
    if (bits % 8 == 0 && bits / 8 == t->end - t->begin) return WB_OK;
    return wb_file_fault(
        r->file, offset_of(r, t->name),
        "tensor \"%.80s\": %lld elements of %s need %lld bytes, but data_offsets give %lld",
        t->name, (long long)elements, dtype->name, (long long)(bits / 8),
        (long long)(t->end - t->begin));
}

/* Known types become arrays; others, and arrays of too many dimensions, stay opaque. */
static bool set_type(reader *r, wb_record *record, const char *name,
                     const wb_safetensors_dtype *dtype, int64_t ndim) {
    char text[64];
    if (dtype && ndim <= WB_MAX_DIMS) {
        record->ndim = (uint8_t)ndim;
        if (dtype->dtype < 0) return (record->type = dtype->name) != NULL;
        record->kind = WB_RECORD_ARRAY;
        record->dtype = (uint8_t)dtype->dtype;
        return true;
    }
    memset(record->sizes, 0, sizeof record->sizes);
    const int length = ndim <= WB_MAX_DIMS ? snprintf(text, sizeof text, "%.40s", name)
                                           : snprintf(text, sizeof text, "%.20s of %lld dimensions",
                                                      name, (long long)ndim);
    record->type = wb_arena_text(&r->file->arena, text, (size_t)length);
    return record->type != NULL;
}

static wb_status read_tensor(reader *r, const wb_json *item) {
    claim c = {.dtype = NULL};
    tensor t = {.record = wb_record_new(&r->file->arena, WB_RECORD_OPAQUE),
                .name = wb_arena_text(&r->file->arena, item->name, item->name_bytes)};
    int64_t elements = 0;
    if (!t.record || !t.name) return wb_error_status();
    wb_status status = find_claim(r, item, &c);
    if (status == WB_OK) status = read_offsets(r, item, &c, &t);
    if (status == WB_OK) status = read_shape(r, item, &c, t.record, &elements);
    if (status != WB_OK) return status;
    const char *type = wb_json_text(c.dtype);
    const wb_safetensors_dtype *dtype = type ? wb_safetensors_by_name(type) : NULL;
    if (!type || !*type || type[strspn(type, TYPE_CHARACTERS)])
        status = fault(r, item->name, "its dtype must be a text");
    else if (dtype)
        status = check_length(r, &t, dtype, elements);
    if (status != WB_OK) return status;
    if (!set_type(r, t.record, type, dtype, c.shape->count)) return wb_error_status();
    t.record->offset = WB_SAFETENSORS_LENGTH_BYTES + r->header_bytes + t.begin;
    t.record->data = r->file->map.bytes + t.record->offset;
    t.record->data_bytes = t.end - t.begin;
    if (!WB_GROW(r->tensors, r->count, r->capacity)) return WB_ERROR_MEMORY;
    r->tensors[r->count++] = t;
    return wb_flat_add(&r->flat, (wb_flat_entry){.path = t.name,
                                                 .record = t.record,
                                                 .offset = WB_SAFETENSORS_LENGTH_BYTES})
               ? WB_OK
               : WB_ERROR_MEMORY;
}

/* ---- all of them ---- */

static int by_begin(const void *a, const void *b) {
    const tensor *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* No byte of the data belongs to two arrays, or to none. */
static wb_status check_cover(reader *r) {
    const int64_t data_offset = WB_SAFETENSORS_LENGTH_BYTES + r->header_bytes;
    int64_t end = 0;
    if (r->count) qsort(r->tensors, (size_t)r->count, sizeof *r->tensors, by_begin);
    for (int64_t i = 0; i < r->count; i++) {
        const tensor *t = &r->tensors[i];
        if (t->begin != end)
            return fault(r, t->name,
                         t->begin < end ? "its data overlap with another's"
                                        : "the bytes before its data belong to no tensor");
        end = t->end;
    }
    if (data_offset + end == r->file->map.size_bytes) return WB_OK;
    return wb_file_fault(r->file, data_offset + end, "there are bytes after the last tensor");
}

static wb_status read_shared(reader *r, wb_arena *arena, const wb_json *text) {
    const int64_t offset = offset_of(r, WB_SAFETENSORS_SHARED);
    const wb_json *json = wb_json_parse(r->file, arena, text->text, (size_t)text->count, offset);
    return json ? wb_safetensors_read_shared(r->file, &r->flat, json, offset) : wb_error_status();
}

static wb_status read_metadata(reader *r, wb_arena *arena, const wb_json *item) {
    const wb_json *shared = NULL;
    const int64_t offset = offset_of(r, item->name);
    r->file->metadata = wb_safetensors_texts(r->file, item, offset, WB_SAFETENSORS_SHARED, &shared);
    if (!r->file->metadata) return wb_error_status();
    return shared ? read_shared(r, arena, shared) : WB_OK;
}

static wb_status read_header(reader *r) {
    const wb_mapping *map = &r->file->map;
    uint64_t length = 0;
    if (map->size_bytes < WB_SAFETENSORS_LENGTH_BYTES)
        return wb_file_fault(r->file, map->size_bytes,
                             "the file is cut short: it ends before "
                             "its header");
    memcpy(&length, map->bytes, sizeof length);
    if (length > WB_SAFETENSORS_MOST_HEADER)
        return wb_file_fault(r->file, 0, "the header may have at most %d bytes, but has %llu",
                             WB_SAFETENSORS_MOST_HEADER, (unsigned long long)length);
    if ((int64_t)length > map->size_bytes - WB_SAFETENSORS_LENGTH_BYTES)
        return wb_file_fault(r->file, 0, "the header should have %llu bytes, but the file has %lld",
                             (unsigned long long)length, (long long)map->size_bytes);
    r->header_bytes = (int64_t)length;
    if (length && *header_of(r) == '{') return WB_OK;
    return wb_file_fault(r->file, WB_SAFETENSORS_LENGTH_BYTES, "the header must begin with {");
}

static wb_status read_items(reader *r, wb_arena *arena, const wb_json *header) {
    wb_status status = WB_OK;
    for (int64_t i = 0; i < header->count && status == WB_OK; i++) {
        const wb_json *item = &header->items[i];
        if (strlen(item->name) != item->name_bytes)
            return fault(r, item->name, "a name must not have a zero character");
        status = strcmp(item->name, WB_SAFETENSORS_METADATA) == 0 ? read_metadata(r, arena, item)
                                                                  : read_tensor(r, item);
    }
    return status == WB_OK ? check_cover(r) : status;
}

wb_status wb_safetensors_read(wb_file *file) {
    reader r = {.file = file};
    wb_arena arena = {.blocks = NULL};
    wb_status status = read_header(&r);
    const wb_json *header = status == WB_OK
                                ? wb_json_parse(file, &arena, header_of(&r), (size_t)r.header_bytes,
                                                WB_SAFETENSORS_LENGTH_BYTES)
                                : NULL;
    if (!header && status == WB_OK) status = wb_error_status();
    if (status == WB_OK) status = read_items(&r, &arena, header);
    wb_arena_release(&arena);
    if (status == WB_OK && !(file->root = wb_flat_nest(&r.flat, file))) status = wb_error_status();
    wb_flat_release(&r.flat);
    wb_release(r.tensors);
    return status;
}
