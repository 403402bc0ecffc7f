/* Fashion-MNIST (Xiao, Rasul and Vollgraf 2017): four files in the IDX format, from the folder
 * WEBER_DATA or from Debian's package. Nothing is downloaded. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weber/data.h>

#include "array/array.h"
#include "platform/process.h"

static const char system_folder[] = "/usr/share/datasets/fashion-mnist";

static bool find_file(char *path, size_t size, const char *name) {
    const char *folders[] = {wb_platform_trusted_variable("WEBER_DATA"), system_folder};
    for (int i = 0; i < 2; i++) {
        if (!folders[i] || !*folders[i]) continue;
        if ((size_t)snprintf(path, size, "%s/%s", folders[i], name) < size &&
            access(path, R_OK) == 0)
            return true;
    }
    (void)wb_fail(WB_ERROR_IO,
                  "fashion_mnist: %s is neither in %s nor in %s; install the Debian package "
                  "dataset-fashion-mnist, or set WEBER_DATA to the folder that has it",
                  name, folders[0] && *folders[0] ? folders[0] : "WEBER_DATA (not set)",
                  system_folder);
    return false;
}

static wb_array *read_part(const char *split, const char *kind) {
    char name[64], path[4096];
    (void)snprintf(name, sizeof name, "%s-%s-ubyte.gz", split, kind);
    return find_file(path, sizeof path, name) ? wb_read_idx(path) : NULL;
}

wb_status wb_fashion_mnist(wb_split split, wb_array **images, wb_array **labels) {
    if (!images || !labels) {
        (void)wb_fail_argument_null("wb_fashion_mnist", images ? "labels" : "images");
        return wb_error_status();
    }
    *images = *labels = NULL;
    if (wb_failed()) return wb_not_run("wb_fashion_mnist");
    const char *prefix = split == WB_SPLIT_TEST ? "t10k" : "train";
    wb_array *x = read_part(prefix, "images-idx3");
    wb_array *y = x ? read_part(prefix, "labels-idx1") : NULL;
    if (x && y && (wb_ndim(x) != 3 || wb_ndim(y) != 1 || wb_numobs(x) != wb_numobs(y)))
        return wb_fail(WB_ERROR_FORMAT,
                       "fashion_mnist: images must be (28, 28, n) and labels (n) with the same n, "
                       "got images %s and labels %s",
                       wb_text_of(x), wb_text_of(y));
    y = y ? wb_cast(y, WB_I32) : NULL;
    if (!y) return wb_error_status();
    const wb_status status = wb_eval(y);
    if (status != WB_OK) return status;
    *images = x, *labels = y;
    return WB_OK;
}

const char *wb_fashion_mnist_class(int label) {
    static const char *const names[] = {"T-shirt/top", "Trouser",   "Pullover", "Dress",
                                        "Coat",        "Sandal",    "Shirt",    "Sneaker",
                                        "Bag",         "Ankle boot"};
    return label >= 0 && label < 10 ? names[label] : NULL;
}
