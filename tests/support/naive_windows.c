/* The reference's matrix products, convolutions and pools. */
#include <math.h>

#include "ops/ops.h"
#include "support/naive_rules.h"

void naive_matmul(naive *o, naive *const *in) {
    const naive *a = in[0], *b = in[1];
    const bool ta = o->node->attributes.product.flags & WB_MATMUL_TRANSPOSE_A,
               tb = o->node->attributes.product.flags & WB_MATMUL_TRANSPOSE_B;
    const int64_t inner = a->sizes[ta ? 0 : 1];
    for (int64_t i = 0; i < o->count; i++) {
        int64_t at[WB_MAX_DIMS], pa[WB_MAX_DIMS], pb[WB_MAX_DIMS];
        naive_unravel(i, o->ndim, o->sizes, at);
        for (int d = 0; d < WB_MAX_DIMS; d++) {
            pa[d] = d < a->ndim && a->sizes[d] == 1 ? 0 : at[d];
            pb[d] = d < b->ndim && b->sizes[d] == 1 ? 0 : at[d];
        }
        for (int64_t k = 0; k < inner; k++) {
            pa[0] = ta ? k : at[0], pa[1] = ta ? at[0] : k;
            pb[0] = tb ? at[1] : k, pb[1] = tb ? k : at[1];
            o->values[i] += a->values[naive_ravel(a->ndim, a->sizes, pa)] *
                            b->values[naive_ravel(b->ndim, b->sizes, pb)];
        }
    }
}

/* Windows: calls visit(context, place in x, place in y, tap) for each place of y and each tap that
 * meets x; spatial places. */
typedef struct window_walk {
    wb_window_call w;
    int nspatial;
    int64_t x_sizes[3], y_sizes[3], taps, x_count, y_count;
} window_walk;

static window_walk walk_of(const wb_array *node, const naive *x, const naive *y) {
    window_walk k = {
        .w = *wb_window_of(node), .nspatial = x->ndim - 2, .taps = 1, .x_count = 1, .y_count = 1};
    for (int i = 0; i < 3; i++) {
        const bool used = i < k.nspatial;
        k.x_sizes[i] = used ? x->sizes[i] : 1;
        k.y_sizes[i] = !used ? 1 : y ? y->sizes[i] : k.w.out[i];
        k.taps *= k.w.kernel[i], k.x_count *= k.x_sizes[i], k.y_count *= k.y_sizes[i];
    }
    return k;
}

/* The spatial place of x under tap t of place p of y; -1: in the padding. */
static int64_t place_under(const window_walk *k, int64_t p, int64_t t) {
    int64_t at[WB_MAX_DIMS], tap[WB_MAX_DIMS], x[3];
    naive_unravel(p, 3, k->y_sizes, at);
    naive_unravel(t, 3, k->w.kernel, tap);
    for (int i = 0; i < 3; i++) {
        x[i] = at[i] * k->w.stride[i] + tap[i] * k->w.dilation[i] - k->w.pad[i];
        if (x[i] < 0 || x[i] >= k->x_sizes[i]) return -1;
    }
    return naive_ravel(3, k->x_sizes, x);
}

enum { TO_Y, TO_X, TO_W };

static void convolve(int to, const wb_array *node, naive *x, naive *w, naive *y) {
    const window_walk k = walk_of(node, x, y);
    const int s = k.nspatial;
    const int64_t channels = x->sizes[s], per_group = channels / k.w.groups, filters = y->sizes[s],
                  batch = x->sizes[s + 1];
    for (int64_t n = 0; n < batch; n++)
        for (int64_t f = 0; f < filters; f++)
            for (int64_t c = 0; c < per_group; c++)
                for (int64_t p = 0; p < k.y_count; p++)
                    for (int64_t t = 0; t < k.taps; t++) {
                        const int64_t place = place_under(&k, p, t);
                        if (place < 0) continue;
                        const int64_t channel = f / (filters / k.w.groups) * per_group + c;
                        const int64_t tap = k.w.flip ? k.taps - 1 - t : t;
                        long double *xv = &x->values[place + k.x_count * (channel + channels * n)];
                        long double *wv = &w->values[tap + k.taps * (c + per_group * f)];
                        long double *yv = &y->values[p + k.y_count * (f + filters * n)];
                        if (to == TO_Y)
                            *yv += *xv * *wv;
                        else if (to == TO_X)
                            *xv += *yv * *wv;
                        else
                            *wv += *xv * *yv;
                    }
}

void naive_conv(naive *o, naive *const *in) {
    if (o->node->op == WB_OP_conv_forward)
        convolve(TO_Y, o->node, in[0], in[1], o);
    else if (o->node->op == WB_OP_conv_data)
        convolve(TO_X, o->node, o, in[1], in[0]);
    else
        convolve(TO_W, o->node, in[0], o, in[1]);
}

static int64_t planes_of(const naive *x, int nspatial) {
    return x->sizes[nspatial] * x->sizes[nspatial + 1];
}

void naive_maxpool(naive *o, naive *const *in) {
    const naive *x = in[0];
    const window_walk k = walk_of(o->node, x, o);
    o->results[1] = naive_numbers(o->count);
    for (int64_t c = 0; c < planes_of(x, k.nspatial); c++)
        for (int64_t p = 0; p < k.y_count; p++) {
            int64_t best = -1;
            for (int64_t place = 0; place < k.x_count; place++) { /* memory order */
                bool inside = false;
                for (int64_t t = 0; t < k.taps && !inside; t++)
                    inside = place_under(&k, p, t) == place;
                if (!inside) continue;
                const long double v = x->values[place + k.x_count * c],
                                  b = best < 0 ? 0 : x->values[best + k.x_count * c];
                if (best < 0 || (!isnan(b) && (v > b || isnan(v)))) best = place;
            }
            o->values[p + k.y_count * c] = best < 0 ? -INFINITY : x->values[best + k.x_count * c];
            o->results[1][p + k.y_count * c] = (long double)best;
        }
}

void naive_pool_scatter(naive *x, naive *const *in) {
    const naive *y = in[0], *index = in[1];
    const int s = x->ndim - 2;
    const int64_t y_plane = y->count / (planes_of(y, s) ? planes_of(y, s) : 1);
    const int64_t x_plane = x->count / (planes_of(x, s) ? planes_of(x, s) : 1);
    for (int64_t i = 0; i < y->count; i++)
        x->values[i / y_plane * x_plane + (int64_t)index->values[i]] += y->values[i];
}

void naive_pool_gather(naive *y, naive *const *in) {
    const naive *x = in[0], *index = in[1];
    const int s = x->ndim - 2;
    const int64_t y_plane = y->count / (planes_of(y, s) ? planes_of(y, s) : 1);
    const int64_t x_plane = x->count / (planes_of(x, s) ? planes_of(x, s) : 1);
    for (int64_t i = 0; i < y->count; i++)
        y->values[i] = x->values[i / y_plane * x_plane + (int64_t)index->values[i]];
}

void naive_meanpool(naive *o, naive *const *in) {
    const bool backwards = o->node->op == WB_OP_meanpool_data;
    naive *x = backwards ? o : in[0], *y = backwards ? in[0] : o;
    const window_walk k = walk_of(o->node, x, y);
    for (int64_t c = 0; c < planes_of(x, k.nspatial); c++)
        for (int64_t p = 0; p < k.y_count; p++)
            for (int64_t t = 0; t < k.taps; t++) {
                const int64_t place = place_under(&k, p, t);
                if (place < 0) continue;
                long double *xv = &x->values[place + k.x_count * c],
                            *yv = &y->values[p + k.y_count * c];
                if (backwards)
                    *xv += *yv / (long double)k.taps;
                else
                    *yv += *xv / (long double)k.taps;
            }
}

/* columns (places of y, taps of each channel, batch) */
void naive_unfold(naive *o, naive *const *in) {
    const bool backwards = o->node->op == WB_OP_fold;
    naive *x = backwards ? o : in[0], *columns = backwards ? in[0] : o;
    const window_walk k = walk_of(o->node, x, NULL);
    for (int64_t c = 0; c < planes_of(x, k.nspatial); c++)
        for (int64_t t = 0; t < k.taps; t++)
            for (int64_t p = 0; p < k.y_count; p++) {
                const int64_t place = place_under(&k, p, t);
                const int64_t tap = k.w.flip ? k.taps - 1 - t : t;
                long double *to = &columns->values[p + k.y_count * (tap + k.taps * c)];
                if (place < 0) continue;
                if (backwards)
                    x->values[place + k.x_count * c] += *to;
                else
                    *to = x->values[place + k.x_count * c];
            }
}
