/* Evaluates a model on the data of a loader. */
#include <math.h>

#include <weber/distributed.h>

#include "array/divisor.h"
#include "array/user_call.h"
#include "data/loader.h"
#include "gradient/mode.h"
#include "layers/layer.h"
#include "ranks/ranks.h"
#include "train/sums.h"

bool wb_evaluate_check(const char *function, const wb_evaluate_desc *d) {
    if ((int)d->task < 0 || d->task > WB_TASK_NUMBERS)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: task must be from 0 to %d, got %d", function,
                      WB_TASK_NUMBERS, (int)d->task);
    else if (d->k < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: k must be positive, got %lld", function,
                      (long long)d->k);
    else if (isnan(d->threshold))
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: threshold must be a number, got NaN", function);
    else
        return wb_sums_take_ignore(function, d->task, d->ignore);
    return false;
}

static bool check(const wb_evaluate_desc *d) {
    if (wb_failed()) (void)wb_not_run("wb_evaluate");
    if (wb_failed() || !wb_check_start("wb_evaluate", d->start_)) return false;
    if (!wb_check_model("wb_evaluate", d->model)) return false;
    if (!wb_loader_check("wb_evaluate", d->loader)) return false;
    return wb_evaluate_check("wb_evaluate", d);
}

static wb_array *call(const wb_evaluate_desc *d, wb_loss_fn *fn, const char *what,
                      const wb_batch *batch) {
    wb_user_call call;
    wb_user_call_begin(&call, what);
    wb_array *result = fn(d->model, batch, d->user);
    return wb_user_call_end(&call, "wb_evaluate") ? result : NULL;
}

static wb_array *predict(const wb_evaluate_desc *d, const wb_batch *batch) {
    if (!d->predict) return wb_apply(d->model, batch->x);
    return call(d, d->predict, "predict", batch);
}

static bool add_loss(wb_sums *sums, const wb_batch *batch) {
    const wb_evaluate_desc *d = sums->desc;
    wb_divisor divisor = {.notes = 0};
    wb_divisor *const outer = wb_divisor_to(&divisor);
    wb_array *l = call(d, d->loss, "the loss function", batch);
    (void)wb_divisor_to(outer);
    wb_array *by = wb_divisor_take(&divisor);
    const bool added = wb_sums_add_loss(sums, l, by, batch->size);
    wb_unref(by);
    return added;
}

static bool add_batch(wb_sums *sums, const wb_batch *batch) {
    const wb_evaluate_desc *d = sums->desc;
    if (!batch->y)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_evaluate: the loader must have a .y, with which predictions are "
                       "compared") == WB_OK;
    wb_array *p = predict(d, batch);
    if (!wb_sums_add(sums, p, batch->y)) return false;
    return !d->loss || add_loss(sums, batch);
}

/* Adds up all batches and returns the number of observations. A batch without observations adds
 * nothing; if it is a rank's first, it still makes the sums, so that all ranks have them. */
static int64_t walk(wb_sums *sums) {
    wb_batch batch = {0};
    int64_t observations = 0;
    while (wb_next(sums->desc->loader, &batch)) {
        if (batch.size == 0 && observations > 0) continue;
        if (!add_batch(sums, &batch) || (batch.size == 0 && !wb_sums_empty(sums))) break;
        observations += batch.size;
    }
    (void)wb_batch_end(&batch);
    return observations;
}

/* To be called when a rank has gone through its part, also if that failed, since the others wait
 * for it. */
static int64_t join_ranks(wb_sums *sums, int64_t observations) {
    if (sums->desc->loader->shards == 1) return observations;
    if (!wb_failed() && wb_sums_join_ranks(sums)) {
        wb_array *all = wb_allreduce(wb_scalar(WB_I64, (double)observations), WB_REDUCE_SUM);
        const double count = wb_item(all);
        if (!wb_failed()) return (int64_t)count;
    }
    wb_ranks_fail();
    return observations;
}

static wb_evaluation nothing(void) {
    const double none = (double)NAN;
    return (wb_evaluation){.loss = none,
                           .perplexity = none,
                           .accuracy = none,
                           .top_k = none,
                           .precision = none,
                           .recall = none,
                           .f1 = none,
                           .auc = none,
                           .mse = none,
                           .mae = none,
                           .r2 = none};
}

wb_evaluation wb_evaluate_make(wb_evaluate_desc desc) {
    wb_evaluation e = nothing();
    wb_sums sums = {.desc = &desc, .task = desc.task};
    wb_hidden hidden;
    if (check(&desc) && wb_hidden_put_aside(&hidden, desc.model)) {
        const bool before = wb_set_training(false);
        e.observations = join_ranks(&sums, walk(&sums));
        (void)wb_set_training(before);
        wb_hidden_bring_back(&hidden, desc.model);
        if (!wb_failed()) wb_sums_read(&sums, &e);
        if (!wb_failed() && desc.loss) e.loss = wb_sums_loss(&sums);
        e.perplexity = exp(e.loss);
    }
    wb_sums_free(&sums);
    if (!wb_failed()) return e;
    e = nothing();
    e.status = wb_error_status();
    return e;
}
