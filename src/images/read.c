/* Pictures from files: what kind of file it is, and the channels that are wanted. */
#include <string.h>

#include "array/array.h"
#include "base/memory.h"
#include "images/images.h"

/* ---- channels ---- */

static bool has_colours(int64_t channels) { return channels >= 3; }
static bool has_alpha(int64_t channels) { return channels == 2 || channels == 4; }

/* PIL's grey: the luma of ITU-R 601-2 in 16 bits. */
static unsigned char grey_of(const unsigned char *rgb) {
    return (unsigned char)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

/* One plane of the result: channel number c of `to`, from pixels of `from` channels. */
static void fill_plane(unsigned char *plane, int64_t c, int64_t to, const unsigned char *pixels,
                       int64_t from, int64_t count) {
    const bool is_alpha = has_alpha(to) && c == to - 1;
    const bool makes_grey = !is_alpha && has_colours(from) && !has_colours(to);
    if (is_alpha && !has_alpha(from))
        memset(plane, 255, (size_t)count);
    else if (makes_grey)
        for (int64_t i = 0; i < count; i++) plane[i] = grey_of(pixels + i * from);
    else {
        const int64_t source = is_alpha ? from - 1 : has_colours(from) ? c : 0;
        for (int64_t i = 0; i < count; i++) plane[i] = pixels[i * from + source];
    }
}

static bool into_planes(wb_pixels *pixels, const unsigned char *interleaved, int channels) {
    const int64_t from = pixels->channels, to = channels ? channels : from;
    const int64_t count = pixels->width * pixels->height;
    if (!(pixels->bytes = wb_alloc_list(count * to, 1))) return false;
    for (int64_t c = 0; c < to; c++)
        fill_plane(pixels->bytes + c * count, c, to, interleaved, from, count);
    pixels->channels = to;
    return true;
}

/* ---- files ---- */

static unsigned char *decode(const wb_image_file *file, wb_pixels *sizes) {
    if (wb_is_png(file)) return wb_png_read(file, sizes);
    if (wb_is_jpeg(file)) return wb_jpeg_read(file, sizes);
    return wb_fail_null(
        WB_ERROR_FORMAT,
        "%s: a picture must be a PNG or JPEG file; this one begins with other bytes", file->path);
}

bool wb_pixels_read(const char *path, int channels, wb_pixels *pixels) {
    wb_image_file file = {.path = path};
    *pixels = (wb_pixels){.width = 0};
    unsigned char *bytes = wb_image_file_read(&file);
    unsigned char *interleaved = bytes ? decode(&file, pixels) : NULL;
    wb_release(bytes);
    const bool good = interleaved && into_planes(pixels, interleaved, channels);
    wb_release(interleaved);
    return good;
}

wb_array *wb_pixels_array(wb_pixels *pixels) {
    const int64_t sizes[] = {pixels->width, pixels->height, pixels->channels};
    wb_array *x = wb_from_make(WB_U8, pixels->bytes, 3, sizes);
    wb_release(pixels->bytes);
    pixels->bytes = NULL;
    return x;
}

wb_array *wb_image_read_make(const char *path, wb_image_read_desc desc) {
    if (wb_failed()) return wb_not_run_null("wb_image_read");
    if (!wb_check_start("image_read", desc.start_)) return NULL;
    if (!path) return wb_fail_argument_null("image_read", "the path");
    if (desc.channels != 0 && desc.channels != 1 && desc.channels != 3 && desc.channels != 4)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "image_read: channels must be 1, 3 or 4, or 0 for those of the file, "
                            "got %d",
                            desc.channels);
    wb_pixels pixels;
    return wb_pixels_read(path, desc.channels, &pixels) ? wb_pixels_array(&pixels) : NULL;
}
