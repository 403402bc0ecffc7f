/* Losses of classes, label smoothing, accuracy. */
#include <math.h>

#include <weber/device.h>

#include "array/use.h"
#include "losses/labels.h"
#include "losses/loss.h"

/* ---- labels as a target ---- */

/* True where the class is the label: a comparison with 0, 1, 2, ..., so that all of it fuses. */
static wb_array *hits(const wb_loss *loss, wb_array *column) {
    const wb_array *p = loss->p;
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < p->ndim; i++) sizes[i] = i == loss->dim ? p->sizes[i] : 1;
    return EQ(wb_iota_make(WB_I32, loss->dim, p->ndim, sizes), column);
}

/* The labels; computing them is an error where one is not a class. */
static wb_array *guarded(const wb_loss *loss, wb_array *y) {
    wb_array *counts = wb_loss_not_ignored(loss, y);
    wb_array *looked_at = counts ? SELECT(counts, y, NUM(0)) : y;
    return ADD(y, wb_labels_guard(loss->name, looked_at, loss->p->sizes[loss->dim]));
}

static wb_array *of_labels(wb_loss *loss, wb_array *logs, wb_array *weights) {
    const int64_t classes = loss->p->sizes[loss->dim];
    const double a = loss->desc->smoothing;
    if (!wb_is_readable(loss->y))
        loss->y = guarded(loss, loss->y);
    else if (!wb_check_labels(loss->name, loss->y, classes, loss->desc->ignore))
        return NULL;
    wb_array *column = wb_unsqueeze(loss->y, loss->dim);
    if (!column) return NULL;
    wb_array *hit = hits(loss, column);
    loss->mask = wb_loss_not_ignored(loss, column);
    if (weights) logs = wb_loss_times(weights, logs);
    wb_array *rest = a == 0 ? NUM(0) : MUL(logs, NUM(a / (double)classes));
    wb_array *own = a == 0 ? logs : MUL(logs, NUM(1 - a + a / (double)classes));
    wb_array *l = wb_sum_dims(SELECT(hit, own, rest), loss->dim);
    wb_array *inside = weights ? wb_sum_dims(SELECT(hit, weights, NUM(0)), loss->dim) : NULL;
    return wb_loss_aggregate(loss, NEG(l), inside);
}

/* ---- probabilities as a target ---- */

static wb_array *of_probabilities(wb_loss *loss, wb_array *logs, wb_array *weights,
                                  bool with_entropy) {
    const double a = loss->desc->smoothing;
    if (loss->desc->ignore != INT64_MIN)
        return wb_fail_null(
            WB_ERROR_ARGUMENT, "%s: ignore needs integer labels, but the target is %s of sizes %s",
            loss->name, wb_dtype_name((wb_dtype)loss->y->dtype), wb_text_of(loss->y));
    if (!wb_loss_target(loss)) return NULL;
    wb_array *y = loss->y, *inside = NULL;
    if (weights) {
        inside = wb_sum_dims(MUL(y, weights), loss->dim);
        logs = wb_loss_times(weights, logs);
    }
    if (a != 0) y = ADD(MUL(y, NUM(1 - a)), NUM(a / (double)loss->p->sizes[loss->dim]));
    wb_array *terms = wb_loss_times(y, logs);
    if (with_entropy) {
        wb_array *own = wb_xlogx(y);
        terms = SUB(terms, weights ? wb_loss_times(weights, own) : own);
    }
    return wb_loss_aggregate(loss, NEG(wb_sum_dims(terms, loss->dim)), inside);
}

/* ---- the losses ---- */

static bool has_classes(const wb_loss *loss) {
    if (loss->p->ndim > 0) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: the prediction has no dimension of classes", loss->name);
    return false;
}

/* Labels that are not integers. */
static bool are_fractions(const wb_loss *loss) {
    wb_array labels = *loss->y;
    labels.dtype = WB_I32;
    return wb_are_labels(loss->p, &labels, loss->dim);
}

static wb_array *fail_target(const wb_loss *loss) {
    const char *type = wb_dtype_name((wb_dtype)loss->y->dtype);
    if (are_fractions(loss))
        return wb_fail_null(WB_ERROR_DTYPE,
                            "%s: labels must be integers, got %s: wb_cast(y, "
                            "WB_I32)",
                            loss->name, type);
    return wb_fail_null(WB_ERROR_SHAPE,
                        "%s: the prediction has sizes %s, so the target must have these, or be "
                        "integer labels without dimension %d, got %s of %s",
                        loss->name, wb_text_of(loss->p), loss->dim, type, wb_text_of(loss->y));
}

static wb_array *cross_entropy(wb_loss *loss, wb_array *(*logs)(const wb_loss *loss)) {
    if (!has_classes(loss)) return NULL;
    const bool labels = wb_are_labels(loss->p, loss->y, loss->dim);
    if (!labels && !wb_same_sizes(loss->p, loss->y)) return fail_target(loss);
    wb_array *weights = wb_loss_class_weights(loss);
    if (loss->desc->class_weights && !weights) return NULL;
    wb_array *l = logs(loss);
    if (!l) return NULL;
    return labels ? of_labels(loss, l, weights) : of_probabilities(loss, l, weights, false);
}

static wb_array *log_eps(const wb_loss *loss) { return LOG(ADD(loss->p, NUM(loss->eps))); }
static wb_array *logsoftmax(const wb_loss *loss) { return wb_logsoftmax_dims(loss->p, loss->dim); }

static wb_array *focal_logs(const wb_loss *loss) {
    const double gamma = loss->desc->gamma;
    wb_array *l = log_eps(loss);
    return gamma == 0 ? l : MUL(wb_pow_number(wb_relu(SUB(NUM(1), loss->p)), gamma), l);
}

enum { CLASSES = WB_LOSS_ELEMENTS | WB_LOSS_SMOOTHING };

static wb_array *of_chances(wb_loss *loss) { return cross_entropy(loss, log_eps); }
WB_LOSS_FUNCTIONS(crossentropy, CLASSES | WB_LOSS_EPS, of_chances)

static wb_array *of_logits(wb_loss *loss) { return cross_entropy(loss, logsoftmax); }
WB_LOSS_FUNCTIONS(logitcrossentropy, CLASSES, of_logits)

static wb_array *focal(wb_loss *loss) { return cross_entropy(loss, focal_logs); }
WB_LOSS_FUNCTIONS(focal_loss, CLASSES | WB_LOSS_EPS | WB_LOSS_GAMMA, focal)

static wb_array *divergence(wb_loss *loss) {
    if (!has_classes(loss)) return NULL;
    wb_array *weights = wb_loss_class_weights(loss);
    if (loss->desc->class_weights && !weights) return NULL;
    return of_probabilities(loss, log_eps(loss), weights, true);
}
WB_LOSS_FUNCTIONS(kldivergence, WB_LOSS_TERMS | WB_LOSS_CLASS_WEIGHTS | WB_LOSS_DIM | WB_LOSS_EPS,
                  divergence)

/* ---- label smoothing ---- */

/* classes 0: as many as y has rows. */
static wb_array *smooth(const char *name, wb_array *y, double a, double classes) {
    if (!wb_may_use_array(name, y, "y")) return NULL;
    if (classes == 0) classes = (double)wb_size(y, 0);
    if (!(a > 0 && a < 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: a must be above 0 and below 1, got %g", name,
                            a);
    if (!wb_dtype_is_float((wb_dtype)y->dtype)) y = wb_cast(y, WB_F32);
    return ADD(MUL(y, NUM(1 - a)), NUM(a / classes));
}

wb_array *wb_label_smoothing(wb_array *y, double a) { return smooth("label_smoothing", y, a, 0); }

wb_array *wb_binary_label_smoothing(wb_array *y, double a) {
    return smooth("binary_label_smoothing", y, a, 2);
}

/* ---- accuracy ---- */

wb_array *wb_accuracy(wb_array *p, wb_array *y) {
    if (!wb_check_prediction("accuracy", p, y)) return NULL;
    const bool labels = p->ndim > 0 && wb_are_labels(p, y, 0);
    if (!labels && (p->ndim == 0 || !wb_same_sizes(p, y)))
        return fail_target(&(wb_loss){.name = "accuracy", .p = p, .y = y});
    if (labels && wb_is_readable(y) && !wb_check_labels("accuracy", y, p->sizes[0], 0)) return NULL;
    wb_array *wanted = labels ? wb_unsqueeze(y, 0) : wb_argmax(y, 0);
    wb_array *is_right = AND(EQ(wb_argmax(p, 0), wanted), wb_is_answer(p));
    is_right = wb_cast(is_right, WB_F32);
    return is_right && wb_count(is_right) == 0 ? wb_sum(is_right) : wb_mean(is_right);
}
