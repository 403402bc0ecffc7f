/* Loaders over a folder of pictures: observations that one of the library's functions writes. */
#include <weber/ops.h>

#include "array/array.h"
#include "base/error.h"
#include "data/loader.h"

static wb_status get_picture(const wb_observation *observation, void *user) {
    return wb_image_files_get(user, observation->place, observation->data[0], observation->data[1]);
}

/* What else says where observations come from. */
static const char *other_source(const wb_loader_desc *d) {
    const bool has_more = d->more[0].name || d->more[0].array;
    return d->x         ? "x"
           : d->y       ? "y"
           : has_more   ? "more"
           : d->getobs  ? "getobs"
           : d->observe ? "observe"
           : d->numobs  ? "numobs"
                        : NULL;
}

bool wb_pictures_plan(wb_loader *loader, wb_loader_desc *desc) {
    if (!desc->images) return true;
    const char *other = other_source(desc);
    if (other) {
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "loader: with images all observations come from the folder, so %s must not be "
            "given",
            other);
        return false;
    }
    const uint64_t errors = wb_error_count();
    int64_t sizes[4] = {0, 0, 0, 1};
    if (!wb_image_files_take("loader", desc->images, &loader->files)) return false;
    if (!wb_image_files_sizes(loader->files, sizes)) {
        (void)wb_error_prefix(errors, "loader: ");
        return false;
    }
    const int64_t one = 1;
    desc->x = wb_full_make(WB_F32, 0, 4, sizes), desc->y = wb_full_make(WB_I32, 0, 1, &one);
    desc->numobs = wb_image_files_count(loader->files);
    desc->getobs = get_picture, loader->getobs_user = loader->files;
    desc->images = NULL;
    return desc->x && desc->y;
}
