/* The hash table against a list that is searched from its end. */
#include "base/table.h"
#include "support/support.h"

static void finds_what_a_list_finds(void **state) {
    (void)state;
    enum { MOST = 3000 };
    static uint64_t list[MOST];
    test_random r = {test_seed()};
    wb_table table = {.count = 0};
    const int64_t different = 1 + random_below(&r, 2 * MOST);
    for (int64_t n = 0; n < MOST; n++) {
        const uint64_t key = (uint64_t)random_below(&r, different) << (n % 3 * 20);
        int64_t found = wb_table_find(&table, key);
        for (int64_t i = n - 1; i >= 0; i--) {
            if (list[i] != key) continue;
            assert_int_equal(found, i);
            found = wb_table_next(&table, found);
        }
        assert_int_equal(found, -1);
        assert_true(wb_table_add(&table, list[n] = key));
        assert_int_equal(table.count, n + 1);
    }
    wb_table_release(&table);
}

static void an_empty_table_finds_nothing(void **state) {
    (void)state;
    wb_table table = {.count = 0};
    assert_int_equal(wb_table_find(&table, 0), -1);
    wb_table_release(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_empty_table_finds_nothing),
                                       cmocka_unit_test(finds_what_a_list_finds)};
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
