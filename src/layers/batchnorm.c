/* BatchNorm: each channel with mean 0 and variance 1 over the batch, then scaled and shifted. */

#include "array/state.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

typedef struct wb_batchnorm_layer {
    wb_layer layer;
    wb_batchnorm_desc desc;
} wb_batchnorm_layer;

static wb_batchnorm_desc *desc_of(wb_layer *layer) {
    return &((wb_batchnorm_layer *)(void *)layer)->desc;
}

/* ---- statistics ---- */

/* Mean and variance of each channel, (1, ..., channels, 1). */
typedef struct statistics {
    wb_array *mean, *variance;
} statistics;

static wb_array *beside(wb_array *numbers, const wb_array *x) {
    int64_t sizes[WB_MAX_DIMS];
    for (int d = 0; d < x->ndim; d++) sizes[d] = d == x->ndim - 2 ? x->sizes[d] : 1;
    return wb_reshape_make(numbers, x->ndim, sizes);
}

static statistics of_batch(wb_array *x) {
    int64_t dims[WB_MAX_DIMS];
    int count = 0;
    for (int d = 0; d < x->ndim; d++)
        if (d != x->ndim - 2) dims[count++] = d;
    return (statistics){wb_mean_make(x, count, dims), wb_var_make(x, false, count, dims)};
}

static statistics of_past(wb_batchnorm_desc *b, const wb_array *x) {
    return (statistics){beside(b->mean, x), beside(b->variance, x)};
}

/* past + momentum (now - past), in the past's type; the past where now is not finite: one bad batch
 * would spoil it for ever. In the sizes of now, beside x, so that it is computed along with the
 * batch's. */
static wb_array *moved(const wb_batchnorm_desc *b, wb_array *past, wb_array *now) {
    if (!now) return NULL;
    now = wb_stop_gradient(wb_cast(now, (wb_dtype)past->dtype));
    past = wb_reshape_make(past, now->ndim, now->sizes);
    wb_array *is_finite = wb_eq(wb_sub(now, now), wb_number(0));
    wb_array *nearer = wb_add(past, wb_mul_number(wb_sub(now, past), b->momentum));
    return wb_reshape(wb_select(is_finite, nearer, past), b->channels);
}

/* The running statistics take in those of a batch with so many numbers for each channel, when the
 * step is computed. */
static bool take_in(wb_batchnorm_desc *b, statistics batch, int64_t count) {
    const double correction = (double)count / (double)(count - 1);
    wb_array *mean = moved(b, b->mean, batch.mean);
    wb_array *variance = moved(b, b->variance, wb_mul_number(batch.variance, correction));
    return mean && variance && wb_state_write(&b->mean, mean) == WB_OK &&
           wb_state_write(&b->variance, variance) == WB_OK;
}

/* ---- forward ---- */

static bool check_input(const wb_batchnorm_desc *b, const wb_array *x) {
    if (x->ndim >= 2 && x->sizes[x->ndim - 2] == b->channels) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "input is %s; the last dimension but one has to be the %lld channels",
                  wb_text_of(x), (long long)b->channels);
    return false;
}

static bool check_training(wb_layer *layer, const wb_array *x, int64_t count) {
    if (count < 2)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "input %s has %lld number%s for each channel; training needs two or more",
                      wb_text_of(x), (long long)count, count == 1 ? "" : "s");
    else if (layer->shared_ && desc_of(layer)->mean)
        (void)wb_fail(WB_ERROR_ARGUMENT, "a shared model is read-only; wb_test_mode");
    else
        return true;
    return false;
}

static wb_array *normalise(const wb_batchnorm_desc *b, wb_array *x, statistics s) {
    wb_array *scale = wb_rsqrt(wb_add_number(s.variance, b->eps));
    wb_array *y = wb_mul(wb_sub(x, s.mean), scale);
    if (b->gamma) y = wb_add(wb_mul(y, beside(b->gamma, x)), beside(b->beta, x));
    return y && b->activation ? b->activation(y) : y;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    wb_batchnorm_desc *b = desc_of(layer);
    const bool is_active = wb_is_active(layer);
    if (!check_input(b, x)) return NULL;
    if (b->gamma || b->mean) x = wb_convert_input(x, b->gamma ? b->gamma : b->mean);
    if (!x) return NULL;
    if (!is_active && b->mean) return normalise(b, x, of_past(b, x));
    const int64_t count = b->channels ? wb_count(x) / b->channels : 0;
    if (is_active && !check_training(layer, x, count)) return NULL;
    const statistics batch = of_batch(x);
    if (is_active && b->mean && !take_in(b, batch, count)) return NULL;
    return normalise(b, x, batch);
}

/* ---- the class ---- */

#define ROW(member, name, ...) WB_ROW_NAMED(wb_batchnorm_layer, member, name, __VA_ARGS__)
#define PLACE(member)          offsetof(wb_batchnorm_layer, desc.member)

/* Arrays have Flux's names. */
static const wb_field fields[] = {
    ROW(activation, "activation", WB_FIELD_ACTIVATION, .flux = "λ"),
    ROW(beta, "β", WB_FIELD_ARRAY, .trainable = true, .without = PLACE(no_affine)),
    ROW(gamma, "γ", WB_FIELD_ARRAY, .trainable = true, .without = PLACE(no_affine)),
    ROW(mean, "μ", WB_FIELD_STATE, .without = PLACE(no_track_stats)),
    ROW(variance, "σ²", WB_FIELD_STATE, .without = PLACE(no_track_stats)),
    ROW(eps, "eps", WB_FIELD_REAL, .flux = "ϵ", .usual = 1e-5, .is_above = true),
    ROW(momentum, "momentum", WB_FIELD_REAL, .usual = 0.1, .high = 1, .is_above = true),
    ROW(no_affine, "affine", WB_FIELD_WITHOUT, .since = 11, .rank = -1),
    ROW(no_track_stats, "track_stats", WB_FIELD_WITHOUT, .since = 11, .rank = -1),
    {.name = "active", .kind = WB_FIELD_MODE, .since = 8},
    ROW(channels, "channels", WB_FIELD_INTEGER, .flux = "chs", .since = 11, .low = 1, .rank = -1,
        .positional = true, .given_by = PLACE(gamma)),
};

static void derive(wb_layer *layer) {
    wb_batchnorm_desc *d = desc_of(layer);
    if (d->channels == 0 && d->gamma && d->gamma->ndim == 1) d->channels = d->gamma->sizes[0];
}

static bool complete(wb_layer *layer) {
    wb_batchnorm_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->beta, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->gamma, wb_ones_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->mean, wb_zeros_init, d->dtype, 1, &d->channels) &&
           wb_layer_fill(layer, &d->variance, wb_ones_init, d->dtype, 1, &d->channels);
}

const wb_layer_class wb_batchnorm_class = {.name = "BatchNorm",
                                           .size_bytes = sizeof(wb_batchnorm_layer),
                                           .fields = fields,
                                           .field_count = sizeof fields / sizeof *fields,
                                           .forward = forward,
                                           .derive = derive,
                                           .complete = complete};

wb_layer *wb_batchnorm_make(wb_batchnorm_desc desc) {
    return wb_layer_make(&wb_batchnorm_class, &desc, sizeof desc);
}
