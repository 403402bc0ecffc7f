/* What the makers of vision models have in common. */
#ifndef WB_LAYERS_VISION_H
#define WB_LAYERS_VISION_H

#include <weber/vision.h>

#include "layers/layer.h"

/* False with the error recorded. */
bool wb_vision_may_make(const char *function, wb_start start, int64_t channels, int64_t classes);
bool wb_vision_check_chance(const char *function, const char *name, double chance);

/* The model, or NULL, whose error then begins with the maker's name. errors: wb_error_count before
 * its parts were made. */
wb_layer *wb_vision_finish(const char *function, uint64_t errors, wb_layer *model);

#endif
