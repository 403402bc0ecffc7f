/* The training loop. */
#include <math.h>
#include <stdio.h>

#include <weber/show.h>

#include "layers/layer.h"
#include "optimise/optimiser.h"

/* One call of wb_train. */
typedef struct training {
    const wb_train_desc *desc;
    wb_train_event event;
    double total;  /* of the epoch's losses */
    bool stopped;  /* by a callback */
    char what[64]; /* of the progress bar */
} training;

static bool call(training *t, wb_train_fn *callback) {
    if (callback && !callback(&t->event)) t->stopped = true;
    return !t->stopped;
}

static wb_status refuse_loss(const training *t, double value) {
    wb_optimiser_uncount(t->desc->optimiser);
    return wb_fail(WB_ERROR_NUMBER, "loss is %s at batch %lld of epoch %lld",
                   isnan(value) ? "nan" : "infinite", (long long)t->event.step,
                   (long long)t->event.epoch);
}

static wb_status train_batch(training *t, const wb_batch *batch, wb_progress *bar) {
    const wb_train_desc *d = t->desc;
    wb_gradients *gradients;
    wb_array *l = wb_withgradient(d->loss, d->model, batch, d->user, &gradients);
    if (!l) return wb_error_status();
    const wb_status status = wb_update(d->optimiser, d->model, gradients);
    if (status != WB_OK) return status;
    t->event.step++;
    const double value = wb_item(l);
    if (!isfinite(value)) return wb_failed() ? wb_error_status() : refuse_loss(t, value);
    t->total += value;
    t->event.mean_loss = t->total / (double)t->event.step;
    t->event.batch = batch, t->event.loss = l;
    wb_progress_step(bar, l);
    (void)call(t, d->on_step);
    t->event.batch = NULL, t->event.loss = NULL;
    return WB_OK;
}

static wb_progress *begin_progress(training *t, int64_t items) {
    (void)snprintf(t->what, sizeof t->what, "epoch %lld/%lld", (long long)t->event.epoch,
                   (long long)t->desc->epochs);
    return wb_progress_begin(.what = t->what, .total = wb_loader_length(t->desc->loader),
                             .items = items);
}

static wb_status train_epoch(training *t) {
    wb_batch batch = {0};
    wb_progress *bar = NULL;
    wb_status status = WB_OK;
    t->total = 0, t->event.step = 0;
    while (status == WB_OK && !t->stopped && wb_next(t->desc->loader, &batch)) {
        if (t->desc->progress && !bar) bar = begin_progress(t, batch.size);
        status = train_batch(t, &batch, bar);
    }
    const wb_status ended = wb_batch_end(&batch);
    (void)wb_progress_end(bar);
    if (status == WB_OK && wb_failed()) status = wb_error_status(); /* wb_next's own */
    return status == WB_OK ? ended : status;
}

static wb_status check(const wb_train_desc *d) {
    const char *missing = !d->loss        ? "the loss function"
                          : !d->model     ? "the model"
                          : !d->loader    ? "the loader"
                          : !d->optimiser ? "the optimiser"
                                          : NULL;
    if (missing) {
        if (!wb_failed()) (void)wb_fail_argument_null("wb_train", missing);
        return wb_error_status();
    }
    if (!wb_check_layer("wb_train", d->model)) return WB_ERROR_ARGUMENT;
    if (d->epochs >= 0) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT, "wb_train: %lld epochs", (long long)d->epochs);
}

wb_status wb_train_make(wb_train_desc desc) {
    wb_status status = check(&desc);
    if (desc.epochs == 0) desc.epochs = 1;
    training t = {
        .desc = &desc,
        .event = {.model = desc.model, .optimiser = desc.optimiser, .user = desc.user}
    };
    while (status == WB_OK && !t.stopped && t.event.epoch < desc.epochs) {
        t.event.epoch++;
        status = train_epoch(&t);
        if (status == WB_OK && !t.stopped) (void)call(&t, desc.on_epoch);
    }
    return status;
}
