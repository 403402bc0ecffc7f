/* Losses. */
#include <weber/losses.h>

#include <math.h>
#include <string.h>

#include <weber/device.h>

#include "layers/layer.h"

/* ---- checks ---- */

static bool check_given(const char *name, const wb_array *p, const wb_array *y) {
    if (p && y) return true;
    if (!wb_failed()) (void)wb_fail_argument_null(name, p ? "the target" : "the prediction");
    return false;
}

static bool check_prediction(const char *name, const wb_array *p) {
    if (!wb_dtype_is_float((wb_dtype)p->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: the prediction %s is %s, not floating", name,
                      wb_text_of(p), wb_dtype_name((wb_dtype)p->dtype));
    else if (wb_count(p) == 0)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: the batch is empty: the prediction has sizes %s", name,
                      wb_text_of(p));
    else
        return true;
    return false;
}

/* y in p's type, once everything is checked; NULL with the error. */
static wb_array *target(const char *name, wb_array *p, wb_array *y) {
    if (!check_given(name, p, y) || !check_prediction(name, p)) return NULL;
    if (y->ndim != 0 && !wb_same_sizes(p, y))
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "%s: the prediction has sizes %s, the target %s; losses do not broadcast", name,
            wb_text_of(p), wb_text_of(y));
    return y->dtype == p->dtype || (y->flags & WB_NODE_WEAK) ? y : wb_cast(y, (wb_dtype)p->dtype);
}

/* The distance from 1 to the next number. */
static double eps_of(const wb_array *p) {
    switch ((wb_dtype)p->dtype) {
    case WB_F64:
        return 0x1p-52;
    case WB_F16:
        return 0x1p-10;
    case WB_BF16:
        return 0x1p-7;
    default:
        return 0x1p-23;
    }
}

static wb_array *log_eps(wb_array *p) { return wb_log(wb_add_number(p, eps_of(p))); }

/* ---- elementwise losses ---- */

wb_array *wb_mse(wb_array *p, wb_array *y) {
    y = target("mse", p, y);
    return y ? wb_mean(wb_square(wb_sub(p, y))) : NULL;
}

wb_array *wb_mae(wb_array *p, wb_array *y) {
    y = target("mae", p, y);
    return y ? wb_mean(wb_abs(wb_sub(p, y))) : NULL;
}

static wb_array *one_minus(wb_array *x) { return wb_sub(wb_number(1), x); }

wb_array *wb_binarycrossentropy(wb_array *p, wb_array *y) {
    y = target("binarycrossentropy", p, y);
    if (!y) return NULL;
    wb_array *yes = wb_mul(y, log_eps(p));
    wb_array *no = wb_mul(one_minus(y), log_eps(one_minus(p)));
    return wb_neg(wb_mean(wb_add(yes, no)));
}

wb_array *wb_logitbinarycrossentropy(wb_array *p, wb_array *y) {
    y = target("logitbinarycrossentropy", p, y);
    return y ? wb_mean(wb_sub(wb_mul(one_minus(y), p), wb_logsigmoid(p))) : NULL;
}

/* ---- classes ---- */

static bool is_integer(const wb_array *y) {
    return y->dtype == WB_I32 || y->dtype == WB_I64 || y->dtype == WB_U8;
}

/* Integers of the sizes of p without its first dimension. */
static bool are_labels(const wb_array *p, const wb_array *y) {
    return is_integer(y) && y->ndim == p->ndim - 1 &&
           memcmp(p->sizes + 1, y->sizes, (size_t)y->ndim * sizeof *y->sizes) == 0;
}

static int64_t label_at(const wb_array *y, const char *data, int64_t i) {
    switch ((wb_dtype)y->dtype) {
    case WB_I32:
        return ((const int32_t *)(const void *)data)[i];
    case WB_I64:
        return ((const int64_t *)(const void *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* True if y lies in host memory, one label after another, where looking at it costs nothing. */
static bool is_readable(const wb_array *y) {
    return wb_is_evaluated(y) && y->device == wb_cpu_device() && wb_node_is_dense(y);
}

static bool check_labels(const char *name, const wb_array *y, int64_t classes) {
    const char *data =
        (const char *)y->buffer->handle + y->offset * (int64_t)wb_dtype_size((wb_dtype)y->dtype);
    const int64_t count = wb_count(y);
    for (int64_t i = 0; i < count; i++) {
        const int64_t label = label_at(y, data, i);
        if (label >= 0 && label < classes) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: label %lld at position %lld is out of range: %lld classes, 0 to %lld",
                      name, (long long)label, (long long)i, (long long)classes,
                      (long long)classes - 1);
        return false;
    }
    return true;
}

/* -sum over classes of logs where the class is the label: as a comparison with 0, 1, 2, ..., so
 * that all of it fuses. */
static wb_array *loss_of_labels(const char *name, wb_array *logs, wb_array *y) {
    const int64_t classes = logs->sizes[0];
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < logs->ndim; i++) sizes[i] = i ? 1 : classes;
    wb_array *column = wb_unsqueeze(y, 0);
    wb_array *hit = wb_eq(wb_iota_make(WB_I32, 0, logs->ndim, sizes), column);
    wb_array *sums = wb_sum_dims(wb_select(hit, logs, wb_number(0)), 0);
    if (is_readable(y)) {
        if (!check_labels(name, y, classes)) return NULL;
    } else {
        wb_array *valid =
            wb_and(wb_ge(column, wb_number(0)), wb_lt(column, wb_number((double)classes)));
        sums = wb_select(valid, sums, wb_number((double)NAN));
    }
    return wb_neg(wb_mean(sums));
}

static wb_array *loss_of_weights(wb_array *logs, wb_array *y) {
    wb_array *zero = wb_number(0);
    wb_array *terms = wb_select(wb_eq(y, zero), zero, wb_mul(y, logs)); /* 0 log 0 = 0 */
    return wb_neg(wb_mean(wb_sum_dims(terms, 0)));
}

static wb_array *cross_entropy(const char *name, wb_array *p, wb_array *y,
                               wb_array *(*logs)(wb_array *p)) {
    if (!check_given(name, p, y) || !check_prediction(name, p)) return NULL;
    if (p->ndim == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "%s: the prediction has no dimension of classes", name);
    if (are_labels(p, y)) {
        wb_array *l = logs(p);
        return l ? loss_of_labels(name, l, y) : NULL;
    }
    if (!wb_same_sizes(p, y))
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: the prediction has sizes %s, the target %s of %s: its sizes, or "
                            "integer labels without the first",
                            name, wb_text_of(p), wb_dtype_name((wb_dtype)y->dtype), wb_text_of(y));
    y = target(name, p, y);
    return y ? loss_of_weights(logs(p), y) : NULL;
}

wb_array *wb_crossentropy(wb_array *p, wb_array *y) {
    return cross_entropy("crossentropy", p, y, log_eps);
}

wb_array *wb_logitcrossentropy(wb_array *p, wb_array *y) {
    return cross_entropy("logitcrossentropy", p, y, wb_logsoftmax);
}

wb_array *wb_accuracy(wb_array *p, wb_array *y) {
    if (!check_given("accuracy", p, y) || !check_prediction("accuracy", p)) return NULL;
    const bool labels = p->ndim > 0 && are_labels(p, y);
    if (!labels && (p->ndim == 0 || !wb_same_sizes(p, y)))
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "accuracy: the prediction has sizes %s, the target %s of %s: its sizes, "
            "or integer labels without the first",
            wb_text_of(p), wb_dtype_name((wb_dtype)y->dtype), wb_text_of(y));
    wb_array *wanted = labels ? wb_unsqueeze(y, 0) : wb_argmax(y, 0);
    return wb_mean(wb_cast(wb_eq(wb_argmax(p, 0), wanted), WB_F32));
}
