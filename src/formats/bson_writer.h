/* Writing a BSON file: what is known of its records before the first byte is written. */
#ifndef WB_FORMATS_BSON_WRITER_H
#define WB_FORMATS_BSON_WRITER_H

#include "formats/bson.h"

/* What is known of an array, list or map; a record's number is 1 + the index of its mark. */
typedef struct wb_bson_mark {
    wb_record *record;
    int64_t uses;
    int64_t entry;      /* of _backrefs, from 1; 0: none yet */
    int64_t type_nodes; /* of its Julia type */
    int32_t type_depth;
    bool is_open; /* being surveyed */
} wb_bson_mark;

/* Data of an array, to be inserted at a place in the bytes. */
typedef struct wb_bson_insert {
    int64_t at;
    const wb_record *array;
} wb_bson_insert;

typedef struct wb_bson_open {
    int64_t at, offset; /* where its length is: in `bytes`, and in the file */
} wb_bson_open;

typedef struct wb_bson_writer {
    const char *path;
    bool is_tree; /* arrays are elsewhere, structs may have fields */
    const wb_record *root;
    wb_status status;
    wb_bson_mark *marks;
    int64_t nmarks, marks_room;
    int64_t *shared; /* marks, by entry */
    int64_t nshared, shared_room;
    wb_text bytes; /* all but the data of arrays */
    wb_bson_insert *inserts;
    int64_t ninserts, inserts_room, insert_bytes;
    int depth;
    wb_bson_open open[WB_BSON_DEPTH];
} wb_bson_writer;

/* Fails, naming the place of the record that cannot be written; p may be NULL. Always false. */
bool wb_bson_refuse(wb_bson_writer *w, wb_status status, const wb_branch *p, const char *what);

/* Visits all records below the root and marks those that are shared; fails if one cannot be
 * written. metadata may be NULL. */
bool wb_bson_survey(wb_bson_writer *w, const wb_record *root, const wb_record *metadata);

/* The mark of an array, list or map; NULL: it has none. */
const wb_bson_mark *wb_bson_mark_of(const wb_bson_writer *w, const wb_record *r);
/* Whether a record's type is written out where it is part of another. */
bool wb_bson_is_concrete(const wb_bson_writer *w, const wb_record *r);
/* True for an array that is not stored in the tree itself (wb_bson_write_tree). */
bool wb_bson_is_elsewhere(const wb_bson_writer *w, const wb_record *r);
/* Of an array: its number of dimensions; its bytes, or -1 if they are too many for a number. */
int64_t wb_bson_shape(const wb_record *r, wb_dtype *dtype, const int64_t **sizes);
int64_t wb_bson_array_bytes(const wb_record *r);

#endif
