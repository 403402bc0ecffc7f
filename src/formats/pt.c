/* Files of torch.save, since PyTorch 1.6: a zip file with a pickle and the memory of its tensors.
 *
 *     NAME/data.pkl      the value, in which a tensor is a call of _rebuild_tensor_v2 with a
 *                        storage, an offset, sizes and strides
 *     NAME/byteorder     "little"
 *     NAME/data/0, ...   the storages, which several tensors may share
 *
 * Sizes come slowest first, and are reversed: no bytes are moved. Names are paths, as in
 * safetensors: {"model": {"0.weight": W}, "epoch": 3} has model.0.weight and epoch; elements of
 * lists have numbers from 1 on. A tensor that is the same as the first one of its storage is the
 * same record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/inflate.h"
#include "base/memory.h"
#include "base/widen.h"
#include "formats/flat.h"
#include "formats/pickle.h"
#include "formats/zip.h"

static const char pickle_name[] = "/data.pkl";

/* Storages by class. Those of a type that Weber lacks are widened. */
static const struct {
    const char *name;
    int size;
    wb_dtype dtype;
    bool widens;
} types[] = {
    {"torch.FloatStorage", 4, WB_F32, false}, {"torch.DoubleStorage", 8, WB_F64, false},
    {"torch.HalfStorage", 2, WB_F16, false},  {"torch.BFloat16Storage", 2, WB_BF16, false},
    {"torch.LongStorage", 8, WB_I64, false},  {"torch.IntStorage", 4, WB_I32, false},
    {"torch.ShortStorage", 2, WB_I32, true},  {"torch.CharStorage", 1, WB_I32, true},
    {"torch.ByteStorage", 1, WB_U8, false},   {"torch.BoolStorage", 1, WB_BOOL, false},
};
enum { TYPES = sizeof types / sizeof *types };

/* What the file knows of a storage: its entry, and the first tensor that was made of it. */
typedef struct storage {
    const unsigned char *bytes; /* NULL: not looked at yet */
    wb_record *first;
    int first_type;
    int64_t first_offset;
    int64_t strides[WB_MAX_DIMS]; /* of the first one */
} storage;

typedef struct reader {
    wb_file *file;
    wb_zip zip;
    int64_t prefix_bytes; /* of NAME in the entries' names */
    storage *storages;    /* by entry */
    int64_t copied_bytes; /* so far, of tensors that are no plain part of their storage */
    wb_flat flat;
} reader;

/* ---- entries ---- */

static int by_name(const void *a, const void *b) {
    const wb_zip_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* The entry NAME/name, or NULL. */
static wb_zip_entry *find(const reader *r, const char *name) {
    char path[512];
    const int used =
        snprintf(path, sizeof path, "%.*s/%s", (int)r->prefix_bytes, r->zip.entries[0].name, name);
    const wb_zip_entry key = {.name = path};
    if (used >= (int)sizeof path) return NULL;
    return bsearch(&key, r->zip.entries, (size_t)r->zip.count, sizeof key, by_name);
}

/* All entries are in one folder, stored as they are, each once. */
static wb_status check_entries(reader *r) {
    const wb_zip_entry *e = r->zip.entries;
    if (r->zip.count) qsort(r->zip.entries, (size_t)r->zip.count, sizeof *e, by_name);
    const char *slash = r->zip.count ? strchr(e[0].name, '/') : NULL;
    if (!slash || slash - e[0].name > 256)
        return wb_file_fault(r->file, 0, "a file of torch.save has all entries in one folder");
    r->prefix_bytes = slash - e[0].name;
    for (int64_t i = 0; i < r->zip.count; i++) {
        if (e[i].method != WB_ZIP_STORED)
            return wb_file_fault(r->file, e[i].central,
                                 "%.200s is compressed, which torch.save does not do", e[i].name);
        if (strncmp(e[i].name, e[0].name, (size_t)r->prefix_bytes + 1) != 0)
            return wb_file_fault(r->file, e[i].central, "%.200s is in another folder than %.200s",
                                 e[i].name, e[0].name);
        if (i > 0 && strcmp(e[i].name, e[i - 1].name) == 0)
            return wb_file_fault(r->file, e[i].central, "%.200s appears twice", e[i].name);
    }
    return WB_OK;
}

static wb_status check_order(reader *r) {
    const wb_zip_entry *e = find(r, "byteorder");
    const unsigned char *bytes = e ? wb_zip_bytes(&r->zip, e) : NULL;
    if (e && !bytes) return wb_error_status();
    if (!e || (e->size_bytes == 6 && memcmp(bytes, "little", 6) == 0)) return WB_OK;
    return wb_file_fault(r->file, e->data,
                         "its bytes are not in the order of little-endian "
                         "processors; save it on one");
}

/* ---- storages ---- */

/* ("storage", torch.FloatStorage, "0", "cpu", elements) becomes an opaque record: the class in
 * `type`, the entry in `integer`, the number of elements in sizes[0]. */
static wb_record *storage_of(const wb_pickle *pickle, wb_record *key, int64_t at) {
    reader *r = pickle->context;
    char name[100];
    wb_record *const *k = key->children;
    if (key->kind != WB_RECORD_LIST || key->count < 5 || k[0]->kind != WB_RECORD_TEXT ||
        strcmp(k[0]->text, "storage") != 0 || !wb_is_global(k[1]) || k[2]->kind != WB_RECORD_TEXT ||
        k[4]->kind != WB_RECORD_INTEGER)
        return wb_pickle_fault(pickle, at, "what lies outside of the pickle must be a storage");
    (void)snprintf(name, sizeof name, "data/%.80s", k[2]->text);
    const wb_zip_entry *e = find(r, name);
    wb_record *made = e ? wb_record_new(&r->file->arena, WB_RECORD_OPAQUE) : NULL;
    if (!e) return wb_pickle_fault(pickle, at, "the file has no storage \"%.80s\"", k[2]->text);
    if (!made) return NULL;
    made->type = k[1]->type, made->text = "storage";
    made->integer = e - r->zip.entries, made->sizes[0] = k[4]->integer;
    return made;
}

static const unsigned char *bytes_of(reader *r, int64_t entry) {
    storage *s = &r->storages[entry];
    if (!s->bytes) s->bytes = wb_zip_bytes(&r->zip, &r->zip.entries[entry]);
    return s->bytes;
}

/* ---- tensors ---- */

typedef struct tensor {
    int type;
    int64_t entry, numbers; /* elements of the storage */
    int64_t offset, count;
    int ndim;
    int64_t sizes[WB_MAX_DIMS], strides[WB_MAX_DIMS]; /* fastest first */
    bool is_dense;
} tensor;

static bool is_storage(const wb_record *r) {
    return r->kind == WB_RECORD_OPAQUE && r->text && strcmp(r->text, "storage") == 0;
}

static bool are_integers(const wb_record *list) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->children[i]->kind != WB_RECORD_INTEGER || list->children[i]->integer < 0)
            return false;
    return list->kind == WB_RECORD_LIST;
}

/* Sizes and strides, and whether all elements lie within the storage. */
static bool measure(tensor *t, const wb_record *sizes, const wb_record *strides) {
    int64_t last = t->offset, dense = 1, most = 1;
    t->ndim = (int)sizes->count, t->count = 1, t->is_dense = true;
    for (int d = 0; d < t->ndim; d++) {
        const int64_t size = sizes->children[t->ndim - 1 - d]->integer;
        const int64_t stride = strides->children[t->ndim - 1 - d]->integer;
        int64_t reach;
        t->sizes[d] = size, t->strides[d] = size > 1 ? stride : 0;
        if (__builtin_mul_overflow(most, size > 0 ? size : 1, &most) || most > INT64_MAX / 64)
            return false;
        t->count *= size;
        if (size > 1 && (__builtin_mul_overflow(size - 1, stride, &reach) ||
                         __builtin_add_overflow(last, reach, &last)))
            return false;
        t->is_dense = t->is_dense && (size <= 1 || stride == dense);
        dense *= size;
    }
    if (t->count == 0) t->offset = 0;
    return t->count == 0 || last < t->numbers;
}

static wb_status check_storage(const reader *r, const wb_pickle *pickle, const tensor *t,
                               int64_t at) {
    const wb_zip_entry *e = &r->zip.entries[t->entry];
    if (t->numbers >= 0 && t->numbers <= e->size_bytes / types[t->type].size) return WB_OK;
    (void)wb_pickle_fault(pickle, at, "%.200s has %lld bytes, too few for %lld elements of %s",
                          e->name, (long long)e->size_bytes, (long long)t->numbers,
                          types[t->type].name);
    return WB_ERROR_FORMAT;
}

/* The elements side by side. */
static const void *gathered(const reader *r, const tensor *t, const unsigned char *from) {
    const int size = types[t->type].size;
    unsigned char *out = wb_arena_take(&r->file->arena, wb_bytes(t->count * size));
    int64_t at[WB_MAX_DIMS] = {0}, place = t->offset;
    for (int64_t i = 0; out && i < t->count; i++) {
        memcpy(out + i * size, from + place * size, (size_t)size);
        for (int d = 0; d < t->ndim; d++) {
            place += t->strides[d];
            if (++at[d] < t->sizes[d]) break;
            place -= t->sizes[d] * t->strides[d];
            at[d] = 0;
        }
    }
    return out;
}

/* Copies come on top of what the arena may have for records; all together are bounded, since a
 * stride of 0 makes any number of elements of one. */
static bool may_copy(reader *r, const wb_pickle *pickle, int64_t bytes, int64_t at) {
    const int64_t most = wb_most_inflated(r->zip.size_bytes);
    if (bytes > most - r->copied_bytes) {
        (void)wb_pickle_fault(pickle, at,
                              "with this tensor those that repeat or skip elements have more than "
                              "%lld bytes (" WB_INFLATE_ADVICE ")",
                              (long long)most);
        return false;
    }
    r->copied_bytes += bytes;
    wb_arena *arena = &r->file->arena;
    arena->limit_bytes += arena->limit_bytes ? bytes + WB_ARENA_ALIGN : 0;
    return true;
}

/* Sets data to the elements, in a type that Weber has. */
static bool set_data(reader *r, const wb_pickle *pickle, const tensor *t, wb_record *record,
                     int64_t at) {
    const unsigned char *from = bytes_of(r, t->entry);
    const int64_t size = types[t->type].size;
    if (!from) return false;
    record->offset = r->zip.entries[t->entry].data + t->offset * size;
    record->data = from + t->offset * size;
    record->data_bytes = t->count * size;
    if (!t->is_dense && t->count) {
        if (!may_copy(r, pickle, record->data_bytes, at)) return false;
        record->data = gathered(r, t, from);
        if (!record->data) return false;
    }
    if (!types[t->type].widens) return true;
    const wb_integers whole = {(int)size, true, false};
    const int64_t wide = t->count * wb_widened_bytes(whole);
    if (!may_copy(r, pickle, wide, at)) return false;
    void *out = wb_arena_take(&r->file->arena, wb_bytes(wide));
    if (out) (void)wb_widen(whole, record->data, t->count, out);
    record->data = out, record->data_bytes = wide;
    return out != NULL;
}

static bool is_same(const storage *s, const tensor *t) {
    return s->first && s->first_type == t->type && s->first_offset == t->offset &&
           s->first->ndim == t->ndim &&
           memcmp(s->first->sizes, t->sizes, sizeof *t->sizes * (size_t)t->ndim) == 0 &&
           memcmp(s->strides, t->strides, sizeof *t->strides * (size_t)t->ndim) == 0;
}

static wb_record *array_of(reader *r, const wb_pickle *pickle, const tensor *t, int64_t at) {
    storage *s = &r->storages[t->entry];
    if (is_same(s, t)) return s->first;
    wb_record *record = wb_record_new(&r->file->arena, WB_RECORD_ARRAY);
    if (!record || !set_data(r, pickle, t, record, at)) return NULL;
    record->dtype = (uint8_t)types[t->type].dtype, record->ndim = (uint8_t)t->ndim;
    memcpy(record->sizes, t->sizes, sizeof *t->sizes * (size_t)t->ndim);
    if (s->first) return record;
    s->first = record, s->first_type = t->type, s->first_offset = t->offset;
    memcpy(s->strides, t->strides, sizeof *t->strides * (size_t)t->ndim);
    return record;
}

/* _rebuild_tensor_v2(storage, offset, sizes, strides, needs a gradient, hooks) */
static wb_record *tensor_of(const wb_pickle *pickle, const wb_record *arguments, int64_t at) {
    reader *r = pickle->context;
    wb_record *const *a = arguments->children;
    if (arguments->count < 4 || !is_storage(a[0]) || a[1]->kind != WB_RECORD_INTEGER ||
        a[1]->integer < 0 || !are_integers(a[2]) || !are_integers(a[3]) ||
        a[2]->count != a[3]->count)
        return wb_pickle_fault(pickle, at,
                               "a tensor must have a storage, an offset, sizes and strides");
    if (a[2]->count > WB_MAX_DIMS)
        return wb_pickle_fault(pickle, at, "a tensor has %lld dimensions; at most %d are read",
                               (long long)a[2]->count, WB_MAX_DIMS);
    tensor t = {
        .type = -1, .entry = a[0]->integer, .numbers = a[0]->sizes[0], .offset = a[1]->integer};
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].name, a[0]->type) == 0) t.type = i;
    if (t.type < 0) return wb_pickle_fault(pickle, at, "%s is not read", a[0]->type);
    if (check_storage(r, pickle, &t, at) != WB_OK) return NULL;
    if (!measure(&t, a[2], a[3]))
        return wb_pickle_fault(pickle, at, "a tensor reaches beyond the %lld elements of %.200s",
                               (long long)t.numbers, r->zip.entries[t.entry].name);
    return array_of(r, pickle, &t, at);
}

static wb_record *called(const wb_pickle *pickle, const char *name, wb_record *arguments,
                         int64_t at) {
    if (strcmp(name, "torch._utils._rebuild_tensor_v2") == 0)
        return tensor_of(pickle, arguments, at);
    const bool is_parameter = strcmp(name, "torch._utils._rebuild_parameter") == 0;
    if (is_parameter && arguments->count > 0 && arguments->children[0]->kind == WB_RECORD_ARRAY)
        return arguments->children[0];
    const bool is_plain = strcmp(name, "torch.Size") == 0 || strcmp(name, "torch.device") == 0;
    if (is_plain && arguments->count > 0) return arguments->children[0];
    return wb_pickle_fault(pickle, at,
                           "%.200s is called, which is not done: only dictionaries, lists, "
                           "numbers, texts and tensors are read; in Python, save the state_dict",
                           name);
}

/* ---- the tree ---- */

/* The arena has no more memory: a dictionary that is in another one twice, and so on, has any
 * number of paths. */
static wb_status too_many(const reader *r, const wb_record *record) {
    if (wb_error_status() != WB_ERROR_FORMAT) return wb_error_status();
    wb_clear_error();
    return wb_file_fault(r->file, record->offset, "values are repeated too often");
}

/* Lists all values with their paths. The depth is bounded by that of the records. */
static wb_status flatten(reader *r, wb_record *record, const char *path) {
    const bool is_map = record->kind == WB_RECORD_MAP, is_list = record->kind == WB_RECORD_LIST;
    if ((!is_map && !is_list) || (record->count == 0 && *path)) {
        const wb_flat_entry entry = {.path = path, .record = record, .offset = record->offset};
        return wb_flat_add(&r->flat, entry) ? WB_OK : WB_ERROR_MEMORY;
    }
    wb_status status = WB_OK;
    for (int64_t i = 0; i < record->count && status == WB_OK; i++) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
        const char *name = is_map ? record->names[i] : number;
        const size_t outer = strlen(path), length = strlen(name);
        if (!length)
            return wb_file_fault(
                r->file, record->offset,
                "the key of a dictionary is an empty text, which no path can name");
        char *whole = wb_arena_take(&r->file->arena, outer + length + 2);
        if (!whole) return too_many(r, record);
        memcpy(whole, path, outer);
        if (outer) whole[outer] = '.';
        memcpy(whole + outer + (outer > 0), name, length);
        status = flatten(r, record->children[i], whole);
    }
    return status;
}

/* Keeps the order of the names, which is that of the modules in the program. */
static wb_status keep_order(reader *r) {
    wb_file *file = r->file;
    file->order = wb_arena_list(&file->arena, r->flat.count, sizeof *file->order);
    if (!file->order) return wb_error_status();
    for (int64_t i = 0; i < r->flat.count; i++)
        if (r->flat.entries[i].record->kind == WB_RECORD_ARRAY)
            file->order[file->order_count++] = r->flat.entries[i].path;
    return WB_OK;
}

static bool has_tensors(const wb_record *r) {
    for (int64_t i = 0; r->kind == WB_RECORD_MAP && i < r->count; i++)
        if (r->children[i]->kind == WB_RECORD_ARRAY) return true;
    return false;
}

/* Keeps the names of dictionaries in the dictionary, which the tree does not tell from parts of
 * names. */
static wb_status keep_parts(reader *r, const wb_record *value) {
    wb_file *file = r->file;
    if (value->kind != WB_RECORD_MAP) return WB_OK;
    file->parts = wb_arena_list(&file->arena, value->count, sizeof *file->parts);
    if (!file->parts) return wb_error_status();
    for (int64_t i = 0; i < value->count; i++)
        if (has_tensors(value->children[i])) file->parts[file->part_count++] = value->names[i];
    return WB_OK;
}

/* A value of one byte, such as True, becomes a record with a path. */
static void allow_values(const reader *r, int64_t pickle_bytes) {
    enum { BYTES_PER_BYTE = 512, MOST = 16 << 20 };
    wb_arena *arena = &r->file->arena;
    if (arena->limit_bytes)
        arena->limit_bytes += BYTES_PER_BYTE * (pickle_bytes < MOST ? pickle_bytes : MOST);
}

static wb_status read_value(reader *r) {
    const wb_zip_entry *e = find(r, pickle_name + 1);
    if (!e) return wb_file_fault(r->file, 0, "it has no data.pkl");
    const wb_pickle pickle = {.file = r->file,
                              .bytes = wb_zip_bytes(&r->zip, e),
                              .size_bytes = e->size_bytes,
                              .offset = e->data,
                              .context = r,
                              .call = called,
                              .persistent = storage_of};
    allow_values(r, e->size_bytes);
    wb_record *value = pickle.bytes ? wb_pickle_read(&pickle) : NULL;
    if (!value) return wb_error_status();
    if (value->kind != WB_RECORD_MAP && value->kind != WB_RECORD_LIST) {
        r->file->root = value;
        return WB_OK;
    }
    wb_status status = flatten(r, value, "");
    if (status == WB_OK) status = keep_order(r);
    if (status == WB_OK) status = keep_parts(r, value);
    if (status != WB_OK) return status;
    r->file->root = wb_flat_nest(&r->flat, r->file);
    if (!r->file->root) return wb_error_status();
    if (value->kind == WB_RECORD_LIST) wb_flat_make_lists(r->file->root, false);
    return WB_OK;
}

static wb_status read_file(wb_file *file) {
    reader r = {.file = file};
    wb_status status = wb_zip_open(&r.zip, file);
    if (status == WB_OK) status = check_entries(&r);
    if (status == WB_OK) {
        r.storages = wb_alloc_list(r.zip.count + 1, sizeof *r.storages);
        status = r.storages ? check_order(&r) : WB_ERROR_MEMORY;
    }
    if (status == WB_OK) status = read_value(&r);
    wb_flat_release(&r.flat);
    wb_release(r.storages);
    wb_zip_close(&r.zip);
    return status;
}

/* Names of entries are before them, and in the directory at the end. */
static bool recognises(const wb_mapping *map) {
    enum { HEAD = 256, TAIL = 1 << 16 };
    const size_t size = (size_t)map->size_bytes, head = size < HEAD ? size : HEAD,
                 tail = size < TAIL ? size : TAIL;
    return wb_is_zip(map) &&
           (memmem(map->bytes, head, pickle_name, strlen(pickle_name)) ||
            memmem(map->bytes + size - tail, tail, pickle_name, strlen(pickle_name)));
}

const wb_format wb_format_pt = {
    .name = "PyTorch", .extension = ".pt", .recognises = recognises, .read = read_file};
