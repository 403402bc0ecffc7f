/* A file of a picture in memory, and how much memory its pixels may take. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/inflate.h"
#include "base/memory.h"
#include "images/images.h"

void *wb_image_fault(const wb_image_file *file, const char *why) {
    return wb_fail_null(WB_ERROR_FORMAT, "%s: the picture cannot be read: %s", file->path, why);
}

bool wb_image_can_hold(const wb_image_file *file, int64_t width, int64_t height,
                       double least_bytes) {
    if (least_bytes <= (double)file->size) return true;
    (void)wb_fail(WB_ERROR_FORMAT,
                  "%s: a file of %lld bytes cannot hold the (%lld, %lld) pixels that its header "
                  "claims: it is cut short or damaged",
                  file->path, (long long)file->size, (long long)width, (long long)height);
    return false;
}

unsigned char *wb_image_room(const wb_image_file *file, int64_t width, int64_t height,
                             int64_t channels) {
    const int64_t most = wb_most_inflated(file->size);
    if (width < 1 || height < 1) return wb_image_fault(file, "it has no pixels");
    if (height <= most / width / channels) return wb_alloc(wb_bytes(width * height * channels));
    return wb_fail_null(WB_ERROR_FORMAT,
                        "%s: a picture of (%lld, %lld, %lld) takes more than the %lld bytes that "
                        "are allowed (" WB_INFLATE_ADVICE ")",
                        file->path, (long long)width, (long long)height, (long long)channels,
                        (long long)most);
}

static unsigned char *read_bytes(FILE *stream, wb_image_file *file) {
    unsigned char *bytes = wb_alloc(wb_bytes(file->size + 1));
    file->bytes = bytes;
    if (!bytes || fread(bytes, 1, (size_t)file->size, stream) == (size_t)file->size) return bytes;
    wb_release(bytes);
    return wb_fail_null(WB_ERROR_IO, "%s: %s", file->path,
                        ferror(stream) ? strerror(errno) : "it became shorter while it was read");
}

unsigned char *wb_image_file_read(wb_image_file *file) {
    struct stat info;
    if (stat(file->path, &info) == 0 && !S_ISREG(info.st_mode)) /* opening a pipe would wait */
        return wb_fail_null(WB_ERROR_IO, "%s: a picture must be a regular file", file->path);
    FILE *stream = fopen(file->path, "rb");
    if (!stream || fstat(fileno(stream), &info) != 0) {
        (void)wb_fail(WB_ERROR_IO, "%s: %s", file->path, strerror(errno));
        if (stream) (void)fclose(stream);
        return NULL;
    }
    file->size = info.st_size;
    unsigned char *bytes = read_bytes(stream, file);
    (void)fclose(stream);
    return bytes;
}
