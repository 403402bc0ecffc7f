/* Which format a file has. */
#ifndef WB_FORMATS_FORMAT_H
#define WB_FORMATS_FORMAT_H

#include "formats/record.h"

/* By the name's extension, else by the first bytes; NULL with an error that names the known
 * ones. */
const wb_format *wb_format_of_file(const wb_file *file);
/* For a file to be written: by the extension alone; NULL, without an error, for an unknown one. */
const wb_format *wb_format_of_name(const char *path);
/* The same, with an error. */
const wb_format *wb_format_of_path(const char *path);

/* A list of what was taken out of a tree, for a message. */
typedef struct wb_left_out {
    int64_t count;
    char text[600]; /* "epoch (an integer), net.3 (NNlib.#relu)", as much as there is room for */
} wb_left_out;

/* Takes out of the tree all below the root that the format refuses, so that the rest can be
 * written. Structs that have arrays become lists of their fields; an element of a list or a field
 * of a struct that is taken out becomes `nothing`. If the format has no values (has_values), lists
 * with gaps become maps that keep the numbers, and records without arrays below them are dropped
 * without being listed. `key` is the name of the root; "" for a whole file. False when out of
 * memory. */
bool wb_leave_out(const wb_format *format, wb_arena *arena, wb_record *root, const char *key,
                  wb_left_out *left_out);
/* Warns if something was taken out. */
void wb_warn_left_out(const wb_left_out *left_out, const wb_format *format, const char *path);

/* Writes the tree to the file, which is replaced atomically: at any moment path is the old file or
 * the whole new one. */
wb_status wb_write_file(const wb_format *format, const wb_record *root, const wb_record *metadata,
                        const char *path);

/* The same in memory, opened by that name; NULL on failure. */
wb_file *wb_write_memory(const wb_format *format, const wb_record *root, const wb_record *metadata,
                         const char *name);

#endif
