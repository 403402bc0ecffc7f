/* Telling a watcher of what layers give. */
#ifndef WB_LAYERS_WATCH_H
#define WB_LAYERS_WATCH_H

#include <weber/watch.h>

/* For the library's own use: what watched before comes back with wb_watch_end. shown gets each
 * result as what reads it will have it; NULL: it is not asked for. */
typedef void wb_shown_fn(void *user, const char *path, wb_array *result);
typedef struct wb_watcher {
    wb_watch_fn *fn;
    wb_shown_fn *shown;
    void *user;
} wb_watcher;
wb_watcher wb_watch_begin(wb_watch_fn *fn, wb_shown_fn *shown, void *user);
void wb_watch_end(wb_watcher before);

bool wb_is_watched(void);

/* Shows the results of the layer at path to the watcher; they are replaced by what shows their
 * cotangents, too. False with the error recorded. */
bool wb_show_results(const char *path, int count, wb_array **results);

#endif
