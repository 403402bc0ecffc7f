/* InstanceNorm: each channel of each image with mean 0 and variance 1. */
#include "layers/layer.h"

typedef struct wb_instancenorm_layer {
    wb_layer layer;
    wb_instancenorm_desc desc;
} wb_instancenorm_layer;

static wb_instancenorm_desc *desc_of(wb_layer *layer) {
    return &((wb_instancenorm_layer *)(void *)layer)->desc;
}

/* Of all spatial dimensions of x, the channels and N stay. */
static wb_statistics of_images(wb_array *x) {
    static const int64_t dims[WB_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    return wb_statistics_over(x, x->ndim - 2, dims);
}

/* The means over the images. */
static bool take_in(wb_layer *layer, wb_array *x, wb_statistics s) {
    wb_instancenorm_desc *d = desc_of(layer);
    const int64_t last = x->ndim - 1, images = d->channels * x->sizes[last];
    const int64_t count = images ? wb_count(x) / images : 0;
    const wb_running running = {&d->given_mean, &d->given_variance, d->momentum};
    if (!wb_check_training(layer, x, count, true)) return false;
    const wb_statistics all = {wb_mean_make(s.mean, 1, &last), wb_mean_make(s.variance, 1, &last)};
    return wb_running_take_in(running, wb_corrected(all, count));
}

/* x (..., channels, N), with at least one spatial dimension. */
static wb_array *normalise(wb_layer *layer, wb_array *x) {
    const wb_instancenorm_desc *d = desc_of(layer);
    const bool is_active = wb_is_active(layer);
    if (!is_active && d->given_mean) {
        const wb_statistics past = {wb_beside_channels(d->given_mean, x),
                                    wb_beside_channels(d->given_variance, x)};
        return wb_normalised_by(x, past, d->eps);
    }
    const wb_statistics s = of_images(x);
    if (is_active && d->given_mean && !take_in(layer, x, s)) return NULL;
    return wb_normalised_by(x, s, d->eps);
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_instancenorm_desc *d = desc_of(layer);
    const int ndim = x->ndim;
    if (!wb_check_channels(x, d->channels)) return NULL;
    if (d->given_gamma || d->given_mean)
        x = wb_convert_input(x, d->given_gamma ? d->given_gamma : d->given_mean);
    if (x && ndim == 2) x = wb_reshape(x, 1, x->sizes[0], x->sizes[1]);
    wb_array *y = x ? normalise(layer, x) : NULL;
    y = wb_affine(y, d->given_gamma, d->given_beta, d->activation);
    return y && ndim == 2 ? wb_reshape(y, y->sizes[1], y->sizes[2]) : y;
}

#define ROW(member, name, ...) WB_ROW_NAMED(wb_instancenorm_layer, member, name, __VA_ARGS__)
#define PLACE(member)          offsetof(wb_instancenorm_layer, desc.member)

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
    ROW(affine, "affine", WB_FIELD_BOOL, .since = 11, .rank = -1),
    ROW(track_stats, "track_stats", WB_FIELD_BOOL, .since = 11, .rank = -1),
    {.name = "active", .kind = WB_FIELD_MODE},
    ROW(channels, "channels", WB_FIELD_INTEGER, .flux = "chs", .since = 11, .low = 1, .rank = -1,
        .positional = true, .given_by = PLACE(given_gamma)),
};

static void derive(wb_layer *layer) {
    wb_instancenorm_desc *d = desc_of(layer);
    const wb_array *given = d->given_gamma ? d->given_gamma : d->given_mean;
    if (d->channels == 0 && given && given->ndim == 1) d->channels = given->sizes[0];
}

static bool complete(wb_layer *layer) {
    wb_instancenorm_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->given_beta, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_gamma, wb_ones_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_mean, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->given_variance, wb_ones_init, d->dtype, 1, &d->channels);
}

const wb_layer_class wb_instancenorm_class = {.name = "InstanceNorm",
                                              .has_channels = true,
                                              WB_LAYER_ROWS(wb_instancenorm_layer, fields),
                                              .forward = forward,
                                              .derive = derive,
                                              .complete = complete};

wb_layer *wb_instancenorm_make(wb_instancenorm_desc desc) {
    return wb_layer_of_desc(&wb_instancenorm_class, &desc, sizeof desc);
}
