/* GGUF: writing. Tensors are written as they are, in the tree's order; what came packed from a GGUF
 * file goes back as the same bytes. Arrays in several places are written once, with the note that
 * safetensors.h describes. Records whose `type` is q8_0 are quantised, block by block. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/memory.h"
#include "formats/flat.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

typedef struct tensor {
    const char *name;
    const wb_record *record;
    uint32_t type; /* its number */
    wb_flat_array array;
    int64_t bytes, offset;
    int64_t place; /* in the tree */
} tensor;

typedef struct writer {
    wb_text *out;
    wb_flat flat;
    tensor *tensors;
    int64_t count, capacity;
    int64_t alignment;
} writer;

/* ---- types ---- */

static int number_named(const char *name) {
    for (uint32_t i = 0; name && i < WB_GGUF_TYPES; i++) {
        const wb_gguf_type *type = wb_gguf_type_at(i);
        if (type && strcmp(type->name, name) == 0) return (int)i;
    }
    return -1;
}

/* The type that holds the elements as they are. */
static int number_of(wb_dtype dtype) {
    for (uint32_t i = 0; i < WB_GGUF_TYPES; i++) {
        const wb_gguf_type *type = wb_gguf_type_at(i);
        if (type && type->dtype == (int)dtype && !type->unpack) return (int)i;
    }
    return -1;
}

/* -1: there is none. */
static int type_of(const wb_record *r) {
    if (r->type) return number_named(r->type);
    if (r->packed && !r->array) return number_named(r->packed->type);
    return r->kind == WB_RECORD_ARRAY ? number_of(wb_flat_array_of(r).dtype) : -1;
}

static bool is_quantised(const wb_record *r) { return r->kind == WB_RECORD_ARRAY && r->type; }

bool wb_gguf_can_quantise(const wb_record *r) {
    const wb_flat_array a = wb_flat_array_of(r);
    return r->kind == WB_RECORD_ARRAY && wb_dtype_is_float(a.dtype) && a.ndim >= 2 &&
           a.ndim <= WB_GGUF_DIMS && a.sizes[0] % WB_GGUF_BLOCK == 0;
}

const char *wb_gguf_refuses(const wb_record *r) {
    if (wb_record_has_data(r)) {
        const wb_flat_array a = wb_flat_array_of(r);
        if (a.ndim > WB_GGUF_DIMS) return "of more than four dimensions";
        if (type_of(r) >= 0) return NULL;
        return r->type ? r->type : wb_dtype_name(a.dtype);
    }
    return wb_flat_refuses(r);
}

/* ---- q8_0 ---- */

static float element_at(const void *data, wb_dtype dtype, int64_t i) {
    const uint16_t *halves = data;
    if (dtype == WB_F16) return (float)wb_of_f16(halves[i]);
    if (dtype == WB_BF16) return wb_of_bf16(halves[i]);
    return dtype == WB_F64 ? (float)((const double *)data)[i] : ((const float *)data)[i];
}

/* Scale max |x| / 127 as f16, then the integers next to x / scale, halves away from zero: ggml's
 * arithmetic in f32. False if a number is not finite, or the scale is not as f16. */
static bool quantise(const float *x, unsigned char *block) {
    float most = 0;
    for (int i = 0; i < WB_GGUF_BLOCK; i++) {
        if (!isfinite(x[i])) return false;
        if (fabsf(x[i]) > most) most = fabsf(x[i]);
    }
    const float scale = most / 127, inverse = scale == 0 ? 0 : 1 / scale;
    const uint16_t bits = wb_to_f16(scale);
    if (!isfinite((float)wb_of_f16(bits))) return false;
    memcpy(block, &bits, sizeof bits);
    for (int i = 0; i < WB_GGUF_BLOCK; i++) {
        const float q = roundf(x[i] * inverse);
        block[2 + i] = (unsigned char)(int8_t)(fabsf(q) < 128 ? q : 0);
    }
    return true;
}

static wb_status write_quantised(const writer *w, const tensor *t) {
    const int64_t count = wb_count_sizes(t->array.ndim, t->array.sizes);
    const void *data = count ? wb_flat_data_begin(t->record) : NULL;
    bool is_finite = true;
    if (count && !data) return wb_error_status();
    for (int64_t at = 0; at < count && is_finite; at += WB_GGUF_BLOCK) {
        float x[WB_GGUF_BLOCK];
        unsigned char block[2 + WB_GGUF_BLOCK];
        for (int i = 0; i < WB_GGUF_BLOCK; i++) x[i] = element_at(data, t->array.dtype, at + i);
        is_finite = quantise(x, block);
        if (is_finite) wb_text_bytes(w->out, block, sizeof block);
    }
    if (data) wb_flat_data_end(t->record, data);
    if (is_finite) return wb_text_status(w->out);
    return wb_fail(WB_ERROR_ARGUMENT,
                   "%s: \"%.200s\" has a number that is not finite, or too large, "
                   "which q8_0 cannot hold",
                   w->out->path, t->name);
}

/* ---- numbers and texts ---- */

static void put_u32(const writer *w, uint32_t number) {
    wb_text_bytes(w->out, &number, sizeof number);
}
static void put_u64(const writer *w, int64_t number) {
    wb_text_bytes(w->out, &number, sizeof number);
}
static void put_text(const writer *w, const char *text) {
    put_u64(w, (int64_t)strlen(text));
    wb_text_put(w->out, text);
}

/* ---- metadata ---- */

static int value_named(const char *name) {
    for (int i = 0; name && i < WB_GGUF_VALUES; i++)
        if (wb_gguf_numbers[i].name && strcmp(wb_gguf_numbers[i].name, name) == 0) return i;
    return -1;
}

/* The type in the file that the value came from, else the usual one. */
static int type_of_value(const wb_record *r) {
    const int named = value_named(r->packed ? r->packed->type : r->type);
    switch ((wb_record_kind)r->kind) {
    case WB_RECORD_BOOL:
        return WB_GGUF_BOOL;
    case WB_RECORD_INTEGER:
        if (named >= 0) return named;
        return r->integer >= 0 && r->integer <= UINT32_MAX ? WB_GGUF_U32 : WB_GGUF_I64;
    case WB_RECORD_REAL:
        return named >= 0 ? named : WB_GGUF_F32;
    case WB_RECORD_TEXT:
        return WB_GGUF_TEXT;
    case WB_RECORD_ARRAY:
        if (named >= 0) return named;
        for (int i = 0; i < WB_GGUF_VALUES; i++)
            if (wb_gguf_numbers[i].name && !wb_gguf_numbers[i].unpack &&
                wb_gguf_numbers[i].dtype == r->dtype)
                return i;
        return -1;
    case WB_RECORD_LIST:
    case WB_RECORD_OPAQUE:
        return r->kind == WB_RECORD_LIST || r->data ? WB_GGUF_TEXT : -1;
    default:
        return -1;
    }
}

static void put_number(const writer *w, const wb_record *r, int type) {
    const float single = (float)r->real;
    if (type == WB_GGUF_BOOL)
        wb_text_byte(w->out, r->boolean);
    else if (type == WB_GGUF_F32)
        wb_text_bytes(w->out, &single, sizeof single);
    else if (type == WB_GGUF_F64)
        wb_text_bytes(w->out, &r->real, sizeof r->real);
    else
        wb_text_bytes(w->out, &r->integer, (size_t)wb_gguf_numbers[type].size_bytes);
}

/* type u32, count u64, values */
static void put_list(const writer *w, const wb_record *r, int type) {
    put_u32(w, (uint32_t)type);
    if (r->kind == WB_RECORD_ARRAY) {
        put_u64(w, wb_count_sizes(r->ndim, r->sizes));
        if (r->packed)
            wb_text_bytes(w->out, r->packed->bytes, (size_t)r->packed->size_bytes);
        else
            wb_text_bytes(w->out, r->data, (size_t)r->data_bytes);
    } else if (r->kind == WB_RECORD_OPAQUE) {
        put_u64(w, r->integer);
        wb_text_bytes(w->out, r->data, (size_t)r->data_bytes);
    } else {
        put_u64(w, r->count);
        for (int64_t i = 0; i < r->count; i++) put_text(w, r->children[i]->text);
    }
}

static wb_status put_pair(const writer *w, const char *key, const wb_record *r) {
    const int type = type_of_value(r);
    const bool is_list = r->kind >= WB_RECORD_ARRAY;
    if (type < 0)
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "%s: \"%.80s\" of the metadata is %s, which GGUF lacks", w->out->path, key,
                       wb_record_noun(r));
    put_text(w, key);
    put_u32(w, is_list ? WB_GGUF_LIST : (uint32_t)type);
    if (is_list)
        put_list(w, r, type);
    else if (r->kind == WB_RECORD_TEXT)
        put_text(w, r->text);
    else
        put_number(w, r, type);
    return wb_text_status(w->out);
}

static void find_alignment(writer *w, const wb_record *metadata) {
    const wb_record *r = metadata ? wb_record_below(metadata, WB_GGUF_ALIGNMENT_NAME) : NULL;
    const bool is_one = r && r->kind == WB_RECORD_INTEGER && r->integer > 0 &&
                        r->integer <= WB_GGUF_MOST_ALIGNMENT &&
                        (r->integer & (r->integer - 1)) == 0;
    w->alignment = is_one ? r->integer : WB_GGUF_ALIGNMENT;
}

/* ---- tensors ---- */

static int64_t padded(const writer *w, int64_t bytes) {
    return (bytes + w->alignment - 1) / w->alignment * w->alignment;
}

static wb_status add_tensor(writer *w, const wb_flat_entry *entry, const wb_record *record) {
    const char *fault = wb_gguf_refuses(record);
    tensor t = {.name = entry->path,
                .record = record,
                .array = wb_flat_array_of(record),
                .place = w->count};
    if (fault)
        return wb_fail(WB_ERROR_UNSUPPORTED, "%s: GGUF holds named arrays, but \"%.200s\" is %s",
                       w->out->path, entry->path, fault);
    t.type = (uint32_t)type_of(record);
    const wb_gguf_type *type = wb_gguf_type_at(t.type);
    t.bytes =
        wb_count_sizes(t.array.ndim, t.array.sizes) / type->block_elements * type->block_bytes;
    if (!WB_GROW(w->tensors, w->count, w->capacity)) return WB_ERROR_MEMORY;
    w->tensors[w->count++] = t;
    return WB_OK;
}

/* In the order of the file that they came from, if they are from one; else in the tree's. */
static int by_origin(const void *a, const void *b) {
    const tensor *left = a, *right = b;
    const int64_t x = left->record->offset, y = right->record->offset;
    if (x != y) return x < y ? -1 : 1;
    return (left->place > right->place) - (left->place < right->place);
}

static wb_status find_tensors(writer *w) {
    wb_status status = WB_OK;
    bool have_offsets = true;
    for (int64_t i = 0; i < w->flat.count && status == WB_OK; i++) {
        const wb_flat_entry *entry = &w->flat.entries[i];
        if (entry->same_as) continue;
        if (wb_record_is_container(entry->record) && entry->record->kind != WB_RECORD_OPAQUE)
            continue;
        status = add_tensor(w, entry, entry->record);
        have_offsets = have_offsets && entry->record->offset > 0;
    }
    if (status != WB_OK || !w->count) return status;
    if (have_offsets) qsort(w->tensors, (size_t)w->count, sizeof *w->tensors, by_origin);
    for (int64_t i = 1; i < w->count; i++)
        w->tensors[i].offset = w->tensors[i - 1].offset + padded(w, w->tensors[i - 1].bytes);
    return WB_OK;
}

static void put_padding(const writer *w, int64_t bytes) {
    for (int64_t i = bytes; i < padded(w, bytes); i++) wb_text_byte(w->out, 0);
}

static wb_status write_tensor(const writer *w, const tensor *t) {
    const wb_packed *packed = t->record->packed;
    wb_status status = WB_OK;
    if (is_quantised(t->record))
        status = write_quantised(w, t);
    else if (packed && !t->record->array)
        wb_text_bytes(w->out, packed->bytes, (size_t)packed->size_bytes);
    else
        status = wb_flat_write_data(t->record, w->out);
    put_padding(w, t->bytes);
    return status == WB_OK ? wb_text_status(w->out) : status;
}

/* A pair that notes which arrays are in several places, as in safetensors. */
static wb_status put_shared(const writer *w) {
    wb_text note = {.path = w->out->path};
    wb_safetensors_write_shared(&note, &w->flat);
    const wb_status status = wb_text_status(&note);
    put_text(w, WB_SAFETENSORS_SHARED);
    put_u32(w, WB_GGUF_TEXT);
    put_u64(w, (int64_t)note.size);
    if (status == WB_OK) wb_text_bytes(w->out, note.data, note.size);
    wb_text_release(&note);
    return status;
}

static wb_status write_all(writer *w, const wb_record *metadata) {
    const bool has_shared = wb_safetensors_has_shared(&w->flat);
    const int64_t pairs = metadata ? metadata->count : 0, begin = (int64_t)w->out->size;
    wb_status status = WB_OK;
    wb_text_bytes(w->out, WB_GGUF_MAGIC, WB_GGUF_MAGIC_BYTES);
    put_u32(w, WB_GGUF_VERSION);
    put_u64(w, w->count);
    put_u64(w, pairs + has_shared);
    for (int64_t i = 0; i < pairs && status == WB_OK; i++)
        status = put_pair(w, metadata->names[i], metadata->children[i]);
    if (status == WB_OK && has_shared) status = put_shared(w);
    for (int64_t i = 0; i < w->count; i++) {
        const tensor *t = &w->tensors[i];
        put_text(w, t->name);
        put_u32(w, (uint32_t)t->array.ndim);
        for (int d = 0; d < t->array.ndim; d++) put_u64(w, t->array.sizes[d]);
        put_u32(w, t->type);
        put_u64(w, t->offset);
    }
    put_padding(w, (int64_t)w->out->size - begin);
    for (int64_t i = 0; i < w->count && status == WB_OK; i++)
        status = write_tensor(w, &w->tensors[i]);
    return status == WB_OK ? wb_text_status(w->out) : status;
}

wb_status wb_gguf_write(const wb_record *root, const wb_record *metadata, wb_text *out) {
    writer w = {.out = out};
    find_alignment(&w, metadata);
    wb_status status = wb_flat_make(&w.flat, root, out->path);
    if (status == WB_OK) status = find_tensors(&w);
    if (status == WB_OK) status = write_all(&w, metadata);
    wb_flat_release(&w.flat);
    wb_release(w.tensors);
    return status;
}
