/* The value of a PyTorch file as a tree of paths. */
#include <stdio.h>
#include <string.h>

#include "formats/pt.h"

void wb_pt_allow_values(wb_file *file, int64_t pickle_bytes) {
    enum { BYTES_PER_BYTE = 512, MOST = 16 << 20 };
    wb_arena *arena = &file->arena;
    if (arena->limit_bytes)
        arena->limit_bytes += BYTES_PER_BYTE * (pickle_bytes < MOST ? pickle_bytes : MOST);
}

/* The arena has no more memory: a dictionary that is in another one twice, and so on, has any
 * number of paths. */
static wb_status too_many(const wb_pt *r, const wb_record *record) {
    if (wb_error_status() != WB_ERROR_FORMAT) return wb_error_status();
    wb_clear_error();
    return wb_file_fault(r->file, record->offset, "values are repeated too often");
}

/* The depth is bounded by that of the records. */
wb_status wb_pt_flatten(wb_pt *r, wb_record *record, const char *path) {
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
        status = wb_pt_flatten(r, record->children[i], whole);
    }
    return status;
}

/* Keeps the order of the names, which is that of the modules in the program. */
static wb_status keep_order(wb_pt *r) {
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
static wb_status keep_parts(wb_pt *r, const wb_record *value) {
    wb_file *file = r->file;
    if (value->kind != WB_RECORD_MAP) return WB_OK;
    file->parts = wb_arena_list(&file->arena, value->count, sizeof *file->parts);
    if (!file->parts) return wb_error_status();
    for (int64_t i = 0; i < value->count; i++)
        if (has_tensors(value->children[i])) file->parts[file->part_count++] = value->names[i];
    return WB_OK;
}

wb_status wb_pt_set_root(wb_pt *pt, wb_record *value, bool has_parts) {
    wb_file *file = pt->file;
    if (value->kind != WB_RECORD_MAP && value->kind != WB_RECORD_LIST) {
        file->root = value;
        return WB_OK;
    }
    wb_status status = wb_pt_flatten(pt, value, "");
    if (status == WB_OK) status = keep_order(pt);
    if (status == WB_OK && has_parts) status = keep_parts(pt, value);
    if (status != WB_OK) return status;
    file->root = wb_flat_nest(&pt->flat, file);
    if (!file->root) return wb_error_status();
    if (value->kind == WB_RECORD_LIST) wb_flat_make_lists(file->root, false);
    return WB_OK;
}
