/* Chooses the algorithm of a convolution: one for depthwise convolutions, minimal filtering
 * (Winograd) where it suits the kernel, else gathering into boxes (conv_plan.h). Also decides
 * whether the weights are kept from run to run in the form that the algorithm reads. */
#include "conv_plan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "depthwise.h"
#include "winograd.h"

static bool is_direct;
static void read_choice(void) {
    const char *name = getenv("WEBER_CONV");
    is_direct = name && strcmp(name, "direct") == 0;
}

/* WEBER_CONV=direct, read once: without minimal filtering. */
static bool is_filtered(wb_conv_kind kind, const wb_window *window) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_choice);
    return !is_direct && wb_winograd_takes(kind, window);
}

/* With a kernel of one element and stride 1, planes are treated as lines: neighbours in memory are
 * neighbours in a line. */
static wb_window flat_of(const wb_window *window) {
    wb_window w = *window;
    for (int d = 0; d < 3; d++)
        if (w.call.kernel[d] != 1 || w.call.stride[d] != 1 || w.call.pad[d] != 0 ||
            w.call.in[d] != w.call.out[d])
            return w;
    const int64_t plane = w.call.in[0] * w.call.in[1] * w.call.in[2];
    for (int d = 0; d < 3; d++) w.call.in[d] = w.call.out[d] = d == 0 ? plane : 1;
    return w;
}

/* If each weight is used at this many positions, converting it takes a small part of the time. */
enum { MANY_POSITIONS = 1024 };

static int64_t kept_bytes(wb_conv_kind kind, const wb_window *w) {
    const int64_t in = w->call.in[0] * w->call.in[1] * w->call.in[2],
                  out = w->call.out[0] * w->call.out[1] * w->call.out[2];
    if (!w->keeps || kind == WB_CONV_FILTER || wb_depthwise_takes(w) ||
        wb_conv_least(in, out) * w->call.batch >= MANY_POSITIONS)
        return 0;
    return is_filtered(kind, w) ? wb_winograd_kept(kind, w) : wb_conv_gather_kept(kind, w);
}

int64_t wb_cpu_conv_kept(wb_conv_kind kind, const wb_window *window) {
    const wb_window w = flat_of(window);
    return kept_bytes(kind, &w);
}

int64_t wb_cpu_conv_scratch(wb_conv_kind kind, const wb_window *window) {
    const wb_window w = flat_of(window);
    const int64_t kept = kept_bytes(kind, &w);
    if (wb_depthwise_takes(&w)) return wb_depthwise_scratch(kind, &w);
    if (is_filtered(kind, &w)) return wb_winograd_scratch(kind, &w, kept > 0);
    return kind == WB_CONV_FILTER ? wb_conv_filter_scratch(&w)
                                  : wb_conv_gather_scratch(kind, &w) - kept;
}

void wb_cpu_conv_keep(wb_conv_kind kind, const wb_window *window, const void *weights) {
    const wb_window w = flat_of(window);
    if (is_filtered(kind, &w))
        wb_winograd_keep(kind, &w, weights, w.kept);
    else
        wb_conv_gather_keep(kind, &w, weights, w.kept);
}

void wb_cpu_conv(wb_conv_kind kind, const wb_window *window, const void *a, const void *b,
                 void *out, void *scratch, wb_tile_fn *done, void *context) {
    const wb_window w = flat_of(window);
    if (wb_depthwise_takes(&w))
        wb_depthwise(kind, &w, a, b, out, scratch, done, context);
    else if (is_filtered(kind, &w))
        wb_winograd(kind, &w, a, b, out, scratch, done, context);
    else if (kind == WB_CONV_FILTER)
        wb_conv_filter(&w, a, b, out, scratch);
    else
        wb_conv_gather(kind, &w, a, b, out, scratch, done, context);
}
