/* safetensors: a JSON header with name, type, sizes and place of each array, then the arrays, dense
 * and without gaps. https://huggingface.co/docs/safetensors
 *
 * Sizes. The format writes shapes slowest first, as NumPy and PyTorch do; Weber writes sizes
 * fastest first. The bytes are the same, so a shape is reversed and no bytes are moved: shape (out,
 * in, kh, kw) is sizes (kw, kh, in, out).
 *
 * What must be transposed, then? An array has the same numbers in the same order of memory; whether
 * a layer needs that order depends on the layer:
 *
 *   Linear     PyTorch holds weight (out, in), in fastest: read, it has sizes (in, out). Dense
 *              holds W as (out, in), out fastest. Those are different orders in memory: the weight
 *              has to be transposed, once, when loaded or saved.
 *   Conv       PyTorch holds (out, in/groups, kh, kw), kw fastest: read, (kw, kh, in/groups, out).
 *              That is what Conv and CrossCor hold: nothing is transposed. PyTorch's operation is
 *              the cross-correlation, so the weight fits CrossCor as it is; for Conv, which flips
 *              the kernel as Flux does, it is reversed along kw and kh, and is no transposition
 *              either.
 *   the rest   Biases, norms and their statistics are vectors. An Embedding (vocabulary, width) is
 *              read as (width, vocabulary), as Weber and Flux want it. Inputs (N, C, H, W) are (W,
 *              H, C, N), (batch, features) are (features, batch): the same bytes; and flattening an
 *              image gives features in the same order, so the Dense after a Flatten needs no
 *              permutation.
 *
 * A file that Weber wrote and Weber reads needs none of this: W comes back as (out, in). Others see
 * its shape as (in, out).
 *
 * Arrays that are in several places are written once, see safetensors.h. */
#include "formats/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "formats/flat.h"
#include "formats/json.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are used where they lie in the file, which is little-endian"
#endif

static const wb_safetensors_dtype dtypes[] = {
    {"F32", 32, WB_F32},    {"F64", 64, WB_F64},   {"F16", 16, WB_F16}, {"BF16", 16, WB_BF16},
    {"I32", 32, WB_I32},    {"I64", 64, WB_I64},   {"U8", 8, WB_U8},    {"BOOL", 8, WB_BOOL},
    {"I8", 8, -1},          {"I16", 16, -1},       {"U16", 16, -1},     {"U32", 32, -1},
    {"U64", 64, -1},        {"F8_E4M3", 8, -1},    {"F8_E5M2", 8, -1},  {"F8_E8M0", 8, -1},
    {"F6_E2M3", 6, -1},     {"F6_E3M2", 6, -1},    {"F4", 4, -1},       {"C64", 64, -1},
    {"F8_E4M3FNUZ", 8, -1}, {"F8_E5M2FNUZ", 8, -1}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

const wb_safetensors_dtype *wb_safetensors_by_name(const char *name) {
    for (int i = 0; name && i < DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0) return &dtypes[i];
    return NULL;
}

static const wb_safetensors_dtype *by_dtype(wb_dtype dtype) {
    for (int i = 0; i < DTYPES; i++)
        if (dtypes[i].dtype == (int)dtype) return &dtypes[i];
    return NULL;
}

/* ---- writing ---- */

typedef struct tensor {
    const wb_flat_entry *entry;
    const wb_safetensors_dtype *dtype;
    wb_flat_array array;
} tensor;

typedef struct writer {
    wb_text *out;
    wb_flat flat;
    tensor *tensors;
    int64_t count, capacity;
    wb_text header;
} writer;

static const wb_safetensors_dtype *dtype_of(const wb_record *r) {
    if (r->kind != WB_RECORD_ARRAY) return wb_safetensors_by_name(r->type);
    return by_dtype(wb_flat_array_of(r).dtype);
}

static const char *refuses(const wb_record *r) {
    if (wb_record_has_data(r))
        return dtype_of(r) ? NULL
               : r->type   ? r->type
                           : "of a type that "
                             "Weber does not know";
    return wb_flat_refuses(r);
}

static wb_status add_tensor(writer *w, const wb_flat_entry *entry) {
    const wb_record *r = entry->record;
    tensor t = {.entry = entry, .array = wb_flat_array_of(r)};
    t.dtype = dtype_of(r);
    if (!t.dtype)
        return wb_fail(WB_ERROR_UNSUPPORTED,
                       "%s: safetensors holds named arrays, but \"%.200s\" is %s; .npz and .bson "
                       "hold other values too",
                       w->out->path, entry->path, refuses(r));
    if (wb_count_sizes(t.array.ndim, t.array.sizes) * t.dtype->bits != 8 * t.array.data_bytes)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: \"%.200s\" has %lld bytes, which do not fit its "
                       "sizes %s",
                       w->out->path, entry->path, (long long)t.array.data_bytes,
                       wb_sizes_text(t.array.ndim, t.array.sizes));
    if (strcmp(entry->path, WB_SAFETENSORS_METADATA) == 0)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: an array cannot be called \"%s\"", w->out->path,
                       entry->path);
    if (!WB_GROW(w->tensors, w->count, w->capacity)) return WB_ERROR_MEMORY;
    w->tensors[w->count++] = t;
    return WB_OK;
}

/* Wide elements first, so that all are aligned; then by name, as the format's own library does. */
static int by_width(const void *a, const void *b) {
    const tensor *left = a, *right = b;
    if (left->dtype->bits != right->dtype->bits)
        return left->dtype->bits > right->dtype->bits ? -1 : 1;
    return strcmp(left->entry->path, right->entry->path);
}

static wb_status find_tensors(writer *w) {
    wb_status status = WB_OK;
    for (int64_t i = 0; i < w->flat.count && status == WB_OK; i++)
        if (!w->flat.entries[i].same_as && !wb_record_is_container(w->flat.entries[i].record))
            status = add_tensor(w, &w->flat.entries[i]);
    if (status == WB_OK && w->count)
        qsort(w->tensors, (size_t)w->count, sizeof *w->tensors, by_width);
    return status;
}

static wb_status print_text(const writer *w, wb_text *out, const char *before, const char *name,
                            const char *text) {
    if (wb_utf8_fault(name, strlen(name)) >= 0 || wb_utf8_fault(text, strlen(text)) >= 0)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: metadata must be valid UTF-8", w->out->path);
    wb_text_put(out, before);
    wb_json_quote(out, name);
    wb_text_byte(out, ':');
    wb_json_quote(out, text);
    return WB_OK;
}

/* JSON inside a text of the header. */
static wb_status print_shared(const writer *w, wb_text *out, const char *before) {
    wb_text note = {.data = NULL};
    wb_safetensors_write_shared(&note, &w->flat);
    wb_status status = wb_text_status(&note);
    if (status == WB_OK) status = print_text(w, out, before, WB_SAFETENSORS_SHARED, note.data);
    wb_text_release(&note);
    return status;
}

static wb_status print_metadata(const writer *w, wb_text *out, const wb_record *metadata) {
    const char *before = "{\"" WB_SAFETENSORS_METADATA "\":{";
    const int64_t count = metadata ? metadata->count : 0;
    for (int64_t i = 0; i < count; i++) {
        const wb_record *text = metadata->children[i];
        const char *name = wb_record_name(metadata, i);
        if (!name || !text || text->kind != WB_RECORD_TEXT ||
            strcmp(name, WB_SAFETENSORS_SHARED) == 0)
            return wb_fail(WB_ERROR_ARGUMENT,
                           "%s: metadata must be a map of texts, but \"%.80s\" is not a text",
                           w->out->path, name ? name : "");
        const wb_status status = print_text(w, out, before, name, text->text);
        if (status != WB_OK) return status;
        before = ",";
    }
    if (wb_safetensors_has_shared(&w->flat)) {
        const wb_status status = print_shared(w, out, before);
        if (status != WB_OK) return status;
        before = ",";
    }
    wb_text_put(out, *before == ',' ? "}" : "{");
    if (*before == ',' && w->count) wb_text_byte(out, ',');
    return WB_OK;
}

static void print_tensor(wb_text *out, const tensor *t, int64_t begin) {
    wb_json_quote(out, t->entry->path);
    wb_text_add(out, ":{\"dtype\":\"%s\",\"shape\":[", t->dtype->name);
    for (int d = t->array.ndim - 1; d >= 0; d--)
        wb_text_add(out, "%" PRId64 "%s", t->array.sizes[d], d ? "," : "");
    wb_text_add(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", begin,
                begin + t->array.data_bytes);
}

static wb_status print_header(const writer *w, wb_text *out, const wb_record *metadata) {
    int64_t begin = 0;
    const wb_status status = print_metadata(w, out, metadata);
    for (int64_t i = 0; i < w->count && status == WB_OK; i++) {
        if (i) wb_text_byte(out, ',');
        print_tensor(out, &w->tensors[i], begin);
        begin += w->tensors[i].array.data_bytes;
    }
    wb_text_byte(out, '}');
    return status;
}

static wb_status make_header(writer *w, const wb_record *metadata) {
    wb_text *out = &w->header;
    const wb_status status = print_header(w, out, metadata);
    while (!out->failed && out->size % 8) wb_text_byte(out, ' ');
    if (status == WB_OK && out->size > WB_SAFETENSORS_MOST_HEADER)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the header would have %zu bytes, but may have at most %d", w->out->path,
                       out->size, WB_SAFETENSORS_MOST_HEADER);
    return status == WB_OK ? wb_text_status(out) : status;
}

static wb_status write_all(writer *w) {
    const uint64_t length = w->header.size;
    wb_text_bytes(w->out, &length, sizeof length);
    wb_text_bytes(w->out, w->header.data, w->header.size);
    wb_status status = wb_text_status(w->out);
    for (int64_t i = 0; i < w->count && status == WB_OK; i++)
        status = wb_flat_write_data(w->tensors[i].entry->record, w->out);
    return status;
}

static wb_status write_file(const wb_record *root, const wb_record *metadata, wb_text *out) {
    writer w = {.out = out};
    wb_status status = wb_flat_make(&w.flat, root, out->path);
    if (status == WB_OK) status = find_tensors(&w);
    if (status == WB_OK) status = make_header(&w, metadata);
    if (status == WB_OK) status = write_all(&w);
    wb_flat_release(&w.flat);
    wb_release(w.tensors);
    wb_text_release(&w.header);
    return status;
}

/* ---- the format ---- */

static bool recognises(const wb_mapping *map) {
    uint64_t length = 0;
    if (map->size_bytes < WB_SAFETENSORS_LENGTH_BYTES + 2) return false;
    memcpy(&length, map->bytes, sizeof length);
    return length <= WB_SAFETENSORS_MOST_HEADER && map->bytes[WB_SAFETENSORS_LENGTH_BYTES] == '{';
}

const wb_format wb_format_safetensors = {.name = "safetensors",
                                         .extension = ".safetensors",
                                         .recognises = recognises,
                                         .read = wb_safetensors_read,
                                         .write = write_file,
                                         .refuses = refuses,
                                         .has_metadata = true};
