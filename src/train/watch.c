/* Watches scores: early stopping and lower rates when they do not improve. */
#include <math.h>

#include <weber/train.h>

#include "base/clock.h"
#include "base/count.h"
#include "optimise/optimiser.h"
#include "train/training.h"

bool wb_throttle_passes(wb_throttle *throttle) {
    if (!throttle) return wb_fail_argument_null("wb_throttle_passes", "the throttle");
    const double t = wb_clock();
    const bool passes = !throttle->has_begun || t - throttle->last >= throttle->seconds;
    throttle->has_rest = !passes;
    if (passes) throttle->last = t, throttle->has_begun = true;
    return passes;
}

bool wb_throttle_has_rest(wb_throttle *throttle) {
    if (!throttle) return wb_fail_argument_null("wb_throttle_has_rest", "the throttle");
    const bool rest = throttle->has_rest;
    throttle->has_rest = false;
    return rest;
}

bool wb_patience_is_over(wb_patience *patience, bool is_bad) {
    if (!patience) return wb_fail_argument_null("wb_patience_is_over", "the patience");
    patience->count = is_bad ? wb_plus(patience->count, 1) : 0;
    return patience->n > 0 && patience->count >= patience->n;
}

/* NaN is never better, and equal infinities are equal. */
static double better_by(const wb_early_stopping *w, double score) {
    if (!w->has_begun) return isnan(score) ? score : (double)INFINITY;
    return score == w->best ? 0 : w->best - score;
}

bool wb_early_stopping_ends(wb_early_stopping *w, double score) {
    if (!w) return wb_fail_argument_null("wb_early_stopping_ends", "the watch");
    const double better = better_by(w, score);
    wb_patience rest = {w->patience, w->bad};
    const bool ends = wb_patience_is_over(&rest, !(better >= w->min_delta));
    w->bad = rest.count;
    if (better >= 0) w->best = score, w->has_begun = true;
    return ends;
}

bool wb_standstill_is_over(wb_standstill *w, double score) {
    if (!w) return wb_fail_argument_null("wb_standstill_is_over", "the watch");
    const double before = w->has_begun ? w->last : w->init_score;
    const double moved = score == before ? 0 : fabs(score - before);
    wb_patience rest = {w->width, w->still};
    const bool is_over =
        wb_patience_is_over(&rest, moved < (w->min_dist != 0 ? w->min_dist : 1e-6));
    w->still = rest.count, w->last = score, w->has_begun = true;
    return is_over;
}

wb_status wb_plateau_check(const char *function, const wb_plateau *p) {
    if (p->start_ != WB_MADE_)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the plateau lacks its defaults: write wb_plateau p = "
                       "WB_PLATEAU(.patience = 3)",
                       function);
    if (!(p->factor > 0 && p->factor < 1))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: factor must be above 0 and below 1, got %g",
                       function, p->factor);
    if (p->patience >= 0 && p->cooldown >= 0 && p->least >= 0 && p->threshold >= 0) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "%s: patience, cooldown, threshold and least must not be negative, got "
                   "%lld, %lld, %g and %g",
                   function, (long long)p->patience, (long long)p->cooldown, p->threshold,
                   p->least);
}

/* If the best score is infinite, the threshold does not apply. */
static bool is_better(const wb_plateau *p, double score) {
    const double gap = isinf(p->best) ? 0 : p->threshold * fabs(p->best);
    return p->has_begun ? score < p->best - gap : !isnan(score);
}

wb_status wb_plateau_step(wb_plateau *p, wb_optimiser *optimiser, double score) {
    static const char function[] = "wb_plateau_step";
    if (!wb_optimiser_check(function, optimiser)) return WB_ERROR_ARGUMENT;
    if (!p) return wb_fail(WB_ERROR_ARGUMENT, "%s: the plateau is NULL", function);
    if (wb_plateau_check(function, p) != WB_OK) return WB_ERROR_ARGUMENT;
    const bool better = is_better(p, score);
    if (better) p->best = score, p->has_begun = true;
    p->bad = better ? 0 : wb_plus(p->bad, 1);
    if (p->waiting > 0) p->waiting--, p->bad = 0;
    if (p->bad <= p->patience) return WB_OK;
    p->bad = 0, p->waiting = p->cooldown;
    return wb_optimiser_scale(function, optimiser, "eta", p->factor, p->least);
}
