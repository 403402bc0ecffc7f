/* Three places to move things between: the CPU, the device of the tests (WEBER_DEVICE, else
 * checked(0)), and another checked device.
 *
 *     int main(void) {
 *         const struct CMUnitTest tests[] = {MOVES(a_model_goes_round)};
 *         return cmocka_run_group_tests_name("device/test_move", tests, find_places, NULL);
 *     } */
#ifndef WB_TESTS_PLACES_H
#define WB_TESTS_PLACES_H

#include "support/support.h"

#define MOVES(function) cmocka_unit_test_setup_teardown(function, open_scope, close_places)

static const wb_device *cpu, *first, *second;

/* The same in a row, to loop over. */
enum { PLACES = 3 };
static const wb_device *places[PLACES];

static inline int find_places(void **state) {
    (void)state;
    if (!choose_device()) return 1;
    cpu = wb_cpu_device();
    first = is_on_host() ? wb_get_device("checked", 0) : wb_default_device();
    second = wb_get_device("checked", 1);
    if (second == first) second = wb_get_device("checked", 0);
    places[0] = cpu, places[1] = first, places[2] = second;
    if (first && second) return 0;
    print_error("%s\n", wb_error_message());
    return 1;
}

/* Nothing is in flight any more. */
static inline wb_status sync_places(void) {
    const wb_status status = wb_device_sync(first);
    return status == WB_OK ? wb_device_sync(second) : status;
}

static inline int close_places(void **state) {
    return sync_places() == WB_OK ? close_scope(state) : 1;
}

/* The array there, in its own type. */
static inline wb_array *put(const wb_device *device, wb_array *x) {
    wb_array *y = wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE);
    if (!y) fail_msg("no array there: %s", wb_error_message());
    return y;
}

static inline void assert_place(const void *x, const wb_device *device) {
    assert_string_equal(wb_device_name(wb_device_of(x)), wb_device_name(device));
}

#endif
