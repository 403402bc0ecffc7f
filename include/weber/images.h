/* weber/images.h: pictures from files.
 *
 *     wb_array *x = wb_image_read("cat.jpg", .channels = 3); // u8 (width, height, 3)
 *
 * Files are PNG or JPEG, whatever their names. libpng reads the first, TurboJPEG the second; each
 * is opened when a file needs it, and an error names the missing package. wb_image_write
 * (weber/show.h) writes PNG files. Errors: weber/error.h. */
#ifndef WEBER_IMAGES_H
#define WEBER_IMAGES_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_image_read_desc {
    WB_START_MEMBER;
    /* 1: grey; 3: red, green, blue; 4: these and alpha; default: those that the file has, which may
     * also be 2, grey and alpha. Alpha that is not wanted is dropped, alpha that is missing is 255;
     * grey is (19595 R + 38470 G + 7471 B) / 65536, rounded */
    int channels;
} wb_image_read_desc;

/* The picture in a file: u8 (width, height, channels), from left to right and from top to bottom.
 *
 * PNG of every kind: palettes become colours, 16 bits become their high 8; gamma and colour
 * profiles are not applied, and of an animation the first picture is read. JPEG: baseline and
 * progressive, 8 bits, grey or colour; the orientation in Exif data is not applied. The bytes are
 * those of PIL's Image.open(path).convert("RGB"), which however cuts 16 bits of grey off at 255.
 *
 * Fails with WB_ERROR_FORMAT, naming the path, if the file is neither, is damaged or cut short, or
 * claims more pixels than its bytes can hold or than the limit of wb_read_idx (weber/data.h)
 * allows; with WB_ERROR_UNSUPPORTED for JPEG files in CMYK, and where a library is missing. */
#define wb_image_read(...)        WB_IMAGE_READ_(__VA_ARGS__, WB_NO_MORE)
#define WB_IMAGE_READ_(path, ...) WB_MAKE_OF(wb_image_read_make, path, image_read, __VA_ARGS__)
WB_API wb_array *wb_image_read_make(const char *path, wb_image_read_desc desc);

#ifdef __cplusplus
}
#endif
#endif
