/* Observations that a user's function writes into the memory of a batch, on several threads. */
#include <pthread.h>
#include <string.h>

#include "array/array.h"
#include "base/events.h"
#include "base/memory.h"
#include "data/loader.h"
#include "data/order.h"
#include "ops/ops.h"
#include "platform/locks.h"
#include "platform/threads.h"

enum { MOST_THREADS = 64 };

bool wb_getobs_check(const wb_loader_desc *desc) {
    const bool wanted = desc->getobs != NULL;
    if (wanted ? desc->numobs >= 1 && desc->threads >= 0 && desc->threads <= MOST_THREADS
               : (desc->numobs == 0 || desc->observe) && desc->threads == 0)
        return true;
    if (desc->threads < 0 || desc->threads > MOST_THREADS)
        (void)wb_fail(WB_ERROR_ARGUMENT, "loader: .threads must be from 0 to %d, got %d",
                      MOST_THREADS, desc->threads);
    else if (wanted)
        (void)wb_fail(WB_ERROR_ARGUMENT, "loader: getobs needs .numobs of at least 1, got %lld",
                      (long long)desc->numobs);
    else
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: .numobs needs .getobs or .observe, and .threads needs .getobs");
    return false;
}

/* The function writes x's type, so no cast may come between it and the loader's device. */
static wb_array *of_its_type(const wb_loader *loader, const char *name, wb_array *x) {
    const wb_device *device = loader->desc.device;
    if (!x || !device) return x;
    const wb_array *there = wb_cast_for(device, x, WB_ELTYPE_DEFAULT);
    if (!there || there->dtype == x->dtype) return there ? x : NULL;
    return wb_fail_null(
        WB_ERROR_DTYPE,
        "loader: with getobs %s must have the type that it has on %s, expected %s, got %s", name,
        wb_device_name(device), wb_dtype_name((wb_dtype)there->dtype),
        wb_dtype_name((wb_dtype)x->dtype));
}

wb_array *wb_getobs_pattern(wb_loader *loader, const char *name, wb_array *x) {
    wb_loader_desc *desc = &loader->desc;
    int64_t sizes[WB_MAX_DIMS];
    if (x->ndim > 0 && wb_numobs(x) == desc->numobs && desc->numobs > 1)
        return of_its_type(loader, name, x); /* as of another loader */
    if (x->ndim == 0 || wb_numobs(x) != 1)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "loader: with getobs %s must be one observation, (..., 1), got %s",
                            name, wb_text_of(x));
    memcpy(sizes, x->sizes, sizeof sizes);
    sizes[x->ndim - 1] = desc->numobs;
    if (wb_node_device(x) != wb_cpu_device()) {
        if (!desc->device) desc->device = wb_node_device(x);
        x = wb_move_array(wb_cpu_device(), x, WB_ELTYPE_DEFAULT);
    }
    x = of_its_type(loader, name, x);
    return x ? wb_expand_make(x, x->ndim, sizes) : NULL;
}

/* ---- one batch ---- */

typedef struct work {
    const wb_loader *loader;
    const wb_batch_memory *batch;
    _Alignas(8) int64_t next; /* the next observation to begin; atomic */
    pthread_mutex_t mutex;
    int64_t failed; /* the first that failed; size: none. The mutex guards this and the rest */
    wb_status status;
    char message[400];
} work;

static void keep_failure(work *w, int64_t i, wb_status status) {
    char message[sizeof w->message] = "";
    if (wb_failed())
        (void)wb_take_error(message, sizeof message);
    else
        (void)memccpy(message, wb_status_text(status), 0, sizeof message);
    (void)pthread_mutex_lock(&w->mutex);
    if (i < w->failed) {
        w->failed = i, w->status = status;
        memcpy(w->message, message, sizeof message);
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

typedef struct call {
    const wb_loader *loader;
    const wb_observation *observation;
} call;

static wb_status call_getobs(void *context) {
    const call *c = context;
    return c->loader->desc.getobs(c->observation, c->loader->getobs_user);
}

static void get_one(work *w, int64_t i) {
    const wb_loader *loader = w->loader;
    const int64_t place = w->batch->order[i];
    void *data[WB_LOADER_SOURCES];
    for (int k = 0; k < loader->count; k++)
        data[k] = (char *)w->batch->data[k] + i * loader->sources[k].bytes;
    const wb_observation observation = {
        .place = place,
        .epoch = w->batch->epoch,
        .seed = wb_order_seed(loader->desc.seed, w->batch->epoch, place),
        .count = loader->count,
        .data = data};
    const wb_status status =
        wb_loader_call(observation.seed, ".getobs", call_getobs, &(call){loader, &observation});
    if (status != WB_OK) keep_failure(w, i, status);
}

static void *get_some(void *state) {
    work *w = state;
    for (;;) {
        const int64_t i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED);
        if (i >= w->batch->size) return NULL;
        get_one(w, i);
    }
}

static void *get_some_beside(void *state) {
    wb_fork_exempt_begin(); /* the fill that waits for this */
    (void)get_some(state);
    wb_fork_exempt_end();
    return NULL;
}

/* Starts threads until one cannot be started or there are enough. */
static int start_threads(work *w, pthread_t *threads) {
    const int64_t wanted = w->loader->desc.threads, size = w->batch->size;
    int count = 0;
    while (count + 1 < wanted && count + 1 < size &&
           wb_platform_start_thread(&threads[count], get_some_beside, w))
        count++;
    return count;
}

/* Threads that cannot be started are not missed: the others take their share. */
wb_status wb_getobs_all(const wb_loader *loader, const wb_batch_memory *batch) {
    pthread_t threads[MOST_THREADS];
    work w = {.loader = loader, .batch = batch, .failed = batch->size};
    const double began = wb_event_begin();
    (void)pthread_mutex_init(&w.mutex, NULL);
    const int count = start_threads(&w, threads);
    (void)get_some(&w);
    for (int i = 0; i < count; i++) (void)pthread_join(threads[i], NULL);
    (void)pthread_mutex_destroy(&w.mutex);
    wb_event("loader", "getobs", began, NULL, NULL);
    if (w.failed == batch->size) return WB_OK;
    return wb_fail(w.status, "observation %lld: %s", (long long)batch->order[w.failed], w.message);
}
