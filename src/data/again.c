/* Loaders made from loaders: over the same arrays, with batches on another device or changed by a
 * function. */
#include <string.h>

#include "base/error.h"
#include "data/loader.h"

/* A description of what the loader was made of. */
static wb_loader_desc describe(const wb_loader *loader) {
    wb_loader_desc desc = loader->desc;
    const bool has_y = desc.y != NULL;
    if (desc.observe) return desc;
    if (loader->files) {
        desc.x = desc.y = NULL, desc.getobs = NULL, desc.numobs = 0;
        return desc;
    }
    desc.x = loader->sources[0].array;
    if (has_y) desc.y = loader->sources[1].array;
    for (int i = 1 + has_y; i < loader->count; i++)
        desc.more[i - 1 - has_y] =
            (wb_named_array){loader->sources[i].name, loader->sources[i].array};
    return desc;
}

static wb_loader *again(const wb_loader *loader, wb_loader_desc desc) {
    wb_image_folder *folder = NULL; /* the user's may be gone */
    if (loader->files && !(desc.images = folder = wb_image_folder_over(loader->files))) return NULL;
    wb_loader *made = wb_loader_make(desc);
    wb_free(folder);
    if (!made) return NULL;
    memcpy(made->maps, loader->maps, sizeof made->maps);
    made->map_count = loader->map_count;
    return made;
}

wb_loader *wb_loader_to(const wb_device *device, wb_loader *loader) {
    if (!wb_loader_check("wb_loader_to", loader)) return NULL;
    if (!device) return wb_failed() ? NULL : wb_fail_argument_null("wb_loader_to", "the device");
    wb_loader_desc desc = describe(loader);
    desc.device = device;
    return again(loader, desc);
}

wb_loader *wb_mapobs(void (*f)(wb_batch *batch, void *user), void *user, wb_loader *loader) {
    if (!wb_loader_check("wb_mapobs", loader)) return NULL;
    if (!f) return wb_failed() ? NULL : wb_fail_argument_null("wb_mapobs", "the function");
    if (loader->map_count == WB_LOADER_MAPS)
        return wb_fail_null(WB_ERROR_ARGUMENT, "wb_mapobs: the loader has %d functions already",
                            WB_LOADER_MAPS);
    const wb_loader_desc desc = describe(loader);
    wb_loader *made = again(loader, desc);
    if (!made) return NULL;
    made->maps[made->map_count].fn = f;
    made->maps[made->map_count++].user = user;
    return made;
}
