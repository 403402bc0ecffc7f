/* What layers that normalise have in common: statistics, running ones, a scale and a shift. */
#include <weber/distributed.h>

#include "array/state.h"
#include "gradient/mode.h"
#include "layers/layer.h"
#include "ops/ops.h"

wb_statistics wb_statistics_over(wb_array *x, int count, const int64_t *dims) {
    return (wb_statistics){wb_mean_make(x, count, dims), wb_var_make(x, false, count, dims)};
}

/* sums (1, ..., channels, 1) over all ranks, with the count of the numbers in each */
static wb_array *summed_over_ranks(wb_array *sums, wb_array *count, wb_array **total) {
    const int64_t channels = sums ? wb_count(sums) : 0;
    wb_array *flat = wb_reshape_make(sums, 1, &channels);
    wb_array *all = wb_allreduce(wb_concat(0, flat, wb_reshape(count, 1)), WB_REDUCE_SUM);
    *total = wb_slice(all, 0, channels, channels + 1, 1);
    wb_array *own = wb_slice(all, 0, 0, channels, 1);
    return own ? wb_reshape_make(own, sums->ndim, sums->sizes) : NULL;
}

wb_over_ranks wb_statistics_over_ranks(wb_array *x, int count, const int64_t *dims) {
    const bool counts = !wb_is_unobserved();
    const wb_dtype dtype = (wb_dtype)x->dtype;
    wb_array *is_in = wb_cast(wb_late(counts), dtype), *sums = wb_sum_make(x, count, dims);
    const double numbers = sums && wb_count(sums) ? (double)(wb_count(x) / wb_count(sums)) : 0;
    wb_array *own = wb_cast(wb_late(counts ? numbers : 0), dtype), *total, *unused;
    wb_array *mean = summed_over_ranks(wb_mul(sums, is_in), own, &total);
    mean = wb_div(mean, total);
    wb_array *squares = wb_sum_make(wb_square(wb_sub(x, mean)), count, dims);
    wb_array *variance = wb_div(summed_over_ranks(wb_mul(squares, is_in), own, &unused), total);
    return (wb_over_ranks){{mean, variance}, total};
}

wb_array *wb_normalised_by(wb_array *x, wb_statistics s, double eps) {
    wb_array *scale = wb_rsqrt(wb_add_number(s.variance, eps));
    return wb_mul(wb_sub(x, s.mean), scale);
}

wb_array *wb_normalised_over(wb_array *x, int count, const int64_t *dims, double eps,
                             wb_array *gamma, wb_array *beta) {
    if (!gamma) return wb_normalise_make(x, eps, count, dims);
    return wb_normalise_with(x, eps, count, dims, wb_beside_channels(gamma, x),
                             wb_beside_channels(beta, x));
}

wb_array *wb_affine(wb_array *y, wb_array *gamma, wb_array *beta, wb_activation *activation) {
    if (y && gamma) {
        wb_array *shift = wb_beside_channels(beta, y);
        y = wb_add(wb_mul(y, wb_beside_channels(gamma, y)), shift);
    }
    return y && activation ? activation(y) : y;
}

bool wb_check_channels(const wb_array *x, int64_t channels) {
    if (x->ndim >= 2 && x->sizes[x->ndim - 2] == channels) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "the last dimension but one must be the %lld channels, got %s",
                  (long long)channels, wb_text_of(x));
    return false;
}

/* ---- running statistics ---- */

bool wb_check_training(const wb_layer *layer, const wb_array *x, int64_t count, bool is_written) {
    if (count < 2)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "input %s has %lld number%s for each channel; training needs two or more",
                      wb_text_of(x), (long long)count, count == 1 ? "" : "s");
    else if (layer->shared_ && is_written)
        (void)wb_fail(WB_ERROR_ARGUMENT, "a shared model is read-only; wb_test_mode");
    else
        return true;
    return false;
}

/* past + momentum (now - past), in the past's type; the past where now is not finite: one bad batch
 * would spoil it for ever. In the sizes of now, beside x, so that it is computed along with the
 * batch's. */
static wb_array *moved(wb_array *past, wb_array *now, double momentum) {
    if (!now) return NULL;
    const int64_t channels = past->sizes[0];
    now = wb_stop_gradient(wb_cast(now, (wb_dtype)past->dtype));
    past = now ? wb_reshape_make(past, now->ndim, now->sizes) : NULL;
    wb_array *is_finite = wb_eq(wb_sub(now, now), wb_constant(0));
    wb_array *nearer = wb_add(past, wb_mul_number(wb_sub(now, past), momentum));
    return wb_reshape(wb_select(is_finite, nearer, past), channels);
}

wb_statistics wb_corrected(wb_statistics s, int64_t count) {
    const double correction = (double)count / (double)(count - 1);
    return (wb_statistics){s.mean, wb_mul_number(s.variance, correction)};
}

bool wb_running_take_in(wb_running running, wb_statistics batch) {
    wb_array *mean = moved(*running.mean, batch.mean, running.momentum);
    wb_array *variance = moved(*running.variance, batch.variance, running.momentum);
    return mean && variance && wb_state_write(running.mean, mean) == WB_OK &&
           wb_state_write(running.variance, variance) == WB_OK;
}
