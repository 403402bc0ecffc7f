/* Pictures as bytes: what reading, resizing and preparing share. */
#ifndef WB_IMAGES_IMAGES_H
#define WB_IMAGES_IMAGES_H

#include <weber/images.h>

/* Planes of width times height bytes, one for each channel: as in an array (width, height,
 * channels). `bytes` is released by wb_release. */
typedef struct wb_pixels {
    int64_t width, height, channels;
    unsigned char *bytes;
} wb_pixels;

/* A file in memory. */
typedef struct wb_image_file {
    const char *path;
    const unsigned char *bytes;
    int64_t size;
} wb_image_file;

/* The picture in the file, with 1, 3 or 4 channels, or 0: those of the file. False with the error
 * recorded. */
bool wb_pixels_read(const char *path, int channels, wb_pixels *pixels);
/* The same as an array. Takes the pixels, also on failure. */
wb_array *wb_pixels_array(wb_pixels *pixels);

/* Sets the file's bytes and size, and returns the bytes, to be released; NULL with the error
 * recorded. */
unsigned char *wb_image_file_read(wb_image_file *file);
/* Whether so small a file can hold these pixels, for which its format needs that many bytes at
 * least; false with the error recorded. */
bool wb_image_can_hold(const wb_image_file *file, int64_t width, int64_t height,
                       double least_bytes);
/* Room for that many interleaved pixels of `channels` bytes, if the limits allow them. NULL with
 * the error recorded. */
unsigned char *wb_image_room(const wb_image_file *file, int64_t width, int64_t height,
                             int64_t channels);
/* Records that the file is damaged, and why; NULL. */
void *wb_image_fault(const wb_image_file *file, const char *why);

/* ---- formats: interleaved pixels of *pixels' sizes, to be released; NULL with the error
 * recorded ---- */

bool wb_is_png(const wb_image_file *file);
unsigned char *wb_png_read(const wb_image_file *file, wb_pixels *sizes);
bool wb_is_jpeg(const wb_image_file *file);
unsigned char *wb_jpeg_read(const wb_image_file *file, wb_pixels *sizes);

#endif
