/* Pictures: a PNG or JPEG file. What can be read has the pixels that its sizes say, and can be
 * prepared; the same file gives the same bytes again. */
#include "fuzz_path.h"

#include <stdlib.h>
#include <string.h>

#include <weber/images.h>

static void check(const char *path, int channels) {
    wb_array *x = wb_image_read(path, channels), *y = wb_image_read(path, channels);
    DEMAND((x == NULL) == wb_failed());
    if (!x) {
        DEMAND(wb_error_status() == WB_ERROR_FORMAT || wb_error_status() == WB_ERROR_UNSUPPORTED);
        DEMAND(strstr(wb_error_message(), path) != NULL);
        wb_clear_error();
        return;
    }
    const int64_t count = wb_count(x);
    DEMAND(wb_ndim(x) == 3 && (channels == 0 || wb_size(x, 2) == channels) && wb_count(y) == count);
    DEMAND(memcmp(wb_read_begin(x), wb_read_begin(y), (size_t)count) == 0);
    wb_read_end(x), wb_read_end(y);
    if (wb_size(x, 2) == 3 && count < 1 << 16) {
        wb_array *z = wb_image_prepare(x, .resize = 9, .crop = 8);
        DEMAND(z ? wb_size(z, 0) == 8 : wb_error_status() == WB_ERROR_SHAPE);
        wb_clear_error();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_path(data, size);
    wb_clear_error();
    (void)setenv("WEBER_INFLATE_MIB", "1", 1);
    DEMAND(wb_scope_open() == WB_OK);
    check(path, 0);
    check(path, size % 2 ? 3 : 4);
    DEMAND(wb_scope_close() == WB_OK);
    return 0;
}
