/* src/base/memory.c: lists that grow, and sizes that no machine has. */
#include "base/memory.h"

#include "support/support.h"

static void a_list_that_is_long_enough_stays_as_it_is(void **state) {
    (void)state;
    int32_t *items = NULL;
    int64_t capacity = 0;
    assert_true(wb_grow_list((void **)&items, &capacity, sizeof *items, 1000));
    assert_int_equal(capacity, 1000);
    int32_t *const before = items;
    for (int64_t wanted = 0; wanted <= 1000; wanted++)
        assert_true(wb_grow_list((void **)&items, &capacity, sizeof *items, wanted));
    assert_int_equal(capacity, 1000);
    assert_ptr_equal(items, before);
    assert_true(wb_grow_list((void **)&items, &capacity, sizeof *items, 1001));
    assert_int_equal(capacity, 2000);
    wb_release(items);
}

static void lists_longer_than_memory_are_errors(void **state) {
    static const int64_t counts[] = {-1, INT64_MIN, INT64_MAX, PTRDIFF_MAX / 8 + 1};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "out of memory: %lld times 8 bytes cannot be allocated",
                 (long long)counts[i]);
        assert_null(wb_alloc_list(counts[i], 8));
        assert_error(WB_ERROR_MEMORY, wanted);
    }
    int64_t *items = NULL, capacity = 0;
    assert_false(wb_grow_list((void **)&items, &capacity, sizeof *items, PTRDIFF_MAX / 8 + 1));
    assert_error(WB_ERROR_MEMORY, "out of memory");
    assert_null(items);
    assert_int_equal(capacity, 0);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {TEST(a_list_that_is_long_enough_stays_as_it_is),
                                     TEST(lists_longer_than_memory_are_errors)};
    ADD_TESTS(&tests, all);
    return run_test_list("base/test_memory", &tests, NULL, NULL);
}
