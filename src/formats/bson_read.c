/* Records from Julia's BSON. The tree is walked with a stack of its own; the target of
 * back-references is read once, at the first of them, so that a value that is shared in Julia is
 * one record here. */
#include <string.h>

#include "base/memory.h"
#include "formats/bson_reader.h"

/* A list of two references to a list of two references, and so on, is short in a file, but a walk
 * over it takes for ever. */
enum { MOST_EXPANDED = 1 << 22 };

/* ---- values ---- */

static wb_record *read_scalar(wb_bson_reader *r, const wb_bson_element *e) {
    const wb_bson *b = &r->bson;
    static const uint8_t kinds[] = {[WB_BSON_DOUBLE] = WB_RECORD_REAL,
                                    [WB_BSON_BOOL] = WB_RECORD_BOOL,
                                    [WB_BSON_NULL] = WB_RECORD_NULL,
                                    [WB_BSON_INT32] = WB_RECORD_INTEGER,
                                    [WB_BSON_INT64] = WB_RECORD_INTEGER};
    wb_record *record = wb_bson_make(r, (wb_record_kind)kinds[e->type], e->offset);
    if (!record) return NULL;
    if (e->type == WB_BSON_DOUBLE)
        (void)wb_julia_set_number(record, wb_julia_number_of("Float64"), wb_bson_bytes(b, e));
    if (e->type == WB_BSON_BOOL) record->boolean = *wb_bson_bytes(b, e) == 1;
    if (wb_bson_is_integer(e)) record->integer = wb_bson_integer(b, e);
    return record;
}

static wb_record *read_new(wb_bson_reader *r, const wb_bson_value *v) {
    const wb_bson_element *e = &v->element;
    switch (e->type) {
    case WB_BSON_DOCUMENT:
        return wb_bson_read_tagged(r, v);
    case WB_BSON_ARRAY:
        return wb_bson_begin(r, WB_RECORD_LIST, e, false);
    case WB_BSON_STRING:
        return wb_bson_read_text(r, e);
    case WB_BSON_BINARY:
        return wb_bson_read_bytes(r, e);
    default:
        return read_scalar(r, e);
    }
}

/* The record of a back-reference that was read before. A reference to something that contains the
 * reference, which no model has, becomes an opaque record. */
static wb_record *read_again(wb_bson_reader *r, const wb_bson_entry *entry, int64_t offset) {
    if (!entry->expanded) return wb_bson_make_opaque(r, "cycle", offset);
    if (r->depth + entry->record->depth <= WB_RECORD_DEPTH) return entry->record;
    wb_bson_fault(&r->bson, offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
    return NULL;
}

/* The record of an element. If it has children that are still to be read, there is one frame more;
 * else *expanded is how many records it is. */
static wb_record *read_value(wb_bson_reader *r, const wb_bson_element *e, int64_t *expanded) {
    wb_bson_value v;
    *expanded = 1;
    if (!wb_bson_resolve(&r->bson, e, &v)) return NULL;
    if (v.entry && v.entry->record) {
        if (v.entry->expanded) *expanded = v.entry->expanded;
        return read_again(r, v.entry, e->offset);
    }
    const int depth = r->depth;
    wb_record *record = read_new(r, &v);
    if (!record) return NULL;
    record->offset = r->bson.map_offset + v.element.offset;
    if (r->depth == depth) *expanded += record->count;
    if (!v.entry) return record;
    v.entry->record = record;
    if (r->depth > depth)
        r->frames[depth].entry = v.entry;
    else
        v.entry->expanded = *expanded;
    return record;
}

static void add(wb_bson_reader *r, wb_bson_frame *f, const wb_record *child, int64_t expanded) {
    f->expanded += expanded;
    if (child->depth >= f->record->depth) f->record->depth = child->depth + 1;
    if (f->expanded > MOST_EXPANDED + r->bson.map.size_bytes)
        wb_bson_fault(&r->bson, f->record->offset - r->bson.map_offset,
                      "back-references repeat what is here more than %d times", MOST_EXPANDED);
}

static void end(wb_bson_reader *r) {
    wb_bson_frame *f = &r->frames[--r->depth];
    if (f->entry) f->entry->expanded = f->expanded + 1;
    if (r->depth > 0) add(r, f - 1, f->record, f->expanded + 1);
}

static void read_child(wb_bson_reader *r, wb_bson_frame *f) {
    wb_bson_element e;
    if (!wb_bson_next(&r->bson, &f->children, &e)) return;
    if (f->named_by_keys && r->depth == 1 && wb_bson_key_is(&e, "_backrefs")) {
        f->record->count--; /* no part of what was saved */
        return;
    }
    if (f->named_by_keys) f->record->names[f->next] = wb_bson_copy(r, e.key, e.key_bytes, e.offset);
    const char *name = f->record->names ? f->record->names[f->next] : NULL;
    const int depth = r->depth;
    int64_t expanded;
    wb_record *child = read_value(r, &e, &expanded);
    if (!child) return;
    if (!child->name) child->name = name;
    f->record->children[f->next++] = child;
    if (r->depth == depth) add(r, f, child, expanded);
}

static void read_children(wb_bson_reader *r) {
    while (r->depth > 0 && r->bson.status == WB_OK) {
        wb_bson_frame *f = &r->frames[r->depth - 1];
        if (f->next == f->record->count)
            end(r);
        else
            read_child(r, f);
    }
}

/* ---- the file ---- */

/* What bson_write.c makes of metadata. */
static wb_record *find_metadata(wb_record *root) {
    for (int64_t i = 0; root->kind == WB_RECORD_MAP && i < root->count; i++) {
        wb_record *map = root->children[i];
        bool is_it = strcmp(root->names[i], "metadata") == 0 && map->kind == WB_RECORD_MAP;
        for (int64_t k = 0; is_it && k < map->count; k++)
            is_it = map->children[k]->kind == WB_RECORD_TEXT;
        if (is_it) return map;
    }
    return NULL;
}

static wb_record *read_tree(wb_bson_reader *r) {
    wb_bson *b = &r->bson;
    wb_bson_element top;
    int64_t expanded;
    if (wb_bson_check(b, &top) != WB_OK || !wb_bson_index(b, &top)) return NULL;
    wb_record *root = read_value(r, &top, &expanded);
    read_children(r);
    return b->status == WB_OK ? root : NULL;
}

wb_record *wb_bson_read_tree(wb_file *file, const wb_mapping *map, int64_t offset) {
    wb_bson_reader *r = wb_alloc(sizeof *r);
    if (!r) return NULL;
    r->bson = (wb_bson){.file = file, .map = *map, .map_offset = offset};
    wb_record *root = read_tree(r);
    wb_release(r);
    return root;
}

wb_status wb_bson_read(wb_file *file) {
    wb_record *root = wb_bson_read_tree(file, &file->map, 0);
    if (!root) return wb_error_status();
    file->root = root;
    file->metadata = find_metadata(root);
    return WB_OK;
}
