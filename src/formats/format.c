#include "formats/format.h"

#include <string.h>
#include <strings.h>

static const wb_format *const formats[] = {&wb_format_bson, &wb_format_safetensors, &wb_format_npy,
                                           &wb_format_npz};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_with(const char *path, const char *end) {
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcasecmp(path + length - tail, end) == 0;
}

const wb_format *wb_format_of_name(const char *path) {
    for (int i = 0; i < FORMATS; i++)
        if (ends_with(path, formats[i]->extension)) return formats[i];
    return NULL;
}

static void *unknown(const char *path) {
    return wb_fail_null(
        WB_ERROR_FORMAT,
        "%s: the format is not known by the name; .bson, .safetensors, .npy and .npz are", path);
}

const wb_format *wb_format_of_path(const char *path) {
    const wb_format *format = wb_format_of_name(path);
    return format ? format : unknown(path);
}

const wb_format *wb_format_of_file(const wb_file *file) {
    const wb_format *format = wb_format_of_name(file->path);
    for (int i = 0; !format && i < FORMATS; i++)
        if (formats[i]->recognises(&file->map)) format = formats[i];
    return format ? format : unknown(file->path);
}
