#include <stdio.h>
#include <string.h>

#include <weber/data.h>

#include "array/thread.h"
#include "base/memory.h"
#include "data/order.h"
#include "data/prefetch.h"

enum { SOURCES = WB_MORE_ARRAYS + 2 };

/* One of the loader's arrays: observation i lies at start + i * stride_bytes. */
typedef struct source {
    char *name;
    wb_array *array; /* held */
    const char *start;
    int64_t bytes, stride_bytes;
} source;

/* A batch that is being prepared, or waits to be taken. */
typedef struct slot {
    wb_buffer *buffers[SOURCES];
    wb_status status;
    char message[512];
} slot;

/* Lies in the scope of a turn and notices when that closes, whoever closes it. */
typedef struct turn {
    wb_object object;
    bool open;
    int64_t depth; /* scopes of the thread that were open then, with this one */
} turn;

struct wb_loader {
    wb_object object;
    wb_loader_desc desc; /* without the arrays and names, which sources hold */
    source sources[SOURCES];
    int count;
    int64_t observations, length;
    int64_t *order;
    int64_t epoch, turns, next; /* next: number of the batch to come */
    turn turn;
    slot slots[WB_PREFETCH_SLOTS];
    wb_prefetch prefetch;
};

/* ---- the end ---- */

static void turn_is_over(void *object) { ((turn *)object)->open = false; }
static const wb_class turn_class = {.name = "loader's turn", .free = turn_is_over};

/* Closes the turn's scope and what was opened inside it. With `only_innermost` a scope opened since, perhaps after a break,
 * is respected: then the turn's scope passes to whoever closes it. */
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
        s->buffers[i] = NULL;
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
    release_sources(loader);
    wb_release(loader->order);
    wb_release(loader);
    wb_live_objects(-1);
}

static const wb_class loader_class = {.name = "loader", .free = loader_free};

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
    return status == WB_OK;
}

/* Evaluates x, in a dense copy where its observations are not dense, and holds it. */
static bool add_source(wb_loader *loader, const char *name, wb_array *x) {
    if (!check_source(name, x, loader) || wb_eval(x) != WB_OK) return false;
    if (!has_dense_observations(x)) {
        x = wb_copy(x);
        if (!x || wb_eval(x) != WB_OK) return false;
    }
    char *copied = wb_copy_text(name);
    if (!copied) return false;
    int64_t strides[WB_MAX_DIMS];
    wb_node_strides(x, strides);
    const int64_t element = (int64_t)wb_dtype_size((wb_dtype)x->dtype);
    loader->observations = wb_numobs(x);
    loader->sources[loader->count++] =
        (source){.name = copied,
                 .array = wb_hold(x),
                 .start = (const char *)x->buffer->handle + x->offset * element,
                 .bytes = wb_count(x) / wb_numobs(x) * element,
                 .stride_bytes = strides[x->ndim - 1] * element};
    return true;
}

static bool add_sources(wb_loader *loader, const wb_loader_desc *desc) {
    if (!add_source(loader, "x", desc->x)) return false;
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
    if (!desc->x)
        (void)wb_fail_argument_null("loader", "x"), status = WB_ERROR_ARGUMENT;
    else if (desc->batchsize < 0)
        status =
            wb_fail(WB_ERROR_ARGUMENT, "loader: batchsize is %lld; at least 1 is wanted (x is %s)",
                    (long long)desc->batchsize, wb_text_of(desc->x));
    else if (desc->device && desc->device != wb_cpu_device())
        status = wb_fail(WB_ERROR_UNSUPPORTED, "loader: batches go to the CPU only, not to %s",
                         wb_device_name(desc->device));
    return status == WB_OK;
}

/* Batches of an epoch, and the order of the observations. */
static bool plan_epochs(wb_loader *loader) {
    const int64_t n = loader->observations, size = loader->desc.batchsize;
    loader->length = n / size + (n % size != 0 && !loader->desc.drop_partial);
    if (loader->length == 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: drop_partial leaves no batch: %lld observations, batchsize %lld",
                      (long long)n, (long long)size);
        return false;
    }
    loader->order = wb_alloc((size_t)n * sizeof *loader->order);
    if (!loader->order) return false;
    wb_order_natural(loader->order, n);
    return true;
}

static wb_fill_fn fill_ahead;

wb_loader *wb_loader_make(wb_loader_desc desc) {
    if (wb_failed() || !check_desc(&desc)) return NULL;
    wb_loader *loader = wb_alloc(sizeof *loader);
    if (!loader) return NULL;
    loader->object.klass = &loader_class;
    loader->turn.object.klass = &turn_class;
    loader->epoch = -1;
    loader->desc = desc;
    if (desc.batchsize == 0) loader->desc.batchsize = 1;
    if (!add_sources(loader, &desc) || !plan_epochs(loader)) {
        release_sources(loader);
        wb_release(loader->order);
        wb_release(loader);
        return NULL;
    }
    wb_prefetch_start(&loader->prefetch, fill_ahead, loader, desc.no_background);
    wb_live_objects(1);
    return loader;
}

int64_t wb_loader_length(const wb_loader *loader) { return loader ? loader->length : 0; }

/* ---- preparing, on the loader's thread ---- */

static int64_t size_of(const wb_loader *loader, int64_t index) {
    const int64_t left = loader->observations - index * loader->desc.batchsize;
    return left < loader->desc.batchsize ? left : loader->desc.batchsize;
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

/* Copies the observations and lets the user change them; what goes wrong waits in the slot. */
static void fill(const wb_loader *loader, slot *s, int64_t index, int64_t epoch,
                 const int64_t *order) {
    const wb_loader_desc *desc = &loader->desc;
    const int64_t size = size_of(loader, index);
    void *data[SOURCES];
    s->status = WB_OK;
    order += index * desc->batchsize;
    for (int i = 0; i < loader->count; i++) {
        data[i] = s->buffers[i]->handle;
        copy_observations(&loader->sources[i], order, size, data[i]);
    }
    if (!desc->prepare) return;
    const wb_batch_memory memory = {index, size, epoch, order, loader->count, data};
    wb_thread *thread = wb_thread_get();
    const wb_thread before = thread ? *thread : (wb_thread){.seeded = false};
    wb_seed(wb_order_seed(desc->seed, epoch, index)); /* on whichever thread this is */
    wb_scope_open();                                  /* arrays that prepare makes end here */
    s->status = desc->prepare(&memory, desc->user);
    (void)wb_scope_close();
    if (thread)
        thread->seed = before.seed, thread->counter = before.counter,
        thread->seeded = before.seeded;
    if (s->status == WB_OK && wb_failed()) s->status = wb_error_status();
    if (s->status == WB_OK) return;
    if (wb_failed())
        (void)wb_take_error(s->message, sizeof s->message);
    else
        (void)memccpy(s->message, wb_status_text(s->status), 0, sizeof s->message);
}

static void fill_ahead(void *owner, int64_t index, int number) {
    wb_loader *loader = owner;
    fill(loader, &loader->slots[number], index, loader->epoch, loader->order);
}

/* ---- delivering, on the user's thread ---- */

/* Memory for a whole batch in each place of s that has none. */
static bool equip_slot(const wb_loader *loader, slot *s) {
    for (int i = 0; i < loader->count; i++) {
        if (s->buffers[i]) continue;
        const int64_t bytes = loader->sources[i].bytes;
        const int64_t wanted = loader->desc.batchsize < loader->observations
                                   ? loader->desc.batchsize
                                   : loader->observations;
        s->buffers[i] = wb_buffer_new(wb_cpu_device(), (size_t)(bytes * wanted), "batch");
        if (!s->buffers[i]) return false;
    }
    return true;
}

/* Arrays of the innermost scope over the slot's memory, which they take over. */
static void wrap_slot(wb_loader *loader, slot *s, int64_t index, int64_t epoch, wb_batch *batch) {
    *batch = (wb_batch){
        .index = index, .size = size_of(loader, index), .epoch = epoch, .loader_ = loader};
    const bool has_y = loader->desc.y != NULL;
    for (int i = 0; i < loader->count; i++) {
        const wb_array *whole = loader->sources[i].array;
        int64_t sizes[WB_MAX_DIMS];
        memcpy(sizes, whole->sizes, sizeof sizes);
        sizes[whole->ndim - 1] = batch->size;
        wb_array *part = wb_node_data((wb_dtype)whole->dtype, whole->ndim, sizes, s->buffers[i]);
        s->buffers[i] = NULL;
        if (i == 0)
            batch->x = part;
        else if (i == 1 && has_y)
            batch->y = part;
        else
            batch->more[i - 1 - has_y] = part;
    }
    if (loader->desc.map && !wb_failed()) loader->desc.map(batch, loader->desc.user);
}

static bool open_turn(wb_loader *loader) {
    const wb_thread *thread = wb_thread_get();
    if (!thread) return false;
    const int64_t before = thread->scope_count;
    wb_scope_open();
    if (thread->scope_count == before) return false;
    loader->turn.open = true;
    loader->turn.depth = thread->scope_count;
    if (wb_scope_own(&loader->turn)) return true;
    (void)wb_scope_close();
    return false;
}

static bool start_epoch(wb_loader *loader) {
    (void)wb_prefetch_pause(&loader->prefetch);
    for (int i = 0; i < WB_PREFETCH_SLOTS; i++)
        if (!equip_slot(loader, &loader->slots[i])) return false;
    loader->epoch++, loader->turns++;
    loader->next = 0;
    if (loader->desc.shuffle)
        wb_order_shuffle(loader->order, loader->observations, loader->desc.seed, loader->epoch);
    wb_prefetch_begin(&loader->prefetch, loader->length);
    return true;
}

static bool fail_batch(const slot *s, int64_t index, int64_t epoch) {
    (void)wb_fail(s->status, "loader: batch %lld of epoch %lld: %s", (long long)index,
                  (long long)epoch, s->message);
    return false;
}

/* The slot's memory goes to the batch; as much is put in its place. */
static bool deliver(wb_loader *loader, wb_batch *batch) {
    const int64_t index = loader->next;
    slot *s = &loader->slots[wb_prefetch_take(&loader->prefetch)];
    if (s->status != WB_OK) return fail_batch(s, index, loader->epoch);
    slot taken = {0};
    memcpy(taken.buffers, s->buffers, sizeof taken.buffers);
    memset(s->buffers, 0, sizeof s->buffers);
    const bool ready = equip_slot(loader, s) && open_turn(loader);
    if (ready) wrap_slot(loader, &taken, index, loader->epoch, batch);
    release_slot(&taken, loader->count);
    if (!ready || wb_failed()) return false;
    batch->turn_ = loader->turns;
    loader->next++;
    wb_prefetch_give(&loader->prefetch);
    return true;
}

static bool is_current(const wb_loader *loader, const wb_batch *batch) {
    if (batch->turn_ == 0 || (batch->loader_ == loader && batch->turn_ == loader->turns))
        return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  batch->loader_ == loader
                      ? "wb_next: the batch is of an epoch that ended when another one started"
                      : "wb_next: the batch is of another loader");
    return false;
}

static bool advance(wb_loader *loader, wb_batch *batch) {
    if (!is_current(loader, batch)) return false;
    const bool starts = batch->turn_ == 0;
    if (close_turn(loader, starts) != WB_OK || wb_failed()) return false;
    if (starts && !start_epoch(loader)) return false;
    if (loader->next == loader->length) return false;
    if (deliver(loader, batch)) return true;
    (void)close_turn(loader, false);
    return false;
}

bool wb_next(wb_loader *loader, wb_batch *batch) {
    if (!loader || !batch) {
        (void)wb_fail_argument_null("wb_next", loader ? "batch" : "loader");
        return false;
    }
    if (advance(loader, batch)) return true;
    *batch = (wb_batch){0};
    return false;
}

wb_status wb_batch_end(wb_batch *batch) {
    if (!batch) return WB_OK;
    wb_loader *loader = batch->turn_ ? batch->loader_ : NULL;
    const bool current = loader && batch->turn_ == loader->turns;
    *batch = (wb_batch){0};
    return current ? close_turn(loader, false) : WB_OK;
}

bool wb_first(wb_loader *loader, wb_batch *batch) {
    if (!loader || !batch) {
        (void)wb_fail_argument_null("wb_first", loader ? "batch" : "loader");
        return false;
    }
    *batch = (wb_batch){0};
    if (wb_failed()) return false;
    const int64_t epoch = loader->epoch + 1, n = loader->observations;
    slot s = {0};
    int64_t *order = wb_alloc((size_t)n * sizeof *order);
    if (order && equip_slot(loader, &s)) {
        if (loader->desc.shuffle)
            wb_order_shuffle(order, n, loader->desc.seed, epoch);
        else
            wb_order_natural(order, n);
        const bool ran =
            wb_prefetch_pause(&loader->prefetch); /* prepare runs on one thread at a time */
        fill(loader, &s, 0, epoch, order);
        if (ran) wb_prefetch_resume(&loader->prefetch);
        if (s.status == WB_OK)
            wrap_slot(loader, &s, 0, epoch, batch);
        else
            (void)fail_batch(&s, 0, epoch);
    }
    release_slot(&s, loader->count);
    wb_release(order);
    if (!wb_failed()) return true;
    *batch = (wb_batch){0};
    return false;
}

static wb_array *source_of(const wb_loader *loader, const wb_batch *batch, int i) {
    const bool has_y = loader->desc.y != NULL;
    if (i == 0) return batch->x;
    return i == 1 && has_y ? batch->y : batch->more[i - 1 - has_y];
}

wb_array *wb_batch_get(const wb_batch *batch, const char *name) {
    if (wb_failed()) return NULL;
    if (!batch || !batch->loader_ || !name)
        return wb_fail_argument_null("wb_batch_get", name ? "the batch" : "name");
    const wb_loader *loader = batch->loader_;
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < loader->count; i++) {
        const source *s = &loader->sources[i];
        if (strcmp(s->name, name) == 0) return source_of(loader, batch, i);
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", s->name);
    }
    return wb_fail_null(WB_ERROR_ARGUMENT, "wb_batch_get: no array is named \"%s\"; there are %s",
                        name, names);
}
