/* One watcher per context is called with the result of each layer. A floating result is wrapped in
 * a custom node, so that the watcher is called with its gradient as well. */
#include "layers/watch.h"

#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "ops/custom.h"

static wb_watcher watcher(void) {
    const wb_watcher *own = wb_room_get(WB_ROOM_WATCHER);
    return own ? *own : (wb_watcher){.fn = NULL};
}

static void set_watcher(wb_watcher w) {
    wb_watcher *own =
        wb_room_state_of(wb_thread_get(), WB_ROOM_WATCHER, sizeof(wb_watcher), wb_release);
    if (own) *own = w;
}

void wb_watch_layers(wb_watch_fn *fn, void *user) { set_watcher((wb_watcher){fn, NULL, user}); }

wb_watcher wb_watch_begin(wb_watch_fn *fn, wb_shown_fn *shown, void *user) {
    const wb_watcher before = watcher();
    set_watcher((wb_watcher){fn, shown, user});
    return before;
}

void wb_watch_end(wb_watcher before) { set_watcher(before); }

bool wb_is_watched(void) { return watcher().fn != NULL; }

static void call(wb_watch_fn *fn, void *user, const char *path, wb_array *x, bool is_gradient) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    fn(user, path, x, is_gradient);
    (void)wb_user_call_end(&call, "wb_watch_layers");
}

/* What a result is shown by, when its gradient is taken. */
typedef struct place {
    wb_watch_fn *fn;
    void *user;
    char *path;
} place;

static void release(void *context) {
    place *p = context;
    wb_release(p->path);
    wb_release(p);
}

static void pull(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const place *p = context;
    (void)o, (void)want;
    call(p->fn, p->user, p->path, g, true);
    out[1] = g;
}

static wb_array *shown(const wb_watcher *w, const char *path, wb_array *x) {
    place *p = wb_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (place){w->fn, w->user, wb_copy_text(path)};
    if (p->path) return wb_custom_node(x, 1, &x, pull, p, release);
    wb_release(p);
    return NULL;
}

bool wb_show_results(const char *path, int count, wb_array **results) {
    const wb_watcher w = watcher(); /* which fn may change or end */
    for (int i = 0; i < count; i++) {
        call(w.fn, w.user, path, results[i], false);
        if (wb_failed()) return false;
        const bool is_wanted = wb_dtype_is_float(wb_dtype_of(results[i]));
        if (is_wanted && !(results[i] = shown(&w, path, results[i]))) return false;
        if (w.shown) w.shown(w.user, path, results[i]);
    }
    return true;
}
