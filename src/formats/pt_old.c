/* Files of torch.save before PyTorch 1.6, or with _use_new_zipfile_serialization=False: five
 * pickles, one after another, and the storages.
 *
 *     0x1950a86a20f9469cfc6c     ten bytes of a long number
 *     1001                       the protocol
 *     {"little_endian": True}    and sizes of C's types, which nothing depends on
 *     the value                  with ("storage", class, key, device, elements, view or None)
 *     the keys of the storages
 *     for each key: i64 elements, and as many of its class
 *
 * Where a storage is depends on the classes of those before it, which the value says. So the value
 * is read twice: first for its storages, then for its tensors. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/pt.h"

enum { PROTOCOL = 1001 };

/* What the value says of a storage. */
typedef struct entry {
    const char *key;
    int type;
    int64_t count;
    int64_t at; /* for messages: where the pickle says so */
} entry;

typedef struct reader {
    wb_pt pt;       /* its storages are the entries */
    wb_file *file;  /* the one to be read, or a scratch one while only storages are asked for */
    entry *entries; /* sorted by key once all are there */
    int64_t count, capacity;
    int64_t at; /* of the next byte */
} reader;

/* ---- pickles ---- */

static wb_record *refuse_call(const wb_pickle *pickle, const char *name, wb_record *arguments,
                              int64_t at) {
    (void)arguments;
    return wb_pickle_fault(pickle, at, "%.200s is called, where a plain value is expected", name);
}

static wb_record *refuse_outside(const wb_pickle *pickle, wb_record *key, int64_t at) {
    (void)key;
    return wb_pickle_fault(pickle, at,
                           "something outside of the pickle, where a plain value is "
                           "expected");
}

/* The pickle at r->at, which then is its end. */
static wb_record *read_pickle(reader *r, wb_file *file, bool is_plain) {
    int64_t end = 0;
    const wb_pickle pickle = {.file = file,
                              .bytes = r->file->map.bytes + r->at,
                              .size_bytes = r->file->map.size_bytes - r->at,
                              .offset = r->at,
                              .end = &end,
                              .context = &r->pt,
                              .call = is_plain ? refuse_call : wb_pt_call,
                              .persistent = is_plain ? refuse_outside : wb_pt_persistent};
    wb_record *value = wb_pickle_read(&pickle);
    r->at += end;
    return value;
}

static wb_status check_head(reader *r, wb_file *scratch) {
    const wb_record *magic = read_pickle(r, scratch, true);
    const wb_record *protocol = magic ? read_pickle(r, scratch, true) : NULL;
    if (protocol && (protocol->kind != WB_RECORD_INTEGER || protocol->integer != PROTOCOL))
        return wb_file_fault(r->file, r->at, "its protocol is not %d", PROTOCOL);
    const wb_record *system = protocol ? read_pickle(r, scratch, true) : NULL;
    if (!system) return wb_error_status();
    const wb_record *order =
        system->kind == WB_RECORD_MAP ? wb_record_below(system, "little_endian") : NULL;
    if (!order || order->kind != WB_RECORD_BOOL)
        return wb_file_fault(r->file, r->at, "it does not say the order of its bytes");
    if (order->boolean) return WB_OK;
    return wb_file_fault(r->file, r->at, WB_PT_BIG_ENDIAN);
}

/* ---- storages ---- */

static int by_key(const void *a, const void *b) {
    const entry *left = a, *right = b;
    return strcmp(left->key, right->key);
}

static entry *find_entry(const reader *r, const char *key) {
    const entry wanted = {.key = key};
    if (!r->count) return NULL;
    return bsearch(&wanted, r->entries, (size_t)r->count, sizeof wanted, by_key);
}

/* Of the first reading: notes the storage. */
static int64_t note_storage(wb_pt *pt, const wb_pickle *pickle, const char *key, int type,
                            int64_t count, int64_t at) {
    reader *r = (reader *)pt;
    if (!WB_GROW(r->entries, r->count, r->capacity)) return -1;
    r->entries[r->count] = (entry){key, type, count, pickle->offset + at};
    return r->count++;
}

/* Of the second. */
static int64_t find_storage(wb_pt *pt, const wb_pickle *pickle, const char *key, int type,
                            int64_t count, int64_t at) {
    (void)pickle, (void)type, (void)count, (void)at;
    const reader *r = (reader *)pt;
    return find_entry(r, key) - r->entries;
}

static const unsigned char *storage_bytes(wb_pt *pt, wb_pt_storage *storage) {
    return pt->file->map.bytes + storage->offset;
}

/* Each key once; all that is said of it must be the same. */
static wb_status sort_entries(reader *r) {
    int64_t count = 0;
    if (r->count) qsort(r->entries, (size_t)r->count, sizeof *r->entries, by_key);
    for (int64_t i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i], *last = count ? &r->entries[count - 1] : NULL;
        const bool is_same = last && strcmp(last->key, e->key) == 0;
        if (is_same && (last->type != e->type || last->count != e->count))
            return wb_file_fault(r->file, e->at, "storage \"%.80s\" has two types or sizes",
                                 e->key);
        if (!is_same) r->entries[count++] = *e;
    }
    r->count = count;
    return WB_OK;
}

static int64_t read_count(const reader *r) {
    uint64_t value = 0;
    for (int i = 8; i-- > 0;) value = value << 8 | r->file->map.bytes[r->at + i];
    return (int64_t)value;
}

/* The storage of the key begins here. */
static wb_status place_storage(reader *r, const wb_record *key) {
    const entry *e = key->kind == WB_RECORD_TEXT ? find_entry(r, key->text) : NULL;
    if (!e) return wb_file_fault(r->file, r->at, "the value has no storage of this key");
    wb_pt_storage *s = &r->pt.storages[e - r->entries];
    const int64_t rest = r->file->map.size_bytes - r->at, size = wb_pt_type_size(e->type);
    if (s->name) return wb_file_fault(r->file, r->at, "storage \"%.80s\" comes twice", e->key);
    if (rest < 8 || e->count < 0 || e->count > (rest - 8) / size)
        return wb_file_fault(r->file, r->at,
                             "storage \"%.80s\" needs %lld elements of %lld bytes, but the file "
                             "has %lld bytes left",
                             e->key, (long long)e->count, (long long)size,
                             (long long)(rest > 8 ? rest - 8 : 0));
    if (read_count(r) != e->count)
        return wb_file_fault(r->file, r->at, "storage \"%.80s\" has %lld elements, not %lld",
                             e->key, (long long)read_count(r), (long long)e->count);
    *s = (wb_pt_storage){.name = e->key, .offset = r->at + 8, .size_bytes = e->count * size};
    r->at += 8 + s->size_bytes;
    return WB_OK;
}

static wb_status place_storages(reader *r, wb_file *scratch) {
    const wb_record *keys = read_pickle(r, scratch, true);
    if (!keys) return wb_error_status();
    if (keys->kind != WB_RECORD_LIST)
        return wb_file_fault(r->file, r->at, "the keys of the storages must be a list");
    r->pt.storages = wb_alloc_list(r->count + 1, sizeof *r->pt.storages);
    wb_status status = r->pt.storages ? WB_OK : WB_ERROR_MEMORY;
    for (int64_t i = 0; i < keys->count && status == WB_OK; i++)
        status = place_storage(r, keys->children[i]);
    for (int64_t i = 0; i < r->count && status == WB_OK; i++)
        if (!r->pt.storages[i].name)
            status = wb_file_fault(r->file, r->entries[i].at, "the file has no storage \"%.80s\"",
                                   r->entries[i].key);
    return status;
}

/* ---- the file ---- */

static wb_status survey(reader *r, wb_file *scratch) {
    r->pt.is_survey = true, r->pt.find = note_storage;
    if (!read_pickle(r, scratch, false)) return wb_error_status();
    return sort_entries(r);
}

static wb_status read_value(reader *r, int64_t begin) {
    r->pt.is_survey = false, r->pt.find = find_storage, r->at = begin;
    wb_record *value = read_pickle(r, r->file, false);
    return value ? wb_pt_set_root(&r->pt, value, true) : wb_error_status();
}

wb_status wb_pt_read_old(wb_file *file) {
    reader r = {.pt = {.file = file, .bytes = storage_bytes}, .file = file};
    wb_file scratch = {.path = file->path, .map = file->map};
    scratch.arena.limit_bytes = file->arena.limit_bytes;
    wb_pt_allow_values(&scratch, file->map.size_bytes);
    wb_status status = check_head(&r, &scratch);
    const int64_t begin = r.at;
    if (status == WB_OK) status = survey(&r, &scratch);
    wb_pt_allow_values(file, r.at - begin);
    if (status == WB_OK) status = place_storages(&r, &scratch);
    if (status == WB_OK) status = read_value(&r, begin);
    wb_flat_release(&r.pt.flat);
    wb_release(r.pt.storages);
    wb_release(r.entries);
    wb_arena_release(&scratch.arena);
    return status;
}

/* The number's pickle of the protocols 2 and 3, or, in a frame, 4 and 5. */
bool wb_pt_is_old(const wb_mapping *map) {
    static const char magic[] = "\212\12\154\374\234\106\371\040\152\250\120\031.";
    enum { FRAME = 9, LEAST = 2 + FRAME + sizeof magic };
    const unsigned char *b = map->bytes;
    if (map->size_bytes < LEAST || b[0] != 0x80) return false;
    return memcmp(b + 2 + (b[2] == 0x95 ? FRAME : 0), magic, sizeof magic - 1) == 0;
}
