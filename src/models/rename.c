/* Lists the tree by paths, gives each path its new name, and makes a tree again. An array that is
 * transposed is only marked and is rearranged when it is loaded; one that is put together from
 * parts is copied. */
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

static bool is_transposition(const uint8_t *order, int count) {
    return count == 2 && order[0] == 1;
}

static int dimension_of(const wb_rename_row *row, const wb_record *r) {
    return row->along == WB_RENAME_LAST ? r->ndim - 1 : row->along;
}

/* Whether the dimensions that the row drops have size 1, and there is room for those it adds. */
static bool can_squeeze(const wb_record *r, const wb_rename_row *row) {
    const int ndim = r->ndim + row->ones;
    if (ndim < 0 || ndim > WB_MAX_DIMS) return false;
    for (int d = ndim; d < r->ndim; d++)
        if (r->sizes[row->order_count ? row->order[d] : d] != 1) return false;
    return true;
}

/* What keeps the row from turning r; NULL: nothing does. */
static const char *obstacle(const wb_record *r, const wb_rename_row *row, char text[100]) {
    const int along = dimension_of(row, r), wanted = row->order_count;
    const bool is_cut = row->parts && !row->is_joined;
    if (row->is_flipped && r->ndim < 3) return "flip needs three or more";
    if (wanted && r->ndim != wanted)
        (void)snprintf(text, 100,
                       is_transposition(row->order, wanted) ? "transpose needs two dimensions"
                                                            : "permute names %d dimensions",
                       wanted);
    else if (row->parts && (along < 0 || along >= r->ndim))
        (void)snprintf(text, 100, "has no dimension %d", along < 0 ? 0 : along);
    else if (is_cut && r->sizes[along] % row->parts != 0)
        (void)snprintf(text, 100, "its size along dimension %d must be a multiple of %d", along,
                       row->parts);
    else if (!can_squeeze(r, row))
        (void)snprintf(text, 100,
                       row->ones < 0 ? "squeeze %d needs as many last dimensions of size 1"
                                     : "unsqueeze %d makes too many dimensions",
                       row->ones < 0 ? -row->ones : row->ones);
    else
        return NULL;
    return text;
}

static bool can_turn(const renamer *n, const wb_record *r, const wb_rename_row *row,
                     const char *name) {
    char text[100];
    const bool is_array = r->kind == WB_RECORD_ARRAY;
    const bool has_type = r->kind == WB_RECORD_OPAQUE && r->data && r->type;
    const char *why = is_array ? obstacle(r, row, text) : NULL;
    if (is_array && !why) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: rename table, line %d: %s is %s%.60s%s%s", n->file->path,
                  row->line, name,
                  is_array   ? wb_sizes_text(r->ndim, r->sizes)
                  : has_type ? "of a type that Weber does not have, "
                             : "not an array",
                  has_type ? r->type : "", why ? ", and " : "", why ? why : "");
    return false;
}

/* The array that is made from the arrays in turn->of; so far with the type and sizes of the
 * first. */
static wb_record *turned_record(renamer *n, wb_record *first, int count, wb_turn **turn) {
    wb_arena *arena = &n->file->arena;
    wb_record *record = wb_record_new(arena, WB_RECORD_ARRAY);
    wb_turn *t = *turn = wb_arena_take(arena, sizeof **turn);
    if (!record || !t || !(t->of = wb_arena_list(arena, count, sizeof *t->of))) return NULL;
    *record = *first;
    record->turn = t, record->data = NULL, record->packed = NULL, record->array = NULL;
    t->of[0] = first, t->count = count;
    return record;
}

/* The part of r that the row takes, permuted, flipped and squeezed. */
static wb_record *turned(renamer *n, wb_record *r, const wb_rename_row *row, const char *name) {
    const bool is_cut = row->parts && !row->is_joined;
    wb_turn *turn;
    wb_record *record = can_turn(n, r, row, name) ? turned_record(n, r, 1, &turn) : NULL;
    if (!record) return NULL;
    turn->along = dimension_of(row, r);
    if (is_cut) {
        const int64_t size = r->sizes[turn->along] / row->parts;
        turn->begin = (row->part - 1) * size, turn->end = row->part * size;
        record->sizes[turn->along] = size, record->data_bytes /= row->parts;
    }
    turn->is_permuted = row->order_count > 0, turn->is_flipped = row->is_flipped;
    memcpy(turn->order, row->order, sizeof turn->order);
    const wb_record cut = *record;
    for (int d = 0; d < row->order_count; d++) record->sizes[d] = cut.sizes[row->order[d]];
    for (int d = 0; d < row->ones; d++) record->sizes[cut.ndim + d] = 1;
    record->ndim = (uint8_t)(cut.ndim + row->ones);
    return record;
}

const char *wb_origin_text(const wb_record *r, const char *path) {
    enum { BYTES = 512 };
    if (!r->origin) return path;
    const wb_turn *turn = r->turn;
    char *text = wb_scratch(WB_SCRATCH_ORIGIN, BYTES);
    const char *order = !turn || !turn->is_permuted              ? ""
                        : is_transposition(turn->order, r->ndim) ? " and transposed"
                                                                 : " and permuted";
    (void)snprintf(text, BYTES, "%.200s, %srenamed %.200s%s%s,", r->origin,
                   turn && turn->end ? "a part of it " : "", path, order,
                   turn && turn->is_flipped ? " and flipped" : "");
    return text;
}

/* ---- what becomes a part ---- */

static int by_path_and_part(const void *a, const void *b) {
    const piece *left = a, *right = b;
    const int order = strcmp(left->path, right->path);
    return order ? order : left->row->part - right->row->part;
}

/* The first count pieces are parts 1, 2, ... of one array, of one type and size. */
static bool check_pieces(const renamer *n, const piece *first, int64_t count) {
    const wb_record *r = first->record;
    bool good = count == first->row->parts;
    for (int64_t i = 0; good && i < count; i++) {
        const wb_record *other = first[i].record;
        good = first[i].row->parts == count && first[i].row->part == i + 1 &&
               first[i].row->along == first->row->along && other->dtype == r->dtype &&
               other->ndim == r->ndim &&
               memcmp(other->sizes, r->sizes, r->ndim * sizeof *r->sizes) == 0;
    }
    if (!good)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: rename table, line %d: \"%.160s\" needs %d arrays of one type and size, "
                      "parts 1/%d, 2/%d, ..., each once, along one dimension, got %lld arrays",
                      n->file->path, first->row->line, first->path, first->row->parts,
                      first->row->parts, first->row->parts, (long long)count);
    return good;
}

static bool join(renamer *n, const piece *first, int64_t count) {
    wb_record *r = first->record;
    wb_turn *turn;
    wb_record *whole =
        check_pieces(n, first, count) ? turned_record(n, r, (int)count, &turn) : NULL;
    if (!whole) return false;
    turn->along = dimension_of(first->row, r);
    for (int64_t i = 0; i < count; i++) turn->of[i] = first[i].record;
    whole->sizes[turn->along] *= count, whole->data_bytes *= count;
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

/* Applies the row to a leaf, whose new name is text. */
static bool add_renamed(renamer *n, wb_record *r, const wb_rename_row *row, const char *name,
                        const char *text) {
    if (!row->to) return true;
    const bool is_turned = row->parts || row->order_count || row->is_flipped || row->ones;
    if (is_turned && !(r = turned(n, r, row, name))) return false;
    const char *path = wb_arena_text(&n->file->arena, text, strlen(text));
    if (!path) return false;
    r->origin = name, r->name = NULL;
    return row->is_joined ? add_piece(n, (piece){path, r, row}) : add_entry(n, r, path);
}

/* Applies the first row that matches, and later ones with the same left side. */
static bool add_leaf(renamer *n, wb_record *r, const char *name) {
    char text[WB_RENAME_BYTES];
    const wb_rename_row *row = wb_rename_find(&n->table, NULL, name, text);
    if (!row) return !wb_failed() && add_entry(n, r, name);
    for (; row; row = wb_rename_find(&n->table, row, name, text))
        if (!add_renamed(n, r, row, name, text)) return false;
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

/* A shared record is visited in each of its places; the arena limits how often. Recursive: no tree
 * is deeper than WB_RECORD_DEPTH. */
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

static bool is_taken(const renamer *n, const char *name) {
    for (int64_t i = 0; i < n->flat.count; i++)
        if (strcmp(old_name(&n->flat.entries[i]), name) == 0) return true;
    return false;
}

/* The first pattern that matches no name, even without regard to earlier rows. */
static void note_pattern(const renamer *n, const wb_rename_row *row, const char *names) {
    char text[700];
    if (n->file->rename_note || !row->to) return;
    for (int64_t i = 0; i < n->flat.count; i++)
        if (wb_rename_row_takes(row, old_name(&n->flat.entries[i]))) return;
    const int length =
        snprintf(text, sizeof text,
                 "rename table, line %d: \"%.200s\" matches no name of the file; there is %s",
                 row->line, row->from, names);
    n->file->rename_note = wb_arena_text(&n->file->arena, text, (size_t)length);
}

static const char *last_part(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The names of the file, those that end as the wanted one does first. */
static void list_names(const renamer *n, const char *wanted, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s", n->flat.count ? "" : "nothing");
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n->flat.count && used + 100 < size; i++) {
            const char *name = old_name(&n->flat.entries[i]);
            const bool is_like = strcmp(last_part(name), last_part(wanted)) == 0;
            if (is_like != (pass == 0)) continue;
            used += (size_t)snprintf(text + used, size - used, "%s%.80s", used ? ", " : "", name);
        }
}

static bool check_rows(const renamer *n) {
    for (int64_t i = 0; i < n->table.count; i++) {
        const wb_rename_row *row = &n->table.rows[i];
        char names[400];
        if (row->is_used) continue;
        list_names(n, row->from, names, sizeof names);
        if (row->is_pattern) note_pattern(n, row, names);
        if (row->is_pattern) continue;
        if (is_taken(n, row->from)) {
            (void)wb_fail(
                WB_ERROR_ARGUMENT,
                "%s: rename table, line %d: this row is never used, since an earlier row matches "
                "\"%.200s\"",
                n->file->path, row->line, row->from);
            return false;
        }
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
        if (strcmp(old_name(entry - 1), old_name(entry)) == 0)
            return wb_fail(WB_ERROR_ARGUMENT,
                           "%s: the rename table gives \"%.160s\" the name \"%.160s\" twice; one "
                           "row is enough",
                           n->file->path, old_name(entry), entry->path) == WB_OK;
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
