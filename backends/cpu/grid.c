/* grid_sample and grid_put (weber/calls.h). Weights are made for a block of places at once, and
 * serve all channels; what is computed of a coordinate is rounded as in the call's type. */
#include <math.h>
#include <string.h>

#include "calls.h"
#include "pool.h"

enum { BLOCK = 64 /* places */, CORNERS = 8, GROUP = 8 /* channels that one piece puts */ };

/* ---- weights ---- */

/* Along one dimension: x counts at `at` and at + 1. */
typedef struct axis {
    int64_t at;
    double weights[2];
    bool is_nan;
} axis;

typedef struct place {
    int64_t at[CORNERS];
    double weights[CORNERS];
    int count;
    bool is_nan;
} place;

typedef struct job {
    const wb_grid_call *call;
    bool is_f32;
    const char *from, *grid; /* x or y; places */
    char *to;
    int64_t in, out, blocks, groups; /* elements of a plane; pieces of an image */
} job;

static double rounded(const job *j, double value) {
    return j->is_f32 ? (double)(float)value : value;
}

/* p, and dp/dg, of a place that is reflected at low and low + span. */
static double reflected(const job *j, double p, double low, double span, double *slope) {
    double t = fabs(rounded(j, p - low));
    if (p < low) *slope = -*slope;
    const double times = floor(t / span), rest = rounded(j, t - times * span);
    if (fmod(times, 2) == 0) return rounded(j, rest + low);
    *slope = -*slope;
    return rounded(j, rounded(j, span - rest) + low);
}

static double place_of(const job *j, double g, int64_t size, double *slope) {
    const wb_grid_call *c = j->call;
    const double last = (double)(size - 1), span = c->align_corners ? last : (double)size,
                 low = c->align_corners ? 0 : -0.5;
    *slope = span / 2;
    if (span == 0) return isnan(g) ? g : 0;
    double p = rounded(j, rounded(j, rounded(j, g + 1) * *slope) + low);
    if (c->padding == WB_GRID_ZEROS || isnan(p)) return p;
    if (c->padding == WB_GRID_REFLECTION) p = reflected(j, p, low, span, slope);
    if (p > 0 && p < last) return p;
    *slope = 0;
    return isnan(p) ? p : p <= 0 ? 0 : last;
}

static axis axis_of(const job *j, double g, int64_t size, bool is_slope) {
    double slope;
    const double p = place_of(j, g, size, &slope);
    if (isnan(p)) return (axis){.is_nan = true};
    if (!(p > -2 && p < (double)size + 1)) return (axis){.at = 0}; /* zeros: no weights */
    const double below = floor(p), f = rounded(j, p - below);
    axis a = {.at = (int64_t)below};
    if (j->call->nearest) {
        a.at += f > 0.5 || (f == 0.5 && (a.at & 1));
        a.weights[0] = !is_slope;
    } else {
        a.weights[0] = is_slope ? -slope : rounded(j, 1 - f);
        a.weights[1] = is_slope ? slope : f;
    }
    return a;
}

static double number(const job *j, const char *from, int64_t i) {
    return j->is_f32 ? (double)((const float *)(const void *)from)[i]
                     : ((const double *)(const void *)from)[i];
}

/* The corners of place p of image n that lie within x and count. */
static void find(const job *j, int64_t n, int64_t p, place *found) {
    const wb_grid_call *c = j->call;
    axis axes[3] = {{.weights = {1}}, {.weights = {1}}, {.weights = {1}}};
    *found = (place){.count = 0};
    for (int d = 0; d < (int)c->dims; d++) {
        const double g = number(j, j->grid, (n * j->out + p) * c->dims + d);
        axes[d] = axis_of(j, g, c->in[d], c->slopes >> d & 1);
        found->is_nan |= axes[d].is_nan;
    }
    for (int k = 0; k < CORNERS; k++) {
        int64_t at = 0;
        double weight = 1;
        for (int d = 2; d >= 0; d--) {
            const int64_t i = axes[d].at + (k >> d & 1);
            weight *= i >= 0 && i < c->in[d] ? axes[d].weights[k >> d & 1] : 0;
            at = at * c->in[d] + i;
        }
        if (weight == 0) continue;
        found->at[found->count] = at;
        found->weights[found->count++] = weight;
    }
}

/* Places from p on; how many. */
static int find_block(const job *j, int64_t n, int64_t p, place *places) {
    const int count = p + BLOCK < j->out ? BLOCK : (int)(j->out - p);
    for (int i = 0; i < count; i++) find(j, n, p + i, &places[i]);
    return count;
}

/* ---- sampling ---- */

static double sum_of(const job *j, const place *found, int64_t first) {
    if (found->is_nan) return j->call->skips ? 0 : (double)NAN;
    double sum = 0;
    for (int k = 0; k < found->count; k++)
        sum += found->weights[k] * number(j, j->from, first + found->at[k]);
    return sum;
}

/* A block of places of an image, in all channels. */
static void sample(void *context, int64_t piece, int worker) {
    const job *j = context;
    const int64_t n = piece / j->blocks, p = piece % j->blocks * BLOCK,
                  channels = j->call->channels;
    place places[BLOCK];
    const int count = find_block(j, n, p, places);
    (void)worker;
    for (int64_t plane = n * channels; plane < (n + 1) * channels; plane++)
        for (int i = 0; i < count; i++) {
            const double sum = sum_of(j, &places[i], plane * j->in);
            if (j->is_f32)
                ((float *)(void *)j->to)[plane * j->out + p + i] = (float)sum;
            else
                ((double *)(void *)j->to)[plane * j->out + p + i] = sum;
        }
}

/* ---- putting back ---- */

static void add(const job *j, const place *found, int64_t first, double value) {
    for (int k = 0; k < found->count && !found->is_nan; k++) {
        const int64_t at = first + found->at[k];
        if (j->is_f32)
            ((float *)(void *)j->to)[at] += (float)(found->weights[k] * value);
        else
            ((double *)(void *)j->to)[at] += found->weights[k] * value;
    }
}

/* Some channels of an image; only this piece adds to them. */
static void put(void *context, int64_t piece, int worker) {
    const job *j = context;
    const int64_t n = piece / j->groups, low = piece % j->groups * GROUP,
                  channels = j->call->channels,
                  high = low + GROUP < channels ? low + GROUP : channels;
    const size_t bytes = j->is_f32 ? sizeof(float) : sizeof(double);
    place places[BLOCK];
    (void)worker;
    memset(j->to + (size_t)((n * channels + low) * j->in) * bytes, 0,
           (size_t)((high - low) * j->in) * bytes);
    for (int64_t p = 0; p < j->out; p += BLOCK) {
        const int count = find_block(j, n, p, places);
        for (int64_t plane = n * channels + low; plane < n * channels + high; plane++)
            for (int i = 0; i < count; i++)
                add(j, &places[i], plane * j->in, number(j, j->from, plane * j->out + p + i));
    }
}

static job job_of(const wb_cpu_call *c) {
    const wb_grid_call *g = &c->call->grid;
    job j = {.call = g,
             .is_f32 = c->call->dtype == WB_F32,
             .from = c->a[0],
             .grid = c->a[1],
             .to = c->a[2],
             .in = g->in[0] * g->in[1] * g->in[2],
             .out = g->out[0] * g->out[1] * g->out[2]};
    j.blocks = (j.out + BLOCK - 1) / BLOCK;
    j.groups = (g->channels + GROUP - 1) / GROUP;
    return j;
}

wb_status wb_cpu_call_grid_sample(const wb_cpu_call *c) {
    job j = job_of(c);
    wb_cpu_parallel(j.call->batch * j.blocks, sample, &j);
    return WB_OK;
}

wb_status wb_cpu_call_grid_put(const wb_cpu_call *c) {
    job j = job_of(c);
    wb_cpu_parallel(j.call->batch * j.groups, put, &j);
    return WB_OK;
}
