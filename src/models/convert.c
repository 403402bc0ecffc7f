/* A file's tree into a file of another format. */
#include <string.h>

#include "formats/format.h"
#include "layers/layer.h"
#include "models/rename.h"

/* What a table turns is written from an array of its own, which belongs to the scope. Recursive: no
 * tree is deeper than WB_RECORD_DEPTH. */
static bool turn_arrays(const wb_file *file, wb_record *r) {
    if (r->turn && !r->array) {
        r->array = wb_copy(wb_record_array(file, r));
        if (wb_eval(r->array) != WB_OK) return false;
    }
    for (int64_t i = 0; i < r->count; i++)
        if (!turn_arrays(file, r->children[i])) return false;
    return true;
}

/* BSON's metadata are a part of the tree as well. */
static void drop_child(wb_record *root, const wb_record *child) {
    for (int64_t i = 0; child && i < root->count; i++) {
        if (root->children[i] != child) continue;
        const size_t rest = (size_t)(--root->count - i);
        memmove(root->children + i, root->children + i + 1, rest * sizeof *root->children);
        memmove(root->names + i, root->names + i + 1, rest * sizeof *root->names);
        return;
    }
}

static wb_status convert(wb_file *file, const wb_format *format, const char *to,
                         const char *rename) {
    drop_child(file->root, file->metadata);
    wb_record *root = rename ? wb_rename(file, file->root, rename) : file->root;
    if (!root || (rename && !turn_arrays(file, root))) return wb_error_status();
    return wb_write_file(format, root, file->metadata, to);
}

wb_status wb_convert_make(const char *from, const char *to, wb_convert_desc desc) {
    if (wb_failed()) return wb_not_run("wb_convert");
    if (!from || !to) return wb_fail(WB_ERROR_ARGUMENT, "wb_convert: a path is NULL");
    const wb_format *format = wb_format_of_path(to);
    wb_file *file = format ? wb_open(from) : NULL;
    if (!file || !wb_scope_begin()) {
        wb_free(file);
        return wb_error_status();
    }
    const wb_status status = convert(file, format, to, desc.rename);
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    wb_free(file);
    return status == WB_OK ? closed : status;
}
