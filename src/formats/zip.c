/* Reads zip files. Only the central directory is used, and each of its entries is compared with the
 * header in front of the data; entries may not overlap, so that no byte is inflated twice. */
#include "formats/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/inflate.h"
#include "base/memory.h"

static uint64_t number(const unsigned char *at, int size_bytes) {
    uint64_t value = 0;
    for (int i = size_bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

static bool is_at(const wb_zip *z, int64_t offset, uint32_t signature, int64_t size_bytes) {
    return offset >= 0 && size_bytes <= z->size_bytes && offset <= z->size_bytes - size_bytes &&
           number(z->bytes + offset, 4) == signature;
}

/* ---- the end of the file ---- */

static int64_t find_end(const wb_zip *z) {
    for (int64_t at = z->size_bytes - WB_ZIP_END_BYTES;
         at >= 0 && at >= z->size_bytes - WB_ZIP_END_BYTES - 0xFFFF; at--)
        if (is_at(z, at, WB_ZIP_END, WB_ZIP_END_BYTES) &&
            at + WB_ZIP_END_BYTES + (int64_t)number(z->bytes + at + 20, 2) == z->size_bytes)
            return at;
    return -1;
}

static wb_status check_directory(const wb_zip *z, int64_t end, bool is_one_disk) {
    if (!is_one_disk) return wb_file_fault(z->file, end, "a zip file in several parts");
    if (z->directory < 0 || z->directory_bytes < 0 || z->directory > end ||
        z->directory_bytes > end - z->directory)
        return wb_file_fault(z->file, end, "the zip directory is not in the file");
    if (z->count < 0 || z->count > z->directory_bytes / WB_ZIP_CENTRAL_BYTES)
        return wb_file_fault(z->file, end, "the zip directory is too short for its entries");
    return WB_OK;
}

static wb_status read_end64(wb_zip *z, int64_t end) {
    const int64_t locator = end - WB_ZIP_LOCATOR64_BYTES;
    const uint64_t place = number(z->bytes + locator + 8, 8);
    if (place > (uint64_t)locator || !is_at(z, (int64_t)place, WB_ZIP_END64, WB_ZIP_END64_BYTES) ||
        (int64_t)place > locator - WB_ZIP_END64_BYTES)
        return wb_file_fault(z->file, locator, "the end of the zip directory is missing");
    const unsigned char *at = z->bytes + place;
    z->count = (int64_t)number(at + 32, 8);
    z->directory_bytes = (int64_t)number(at + 40, 8);
    z->directory = (int64_t)number(at + 48, 8);
    return check_directory(z, (int64_t)place,
                           number(at + 16, 4) == 0 && number(at + 20, 4) == 0 &&
                               number(at + 24, 8) == (uint64_t)z->count);
}

static wb_status read_end(wb_zip *z) {
    const int64_t end = find_end(z);
    if (end < 0)
        return wb_file_fault(z->file, z->size_bytes,
                             "the file must end with a zip directory; "
                             "it may be cut short");
    if (is_at(z, end - WB_ZIP_LOCATOR64_BYTES, WB_ZIP_LOCATOR64, WB_ZIP_LOCATOR64_BYTES))
        return read_end64(z, end);
    const unsigned char *at = z->bytes + end;
    z->count = (int64_t)number(at + 10, 2);
    z->directory_bytes = (int64_t)number(at + 12, 4);
    z->directory = (int64_t)number(at + 16, 4);
    return check_directory(z, end,
                           number(at + 4, 2) == 0 && number(at + 6, 2) == 0 &&
                               number(at + 8, 2) == (uint64_t)z->count);
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

static wb_status read_sizes(const wb_zip *z, const unsigned char *at, int64_t extra,
                            int64_t extra_bytes, wb_zip_entry *e) {
    int64_t *full[3];
    int count = 0;
    e->stored_bytes = (int64_t)number(at + 20, 4);
    e->size_bytes = (int64_t)number(at + 24, 4);
    e->header = (int64_t)number(at + 42, 4);
    if (e->size_bytes == WB_ZIP_FULL32) full[count++] = &e->size_bytes;
    if (e->stored_bytes == WB_ZIP_FULL32) full[count++] = &e->stored_bytes;
    if (e->header == WB_ZIP_FULL32) full[count++] = &e->header;
    if (read_extra64(z->bytes + extra, extra_bytes, count, full)) return WB_OK;
    return wb_file_fault(z->file, extra, "the extra field of an entry is damaged");
}

static wb_status check_kind(const wb_zip *z, const wb_zip_entry *e, const unsigned char *at) {
    if (number(at + 8, 2) & WB_ZIP_ENCRYPTED)
        return wb_file_fault(z->file, e->central, "%.200s is encrypted", e->name);
    if (e->method != WB_ZIP_STORED && e->method != WB_ZIP_DEFLATED)
        return wb_file_fault(z->file, e->central,
                             "%.200s must be stored (0) or deflated (8), but is compressed by "
                             "method %d",
                             e->name, e->method);
    if (e->method == WB_ZIP_STORED && e->stored_bytes != e->size_bytes)
        return wb_file_fault(z->file, e->central, "%.200s has two different sizes in the file",
                             e->name);
    if (e->method == WB_ZIP_DEFLATED && e->size_bytes / WB_MOST_DEFLATED > e->stored_bytes)
        return wb_file_fault(z->file, e->central, "%.200s cannot inflate to %lld bytes", e->name,
                             (long long)e->size_bytes);
    return WB_OK;
}

/* The header before the data: it has a length of its own. */
static wb_status read_local(const wb_zip *z, wb_zip_entry *e) {
    const int64_t name_bytes = (int64_t)strlen(e->name);
    if (!is_at(z, e->header, WB_ZIP_LOCAL, WB_ZIP_LOCAL_BYTES) || e->header > z->directory)
        return wb_file_fault(z->file, e->central, "%.200s must begin where the directory says",
                             e->name);
    const unsigned char *at = z->bytes + e->header;
    e->data =
        e->header + WB_ZIP_LOCAL_BYTES + (int64_t)number(at + 26, 2) + (int64_t)number(at + 28, 2);
    if (e->data > z->directory || e->stored_bytes > z->directory - e->data)
        return wb_file_fault(z->file, e->header, "%.200s reaches into the directory", e->name);
    e->end = e->data + e->stored_bytes;
    if ((int64_t)number(at + 26, 2) == name_bytes && (int)number(at + 8, 2) == e->method &&
        memcmp(at + WB_ZIP_LOCAL_BYTES, e->name, (size_t)name_bytes) == 0)
        return WB_OK;
    return wb_file_fault(z->file, e->header, "%.200s has another name or method in the directory",
                         e->name);
}

/* Reads the record at *place and moves past it. */
static wb_status read_central(const wb_zip *z, wb_zip_entry *e, int64_t *place) {
    const int64_t end = z->directory + z->directory_bytes;
    if (!is_at(z, *place, WB_ZIP_CENTRAL, WB_ZIP_CENTRAL_BYTES) ||
        *place > end - WB_ZIP_CENTRAL_BYTES)
        return wb_file_fault(z->file, *place, "an entry of the zip directory is expected");
    const unsigned char *at = z->bytes + *place;
    const int64_t name_bytes = (int64_t)number(at + 28, 2),
                  extra_bytes = (int64_t)number(at + 30, 2);
    const int64_t name = *place + WB_ZIP_CENTRAL_BYTES, extra = name + name_bytes;
    const int64_t next = extra + extra_bytes + (int64_t)number(at + 32, 2);
    if (next > end) return wb_file_fault(z->file, *place, "an entry reaches beyond the directory");
    if (memchr(z->bytes + name, 0, (size_t)name_bytes))
        return wb_file_fault(z->file, name, "a name must not contain a zero byte");
    *e = (wb_zip_entry){
        .central = *place,
        .crc = (uint32_t)number(at + 16, 4),
        .method = (int)number(at + 10, 2),
        .name = wb_arena_text(&z->file->arena, (const char *)z->bytes + name, (size_t)name_bytes)};
    if (!e->name) return wb_error_status();
    *place = next;
    wb_status status = read_sizes(z, at, extra, extra_bytes, e);
    if (status == WB_OK) status = check_kind(z, e, at);
    return status == WB_OK ? read_local(z, e) : status;
}

static int by_header(const void *a, const void *b) {
    const wb_zip_entry *left = a, *right = b;
    return (left->header > right->header) - (left->header < right->header);
}

static wb_status read_directory(wb_zip *z) {
    z->entries = wb_alloc_list(z->count + 1, sizeof *z->entries);
    if (!z->entries) return WB_ERROR_MEMORY;
    int64_t place = z->directory;
    for (int64_t i = 0; i < z->count; i++) {
        const wb_status status = read_central(z, &z->entries[i], &place);
        if (status != WB_OK) return status;
    }
    if (place != z->directory + z->directory_bytes)
        return wb_file_fault(z->file, place,
                             "bytes follow the last entry of the "
                             "zip directory");
    qsort(z->entries, (size_t)z->count, sizeof *z->entries, by_header);
    for (int64_t i = 1; i < z->count; i++)
        if (z->entries[i].header < z->entries[i - 1].end)
            return wb_file_fault(z->file, z->entries[i].header, "%.200s overlaps with %.200s",
                                 z->entries[i].name, z->entries[i - 1].name);
    return WB_OK;
}

/* ---- the entries ---- */

/* In the arena, whose own limit is one for records. */
static const unsigned char *inflated(wb_zip *z, const wb_zip_entry *e) {
    const int64_t most = wb_most_inflated(z->size_bytes);
    if (e->size_bytes > most - z->inflated_bytes) {
        (void)wb_file_fault(z->file, e->header,
                            "with %.200s the file inflates to %lld bytes; at most %lld are "
                            "allowed (" WB_INFLATE_ADVICE ")",
                            e->name, (long long)(z->inflated_bytes + e->size_bytes),
                            (long long)most);
        return NULL;
    }
    z->inflated_bytes += e->size_bytes;
    wb_arena *arena = &z->file->arena;
    arena->limit_bytes += arena->limit_bytes ? e->size_bytes + WB_ARENA_ALIGN : 0;
    unsigned char *out = wb_arena_take(arena, wb_bytes(e->size_bytes));
    if (!out || wb_inflate(true, z->bytes + e->data, e->stored_bytes, out, e->size_bytes))
        return out;
    (void)wb_file_fault(z->file, e->data, "%.200s cannot be inflated: it is damaged", e->name);
    return NULL;
}

const unsigned char *wb_zip_bytes(wb_zip *z, const wb_zip_entry *e) {
    const unsigned char *bytes = e->method == WB_ZIP_DEFLATED ? inflated(z, e) : z->bytes + e->data;
    if (!bytes || crc32_z(0, bytes, (size_t)e->size_bytes) == e->crc) return bytes;
    (void)wb_file_fault(z->file, e->data, "%.200s is damaged: it does not match its checksum",
                        e->name);
    return NULL;
}

wb_status wb_zip_open(wb_zip *z, wb_file *file) {
    static const unsigned char nothing[1];
    *z = (wb_zip){.file = file,
                  .bytes = file->map.bytes ? file->map.bytes : nothing,
                  .size_bytes = file->map.size_bytes};
    const wb_status status = read_end(z);
    return status == WB_OK ? read_directory(z) : status;
}

void wb_zip_close(wb_zip *z) { wb_release(z->entries); }

bool wb_is_zip(const wb_mapping *map) {
    if (map->size_bytes < WB_ZIP_END_BYTES) return false;
    const uint64_t first = number(map->bytes, 4);
    return first == WB_ZIP_LOCAL || first == WB_ZIP_END;
}
