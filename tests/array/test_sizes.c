/* Sizes that no memory has: of arrays, and of what a plan needs besides them. On 32-bit machines
 * addresses end long before the numbers of sizes do. */
#include <stdint.h>

#include <weber.h>

#include "base/memory.h"
#include "device/buffer.h"
#include "device/device.h"
#include "support/support.h"

/* As many elements as an array can have. */
#define MOST ((int64_t)PTRDIFF_MAX / 16)

static void arrays_have_as_many_elements_as_memory_can_hold(void **state) {
    (void)state;
    assert_non_null(wb_zeros(WB_F64, MOST));
    assert_null(wb_zeros(WB_F64, MOST + 1));
    assert_error(WB_ERROR_SHAPE, "more elements than memory can hold");
    assert_null(wb_expand(wb_scalar(WB_U8, 1), MOST / 4 + 1, 4));
    assert_error(WB_ERROR_SHAPE, "more elements than memory can hold");
    assert_null(wb_zeros(WB_U8, 0, MOST + 1));
    assert_error(WB_ERROR_SHAPE, "more elements than memory can hold");
    if (sizeof(void *) > 4) return;
    assert_null(wb_add_number(wb_zeros(WB_F32, 1 << 16, 1 << 14), 1)); /* 2^32 bytes */
    assert_error(WB_ERROR_SHAPE, "(65536, 16384) has more elements than memory can hold");
}

/* Each alone could be had, as far as numbers go. */
static void intermediate_arrays_are_too_large_together(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip(); /* has none */
    wb_array *x = wb_iota(WB_F64, 0, MOST);
    for (int i = 0; i < 8; i++) x = wb_add(wb_cumsum(x, 0), wb_cumsum(wb_flip(x, 0), 0));
    assert_int_equal(wb_eval(wb_sum(x)), WB_ERROR_MEMORY);
    assert_error(WB_ERROR_MEMORY, "out of memory");
}

static void step(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)inputs, (void)outputs;
    for (int i = 0; i < 4; i++) carries[i] = wb_flip(wb_cumsum(carries[(i + 1) % 4], 0), 0);
}

static void carries_are_too_large_together(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip();
    wb_array *carries[4], *input = wb_zeros(WB_F32, 3);
    for (int i = 0; i < 4; i++) carries[i] = wb_iota(WB_F64, 0, MOST);
    assert_int_equal(wb_scan(step, NULL, 4, carries, 1, &input, 0, NULL), WB_OK);
    wb_array *sum = wb_sum(carries[0]);
    assert_int_equal(wb_eval(sum), WB_ERROR_MEMORY);
    assert_error(WB_ERROR_MEMORY, "out of memory");
}

/* The size that no memory has would be rounded up to none at all. */
static void buffers_are_not_larger_than_memory(void **state) {
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX / 2 + 2, (size_t)PTRDIFF_MAX,
                                   PTRDIFF_MAX - 1};
    for (int i = 0; i < 4; i++) {
        assert_null(wb_buffer_new(wb_cpu_device(), sizes[i], "test"));
        assert_error(WB_ERROR_MEMORY, "out of memory");
        assert_null(wb_device_alloc(wb_cpu_device(), sizes[i]));
        assert_error(WB_ERROR_MEMORY, "out of memory");
    }
}

static void bytes_as_the_allocators_take_them(void **state) {
    (void)state;
    assert_true(wb_bytes(0) == 0 && wb_bytes(12345) == 12345);
    assert_true(wb_bytes(-1) == SIZE_MAX && wb_bytes(INT64_MAX) == SIZE_MAX);
    assert_true(wb_bytes(WB_MOST_BYTES) == (size_t)WB_MOST_BYTES);
    assert_true(wb_bytes(WB_MOST_BYTES + 1) == SIZE_MAX);
    if (sizeof(void *) < 8) assert_true(wb_bytes((int64_t)1 << 32) == SIZE_MAX);
    assert_true(wb_plus(INT64_MAX - 1, 1) == INT64_MAX);
    assert_true(wb_plus(INT64_MAX, INT64_MAX) == INT64_MAX);
    assert_int_equal(wb_check_bytes(WB_MOST_BYTES), 1);
    assert_int_equal(wb_check_bytes(INT64_MAX), 0);
    assert_error(WB_ERROR_MEMORY, "out of memory: 9223372036854775807 bytes cannot be allocated");
}

static void sizes_are_written_in_the_order_of_the_language(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F32, 2, 3, 4);
    assert_null(wb_reshape(x, 5));
    assert_error(WB_ERROR_SHAPE, "(2, 3, 4)");
    assert_false(wb_sizes_slowest_first(true));
    assert_null(wb_reshape(x, 5));
    assert_error(WB_ERROR_SHAPE, "(4, 3, 2)");
    assert_true(wb_sizes_slowest_first(false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sizes_are_written_in_the_order_of_the_language),
        TEST(arrays_have_as_many_elements_as_memory_can_hold),
        TEST(intermediate_arrays_are_too_large_together),
        TEST(carries_are_too_large_together),
        TEST(buffers_are_not_larger_than_memory),
        TEST(bytes_as_the_allocators_take_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
