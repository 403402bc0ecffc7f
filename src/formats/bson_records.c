/* Parts of records from BSON: each asks the arena for no more than the file may take. */
#include <string.h>

#include "formats/bson_reader.h"

wb_record *wb_bson_make(wb_bson_reader *r, wb_record_kind kind, int64_t offset) {
    wb_bson *b = &r->bson;
    if (!wb_bson_may_take(b, sizeof(wb_record), offset)) return NULL;
    wb_record *record = wb_record_new(&b->file->arena, kind);
    if (record)
        record->offset = b->map_offset + offset;
    else
        b->status = WB_ERROR_MEMORY;
    return record;
}

bool wb_bson_make_room(wb_bson_reader *r, wb_record *record, int64_t count, bool has_names) {
    wb_bson *b = &r->bson;
    const int64_t pointer = sizeof(void *);
    if (!wb_bson_may_take(b, (count * pointer + 16) * (1 + has_names),
                          record->offset - b->map_offset))
        return false;
    if (wb_record_room(&b->file->arena, record, count, has_names)) return true;
    b->status = WB_ERROR_MEMORY;
    return false;
}

const char *wb_bson_copy(wb_bson_reader *r, const char *text, int64_t size_bytes, int64_t offset) {
    wb_bson *b = &r->bson;
    if (!wb_bson_may_take(b, size_bytes + 1, offset)) return NULL;
    const char *copied = wb_arena_text(&b->file->arena, text, (size_t)size_bytes);
    if (!copied) b->status = WB_ERROR_MEMORY;
    return copied;
}

const char *wb_bson_copy_text(wb_bson_reader *r, const wb_bson_element *e) {
    return wb_bson_copy(r, (const char *)wb_bson_bytes(&r->bson, e), e->size_bytes, e->offset);
}

wb_record *wb_bson_make_opaque(wb_bson_reader *r, const char *type, int64_t offset) {
    wb_record *record = wb_bson_make(r, WB_RECORD_OPAQUE, offset);
    if (record) record->type = wb_bson_copy(r, type, (int64_t)strlen(type), offset);
    return record;
}

void wb_bson_set_data(wb_bson_reader *r, wb_record *record, const wb_bson_element *data) {
    record->data = wb_bson_bytes(&r->bson, data);
    record->data_bytes = data->size_bytes;
}

wb_record *wb_bson_make_opaque_data(wb_bson_reader *r, const char *type,
                                    const wb_bson_element *data) {
    wb_record *record = wb_bson_make_opaque(r, type, data->offset);
    if (record) wb_bson_set_data(r, record, data);
    return record;
}

wb_record *wb_bson_begin(wb_bson_reader *r, wb_record_kind kind, const wb_bson_element *children,
                         bool has_names) {
    wb_bson *b = &r->bson;
    wb_record *record = wb_bson_make(r, kind, children->offset);
    if (!record || !wb_bson_make_room(r, record, wb_bson_count(b, children), has_names))
        return NULL;
    if (b->status != WB_OK) return NULL;
    if (r->depth == WB_RECORD_DEPTH) {
        wb_bson_fault(b, children->offset, "values may be nested at most %d deep", WB_RECORD_DEPTH);
        return NULL;
    }
    r->frames[r->depth++] = (wb_bson_frame){.record = record, .children = wb_bson_enter(children)};
    return record;
}

wb_record *wb_bson_begin_typed(wb_bson_reader *r, wb_record_kind kind,
                               const wb_bson_element *children, const char *type) {
    wb_record *record = wb_bson_begin(r, kind, children, false);
    if (record) record->type = wb_bson_copy(r, type, (int64_t)strlen(type), children->offset);
    return record;
}

wb_record *wb_bson_begin_document(wb_bson_reader *r, const wb_bson_element *document) {
    wb_record *record = wb_bson_begin(r, WB_RECORD_MAP, document, true);
    if (record) r->frames[r->depth - 1].named_by_keys = true;
    return record;
}
