/* Showing the results of layers to a watcher. */
#ifndef WB_LAYERS_WATCH_H
#define WB_LAYERS_WATCH_H

#include <weber/watch.h>

/* For the library's own use: wb_watch_end puts the earlier watcher back. shown (or NULL) gets each
 * result in the form that later layers will read. */
typedef void wb_shown_fn(void *user, const char *path, wb_array *result);
typedef struct wb_watcher {
    wb_watch_fn *fn;
    wb_shown_fn *shown;
    void *user;
} wb_watcher;
wb_watcher wb_watch_begin(wb_watch_fn *fn, wb_shown_fn *shown, void *user);
void wb_watch_end(wb_watcher before);

bool wb_is_watched(void);

/* Shows the results of the layer at path to the watcher, and replaces them by nodes that will show
 * their cotangents, too. False with the error recorded. */
bool wb_show_results(const char *path, int count, wb_array **results);

#endif
