/* CIFAR's binary files: the first byte says how many labels a record has; what was read is the
 * input, byte by byte. */
#include "fuzz_path.h"

#include <string.h>

enum { PIXELS = 32 * 32 * 3 };

static void check_records(wb_array *images, wb_array *labels, int label_bytes, const uint8_t *data,
                          size_t size) {
    const size_t record = (size_t)label_bytes + PIXELS;
    const int64_t n = wb_size(images, 3);
    const uint8_t *pixels = wb_read_begin(images);
    const int32_t *numbers = wb_read_begin(labels);
    DEMAND((size_t)n * record == size && wb_count(labels) == n * label_bytes);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *at = data + (size_t)i * record;
        for (int k = 0; k < label_bytes; k++) DEMAND(numbers[i * label_bytes + k] == at[k]);
        DEMAND(memcmp(pixels + i * PIXELS, at + label_bytes, PIXELS) == 0);
    }
    wb_read_end(labels);
    wb_read_end(images);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const int label_bytes = *data % 2 + 1;
    wb_array *images, *labels;
    if (wb_scope_open() != WB_OK) abort();
    const wb_status status =
        wb_read_cifar(fuzz_path(data + 1, size - 1), label_bytes, &images, &labels);
    DEMAND((status == WB_OK) == (images && labels) && (status != WB_OK) == wb_failed());
    if (images) check_records(images, labels, label_bytes, data + 1, size - 1);
    wb_clear_error();
    (void)wb_scope_close();
    return 0;
}
