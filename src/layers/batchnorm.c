/* BatchNorm: each channel with mean 0 and variance 1 over the batch, then scaled and shifted. */
#include <stdio.h>
#include <string.h>

#include "array/state.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

typedef struct wb_batchnorm_layer {
    wb_layer layer;
    wb_array *beta, *gamma;    /* (channels), or NULL */
    wb_array *mean, *variance; /* running ones, (channels), or NULL */
    wb_activation *activation;
    int64_t channels;
    double eps, momentum;
} wb_batchnorm_layer;

static wb_batchnorm_layer *batchnorm_of(wb_layer *layer) {
    return (wb_batchnorm_layer *)(void *)layer;
}

static const wb_batchnorm_layer *settings_of(const wb_layer *layer) {
    return (const wb_batchnorm_layer *)(const void *)layer;
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

static statistics of_past(wb_batchnorm_layer *b, const wb_array *x) {
    return (statistics){beside(b->mean, x), beside(b->variance, x)};
}

/* past + momentum (now - past), in the past's type; the past where now is not finite: one bad batch
 * would spoil it for ever. In the sizes of now, beside x, so that it is computed along with the
 * batch's. */
static wb_array *moved(const wb_batchnorm_layer *b, wb_array *past, wb_array *now) {
    if (!now) return NULL;
    now = wb_stop_gradient(wb_cast(now, (wb_dtype)past->dtype));
    past = wb_reshape_make(past, now->ndim, now->sizes);
    wb_array *is_finite = wb_eq(wb_sub(now, now), wb_number(0));
    wb_array *nearer = wb_add(past, wb_mul_number(wb_sub(now, past), b->momentum));
    return wb_reshape(wb_select(is_finite, nearer, past), b->channels);
}

/* The running statistics take in those of a batch with so many numbers for each channel, when the
 * step is computed. */
static bool take_in(wb_batchnorm_layer *b, statistics batch, int64_t count) {
    const double correction = (double)count / (double)(count - 1);
    wb_array *mean = moved(b, b->mean, batch.mean);
    wb_array *variance = moved(b, b->variance, wb_mul_number(batch.variance, correction));
    return mean && variance && wb_state_write(&b->mean, mean) == WB_OK &&
           wb_state_write(&b->variance, variance) == WB_OK;
}

/* ---- forward ---- */

static bool check_input(const wb_batchnorm_layer *b, const wb_array *x) {
    if (x->ndim >= 2 && x->sizes[x->ndim - 2] == b->channels) return true;
    (void)wb_fail(WB_ERROR_SHAPE,
                  "input is %s; the last dimension but one has to be the %lld channels",
                  wb_text_of(x), (long long)b->channels);
    return false;
}

static bool check_training(const wb_batchnorm_layer *b, const wb_array *x, int64_t count) {
    if (count < 2)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "input %s has %lld number%s for each channel; training needs two or more",
                      wb_text_of(x), (long long)count, count == 1 ? "" : "s");
    else if (b->layer.shared_ && b->mean)
        (void)wb_fail(WB_ERROR_ARGUMENT, "a shared model is read-only; wb_test_mode");
    else
        return true;
    return false;
}

static wb_array *normalise(const wb_batchnorm_layer *b, wb_array *x, statistics s) {
    wb_array *scale = wb_rsqrt(wb_add_number(s.variance, b->eps));
    wb_array *y = wb_mul(wb_sub(x, s.mean), scale);
    if (b->gamma) y = wb_add(wb_mul(y, beside(b->gamma, x)), beside(b->beta, x));
    return y && b->activation ? b->activation(y) : y;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    wb_batchnorm_layer *b = batchnorm_of(layer);
    const bool is_active = wb_is_active(layer);
    if (!check_input(b, x)) return NULL;
    if (b->gamma || b->mean) x = wb_convert_input(x, b->gamma ? b->gamma : b->mean);
    if (!x) return NULL;
    if (!is_active && b->mean) return normalise(b, x, of_past(b, x));
    const int64_t count = b->channels ? wb_count(x) / b->channels : 0;
    if (is_active && !check_training(b, x, count)) return NULL;
    const statistics batch = of_batch(x);
    if (is_active && b->mean && !take_in(b, batch, count)) return NULL;
    return normalise(b, x, batch);
}

/* ---- the class ---- */

wb_batchnorm_desc wb_batchnorm_desc_of(const wb_layer *layer) {
    const wb_batchnorm_layer *b = settings_of(layer);
    return (wb_batchnorm_desc){.channels = b->channels,
                               .activation = b->activation,
                               .eps = b->eps,
                               .momentum = b->momentum,
                               .no_affine = !b->gamma,
                               .no_track_stats = !b->mean};
}

/* Settings that are not the default, which files have as f32. */
static void add_setting(char *text, size_t size, const char *name, double value, double usual,
                        wb_real_writer *real) {
    char number[40];
    const size_t used = strlen(text);
    if (value == usual || value == (double)(float)usual) return;
    real(value, number, sizeof number);
    (void)snprintf(text + used, size - used, ", %s=%s", name, number);
}

void wb_batchnorm_text(const wb_layer *layer, wb_real_writer *real, char *text, size_t size) {
    const wb_batchnorm_layer *b = settings_of(layer);
    const char *activation = wb_activation_text(b->activation);
    (void)snprintf(text, size, "BatchNorm(%lld%s%s%s%s", (long long)b->channels,
                   *activation ? ", " : "", activation, b->gamma ? "" : ", affine=false",
                   b->mean ? "" : ", track_stats=false");
    add_setting(text, size, "eps", b->eps, WB_BATCHNORM_EPS, real);
    add_setting(text, size, "momentum", b->momentum, WB_BATCHNORM_MOMENTUM, real);
    const size_t used = strlen(text);
    (void)snprintf(text + used, size - used, ")");
}

static void short_number(double value, char *text, size_t size) {
    (void)snprintf(text, size, "%g", value);
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    if (brief)
        (void)snprintf(text, size, "BatchNorm(%lld)", (long long)settings_of(layer)->channels);
    else
        wb_batchnorm_text(layer, short_number, text, size);
}

/* Flux's names, in Flux's order. */
static const wb_field fields[] = {
    {"β", offsetof(wb_batchnorm_layer, beta), WB_FIELD_ARRAY, true, false},
    {"γ", offsetof(wb_batchnorm_layer, gamma), WB_FIELD_ARRAY, true, false},
    {"μ", offsetof(wb_batchnorm_layer, mean), WB_FIELD_STATE, false, false},
    {"σ²", offsetof(wb_batchnorm_layer, variance), WB_FIELD_STATE, false, false},
};
const wb_layer_class wb_batchnorm_class = {
    "BatchNorm", sizeof(wb_batchnorm_layer), fields, 4, forward, describe};

/* ---- making ---- */

static bool check(const wb_batchnorm_desc *d) {
    if (d->channels < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_batchnorm: %lld channels", (long long)d->channels);
    else if (!(d->eps >= 0))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_batchnorm: eps is %g, not above 0", d->eps);
    else if (!(d->momentum >= 0 && d->momentum <= 1))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_batchnorm: momentum is %g, not above 0 and up to 1",
                      d->momentum);
    else if (d->no_affine && (d->beta || d->gamma))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_batchnorm: no_affine, but beta or gamma was given");
    else if (d->no_track_stats && (d->mean || d->variance))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_batchnorm: no_track_stats, but mean or variance was given");
    else if (d->dtype && !wb_dtype_is_float(d->dtype))
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_batchnorm: its numbers are floating, not %s",
                      wb_dtype_name(d->dtype));
    else
        return true;
    return false;
}

static bool hold(wb_array **slot, const char *name, wb_array *given, wb_init *init,
                 const wb_batchnorm_desc *d) {
    wb_array *x = given ? given : init(1, &d->channels, d->dtype);
    *slot = wb_hold(x);
    if (x && x->ndim == 1 && x->sizes[0] == d->channels && wb_dtype_is_float((wb_dtype)x->dtype))
        return true;
    if (x)
        (void)wb_fail(WB_ERROR_SHAPE, "wb_batchnorm: %s is %s %s for %lld channels", name,
                      wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x), (long long)d->channels);
    return false;
}

static bool fill(wb_batchnorm_layer *b, const wb_batchnorm_desc *d) {
    b->channels = d->channels;
    b->activation = d->activation;
    b->eps = d->eps > 0 ? d->eps : WB_BATCHNORM_EPS;
    b->momentum = d->momentum > 0 ? d->momentum : WB_BATCHNORM_MOMENTUM;
    const bool has_affine = d->no_affine || (hold(&b->beta, "beta", d->beta, wb_zeros_init, d) &&
                                             hold(&b->gamma, "gamma", d->gamma, wb_ones_init, d));
    return has_affine &&
           (d->no_track_stats || (hold(&b->mean, "mean", d->mean, wb_zeros_init, d) &&
                                  hold(&b->variance, "variance", d->variance, wb_ones_init, d)));
}

wb_layer *wb_batchnorm_make(wb_batchnorm_desc desc) {
    if (!check(&desc) || !wb_scope_begin()) return NULL;
    wb_batchnorm_layer *b = batchnorm_of(wb_layer_new(&wb_batchnorm_class));
    const bool failed = !b || !fill(b, &desc);
    return wb_layer_finish(b ? &b->layer : NULL, failed);
}
