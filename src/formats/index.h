/* Folders of Hugging Face's, and models in several files. */
#ifndef WB_FORMATS_INDEX_H
#define WB_FORMATS_INDEX_H

#include "formats/record.h"

bool wb_is_folder(const char *path);
/* Whether the folder has such a file. */
bool wb_has_file(const char *folder, const char *name);
/* The path of the folder's weights, or of the index of their files; release it with wb_release.
 * NULL with an error. */
char *wb_folder_weights(const char *folder);

#endif
