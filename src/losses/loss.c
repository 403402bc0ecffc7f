/* What losses share: settings, weights, means. */
#include "losses/loss.h"

#include <math.h>
#include <stdio.h>

#include "array/divisor.h"
#include "array/use.h"
#include "losses/labels.h"

/* ---- settings ---- */

typedef enum member_kind { REAL, INTEGER, ARRAY, AGG, FLAG } member_kind;

typedef struct member {
    unsigned bit;
    member_kind kind;
    const char *name;
    size_t offset;
    double least;  /* of a real */
    bool is_above; /* more than least, not least itself */
    double below;  /* of a real; 0: no bound */
} member;

#define MEMBER(BIT, kind, name, ...)                                                               \
    { WB_LOSS_##BIT, kind, #name, offsetof(wb_loss_desc, name), __VA_ARGS__ }

static const member members[] = {
    MEMBER(AGG, AGG, agg, 0, false, 0),
    MEMBER(WEIGHTS, ARRAY, weights, 0, false, 0),
    MEMBER(CLASS_WEIGHTS, ARRAY, class_weights, 0, false, 0),
    MEMBER(IGNORE, INTEGER, ignore, 0, false, 0),
    MEMBER(SMOOTHING, REAL, smoothing, 0, false, 1),
    MEMBER(DIM, INTEGER, dim, 0, false, 0),
    MEMBER(EPS, REAL, eps, 0, false, 0),
    MEMBER(DELTA, REAL, delta, 0, true, 0),
    MEMBER(BETA, REAL, beta, 0, false, 0),
    MEMBER(GAMMA, REAL, gamma, 0, false, 0),
    MEMBER(MARGIN, REAL, margin, 0, false, 0),
    MEMBER(SMOOTH, REAL, smooth, 0, false, 0),
    MEMBER(TEMPERATURE, REAL, temperature, 0, true, 0),
    MEMBER(NEGATIVE, ARRAY, negative, 0, false, 0),
    MEMBER(VARIANCE, ARRAY, variance, 0, false, 0),
    MEMBER(CTC, ARRAY, input_lengths, 0, false, 0),
    MEMBER(CTC, ARRAY, target_lengths, 0, false, 0),
    MEMBER(CTC, INTEGER, blank, 0, false, 0),
    MEMBER(CTC, FLAG, zero_infinity, 0, false, 0),
};

/* Whether the member differs from its default. */
static bool is_given(const wb_loss_desc *d, const member *m) {
    static const wb_loss_desc usual = {WB_DEFAULTS_loss.start_ = WB_MADE_};
    const void *at = (const char *)d + m->offset, *other = (const char *)&usual + m->offset;
    switch (m->kind) {
    case REAL:
        return *(const double *)at != *(const double *)other;
    case INTEGER:
        return *(const int64_t *)at != *(const int64_t *)other;
    case FLAG:
        return *(const bool *)at;
    case AGG:
        return *(const wb_agg *)at != WB_AGG_MEAN;
    default:
        return *(wb_array *const *)at != NULL;
    }
}

static bool is_in_range(const member *m, double x) {
    if (!isfinite(x) || (m->is_above ? x <= m->least : x < m->least)) return false;
    return m->below == 0 || x < m->below;
}

static bool check_range(const char *name, const wb_loss_desc *d, const member *m) {
    const double x = *(const double *)(const void *)((const char *)d + m->offset);
    if (is_in_range(m, x)) return true;
    if (m->below != 0)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be at least %g and below %g, got %g", name,
                      m->name, m->least, m->below, x);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be %s %g and finite, got %g", name, m->name,
                      m->is_above ? "above" : "at least", m->least, x);
    return false;
}

static void fail_foreign(const char *name, const char *given, unsigned has) {
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (has & members[i].bit)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                     members[i].name);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: this loss has no setting %s; it has %s", name, given,
                  used ? list : "none");
}

static bool check_members(const char *name, const wb_loss_desc *d, unsigned has) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const member *m = &members[i];
        if (!is_given(d, m)) continue;
        if (!(has & m->bit)) {
            fail_foreign(name, m->name, has);
            return false;
        }
        if (m->kind == REAL && !check_range(name, d, m)) return false;
    }
    if (d->agg >= WB_AGG_MEAN && d->agg <= WB_AGG_NONE) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: agg must be WB_AGG_MEAN, _SUM or _NONE, got %d", name,
                  (int)d->agg);
    return false;
}

/* ---- prediction and target ---- */

/* Checks all settings that are given, also those that the loss does not use. */
static bool may_use_arrays(const char *name, const wb_loss_desc *d) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const void *at = (const char *)d + members[i].offset;
        if (members[i].kind == ARRAY &&
            !wb_may_use_given(name, *(wb_array *const *)at, members[i].name))
            return false;
    }
    return true;
}

/* True if there are observations, but each has no elements. */
static bool has_nothing(const wb_array *p) {
    for (int d = 0; d + 1 < p->ndim; d++)
        if (p->sizes[d] == 0) return true;
    return false;
}

bool wb_check_prediction(const char *name, const wb_array *p, const wb_array *y) {
    if (!wb_may_use_array(name, p, "the prediction")) return false;
    if (!y && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: the target is NULL, as batch->y is when the loader has no .y", name);
    if (!wb_may_use_array(name, y, "the target")) return false;
    if (!wb_dtype_is_float((wb_dtype)p->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: the prediction %s is %s, not floating", name,
                      wb_text_of(p), wb_dtype_name((wb_dtype)p->dtype));
    else if (has_nothing(p))
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: an observation of the prediction must have at least one element, got "
                      "sizes %s",
                      name, wb_text_of(p));
    else
        return true;
    return false;
}

static wb_array *in_type(wb_array *x, wb_dtype dtype) {
    return x->dtype == dtype || (x->flags & WB_NODE_WEAK) ? x : wb_cast(x, dtype);
}

/* Without classes, a dim of a p without dimensions is fine. */
static bool check_dim(wb_loss *loss) {
    const int64_t dim = loss->desc->dim;
    loss->dim = (int)dim;
    if (dim == 0 || (dim > 0 && dim < loss->p->ndim)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: dim must be a dimension of the prediction %s, 0 to %d, got %lld", loss->name,
                  wb_text_of(loss->p), loss->p->ndim - 1, (long long)dim);
    return false;
}

bool wb_loss_begin(wb_loss *loss, const char *name, const wb_loss_desc *desc, unsigned has) {
    if (!wb_check_start(name, desc->start_) || !may_use_arrays(name, desc) ||
        !wb_check_prediction(name, desc->p, desc->y) || !check_members(name, desc, has))
        return false;
    *loss = (wb_loss){.name = name, .desc = desc, .y = desc->y};
    loss->dtype = (wb_dtype)desc->p->dtype;
    loss->p = wb_is_half(loss->dtype) ? wb_cast(desc->p, WB_F32) : desc->p;
    if (!loss->p) return false;
    loss->eps = desc->eps >= 0 ? desc->eps : loss->p->dtype == WB_F64 ? 0x1p-52 : 0x1p-23;
    return check_dim(loss);
}

bool wb_loss_target(wb_loss *loss) {
    wb_array *p = loss->p, *y = loss->y;
    if (y->ndim != 0 && !wb_same_sizes(p, y)) {
        const bool lacks_one = p->ndim == 2 && y->ndim == 1 && p->sizes[0] == 1,
                   has_one = p->ndim == 1 && y->ndim == 2 && y->sizes[0] == 1;
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: the prediction has sizes %s, the target %s; losses do not broadcast%s",
                      loss->name, wb_text_of(p), wb_text_of(y),
                      lacks_one ? ": wb_reshape(y, 1, -1)"
                      : has_one ? ": wb_reshape(y, -1)"
                                : "");
        return false;
    }
    loss->y = in_type(y, (wb_dtype)p->dtype);
    return loss->y != NULL;
}

wb_array *wb_loss_other(const wb_loss *loss, const char *what, wb_array *x) {
    const wb_array *p = loss->p;
    if (!x) return wb_fail_null(WB_ERROR_ARGUMENT, "%s: .%s must be given", loss->name, what);
    bool fits = x->ndim == p->ndim || x->ndim == 0;
    for (int i = 0; fits && i < x->ndim; i++) fits = x->sizes[i] == p->sizes[i] || x->sizes[i] == 1;
    if (!fits)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "%s: %s must have the sizes of the prediction, %s, or 1, got %s",
                            loss->name, what, wb_text_of(p), wb_text_of(x));
    return in_type(x, (wb_dtype)p->dtype);
}

/* ---- weights ---- */

static wb_array *is_finite(wb_array *x) { return LT(ABS(x), NUM((double)INFINITY)); }

wb_array *wb_loss_times(wb_array *w, wb_array *x) {
    if (!w || !x) return NULL;
    if (w->dtype == WB_BOOL) return SELECT(w, x, NUM(0));
    return MUL(w, SELECT(OR(NE(w, NUM(0)), is_finite(x)), x, NUM(0)));
}

static wb_array *both(wb_array *a, wb_array *b) { return a && b ? MUL(a, b) : a ? a : b; }
static wb_array *both_masks(wb_array *a, wb_array *b) { return a && b ? AND(a, b) : a ? a : b; }

wb_array *wb_loss_class_weights(const wb_loss *loss) {
    wb_array *w = loss->desc->class_weights;
    const wb_array *p = loss->p;
    if (!w) return NULL;
    if (p->ndim == 0 || w->ndim != 1 || w->sizes[0] != p->sizes[loss->dim])
        return wb_fail_null(
            WB_ERROR_SHAPE,
            "%s: class_weights must have one number for each class (dimension %d of "
            "the prediction %s), got %s",
            loss->name, loss->dim, wb_text_of(p), wb_text_of(w));
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; i < p->ndim; i++) sizes[i] = i == loss->dim ? w->sizes[0] : 1;
    return wb_reshape_make(in_type(w, (wb_dtype)p->dtype), p->ndim, sizes);
}

wb_array *wb_loss_not_ignored(const wb_loss *loss, wb_array *y) {
    const int64_t label = loss->desc->ignore;
    if (label == INT64_MIN) return NULL;
    const int64_t most = y->dtype == WB_U8 ? 255 : y->dtype == WB_BOOL ? 1 : INT64_MAX;
    if (most < INT64_MAX && (label < 0 || label > most)) return NULL; /* no element has it */
    return NE(y, NUM((double)label));
}

/* The desc's weights, as sizes of the terms' last dimensions; NULL with the error. */
static wb_array *given_weights(const wb_loss *loss, const wb_array *terms) {
    wb_array *w = loss->desc->weights;
    const int missing = terms->ndim - w->ndim;
    bool fits = missing >= 0;
    int64_t sizes[WB_MAX_DIMS];
    for (int i = 0; fits && i < terms->ndim; i++) {
        sizes[i] = i < missing ? 1 : w->sizes[i - missing];
        fits = sizes[i] == terms->sizes[i] || sizes[i] == 1;
    }
    if (fits && w->dtype != WB_BOOL) w = in_type(w, (wb_dtype)terms->dtype);
    if (fits) return wb_reshape_make(w, terms->ndim, sizes);
    return wb_fail_null(WB_ERROR_SHAPE,
                        "%s: weights must have the sizes of the last dimensions of the terms, "
                        "which are %s, got %s",
                        loss->name, wb_text_of(terms), wb_text_of(loss->desc->weights));
}

/* Collects the masks and weights of the terms, from the loss and its desc. False with the error. */
typedef struct weights {
    wb_array *mask, *real; /* NULL: none */
} weights;

static bool take_weights(const wb_loss *loss, const wb_array *terms, weights *w) {
    *w = (weights){loss->mask, loss->weights};
    if (!loss->desc->weights) return true;
    wb_array *given = given_weights(loss, terms);
    if (!given) return false;
    if (given->dtype == WB_BOOL)
        w->mask = both_masks(w->mask, given);
    else
        w->real = both(w->real, given);
    return w->mask || w->real;
}

bool wb_loss_begin_elements(wb_loss *loss) {
    weights w;
    loss->weights = wb_loss_class_weights(loss);
    if (loss->desc->class_weights && !loss->weights) return false;
    loss->mask = wb_loss_not_ignored(loss, loss->y);
    if (!wb_loss_target(loss) || !take_weights(loss, loss->p, &w)) return false;
    if (!w.mask) return true;
    loss->p = SELECT(w.mask, loss->p, NUM(0.5));
    loss->y = SELECT(w.mask, loss->y, NUM(0.5));
    return loss->p && loss->y;
}

static wb_array *by_weights(const weights *w, wb_array *l) {
    if (w->real) l = wb_loss_times(w->real, l);
    return w->mask ? wb_loss_times(w->mask, l) : l;
}

/* ---- sums and means ---- */

/* What the mean is divided by: each weight counts once for each term that it belongs to. */
static wb_array *divisor(const weights *w, const wb_array *l, wb_array *inside) {
    wb_array *all = both(w->real, inside);
    if (w->mask) all = all ? wb_loss_times(w->mask, all) : wb_cast(w->mask, (wb_dtype)l->dtype);
    return wb_sum(wb_expand_make(all, l->ndim, l->sizes));
}

/* sum(w l) / sum(w); 0 where nothing counts. */
static wb_array *weighted_mean(wb_array *sum, wb_array *total) {
    wb_divisor_note(total);
    return DIV(sum, SELECT(EQ(total, NUM(0)), NUM(1), total));
}

/* 0 where there is nothing. */
static wb_array *mean(wb_array *l) { return wb_count(l) ? wb_mean(l) : wb_sum(l); }

wb_array *wb_loss_aggregate(const wb_loss *loss, wb_array *l, wb_array *inside) {
    weights w;
    if (!l || !take_weights(loss, l, &w)) return NULL;
    const bool is_weighted = w.mask || w.real || inside;
    wb_array *terms = by_weights(&w, l);
    if (loss->desc->agg == WB_AGG_SUM) terms = wb_sum(terms);
    if (loss->desc->agg == WB_AGG_MEAN)
        terms = is_weighted ? weighted_mean(wb_sum(terms), divisor(&w, l, inside)) : mean(terms);
    return terms && terms->dtype != loss->dtype ? wb_cast(terms, loss->dtype) : terms;
}

wb_array *wb_loss_sum(const wb_loss *loss, wb_array *l) {
    weights w;
    return l && take_weights(loss, l, &w) ? wb_sum(by_weights(&w, l)) : NULL;
}
