/* Checkpoints of a training. */
#include "train/training.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weber/distributed.h>
#include <weber/state.h>

#include "base/error.h"
#include "base/saved.h"
#include "data/loader.h"
#include "ops/collective.h"
#include "ops/step.h"
#include "optimise/compare.h"
#include "optimise/optimiser.h"
#include "optimise/rules.h"
#include "ranks/facts.h"

bool wb_training_is_over(const wb_training_progress *t) {
    return t->stopping.patience > 0 && t->stopping.bad >= t->stopping.patience;
}

/* ---- the numbers of a training ---- */

static void get(const void *object, void *numbers) {
    *(wb_training_progress *)numbers = *(const wb_training_progress *)object;
}

static bool is_possible(const void *object, const void *numbers) {
    const wb_training_progress *t = numbers;
    (void)object;
    return t->epoch >= t->in_epoch && t->step >= 0 && t->steps >= t->step && t->observations >= 0 &&
           t->best_epoch >= 0 && t->best_epoch <= t->epoch && t->stopping.bad >= 0 &&
           t->plateau.bad >= 0 && t->plateau.waiting >= 0 && t->aux_count >= 0 &&
           t->aux_count <= WB_AUX;
}

/* Numbers that the file lacks are the object's own. A total without a weight, from an older
 * version, is dropped: the mean is then over the epoch's other steps. */
static void set(void *object, const void *numbers) {
    wb_training_progress *t = object;
    *t = *(const wb_training_progress *)numbers;
    if (t->total_weight == 0) t->total_loss = 0;
}

#define FIELD(name, field, kind)                                                                   \
    { name, offsetof(wb_training_progress, field), kind, false, false }
#define NEW(name, field, kind)                                                                     \
    { name, offsetof(wb_training_progress, field), kind, false, true }

#define AUX(number, i)                                                                             \
    FIELD("aux_" #number "_name", aux[i].name, WB_SAVED_TEXT),                                     \
        FIELD("aux_" #number "_value", aux[i].value, WB_SAVED_REAL),                               \
        FIELD("aux_" #number "_total", aux_totals[i], WB_SAVED_REAL)

static const wb_saved_number numbers[] = {
    WB_SAVED_FIELD(wb_training_progress, epoch, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(wb_training_progress, step, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(wb_training_progress, steps, WB_SAVED_INTEGER),
    WB_SAVED_NEW_FIELD(wb_training_progress, total_weight, WB_SAVED_REAL),
    WB_SAVED_FIELD(wb_training_progress, total_loss, WB_SAVED_REAL),
    WB_SAVED_NEW_FIELD(wb_training_progress, observations, WB_SAVED_INTEGER),
    WB_SAVED_FIELD(wb_training_progress, in_epoch, WB_SAVED_BOOL),
    WB_SAVED_FIELD(wb_training_progress, best_score, WB_SAVED_REAL),
    WB_SAVED_FIELD(wb_training_progress, best_epoch, WB_SAVED_INTEGER),
    FIELD("stopping_best", stopping.best, WB_SAVED_REAL),
    FIELD("stopping_bad", stopping.bad, WB_SAVED_INTEGER),
    FIELD("stopping_has_begun", stopping.has_begun, WB_SAVED_BOOL),
    FIELD("plateau_best", plateau.best, WB_SAVED_REAL),
    FIELD("plateau_bad", plateau.bad, WB_SAVED_INTEGER),
    FIELD("plateau_waiting", plateau.waiting, WB_SAVED_INTEGER),
    FIELD("plateau_has_begun", plateau.has_begun, WB_SAVED_BOOL),
    WB_SAVED_FIELD(wb_training_progress, aux_count, WB_SAVED_INTEGER),
    AUX(1, 0),
    AUX(2, 1),
    AUX(3, 2),
    AUX(4, 3),
    AUX(5, 4),
    AUX(6, 5),
    AUX(7, 6),
    AUX(8, 7),
};
static const wb_saved saved = {
    numbers, sizeof numbers / sizeof *numbers, sizeof(wb_training_progress), get, is_possible, set};
static const wb_class training_class = {.name = "training", .saved = &saved};

/* ---- what belongs to a checkpoint ---- */

enum { OWN_OBJECTS = 5, ALL_OBJECTS = OWN_OBJECTS + 1 + WB_MORE_OBJECTS };

typedef struct objects {
    wb_named items[ALL_OBJECTS];
    int64_t count;
} objects;

static objects list(wb_training_progress *t, const wb_train_desc *d) {
    objects all = {.items = {{"model", d->model},
                             {"optimiser", d->optimiser},
                             {"loader", d->loader},
                             {"random", wb_random_state()},
                             {"training", t}},
                   .count = OWN_OBJECTS};
    if (t->best) all.items[all.count++] = (wb_named){"best", t->best};
    for (int i = 0; i < WB_MORE_OBJECTS && d->more[i].name; i++)
        all.items[all.count++] = d->more[i];
    return all;
}

static wb_status save(wb_training_progress *t, const wb_train_desc *d) {
    const objects all = list(t, d);
    return wb_checkpoint_save_make(d->checkpoint, t->steps, d->keep, all.count, all.items);
}

static wb_status load(wb_training_progress *t, const wb_train_desc *d, int64_t *number) {
    const objects all = list(t, d);
    return wb_checkpoint_load_make(d->checkpoint, number, all.count, all.items);
}

bool wb_training_leads(const wb_train_desc *d) {
    return !d->optimiser->is_distributed || wb_rank() == 0;
}

/* One rank writes, but states that are divided come from all. */
static bool takes_part(const wb_train_desc *d) {
    return wb_training_leads(d) || d->optimiser->is_divided;
}

/* ---- ranks ---- */

static void add_number(wb_text *facts, const char *name, double value) {
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", value);
    wb_fact_add(facts, name, text);
}

static void tell_settings(const wb_train_desc *d, wb_text *facts) {
    wb_loader_tell(d->loader, "the loader", facts);
    if (d->validation && d->validation->desc.shard)
        wb_loader_tell(d->validation, "the validation's loader", facts);
    add_number(facts, ".epochs", (double)d->epochs);
    wb_fact_add(facts, ".checkpoint", d->checkpoint ? "given" : "NULL");
    wb_fact_add(facts, ".share_checkpoint", d->share_checkpoint ? "true" : "false");
    if (d->optimiser->is_divided) add_number(facts, ".every", (double)d->every);
    wb_fact_add(facts, ".keep_best", d->keep_best ? "true" : "false");
    add_number(facts, ".early_stopping.patience", (double)d->early_stopping.patience);
    add_number(facts, ".early_stopping.min_delta", d->early_stopping.min_delta);
    add_number(facts, ".plateau.factor", d->plateau.factor);
    add_number(facts, ".plateau.patience", (double)d->plateau.patience);
    add_number(facts, ".plateau.threshold", d->plateau.threshold);
    add_number(facts, ".plateau.cooldown", (double)d->plateau.cooldown);
    add_number(facts, ".plateau.least", d->plateau.least);
}

wb_status wb_training_compare(const wb_train_desc *d) {
    wb_text facts = {.file = NULL};
    if (!d->optimiser->is_distributed) return WB_OK;
    tell_settings(d, &facts);
    const wb_status status =
        wb_compare_facts("wb_train: settings must be the same on all ranks", &facts);
    wb_text_release(&facts);
    return status;
}

/* Checks whether every rank could load its own part. */
static wb_status compare_places(const wb_training_progress *t, const wb_train_desc *d,
                                int64_t number) {
    wb_text place = {.file = NULL};
    if (!d->optimiser->is_distributed) return WB_OK;
    if (number < 0)
        wb_fact_add(&place, "the checkpoint", "none");
    else
        add_number(&place, "the checkpoint", (double)number);
    add_number(&place, "the number of steps", (double)t->steps);
    add_number(&place, "the epoch", (double)t->epoch);
    const wb_status status = wb_compare_held(d->optimiser,
                                             "wb_train: all ranks must continue from the same "
                                             "checkpoint (.share_checkpoint = true: from rank 0's)",
                                             &place);
    wb_text_release(&place);
    return status;
}

/* The number of the checkpoint that rank 0 has found, for all ranks. Negative: none. */
static wb_status agree(const wb_train_desc *d, int64_t *number) {
    return d->optimiser->is_distributed ? wb_bcast_now(sizeof *number, number) : WB_OK;
}

/* The file of that number, as rank 0 has it. */
static wb_status load_shared(wb_training_progress *t, const wb_train_desc *d, int64_t number) {
    char copy[PATH_MAX];
    const objects all = list(t, d);
    wb_status status = wb_training_share(d->checkpoint, number, copy);
    if (status == WB_OK && copy[0]) status = wb_load_named_make(copy, all.count, all.items);
    if (copy[0]) (void)unlink(copy);
    return status;
}

static bool is_sent(const wb_train_desc *d) {
    return d->share_checkpoint && d->optimiser->is_distributed;
}

/* Writes a first checkpoint and loads it again, so that an object that cannot be restored is an
 * error now, not later. */
static wb_status begin_anew(wb_training_progress *t, const wb_train_desc *d) {
    int64_t first = t->steps;
    wb_status status = takes_part(d) ? save(t, d) : WB_OK;
    if (status == WB_OK && d->optimiser->is_distributed) status = wb_barrier();
    if (status == WB_OK && (!is_sent(d) || wb_training_leads(d))) status = load(t, d, NULL);
    if (status == WB_OK && is_sent(d)) status = load_shared(t, d, first);
    return status == WB_OK ? compare_places(t, d, -1) : status;
}

/* Warns of settings of the program's rule that differ from the file's and that no schedule or
 * plateau sets. */
static void tell_changed_settings(const wb_training_progress *t, const wb_train_desc *d,
                                  const wb_rule *mine) {
    const wb_rule *theirs = &d->optimiser->rule;
    const double *values = mine->settings, *others = theirs->settings;
    for (int k = 0; k < wb_rule_links(mine); k++)
        for (int i = 0; i < wb_rule_settings(mine->links[k]); i++, values++, others++) {
            const char *name = mine->links[k]->settings[i].name;
            bool is_scheduled = t->plateau.has_begun && strcmp(name, "eta") == 0;
            for (int s = 0; s < WB_SCHEDULES && d->schedules[s].setting; s++)
                is_scheduled = is_scheduled || strcmp(d->schedules[s].setting, name) == 0;
            if (*values != *others && !is_scheduled)
                wb_log_line(WB_LOG_WARN,
                            "wb_train: uses %s = %g from the checkpoint, not the optimiser's %g; "
                            ".schedules, or wb_adjust in .on_step, changes it",
                            name, *others, *values);
        }
}

static void tell(const wb_training_progress *t, const wb_train_desc *d, const wb_rule *mine) {
    const bool has_stopped = wb_training_is_over(t);
    wb_log_line(WB_LOG_INFO, "wb_train: continues from %s, after batch %lld of epoch %lld",
                d->checkpoint, (long long)t->step, (long long)t->epoch);
    if (!t->in_epoch && has_stopped)
        wb_log_line(WB_LOG_WARN,
                    "wb_train: nothing is trained: the training of %s was stopped early, after "
                    "epoch %lld",
                    d->checkpoint, (long long)t->epoch);
    else if (!t->in_epoch && t->epoch >= d->epochs)
        wb_log_line(WB_LOG_WARN,
                    "wb_train: nothing is trained: %s has trained %lld epochs, and .epochs is %lld",
                    d->checkpoint, (long long)t->epoch, (long long)d->epochs);
    tell_changed_settings(t, d, mine);
}

wb_status wb_training_resume(wb_training_progress *t, const wb_train_desc *d) {
    const wb_rule mine = d->optimiser->rule;
    t->object.klass = &training_class;
    wb_note_class(&training_class);
    if (!d->checkpoint) return WB_OK;
    int64_t number = -1;
    wb_status status = wb_training_leads(d) ? load(t, d, &number) : WB_OK;
    if (status == WB_OK) status = agree(d, &number);
    if (status == WB_OK && number < 0) return begin_anew(t, d);
    if (status == WB_OK && is_sent(d))
        status = load_shared(t, d, number);
    else if (status == WB_OK && !wb_training_leads(d))
        status = load(t, d, &number);
    if (status == WB_OK) status = compare_places(t, d, number);
    if (status == WB_OK && wb_training_leads(d)) tell(t, d, &mine);
    return status;
}

wb_status wb_training_save(wb_training_progress *t, const wb_train_desc *d, bool is_last) {
    if (!d->checkpoint || wb_failed() || !takes_part(d)) return WB_OK;
    const wb_status status = save(t, d);
    if (status == WB_OK) return WB_OK;
    char why[WB_MESSAGE_BYTES];
    (void)wb_take_error(why, sizeof why);
    if (is_last)
        return wb_fail(
            status, "wb_train: the training is complete, but its last checkpoint was not saved: %s",
            why);
    wb_log_line(WB_LOG_WARN, "wb_train: %s; the training continues without this checkpoint", why);
    return WB_OK;
}
