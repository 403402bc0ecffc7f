/* GGUF: reading. Tensors stay where they lie; what is quantised is unpacked when it is asked for,
 * which makes at most 7.2 bytes of each byte in the file. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/flat.h"
#include "formats/gguf.h"
#include "formats/safetensors.h"

typedef struct tensor {
    const char *name;
    wb_record *record;
    const wb_gguf_type *type; /* NULL: it is not known */
    int64_t at;               /* of its description in the file */
    int64_t begin;            /* in the data */
    int64_t bytes;
} tensor;

typedef struct reader {
    wb_file *file;
    int64_t at;
    int64_t alignment;
    wb_record **values; /* of the metadata, each with its name */
    int64_t value_count, value_capacity;
    tensor *tensors;
    int64_t count, capacity;
    wb_flat flat;
    const wb_record *shared; /* the text WB_SAFETENSORS_SHARED, or NULL */
} reader;

/* ---- bytes ---- */

static int64_t bytes_left(const reader *r) { return r->file->map.size_bytes - r->at; }

/* The next bytes; NULL with an error if the file ends before. */
static const unsigned char *take(reader *r, uint64_t bytes, const char *what) {
    if (bytes > (uint64_t)bytes_left(r)) {
        (void)wb_file_fault(r->file, r->at,
                            "the file is cut short: %s needs %llu bytes, but %lld are left", what,
                            (unsigned long long)bytes, (long long)bytes_left(r));
        return NULL;
    }
    const unsigned char *at = r->file->map.bytes + r->at;
    r->at += (int64_t)bytes;
    return at;
}

static bool take_u32(reader *r, const char *what, uint32_t *number) {
    const unsigned char *bytes = take(r, sizeof *number, what);
    if (bytes) memcpy(number, bytes, sizeof *number);
    return bytes != NULL;
}

static bool take_u64(reader *r, const char *what, uint64_t *number) {
    const unsigned char *bytes = take(r, sizeof *number, what);
    if (bytes) memcpy(number, bytes, sizeof *number);
    return bytes != NULL;
}

/* A copy in the arena. */
static const char *take_text(reader *r, const char *what) {
    uint64_t length;
    if (!take_u64(r, what, &length)) return NULL;
    const int64_t at = r->at;
    const char *bytes = (const char *)take(r, length, what);
    if (!bytes) return NULL;
    if (!memchr(bytes, 0, (size_t)length))
        return wb_arena_text(&r->file->arena, bytes, (size_t)length);
    (void)wb_file_fault(r->file, at, "%s must not have a zero character", what);
    return NULL;
}

/* ---- metadata ---- */

static bool set_number(reader *r, wb_record *record, wb_gguf_value type, const unsigned char *at) {
    const wb_gguf_number *number = &wb_gguf_numbers[type];
    float real;
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)number->size_bytes);
    if (type == WB_GGUF_BOOL) {
        record->kind = WB_RECORD_BOOL, record->boolean = bits != 0;
    } else if (type == WB_GGUF_F64) {
        record->kind = WB_RECORD_REAL;
        memcpy(&record->real, at, sizeof record->real);
    } else if (type == WB_GGUF_F32) {
        record->kind = WB_RECORD_REAL;
        memcpy(&real, at, sizeof real);
        record->real = (double)real;
    } else {
        const uint64_t sign = (uint64_t)1 << (8 * number->size_bytes - 1);
        record->kind = WB_RECORD_INTEGER;
        record->integer = (int64_t)(number->is_signed ? (bits ^ sign) - sign : bits);
        if (!number->is_signed && record->integer < 0)
            return wb_file_fault(r->file, record->offset, "an integer must be below 2^63") == WB_OK;
    }
    record->type = number->name;
    return true;
}

/* The array's elements are in the file's bytes, as they are or packed. */
static bool set_data(reader *r, wb_record *record, const char *type, int64_t bytes,
                     const unsigned char *data,
                     void (*unpack)(const unsigned char *, int64_t, void *)) {
    record->kind = WB_RECORD_ARRAY;
    record->data_bytes = wb_count_sizes(record->ndim, record->sizes) *
                         (int64_t)wb_dtype_size((wb_dtype)record->dtype);
    record->data = data;
    if (!unpack || !bytes) return true;
    wb_packed *packed = wb_arena_take(&r->file->arena, sizeof *packed);
    if (packed) *packed = (wb_packed){type, data, bytes, unpack};
    record->data = NULL, record->packed = packed;
    return packed != NULL;
}

static bool take_numbers(reader *r, wb_record *record, uint32_t type, uint64_t count) {
    const wb_gguf_number *number = &wb_gguf_numbers[type];
    const int64_t at = r->at;
    if (count > (uint64_t)bytes_left(r) / (uint64_t)number->size_bytes)
        return take(r, UINT64_MAX, "a list of numbers") != NULL;
    const int64_t bytes = (int64_t)count * number->size_bytes;
    const unsigned char *data = take(r, (uint64_t)bytes, "a list of numbers");
    for (int64_t i = 7; data && type == WB_GGUF_U64 && i < bytes; i += 8)
        if (data[i] & 0x80) {
            (void)wb_file_fault(r->file, at + i - 7, "an integer must be below 2^63");
            return false;
        }
    record->ndim = 1, record->sizes[0] = (int64_t)count, record->dtype = (uint8_t)number->dtype;
    return data && set_data(r, record, number->name, bytes, data, number->unpack);
}

/* Many texts, such as the words of a vocabulary, are one opaque record over their bytes, since a
 * record for each would take some twenty times as many. */
static bool take_texts(reader *r, wb_record *record, uint64_t count) {
    enum { MOST = 64 };
    const int64_t begin = r->at;
    char type[48];
    record->kind = count > MOST ? WB_RECORD_OPAQUE : WB_RECORD_LIST;
    if (count <= MOST && !wb_record_room(&r->file->arena, record, (int64_t)count, false))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length;
        if (count > MOST) {
            if (!take_u64(r, "a text", &length) || !take(r, length, "a text")) return false;
            continue;
        }
        wb_record *text = wb_record_new(&r->file->arena, WB_RECORD_TEXT);
        if (!text) return false;
        text->offset = r->at;
        if (!(text->text = take_text(r, "a text"))) return false;
        record->children[i] = text, record->depth = 1;
    }
    if (count <= MOST) return true;
    const int used = snprintf(type, sizeof type, "%llu texts", (unsigned long long)count);
    record->type = wb_arena_text(&r->file->arena, type, (size_t)used);
    record->integer = (int64_t)count;
    record->data = r->file->map.bytes + begin, record->data_bytes = r->at - begin;
    return record->type != NULL;
}

static bool is_number(uint32_t type) { return type < WB_GGUF_VALUES && wb_gguf_numbers[type].name; }

static bool take_list(reader *r, wb_record *record) {
    uint32_t type;
    uint64_t count;
    const int64_t at = r->at;
    if (!take_u32(r, "a list's type", &type) || !take_u64(r, "a list's count", &count))
        return false;
    if (is_number(type)) return take_numbers(r, record, type, count);
    if (type == WB_GGUF_TEXT) return take_texts(r, record, count);
    (void)wb_file_fault(r->file, at,
                        "the type of a list's values must be that of numbers or "
                        "texts, but is %u",
                        (unsigned)type);
    return false;
}

static bool take_value(reader *r, wb_record *record, uint32_t type) {
    if (is_number(type)) {
        const unsigned char *at = take(r, (uint64_t)wb_gguf_numbers[type].size_bytes, "a number");
        return at && set_number(r, record, (wb_gguf_value)type, at);
    }
    if (type == WB_GGUF_LIST) return take_list(r, record);
    if (type == WB_GGUF_TEXT) {
        record->kind = WB_RECORD_TEXT;
        return (record->text = take_text(r, "a text")) != NULL;
    }
    (void)wb_file_fault(r->file, record->offset - 4,
                        "the type of \"%.80s\" must be below %d, but is %u", record->name,
                        WB_GGUF_VALUES, (unsigned)type);
    return false;
}

static bool set_alignment(reader *r, const wb_record *record) {
    const int64_t a = record->integer;
    const bool is_u32 =
        record->type && strcmp(record->type, wb_gguf_numbers[WB_GGUF_U32].name) == 0;
    r->alignment = a;
    if (is_u32 && a > 0 && a <= WB_GGUF_MOST_ALIGNMENT && (a & (a - 1)) == 0) return true;
    (void)wb_file_fault(r->file, record->offset,
                        WB_GGUF_ALIGNMENT_NAME " must be a power of two up to %d, of type u32",
                        WB_GGUF_MOST_ALIGNMENT);
    return false;
}

static bool take_pair(reader *r) {
    uint32_t type;
    wb_record *record = wb_record_new(&r->file->arena, WB_RECORD_NULL);
    if (!record || !(record->name = take_text(r, "a key"))) return false;
    if (!take_u32(r, "the type of a value", &type)) return false;
    record->offset = r->at;
    if (!take_value(r, record, type)) return false;
    if (record->kind == WB_RECORD_TEXT && strcmp(record->name, WB_SAFETENSORS_SHARED) == 0) {
        r->shared = record;
        return true;
    }
    if (!WB_GROW(r->values, r->value_count, r->value_capacity)) return false;
    r->values[r->value_count++] = record;
    return strcmp(record->name, WB_GGUF_ALIGNMENT_NAME) != 0 || set_alignment(r, record);
}

static int by_name(const void *a, const void *b) {
    const wb_record *left = *(wb_record *const *)a, *right = *(wb_record *const *)b;
    const int order = strcmp(left->name, right->name);
    return order ? order : (left->offset > right->offset) - (left->offset < right->offset);
}

/* In the file's order; no key appears twice. */
static bool make_metadata(reader *r) {
    wb_record *map = wb_record_new(&r->file->arena, WB_RECORD_MAP);
    if (!map || !wb_record_room(&r->file->arena, map, r->value_count, true)) return false;
    for (int64_t i = 0; i < r->value_count; i++) {
        map->children[i] = r->values[i], map->names[i] = r->values[i]->name;
        if (r->values[i]->depth >= map->depth) map->depth = r->values[i]->depth + 1;
    }
    if (r->value_count) qsort(r->values, (size_t)r->value_count, sizeof *r->values, by_name);
    for (int64_t i = 1; i < r->value_count; i++)
        if (strcmp(r->values[i]->name, r->values[i - 1]->name) == 0) {
            (void)wb_file_fault(r->file, r->values[i]->offset, "the key \"%.200s\" appears twice",
                                r->values[i]->name);
            return false;
        }
    r->file->metadata = map;
    return true;
}

/* ---- tensors ---- */

static bool fault(const reader *r, const tensor *t, const char *what) {
    return wb_file_fault(r->file, t->at, "tensor \"%.80s\": %s", t->name, what) == WB_OK;
}

/* Sizes and their product. */
static bool take_sizes(reader *r, const tensor *t, uint32_t ndim, int64_t *elements) {
    bool is_empty = false;
    *elements = 1;
    if (ndim > WB_GGUF_DIMS) return fault(r, t, "it may have at most 4 dimensions");
    for (uint32_t d = 0; d < ndim; d++) {
        uint64_t size;
        if (!take_u64(r, "a size", &size)) return false;
        t->record->sizes[d] = (int64_t)size;
        is_empty = is_empty || size == 0;
        if (size > INT64_MAX / 64 ||
            (size && __builtin_mul_overflow(*elements, (int64_t)size, elements)) ||
            *elements > INT64_MAX / 64)
            return fault(r, t, "its sizes have more elements than can be counted");
    }
    t->record->ndim = (uint8_t)ndim;
    if (is_empty) *elements = 0;
    return true;
}

/* How many bytes it has; of a type that is not known they cannot be counted. */
static bool set_bytes(const reader *r, tensor *t, int64_t elements) {
    const int64_t row = t->record->ndim ? t->record->sizes[0] : 1;
    if (!t->type) return true;
    t->bytes = elements / t->type->block_elements * t->type->block_bytes;
    if (row % t->type->block_elements == 0) return true;
    return wb_file_fault(r->file, t->at,
                         "tensor \"%.80s\": its first size must be a multiple of %d, since its "
                         "type is %s, but is %lld",
                         t->name, t->type->block_elements, t->type->name, (long long)row) == WB_OK;
}

static bool set_unknown(const reader *r, wb_record *record, uint32_t type) {
    char text[32];
    const int used = snprintf(text, sizeof text, "type %u of GGUF", (unsigned)type);
    record->type = wb_arena_text(&r->file->arena, text, (size_t)used);
    return record->type != NULL;
}

static bool take_tensor(reader *r) {
    tensor t = {.record = wb_record_new(&r->file->arena, WB_RECORD_OPAQUE), .at = r->at};
    uint32_t ndim, type;
    uint64_t begin;
    int64_t elements;
    if (!t.record || !(t.name = take_text(r, "a tensor's name"))) return false;
    if (!*t.name) return fault(r, &t, "a name must not be empty");
    if (!take_u32(r, "the number of dimensions", &ndim) || !take_sizes(r, &t, ndim, &elements) ||
        !take_u32(r, "a tensor's type", &type) || !take_u64(r, "a tensor's offset", &begin))
        return false;
    t.type = wb_gguf_type_at(type);
    if (!t.type && !set_unknown(r, t.record, type)) return false;
    if (!set_bytes(r, &t, elements)) return false;
    if (begin > INT64_MAX / 2) return fault(r, &t, "its offset is beyond the end of the file");
    t.begin = (int64_t)begin;
    if (!WB_GROW(r->tensors, r->count, r->capacity)) return false;
    r->tensors[r->count++] = t;
    return wb_flat_add(&r->flat,
                       (wb_flat_entry){.path = t.name, .record = t.record, .offset = t.at});
}

static int by_begin(const void *a, const void *b) {
    const tensor *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->bytes > right->bytes) - (left->bytes < right->bytes);
}

/* The data begin at that offset of the file. */
static bool place_tensor(reader *r, const tensor *t, int64_t data) {
    wb_record *record = t->record;
    const int64_t size_bytes = r->file->map.size_bytes;
    if (t->begin % r->alignment)
        return fault(r, t, "its offset must be a multiple of " WB_GGUF_ALIGNMENT_NAME);
    if (data > size_bytes || t->begin > size_bytes - data ||
        t->bytes > size_bytes - data - t->begin)
        return wb_file_fault(r->file, t->at,
                             "tensor \"%.80s\": the file is cut short: its %lld bytes begin at "
                             "offset %lld, but the file has %lld",
                             t->name, (long long)t->bytes, (long long)(data + t->begin),
                             (long long)size_bytes) == WB_OK;
    record->offset = data + t->begin;
    const unsigned char *bytes = r->file->map.bytes + record->offset;
    if (!t->type) return true;
    if (t->type->dtype >= 0) {
        record->dtype = (uint8_t)t->type->dtype;
        return set_data(r, record, t->type->name, t->bytes, bytes, t->type->unpack);
    }
    record->type = t->type->name;
    record->data = bytes, record->data_bytes = t->bytes;
    return true;
}

/* All within the file, and no byte in two of them. */
static bool place_tensors(reader *r) {
    const int64_t data = (r->at + r->alignment - 1) / r->alignment * r->alignment;
    int64_t end = 0;
    if (r->count) qsort(r->tensors, (size_t)r->count, sizeof *r->tensors, by_begin);
    for (int64_t i = 0; i < r->count; i++) {
        const tensor *t = &r->tensors[i];
        if (t->begin < end) return fault(r, t, "its data overlap with another's");
        if (!place_tensor(r, t, data)) return false;
        end = t->begin + t->bytes;
    }
    return true;
}

/* ---- the file ---- */

static bool check_version(const reader *r, uint32_t version) {
    enum { FIRST = 2, LAST = 3 };
    if (version >= FIRST && version <= LAST) return true;
    if (version && !(version & 0xffff))
        return wb_file_fault(r->file, WB_GGUF_MAGIC_BYTES,
                             "its numbers are big-endian, which is not read") == WB_OK;
    return wb_file_fault(r->file, WB_GGUF_MAGIC_BYTES,
                         "the version of GGUF must be %d or %d, but is %u", FIRST, LAST,
                         (unsigned)version) == WB_OK;
}

/* Of things that take so many bytes at least. */
static bool check_count(const reader *r, uint64_t count, int64_t least, const char *what) {
    if (count <= (uint64_t)(bytes_left(r) / least)) return true;
    return wb_file_fault(r->file, r->at,
                         "the file is cut short: %llu %s need %lld bytes each, but %lld are left",
                         (unsigned long long)count, what, (long long)least,
                         (long long)bytes_left(r)) == WB_OK;
}

/* Weber's note of arrays in several places. */
static bool take_shared(reader *r) {
    wb_arena arena = {.blocks = NULL};
    const char *text = r->shared->text;
    const wb_json *json = wb_json_parse(r->file, &arena, text, strlen(text), r->shared->offset);
    const bool good =
        json && wb_safetensors_read_shared(r->file, &r->flat, json, r->shared->offset) == WB_OK;
    wb_arena_release(&arena);
    return good;
}

static bool read_all(reader *r) {
    enum { LEAST_OF_TENSOR = 25, LEAST_OF_PAIR = 13 };
    uint32_t version;
    uint64_t tensors, pairs;
    const unsigned char *magic = take(r, WB_GGUF_MAGIC_BYTES, "the beginning");
    if (!magic) return false;
    if (memcmp(magic, WB_GGUF_MAGIC, WB_GGUF_MAGIC_BYTES) != 0)
        return wb_file_fault(r->file, 0, "the file must begin with " WB_GGUF_MAGIC) == WB_OK;
    if (!take_u32(r, "the version", &version) || !check_version(r, version) ||
        !take_u64(r, "the number of tensors", &tensors) ||
        !take_u64(r, "the number of pairs", &pairs) ||
        !check_count(r, pairs, LEAST_OF_PAIR, "pairs"))
        return false;
    for (uint64_t i = 0; i < pairs; i++)
        if (!take_pair(r)) return false;
    if (!make_metadata(r) || !check_count(r, tensors, LEAST_OF_TENSOR, "tensors")) return false;
    for (uint64_t i = 0; i < tensors; i++)
        if (!take_tensor(r)) return false;
    return place_tensors(r) && (!r->shared || take_shared(r));
}

wb_status wb_gguf_read(wb_file *file) {
    reader r = {.file = file, .alignment = WB_GGUF_ALIGNMENT};
    if (read_all(&r)) file->root = wb_flat_nest(&r.flat, file);
    wb_flat_release(&r.flat);
    wb_release(r.tensors);
    wb_release(r.values);
    return file->root ? WB_OK : wb_error_status();
}
