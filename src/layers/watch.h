/* Telling a watcher of what layers give. */
#ifndef WB_LAYERS_WATCH_H
#define WB_LAYERS_WATCH_H

#include <weber/watch.h>

bool wb_is_watched(void);

/* Shows the results of the layer at path to the watcher; they are replaced by what shows their
 * cotangents, too. False with the error recorded. */
bool wb_show_results(const char *path, int count, wb_array **results);

#endif
