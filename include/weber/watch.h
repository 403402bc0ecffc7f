/* weber/watch.h: seeing what layers give, and the gradients of that, by path.
 *
 *     static void show(void *user, const char *path, wb_array *x, bool is_gradient) {
 *         printf("%s %s %g\n", is_gradient ? "gradient of" : "value of", path, wb_item(wb_norm(x,
 * 2)));
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
 * while a gradient is taken, the cotangent of such a result, which is there if the result depends
 * on a wanted array. Of several results each comes by itself. */
typedef void wb_watch_fn(void *user, const char *path, wb_array *x, bool is_gradient);

/* From now on fn is called for all layers that this thread applies, and for their gradients when
 * these are taken; NULL ends it. What fn gets is an array like any other: to read it computes it,
 * which is allowed for values, and for gradients after wb_gradient_of has returned (wb_keep them,
 * or an array made of them). In the body of a scan, and in wb_outputsize, arrays have sizes alone.
 * Results that were made before are still watched when their gradients are taken. A call that fails
 * has no result, so fn is not called for it. */
WB_API void wb_watch_layers(wb_watch_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
