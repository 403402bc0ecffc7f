/* Sequences of different lengths in one batch: x (features, time, N) and lengths (N), or x
 * (features, time) and one number. Steps from a sequence's length on are padding. */
#include "layers/layer.h"
#include "ops/ops.h"

enum { TIME = 1, BATCH = 2 };

static int64_t batch_of(const wb_array *x) { return x->ndim > BATCH ? x->sizes[BATCH] : 1; }

/* As i64, in the sizes that broadcast with x. */
static wb_array *as_column(const wb_array *x, wb_array *lengths) {
    const int64_t sizes[] = {1, 1, batch_of(x)};
    if (x->ndim < 2 || x->ndim > 3)
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "with lengths, input must be (features, time) or (features, time, batch), got %s",
            wb_text_of(x));
    if (wb_dtype_is_float((wb_dtype)lengths->dtype) || lengths->dtype == WB_BOOL)
        return wb_fail_null(WB_ERROR_DTYPE,
                            "lengths must be integers, got %s: wb_cast(lengths, WB_I32)",
                            wb_dtype_name((wb_dtype)lengths->dtype));
    if (lengths->ndim > 1 || wb_count(lengths) != sizes[BATCH])
        return wb_fail_null(WB_ERROR_SHAPE,
                            "lengths must be %lld numbers, one for each sequence of input %s, got "
                            "%s",
                            (long long)sizes[BATCH], wb_text_of(x), wb_text_of(lengths));
    wb_array *counts = wb_max(wb_cast(lengths, WB_I64), wb_constant(0));
    return wb_reshape_make(counts, x->ndim, sizes);
}

static wb_array *steps_of(const wb_array *x) {
    return wb_iota_make(WB_I64, TIME, x->ndim, (const int64_t[]){1, x->sizes[TIME], 1});
}

wb_array *wb_lengths_mask(wb_array **x, wb_array *lengths) {
    wb_array *column = as_column(*x, lengths), *mask = column ? wb_lt(steps_of(*x), column) : NULL;
    *x = mask ? wb_select(mask, *x, wb_constant(0)) : NULL;
    return *x ? mask : NULL;
}

wb_array *wb_lengths_keep(wb_array *mask, int states, wb_array **now, wb_array *const *before) {
    wb_array *y = wb_select(mask, now[0], wb_constant(0));
    for (int s = 0; s < states; s++) now[s] = wb_select(mask, now[s], before[s]);
    return y;
}

wb_array *wb_lengths_reverse(wb_array *x, wb_array *lengths) {
    wb_array *column = as_column(x, lengths);
    if (!column) return NULL;
    const int64_t time = x->sizes[TIME], batch = batch_of(x);
    const int64_t sizes[] = {1, time, batch};
    wb_array *step = steps_of(x),
             *last = wb_add_number(wb_min(column, wb_number((double)time)), -1);
    wb_array *place = wb_select(wb_le(step, last), wb_sub(last, step), step);
    if (x->ndim > BATCH)
        place = wb_add(place, wb_mul_number(wb_iota_make(WB_I64, BATCH, 3, sizes), (double)time));
    wb_array *columns = wb_reshape(x, x->sizes[0], time * batch);
    wb_array *turned = wb_gather(columns, wb_reshape(place, time * batch), 1);
    return turned ? wb_reshape_make(turned, x->ndim, x->sizes) : NULL;
}
