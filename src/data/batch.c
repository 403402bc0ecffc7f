/* The arrays of a batch: by number, by name, moved to a device. */
#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "base/error.h"
#include "data/loader.h"
#include "ops/ops.h"

wb_array **wb_batch_place(const wb_loader *loader, wb_batch *batch, int i) {
    const bool has_y = loader->desc.y != NULL;
    if (i == 0) return &batch->x;
    return i == 1 && has_y ? &batch->y : &batch->more[i - 1 - has_y];
}

wb_array *wb_batch_get(const wb_batch *batch, const char *name) {
    if (wb_failed()) return NULL;
    if (!batch || !batch->loader_ || !name)
        return wb_fail_argument_null("wb_batch_get", name ? "the batch" : "name");
    const wb_loader *loader = batch->loader_;
    if (!wb_loader_check("wb_batch_get", loader)) return NULL;
    if (loader->desc.observe && strcmp(name, "y") == 0) return batch->y;
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < loader->count; i++) {
        const wb_loader_source *s = &loader->sources[i];
        if (strcmp(s->name, name) == 0) {
            wb_batch places = *batch;
            return *wb_batch_place(loader, &places, i);
        }
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", s->name);
    }
    return wb_fail_null(WB_ERROR_ARGUMENT, "wb_batch_get: no array is named \"%s\"; there are %s",
                        name, names);
}

wb_status wb_batch_to(const wb_device *device, wb_batch *batch) {
    if (!device || !batch) {
        if (!wb_failed())
            (void)wb_fail_argument_null("wb_batch_to", device ? "batch" : "the device");
        return wb_error_status();
    }
    wb_batch moved = *batch;
    wb_array **arrays[WB_LOADER_SOURCES] = {&moved.x, &moved.y};
    for (int i = 0; i < WB_MORE_ARRAYS; i++) arrays[i + 2] = &moved.more[i];
    for (int i = 0; i < WB_LOADER_SOURCES; i++) {
        if (!wb_may_use_given("wb_batch_to", *arrays[i], "an array of the batch"))
            return wb_error_status();
        if (!*arrays[i]) continue;
        *arrays[i] = wb_move_array(device, *arrays[i], WB_ELTYPE_DEFAULT);
        if (!*arrays[i]) return wb_error_status();
    }
    *batch = moved;
    return WB_OK;
}
