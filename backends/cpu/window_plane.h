/* The interface between window.c and the code for each instruction set (kernels/window.c): one
 * plane of a pool, an unfold or a fold. */
#ifndef WB_CPU_WINDOW_PLANE_H
#define WB_CPU_WINDOW_PLANE_H

#include "isa.h"
#include "window.h"

typedef struct wb_window_plane {
    const wb_window *window;
    const void *in;
    void *out;
    int32_t *index_out;      /* of max pooling */
    const int32_t *index_in; /* of scatter and gather */
} wb_window_plane;

typedef void wb_window_plane_fn(const wb_window_plane *plane);

/* X(name, suffix) */
#define WB_WINDOW_LIST(X, suffix)                                                                  \
    X(maxpool, suffix)                                                                             \
    X(pool_scatter, suffix)                                                                        \
    X(pool_gather, suffix)                                                                         \
    X(meanpool, suffix)                                                                            \
    X(meanpool_data, suffix)                                                                       \
    X(unfold, suffix)                                                                              \
    X(fold, suffix)

#define WB_DECLARE_PLANE(name, suffix)                                                             \
    wb_window_plane_fn wb_##name##_f32_##suffix, wb_##name##_f64_##suffix;
#define WB_DECLARE(enumerator, suffix) WB_WINDOW_LIST(WB_DECLARE_PLANE, suffix)
WB_ISA_LIST(WB_DECLARE)
#undef WB_DECLARE
#undef WB_DECLARE_PLANE

static inline int64_t wb_window_plane_in(const wb_window *w) {
    return w->call.in[0] * w->call.in[1] * w->call.in[2];
}
static inline int64_t wb_window_plane_out(const wb_window *w) {
    return w->call.out[0] * w->call.out[1] * w->call.out[2];
}
static inline int64_t wb_window_taps(const wb_window *w) {
    return w->call.kernel[0] * w->call.kernel[1] * w->call.kernel[2];
}

#endif
