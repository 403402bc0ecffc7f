/* GroupNorm: each group of channels of each image with mean 0 and variance 1, then scaled and
 * shifted. */
#include "layers/layer.h"

typedef struct wb_groupnorm_layer {
    wb_layer layer;
    wb_groupnorm_desc desc;
    wb_array *mean, *variance; /* running ones of Flux before 0.14: refused */
} wb_groupnorm_layer;

static wb_groupnorm_desc *desc_of(wb_layer *layer) {
    return &((wb_groupnorm_layer *)(void *)layer)->desc;
}

/* (..., channels, N) as (..., channels / groups, groups, N). */
static wb_array *normalised(const wb_groupnorm_desc *d, wb_array *x) {
    int64_t sizes[WB_MAX_DIMS], dims[WB_MAX_DIMS];
    const int n = x->ndim - 1;
    for (int i = 0; i < n; i++) sizes[i] = x->sizes[i], dims[i] = i;
    sizes[n - 1] = d->channels / d->groups, sizes[n] = d->groups, sizes[n + 1] = x->sizes[n];
    wb_array *y = wb_reshape_make(x, n + 2, sizes);
    y = y ? wb_normalise_make(y, d->eps, n, dims) : NULL;
    return y ? wb_reshape_make(y, x->ndim, x->sizes) : NULL;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_groupnorm_desc *d = desc_of(layer);
    if (!wb_check_channels(x, d->channels)) return NULL;
    if (x->ndim == WB_MAX_DIMS)
        return wb_fail_null(WB_ERROR_SHAPE, "input must have at most %d dimensions, got %s",
                            WB_MAX_DIMS - 1, wb_text_of(x));
    if (d->given_gamma) x = wb_convert_input(x, d->given_gamma);
    return x ? wb_affine(normalised(d, x), d->given_gamma, d->given_beta, d->activation) : NULL;
}

#define ROW(member, name, ...) WB_ROW_NAMED(wb_groupnorm_layer, member, name, __VA_ARGS__)
#define STATE(member, name_)                                                                       \
    {                                                                                              \
        .name = name_, .offset = offsetof(wb_groupnorm_layer, member), .kind = WB_FIELD_STATE,     \
        .fixed = true                                                                              \
    }
#define AFFINE .trainable = true, .with = offsetof(wb_groupnorm_layer, desc.affine)

static const wb_field fields[] = {
    ROW(groups, "groups", WB_FIELD_INTEGER, .flux = "G", .low = 1, .positional = true),
    ROW(activation, "activation", WB_FIELD_ACTIVATION, .flux = "λ", .rank = 1),
    ROW(given_beta, "β", WB_FIELD_ARRAY, .torch = "bias", AFFINE),
    ROW(given_gamma, "γ", WB_FIELD_ARRAY, .torch = "weight", AFFINE),
    STATE(mean, "μ"),
    STATE(variance, "σ²"),
    ROW(eps, "eps", WB_FIELD_REAL, .flux = "ϵ", .usual = 1e-5, .is_above = true),
    {.name = "momentum", .kind = WB_FIELD_OTHER},
    ROW(affine, "affine", WB_FIELD_BOOL, .usual = true, .since = 12, .rank = -1),
    {.name = "track_stats", .kind = WB_FIELD_OTHER, .since = 12},
    {.name = "active", .kind = WB_FIELD_MODE, .since = 9},
    ROW(channels, "channels", WB_FIELD_INTEGER, .flux = "chs", .since = 12, .low = 1, .rank = -1,
        .positional = true, .given_by = offsetof(wb_groupnorm_layer, desc.given_gamma)),
};

static bool complete(wb_layer *layer) {
    wb_groupnorm_desc *d = desc_of(layer);
    const wb_groupnorm_layer *g = (const wb_groupnorm_layer *)(const void *)layer;
    if (g->mean || g->variance)
        (void)wb_fail(WB_ERROR_UNSUPPORTED, "GroupNorm: running statistics, which Flux had before "
                                            "0.14, are not read");
    else if (d->channels % d->groups)
        (void)wb_fail(WB_ERROR_SHAPE, "GroupNorm: %lld groups do not divide %lld channels",
                      (long long)d->groups, (long long)d->channels);
    else
        return wb_layer_fill(layer, &d->given_beta, wb_zeros_init, d->dtype, 1, &d->channels) &&
               wb_layer_fill(layer, &d->given_gamma, wb_ones_init, d->dtype, 1, &d->channels);
    return false;
}

const wb_layer_class wb_groupnorm_class = {.name = "GroupNorm",
                                           .has_channels = true,
                                           WB_LAYER_ROWS(wb_groupnorm_layer, fields),
                                           .forward = forward,
                                           .complete = complete};

wb_layer *wb_groupnorm_make(wb_groupnorm_desc desc) {
    return wb_layer_of_desc(&wb_groupnorm_class, &desc, sizeof desc);
}
