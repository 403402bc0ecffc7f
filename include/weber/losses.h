/* weber/losses.h: losses, and accuracy.
 *
 * A loss compares a prediction p with a target y. It is one number, of p's floating type, and can
 * be differentiated by wb_gradient_of.
 *
 *     wb_array *l = wb_logitcrossentropy(wb_apply(model, x), labels);  // (10, N), integers (N)
 *     wb_array *m = wb_mse(p, y, .weights = mask, .agg = WB_AGG_SUM);  // mask (N), bool
 *
 * Sizes of p and y must agree, nothing is broadcast (the error WB_ERROR_SHAPE names both); y may
 * also be a number without dimensions. y is converted to p's type. The loss of a batch without
 * observations, (K, 0), is 0. f16 and bf16 are computed in f32, and the result is converted back.
 * Names and defaults are Flux's, and so are formulas without another source. */
#ifndef WEBER_LOSSES_H
#define WEBER_LOSSES_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the terms l of a loss are combined, with weights w (default 1). There is a term for each
 * element of p or, if the loss sums over classes or features, for each position along the other
 * dimensions. */
typedef enum wb_agg {
    WB_AGG_MEAN, /* the mean sum(w l) / sum(w); 0 if all weights are 0 */
    WB_AGG_SUM,  /* sum(w l) */
    WB_AGG_NONE  /* w l: p's sizes, but 1 along a dimension that is summed */
} wb_agg;

/* Settings of all losses; 0 means "not given". A setting that a loss does not have is an error. */
typedef struct wb_loss_desc {
    WB_START_MEMBER;
    wb_array *p;       /* the prediction (K, ..., N) */
    wb_array *y;       /* the target */
    wb_agg agg;        /* default WB_AGG_MEAN */
    wb_array *weights; /* w: numbers or a mask (bool), with the sizes of the last dimensions of the
                          terms, so that (N) weighs observations. A mask selects terms: those that
                          it leaves out may be NaN, and in losses with a term for each element they
                          have no gradient. The derivative by a weight is its term, also where the
                          weight is 0; weight 0 times a term that is not finite is 0 */
    wb_array *class_weights; /* (K), one for each position along dim. If a loss sums over classes,
                                w is the weight of the target's class */
    /* terms where y equals this are left out; default: none. For crossentropies it is an integer
     * label, which need not be a class: -100 */
    int64_t ignore WB_DEFAULT(INT64_MIN);
    double smoothing; /* a, below 1: y becomes y (1 - a) + a / K; in binary losses K = 2 */
    int64_t dim;      /* dimension of classes or features; default 0 */
    /* keeps logarithms finite; default (-1): machine epsilon of p's type (for f16 and bf16, of
     * f32); for gaussian_nll 1e-6 */
    double eps WB_DEFAULT(-1);

    double delta WB_DEFAULT(1);         /* huber */
    double beta WB_DEFAULT(0.7);        /* tversky: weight of wrong predictions */
    double gamma WB_DEFAULT(2);         /* focal losses: the exponent */
    double margin WB_DEFAULT(1);        /* siamese, triplet: distance */
    double smooth WB_DEFAULT(1);        /* dice */
    double temperature WB_DEFAULT(0.1); /* infonce */
    wb_array *negative;                 /* triplet: examples unlike p; sizes of p */
    wb_array *variance;                 /* gaussian_nll: sizes of p, or 1 in some dimensions */

    wb_array *input_lengths;      /* ctc: (N), integers: steps of each sequence; default all */
    wb_array *target_lengths;     /* ctc: (N), integers: labels of each sequence; default all */
    int64_t blank WB_DEFAULT(-1); /* ctc: the blank class; -1: the last, -2: the one before it */
    bool zero_infinity;           /* ctc: an impossible target's loss is 0 */
} wb_loss_desc;

/* Each loss is a macro that fills in a wb_loss_desc: wb_huber_loss(p, y, .delta = 0.5). There is
 * also a function of p and y with the same name, for C++ and for function pointers. */
#define WB_LOSS(name)                                                                              \
    WB_API wb_array *(wb_##name)(wb_array * p, wb_array * y);                                      \
    WB_API wb_array *wb_##name##_make(wb_loss_desc desc);

/* ---- a term for each element ---- */

/* mse:   (p - y)^2              mae: |p - y|
 * msle:  log((p + eps) / (y + eps))^2
 * huber_loss:          d^2 / 2 with d = |p - y|; delta (d - delta / 2) where d >= delta
 * poisson_loss:        p - y log p, with 0 log 0 = 0; p is the rate
 * hinge_loss:          max(0, 1 - p y); y is 1 or -1
 * squared_hinge_loss:  max(0, 1 - p y)^2
 * binarycrossentropy:      -y log(p + eps) - (1 - y) log(1 - p + eps), with 0 log 0 = 0
 * logitbinarycrossentropy: (1 - y) p - logsigmoid(p): of logits; numerically stable
 * binary_focal_loss:   -(1 - q)^gamma log(q + eps), q = y p + (1 - y) (1 - p)   (Lin and others
 *                      2017); 1 - q below 0 counts as 0
 * siamese_contrastive_loss: (1 - y) p^2 + y max(0, margin - p)^2; p is a distance, y is 1 where
 *                      the pair is unlike   (Hadsell and others 2006)
 * gaussian_nll_loss:   (log v + (p - y)^2 / v) / 2, v = max(variance, eps), eps 1e-6: the negative
 *                      log-likelihood without log(2 pi) / 2, as PyTorch has it
 *
 * smoothing: for the binary losses. eps: for msle, losses with logarithms, and gaussian_nll. */
WB_LOSS(mse)
WB_LOSS(mae)
WB_LOSS(msle)
WB_LOSS(huber_loss)
WB_LOSS(poisson_loss)
WB_LOSS(hinge_loss)
WB_LOSS(squared_hinge_loss)
WB_LOSS(binarycrossentropy)
WB_LOSS(logitbinarycrossentropy)
WB_LOSS(binary_focal_loss)
WB_LOSS(siamese_contrastive_loss)
WB_LOSS(gaussian_nll_loss)

/* ---- a term for each column of classes ---- */

/* Classes lie along dim. y is one-hot or probabilities, of p's sizes, or integer labels 0 to K - 1
 * of p's sizes without dim. Labels that are computed already are checked at the call: a label out
 * of range is an error that names its position. Other labels are checked when they are computed,
 * and the next read reports the error.
 *
 * crossentropy:      -sum_k y log(p + eps), with 0 log 0 = 0
 * logitcrossentropy: -sum_k y logsoftmax(p): of logits; numerically stable
 * focal_loss:        -sum_k y (1 - p)^gamma log(p + eps)
 * kldivergence:      sum_k y log y - y log(p + eps); no labels, no smoothing */
WB_LOSS(crossentropy)
WB_LOSS(logitcrossentropy)
WB_LOSS(focal_loss)
WB_LOSS(kldivergence)

/* ---- one term for the whole batch ---- */

/* dice_coeff_loss: 1 - (2 sum(y p) + smooth) / (sum p^2 + sum y^2 + smooth)
 * tversky_loss:    1 - (sum(y p) + 1) / (sum(y p + beta (1 - y) p + (1 - beta) y (1 - p)) + 1)
 *
 * The sums are over all elements of the batch, each with its weight; there is no .agg. */
WB_LOSS(dice_coeff_loss)
WB_LOSS(tversky_loss)

/* ---- a term for each pair of vectors, which lie along dim ---- */

/* cosine_loss:  1 - cos(p, y), lengths below 1e-8 counting as 1e-8
 * triplet_loss: max(0, |p - y| - |p - negative| + margin), distances of at least 1e-6   (Schroff
 *               and others 2015)
 * infonce_loss: p and y (F, N): -log(exp(c_ii / temperature) / sum_j exp(c_ij / temperature)) for
 *               each column i, c_ij = cos(p_i, y_j): y_i belongs to p_i, all other columns
 *               do not   (van den Oord and others 2018); dim is 0 */
WB_LOSS(cosine_loss)
WB_LOSS(triplet_loss)
WB_LOSS(infonce_loss)

/* ---- a term for each sequence ---- */

/* Connectionist temporal classification (Graves and others 2006): minus the logarithm of the
 * probability of the labels, summed over all alignments of steps with labels: each label takes one
 * step or more, in order, with any number of blanks before, between and after; equal neighbouring
 * labels have at least one blank between them.
 *
 * p  (K, T, N) or (K, T), logits        y  (U, N) or (U), integers 0 to K - 1 but blank; U may be 0
 *
 * If a target has no alignment (too many labels for the steps), its term is infinity and has no
 * gradient. agg works as for other losses, while PyTorch's mean first divides each term by its
 * target's length. Steps and labels beyond a sequence's length are ignored. Labels that are
 * computed already are checked at the call, others when they are computed. Computed step by step,
 * in logarithms, by wb_scan. */
WB_LOSS(ctc_loss)

#ifndef __cplusplus
#define wb_mse(...)                      WB_LOSS_OF(mse, __VA_ARGS__)
#define wb_mae(...)                      WB_LOSS_OF(mae, __VA_ARGS__)
#define wb_msle(...)                     WB_LOSS_OF(msle, __VA_ARGS__)
#define wb_huber_loss(...)               WB_LOSS_OF(huber_loss, __VA_ARGS__)
#define wb_poisson_loss(...)             WB_LOSS_OF(poisson_loss, __VA_ARGS__)
#define wb_hinge_loss(...)               WB_LOSS_OF(hinge_loss, __VA_ARGS__)
#define wb_squared_hinge_loss(...)       WB_LOSS_OF(squared_hinge_loss, __VA_ARGS__)
#define wb_binarycrossentropy(...)       WB_LOSS_OF(binarycrossentropy, __VA_ARGS__)
#define wb_logitbinarycrossentropy(...)  WB_LOSS_OF(logitbinarycrossentropy, __VA_ARGS__)
#define wb_binary_focal_loss(...)        WB_LOSS_OF(binary_focal_loss, __VA_ARGS__)
#define wb_siamese_contrastive_loss(...) WB_LOSS_OF(siamese_contrastive_loss, __VA_ARGS__)
#define wb_gaussian_nll_loss(...)        WB_LOSS_OF(gaussian_nll_loss, __VA_ARGS__)
#define wb_crossentropy(...)             WB_LOSS_OF(crossentropy, __VA_ARGS__)
#define wb_logitcrossentropy(...)        WB_LOSS_OF(logitcrossentropy, __VA_ARGS__)
#define wb_focal_loss(...)               WB_LOSS_OF(focal_loss, __VA_ARGS__)
#define wb_kldivergence(...)             WB_LOSS_OF(kldivergence, __VA_ARGS__)
#define wb_dice_coeff_loss(...)          WB_LOSS_OF(dice_coeff_loss, __VA_ARGS__)
#define wb_tversky_loss(...)             WB_LOSS_OF(tversky_loss, __VA_ARGS__)
#define wb_cosine_loss(...)              WB_LOSS_OF(cosine_loss, __VA_ARGS__)
#define wb_triplet_loss(...)             WB_LOSS_OF(triplet_loss, __VA_ARGS__)
#define wb_infonce_loss(...)             WB_LOSS_OF(infonce_loss, __VA_ARGS__)
#define wb_ctc_loss(...)                 WB_LOSS_OF(ctc_loss, __VA_ARGS__)
#define WB_LOSS_OF(name, ...)            WB_MAKE(wb_##name##_make, loss, __VA_ARGS__)
#endif

/* ---- targets ---- */

/* wb_label_smoothing: y (1 - a) + a / K for one-hot y (K, ...), classes along dimension 0.
 * wb_binary_label_smoothing: y (1 - a) + a / 2. a must be above 0 and below 1. A bool or integer y
 * becomes f32. The gradient goes to y. */
WB_API wb_array *wb_label_smoothing(wb_array *y, double a);
WB_API wb_array *wb_binary_label_smoothing(wb_array *y, double a);

/* ---- accuracy ---- */

/* The fraction of columns in which the largest element of p (K, ...) has the same position as that
 * of y (K, ...), or the position given by the label y (...): one number, f32. It is computed only
 * when it is read (wb_item), so you can sum several first. A column with a NaN is wrong. Labels are
 * checked as in losses. */
WB_API wb_array *wb_accuracy(wb_array *p, wb_array *y);

#ifdef __cplusplus
}
#endif
#endif
