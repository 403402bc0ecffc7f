/* IDX files, plain and as gzip: what was read of a plain one, written again, is the input. */
#include "fuzz_path.h"

#include <string.h>

static void check_sizes(const wb_array *x, const uint8_t *data) {
    const uint8_t *at = data + 4;
    DEMAND(wb_ndim(x) == data[3]);
    for (int d = wb_ndim(x) - 1; d >= 0; d--, at += 4)
        DEMAND(wb_size(x, d) == ((int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]));
}

/* Of i8 and i16, which are read as i32. */
static void check_widened(wb_array *x, const uint8_t *at, size_t bytes, int width) {
    const int32_t *numbers = wb_read_begin(x);
    DEMAND(bytes == (size_t)wb_count(x) * (size_t)width && numbers);
    for (size_t i = 0; i < bytes / (size_t)width; i++, at += width) {
        const int32_t wanted = width == 1 ? (int8_t)at[0] : (int16_t)(at[0] << 8 | at[1]);
        DEMAND(numbers[i] == wanted);
    }
    wb_read_end(x);
}

/* The numbers, which are big-endian in the file. */
static void check_numbers(wb_array *x, const uint8_t *data, size_t size) {
    const size_t element = wb_dtype_size(wb_dtype_of(x)), header = 4 + 4 * (size_t)wb_ndim(x);
    if (data[2] == 0x09 || data[2] == 0x0b) {
        check_widened(x, data + header, size - header, data[2] == 0x09 ? 1 : 2);
        return;
    }
    const uint8_t *bytes = wb_read_begin(x);
    DEMAND(size == header + (size_t)wb_count(x) * element && bytes);
    for (size_t i = 0; i < size - header; i++)
        DEMAND(bytes[i] == data[header + i - i % element + element - 1 - i % element]);
    wb_read_end(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (wb_scope_open() != WB_OK) abort();
    wb_array *x = wb_read_idx(fuzz_path(data, size));
    DEMAND(!x == wb_failed());
    const bool is_zipped = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
    if (x && !is_zipped) check_sizes(x, data), check_numbers(x, data, size);
    wb_clear_error();
    (void)wb_scope_close();
    return 0;
}
