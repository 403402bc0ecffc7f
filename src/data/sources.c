/* The arrays that a loader takes observations of: named, checked and held. */
#include <string.h>

#include <weber/ops.h>

#include "array/use.h"
#include "base/memory.h"
#include "data/loader.h"
#include "ops/ops.h"

/* With this many, the batch of all ranks together, starting after all of an array's elements, still
 * ends at a place that int64_t can hold. */
#define MOST_BATCH ((int64_t)1 << 40)

/* ---- what is asked for ---- */

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
            (void)wb_fail(
                WB_ERROR_ARGUMENT,
                "loader: names in .more must differ from x, y and each other, got \"%s\" %s",
                names[k], k < 2 ? "there" : "twice");
            return false;
        }
    }
    for (int i = 0; i < WB_MORE_ARRAYS; i++) {
        if (desc->more[i].name || !desc->more[i].array) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: array %d of .more has no name, and the list ends at the first entry "
                      "without one",
                      i);
        return false;
    }
    return true;
}

static bool check_observe(const wb_loader_desc *d) {
    const char *other = d->getobs    ? "getobs"
                        : d->prepare ? "prepare"
                        : d->x       ? "x"
                        : d->y       ? "y"
                                     : NULL;
    for (int i = 0; i < WB_MORE_ARRAYS; i++)
        if (d->more[i].name || d->more[i].array) other = "more";
    if (d->collate && !d->observe)
        (void)wb_fail(WB_ERROR_ARGUMENT, "loader: collate needs .observe");
    else if (!d->observe)
        return true;
    else if (other)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "loader: observe makes all arrays, so %s must not be given", other);
    else if (d->numobs < 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "loader: observe needs .numobs of at least 1, got %lld",
                      (long long)d->numobs);
    else
        return true;
    return false;
}

bool wb_loader_check_desc(const wb_loader_desc *desc) {
    wb_status status = WB_OK;
    if (!wb_check_start("loader", desc->start_) || !check_observe(desc))
        status = WB_ERROR_ARGUMENT;
    else if (!desc->x && !desc->observe)
        (void)wb_fail_argument_null("loader", "x"), status = WB_ERROR_ARGUMENT;
    else if (!are_there(desc))
        status = WB_ERROR_ARGUMENT;
    else if (!wb_getobs_check(desc))
        status = WB_ERROR_ARGUMENT;
    else if (desc->batchsize < 1 || desc->batchsize > MOST_BATCH)
        status = wb_fail(WB_ERROR_ARGUMENT, "loader: batchsize must be from 1 to %lld, got %lld",
                         (long long)MOST_BATCH, (long long)desc->batchsize);
    return status == WB_OK;
}

/* ---- arrays ---- */

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
        status = wb_fail(WB_ERROR_SHAPE,
                         "loader: %s has %lld observation%s in %s, but %s has %lld in %s",
                         loader->sources[0].name, (long long)loader->observations,
                         loader->observations == 1 ? "" : "s", wb_text_of(loader->sources[0].array),
                         name, (long long)wb_numobs(x), wb_text_of(x));
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
    loader->sources[loader->count++] = (wb_loader_source){
        .name = copied,
        .array = wb_hold(x),
        .start = is_host ? (const char *)x->buffer->handle + x->offset * element : NULL,
        .bytes = wb_count(x) / wb_numobs(x) * element,
        .stride_bytes = strides[x->ndim - 1] * element};
    return true;
}

bool wb_loader_add_sources(wb_loader *loader, const wb_loader_desc *desc) {
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

void wb_loader_release_sources(wb_loader *loader) {
    for (int i = 0; i < loader->count; i++) {
        wb_unhold(loader->sources[i].array);
        wb_release(loader->sources[i].name);
    }
}

/* ---- beside another loader ---- */

/* But for how many observations there are. */
static bool has_other_sizes(const wb_array *x, const wb_array *y) {
    const size_t bytes = (size_t)(x->ndim - 1) * sizeof *x->sizes;
    return x->ndim != y->ndim || memcmp(x->sizes, y->sizes, bytes) != 0;
}

void wb_loader_compare(const wb_loader *training, const wb_loader *validation) {
    for (int i = 0; i < training->count && i < validation->count; i++) {
        const wb_array *x = training->sources[i].array, *y = validation->sources[i].array;
        if (x && y && has_other_sizes(x, y))
            wb_error_add("the %s of the validation data is %s, that of the training data %s",
                         training->sources[i].name, wb_text_of(y), wb_text_of(x));
    }
}
