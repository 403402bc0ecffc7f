/* The training loop. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weber/distributed.h>
#include <weber/show.h>
#include <weber/state.h>

#include "array/use.h"
#include "array/user_call.h"
#include "data/loader.h"
#include "layers/layer.h"
#include "ops/collective.h"
#include "optimise/compare.h"
#include "optimise/optimiser.h"
#include "ranks/ranks.h"
#include "train/sums.h"
#include "train/training.h"

/* One call of wb_train. */
typedef struct training {
    const wb_train_desc *desc;
    wb_train_event event;
    wb_training_progress at;
    wb_throttle throttle; /* of on_step */
    bool stopped;         /* by a callback, on any rank */
    bool may_stop[2];     /* in a step, after an epoch: some rank has a callback */
    char what[64];        /* of the progress bar */
} training;

static void call(training *t, wb_train_fn *callback) {
    wb_user_call call;
    wb_user_call_begin(&call, "the callback");
    if (callback && !callback(&t->event)) t->stopped = true;
    (void)wb_user_call_end(&call, "wb_train");
}

static double score(training *t) {
    wb_user_call call;
    wb_user_call_begin(&call, "the score's function");
    const double score = t->desc->score(&t->event);
    (void)wb_user_call_end(&call, "wb_train");
    return score;
}

/* ---- ranks stop together ---- */

static bool is_on_any_rank(bool it) {
    wb_array *most = wb_allreduce(wb_scalar(WB_I32, it), WB_REDUCE_MAX);
    return wb_item(most) != 0;
}

static wb_status ask_ranks(const training *t, bool asks, bool *it) {
    if (!asks || !t->desc->optimiser->is_distributed) return WB_OK;
    if (wb_scope_open() != WB_OK) return WB_ERROR_MEMORY;
    *it = is_on_any_rank(*it);
    const wb_status closed = wb_scope_close();
    return wb_failed() ? wb_error_status() : closed;
}

enum { IN_STEP, BEHIND_EPOCH };

static wb_status ask_for_callbacks(training *t) {
    t->may_stop[IN_STEP] = t->desc->on_step, t->may_stop[BEHIND_EPOCH] = t->desc->on_epoch;
    wb_status status = ask_ranks(t, true, &t->may_stop[IN_STEP]);
    if (status == WB_OK) status = ask_ranks(t, true, &t->may_stop[BEHIND_EPOCH]);
    return status;
}

static wb_status refuse_loss(const training *t, double value) {
    wb_optimiser_uncount(t->desc->optimiser);
    return wb_fail(WB_ERROR_NUMBER, "loss is %s at batch %lld of epoch %lld%s",
                   isnan(value) ? "nan" : "infinite", (long long)t->event.step,
                   (long long)t->event.epoch,
                   isnan(value) ? "; WEBER_DEBUG=nan names the operation" : "");
}

/* The settings of the next step. */
static wb_status adjust(const training *t) {
    const wb_train_desc *d = t->desc;
    wb_status status = WB_OK;
    for (int i = 0; i < WB_SCHEDULES && d->schedules[i].setting && status == WB_OK; i++) {
        const wb_scheduled *s = &d->schedules[i];
        const double value = wb_schedule_at(s->schedule, t->at.steps + 1);
        if (wb_failed()) return wb_error_status();
        status = s->path ? wb_adjust_path(d->optimiser, s->path, s->setting, value)
                         : wb_adjust_named(d->optimiser, s->setting, value);
    }
    return status;
}

/* ---- what the loss hands out ---- */

static wb_train_aux *aux_named(wb_training_progress *at, const char *name) {
    for (int64_t i = 0; i < at->aux_count; i++)
        if (strcmp(at->aux[i].name, name) == 0) return &at->aux[i];
    if (at->aux_count == WB_AUX) return NULL;
    wb_train_aux *new = &at->aux[at->aux_count++];
    (void)snprintf(new->name, sizeof new->name, "%s", name);
    at->aux_totals[new - at->aux] = 0;
    return new;
}

static void tell_aux(training *t) {
    wb_training_progress *at = &t->at;
    const double observations = at->observations ? (double)at->observations : 1;
    for (int64_t i = 0; i < at->aux_count; i++) at->aux[i].mean = at->aux_totals[i] / observations;
    t->event.aux = at->aux, t->event.aux_count = (int)at->aux_count;
}

static void show_aux(const wb_training_progress *at, wb_progress *bar) {
    char text[128] = "";
    size_t used = 0;
    for (int64_t i = 0; i < at->aux_count && used < sizeof text; i++) {
        const int n = snprintf(text + used, sizeof text - used, "%s%s %.4f", i ? "  " : "",
                               at->aux[i].name, at->aux[i].value);
        used += n > 0 ? (size_t)n : 0;
    }
    wb_progress_note(bar, text);
}

/* Reads the numbers among what the step's loss has handed out. */
static wb_status add_aux(training *t, int64_t observations, wb_progress *bar) {
    const wb_aux_list *list = &t->desc->optimiser->aux;
    for (int i = 0; i < list->count && observations > 0; i++) {
        const wb_aux_item *item = &list->items[i];
        if (wb_count(item->x) != 1) continue;
        const double value = wb_item(item->x);
        if (wb_failed()) return wb_error_status();
        wb_train_aux *aux = aux_named(&t->at, item->name);
        if (!aux) continue;
        aux->value = value;
        t->at.aux_totals[aux - t->at.aux] += value * (double)observations;
    }
    t->at.observations += observations;
    tell_aux(t);
    if (bar && t->at.aux_count) show_aux(&t->at, bar);
    return WB_OK;
}

/* ---- a batch ---- */

static double mean_loss(const wb_training_progress *at) {
    return at->total_weight != 0 ? at->total_loss / at->total_weight : 0;
}

/* Adds the loss of a step that counted to the epoch's. */
static wb_status add_loss(training *t, double value) {
    const double weight = wb_optimiser_weight(t->desc->optimiser);
    if (wb_failed()) return wb_error_status();
    t->at.total_loss += value * weight, t->at.total_weight += weight;
    t->at.step = t->event.step, t->at.steps++;
    t->event.mean_loss = mean_loss(&t->at);
    return WB_OK;
}

static wb_status train_batch(training *t, const wb_batch *batch, wb_progress *bar) {
    const wb_train_desc *d = t->desc;
    const wb_status adjusted = adjust(t);
    if (adjusted != WB_OK) return adjusted;
    wb_array *l = wb_train_step(d->loss, d->model, batch, d->user, d->optimiser);
    if (!l) return wb_error_status();
    t->event.step++;
    const double value = wb_item(l);
    if (!isfinite(value)) return wb_failed() ? wb_error_status() : refuse_loss(t, value);
    if (add_loss(t, value) != WB_OK) return wb_error_status();
    t->event.batch = batch, t->event.loss = l;
    if (add_aux(t, wb_observations_of(batch), bar) != WB_OK) return wb_error_status();
    if (bar) wb_progress_step(bar, wb_number(t->event.mean_loss));
    if (d->on_step && wb_throttle_passes(&t->throttle)) call(t, d->on_step);
    t->event.batch = NULL, t->event.loss = NULL;
    if (ask_ranks(t, t->may_stop[IN_STEP], &t->stopped) != WB_OK || wb_failed())
        return wb_error_status(); /* the error may be the callback's */
    const bool is_due = t->stopped || (d->every && t->at.steps % d->every == 0);
    return is_due ? wb_training_save(&t->at, d, t->stopped) : WB_OK;
}

static wb_progress *begin_progress(training *t, int64_t items) {
    (void)snprintf(t->what, sizeof t->what, "epoch %lld/%lld", (long long)t->event.epoch,
                   (long long)t->desc->epochs);
    return wb_progress_begin(.what = t->what, .total = wb_loader_length(t->desc->loader),
                             .done = t->event.step, .items = items, .unit = "observations");
}

static wb_status train_epoch(training *t) {
    wb_batch batch = {0};
    wb_progress *bar = NULL;
    wb_status status = WB_OK;
    while (status == WB_OK && !t->stopped && wb_next(t->desc->loader, &batch)) {
        if (t->desc->progress && !bar && wb_training_leads(t->desc))
            bar = begin_progress(t, batch.size);
        status = train_batch(t, &batch, bar);
    }
    const wb_status ended = wb_batch_end(&batch);
    (void)wb_progress_end(bar);
    if (status == WB_OK && wb_failed()) status = wb_error_status(); /* an error of wb_next */
    return status == WB_OK ? ended : status;
}

/* The next epoch, or the one that a checkpoint was in. */
static void begin_epoch(training *t) {
    if (!t->at.in_epoch) {
        t->at.epoch++;
        t->at.step = 0, t->at.total_loss = 0, t->at.total_weight = 0;
        t->at.aux_count = 0, t->at.observations = 0;
        t->at.in_epoch = true;
    }
    t->event.epoch = t->at.epoch, t->event.step = t->at.step;
    t->event.mean_loss = mean_loss(&t->at);
    tell_aux(t);
}

/* ---- after an epoch ---- */

/* For a desc within the desc. */
static bool is_given(wb_start start) { return start != WB_LEFT_OUT_; }

static wb_status validate(training *t, wb_evaluation *e) {
    const wb_train_desc *d = t->desc;
    wb_evaluate_desc desc = is_given(d->metrics.start_) ? d->metrics : WB_DESC(evaluate, d->model);
    if (!d->validation) return WB_OK;
    desc.model = d->model, desc.loader = d->validation, desc.loss = d->loss, desc.user = d->user;
    *e = wb_evaluate_make(desc);
    t->event.validation = e;
    if (e->status != WB_OK) wb_loader_compare(d->loader, d->validation);
    return e->status;
}

static wb_status keep_if_best(training *t) {
    wb_training_progress *at = &t->at;
    const double score = t->event.score;
    if (isnan(score) || (at->best_epoch && !(score < at->best_score))) return WB_OK;
    at->best_score = score, at->best_epoch = at->epoch;
    return at->best ? wb_load_from(at->best, t->desc->model) : WB_OK;
}

/* Ranks may compute scores that differ, by a random part or a rounding, and must decide alike. */
static wb_status take_first_score(training *t) {
    const bool is_asked = t->desc->optimiser->is_distributed;
    return is_asked ? wb_bcast_now(sizeof t->event.score, &t->event.score) : WB_OK;
}

static wb_status judge(training *t) {
    const wb_train_desc *d = t->desc;
    t->event.score = d->score              ? score(t)
                     : t->event.validation ? t->event.validation->loss
                                           : t->event.mean_loss;
    wb_status status = wb_failed() ? wb_error_status() : take_first_score(t);
    if (status == WB_OK) status = keep_if_best(t);
    t->event.best_epoch = t->at.best_epoch;
    (void)wb_early_stopping_ends(&t->at.stopping, t->event.score);
    if (status == WB_OK && is_given(d->plateau.start_))
        status = wb_plateau_step(&t->at.plateau, d->optimiser, t->event.score);
    return status;
}

/* In a scope of its own, which releases what validation leaves. */
static wb_status look_at_epoch(training *t) {
    wb_evaluation e;
    if (wb_scope_open() != WB_OK) return wb_error_status();
    wb_status status = validate(t, &e);
    if (status == WB_OK) status = judge(t);
    if (status == WB_OK) call(t, t->desc->on_epoch);
    if (status == WB_OK) status = ask_ranks(t, t->may_stop[BEHIND_EPOCH], &t->stopped);
    t->event.validation = NULL;
    const wb_status closed = wb_scope_close();
    if (status == WB_OK && wb_failed()) status = wb_error_status();
    return status == WB_OK ? closed : status;
}

static wb_status end_epoch(training *t) {
    const wb_train_desc *d = t->desc;
    t->at.in_epoch = false;
    const wb_status status = look_at_epoch(t);
    if (status != WB_OK) return status;
    const bool is_last = t->stopped || wb_training_is_over(&t->at) || t->at.epoch == d->epochs;
    return is_last || !d->every ? wb_training_save(&t->at, d, is_last) : WB_OK;
}

/* ---- all of it ---- */

/* Whether a schedule has the rate, which the plateau would change, too. */
static wb_status check_rate(const wb_train_desc *d) {
    for (int i = 0; i < WB_SCHEDULES && d->schedules[i].setting && is_given(d->plateau.start_); i++)
        if (strcmp(d->schedules[i].setting, "eta") == 0)
            return wb_fail(
                WB_ERROR_ARGUMENT,
                "wb_train: eta must follow either a schedule or a plateau, but both are given");
    return WB_OK;
}

static wb_status check_schedules(const wb_train_desc *d) {
    bool has_ended = false;
    for (int i = 0; i < WB_SCHEDULES; i++) {
        const wb_scheduled *s = &d->schedules[i];
        has_ended = has_ended || !s->setting;
        if (has_ended && (s->setting || s->schedule))
            return wb_fail(WB_ERROR_ARGUMENT,
                           "wb_train: entry %d of .schedules has no setting, and the list ends at "
                           "the first entry without one",
                           s->setting ? i : i + 1);
    }
    return WB_OK;
}

static bool may_use_objects(const wb_train_desc *d) {
    bool good = wb_may_use_layer("wb_train", d->model, "the model") &&
                wb_loader_check("wb_train", d->loader) &&
                wb_optimiser_check("wb_train", d->optimiser) &&
                (!d->validation || wb_loader_check("wb_train", d->validation)) &&
                (!d->metrics.model || wb_check_model("wb_train", d->metrics.model)) &&
                (!d->metrics.loader || wb_loader_check("wb_train", d->metrics.loader));
    for (int i = 0; good && i < WB_SCHEDULES && d->schedules[i].schedule; i++)
        good = wb_may_use_any("wb_train", d->schedules[i].schedule, "a schedule");
    for (int i = 0; good && i < WB_MORE_OBJECTS && d->more[i].object; i++)
        good = wb_may_use_any("wb_train", d->more[i].object, "an object of .more");
    return good;
}

/* A desc within the desc is left out whole, or as its macro makes it. */
static bool check_start(const char *member, const char *macro, wb_start start, bool is_empty) {
    if (start == WB_MADE_ || (start == WB_LEFT_OUT_ && is_empty)) return true;
    return wb_fail(WB_ERROR_ARGUMENT,
                   "wb_train: %s lacks its defaults: write .%s = %s, with settings in the brackets",
                   member, member, macro) == WB_OK;
}

static bool same_metrics(const wb_evaluate_desc *a, const wb_evaluate_desc *b) {
    return a->predict == b->predict && a->task == b->task && a->k == b->k &&
           a->ignore == b->ignore && a->threshold == b->threshold;
}

static bool same_plateau(const wb_plateau *a, const wb_plateau *b) {
    return a->factor == b->factor && a->patience == b->patience && a->threshold == b->threshold &&
           a->cooldown == b->cooldown && a->least == b->least;
}

/* In C++ a desc that is left out has its defaults. */
static bool check_metrics(const wb_evaluate_desc *m) {
    const wb_evaluate_desc zeros = {0}, usual = {WB_DEFAULTS_evaluate};
    const bool is_empty = same_metrics(m, &zeros) || same_metrics(m, &usual);
    return check_start("metrics", "WB_DESC(evaluate, )", m->start_, is_empty) &&
           (!is_given(m->start_) || wb_evaluate_check("wb_train: metrics", m));
}

static bool check_plateau(const wb_plateau *p) {
    const wb_plateau zeros = {0}, usual = {WB_DEFAULTS_plateau};
    const bool is_empty = same_plateau(p, &zeros) || same_plateau(p, &usual);
    return check_start("plateau", "WB_PLATEAU()", p->start_, is_empty) &&
           (!is_given(p->start_) || wb_plateau_check("wb_train: plateau", p) == WB_OK);
}

static wb_status check(const wb_train_desc *d) {
    if (wb_failed()) return wb_not_run("wb_train");
    if (!wb_check_start("wb_train", d->start_) || !check_metrics(&d->metrics) ||
        !check_plateau(&d->plateau))
        return WB_ERROR_ARGUMENT;
    if (!may_use_objects(d)) return WB_ERROR_ARGUMENT;
    if (!d->loss) return wb_fail(WB_ERROR_ARGUMENT, "wb_train: the loss function is NULL");
    if (d->cb)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_train: cb is no longer a callback, as in Flux since 0.14: use .on_step "
                       "(with .throttle) or .on_epoch, or write the loop with wb_train_step");
    if (d->epochs < 0)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_train: epochs must not be negative, got %lld",
                       (long long)d->epochs);
    if (!(d->early_stopping.patience >= 0 && d->early_stopping.min_delta >= 0))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_train: early_stopping: patience and min_delta must not be negative, got "
                       "%lld and %g",
                       (long long)d->early_stopping.patience, d->early_stopping.min_delta);
    if (!(d->throttle >= 0))
        return wb_fail(WB_ERROR_ARGUMENT, "wb_train: throttle must not be negative, got %g",
                       d->throttle);
    if (d->early_stopping.min_delta > 0 && d->early_stopping.patience == 0)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_train: early_stopping: min_delta needs a patience, got %g and 0",
                       d->early_stopping.min_delta);
    if (check_schedules(d) != WB_OK) return WB_ERROR_ARGUMENT;
    if (d->every >= 0 && d->keep > 0) return check_rate(d);
    return wb_fail(WB_ERROR_ARGUMENT,
                   "wb_train: every must not be negative and keep must be positive, got %lld and "
                   "%lld",
                   (long long)d->every, (long long)d->keep);
}

/* The settings of what watches the score, and where the best model goes. */
static wb_status begin(training *t) {
    const wb_train_desc *d = t->desc;
    const wb_early_stopping *e = &d->early_stopping;
    t->at.stopping = (wb_early_stopping){.patience = e->patience, .min_delta = e->min_delta};
    t->at.plateau = d->plateau;
    t->at.plateau.has_begun = false, t->at.plateau.bad = 0, t->at.plateau.waiting = 0;
    t->at.plateau.best = 0;
    if (d->keep_best && !(t->at.best = wb_clone(d->model))) return wb_error_status();
    wb_status status = wb_training_compare(d);
    if (status == WB_OK) status = ask_for_callbacks(t);
    return status == WB_OK ? wb_training_resume(&t->at, d) : status;
}

static wb_status finish(training *t, wb_status status) {
    if (status == WB_OK && t->at.best && t->at.best_epoch)
        status = wb_load_from(t->desc->model, t->at.best);
    if (status == WB_OK) status = wb_compare_held(t->desc->optimiser, NULL, NULL);
    wb_free(t->at.best);
    if (status != WB_OK && t->desc->optimiser->is_distributed) wb_ranks_fail(); /* they wait */
    return status;
}

wb_status wb_train_make(wb_train_desc desc) {
    wb_status status = check(&desc);
    if (status != WB_OK) return status;
    if (desc.epochs == 0) wb_log_line(WB_LOG_WARN, "wb_train: .epochs is 0: nothing is trained");
    training t = {.desc = &desc,
                  .throttle = {.seconds = desc.throttle},
                  .event = {.model = desc.model, .optimiser = desc.optimiser, .user = desc.user}};
    status = begin(&t);
    while (status == WB_OK && !t.stopped && !wb_training_is_over(&t.at) &&
           t.at.epoch - t.at.in_epoch < desc.epochs) {
        begin_epoch(&t);
        status = train_epoch(&t);
        if (status == WB_OK && !t.stopped) status = end_epoch(&t);
    }
    return finish(&t, status);
}
