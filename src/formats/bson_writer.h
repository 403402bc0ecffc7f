/* A file of BSON in the making: what is known of its records before a byte is written. */
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

/* Numbers that belong at a place in the bytes. */
typedef struct wb_bson_insert {
    int64_t at;
    const wb_record *array;
} wb_bson_insert;

typedef struct wb_bson_open {
    int64_t at, offset; /* of its length: in the bytes, in the file */
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
    wb_text bytes; /* all but what arrays hold */
    wb_bson_insert *inserts;
    int64_t ninserts, inserts_room, insert_bytes;
    int depth;
    wb_bson_open open[WB_BSON_DEPTH];
} wb_bson_writer;

/* Fails, with the place of what cannot be written; p may be NULL. Always false. */
bool wb_bson_refuse(wb_bson_writer *w, wb_status status, const wb_branch *p, const char *what);

/* Marks all records below the root: which are there, which are shared, which cannot be written.
 * metadata may be NULL. */
bool wb_bson_survey(wb_bson_writer *w, const wb_record *root, const wb_record *metadata);

/* The mark of an array, list or map; NULL: it has none. */
const wb_bson_mark *wb_bson_mark_of(const wb_bson_writer *w, const wb_record *r);
/* Whether a record's type is written out where it is part of another. */
bool wb_bson_is_concrete(const wb_bson_writer *w, const wb_record *r);
/* Of a tree: an array that is not in it (wb_bson_write_tree). */
bool wb_bson_is_elsewhere(const wb_bson_writer *w, const wb_record *r);
/* Of an array: its dimensions; its bytes, or -1 where they are more than a number can say. */
int64_t wb_bson_shape(const wb_record *r, wb_dtype *dtype, const int64_t **sizes);
int64_t wb_bson_array_bytes(const wb_record *r);

#endif
