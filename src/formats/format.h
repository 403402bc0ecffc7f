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

/* Writes the tree so that at any moment the name is the old file or the new one, whole. */
wb_status wb_write_file(const wb_format *format, const wb_record *root, const wb_record *metadata,
                        const char *path);

#endif
