/* BatchNorm: each channel with mean 0 and variance 1 over the batch, then scaled and shifted. */
#include <weber/distributed.h>

#include "layers/layer.h"

typedef struct wb_batchnorm_layer {
    wb_layer layer;
    wb_batchnorm_desc desc;
} wb_batchnorm_layer;

static wb_batchnorm_desc *desc_of(wb_layer *layer) {
    return &((wb_batchnorm_layer *)(void *)layer)->desc;
}

/* ---- statistics ---- */

/* All dimensions but the channels. */
static int all_but_channels(const wb_array *x, int64_t *dims) {
    int count = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != x->ndim - 2) dims[count++] = d;
    return count;
}

static bool take_in(wb_batchnorm_desc *b, wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    const wb_running running = {&b->given_mean, &b->given_variance, b->momentum};
    const wb_statistics s = wb_statistics_over(x, all_but_channels(x, dims), dims);
    return wb_running_take_in(running, wb_corrected(s, wb_count(x) / b->channels));
}

static wb_array *by_batch(const wb_batchnorm_desc *b, wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    const int count = all_but_channels(x, dims);
    wb_array *y = wb_normalised_over(x, count, dims, b->eps, b->given_gamma, b->given_beta);
    return wb_affine(y, NULL, NULL, b->activation);
}

/* With the statistics of the batches of all ranks. The corrected variance of a single number is not
 * finite, so the running variance ignores it. */
static wb_array *by_all_ranks(wb_batchnorm_desc *b, wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    const wb_dtype dtype = (wb_dtype)x->dtype;
    if (wb_is_half(dtype)) x = wb_cast(x, WB_F32);
    if (!x) return NULL;
    const wb_over_ranks all = wb_statistics_over_ranks(x, all_but_channels(x, dims), dims);
    const wb_running running = {&b->given_mean, &b->given_variance, b->momentum};
    wb_array *correction = wb_div(all.count, wb_sub(all.count, wb_constant(1)));
    const wb_statistics s = all.statistics, corrected = {s.mean, wb_mul(s.variance, correction)};
    if (b->given_mean && !wb_running_take_in(running, corrected)) return NULL;
    wb_array *y = wb_cast(wb_normalised_by(x, s, b->eps), dtype);
    return wb_affine(y, b->given_gamma, b->given_beta, b->activation);
}

/* s x + (beta - s mean) with s = gamma / sqrt(variance + eps), as in Flux: two numbers of each
 * channel, so that after a convolution it is one multiplication and addition. Halves in f32. */
static wb_array *by_past(const wb_batchnorm_desc *b, wb_array *x) {
    const wb_dtype dtype = (wb_dtype)x->dtype, wide = wb_is_half(dtype) ? WB_F32 : dtype;
    wb_array *scale = wb_rsqrt(wb_add_number(wb_cast(b->given_variance, wide), b->eps));
    if (b->given_gamma) scale = wb_mul(scale, b->given_gamma);
    wb_array *shift = wb_mul(scale, wb_cast(b->given_mean, wide));
    shift = b->given_beta ? wb_sub(b->given_beta, shift) : wb_neg(shift);
    if (!scale || !shift) return NULL;
    scale = wb_beside_channels(scale, x), shift = wb_beside_channels(shift, x);
    wb_array *y = wb_cast(wb_add(wb_mul(wb_cast(x, wide), scale), shift), dtype);
    return wb_affine(y, NULL, NULL, b->activation);
}

/* ---- forward ---- */

static wb_array *forward(wb_layer *layer, wb_array *x) {
    wb_batchnorm_desc *b = desc_of(layer);
    const bool is_active = wb_is_active(layer);
    if (!wb_check_channels(x, b->channels)) return NULL;
    if (b->given_gamma || b->given_mean)
        x = wb_convert_input(x, b->given_gamma ? b->given_gamma : b->given_mean);
    if (!x) return NULL;
    const bool over_ranks = is_active && b->sync && wb_total_workers() > 1;
    const int64_t own = b->channels ? wb_count(x) / b->channels : 0;
    const int64_t count = over_ranks && own ? own + 1 : own; /* with another rank's */
    if (is_active && !wb_check_training(layer, x, count, b->given_mean != NULL)) return NULL;
    if (!is_active && b->given_mean) return by_past(b, x);
    if (over_ranks) return by_all_ranks(b, x);
    if (is_active && b->given_mean && !take_in(b, x)) return NULL;
    return by_batch(b, x);
}

/* ---- the class ---- */

#define ROW(member, name, ...) WB_ROW_NAMED(wb_batchnorm_layer, member, name, __VA_ARGS__)
#define PLACE(member)          offsetof(wb_batchnorm_layer, desc.member)

/* Arrays have Flux's names. */
static const wb_field fields[] = {
    ROW(activation, "activation", WB_FIELD_ACTIVATION, .flux = "λ"),
    ROW(given_beta, "β", WB_FIELD_ARRAY, .torch = "bias", .trainable = true, .with = PLACE(affine)),
    ROW(given_gamma, "γ", WB_FIELD_ARRAY, .torch = "weight", .trainable = true,
        .with = PLACE(affine)),
    ROW(given_mean, "μ", WB_FIELD_STATE, .torch = "running_mean", .with = PLACE(track_stats)),
    ROW(given_variance, "σ²", WB_FIELD_STATE, .torch = "running_var", .with = PLACE(track_stats)),
    ROW(eps, "eps", WB_FIELD_REAL, .flux = "ϵ", .usual = 1e-5, .is_above = true),
    ROW(momentum, "momentum", WB_FIELD_REAL, .usual = 0.1, .high = 1),
    ROW(affine, "affine", WB_FIELD_BOOL, .usual = true, .since = 11, .rank = -1),
    ROW(track_stats, "track_stats", WB_FIELD_BOOL, .usual = true, .since = 11, .rank = -1),
    ROW(sync, "sync", WB_FIELD_BOOL, .text_only = true, .rank = 1),
    {.name = "active", .kind = WB_FIELD_MODE, .since = 8},
    ROW(channels, "channels", WB_FIELD_INTEGER, .flux = "chs", .since = 11, .low = 1, .rank = -1,
        .positional = true, .given_by = PLACE(given_gamma)),
};

static bool complete(wb_layer *layer) {
    wb_batchnorm_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->given_beta, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_gamma, wb_ones_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_mean, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_variance, wb_ones_init, d->dtype, 1, &d->channels);
}

const wb_layer_class wb_batchnorm_class = {.name = "BatchNorm",
                                           .has_channels = true,
                                           WB_LAYER_ROWS(wb_batchnorm_layer, fields),
                                           .forward = forward,
                                           .complete = complete};

wb_layer *wb_batchnorm_make(wb_batchnorm_desc desc) {
    return wb_layer_of_desc(&wb_batchnorm_class, &desc, sizeof desc);
}
