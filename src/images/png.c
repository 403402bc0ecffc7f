/* PNG files (W3C, Portable Network Graphics, third edition), by libpng. Its simplified functions,
 * which need no setjmp, apply gammas, as no library for training does, and read interlaced files of
 * 16 bits wrongly (1.6.39). */
#include <setjmp.h>
#include <string.h>

#include "base/error.h"
#include "base/inflate.h"
#include "base/library.h"
#include "base/memory.h"
#include "images/images.h"

/* ---- the library: png.h 1.6, whose structs stay opaque ---- */

typedef struct png_struct png_struct;
typedef struct png_info png_info;
typedef void on_message(png_struct *png, const char *message);
typedef void on_read(png_struct *png, unsigned char *to, size_t size);
enum { CRC_IS_ERROR = 1 }; /* PNG_CRC_ERROR_QUIT */

static struct {
    const char *(*version)(const png_struct *png);
    png_struct *(*begin)(const char *version, void *user, on_message *error, on_message *warning);
    png_info *(*begin_info)(const png_struct *png);
    void (*end)(png_struct **png, png_info **info, png_info **end_info);
    void *(*user)(const png_struct *png);
    void (*crc_action)(png_struct *png, int critical, int ancillary);
    void (*read_by)(png_struct *png, void *user, on_read *read);
    void *(*reader)(const png_struct *png);
    void (*read_info)(png_struct *png, png_info *info);
    uint32_t (*header)(const png_struct *png, const png_info *info, uint32_t *width,
                       uint32_t *height, int *depth, int *colours, int *interlace, int *compression,
                       int *filter);
    void (*expand)(png_struct *png);
    void (*strip_16)(png_struct *png);
    int (*passes)(png_struct *png);
    void (*update_info)(png_struct *png, png_info *info);
    unsigned char (*channels)(const png_struct *png, const png_info *info);
    size_t (*row_bytes)(const png_struct *png, const png_info *info);
    void (*read_row)(png_struct *png, unsigned char *row, unsigned char *display);
    void (*read_end)(png_struct *png, png_info *info);
} lib;

static bool open_png(const wb_image_file *file) {
    static const char *const names[] = {"libpng16.so.16", "libpng16.16.dylib", NULL};
    static const wb_library_function functions[] = {
        {"png_get_libpng_ver", &lib.version},
        {"png_create_read_struct", &lib.begin},
        {"png_create_info_struct", &lib.begin_info},
        {"png_destroy_read_struct", &lib.end},
        {"png_get_error_ptr", &lib.user},
        {"png_set_crc_action", &lib.crc_action},
        {"png_set_read_fn", &lib.read_by},
        {"png_get_io_ptr", &lib.reader},
        {"png_read_info", &lib.read_info},
        {"png_get_IHDR", &lib.header},
        {"png_set_expand", &lib.expand},
        {"png_set_strip_16", &lib.strip_16},
        {"png_set_interlace_handling", &lib.passes},
        {"png_read_update_info", &lib.update_info},
        {"png_get_channels", &lib.channels},
        {"png_get_rowbytes", &lib.row_bytes},
        {"png_read_row", &lib.read_row},
        {"png_read_end", &lib.read_end},
        {NULL, NULL},
    };
    static wb_library library = {names, "libpng", "libpng16-16", functions, NULL};
    return wb_library_open(&library, file->path, "a PNG file") == WB_OK;
}

/* ---- reading ---- */

bool wb_is_png(const wb_image_file *file) {
    return file->size >= 8 && memcmp(file->bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

/* All that has to be released, so that an error may jump from anywhere. */
typedef struct reading {
    const wb_image_file *file;
    int64_t at; /* bytes read */
    png_struct *png;
    png_info *info;
    wb_pixels *sizes;
    unsigned char *pixels;
    jmp_buf failed;
    char message[100];
    bool is_told; /* the error is recorded already */
} reading;

static void fail(png_struct *png, const char *message) {
    reading *r = lib.user(png);
    (void)memccpy(r->message, message, 0, sizeof r->message - 1);
    longjmp(r->failed, 1);
}

static void ignore(png_struct *png, const char *message) { (void)png, (void)message; }

static void read_bytes(png_struct *png, unsigned char *to, size_t size) {
    reading *r = lib.reader(png);
    if ((int64_t)size > r->file->size - r->at) fail(png, "it is cut short");
    memcpy(to, r->file->bytes + r->at, size);
    r->at += (int64_t)size;
}

static bool has_room(const reading *r, uint32_t width, uint32_t height, int depth, int colours) {
    static const int channels_of[] = {[0] = 1, [2] = 3, [3] = 1, [4] = 2, [6] = 4};
    const double bits = (double)width * height * depth * channels_of[colours];
    return wb_image_can_hold(r->file, width, height, bits / 8 / WB_MOST_DEFLATED);
}

/* Sizes and room; libpng has checked the header's numbers. */
static bool prepare(reading *r) {
    uint32_t width, height;
    int depth, colours;
    lib.crc_action(r->png, CRC_IS_ERROR, CRC_IS_ERROR); /* transparency would be left out */
    lib.read_info(r->png, r->info);
    (void)lib.header(r->png, r->info, &width, &height, &depth, &colours, NULL, NULL, NULL);
    lib.expand(r->png); /* palettes, few bits, keys of transparency */
    if (depth == 16) lib.strip_16(r->png);
    r->sizes->width = width, r->sizes->height = height;
    return has_room(r, width, height, depth, colours);
}

static bool read_rows(reading *r) {
    const int passes = lib.passes(r->png);
    lib.update_info(r->png, r->info);
    wb_pixels *s = r->sizes;
    s->channels = lib.channels(r->png, r->info);
    const int64_t row = (int64_t)lib.row_bytes(r->png, r->info);
    if (row != s->width * s->channels) fail(r->png, "its rows have another size than they should");
    r->pixels = wb_image_room(r->file, s->width, s->height, s->channels);
    for (int pass = 0; r->pixels && pass < passes; pass++)
        for (int64_t y = 0; y < s->height; y++) lib.read_row(r->png, r->pixels + y * row, NULL);
    if (r->pixels) lib.read_end(r->png, NULL);
    return r->pixels != NULL;
}

/* False: libpng has jumped, or the error is recorded (is_told). */
static bool read_png(reading *r) {
    if (setjmp(r->failed)) return false;
    const bool good = prepare(r) && read_rows(r);
    r->is_told = !good;
    return good;
}

unsigned char *wb_png_read(const wb_image_file *file, wb_pixels *sizes) {
    if (!open_png(file)) return NULL;
    reading r = {.file = file, .sizes = sizes};
    r.png = lib.begin(lib.version(NULL), &r, fail, ignore);
    r.info = r.png ? lib.begin_info(r.png) : NULL;
    if (!r.info) {
        if (r.png) lib.end(&r.png, NULL, NULL);
        return wb_fail_null(WB_ERROR_MEMORY, "%s: no memory for libpng", file->path);
    }
    lib.read_by(r.png, &r, read_bytes);
    const bool good = read_png(&r);
    lib.end(&r.png, &r.info, NULL);
    if (good) return r.pixels;
    wb_release(r.pixels);
    return r.is_told ? NULL : wb_image_fault(file, r.message);
}
