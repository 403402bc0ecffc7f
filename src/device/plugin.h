/* One plugin file: whether it may be opened, and its table. */
#ifndef WB_DEVICE_PLUGIN_H
#define WB_DEVICE_PLUGIN_H

#include <weber/plugin.h>

/* Opens the file, which stays open if it is a plugin, and returns its table; does not call load.
 * NULL: the reason says what is wrong. */
const wb_backend *wb_plugin_open(const char *folder, const char *file, char *reason,
                                 size_t reason_bytes);

/* Opens the file with the same checks, whatever it exports; returns the handle of dlopen. */
void *wb_plugin_library(const char *folder, const char *file, char *reason, size_t reason_bytes);

/* How many files were opened so far. */
int64_t wb_plugins_opened(void);

/* Called with each folder in which plugins are searched (why_not is NULL), and with those of
 * WEBER_PLUGIN_PATH that are not searched, and the reason. */
typedef void wb_folder_fn(const char *folder, const char *why_not);
void wb_plugin_search_path(wb_folder_fn *put);

#endif
