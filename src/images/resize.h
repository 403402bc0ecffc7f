/* Resizing of pictures in memory. */
#ifndef WB_IMAGES_RESIZE_H
#define WB_IMAGES_RESIZE_H

#include "images/images.h"

enum { WB_MOST_SIDE = 1 << 20 }; /* of a resized picture */

/* A part of a picture. */
typedef struct wb_window {
    int64_t x, y, width, height;
} wb_window;

/* Pixels of an array (width, height, ...) of u8, whose other dimensions become channels. False with
 * the error recorded. */
bool wb_pixels_of(wb_array *x, wb_pixels *pixels);

/* False with the error recorded. */
bool wb_check_filter(const char *function, int filter);

/* The window of what x becomes when it is resized to (width, height), which are at least 1. */
bool wb_pixels_resize(const wb_pixels *x, int64_t width, int64_t height, int filter, wb_window w,
                      wb_pixels *to);

#endif
