/* Loaders: the batches of an epoch, one after another. A thread works ahead (prefetch.h): it
 * gathers the observations of a batch into a slot, lets the user's function change them, and sends
 * them to the device (slot.c). The user's thread makes arrays of a filled slot (next.c). Here a
 * loader is made, handed over and released. */
#include "data/loader.h"

#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "base/saved.h"
#include "data/order.h"
#include "ranks/ranks.h"

/* ---- the end ---- */

static void loader_free(void *object) {
    wb_loader *loader = object;
    wb_prefetch_end(&loader->prefetch);
    (void)wb_loader_close_turn(loader, true);
    for (int i = 0; i < WB_PREFETCH_SLOTS; i++) wb_slot_release(&loader->slots[i], loader->count);
    for (int i = 0; i < loader->count; i++) wb_buffer_unref(loader->last[i]);
    wb_copy_queue_close(&loader->queue);
    wb_loader_release_sources(loader);
    wb_image_files_unref(loader->files);
    wb_release(loader->order);
    wb_object_delete(loader, sizeof *loader, "loader");
}

static const wb_device *loader_device(const void *object) {
    return ((const wb_loader *)object)->device;
}

static uint32_t *owner_of(const void *object) { return &((wb_loader *)(uintptr_t)object)->owner; }

/* The sources get nodes of their own. A thread that fills slots at this time reads only their
 * memory. */
static wb_status hand_over(void *object) {
    wb_loader *loader = object;
    if (loader->turn.open)
        return wb_fail(
            WB_ERROR_ARGUMENT,
            "wb_hand_over: the loader is in the middle of an epoch; wb_batch_end ends it");
    if (wb_scope_open() != WB_OK) return WB_ERROR_MEMORY;
    wb_status status = WB_OK;
    const bool ran = wb_prefetch_pause(&loader->prefetch);
    for (int i = 0; i < loader->count && status == WB_OK; i++) {
        wb_array *shared = wb_node_share(loader->sources[i].array);
        if (!shared) {
            status = wb_error_status();
            continue;
        }
        wb_unhold(loader->sources[i].array);
        loader->sources[i].array = wb_hold(shared);
    }
    if (ran) wb_prefetch_resume(&loader->prefetch);
    loader->owner = 0;
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

static const wb_class loader_class = {.hand_over = hand_over,
                                      .owner = owner_of,
                                      .to_other_threads =
                                          "call wb_hand_over in that thread to give it to this one",
                                      .name = "loader",
                                      .maker = "wb_loader_new",
                                      .free = loader_free,
                                      .device_of = loader_device,
                                      .saved = &wb_saved_loader};

/* ---- making ---- */

/* Batches of an epoch, and the order of the observations. */
static bool plan_epochs(wb_loader *loader) {
    const int64_t n = loader->observations, size = loader->desc.batchsize * loader->shards;
    loader->length = n / size + (n % size != 0 && !loader->desc.drop_partial);
    if (loader->length == 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: drop_partial leaves no batch: %lld observation%s, batchsize %lld%s",
                      (long long)n, n == 1 ? "" : "s", (long long)loader->desc.batchsize,
                      loader->shards > 1 ? " on each rank" : "");
        return false;
    }
    loader->order = wb_alloc_list(n, sizeof *loader->order);
    if (!loader->order) return false;
    wb_order_natural(loader->order, n);
    return true;
}

/* Where the batches come from and go to. */
static bool plan_route(wb_loader *loader) {
    const wb_array *first = loader->sources[0].array;
    loader->device = loader->desc.device ? loader->desc.device : first->device;
    loader->gathers = !loader->sources[0].start;
    if (loader->gathers && (loader->desc.prepare || loader->desc.getobs)) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: %s changes the host's memory, but the data is on %s",
                      loader->desc.prepare ? "prepare" : "getobs", wb_device_name(first->device));
        return false;
    }
    const bool uploads =
        !loader->gathers && !loader->desc.observe && loader->device != first->device;
    return !uploads || wb_copy_queue_open(&loader->queue, loader->device);
}

static bool take_shard(wb_loader *loader) {
    loader->shards = 1;
    if (!loader->desc.shard) return true;
    if (!wb_ranks_join("loader")) return false;
    loader->shards = wb_ranks_count(), loader->shard = wb_ranks_own();
    return true;
}

/* Releases what a loader that could not be made has so far. */
static wb_loader *give_up(wb_loader *loader) {
    wb_loader_release_sources(loader);
    wb_image_files_unref(loader->files);
    wb_release(loader->order);
    wb_object_delete(loader, sizeof *loader, "loader");
    return NULL;
}

wb_loader *wb_loader_make(wb_loader_desc desc) {
    if (wb_failed()) return wb_not_run_null("wb_loader_new");
    if (!wb_check_start("loader", desc.start_)) return NULL;
    wb_loader *loader = wb_object_new(&loader_class, sizeof *loader);
    if (!loader) return NULL;
    loader->getobs_user = desc.user;
    if (!wb_pictures_plan(loader, &desc) || !wb_loader_check_desc(&desc)) return give_up(loader);
    (void)wb_claim_owner(&loader->owner);
    wb_loader_start_turns(loader);
    loader->epoch = -1;
    loader->desc = desc;
    if (desc.map)
        loader->maps[loader->map_count].fn = desc.map,
        loader->maps[loader->map_count++].user = desc.user;
    if (!take_shard(loader) || !wb_loader_add_sources(loader, &desc) || !plan_epochs(loader) ||
        !plan_route(loader))
        return give_up(loader);
    wb_prefetch_start(&loader->prefetch, wb_slot_fill_ahead, loader, !desc.background);
    return loader;
}

bool wb_loader_check(const char *function, const wb_loader *loader) {
    return wb_may_use(function, loader, &loader_class, "the loader");
}

int64_t wb_loader_length(const wb_loader *loader) {
    return loader && wb_loader_check("wb_loader_length", loader) ? loader->length : 0;
}

int64_t wb_loader_coming(const wb_loader *loader, int64_t *first) {
    *first = loader->goes_on ? loader->next : 0;
    return loader->goes_on ? loader->epoch : loader->epoch + 1;
}

int64_t wb_loader_epoch(const wb_loader *loader) {
    int64_t first;
    return loader && wb_loader_check("wb_loader_epoch", loader) ? wb_loader_coming(loader, &first)
                                                                : 0;
}
