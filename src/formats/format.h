/* Which format a file has. */
#ifndef WB_FORMATS_FORMAT_H
#define WB_FORMATS_FORMAT_H

#include "formats/record.h"

/* By the name's extension, else by the first bytes; NULL with an error that names the known
 * ones. */
const wb_format *wb_format_of_file(const wb_file *file);
/* By the extension alone; NULL, without an error, where that says nothing. */
const wb_format *wb_format_of_name(const char *path);
/* For a file to be written: by the extension alone. */
const wb_format *wb_format_of_path(const char *path);

/* What was taken out of a tree, for a message. */
typedef struct wb_left_out {
    int64_t count;
    char text[600]; /* "epoch (an integer), net.3 (NNlib.#relu)", as much as there is room for */
} wb_left_out;

/* Takes out of the tree what the format cannot hold, so that the rest can be written: below the
 * root nothing stays that it refuses. Structs that have arrays become lists of their fields;
 * elements of lists and fields of structs become nothing; where the format has no values, lists
 * with gaps become maps that keep the numbers, and what has no arrays below it goes without being
 * listed. `key` is what the root is called; "" for a file's. False: no memory. */
bool wb_leave_out(const wb_format *format, wb_arena *arena, wb_record *root, const char *key,
                  wb_left_out *left_out);
/* A warning if something was. */
void wb_warn_left_out(const wb_left_out *left_out, const wb_format *format, const char *path);

/* Writes the tree so that at any moment the name is the old file or the new one, whole. */
wb_status wb_write_file(const wb_format *format, const wb_record *root, const wb_record *metadata,
                        const char *path);

/* The same in memory, opened by that name; NULL on failure. */
wb_file *wb_write_memory(const wb_format *format, const wb_record *root, const wb_record *metadata,
                         const char *name);

#endif
