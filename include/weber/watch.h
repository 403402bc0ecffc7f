/* weber/watch.h: watching the results of layers, and their gradients, by path.
 *
 *     static void show(void *user, const char *path, wb_array *x, bool is_gradient) {
 *         double norm = wb_item(wb_norm(x, 2));
 *         printf("%s of %s: norm %g\n", is_gradient ? "gradient" : "value", path, norm);
 *     }
 *
 *     wb_watch_layers(show, NULL);
 *     wb_array *l = loss(wb_apply(model, x));                     // values, inner layers first
 *     wb_gradient_of(l, 1, &weight, &g);                          // gradients, last layer first
 *     wb_watch_layers(NULL, NULL);
 *
 * Errors: weber/error.h. */
#ifndef WEBER_WATCH_H
#define WEBER_WATCH_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x is a result of the layer at path, "layers.1", "" for the outermost one that was applied; or,
 * while a gradient is taken, the cotangent of such a result, provided that the result depends on an
 * array whose gradient is asked for. If a layer has several results, fn is called for each. */
typedef void wb_watch_fn(void *user, const char *path, wb_array *x, bool is_gradient);

/* From now on fn is called for all layers that this thread applies, and for their gradients when
 * these are taken; NULL ends it. fn gets an ordinary array, and reading it computes it. fn may read
 * values, but not gradients: wb_keep these, or an array made from them, and read that after
 * wb_gradient_of has returned. In the body of a scan, and in wb_outputsize, arrays have sizes but
 * no numbers. Results that were made before are still watched when their gradients are taken. A
 * call that fails has no result, so fn is not called for it. */
WB_API void wb_watch_layers(wb_watch_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
