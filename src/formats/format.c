/* The table of formats. The end of a file's name decides which one it is, else the first bytes. A
 * file of another program is an error that says what it is and how to convert it. */
#include "formats/format.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/replace.h"
#include "formats/jld2.h"
#include "formats/pt.h"
#include "formats/strangers.h"

/* .npz after .pt, which is a zip file, too. */
static const wb_format *const formats[] = {&wb_format_bson, &wb_format_safetensors, &wb_format_npy,
                                           &wb_format_pt,   &wb_format_npz,         &wb_format_jld2,
                                           &wb_format_gguf, &wb_format_index};
enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_with(const char *path, const char *end) {
    const size_t length = strlen(path), tail = strlen(end);
    return length >= tail && strcasecmp(path + length - tail, end) == 0;
}

static const wb_format *named(const char *path) {
    for (int i = 0; i < FORMATS; i++)
        if (ends_with(path, formats[i]->extension)) return formats[i];
    return NULL;
}

const wb_format *wb_format_of_name(const char *path) {
    const wb_format *format = named(path);
    return format && format->write ? format : NULL;
}

const wb_format *wb_format_of_path(const char *path) {
    const wb_format *format = named(path);
    if (format && format->write) return format;
    if (format)
        return wb_fail_null(WB_ERROR_FORMAT,
                            "%s: files of %s are read, and not written; %s can be read there", path,
                            format->name, format == &wb_format_jld2 ? ".bson" : ".safetensors");
    return wb_fail_null(WB_ERROR_FORMAT,
                        "%s: the name must end in .bson, .safetensors, .npy, .npz or .gguf", path);
}

const wb_format *wb_format_of_file(const wb_file *file) {
    const wb_format *format = named(file->path);
    /* HDF5, but no stranger */
    if (wb_format_jld2.recognises(&file->map) ||
        (format == &wb_format_jld2 && wb_jld2_find(&file->map) >= 0))
        return &wb_format_jld2;
    if (wb_pt_is_old(&file->map)) return &wb_format_pt; /* pickles, but no strangers */
    if (wb_format_gguf.recognises(&file->map)) return &wb_format_gguf;
    const bool is_it = format && format->recognises(&file->map),
               is_zip = format == &wb_format_npz || format == &wb_format_pt;
    const char *what = is_it && !is_zip ? NULL : wb_stranger(&file->map);
    if (what) return wb_fail_null(WB_ERROR_FORMAT, "%s: is %s", file->path, what);
    for (int i = 0; (!format || is_zip) && i < FORMATS; i++)
        if (formats[i]->recognises(&file->map)) return formats[i];
    if (format) return format;
    return wb_fail_null(
        WB_ERROR_FORMAT,
        "%s: the name must end in .bson, .safetensors, .npy, .npz, .pt, .gguf or .jld2",
        file->path);
}

/* ---- writing ---- */

static wb_status io_error(const char *path, const char *what) {
    return wb_fail(WB_ERROR_IO, "%s: %s: %s", path, what, wb_replace_words(errno));
}

wb_status wb_write_file(const wb_format *format, const wb_record *root, const wb_record *metadata,
                        const char *path) {
    wb_replacement file;
    if (!wb_replace_begin(&file, path)) return io_error(path, "cannot be made");
    wb_text out = {.file = file.stream, .path = path};
    const wb_status status = format->write(root, metadata, &out);
    const bool is_replaced = wb_replace_end(&file, status == WB_OK);
    return status == WB_OK && !is_replaced ? io_error(path, "cannot be written") : status;
}

static void release_bytes(void *context, void *data) {
    (void)context;
    wb_release(data);
}

wb_file *wb_write_memory(const wb_format *format, const wb_record *root, const wb_record *metadata,
                         const char *name) {
    wb_text out = {.path = name};
    if (format->write(root, metadata, &out) == WB_OK && wb_text_status(&out) == WB_OK)
        return wb_open_memory(name, out.data, out.size, release_bytes, NULL);
    wb_text_release(&out);
    return NULL;
}
