/* One plugin file: whether it may be opened, and its table. */
#ifndef WB_DEVICE_PLUGIN_H
#define WB_DEVICE_PLUGIN_H

#include <weber/plugin.h>

/* Opens the file in its folder, for ever, and gives its table, without a call of load. NULL: the
 * reason says what is wrong with it. */
const wb_backend *wb_plugin_open(const char *folder, const char *file, char *reason,
                                 size_t reason_bytes);

/* The same file as a library, whatever it exports. */
void *wb_plugin_library(const char *folder, const char *file, char *reason, size_t reason_bytes);

/* How many files were opened so far. */
int64_t wb_plugins_opened(void);

/* Calls put with each folder in which plugins are searched, and why_not with those of
 * WEBER_PLUGIN_PATH that are not searched. */
typedef void wb_folder_fn(const char *folder, const char *why_not);
void wb_plugin_search_path(wb_folder_fn *put);

#endif
