/* NumPy's .npz: a zip file of .npy files. */
#include "formats/npz.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "formats/bson.h"
#include "formats/flat.h"
#include "formats/npy.h"

typedef struct reader {
    wb_file *file;
    wb_zip zip;
    wb_flat flat;
    wb_record *tree; /* of weber.bson, or NULL */
    int64_t tree_offset;
} reader;

static bool has_extension(const wb_zip_entry *e) {
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

static wb_status read_entry(reader *r, wb_zip_entry *e) {
    const size_t length = strlen(e->name);
    if (length && e->name[length - 1] == '/' && e->size_bytes == 0) return WB_OK; /* a folder */
    const wb_npy_source source = {.file = r->file,
                                  .size_bytes = e->size_bytes,
                                  .bytes = wb_zip_bytes(&r->zip, e),
                                  .offset = e->data,
                                  .is_inflated = e->method == WB_ZIP_DEFLATED,
                                  .entry = e->name};
    if (!source.bytes) return wb_error_status();
    if (strcmp(e->name, WB_NPZ_TREE) == 0) return read_tree(r, &source);
    wb_flat_entry child = {.path = e->name, .offset = e->central};
    child.record = has_extension(e) ? wb_npy_read(&source) : opaque(r, &source);
    if (!child.record) return wb_error_status();
    if (has_extension(e)) e->name[length - 4] = 0;
    return wb_flat_add(&r->flat, child) ? WB_OK : WB_ERROR_MEMORY;
}

static wb_status read_file(wb_file *file) {
    reader r = {.file = file};
    wb_status status = wb_zip_open(&r.zip, file);
    for (int64_t i = 0; i < r.zip.count && status == WB_OK; i++)
        status = read_entry(&r, &r.zip.entries[i]);
    if (status == WB_OK && r.tree)
        status = fill_tree(&r);
    else if (status == WB_OK && !(file->root = wb_flat_nest(&r.flat, file)))
        status = wb_error_status();
    wb_flat_release(&r.flat);
    wb_zip_close(&r.zip);
    return status;
}

static const char *refuses(const wb_record *r) {
    if (wb_record_has_data(r)) return wb_npy_refuses(r);
    return r->kind == WB_RECORD_OPAQUE ? r->type : NULL;
}

const wb_format wb_format_npz = {.name = "npz",
                                 .extension = ".npz",
                                 .recognises = wb_is_zip,
                                 .read = read_file,
                                 .write = wb_npz_write,
                                 .refuses = refuses,
                                 .has_values = true,
                                 .has_metadata = true};
