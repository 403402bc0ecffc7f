/* A tree under other names: what wb_load and wb_convert do with a rename table. */
#ifndef WB_MODELS_RENAME_H
#define WB_MODELS_RENAME_H

#include "formats/record.h"

/* The arrays and values below root under the names that the table (see weber/state.h) gives them,
 * as maps and lists in the file's arena; structs and their types are not kept. No bytes are moved:
 * arrays that the table reorders are reordered when they are read. NULL with an error: a fault in
 * the table, a row without stars that matches no name, or two names that would become one. A row
 * with stars that matches no name is only noted in the file (rename_note): a table for several
 * files has rows that one of them does not need. */
wb_record *wb_rename(wb_file *file, const wb_record *root, const char *table);

/* "layers.1.weight", or, if a table renamed it, "0.weight, renamed layers.1.weight and
 * transposed,". For messages; in a buffer of the thread. */
const char *wb_origin_text(const wb_record *record, const char *path);

#endif
