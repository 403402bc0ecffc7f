/* NumPy's .npz: writing. Entries are stored, not compressed, and begin at multiples of 64 bytes,
 * so that a reader can map them. Their time is zip's first, 1980: the same values give the same
 * file. */
#include "formats/npz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "formats/bson.h"
#include "formats/flat.h"
#include "formats/npy.h"

enum {
    VERSION = 20,
    VERSION64 = 45,
    DATE = 1 << 5 | 1, /* 1980-01-01 */
    MOST_NAME = 0xFFFF,
    LEAST_ALIGN_EXTRA = 6 /* id, size, alignment */
};

typedef struct entry {
    const char *name; /* in the list's arena */
    int64_t offset, size_bytes;
    uint32_t crc;
} entry;

typedef struct writer {
    wb_text *out;
    wb_flat flat;
    entry *entries;
    int64_t count, capacity;
} writer;

/* ---- little-endian records ---- */

typedef struct bytes {
    unsigned char at[128];
    size_t count;
} bytes;

static void put(bytes *b, uint64_t value, int size_bytes) {
    for (int i = 0; i < size_bytes; i++, value >>= 8) b->at[b->count++] = (unsigned char)value;
}

static void emit(writer *w, const bytes *b) { wb_text_bytes(w->out, b->at, b->count); }

static bool is_wide(int64_t value) { return value >= WB_ZIP_FULL32; }
static uint64_t in32(int64_t value) { return (uint64_t)(is_wide(value) ? WB_ZIP_FULL32 : value); }

/* What the headers before the data and in the directory have in common, from the flags to the
 * length of the name. */
static void put_common(bytes *b, const entry *e) {
    const size_t length = strlen(e->name);
    bool is_ascii = true;
    for (size_t i = 0; i < length; i++) is_ascii = is_ascii && (unsigned char)e->name[i] < 0x80;
    put(b, is_ascii ? 0 : WB_ZIP_UTF8, 2);
    put(b, WB_ZIP_STORED, 2);
    put(b, 0, 2), put(b, DATE, 2);
    put(b, e->crc, 4);
    put(b, in32(e->size_bytes), 4), put(b, in32(e->size_bytes), 4);
    put(b, length, 2);
}

static int version_of(const entry *e) {
    return is_wide(e->size_bytes) || is_wide(e->offset) ? VERSION64 : VERSION;
}

/* The header, the name, and extra fields up to a multiple of 64 bytes. */
static void write_local(writer *w, const entry *e) {
    const size_t length = strlen(e->name), wide = is_wide(e->size_bytes) ? 20 : 0;
    const int64_t end =
        e->offset + WB_ZIP_LOCAL_BYTES + (int64_t)(length + wide) + LEAST_ALIGN_EXTRA;
    const int64_t gap = (WB_NPY_ALIGN - end % WB_NPY_ALIGN) % WB_NPY_ALIGN;
    bytes header = {.count = 0}, extra = {.count = 0};
    put(&header, WB_ZIP_LOCAL, 4);
    put(&header, (uint64_t)version_of(e), 2);
    put_common(&header, e);
    put(&header, wide + LEAST_ALIGN_EXTRA + (uint64_t)gap, 2);
    if (wide) {
        put(&extra, WB_ZIP_EXTRA64, 2), put(&extra, 16, 2);
        put(&extra, (uint64_t)e->size_bytes, 8), put(&extra, (uint64_t)e->size_bytes, 8);
    }
    put(&extra, WB_ZIP_EXTRA_ALIGN, 2), put(&extra, 2 + (uint64_t)gap, 2);
    put(&extra, WB_NPY_ALIGN, 2);
    for (int64_t i = 0; i < gap; i++) put(&extra, 0, 1);
    emit(w, &header);
    wb_text_put(w->out, e->name);
    emit(w, &extra);
}

static void write_central(writer *w, const entry *e) {
    bytes header = {.count = 0}, extra = {.count = 0};
    if (is_wide(e->size_bytes))
        put(&extra, (uint64_t)e->size_bytes, 8), put(&extra, (uint64_t)e->size_bytes, 8);
    if (is_wide(e->offset)) put(&extra, (uint64_t)e->offset, 8);
    put(&header, WB_ZIP_CENTRAL, 4);
    put(&header, (uint64_t)version_of(e), 2), put(&header, (uint64_t)version_of(e), 2);
    put_common(&header, e);
    put(&header, extra.count ? extra.count + 4 : 0, 2);
    put(&header, 0, 10); /* no comment, first disk, attributes */
    put(&header, in32(e->offset), 4);
    emit(w, &header);
    wb_text_put(w->out, e->name);
    if (!extra.count) return;
    bytes begin = {.count = 0};
    put(&begin, WB_ZIP_EXTRA64, 2), put(&begin, extra.count, 2);
    emit(w, &begin);
    emit(w, &extra);
}

/* ---- the entries ---- */

/* Writes an entry of two parts, where the second one may be empty. */
static wb_status write_entry(writer *w, const char *name, const void *head, int64_t head_bytes,
                             const void *data, int64_t data_bytes) {
    entry e = {
        .name = name, .offset = (int64_t)w->out->size, .size_bytes = head_bytes + data_bytes};
    e.crc = (uint32_t)crc32_z(0, head, (size_t)head_bytes);
    if (data_bytes) e.crc = (uint32_t)crc32_z(e.crc, data, (size_t)data_bytes);
    if (strlen(name) > MOST_NAME)
        return wb_fail(WB_ERROR_ARGUMENT, "%s: the name \"%.80s...\" is too long for a zip file",
                       w->out->path, name);
    if (!WB_GROW(w->entries, w->count, w->capacity)) return WB_ERROR_MEMORY;
    w->entries[w->count++] = e;
    write_local(w, &e);
    wb_text_bytes(w->out, head, (size_t)head_bytes);
    if (data_bytes) wb_text_bytes(w->out, data, (size_t)data_bytes);
    return wb_text_status(w->out);
}

static wb_status write_array(writer *w, const wb_flat_entry *from) {
    char header[WB_NPY_MOST_HEADER];
    const size_t path_bytes = strlen(from->path);
    const size_t header_bytes = wb_npy_header(from->record, header, w->out->path, from->path);
    char *name = wb_arena_take(&w->flat.arena, path_bytes + sizeof ".npy");
    if (!header_bytes || !name) return wb_error_status();
    memcpy(name, from->path, path_bytes);
    memcpy(name + path_bytes, ".npy", sizeof ".npy");
    const int64_t data_bytes = wb_flat_array_of(from->record).data_bytes;
    if (!data_bytes) return write_entry(w, name, header, (int64_t)header_bytes, NULL, 0);
    const void *data = wb_flat_data_begin(from->record);
    if (!data) return wb_error_status();
    const wb_status status = write_entry(w, name, header, (int64_t)header_bytes, data, data_bytes);
    wb_flat_data_end(from->record, data);
    return status;
}

/* ---- what arrays cannot say ---- */

/* True for a map that can be restored from the names of its entries. A name with dots becomes
 * several maps, whose order would be lost. */
static bool is_plain_map(const wb_record *r, bool is_root) {
    bool has_dots = false, is_in_order = true;
    if (r->kind != WB_RECORD_MAP || (!r->count && !is_root)) return false;
    for (int64_t i = 0; i < r->count; i++) {
        has_dots = has_dots || strchr(r->names[i], '.');
        is_in_order = is_in_order && (!i || wb_path_compare(r->names[i - 1], r->names[i]) < 0);
    }
    const bool is_numbered = !is_root && strcmp(r->names[0], "1") == 0; /* would be a list */
    return has_dots || (is_in_order && !is_numbered);
}

/* True if the tree has only maps of arrays, which are written by name. */
static bool needs_tree(const writer *w, const wb_record *metadata) {
    bool needs = metadata && metadata->count;
    for (int64_t i = 0; i < w->flat.count && !needs; i++) {
        const wb_flat_entry *from = &w->flat.entries[i];
        const wb_record *r = from->record;
        needs = from->same_as || !(wb_record_has_data(r) || is_plain_map(r, i == 0));
    }
    return needs;
}

/* Says in each array which entry it is, for the tree. */
static void name_arrays(const writer *w) {
    for (int64_t i = 0; i < w->flat.count; i++) {
        const wb_flat_entry *from = &w->flat.entries[i];
        if (!from->same_as && wb_record_has_data(from->record)) from->record->text = from->path;
    }
}

static void forget_names(const writer *w) {
    for (int64_t i = 0; i < w->flat.count; i++)
        if (wb_record_has_data(w->flat.entries[i].record)) w->flat.entries[i].record->text = NULL;
}

static wb_status write_tree(writer *w, const wb_record *metadata) {
    if (!needs_tree(w, metadata)) return WB_OK;
    wb_record *children[] = {w->flat.entries[0].record, NULL};
    const char *names[] = {"tree", "metadata"};
    wb_record root = {
        .kind = WB_RECORD_MAP, .count = metadata ? 2 : 1, .names = names, .children = children};
    wb_record texts = {.kind = WB_RECORD_MAP};
    if (metadata) texts = *metadata, texts.number = 0, children[1] = &texts;
    wb_text text = {.path = w->out->path};
    name_arrays(w);
    wb_status status = wb_bson_write_tree(&root, &text);
    forget_names(w);
    if (status == WB_OK)
        status = write_entry(w, WB_NPZ_TREE, text.data, (int64_t)text.size, NULL, 0);
    wb_text_release(&text);
    return status;
}

/* ---- the directory ---- */

static void put_end64(bytes *b, const writer *w, int64_t begin, int64_t size_bytes) {
    put(b, WB_ZIP_END64, 4);
    put(b, WB_ZIP_END64_BYTES - 12, 8); /* the bytes after this number */
    put(b, VERSION64, 2), put(b, VERSION64, 2);
    put(b, 0, 8); /* disks */
    put(b, (uint64_t)w->count, 8), put(b, (uint64_t)w->count, 8);
    put(b, (uint64_t)size_bytes, 8), put(b, (uint64_t)begin, 8);
    put(b, WB_ZIP_LOCATOR64, 4), put(b, 0, 4);
    put(b, (uint64_t)(begin + size_bytes), 8), put(b, 1, 4);
}

static wb_status write_directory(writer *w) {
    const int64_t begin = (int64_t)w->out->size;
    for (int64_t i = 0; i < w->count; i++) write_central(w, &w->entries[i]);
    const int64_t size_bytes = (int64_t)w->out->size - begin;
    const bool has_many = w->count >= WB_ZIP_FULL16;
    const uint64_t count = has_many ? WB_ZIP_FULL16 : (uint64_t)w->count;
    bytes end = {.count = 0};
    if (has_many || is_wide(begin) || is_wide(size_bytes)) put_end64(&end, w, begin, size_bytes);
    put(&end, WB_ZIP_END, 4), put(&end, 0, 4);
    put(&end, count, 2), put(&end, count, 2);
    put(&end, in32(size_bytes), 4), put(&end, in32(begin), 4);
    put(&end, 0, 2);
    emit(w, &end);
    return wb_text_status(w->out);
}

wb_status wb_npz_write(const wb_record *root, const wb_record *metadata, wb_text *out) {
    writer w = {.out = out};
    wb_status status = wb_flat_make(&w.flat, root, out->path);
    for (int64_t i = 0; i < w.flat.count && status == WB_OK; i++)
        if (!w.flat.entries[i].same_as && wb_record_has_data(w.flat.entries[i].record))
            status = write_array(&w, &w.flat.entries[i]);
    if (status == WB_OK) status = write_tree(&w, metadata);
    if (status == WB_OK) status = write_directory(&w);
    wb_flat_release(&w.flat);
    wb_release(w.entries);
    return status;
}
