/* Loaders: the batches of an epoch, one after another. A thread works ahead (prefetch.h): it
 * gathers the observations of a batch into a slot, lets the user's function change them, and sends
 * them to the device. The user's thread makes arrays of a filled slot, in a scope that closes at
 * the next batch. Data that is on a device is gathered there instead, by an operation. */
#include <stdio.h>
#include <string.h>

#include <weber/data.h>
#include <weber/ops.h>

#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "base/saved.h"
#include "data/loader.h"
#include "data/order.h"
#include "ops/ops.h"
#include "ranks/ranks.h"

/* That of all ranks together, behind all of an array's elements, is a number still. */
#define MOST_BATCH ((int64_t)1 << 40)

typedef wb_loader_source source;
typedef wb_loader_slot slot;
typedef wb_loader_turn turn;

/* ---- the end ---- */

static void turn_is_over(void *object) { ((turn *)object)->open = false; }
static const wb_class turn_class = {.name = "loader's turn", .free = turn_is_over};

/* Closes the turn's scope and what was opened inside it. With `only_innermost` a scope opened
 * since, perhaps after a break, is respected: then the turn's scope passes to whoever closes it. */
static wb_status close_turn(wb_loader *loader, bool only_innermost) {
    const wb_thread *thread = wb_thread_get();
    if (!loader->turn.open || !thread) return WB_OK;
    if (only_innermost && thread->scope_count > loader->turn.depth) {
        wb_free(&loader->turn);
        return WB_OK;
    }
    wb_status status = WB_OK;
    while (thread->scope_count >= loader->turn.depth && thread->scope_count > 0) {
        const wb_status closed = wb_scope_close();
        if (status == WB_OK) status = closed;
    }
    return status;
}

static void release_slot(slot *s, int count) {
    for (int i = 0; i < count; i++) {
        if (s->buffers[i]) wb_buffer_unref(s->buffers[i]);
        if (s->there[i]) wb_buffer_unref(s->there[i]);
        s->buffers[i] = s->there[i] = NULL;
    }
}

static void release_sources(wb_loader *loader) {
    for (int i = 0; i < loader->count; i++) {
        wb_unhold(loader->sources[i].array);
        wb_release(loader->sources[i].name);
    }
}

static void loader_free(void *object) {
    wb_loader *loader = object;
    wb_prefetch_end(&loader->prefetch);
    (void)close_turn(loader, true);
    for (int i = 0; i < WB_PREFETCH_SLOTS; i++) release_slot(&loader->slots[i], loader->count);
    for (int i = 0; i < loader->count; i++) wb_buffer_unref(loader->last[i]);
    wb_copy_queue_close(&loader->queue);
    release_sources(loader);
    wb_release(loader->order);
    wb_object_delete(loader, sizeof *loader, "loader");
}

static const wb_device *loader_device(const void *object) {
    return ((const wb_loader *)object)->device;
}

static uint32_t *owner_of(const void *object) { return &((wb_loader *)(uintptr_t)object)->owner; }

/* The sources get nodes of their own; whoever fills slots meanwhile reads their memory alone. */
static wb_status hand_over(void *object) {
    wb_loader *loader = object;
    if (loader->turn.open)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_hand_over: the loader is within an epoch; "
                                          "wb_batch_end ends it");
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
    const wb_status closed = wb_scope_close_leaving(0, NULL);
    return status == WB_OK ? closed : status;
}

static const wb_class loader_class = {.hand_over = hand_over,
                                      .owner = owner_of,
                                      .to_other_threads =
                                          "wb_hand_over, called there, gives it to this one",
                                      .name = "loader",
                                      .maker = "wb_loader_new",
                                      .free = loader_free,
                                      .device_of = loader_device,
                                      .saved = &wb_saved_loader};

/* ---- making ---- */

static bool has_dense_observations(const wb_array *x) {
    int64_t strides[WB_MAX_DIMS], dense[WB_MAX_DIMS];
    wb_node_strides(x, strides);
    wb_dense_strides(x->ndim, x->sizes, dense);
    for (int d = 0; d + 1 < x->ndim; d++)
        if (x->sizes[d] != 1 && strides[d] != dense[d]) return false;
    return true;
}

static bool check_source(const char *name, const wb_array *x, const wb_loader *loader) {
    wb_status status = WB_OK;
    if (x->ndim == 0)
        status = wb_fail(WB_ERROR_SHAPE, "loader: %s is a scalar and has no observations", name);
    else if (wb_count(x) == 0)
        status =
            wb_fail(WB_ERROR_SHAPE, "loader: %s is empty, its sizes are %s", name, wb_text_of(x));
    else if (loader->count && wb_numobs(x) != loader->observations)
        status = wb_fail(
            WB_ERROR_SHAPE, "loader: %s has %lld observations in %s, but %s has %lld in %s",
            loader->sources[0].name, (long long)loader->observations,
            wb_text_of(loader->sources[0].array), name, (long long)wb_numobs(x), wb_text_of(x));
    else if (loader->count && x->device != loader->sources[0].array->device)
        status =
            wb_fail(WB_ERROR_ARGUMENT, "loader: %s is on %s, but %s on %s", loader->sources[0].name,
                    wb_device_name(wb_node_device(loader->sources[0].array)), name,
                    wb_device_name(wb_node_device(x)));
    return status == WB_OK;
}

/* Evaluates x, in a dense copy where its observations are not dense, and holds it. */
static bool add_source(wb_loader *loader, const char *name, wb_array *x) {
    if (loader->desc.getobs && !(x = wb_getobs_pattern(loader, name, x))) return false;
    if (loader->desc.device && !loader->desc.observe)
        x = wb_cast_for(loader->desc.device, x, WB_ELTYPE_DEFAULT);
    if (!x || wb_eval(x) != WB_OK) return false;
    if (!x->device) x->device = x->buffer->device;
    if (!check_source(name, x, loader)) return false;
    if (!has_dense_observations(x)) {
        x = wb_data_copy(x);
        if (!x || wb_eval(x) != WB_OK) return false;
    }
    char *copied = wb_copy_text(name);
    if (!copied) return false;
    int64_t strides[WB_MAX_DIMS];
    wb_node_strides(x, strides);
    const int64_t element = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    const bool is_host = wb_buffer_is_host(x->buffer);
    if (is_host && wb_device_sync(x->device) != WB_OK) return false;
    loader->observations = wb_numobs(x);
    loader->sources[loader->count++] =
        (source){.name = copied,
                 .array = wb_hold(x),
                 .start = is_host ? (const char *)x->buffer->handle + x->offset * element : NULL,
                 .bytes = wb_count(x) / wb_numobs(x) * element,
                 .stride_bytes = strides[x->ndim - 1] * element};
    return true;
}

static bool are_there(const wb_loader_desc *desc) {
    bool good = (desc->observe || wb_may_use_array("loader", desc->x, "x")) &&
                wb_may_use_given("loader", desc->y, "y");
    for (int i = 0; good && i < WB_MORE_ARRAYS && desc->more[i].name; i++)
        good = wb_may_use_given("loader", desc->more[i].array, desc->more[i].name);
    return good;
}

/* Batches are asked by name: each means one array. */
static bool check_names(const wb_loader_desc *desc) {
    const char *names[2 + WB_MORE_ARRAYS] = {"x", "y"};
    for (int i = 0; i < WB_MORE_ARRAYS && desc->more[i].name; i++) {
        names[2 + i] = desc->more[i].name;
        for (int k = 0; k < 2 + i; k++) {
            if (strcmp(names[k], names[2 + i]) != 0) continue;
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "loader: names in .more must differ from x, y and each other, got \"%s\" "
                          "%s",
                          names[k], k < 2 ? "there" : "twice");
            return false;
        }
    }
    return true;
}

static bool add_sources(wb_loader *loader, const wb_loader_desc *desc) {
    const int64_t n = desc->numobs;
    wb_array *places =
        desc->observe
            ? wb_move_array(wb_cpu_device(), wb_iota_make(WB_I64, 0, 1, &n), WB_ELTYPE_DEFAULT)
            : NULL;
    if (!check_names(desc) || !add_source(loader, "x", desc->observe ? places : desc->x))
        return false;
    if (desc->y && !add_source(loader, "y", desc->y)) return false;
    for (int i = 0; i < WB_MORE_ARRAYS && desc->more[i].name; i++) {
        if (!desc->more[i].array) {
            (void)wb_fail_argument_null("loader", desc->more[i].name);
            return false;
        }
        if (!add_source(loader, desc->more[i].name, desc->more[i].array)) return false;
    }
    return true;
}

static bool check_desc(const wb_loader_desc *desc) {
    wb_status status = WB_OK;
    if (!wb_check_start("loader", desc->start_) || !wb_collate_check(desc))
        status = WB_ERROR_ARGUMENT;
    else if (!desc->x && !desc->observe)
        (void)wb_fail_argument_null("loader", "x"), status = WB_ERROR_ARGUMENT;
    else if (!are_there(desc))
        status = WB_ERROR_ARGUMENT;
    else if (!wb_getobs_check(desc))
        status = WB_ERROR_ARGUMENT;
    else if (desc->batchsize < 0 || desc->batchsize > MOST_BATCH)
        status = wb_fail(WB_ERROR_ARGUMENT, "loader: batchsize must be from 1 to %lld, got %lld",
                         (long long)MOST_BATCH, (long long)desc->batchsize);
    return status == WB_OK;
}

/* Batches of an epoch, and the order of the observations. */
static bool plan_epochs(wb_loader *loader) {
    const int64_t n = loader->observations, size = loader->desc.batchsize * loader->shards;
    loader->length = n / size + (n % size != 0 && !loader->desc.drop_partial);
    if (loader->length == 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: drop_partial leaves no batch: %lld observations, batchsize %lld%s",
                      (long long)n, (long long)loader->desc.batchsize,
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

static wb_fill_fn fill_ahead;

wb_loader *wb_loader_make(wb_loader_desc desc) {
    if (wb_failed()) return wb_not_run_null("wb_loader_new");
    if (!check_desc(&desc)) return NULL;
    wb_loader *loader = wb_object_new(&loader_class, sizeof *loader);
    if (!loader) return NULL;
    (void)wb_claim_owner(&loader->owner);
    loader->turn.object.klass = &turn_class;
    wb_note_class(&turn_class);
    loader->epoch = -1;
    loader->desc = desc;
    if (desc.batchsize == 0) loader->desc.batchsize = 1;
    if (desc.map)
        loader->maps[loader->map_count].fn = desc.map,
        loader->maps[loader->map_count++].user = desc.user;
    if (!take_shard(loader) || !add_sources(loader, &desc) || !plan_epochs(loader) ||
        !plan_route(loader)) {
        release_sources(loader);
        wb_release(loader->order);
        wb_object_delete(loader, sizeof *loader, "loader");
        return NULL;
    }
    wb_prefetch_start(&loader->prefetch, fill_ahead, loader, !desc.background);
    return loader;
}

bool wb_loader_check(const char *function, const wb_loader *loader) {
    return wb_may_use(function, loader, &loader_class, "the loader");
}

int64_t wb_loader_length(const wb_loader *loader) {
    return loader && wb_loader_check("wb_loader_length", loader) ? loader->length : 0;
}

/* The epoch that {0} would walk, and where it would begin. */
static int64_t coming_epoch(const wb_loader *loader, int64_t *first) {
    *first = loader->goes_on ? loader->next : 0;
    return loader->goes_on ? loader->epoch : loader->epoch + 1;
}

int64_t wb_loader_epoch(const wb_loader *loader) {
    int64_t first;
    return loader && wb_loader_check("wb_loader_epoch", loader) ? coming_epoch(loader, &first) : 0;
}

/* ---- preparing, on the loader's thread ---- */

/* Where the batch begins in the order, perhaps behind its end. */
static int64_t place_in_order(const wb_loader *loader, int64_t index) {
    return (index * loader->shards + loader->shard) * loader->desc.batchsize;
}

static int64_t size_of(const wb_loader *loader, int64_t index) {
    const int64_t left = loader->observations - place_in_order(loader, index);
    return left < 0 ? 0 : left < loader->desc.batchsize ? left : loader->desc.batchsize;
}

static int64_t most_of(const wb_loader *loader) {
    const int64_t n = loader->observations, size = loader->desc.batchsize;
    return size < n ? size : n;
}

/* The observations of which the arrays of a batch are made. What a function makes (collate.c) has
 * sizes that only the function knows: for a rank that has none, it makes those of others. */
static int64_t made_of(const wb_loader *loader, int64_t index) {
    const int64_t size = size_of(loader, index);
    return size == 0 && loader->desc.observe ? most_of(loader) : size;
}

/* Their places in the order; the last ones where the rank has none. */
static const int64_t *part_of(const wb_loader *loader, const int64_t *order, int64_t index,
                              int64_t *size) {
    const int64_t begin = place_in_order(loader, index);
    *size = made_of(loader, index);
    const int64_t latest = loader->observations - (*size ? *size : 1);
    return order + (size_of(loader, index) ? begin : latest);
}

static void copy_observations(const source *s, const int64_t *order, int64_t size, char *out) {
    bool ascending = s->stride_bytes == s->bytes;
    for (int64_t i = 1; ascending && i < size; i++) ascending = order[i] == order[i - 1] + 1;
    if (ascending) {
        memcpy(out, s->start + order[0] * s->bytes, (size_t)(size * s->bytes));
        return;
    }
    for (int64_t i = 0; i < size; i++)
        memcpy(out + i * s->bytes, s->start + order[i] * s->stride_bytes, (size_t)s->bytes);
}

/* What went wrong on this thread waits in the slot. */
static void keep_error(slot *s) {
    if (wb_failed())
        (void)wb_take_error(s->message, sizeof s->message);
    else
        (void)memccpy(s->message, wb_status_text(s->status), 0, sizeof s->message);
}

wb_status wb_loader_call(uint64_t seed, wb_status (*fn)(void *context), void *context) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return WB_ERROR_MEMORY;
    const uint64_t before = thread->seed, counter = thread->counter;
    const bool seeded = thread->seeded;
    wb_seed(seed);
    wb_status status = wb_scope_open();
    if (status == WB_OK) {
        status = fn(context);
        (void)wb_scope_close();
    }
    thread->seed = before, thread->counter = counter, thread->seeded = seeded;
    return status == WB_OK && wb_failed() ? wb_error_status() : status;
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
    return wb_loader_call(wb_order_seed(loader->desc.seed, memory->epoch, number), call_prepare,
                          &(preparation){&loader->desc, memory});
}

static wb_status upload(const wb_loader *loader, slot *s, int64_t size) {
    const wb_copy_queue *queue = &loader->queue;
    wb_status status = wb_copy_queue_follow(queue);
    for (int i = 0; status == WB_OK && i < loader->count; i++)
        status = wb_copy_queue_upload(queue, s->there[i], s->buffers[i]->handle,
                                      (size_t)(size * loader->sources[i].bytes));
    const wb_status done =
        wb_copy_queue_sync(queue); /* also after an error: the memory is reused */
    return status == WB_OK ? done : status;
}

/* Copies the observations, lets the user change them, and sends them where they are wanted. */
static void fill(const wb_loader *loader, slot *s, int64_t index, int64_t epoch,
                 const int64_t *order) {
    const wb_loader_desc *desc = &loader->desc;
    int64_t size;
    void *data[WB_LOADER_SOURCES];
    s->status = WB_OK;
    order = part_of(loader, order, index, &size);
    if (size == 0) return;
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

static void fill_ahead(void *owner, int64_t index, int number) {
    wb_loader *loader = owner;
    fill(loader, &loader->slots[number], index, loader->epoch, loader->order);
}

/* ---- delivering, on the user's thread ---- */

static bool equip(wb_buffer **place, const wb_device *device, int64_t bytes) {
    if (!*place) *place = wb_buffer_new(device, wb_bytes(bytes), "batch");
    return *place != NULL;
}

/* Memory for a whole batch in each place of s that has none. */
static bool equip_slot(const wb_loader *loader, slot *s) {
    const int64_t size = most_of(loader);
    for (int i = 0; i < loader->count && !loader->gathers; i++) {
        const int64_t bytes = loader->sources[i].bytes * size;
        if (!equip(&s->buffers[i], wb_cpu_device(), bytes)) return false;
        if (loader->queue.device && !equip(&s->there[i], loader->device, bytes)) return false;
    }
    return true;
}

/* What a batch takes out of a slot. */
static wb_buffer **outgoing(const wb_loader *loader, slot *s) {
    return loader->queue.device ? s->there : s->buffers;
}

static wb_batch batch_of(wb_loader *loader, int64_t index, int64_t epoch) {
    return (wb_batch){.index = index,
                      .size = size_of(loader, index),
                      .full_ = loader->desc.batchsize,
                      .epoch = epoch,
                      .loader_ = loader};
}

static void apply_maps(const wb_loader *loader, wb_batch *batch) {
    if (loader->desc.observe) wb_collate(loader, batch);
    for (int i = 0; i < loader->map_count && !wb_failed(); i++)
        loader->maps[i].fn(batch, loader->maps[i].user);
}

/* Arrays of the innermost scope over the slot's memory, which they take over. */
static void wrap_slot(wb_loader *loader, slot *s, int64_t index, int64_t epoch, wb_batch *batch) {
    *batch = batch_of(loader, index, epoch);
    wb_buffer **buffers = outgoing(loader, s);
    const int64_t last = made_of(loader, index);
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
    order = part_of(loader, order, index, &size);
    wb_array *places = list_places(loader, order, size);
    for (int i = 0; i < loader->count && !wb_failed(); i++) {
        wb_array *whole = loader->sources[i].array;
        wb_array *part =
            places ? wb_gather(whole, places, -1) : wb_getobs(whole, order[0], order[0] + size);
        *wb_batch_place(loader, batch, i) = wb_move_array(loader->device, part, WB_ELTYPE_DEFAULT);
    }
    apply_maps(loader, batch);
}

static bool open_turn(wb_loader *loader) {
    if (wb_scope_open() != WB_OK) return false;
    loader->turn.open = true;
    loader->turn.depth = wb_thread_get()->scope_count;
    if (wb_scope_own(&loader->turn)) return true;
    (void)wb_scope_close();
    return false;
}

static bool start_epoch(wb_loader *loader) {
    (void)wb_prefetch_pause(&loader->prefetch);
    for (int i = 0; i < WB_PREFETCH_SLOTS; i++)
        if (!equip_slot(loader, &loader->slots[i])) return false;
    loader->epoch = coming_epoch(loader, &loader->next);
    loader->goes_on = false, loader->in_epoch = true;
    loader->turns++;
    if (loader->desc.shuffle)
        wb_order_shuffle(loader->order, loader->observations, loader->desc.seed, loader->epoch);
    if (!loader->gathers) wb_prefetch_begin(&loader->prefetch, loader->next, loader->length);
    return true;
}

static bool fail_batch(const slot *s, int64_t index, int64_t epoch) {
    (void)wb_fail(s->status, "loader: batch %lld of epoch %lld: %s", (long long)index,
                  (long long)epoch, s->message);
    return false;
}

/* Gives the slot the memory of the batch before, which has ended, and notes what this one has: so
 * the batches of a loader are in the same few places for ever, and a device that launches its work
 * as graphs knows them. Memory that somebody keeps is replaced. */
static bool swap_memory(wb_loader *loader, slot *s, slot *taken) {
    wb_buffer **from = outgoing(loader, s), **to = outgoing(loader, taken);
    for (int i = 0; i < loader->count; i++) {
        to[i] = from[i];
        from[i] = loader->last[i] ? wb_buffer_renew(loader->last[i]) : NULL;
        loader->last[i] = wb_buffer_ref(to[i]);
    }
    return equip_slot(loader, s);
}

static bool deliver(wb_loader *loader, wb_batch *batch) {
    const int64_t index = loader->next;
    slot *s = &loader->slots[wb_prefetch_take(&loader->prefetch)];
    if (s->status != WB_OK) return fail_batch(s, index, loader->epoch);
    slot taken = {0};
    const bool ready = swap_memory(loader, s, &taken) && open_turn(loader);
    if (ready) wrap_slot(loader, &taken, index, loader->epoch, batch);
    release_slot(&taken, loader->count);
    wb_prefetch_give(&loader->prefetch);
    return ready && !wb_failed();
}

static bool deliver_gathered(wb_loader *loader, wb_batch *batch) {
    if (!open_turn(loader)) return false;
    gather(loader, loader->order, loader->next, loader->epoch, batch);
    return !wb_failed();
}

static bool is_current(const wb_loader *loader, const wb_batch *batch) {
    if (batch->turn_ == 0 || (batch->loader_ == loader && batch->turn_ == loader->turns))
        return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  batch->loader_ == loader
                      ? "wb_next: the batch is of an epoch that ended when another one started"
                      : "wb_next: the batch is of another loader, or was not begun as wb_batch b = "
                        "{0}");
    return false;
}

static bool advance(wb_loader *loader, wb_batch *batch) {
    const bool starts = batch->turn_ == 0;
    if (close_turn(loader, starts) != WB_OK || wb_failed()) return false;
    if (starts && !start_epoch(loader)) return false;
    if (loader->next == loader->length) return false;
    if (loader->gathers ? deliver_gathered(loader, batch) : deliver(loader, batch)) {
        batch->turn_ = loader->turns;
        loader->next++;
        return true;
    }
    (void)close_turn(loader, false);
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
    loader->in_epoch = false;
    return close_turn(loader, false);
}

static void first_filled(wb_loader *loader, slot *s, const int64_t *order, int64_t index,
                         int64_t epoch, wb_batch *batch) {
    const bool ran =
        wb_prefetch_pause(&loader->prefetch); /* prepare runs on one thread at a time */
    fill(loader, s, index, epoch, order);
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
    const int64_t epoch = coming_epoch(loader, &index), n = loader->observations;
    if (index == loader->length) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_first: nothing is left of epoch %lld",
                      (long long)epoch);
        return false;
    }
    slot s = {0};
    int64_t *order = wb_alloc_list(n, sizeof *order);
    if (order && equip_slot(loader, &s)) {
        if (loader->desc.shuffle)
            wb_order_shuffle(order, n, loader->desc.seed, epoch);
        else
            wb_order_natural(order, n);
        if (loader->gathers)
            gather(loader, order, index, epoch, batch);
        else
            first_filled(loader, &s, order, index, epoch, batch);
    }
    release_slot(&s, loader->count);
    wb_release(order);
    if (!wb_failed()) return true;
    *batch = (wb_batch){0};
    return false;
}
