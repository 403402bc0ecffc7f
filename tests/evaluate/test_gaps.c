/* The free stretches of a workspace against a plain search for the first one that fits. */
#include "base/memory.h"
#include "evaluate/gaps.h"
#include "support/support.h"

enum { MOST = 400, STEPS = 20000 };

typedef struct block {
    int64_t offset, size;
} block;

/* Where a block of this size first fits between those in use, which are in order. */
static int64_t first_fit(const block *used, int count, int64_t size, int *place) {
    int64_t at = 0;
    for (*place = 0; *place < count && used[*place].offset - at < size; ++*place)
        at = used[*place].offset + used[*place].size;
    return at;
}

static void takes_the_first_that_fits(void **state) {
    (void)state;
    test_random r = {test_seed()};
    static block used[MOST];
    int count = 0;
    wb_gaps gaps;
    assert_true(wb_gaps_begin(&gaps));
    for (int step = 0; step < STEPS; step++) {
        const bool gives = count == MOST || (count > 0 && random_below(&r, 2) == 0);
        int place;
        if (gives) {
            place = (int)random_below(&r, count);
            assert_true(wb_gaps_give(&gaps, used[place].offset, used[place].size));
            memmove(&used[place], &used[place + 1], sizeof *used * (size_t)(--count - place));
            continue;
        }
        const int64_t size = 64 * (1 + random_below(&r, random_below(&r, 4) ? 4 : 100));
        const int64_t wanted = first_fit(used, count, size, &place);
        assert_int_equal(wb_gaps_take(&gaps, size), wanted);
        memmove(&used[place + 1], &used[place], sizeof *used * (size_t)(count++ - place));
        used[place] = (block){wanted, size};
    }
    wb_gaps_end(&gaps);
}

static void what_is_given_back_is_one_gap_again(void **state) {
    (void)state;
    wb_gaps gaps;
    assert_true(wb_gaps_begin(&gaps));
    for (int64_t i = 0; i < 3; i++) assert_int_equal(wb_gaps_take(&gaps, 10), 10 * i);
    assert_true(wb_gaps_give(&gaps, 0, 10) && wb_gaps_give(&gaps, 20, 10));
    assert_true(wb_gaps_give(&gaps, 10, 10));
    assert_int_equal(wb_gaps_take(&gaps, 1000), 0);
    wb_gaps_end(&gaps);
}

static void no_memory_is_an_error(void **state) {
    (void)state;
    wb_gaps gaps;
    (void)wb_fail_allocation(1);
    assert_false(wb_gaps_begin(&gaps));
    wb_gaps_end(&gaps);
    (void)wb_fail_allocation(0);
    wb_clear_error();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(takes_the_first_that_fits),
                                       cmocka_unit_test(what_is_given_back_is_one_gap_again),
                                       cmocka_unit_test(no_memory_is_an_error)};
    return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
