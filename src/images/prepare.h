/* Pictures as input of models. */
#ifndef WB_IMAGES_PREPARE_H
#define WB_IMAGES_PREPARE_H

#include "images/images.h"

/* False with the error recorded: channels of pictures, or 0 if they are not known. */
bool wb_check_prepare(const char *function, const wb_image_prepare_desc *desc, int64_t channels);

/* Into out, of *width times *height floats for each channel; out NULL: only these sizes. False with
 * the error recorded. Draws of the thread's random numbers. */
bool wb_pixels_prepare(const wb_pixels *x, const wb_image_prepare_desc *desc, float *out);

#endif
