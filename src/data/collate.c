/* Batches of observations of any size, which a user's function makes from arrays. */
#include <string.h>

#include <weber/ops.h>

#include "array/array.h"
#include "base/memory.h"
#include "data/loader.h"

/* The arrays of a batch's observations: number k of observation i is at all[k * size + i]. */
typedef struct observations {
    const wb_loader *loader;
    int64_t size;
    wb_array **all;
    bool is_there[WB_LOADER_SOURCES]; /* in the first, and so in all */
} observations;

static bool fail_observation(wb_status status, int64_t place) {
    char message[400];
    if (wb_failed())
        (void)wb_take_error(message, sizeof message);
    else
        (void)memccpy(message, wb_status_text(status), 0, sizeof message);
    (void)wb_fail(status, "loader: observation %lld: %s", (long long)place, message);
    return false;
}

static bool take_arrays(observations *o, int64_t i, int64_t place, wb_array *const *arrays) {
    for (int k = 0; k < WB_LOADER_SOURCES; k++) {
        if (i == 0) o->is_there[k] = arrays[k] != NULL;
        if (o->is_there[k] != (arrays[k] != NULL)) {
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "loader: observation %lld %s array %d, but the first of its batch %s",
                          (long long)place, arrays[k] ? "has" : "lacks", k,
                          arrays[k] ? "lacks it" : "has it");
            return false;
        }
        o->all[k * o->size + i] = arrays[k];
    }
    return true;
}

static bool observe(observations *o, const int64_t *places) {
    const wb_loader_desc *desc = &o->loader->desc;
    for (int64_t i = 0; i < o->size; i++) {
        wb_array *arrays[WB_LOADER_SOURCES] = {NULL};
        const wb_status status = desc->observe(places[i], arrays, desc->user);
        if (status != WB_OK || wb_failed())
            return fail_observation(status == WB_OK ? wb_error_status() : status, places[i]);
        if (!take_arrays(o, i, places[i], arrays)) return false;
    }
    return true;
}

static wb_array **place_in(wb_batch *batch, int k) {
    return k == 0 ? &batch->x : k == 1 ? &batch->y : &batch->more[k - 2];
}

static bool have_one_size(wb_array *const *list, int64_t size, int k) {
    for (int64_t i = 1; i < size; i++)
        if (!wb_same_sizes(list[i], list[0])) {
            (void)wb_fail(
                WB_ERROR_SHAPE,
                "loader: without .collate the observations of a batch must have one size, "
                "but array %d has %s and %s",
                k, wb_text_of(list[0]), wb_text_of(list[i]));
            return false;
        }
    return true;
}

static void stack(const observations *o, wb_batch *batch) {
    if (!o->is_there[0])
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: without .collate, observe must set arrays[0], the batch's x");
    for (int k = 0; k < WB_LOADER_SOURCES && !wb_failed(); k++) {
        wb_array **list = &o->all[k * o->size];
        if (o->is_there[k] && have_one_size(list, o->size, k))
            *place_in(batch, k) = wb_stack_make(-1, (int)o->size, list);
    }
}

static void collate(const observations *o, wb_batch *batch) {
    const wb_loader_desc *desc = &o->loader->desc;
    wb_array *const *lists[WB_LOADER_SOURCES] = {NULL};
    for (int k = 0; k < WB_LOADER_SOURCES; k++)
        if (o->is_there[k]) lists[k] = &o->all[k * o->size];
    const int64_t size = batch->size; /* 0: the arrays are made of other ranks' observations */
    batch->size = o->size;
    const wb_status status = desc->collate(batch, lists, desc->user);
    batch->size = size;
    if (status != WB_OK && !wb_failed())
        (void)wb_fail(status, "loader: collate: %s", wb_status_text(status));
    else if (!batch->x && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "loader: collate must set the batch's x");
}

/* In a batch without observations, arrays with one entry for each observation become arrays without
 * entries. */
static void cut(wb_batch *batch, int64_t size) {
    for (int k = 0; k < WB_LOADER_SOURCES && batch->size == 0 && !wb_failed(); k++) {
        wb_array **x = place_in(batch, k);
        if (*x && wb_numobs(*x) == size) *x = wb_getobs(*x, 0, 0);
    }
}

void wb_collate(const wb_loader *loader, wb_batch *batch) {
    wb_array *places = batch->x;
    const int64_t *numbers = places ? wb_read_begin(places) : NULL;
    observations o = {.loader = loader, .size = places ? wb_numobs(places) : 0};
    batch->x = NULL;
    o.all = numbers ? wb_alloc_list(o.size * WB_LOADER_SOURCES, sizeof *o.all) : NULL;
    if (o.all && observe(&o, numbers)) {
        if (loader->desc.collate)
            collate(&o, batch);
        else
            stack(&o, batch);
        cut(batch, o.size);
    }
    if (numbers) wb_read_end(places);
    wb_release(o.all);
    if (!wb_failed() && loader->desc.device) (void)wb_batch_to(loader->desc.device, batch);
}
