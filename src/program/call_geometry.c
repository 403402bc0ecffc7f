/* Names the sizes of a window for a text. Most are words that each launch gets; those of unused
 * dimensions and of small kernels are constants, so that the compiler can unroll the loops. */
#include "program/call_geometry.h"

enum { SMALL_KERNEL = 32 /* taps */ };

static void add(wb_call_source *s, const char *name, int dimension, int64_t value,
                bool is_constant) {
    if (is_constant)
        wb_call_constant_at(s, name, dimension, value);
    else
        wb_call_word_at(s, name, dimension, value);
}

void wb_call_geometry(wb_call_source *s, const wb_window_call *w, bool is_special) {
    const bool is_small = is_special && wb_call_volume(w->kernel) <= SMALL_KERNEL;
    for (int d = 0; d < 3; d++) {
        const bool unused =
            is_special && w->in[d] == 1 && w->out[d] == 1 && w->kernel[d] == 1 && w->pad[d] == 0;
        add(s, "IN", d, w->in[d], unused);
        add(s, "OUT", d, w->out[d], unused);
        add(s, "PAD", d, w->pad[d], unused);
        add(s, "KERNEL", d, w->kernel[d], unused || is_small);
        add(s, "STRIDE", d, unused ? 1 : w->stride[d], unused || is_small);
        add(s, "DILATION", d, unused ? 1 : w->dilation[d], unused || is_small);
    }
    if (is_special)
        wb_call_constant(s, "FLIP", w->flip);
    else
        wb_call_word(s, "FLIP", w->flip);
}
