/* Delivers batches, on the user's thread: arrays of a filled slot, in a scope that closes at the
 * next batch. Data that is on a device is gathered there instead, by an operation. */
#include <string.h>

#include <weber/ops.h>

#include "array/array.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "data/loader.h"
#include "data/order.h"
#include "ops/ops.h"

/* ---- the arrays of a batch ---- */

static wb_batch batch_of(wb_loader *loader, int64_t index, int64_t epoch) {
    return (wb_batch){.index = index,
                      .size = wb_part_size(loader, index),
                      .full_ = loader->desc.batchsize,
                      .epoch = epoch,
                      .loader_ = loader};
}

static void apply_maps(const wb_loader *loader, wb_batch *batch) {
    wb_user_call call;
    wb_user_call_begin(&call, "a function of the loader's");
    if (loader->desc.observe) wb_collate(loader, batch);
    const uint64_t errors = wb_error_count();
    for (int i = 0; i < loader->map_count && !wb_failed(); i++)
        loader->maps[i].fn(batch, loader->maps[i].user);
    (void)wb_error_prefix(errors,
                          "loader: map of batch %lld of epoch %lld: ", (long long)batch->index,
                          (long long)batch->epoch);
    (void)wb_user_call_end(&call, "loader");
}

/* Arrays of the innermost scope over the slot's memory, which they take over. */
static void wrap_slot(wb_loader *loader, wb_loader_slot *s, int64_t index, int64_t epoch,
                      wb_batch *batch) {
    *batch = batch_of(loader, index, epoch);
    wb_buffer **buffers = wb_slot_outgoing(loader, s);
    const int64_t last = wb_part_made(loader, index);
    for (int i = 0; i < loader->count; i++) {
        const wb_array *whole = loader->sources[i].array;
        int64_t sizes[WB_MAX_DIMS];
        memcpy(sizes, whole->sizes, sizeof sizes);
        sizes[whole->ndim - 1] = last;
        *wb_batch_place(loader, batch, i) =
            wb_node_data((wb_dtype)whole->dtype, whole->ndim, sizes, buffers[i]);
        buffers[i] = NULL;
    }
    apply_maps(loader, batch);
}

/* The places of a batch as an array beside the data; NULL where they follow one another, and on
 * failure. */
static wb_array *list_places(const wb_loader *loader, const int64_t *order, int64_t size) {
    bool ascending = true;
    for (int64_t i = 1; ascending && i < size; i++) ascending = order[i] == order[i - 1] + 1;
    return ascending ? NULL
                     : wb_move_array(loader->sources[0].array->device, wb_from(WB_I64, order, size),
                                     WB_ELTYPE_DEFAULT);
}

/* Arrays of the innermost scope, gathered where the data is. */
static void gather(wb_loader *loader, const int64_t *order, int64_t index, int64_t epoch,
                   wb_batch *batch) {
    *batch = batch_of(loader, index, epoch);
    int64_t size;
    order = wb_part_places(loader, order, index, &size);
    wb_array *places = list_places(loader, order, size);
    for (int i = 0; i < loader->count && !wb_failed(); i++) {
        wb_array *whole = loader->sources[i].array;
        wb_array *part =
            places ? wb_gather(whole, places, -1) : wb_getobs(whole, order[0], order[0] + size);
        *wb_batch_place(loader, batch, i) = wb_move_array(loader->device, part, WB_ELTYPE_DEFAULT);
    }
    apply_maps(loader, batch);
}

/* ---- one batch after the other ---- */

static bool start_epoch(wb_loader *loader) {
    (void)wb_prefetch_pause(&loader->prefetch);
    for (int i = 0; i < WB_PREFETCH_SLOTS; i++)
        if (!wb_slot_equip(loader, &loader->slots[i])) return false;
    loader->epoch = wb_loader_coming(loader, &loader->next);
    loader->goes_on = false, loader->in_epoch = true;
    loader->turns++;
    if (loader->desc.shuffle)
        wb_order_shuffle(loader->order, loader->observations, loader->desc.seed, loader->epoch);
    if (!loader->gathers) wb_prefetch_begin(&loader->prefetch, loader->next, loader->length);
    return true;
}

static bool fail_batch(const wb_loader_slot *s, int64_t index, int64_t epoch) {
    (void)wb_fail(s->status, "loader: batch %lld of epoch %lld: %s", (long long)index,
                  (long long)epoch, s->message);
    return false;
}

/* Gives the slot the memory of the batch before, which has ended, and notes the memory of this one.
 * So the batches of a loader always use the same few places, which a device that launches its work
 * as graphs needs. Memory that is still referred to is replaced. */
static bool swap_memory(wb_loader *loader, wb_loader_slot *s, wb_loader_slot *taken) {
    wb_buffer **from = wb_slot_outgoing(loader, s), **to = wb_slot_outgoing(loader, taken);
    for (int i = 0; i < loader->count; i++) {
        to[i] = from[i];
        from[i] = loader->last[i] ? wb_buffer_renew(loader->last[i]) : NULL;
        loader->last[i] = wb_buffer_ref(to[i]);
    }
    return wb_slot_equip(loader, s);
}

static bool deliver(wb_loader *loader, wb_batch *batch) {
    const int64_t index = loader->next;
    wb_loader_slot *s = &loader->slots[wb_prefetch_take(&loader->prefetch)];
    if (s->status != WB_OK) return fail_batch(s, index, loader->epoch);
    wb_loader_slot taken = {0};
    const bool ready = swap_memory(loader, s, &taken) && wb_loader_open_turn(loader);
    if (ready) wrap_slot(loader, &taken, index, loader->epoch, batch);
    wb_slot_release(&taken, loader->count);
    wb_prefetch_give(&loader->prefetch);
    return ready && !wb_failed();
}

static bool deliver_gathered(wb_loader *loader, wb_batch *batch) {
    if (!wb_loader_open_turn(loader)) return false;
    gather(loader, loader->order, loader->next, loader->epoch, batch);
    return !wb_failed();
}

static bool is_current(const wb_loader *loader, const wb_batch *batch) {
    if (batch->turn_ == 0 || (batch->loader_ == loader && batch->turn_ == loader->turns))
        return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        batch->loader_ == loader
            ? "wb_next: the batch belongs to an epoch that ended when a new one was started"
            : "wb_next: the batch belongs to another loader, or was not initialised: wb_batch b = "
              "{0}");
    return false;
}

static bool advance(wb_loader *loader, wb_batch *batch) {
    const bool starts = batch->turn_ == 0;
    if (!wb_loader_may_go_on("wb_next", loader)) return false;
    if (wb_loader_close_turn(loader, starts) != WB_OK || wb_failed()) return false;
    if (starts && !start_epoch(loader)) return false;
    if (loader->next == loader->length) return false;
    if (loader->gathers ? deliver_gathered(loader, batch) : deliver(loader, batch)) {
        batch->turn_ = loader->turns;
        loader->next++;
        return true;
    }
    (void)wb_loader_close_turn(loader, false);
    return false;
}

bool wb_next(wb_loader *loader, wb_batch *batch) {
    if (wb_failed()) (void)wb_not_run("wb_next"); /* it still closes the turn */
    if (!wb_loader_check("wb_next", loader)) return false;
    if (!batch) return wb_fail_argument_null("wb_next", "batch");
    if (is_current(loader, batch)) {
        loader->in_epoch = advance(loader, batch);
        if (loader->in_epoch) return true;
    }
    *batch = (wb_batch){0};
    return false;
}

wb_status wb_batch_end(wb_batch *batch) {
    if (!batch) return WB_OK;
    wb_loader *loader = batch->turn_ ? batch->loader_ : NULL;
    if (wb_object_is_released(loader)) loader = NULL; /* which has ended the turn */
    if (loader && !wb_loader_check("wb_batch_end", loader)) return wb_error_status();
    const bool current = loader && batch->turn_ == loader->turns;
    *batch = (wb_batch){0};
    if (!current) return WB_OK;
    if (!wb_loader_may_go_on("wb_batch_end", loader)) return wb_error_status();
    loader->in_epoch = false;
    return wb_loader_close_turn(loader, false);
}

static void first_filled(wb_loader *loader, wb_loader_slot *s, const int64_t *order, int64_t index,
                         int64_t epoch, wb_batch *batch) {
    const bool ran =
        wb_prefetch_pause(&loader->prefetch); /* prepare runs on one thread at a time */
    wb_slot_fill(loader, s, index, epoch, order);
    if (ran) wb_prefetch_resume(&loader->prefetch);
    if (s->status == WB_OK)
        wrap_slot(loader, s, index, epoch, batch);
    else
        (void)fail_batch(s, index, epoch);
}

bool wb_first(wb_loader *loader, wb_batch *batch) {
    if (!wb_loader_check("wb_first", loader)) return false;
    if (!batch) return wb_fail_argument_null("wb_first", "batch");
    *batch = (wb_batch){0};
    if (wb_failed()) return wb_not_run("wb_first") == WB_OK;
    int64_t index;
    const int64_t epoch = wb_loader_coming(loader, &index), n = loader->observations;
    if (index == loader->length) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_first: nothing is left of epoch %lld",
                      (long long)epoch);
        return false;
    }
    wb_loader_slot s = {0};
    int64_t *order = wb_alloc_list(n, sizeof *order);
    if (order && wb_slot_equip(loader, &s)) {
        if (loader->desc.shuffle)
            wb_order_shuffle(order, n, loader->desc.seed, epoch);
        else
            wb_order_natural(order, n);
        if (loader->gathers)
            gather(loader, order, index, epoch, batch);
        else
            first_filled(loader, &s, order, index, epoch, batch);
    }
    wb_slot_release(&s, loader->count);
    wb_release(order);
    if (!wb_failed()) return true;
    *batch = (wb_batch){0};
    return false;
}
