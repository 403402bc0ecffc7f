/* CIFAR-10 and CIFAR-100 in their binary form: label bytes, then 32 rows of 32 pixels of red, of
 * green, of blue. Krizhevsky 2009; https://www.cs.toronto.edu/~kriz/cifar.html. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weber/observations.h>
#include <weber/ops.h>

#include "array/array.h"
#include "base/memory.h"
#include "platform/process.h"

enum { PIXELS = 32 * 32 * 3, MOST_LABELS = 2 };

/* How many records the file has; -1 with the error recorded. */
static int64_t count_records(const char *path, FILE *file, int64_t record) {
    struct stat info;
    if (fstat(fileno(file), &info) != 0) {
        (void)wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
        return -1;
    }
    const int64_t size = (int64_t)info.st_size;
    if (size > 0 && size % record == 0) return size / record;
    (void)wb_fail(WB_ERROR_FORMAT,
                  "%s: a CIFAR file must consist of records of %lld bytes, but has %lld bytes, "
                  "%lld of them after the last record",
                  path, (long long)record, (long long)size, (long long)(size % record));
    return -1;
}

static bool read_records(const char *path, FILE *file, int labels, int64_t n, unsigned char *pixels,
                         int32_t *values) {
    unsigned char bytes[MOST_LABELS];
    for (int64_t i = 0; i < n; i++) {
        if (fread(bytes, 1, (size_t)labels, file) != (size_t)labels ||
            fread(pixels + i * PIXELS, 1, PIXELS, file) != PIXELS) {
            (void)wb_fail(WB_ERROR_IO, "%s: record %lld cannot be read", path, (long long)i);
            return false;
        }
        for (int k = 0; k < labels; k++) values[i * labels + k] = bytes[k];
    }
    return true;
}

static bool read_file(const char *path, FILE *file, int labels, wb_array **x, wb_array **y) {
    const int64_t n = count_records(path, file, labels + PIXELS);
    const int64_t sizes[] = {32, 32, 3, n}, both[] = {labels, n};
    unsigned char *pixels = n < 0 ? NULL : wb_alloc_list(n, PIXELS);
    int32_t *values = n < 0 ? NULL : wb_alloc_list(n * labels, sizeof *values);
    const bool good = pixels && values && read_records(path, file, labels, n, pixels, values);
    if (good) {
        *x = wb_from_make(WB_U8, pixels, 4, sizes);
        *y = wb_from_make(WB_I32, values, labels, labels == 1 ? &n : both);
    }
    wb_release(pixels);
    wb_release(values);
    return good && *x && *y;
}

/* Where the results go, which are NULL at first. */
static bool take_places(const char *function, wb_array **images, wb_array **labels) {
    if (images) *images = NULL;
    if (labels) *labels = NULL;
    if (images && labels) return true;
    (void)wb_fail_argument_null(function, images ? "labels" : "images");
    return false;
}

wb_status wb_read_cifar(const char *path, int label_bytes, wb_array **images, wb_array **labels) {
    if (!take_places("read_cifar", images, labels)) return wb_error_status();
    if (!path) return wb_fail_argument_null("read_cifar", "path"), wb_error_status();
    if (label_bytes < 1 || label_bytes > MOST_LABELS)
        return wb_fail(WB_ERROR_ARGUMENT, "read_cifar: a record has 1 or 2 labels, got %d",
                       label_bytes);
    FILE *file = fopen(path, "rb");
    if (!file) return wb_fail(WB_ERROR_IO, "%s: %s", path, strerror(errno));
    const bool good = read_file(path, file, label_bytes, images, labels);
    (void)fclose(file);
    if (!good) *images = *labels = NULL;
    return good ? WB_OK : wb_error_status();
}

/* ---- the data sets, in the folder WEBER_DATA ---- */

static wb_status read_set(const char *folder, const char *name, int label_bytes, wb_array **images,
                          wb_array **labels) {
    const char *data = wb_platform_trusted_variable("WEBER_DATA");
    char path[4096];
    if (!data || !*data)
        return wb_fail(WB_ERROR_IO,
                       "cifar: WEBER_DATA must name the folder that has %s, but is not set",
                       folder);
    if ((size_t)snprintf(path, sizeof path, "%s/%s/%s", data, folder, name) >= sizeof path)
        return wb_fail(WB_ERROR_IO, "cifar: WEBER_DATA is too long");
    return wb_read_cifar(path, label_bytes, images, labels);
}

wb_status wb_cifar10(wb_split split, wb_array **images, wb_array **labels) {
    static const char folder[] = "cifar-10-batches-bin";
    enum { FILES = 5 };
    if (!take_places("cifar10", images, labels)) return wb_error_status();
    if (split == WB_SPLIT_TEST) return read_set(folder, "test_batch.bin", 1, images, labels);
    wb_array *x[FILES], *y[FILES];
    for (int i = 0; i < FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "data_batch_%d.bin", i + 1);
        const wb_status status = read_set(folder, name, 1, &x[i], &y[i]);
        if (status != WB_OK) return status;
    }
    wb_array *all[] = {wb_concat_make(-1, FILES, x), wb_concat_make(-1, FILES, y)};
    const wb_status status = all[0] && all[1] ? wb_eval_make(2, all) : wb_error_status();
    if (status == WB_OK) *images = all[0], *labels = all[1];
    return status;
}

wb_status wb_cifar100(wb_split split, bool coarse, wb_array **images, wb_array **labels) {
    const char *name = split == WB_SPLIT_TEST ? "test.bin" : "train.bin";
    wb_array *x, *both;
    if (!take_places("cifar100", images, labels)) return wb_error_status();
    wb_status status = read_set("cifar-100-binary", name, 2, &x, &both);
    if (status != WB_OK) return status;
    wb_array *chosen = wb_reshape(wb_slice(both, 0, coarse ? 0 : 1, coarse ? 1 : 2, 1), -1);
    status = chosen ? wb_eval(chosen) : wb_error_status();
    if (status == WB_OK) *images = x, *labels = chosen;
    return status;
}
