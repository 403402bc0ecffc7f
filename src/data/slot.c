/* The memory of a batch while it is prepared: observations are copied into it, changed by the
 * user's function, and uploaded if the loader has a device. wb_slot_fill does this on the calling
 * thread: the loader's, or the user's. */
#include <string.h>

#include "base/memory.h"
#include "data/loader.h"
#include "data/order.h"

/* ---- memory ---- */

static bool equip(wb_buffer **place, const wb_device *device, int64_t bytes) {
    if (!*place) *place = wb_buffer_new(device, wb_bytes(bytes), "batch");
    return *place != NULL;
}

bool wb_slot_equip(const wb_loader *loader, wb_loader_slot *s) {
    const int64_t size = wb_part_most(loader);
    for (int i = 0; i < loader->count && !loader->gathers; i++) {
        const int64_t bytes = loader->sources[i].bytes * size;
        if (!equip(&s->buffers[i], wb_cpu_device(), bytes)) return false;
        if (loader->queue.device && !equip(&s->there[i], loader->device, bytes)) return false;
    }
    return true;
}

wb_buffer **wb_slot_outgoing(const wb_loader *loader, wb_loader_slot *s) {
    return loader->queue.device ? s->there : s->buffers;
}

void wb_slot_release(wb_loader_slot *s, int count) {
    for (int i = 0; i < count; i++) {
        if (s->buffers[i]) wb_buffer_unref(s->buffers[i]);
        if (s->there[i]) wb_buffer_unref(s->there[i]);
        s->buffers[i] = s->there[i] = NULL;
    }
}

/* ---- what is in it ---- */

static void copy_observations(const wb_loader_source *s, const int64_t *order, int64_t size,
                              char *out) {
    bool ascending = s->stride_bytes == s->bytes;
    for (int64_t i = 1; ascending && i < size; i++) ascending = order[i] == order[i - 1] + 1;
    if (ascending) {
        memcpy(out, s->start + order[0] * s->bytes, (size_t)(size * s->bytes));
        return;
    }
    for (int64_t i = 0; i < size; i++)
        memcpy(out + i * s->bytes, s->start + order[i] * s->stride_bytes, (size_t)s->bytes);
}

/* The slot keeps the error of this thread. */
static void keep_error(wb_loader_slot *s) {
    if (wb_failed())
        (void)wb_take_error(s->message, sizeof s->message);
    else
        (void)memccpy(s->message, wb_status_text(s->status), 0, sizeof s->message);
}

typedef struct preparation {
    const wb_loader_desc *desc;
    const wb_batch_memory *memory;
} preparation;

static wb_status call_prepare(void *context) {
    const preparation *p = context;
    return p->desc->prepare(p->memory, p->desc->user);
}

/* Lets the user change the batch's memory. */
static wb_status prepare(const wb_loader *loader, const wb_batch_memory *memory) {
    const int64_t number = memory->index * loader->shards + loader->shard;
    return wb_loader_call(wb_order_seed(loader->desc.seed, memory->epoch, number), ".prepare",
                          call_prepare, &(preparation){&loader->desc, memory});
}

static wb_status upload(const wb_loader *loader, wb_loader_slot *s, int64_t size) {
    const wb_copy_queue *queue = &loader->queue;
    wb_status status = wb_copy_queue_follow(queue);
    for (int i = 0; status == WB_OK && i < loader->count; i++)
        status = wb_copy_queue_upload(queue, s->there[i], s->buffers[i]->handle,
                                      (size_t)(size * loader->sources[i].bytes));
    const wb_status done =
        wb_copy_queue_sync(queue); /* also after an error: the memory is reused */
    return status == WB_OK ? done : status;
}

/* What wb_slot_equip could not give is missing. */
static bool has_memory(const wb_loader *loader, const wb_loader_slot *s) {
    for (int i = 0; i < loader->count; i++)
        if (!s->buffers[i] || (loader->queue.device && !s->there[i])) return false;
    return true;
}

void wb_slot_fill(const wb_loader *loader, wb_loader_slot *s, int64_t index, int64_t epoch,
                  const int64_t *order) {
    const wb_loader_desc *desc = &loader->desc;
    int64_t size;
    void *data[WB_LOADER_SOURCES];
    s->status = WB_OK;
    order = wb_part_places(loader, order, index, &size);
    if (size == 0) return;
    if (!has_memory(loader, s)) {
        s->status = WB_ERROR_MEMORY;
        keep_error(s);
        return;
    }
    for (int i = 0; i < loader->count; i++) {
        data[i] = s->buffers[i]->handle;
        copy_observations(&loader->sources[i], order, size, data[i]);
    }
    const wb_batch_memory memory = {index, size, epoch, order, loader->count, data};
    if (desc->getobs) s->status = wb_getobs_all(loader, &memory);
    if (desc->prepare && s->status == WB_OK) s->status = prepare(loader, &memory);
    if (s->status == WB_OK && loader->queue.device) s->status = upload(loader, s, size);
    if (s->status != WB_OK) keep_error(s);
}

void wb_slot_fill_ahead(void *owner, int64_t index, int number) {
    wb_loader *loader = owner;
    wb_slot_fill(loader, &loader->slots[number], index, loader->epoch, loader->order);
}
