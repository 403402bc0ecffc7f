/* Trees as lists of dotted paths, and back: for the formats that hold named arrays (safetensors,
 * npz).
 *
 *     {layers: [{weight: W, bias: b}]}     <->     layers.1.weight -> W, layers.1.bias -> b */
#ifndef WB_FORMATS_FLAT_H
#define WB_FORMATS_FLAT_H

#include "formats/record.h"

typedef struct wb_flat_entry {
    const char *path;    /* "layers.1.weight"; the root: "" */
    wb_record *record;   /* when reading: NULL for an entry with same_as */
    const char *same_as; /* the path at which the same record is already; NULL: this is the first */
    int64_t offset;      /* when reading: for messages */
    size_t parent_bytes; /* when writing: length of the path before its own name */
} wb_flat_entry;

typedef struct wb_flat {
    wb_flat_entry *entries;
    int64_t count, capacity;
    wb_arena arena; /* when writing: holds the paths */
} wb_flat;

bool wb_flat_add(wb_flat *flat, wb_flat_entry entry);
void wb_flat_release(wb_flat *flat);

/* The tree as a list, containers before their contents, the root first. A record that is reached
 * again is an entry with same_as; what is below it is listed once. Fails with WB_ERROR_ARGUMENT if
 * the root has no names, for cycles, and if two values would have one path; file is for
 * messages. */
wb_status wb_flat_make(wb_flat *flat, const wb_record *root, const char *file);

/* The list as a tree in the file's arena, children in the order of wb_path_compare; the list is
 * sorted. If a path is a value and also the beginning of others ("a" and "a.b"), the others keep
 * their dots: the map has the names "a" and "a.b". Maps below the root whose names are 1, 2, ...
 * are lists, as the layers of a chain are. */
wb_record *wb_flat_nest(wb_flat *flat, wb_file *file);
/* Does the last step of wb_flat_nest alone, lists from maps: for those below a record, and the
 * record itself unless it is the root. */
void wb_flat_make_lists(wb_record *record, bool is_root);

/* Order of paths: by bytes, but numbers by value (layers.2 before layers.10), and what is below a
 * name directly after the name. 0: the same bytes. */
int wb_path_compare(const char *a, const char *b);

/* True for records without bytes of their own: lists, maps, structs, and opaque ones without
 * data. */
bool wb_record_is_container(const wb_record *record);

/* ---- arrays to be written ---- */

/* What a record is written as: its array, or its data. */
typedef struct wb_flat_array {
    wb_dtype dtype;
    int ndim;
    const int64_t *sizes; /* first dimension fastest */
    int64_t data_bytes;
} wb_flat_array;
wb_flat_array wb_flat_array_of(const wb_record *record);

/* The bytes, on the host and dense, of an array that is not empty; NULL with the error recorded.
 * Each call that gave some needs one wb_flat_data_end. */
const void *wb_flat_data_begin(const wb_record *record);
void wb_flat_data_end(const wb_record *record, const void *data);

wb_status wb_flat_write_data(const wb_record *record, wb_text *out);

/* For formats that hold arrays alone: what a record without data is, if such a file cannot have it;
 * NULL for what only has others in it. */
const char *wb_flat_refuses(const wb_record *record);
/* True for records that are written as arrays: arrays, and opaque records with data. */
bool wb_record_has_data(const wb_record *record);

#endif
