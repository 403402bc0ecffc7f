#include "models/rename.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/scratch.h"
#include "formats/flat.h"
#include "models/flux.h"
#include "models/rename_table.h"

/* What becomes a part of another array. */
typedef struct piece {
    const char *path; /* of that one */
    wb_record *record;
    const wb_rename_row *row;
} piece;

typedef struct renamer {
    wb_file *file;
    wb_rename_table table;
    wb_flat flat; /* what has a name now; origin has the old one */
    piece *pieces;
    int64_t piece_count, piece_capacity;
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

/* ---- parts ---- */

static wb_record *part_of(const renamer *n, const wb_record *r, const wb_rename_row *row,
                          const char *name) {
    const int last = r->ndim - 1;
    if (r->kind != WB_RECORD_ARRAY || r->ndim == 0 || r->sizes[last] % row->parts != 0)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: rename table, line %d: %s must have a last size that %d divides, "
                            "got %s",
                            n->file->path, row->line, name, row->parts,
                            r->kind == WB_RECORD_ARRAY ? wb_sizes_text(r->ndim, r->sizes)
                                                       : "no array");
    wb_record *part = wb_record_new(&n->file->arena, WB_RECORD_ARRAY);
    if (!part) return NULL;
    *part = *r;
    part->sizes[last] /= row->parts;
    part->data_bytes /= row->parts;
    if (part->data_bytes) part->data = (const char *)r->data + (row->part - 1) * part->data_bytes;
    return part;
}

static int by_path_and_part(const void *a, const void *b) {
    const piece *left = a, *right = b;
    const int order = strcmp(left->path, right->path);
    return order ? order : left->row->part - right->row->part;
}

/* The first count pieces are parts 1, 2, ... of one array, of one type and size. */
static bool check_pieces(const renamer *n, const piece *first, int64_t count) {
    const wb_record *r = first->record;
    bool good = count == first->row->parts && r->kind == WB_RECORD_ARRAY && r->ndim > 0;
    for (int64_t i = 0; good && i < count; i++) {
        const wb_record *other = first[i].record;
        good = first[i].row->parts == count && first[i].row->part == i + 1 &&
               other->kind == WB_RECORD_ARRAY && other->dtype == r->dtype &&
               other->ndim == r->ndim &&
               memcmp(other->sizes, r->sizes, r->ndim * sizeof *r->sizes) == 0;
    }
    if (!good)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: rename table, line %d: \"%.160s\" needs %d arrays of one type and size, "
                      "parts 1/%d, 2/%d, ..., each once, got %lld arrays",
                      n->file->path, first->row->line, first->path, first->row->parts,
                      first->row->parts, first->row->parts, (long long)count);
    return good;
}

/* The bytes of a record as it is to be. */
static void copy_bytes(unsigned char *to, const wb_record *r) {
    const unsigned char *from = r->data;
    const int64_t bytes = (int64_t)wb_dtype_size((wb_dtype)r->dtype);
    const int64_t rows = r->sizes[0], columns = r->sizes[1];
    if (r->data_bytes && r->reorder != WB_REORDER_TRANSPOSE)
        memcpy(to, from, (size_t)r->data_bytes);
    if (r->reorder != WB_REORDER_TRANSPOSE) return;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + (j * rows + i) * bytes, from + (i * columns + j) * bytes, (size_t)bytes);
}

static bool join(renamer *n, const piece *first, int64_t count) {
    const wb_record *r = first->record;
    if (!check_pieces(n, first, count)) return false;
    wb_record *whole = wb_record_new(&n->file->arena, WB_RECORD_ARRAY);
    unsigned char *data = wb_arena_take(&n->file->arena, wb_bytes(count * r->data_bytes + 1));
    if (!whole || !data) return false;
    *whole = *r;
    whole->reorder = WB_REORDER_NONE;
    whole->sizes[r->ndim - 1] *= count;
    whole->data = data, whole->data_bytes = count * r->data_bytes;
    for (int64_t i = 0; i < count; i++) copy_bytes(data + i * r->data_bytes, first[i].record);
    return wb_flat_add(&n->flat,
                       (wb_flat_entry){.path = first->path, .record = whole, .offset = r->offset});
}

static bool join_pieces(renamer *n) {
    const piece *p = n->pieces;
    if (n->piece_count)
        qsort(n->pieces, (size_t)n->piece_count, sizeof *n->pieces, by_path_and_part);
    for (int64_t i = 0, end; i < n->piece_count; i = end) {
        for (end = i + 1; end < n->piece_count && strcmp(p[end].path, p[i].path) == 0;) end++;
        if (!join(n, p + i, end - i)) return false;
    }
    return true;
}

static bool add_piece(renamer *n, piece p) {
    if (!WB_GROW(n->pieces, n->piece_count, n->piece_capacity)) return false;
    n->pieces[n->piece_count++] = p;
    return true;
}

/* ---- the leaves under their new names ---- */

static bool add_entry(renamer *n, wb_record *r, const char *path) {
    return wb_flat_add(&n->flat, (wb_flat_entry){.path = path, .record = r, .offset = r->offset});
}

/* What the row makes of a leaf, whose new name is text. */
static bool add_renamed(renamer *n, wb_record *r, const wb_rename_row *row, const char *name,
                        const char *text) {
    if (!row->to) return true;
    if (row->parts && !row->is_joined && !(r = part_of(n, r, row, name))) return false;
    if (row->reorder && !(r = reordered_record(n, r, row, name))) return false;
    const char *path = wb_arena_text(&n->file->arena, text, strlen(text));
    if (!path) return false;
    r->origin = name, r->name = NULL;
    return row->is_joined ? add_piece(n, (piece){path, r, row}) : add_entry(n, r, path);
}

/* The first row counts; if it takes a part, those behind it that do, too. */
static bool add_leaf(renamer *n, wb_record *r, const char *name) {
    char text[WB_RENAME_BYTES];
    const wb_rename_row *row = wb_rename_find(&n->table, NULL, name, text);
    if (!row) return !wb_failed() && add_entry(n, r, name);
    const bool are_parts = row->parts && !row->is_joined;
    do {
        if (!add_renamed(n, r, row, name, text)) return false;
        row = are_parts ? wb_rename_find(&n->table, row, name, text) : NULL;
    } while (row && row->parts && !row->is_joined);
    return !wb_failed();
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
             check_rows(&n) && join_pieces(&n) && check_names(&n))
        renamed = wb_flat_nest(&n.flat, file);
    if (renamed && root->kind == WB_RECORD_LIST) wb_flat_make_lists(renamed, false);
    wb_rename_release(&n.table);
    wb_flat_release(&n.flat);
    wb_release(n.pieces);
    return renamed;
}
