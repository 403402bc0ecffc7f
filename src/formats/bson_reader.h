/* Reading records: a stack of those whose children are being read. Makers return NULL once the
 * reader's status is an error. */
#ifndef WB_FORMATS_BSON_READER_H
#define WB_FORMATS_BSON_READER_H

#include "formats/bson.h"

/* A record whose children are being read. */
typedef struct wb_bson_frame {
    wb_record *record;
    wb_bson_cursor children;
    wb_bson_entry *entry; /* the entry of _backrefs that it is, or NULL */
    int64_t next, expanded;
    bool named_by_keys; /* a document: its keys are the names */
} wb_bson_frame;

typedef struct wb_bson_reader {
    wb_bson bson;
    int depth;
    wb_bson_frame frames[WB_RECORD_DEPTH];
} wb_bson_reader;

/* ---- bson_records.c: parts of records, within the file's limit of memory ---- */

wb_record *wb_bson_make(wb_bson_reader *r, wb_record_kind kind, int64_t offset);
wb_record *wb_bson_make_opaque(wb_bson_reader *r, const char *type, int64_t offset);
/* A record of bytes that are not understood. */
wb_record *wb_bson_make_opaque_data(wb_bson_reader *r, const char *type,
                                    const wb_bson_element *data);
void wb_bson_set_data(wb_bson_reader *r, wb_record *record, const wb_bson_element *data);
bool wb_bson_make_room(wb_bson_reader *r, wb_record *record, int64_t count, bool has_names);
const char *wb_bson_copy(wb_bson_reader *r, const char *text, int64_t size_bytes, int64_t offset);
const char *wb_bson_copy_text(wb_bson_reader *r, const wb_bson_element *e);
/* A record whose children are the elements of a document or array, to be read next. */
wb_record *wb_bson_begin(wb_bson_reader *r, wb_record_kind kind, const wb_bson_element *children,
                         bool has_names);
wb_record *wb_bson_begin_typed(wb_bson_reader *r, wb_record_kind kind,
                               const wb_bson_element *children, const char *type);
/* Its keys are the names. */
wb_record *wb_bson_begin_document(wb_bson_reader *r, const wb_bson_element *document);

/* ---- bson_tags.c: what Julia means by a document ---- */

wb_record *wb_bson_read_tagged(wb_bson_reader *r, const wb_bson_value *v);
wb_record *wb_bson_read_text(wb_bson_reader *r, const wb_bson_element *e);
wb_record *wb_bson_read_bytes(wb_bson_reader *r, const wb_bson_element *e);

#endif
