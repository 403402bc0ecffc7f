/* What layers that normalise have in common: statistics, running ones, a scale and a shift. */
#include <weber/distributed.h>

#include "array/state.h"
#include "gradient/mode.h"
#include "layers/layer.h"
#include "ops/ops.h"

wb_statistics wb_statistics_over(wb_array *x, int count, const int64_t *dims) {
    const wb_moments m = wb_moments_make(x, count, dims);
    return (wb_statistics){m.mean, m.variance};
}

/* Lists with a number for each channel, one after the other, then the count of the numbers in each:
 * added up over all ranks. */
static wb_array *over_ranks(int count, wb_array *const *lists, wb_array *numbers) {
    wb_array *parts[3] = {NULL};
    for (int i = 0; i < count; i++)
        if (!(parts[i] = wb_reshape(lists[i], -1))) return NULL;
    parts[count] = wb_reshape(numbers, 1);
    return parts[count] ? wb_allreduce(wb_concat_make(0, count + 1, parts), WB_REDUCE_SUM) : NULL;
}

/* List i over all ranks, in like's sizes. */
static wb_array *list_of(wb_array *all, int64_t i, const wb_array *like) {
    const int64_t channels = wb_count(like);
    wb_array *list = all ? wb_slice(all, 0, i * channels, (i + 1) * channels, 1) : NULL;
    return list ? wb_reshape_make(list, like->ndim, like->sizes) : NULL;
}

/* As wb_moments_make: the mean is rounded, and what is left of x has a mean of its own. */
wb_over_ranks wb_statistics_over_ranks(wb_array *x, int count, const int64_t *dims) {
    const wb_over_ranks failed = {{NULL, NULL}, NULL};
    wb_array *sums = wb_sum_make(x, count, dims);
    if (!sums) return failed;
    const int64_t channels = wb_count(sums);
    const double numbers = channels ? (double)(wb_count(x) / channels) : 0;
    wb_array *own = wb_cast(wb_late(numbers), (wb_dtype)x->dtype);
    wb_array *all = over_ranks(1, &sums, own);
    wb_array *total = all ? wb_slice(all, 0, channels, channels + 1, 1) : NULL;
    wb_array *mean = wb_div(list_of(all, 0, sums), total), *c = wb_sub(x, mean);
    if (!c) return failed;
    wb_array *second[] = {wb_sum_make(c, count, dims), wb_sum_make(wb_square(c), count, dims)};
    all = over_ranks(2, second, own);
    wb_array *d = wb_div(list_of(all, 0, sums), total);
    wb_array *variance = wb_sub(wb_div(list_of(all, 1, sums), total), wb_square(d));
    return (wb_over_ranks){{wb_add(mean, d), wb_max(variance, wb_number(0))}, total};
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
    if (count == 1)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "input %s has 1 number for each channel; training needs two or more",
                      wb_text_of(x));
    else if (layer->shared_ && is_written)
        (void)wb_fail(WB_ERROR_ARGUMENT, "a shared model is read-only: call wb_test_mode");
    else
        return true;
    return false;
}

/* past + momentum (now - past), in the type of past; past itself where now is not finite, since one
 * bad batch would spoil it for ever. It has the sizes of now, so that it is computed together with
 * the batch's statistics. */
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
