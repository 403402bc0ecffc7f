/* JPEG files (ITU-T T.81), by TurboJPEG, whose functions report errors by their results. */
#include <string.h>

#include "base/error.h"
#include "base/library.h"
#include "base/memory.h"
#include "images/images.h"

/* ---- the library: numbers of turbojpeg.h 2 ---- */

enum {
    PIXELS_RGB = 0,
    PIXELS_GREY = 6,
    SPACE_GREY = 2,
    SPACE_CMYK = 3,
    SPACE_YCCK = 4,
    LIMIT_SCANS = 1 << 15, /* thousands of scans of one picture take minutes */
    IS_WARNING = 0,
    MOST_PIXELS_IN_A_BYTE = 1024 /* a block of 64 pixels takes a bit or more; twice that */
};

static struct {
    void *(*begin)(void);
    int (*header)(void *decoder, const unsigned char *bytes, unsigned long size, int *width,
                  int *height, int *subsampling, int *space);
    int (*decode)(void *decoder, const unsigned char *bytes, unsigned long size, unsigned char *to,
                  int width, int pitch, int height, int format, int flags);
    int (*end)(void *decoder);
    char *(*message)(void *decoder);
    int (*severity)(void *decoder);
} jpeg;

static bool open_jpeg(const wb_image_file *file) {
    static const char *const names[] = {"libturbojpeg.so.0", "libturbojpeg.0.dylib", NULL};
    static const wb_library_function functions[] = {
        {"tjInitDecompress", &jpeg.begin},
        {"tjDecompressHeader3", &jpeg.header},
        {"tjDecompress2", &jpeg.decode},
        {"tjDestroy", &jpeg.end},
        {"tjGetErrorStr2", &jpeg.message},
        {"tjGetErrorCode", &jpeg.severity},
        {NULL, NULL},
    };
    static wb_library library = {names, "TurboJPEG", "libturbojpeg0", functions, NULL};
    return wb_library_open(&library, file->path, "a JPEG file") == WB_OK;
}

/* ---- a file ---- */

bool wb_is_jpeg(const wb_image_file *file) {
    return file->size >= 3 && memcmp(file->bytes, "\xFF\xD8\xFF", 3) == 0;
}

static bool has_room(const wb_image_file *file, int width, int height) {
    return wb_image_can_hold(file, width, height,
                             (double)width * (double)height / MOST_PIXELS_IN_A_BYTE);
}

/* Whether the last scan (FF DA) has an end (FF D9) behind it: neither is in a scan's data. */
static bool is_whole(const wb_image_file *file) {
    for (int64_t i = file->size - 2; i >= 0; i--)
        if (file->bytes[i] == 0xFF && (file->bytes[i + 1] == 0xD9 || file->bytes[i + 1] == 0xDA))
            return file->bytes[i + 1] == 0xD9;
    return false;
}

/* Files in the wild have bytes too many between their parts, which readers pass over. The message
 * is that of the last warning or error; an error after a warning counts as a warning. */
static bool is_harmless(const wb_image_file *file, void *decoder) {
    return jpeg.severity(decoder) == IS_WARNING && is_whole(file) &&
           strstr(jpeg.message(decoder), "extraneous bytes");
}

static void *fault(const wb_image_file *file, void *decoder) {
    return wb_image_fault(file, is_whole(file) ? jpeg.message(decoder) : "it is cut short");
}

static unsigned char *decode(const wb_image_file *file, void *decoder, wb_pixels *sizes) {
    int width = 0, height = 0, subsampling = 0, space = SPACE_GREY; /* an error may set none */
    const unsigned long size = (unsigned long)file->size;
    if (jpeg.header(decoder, file->bytes, size, &width, &height, &subsampling, &space) != 0 &&
        !is_harmless(file, decoder))
        return fault(file, decoder);
    if (space == SPACE_CMYK || space == SPACE_YCCK)
        return wb_fail_null(
            WB_ERROR_UNSUPPORTED,
            "%s: the picture is in CMYK, the colours of printers; only grey and RGB "
            "are read",
            file->path);
    sizes->width = width, sizes->height = height, sizes->channels = space == SPACE_GREY ? 1 : 3;
    unsigned char *to =
        has_room(file, width, height) ? wb_image_room(file, width, height, sizes->channels) : NULL;
    if (!to) return NULL;
    if (jpeg.decode(decoder, file->bytes, size, to, width, 0, height,
                    space == SPACE_GREY ? PIXELS_GREY : PIXELS_RGB, LIMIT_SCANS) == 0 ||
        is_harmless(file, decoder))
        return to;
    wb_release(to);
    return fault(file, decoder);
}

unsigned char *wb_jpeg_read(const wb_image_file *file, wb_pixels *sizes) {
    if (!open_jpeg(file)) return NULL;
    void *decoder = jpeg.begin();
    if (!decoder) return wb_fail_null(WB_ERROR_MEMORY, "%s: no memory for TurboJPEG", file->path);
    unsigned char *bytes = decode(file, decoder, sizes);
    (void)jpeg.end(decoder);
    return bytes;
}
