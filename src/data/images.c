/* Numbers and images changed for training: scaling, random crops and flips. */
#include <weber/observations.h>
#include <weber/ops.h>

#include "array/array.h"
#include "ops/ops.h"

/* ---- scaling ---- */

static double eps_of(double eps) { return eps == 0 ? 1e-5 : eps; }

wb_array *wb_rescale(wb_array *x, int dim, double eps) {
    if (!wb_is_usable(x)) return wb_refuse("rescale", x, "x");
    wb_array *low = wb_minimum_dims(x, dim), *high = wb_maximum_dims(x, dim);
    wb_array *range = wb_add_number(wb_sub(high, low), eps_of(eps));
    return wb_div(wb_sub(x, low), range);
}

wb_array *wb_standardise(wb_array *x, int dim, double eps) {
    if (!wb_is_usable(x)) return wb_refuse("standardise", x, "x");
    const int64_t along = dim;
    wb_array *deviation = wb_add_number(wb_std_make(x, false, 1, &along), eps_of(eps));
    return wb_div(wb_sub(x, wb_moments_make(x, 1, &along).mean), deviation);
}

/* ---- images ---- */

static bool check_images(const char *function, wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse(function, x, "x") != NULL;
    if (x->ndim == 4) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: images must be (width, height, channels, number), got %s",
                  function, wb_text_of(x));
    return false;
}

/* Whole numbers 0 ... most for each image, (1, 1, 1, N). */
static wb_array *offsets(int64_t most, int64_t images) {
    wb_array *u = wb_uniform(WB_F32, 1, 1, 1, images);
    wb_array *whole = wb_floor(wb_mul_number(u, (double)(most + 1)));
    return wb_cast(wb_clamp(whole, 0, (double)most), WB_I64); /* the product may be rounded up */
}

/* The places, in memory's order, of the pixels of a (width, height) cut at these offsets in each
 * image of x. */
static wb_array *crop_places(const wb_array *x, int64_t width, int64_t height) {
    const int64_t *s = x->sizes;
    wb_array *column = wb_add(wb_iota(WB_I64, 0, width, 1, 1, 1), offsets(s[0] - width, s[3]));
    wb_array *row = wb_add(wb_iota(WB_I64, 1, 1, height, 1, 1), offsets(s[1] - height, s[3]));
    wb_array *plane = wb_add(wb_iota(WB_I64, 2, 1, 1, s[2], 1),
                             wb_mul_number(wb_iota(WB_I64, 3, 1, 1, 1, s[3]), (double)s[2]));
    wb_array *line = wb_add(row, wb_mul_number(plane, (double)s[1]));
    return wb_add(column, wb_mul_number(line, (double)s[0]));
}

wb_array *wb_random_crop(wb_array *x, int64_t width, int64_t height, int64_t pad) {
    if (!check_images("random_crop", x)) return NULL;
    if (pad < 0 || pad > INT32_MAX || width < 1 || height < 1 || width > x->sizes[0] + 2 * pad ||
        height > x->sizes[1] + 2 * pad)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "random_crop: (%lld, %lld) must lie within images of %s with %lld "
                            "zeros on each side",
                            (long long)width, (long long)height, wb_text_of(x), (long long)pad);
    for (int d = 0; pad && x && d < 2; d++) x = wb_pad(x, d, pad, pad, 0);
    wb_array *places = x ? crop_places(x, width, height) : NULL;
    if (places) places = wb_move_array(wb_node_device(x), places, WB_ELTYPE_DEFAULT);
    return places ? wb_gather(wb_reshape(x, -1), places, 0) : NULL;
}

wb_array *wb_random_flip(wb_array *x, int dim, double p) {
    if (!check_images("random_flip", x)) return NULL;
    if (!(p >= 0 && p <= 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "random_flip: p must be from 0 to 1, got %g", p);
    wb_array *coin = wb_bernoulli(p, 1, 1, 1, x->sizes[3]), *flipped = wb_flip(x, dim);
    coin = wb_move_array(wb_node_device(x), coin, WB_ELTYPE_DEFAULT);
    return coin && flipped ? wb_select(coin, flipped, x) : NULL;
}
