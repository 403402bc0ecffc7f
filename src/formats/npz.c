/* NumPy's .npz: a zip file of .npy files. Only the central directory is used, and each of its
 * entries is compared with the header in front of the data; entries may not overlap, so that no
 * byte is inflated twice. */
#include "formats/npz.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/inflate.h"
#include "base/memory.h"
#include "formats/bson.h"
#include "formats/flat.h"
#include "formats/npy.h"

enum {
    MOST_RATIO = 1032, /* of deflate: 258 bytes by two bits */
    MOST_PIECE = 1 << 30
};

typedef struct entry {
    char *name; /* in the file's arena */
    int64_t header, data, end;
    int64_t size_bytes, stored_bytes;
    uint32_t crc;
    int method;
    int64_t central; /* where the directory speaks of it */
} entry;

typedef struct reader {
    wb_file *file;
    const unsigned char *bytes;
    int64_t size_bytes;
    int64_t directory, directory_bytes, count; /* the central directory */
    entry *entries;
    wb_flat flat;
    wb_record *tree; /* of weber.bson, or NULL */
    int64_t tree_offset;
    int64_t inflated_bytes; /* so far */
} reader;

static uint64_t number(const unsigned char *at, int size_bytes) {
    uint64_t value = 0;
    for (int i = size_bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static bool is_at(const reader *r, int64_t offset, uint32_t signature, int64_t size_bytes) {
    return offset >= 0 && size_bytes <= r->size_bytes && offset <= r->size_bytes - size_bytes &&
           number(r->bytes + offset, 4) == signature;
}

/* ---- the end of the file ---- */

static int64_t find_end(const reader *r) {
    for (int64_t at = r->size_bytes - WB_ZIP_END_BYTES;
         at >= 0 && at >= r->size_bytes - WB_ZIP_END_BYTES - 0xFFFF; at--)
        if (is_at(r, at, WB_ZIP_END, WB_ZIP_END_BYTES) &&
            at + WB_ZIP_END_BYTES + (int64_t)number(r->bytes + at + 20, 2) == r->size_bytes)
            return at;
    return -1;
}

static wb_status check_directory(const reader *r, int64_t end, bool is_one_disk) {
    if (!is_one_disk) return wb_file_fault(r->file, end, "a zip file in several parts");
    if (r->directory < 0 || r->directory_bytes < 0 || r->directory > end ||
        r->directory_bytes > end - r->directory)
        return wb_file_fault(r->file, end, "the zip directory is not in the file");
    if (r->count < 0 || r->count > r->directory_bytes / WB_ZIP_CENTRAL_BYTES)
        return wb_file_fault(r->file, end, "the zip directory is too short for its entries");
    return WB_OK;
}

static wb_status read_end64(reader *r, int64_t end) {
    const int64_t locator = end - WB_ZIP_LOCATOR64_BYTES;
    const uint64_t place = number(r->bytes + locator + 8, 8);
    if (place > (uint64_t)locator || !is_at(r, (int64_t)place, WB_ZIP_END64, WB_ZIP_END64_BYTES) ||
        (int64_t)place > locator - WB_ZIP_END64_BYTES)
        return wb_file_fault(r->file, locator, "the end of the zip directory is missing");
    const unsigned char *at = r->bytes + place;
    r->count = (int64_t)number(at + 32, 8);
    r->directory_bytes = (int64_t)number(at + 40, 8);
    r->directory = (int64_t)number(at + 48, 8);
    return check_directory(r, (int64_t)place,
                           number(at + 16, 4) == 0 && number(at + 20, 4) == 0 &&
                               number(at + 24, 8) == (uint64_t)r->count);
}

static wb_status read_end(reader *r) {
    const int64_t end = find_end(r);
    if (end < 0)
        return wb_file_fault(r->file, r->size_bytes,
                             "the file must end with a zip directory; "
                             "it may be cut short");
    if (is_at(r, end - WB_ZIP_LOCATOR64_BYTES, WB_ZIP_LOCATOR64, WB_ZIP_LOCATOR64_BYTES))
        return read_end64(r, end);
    const unsigned char *at = r->bytes + end;
    r->count = (int64_t)number(at + 10, 2);
    r->directory_bytes = (int64_t)number(at + 12, 4);
    r->directory = (int64_t)number(at + 16, 4);
    return check_directory(r, end,
                           number(at + 4, 2) == 0 && number(at + 6, 2) == 0 &&
                               number(at + 8, 2) == (uint64_t)r->count);
}

/* ---- the directory ---- */

/* The numbers that are all ones stand in the extra field, in this order. */
static bool read_extra64(const unsigned char *extra, int64_t extra_bytes, int count,
                         int64_t **numbers) {
    for (int64_t at = 0; at + 4 <= extra_bytes;) {
        const int64_t id = (int64_t)number(extra + at, 2),
                      size = (int64_t)number(extra + at + 2, 2);
        if (size > extra_bytes - at - 4) return false;
        for (int i = 0; id == WB_ZIP_EXTRA64 && i < count; i++) {
            if (8 * (i + 1) > size) return false;
            *numbers[i] = (int64_t)number(extra + at + 4 + 8 * i, 8);
            if (*numbers[i] < 0) return false;
        }
        if (id == WB_ZIP_EXTRA64) return true;
        at += 4 + size;
    }
    return count == 0;
}

static wb_status read_sizes(const reader *r, const unsigned char *at, int64_t extra,
                            int64_t extra_bytes, entry *e) {
    int64_t *full[3];
    int count = 0;
    e->stored_bytes = (int64_t)number(at + 20, 4);
    e->size_bytes = (int64_t)number(at + 24, 4);
    e->header = (int64_t)number(at + 42, 4);
    if (e->size_bytes == WB_ZIP_FULL32) full[count++] = &e->size_bytes;
    if (e->stored_bytes == WB_ZIP_FULL32) full[count++] = &e->stored_bytes;
    if (e->header == WB_ZIP_FULL32) full[count++] = &e->header;
    if (read_extra64(r->bytes + extra, extra_bytes, count, full)) return WB_OK;
    return wb_file_fault(r->file, extra, "the extra field of an entry is damaged");
}

static wb_status check_kind(const reader *r, const entry *e, const unsigned char *at) {
    if (number(at + 8, 2) & WB_ZIP_ENCRYPTED)
        return wb_file_fault(r->file, e->central, "%.200s is encrypted", e->name);
    if (e->method != WB_ZIP_STORED && e->method != WB_ZIP_DEFLATED)
        return wb_file_fault(r->file, e->central,
                             "%.200s must be stored (0) or deflated (8), but is compressed by "
                             "method %d",
                             e->name, e->method);
    if (e->method == WB_ZIP_STORED && e->stored_bytes != e->size_bytes)
        return wb_file_fault(r->file, e->central, "%.200s has two different sizes in the file",
                             e->name);
    if (e->method == WB_ZIP_DEFLATED && e->size_bytes / MOST_RATIO > e->stored_bytes)
        return wb_file_fault(r->file, e->central, "%.200s cannot inflate to %lld bytes", e->name,
                             (long long)e->size_bytes);
    return WB_OK;
}

/* The header before the data: it has a length of its own. */
static wb_status read_local(const reader *r, entry *e) {
    const int64_t name_bytes = (int64_t)strlen(e->name);
    if (!is_at(r, e->header, WB_ZIP_LOCAL, WB_ZIP_LOCAL_BYTES) || e->header > r->directory)
        return wb_file_fault(r->file, e->central, "%.200s must begin where the directory says",
                             e->name);
    const unsigned char *at = r->bytes + e->header;
    e->data =
        e->header + WB_ZIP_LOCAL_BYTES + (int64_t)number(at + 26, 2) + (int64_t)number(at + 28, 2);
    if (e->data > r->directory || e->stored_bytes > r->directory - e->data)
        return wb_file_fault(r->file, e->header, "%.200s reaches into the directory", e->name);
    e->end = e->data + e->stored_bytes;
    if ((int64_t)number(at + 26, 2) == name_bytes && (int)number(at + 8, 2) == e->method &&
        memcmp(at + WB_ZIP_LOCAL_BYTES, e->name, (size_t)name_bytes) == 0)
        return WB_OK;
    return wb_file_fault(r->file, e->header, "%.200s has another name or method in the directory",
                         e->name);
}

/* Reads the record at *place and moves past it. */
static wb_status read_central(const reader *r, entry *e, int64_t *place) {
    const int64_t end = r->directory + r->directory_bytes;
    if (!is_at(r, *place, WB_ZIP_CENTRAL, WB_ZIP_CENTRAL_BYTES) ||
        *place > end - WB_ZIP_CENTRAL_BYTES)
        return wb_file_fault(r->file, *place, "an entry of the zip directory is expected");
    const unsigned char *at = r->bytes + *place;
    const int64_t name_bytes = (int64_t)number(at + 28, 2),
                  extra_bytes = (int64_t)number(at + 30, 2);
    const int64_t name = *place + WB_ZIP_CENTRAL_BYTES, extra = name + name_bytes;
    const int64_t next = extra + extra_bytes + (int64_t)number(at + 32, 2);
    if (next > end) return wb_file_fault(r->file, *place, "an entry reaches beyond the directory");
    if (memchr(r->bytes + name, 0, (size_t)name_bytes))
        return wb_file_fault(r->file, name, "a name must not contain a zero byte");
    *e = (entry){
        .central = *place,
        .crc = (uint32_t)number(at + 16, 4),
        .method = (int)number(at + 10, 2),
        .name = wb_arena_text(&r->file->arena, (const char *)r->bytes + name, (size_t)name_bytes)};
    if (!e->name) return wb_error_status();
    *place = next;
    wb_status status = read_sizes(r, at, extra, extra_bytes, e);
    if (status == WB_OK) status = check_kind(r, e, at);
    return status == WB_OK ? read_local(r, e) : status;
}

static int by_header(const void *a, const void *b) {
    const entry *left = a, *right = b;
    return (left->header > right->header) - (left->header < right->header);
}

static wb_status read_directory(reader *r) {
    r->entries = wb_alloc_list(r->count + 1, sizeof *r->entries);
    if (!r->entries) return WB_ERROR_MEMORY;
    int64_t place = r->directory;
    for (int64_t i = 0; i < r->count; i++) {
        const wb_status status = read_central(r, &r->entries[i], &place);
        if (status != WB_OK) return status;
    }
    if (place != r->directory + r->directory_bytes)
        return wb_file_fault(r->file, place,
                             "bytes follow the last entry of the "
                             "zip directory");
    qsort(r->entries, (size_t)r->count, sizeof *r->entries, by_header);
    for (int64_t i = 1; i < r->count; i++)
        if (r->entries[i].header < r->entries[i - 1].end)
            return wb_file_fault(r->file, r->entries[i].header, "%.200s overlaps with %.200s",
                                 r->entries[i].name, r->entries[i - 1].name);
    return WB_OK;
}

/* ---- the entries ---- */

/* Turns the bytes of e into out, which is as long as the directory says; false where they are more,
 * fewer, or damaged. */
static bool inflate_all(const reader *r, const entry *e, unsigned char *out) {
    const union {
        const unsigned char *from;
        unsigned char *to; /* zlib only reads it */
    } in = {.from = r->bytes + e->data};
    z_stream z = {.next_in = in.to, .next_out = out};
    int64_t in_left = e->stored_bytes, out_left = e->size_bytes;
    int result = Z_OK;
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    while (result == Z_OK) {
        const int64_t in_piece = in_left < MOST_PIECE ? in_left : MOST_PIECE;
        const int64_t out_piece = out_left < MOST_PIECE ? out_left : MOST_PIECE;
        z.avail_in = (uInt)in_piece, z.avail_out = (uInt)out_piece;
        result = inflate(&z, Z_NO_FLUSH);
        in_left -= in_piece - z.avail_in, out_left -= out_piece - z.avail_out;
    }
    (void)inflateEnd(&z);
    return result == Z_STREAM_END && in_left == 0 && out_left == 0;
}

/* In the arena, whose own limit is one for records. */
static const unsigned char *inflated(reader *r, const entry *e) {
    const int64_t most = wb_most_inflated(r->size_bytes);
    if (e->size_bytes > most - r->inflated_bytes) {
        (void)wb_file_fault(r->file, e->header,
                            "with %.200s the file inflates to %lld bytes; at most %lld are "
                            "allowed (" WB_INFLATE_ADVICE ")",
                            e->name, (long long)(r->inflated_bytes + e->size_bytes),
                            (long long)most);
        return NULL;
    }
    r->inflated_bytes += e->size_bytes;
    wb_arena *arena = &r->file->arena;
    arena->limit_bytes += arena->limit_bytes ? e->size_bytes + WB_ARENA_ALIGN : 0;
    unsigned char *out = wb_arena_take(arena, wb_bytes(e->size_bytes));
    if (!out || inflate_all(r, e, out)) return out;
    (void)wb_file_fault(r->file, e->data, "%.200s cannot be inflated: it is damaged", e->name);
    return NULL;
}

static bool has_extension(const entry *e) {
    const size_t length = strlen(e->name);
    return length >= 4 && memcmp(e->name + length - 4, ".npy", 4) == 0;
}

/* An entry that is not an array stays as bytes. */
static wb_record *opaque(const reader *r, const wb_npy_source *source) {
    wb_record *record = wb_record_new(&r->file->arena, WB_RECORD_OPAQUE);
    if (!record) return NULL;
    record->type = "file";
    record->data = source->bytes, record->data_bytes = source->size_bytes;
    record->offset = source->offset;
    return record;
}

/* ---- the tree ---- */

static wb_status read_tree(reader *r, const wb_npy_source *source) {
    const wb_mapping map = {source->bytes, source->size_bytes};
    if (r->tree) return wb_file_fault(r->file, source->offset, WB_NPZ_TREE " appears twice");
    wb_record *root = wb_bson_read_tree(r->file, &map, source->offset);
    if (!root) return wb_error_status();
    for (int64_t i = 0; root->kind == WB_RECORD_MAP && i < root->count; i++) {
        if (strcmp(root->names[i], "tree") == 0) r->tree = root->children[i];
        if (strcmp(root->names[i], "metadata") == 0) r->file->metadata = root->children[i];
    }
    const wb_record *texts = r->file->metadata;
    bool is_fine = !texts || texts->kind == WB_RECORD_MAP;
    for (int64_t i = 0; texts && i < texts->count; i++)
        is_fine = is_fine && texts->children[i]->kind == WB_RECORD_TEXT;
    if (!is_fine) return wb_file_fault(r->file, texts->offset, "metadata must be a map of texts");
    r->tree_offset = source->offset;
    if (r->tree && wb_record_is_container(r->tree)) return WB_OK;
    return wb_file_fault(r->file, source->offset, WB_NPZ_TREE " has no tree");
}

static int by_path(const void *a, const void *b) {
    const wb_flat_entry *left = a, *right = b;
    return strcmp(left->path, right->path);
}

/* The entry that the struct Weber.Array means; r itself where it is something else; NULL with the
 * error recorded. */
static wb_record *meant_by(const reader *r, wb_record *child) {
    const bool is_array = child->kind == WB_RECORD_STRUCT && child->count == 1 &&
                          strcmp(child->type, WB_BSON_ARRAY_TYPE) == 0 &&
                          child->children[0]->kind == WB_RECORD_TEXT;
    if (!is_array) return child;
    const wb_flat_entry key = {.path = child->children[0]->text};
    wb_flat_entry *array =
        r->flat.count ? bsearch(&key, r->flat.entries, (size_t)r->flat.count, sizeof key, by_path)
                      : NULL;
    if (!array) {
        (void)wb_file_fault(r->file, r->tree_offset, "it has no array \"%.200s\"", key.path);
        return NULL;
    }
    array->same_as = key.path; /* it has a place */
    return array->record;
}

/* Recursive: no tree is deeper than WB_RECORD_DEPTH. A record that was met has the number 1. */
static wb_status put_arrays(const reader *r, wb_record *parent) {
    parent->number = 1;
    for (int64_t i = 0; i < parent->count; i++) {
        wb_record *child = meant_by(r, parent->children[i]);
        if (!child) return wb_error_status();
        if (!child->name && parent->names) child->name = parent->names[i];
        parent->children[i] = child;
        if (child->number || !child->count) continue;
        const wb_status status = put_arrays(r, child);
        if (status != WB_OK) return status;
    }
    return WB_OK;
}

static wb_status fill_tree(reader *r) {
    if (r->flat.count)
        qsort(r->flat.entries, (size_t)r->flat.count, sizeof *r->flat.entries, by_path);
    wb_status status = put_arrays(r, r->tree);
    wb_record_forget_numbers(r->tree);
    for (int64_t i = 0; i < r->flat.count && status == WB_OK; i++) {
        const wb_flat_entry *array = &r->flat.entries[i];
        if (!array->same_as)
            status = wb_file_fault(
                r->file, array->offset,
                "the name \"%.200s\" appears twice, or has no place in " WB_NPZ_TREE, array->path);
    }
    if (status == WB_OK) r->file->root = r->tree;
    return status;
}

static wb_status read_entry(reader *r, entry *e) {
    const size_t length = strlen(e->name);
    if (length && e->name[length - 1] == '/' && e->size_bytes == 0) return WB_OK; /* a folder */
    wb_npy_source source = {.file = r->file,
                            .size_bytes = e->size_bytes,
                            .bytes = r->bytes + e->data,
                            .offset = e->data,
                            .is_inflated = e->method == WB_ZIP_DEFLATED,
                            .entry = e->name};
    if (source.is_inflated) source.bytes = inflated(r, e);
    if (!source.bytes) return wb_error_status();
    if (crc32_z(0, source.bytes, (size_t)source.size_bytes) != e->crc)
        return wb_file_fault(r->file, e->data,
                             "%.200s is damaged: it does not match its "
                             "checksum",
                             e->name);
    if (strcmp(e->name, WB_NPZ_TREE) == 0) return read_tree(r, &source);
    wb_flat_entry child = {.path = e->name, .offset = e->central};
    child.record = has_extension(e) ? wb_npy_read(&source) : opaque(r, &source);
    if (!child.record) return wb_error_status();
    if (has_extension(e)) e->name[length - 4] = 0;
    return wb_flat_add(&r->flat, child) ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status read_file(wb_file *file) {
    static const unsigned char nothing[1];
    reader r = {.file = file,
                .bytes = file->map.bytes ? file->map.bytes : nothing,
                .size_bytes = file->map.size_bytes};
    wb_status status = read_end(&r);
    if (status == WB_OK) status = read_directory(&r);
    for (int64_t i = 0; i < r.count && status == WB_OK; i++) status = read_entry(&r, &r.entries[i]);
    if (status == WB_OK && r.tree)
        status = fill_tree(&r);
    else if (status == WB_OK && !(file->root = wb_flat_nest(&r.flat, file)))
        status = wb_error_status();
    wb_flat_release(&r.flat);
    wb_release(r.entries);
    return status;
}

static bool recognises(const wb_mapping *map) {
    if (map->size_bytes < WB_ZIP_END_BYTES) return false;
    const uint64_t first = number(map->bytes, 4);
    return first == WB_ZIP_LOCAL || first == WB_ZIP_END;
}

static const char *refuses(const wb_record *r) {
    if (wb_record_has_data(r)) return wb_npy_refuses(r);
    return r->kind == WB_RECORD_OPAQUE ? r->type : NULL;
}

const wb_format wb_format_npz = {.name = "npz",
                                 .extension = ".npz",
                                 .recognises = recognises,
                                 .read = read_file,
                                 .write = wb_npz_write,
                                 .refuses = refuses,
                                 .has_values = true,
                                 .has_metadata = true};
