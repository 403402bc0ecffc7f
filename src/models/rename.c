#include "models/rename.h"

#include <stdlib.h>
#include <string.h>

#include "base/scratch.h"
#include "formats/flat.h"
#include "models/flux.h"
#include "models/rename_table.h"

typedef struct renamer {
    wb_file *file;
    wb_rename_table table;
    wb_flat flat; /* what has a name now; origin has the old one */
} renamer;

/* ---- turning ---- */

static bool can_reorder(const wb_record *r, wb_reorder reorder) {
    if (reorder == WB_REORDER_NONE) return true;
    if (r->kind != WB_RECORD_ARRAY) return false;
    return reorder == WB_REORDER_TRANSPOSE ? r->ndim == 2 : r->ndim >= 3;
}

static const char *const reorder_texts[] = {[WB_REORDER_NONE] = "",
                                            [WB_REORDER_TRANSPOSE] = " and transposed",
                                            [WB_REORDER_FLIP] = " and flipped"};

static wb_record *reordered_record(const renamer *n, const wb_record *r, const wb_rename_row *row,
                                   const char *name) {
    if (!can_reorder(r, (wb_reorder)row->reorder))
        return wb_fail_null(WB_ERROR_SHAPE, "%s: rename table, line %d: %s is %s%s, and %s",
                            n->file->path, row->line, name,
                            r->kind == WB_RECORD_ARRAY ? wb_sizes_text(r->ndim, r->sizes) : "",
                            r->kind == WB_RECORD_ARRAY ? "" : "no array",
                            row->reorder == WB_REORDER_TRANSPOSE ? "transpose needs two dimensions"
                                                                 : "flip needs three or more");
    wb_record *reordered = wb_record_new(&n->file->arena, WB_RECORD_ARRAY);
    if (!reordered) return NULL;
    *reordered = *r;
    reordered->reorder = row->reorder;
    wb_reordered_sizes(reordered, reordered->sizes); /* there and back are the same way */
    return reordered;
}

const char *wb_origin_text(const wb_record *r, const char *path) {
    enum { BYTES = 512 };
    if (!r->origin) return path;
    char *text = wb_scratch(WB_SCRATCH_ORIGIN, BYTES);
    (void)snprintf(text, BYTES, "%.200s, renamed %.200s%s,", r->origin, path,
                   reorder_texts[r->reorder]);
    return text;
}

/* ---- the leaves under their new names ---- */

static bool add_leaf(renamer *n, wb_record *r, const char *name) {
    char text[WB_RENAME_BYTES];
    const wb_rename_row *row = wb_rename_find(&n->table, name, text);
    if (!row && wb_failed()) return false;
    if (row && !row->to) return true;
    if (row) {
        if (row->reorder) r = reordered_record(n, r, row, name);
        if (!r) return false;
        r->origin = name, r->name = NULL;
        name = wb_arena_text(&n->file->arena, text, strlen(text));
    }
    return name &&
           wb_flat_add(&n->flat, (wb_flat_entry){.path = name, .record = r, .offset = r->offset});
}

/* "PARENT.NAME"; a child without a name is called by its place, from 1. */
static const char *path_of_child(renamer *n, const wb_record *r, int64_t i, const char *parent) {
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
    const char *name = wb_record_name(r, i) ? wb_record_name(r, i) : number;
    const size_t before = strlen(parent), length = strlen(name);
    char *path = wb_arena_take(&n->file->arena, before + length + 2);
    if (!path) return NULL;
    memcpy(path, parent, before);
    if (before) path[before] = '.';
    memcpy(path + before + (before > 0), name, length);
    return path;
}

/* What is shared is gone through in each of its places; the arena bounds how often. Recursive: no
 * tree is deeper than WB_RECORD_DEPTH. */
static bool add_leaves(renamer *n, const wb_record *r, const char *parent) {
    for (int64_t i = 0; i < r->count; i++) {
        wb_record *child = wb_flux_unwrapped(r->children[i]);
        const char *path = path_of_child(n, r, i, parent);
        if (!path) return false;
        if (wb_record_is_container(child) ? !add_leaves(n, child, path) : !add_leaf(n, child, path))
            return false;
    }
    return true;
}

/* ---- checks ---- */

static const char *old_name(const wb_flat_entry *entry) {
    return entry->record->origin ? entry->record->origin : entry->path;
}

static bool check_rows(const renamer *n) {
    char names[400] = "nothing";
    size_t used = 0;
    for (int64_t i = 0; i < n->flat.count && used + 100 < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.80s", i ? ", " : "",
                                 old_name(&n->flat.entries[i]));
    for (int64_t i = 0; i < n->table.count; i++) {
        const wb_rename_row *row = &n->table.rows[i];
        if (row->is_used || row->is_pattern) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: rename table, line %d: there is no \"%.200s\" in the file; there is %s",
                      n->file->path, row->line, row->from, names);
        return false;
    }
    return true;
}

static int by_path(const void *a, const void *b) {
    const wb_flat_entry *left = a, *right = b;
    return wb_path_compare(left->path, right->path);
}

static bool check_names(const renamer *n) {
    const wb_flat *flat = &n->flat;
    if (flat->count) qsort(flat->entries, (size_t)flat->count, sizeof *flat->entries, by_path);
    for (int64_t i = 1; i < flat->count; i++) {
        const wb_flat_entry *entry = &flat->entries[i];
        if (strcmp(entry[-1].path, entry->path) != 0) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: two arrays cannot have one name, but \"%.160s\" "
                      "and \"%.160s\" would both be \"%.160s\"",
                      n->file->path, old_name(entry - 1), old_name(entry), entry->path);
        return false;
    }
    return true;
}

/* ---- the tree ---- */

wb_record *wb_rename(wb_file *file, const wb_record *root, const char *table) {
    renamer n = {.file = file};
    wb_record *renamed = NULL;
    if (!wb_record_is_container(root))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: the file holds one array without a name, so there "
                      "is nothing to rename",
                      file->path);
    else if (wb_rename_parse(&n.table, table) == WB_OK && add_leaves(&n, root, "") &&
             check_rows(&n) && check_names(&n))
        renamed = wb_flat_nest(&n.flat, file);
    if (renamed && root->kind == WB_RECORD_LIST) wb_flat_make_lists(renamed, false);
    wb_rename_release(&n.table);
    wb_flat_release(&n.flat);
    return renamed;
}
