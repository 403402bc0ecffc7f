/* Losses with a term for each element. */
#include "losses/loss.h"

static wb_array *of_terms(wb_loss *loss, wb_array *(*terms)(const wb_loss *loss)) {
    if (!wb_loss_begin_elements(loss)) return NULL;
    const double a = loss->desc->smoothing;
    if (a != 0) loss->y = ADD(MUL(loss->y, NUM(1 - a)), NUM(a / 2));
    return wb_loss_aggregate(loss, terms(loss), NULL);
}

#define ELEMENTWISE(name, members, terms)                                                          \
    static wb_array *name##_of(wb_loss *loss) { return of_terms(loss, terms); }                    \
    WB_LOSS_FUNCTIONS(name, WB_LOSS_ELEMENTS | (members), name##_of)

static wb_array *one_minus(wb_array *x) { return SUB(NUM(1), x); }
static wb_array *log_eps(const wb_loss *loss, wb_array *x) { return LOG(ADD(x, NUM(loss->eps))); }
static wb_array *difference(const wb_loss *loss) { return SUB(loss->p, loss->y); }

static wb_array *squares(const wb_loss *loss) { return SQUARE(difference(loss)); }
ELEMENTWISE(mse, 0, squares)

static wb_array *distances(const wb_loss *loss) { return ABS(difference(loss)); }
ELEMENTWISE(mae, 0, distances)

/* the quotient's logarithm: a difference of logarithms would cancel */
static wb_array *log_quotients(const wb_loss *loss) {
    wb_array *eps = NUM(loss->eps);
    return SQUARE(LOG(DIV(ADD(loss->p, eps), ADD(loss->y, eps))));
}
ELEMENTWISE(msle, WB_LOSS_EPS, log_quotients)

static wb_array *huber(const wb_loss *loss) {
    const double delta = loss->desc->delta;
    wb_array *d = distances(loss), *near = MIN(d, NUM(delta));
    return MUL(near, SUB(d, MUL(near, NUM(0.5))));
}
ELEMENTWISE(huber_loss, WB_LOSS_DELTA, huber)

static wb_array *poisson(const wb_loss *loss) { return SUB(loss->p, wb_xlogy(loss->y, loss->p)); }
ELEMENTWISE(poisson_loss, 0, poisson)

static wb_array *hinge(const wb_loss *loss) { return wb_relu(one_minus(MUL(loss->p, loss->y))); }
ELEMENTWISE(hinge_loss, 0, hinge)

static wb_array *squared_hinge(const wb_loss *loss) { return SQUARE(hinge(loss)); }
ELEMENTWISE(squared_hinge_loss, 0, squared_hinge)

static wb_array *binary(const wb_loss *loss) {
    wb_array *eps = NUM(loss->eps);
    wb_array *yes = wb_xlogy(loss->y, ADD(loss->p, eps));
    wb_array *no = wb_xlogy(one_minus(loss->y), ADD(one_minus(loss->p), eps));
    return NEG(ADD(yes, no));
}
ELEMENTWISE(binarycrossentropy, WB_LOSS_EPS | WB_LOSS_SMOOTHING, binary)

/* For p below 0 softplus(p) - y p, else softplus(-p) + (1 - y) p: the same, and no infinities meet.
 * */
static wb_array *logit_binary(const wb_loss *loss) {
    wb_array *p = loss->p, *is_below = LT(p, NUM(0));
    wb_array *n = SELECT(is_below, p, NEG(p)), *w = SELECT(is_below, loss->y, one_minus(loss->y));
    return w ? SUB(SOFTPLUS(n), MUL_NO_NAN(n, wb_cast(w, (wb_dtype)p->dtype))) : NULL;
}
ELEMENTWISE(logitbinarycrossentropy, WB_LOSS_SMOOTHING, logit_binary)

static wb_array *binary_focal(const wb_loss *loss) {
    const double gamma = loss->desc->gamma;
    wb_array *q = ADD(MUL(loss->y, loss->p), MUL(one_minus(loss->y), one_minus(loss->p)));
    wb_array *l = NEG(log_eps(loss, q));
    return gamma == 0 ? l : MUL(wb_pow_number(wb_relu(one_minus(q)), gamma), l);
}
ELEMENTWISE(binary_focal_loss, WB_LOSS_EPS | WB_LOSS_SMOOTHING | WB_LOSS_GAMMA, binary_focal)

static wb_array *siamese(const wb_loss *loss) {
    wb_array *gap = wb_relu(SUB(NUM(loss->desc->margin), loss->p));
    wb_array *near = MUL_NO_NAN(loss->p, MUL_NO_NAN(loss->p, one_minus(loss->y)));
    return ADD(near, MUL(loss->y, SQUARE(gap)));
}
ELEMENTWISE(siamese_contrastive_loss, WB_LOSS_MARGIN, siamese)

static wb_array *gaussian(const wb_loss *loss) {
    wb_array *variance = wb_loss_other(loss, "variance", loss->desc->variance);
    if (!variance) return NULL;
    wb_array *v = MAX(variance, NUM(loss->desc->eps >= 0 ? loss->desc->eps : 1e-6));
    return MUL(ADD(LOG(v), DIV(squares(loss), v)), NUM(0.5));
}
ELEMENTWISE(gaussian_nll_loss, WB_LOSS_EPS | WB_LOSS_VARIANCE, gaussian)

/* ---- one number of all ---- */

/* 1 - (times sum(above) + extra) / (sum(below) + extra). */
static wb_array *overlap(wb_loss *loss, wb_array *(*above)(const wb_loss *),
                         wb_array *(*below)(const wb_loss *), double times, double extra) {
    if (!wb_loss_begin_elements(loss)) return NULL;
    wb_array *n = ADD(MUL(wb_loss_sum(loss, above(loss)), NUM(times)), NUM(extra));
    wb_array *l = one_minus(DIV(n, ADD(wb_loss_sum(loss, below(loss)), NUM(extra))));
    return l && l->dtype != loss->dtype ? wb_cast(l, loss->dtype) : l;
}

enum { OVERLAP = (WB_LOSS_ELEMENTS & ~WB_LOSS_AGG) };

static wb_array *products(const wb_loss *loss) { return MUL(loss->y, loss->p); }
static wb_array *sizes(const wb_loss *loss) { return ADD(SQUARE(loss->p), SQUARE(loss->y)); }

static wb_array *dice(wb_loss *loss) {
    return overlap(loss, products, sizes, 2, loss->desc->smooth);
}
WB_LOSS_FUNCTIONS(dice_coeff_loss, OVERLAP | WB_LOSS_SMOOTH, dice)

static wb_array *with_mistakes(const wb_loss *loss) {
    const double beta = loss->desc->beta;
    wb_array *wrongly = MUL(MUL(one_minus(loss->y), loss->p), NUM(beta));
    wb_array *missed = MUL(MUL(loss->y, one_minus(loss->p)), NUM(1 - beta));
    return ADD(products(loss), ADD(wrongly, missed));
}

static wb_array *tversky(wb_loss *loss) { return overlap(loss, products, with_mistakes, 1, 1); }
WB_LOSS_FUNCTIONS(tversky_loss, OVERLAP | WB_LOSS_BETA, tversky)
