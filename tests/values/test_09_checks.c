/* Rule 9: checks and allocations come before the first write; what a device error struck is lost,
 * and says so. */
#include "base/memory.h"
#include "device/device.h"
#include "evaluate/evaluate.h"
#include "values/steps.h"

/* ---- a device that fails ----
 *
 * The CPU's own, which runs this many commands of a plan and then reports an error. */

static int commands_left = -1; /* -1: it does not fail */

static wb_status run_some(void *device, void *queue, const wb_command *commands, int count,
                          const wb_memory *memory, const uint64_t *late) {
    const int first = commands_left < 0 || commands_left > count ? count : commands_left;
    const wb_status status = wb_cpu_backend.run(device, queue, commands, first, memory, late);
    if (commands_left < 0 || status != WB_OK) return status;
    commands_left = -1;
    return (wb_builtin_host.fail)(WB_ERROR_DEVICE, "CPU: struck by lightning");
}

static wb_backend failing;

static int install(void **state) {
    (void)state;
    union {
        const wb_device *from;
        wb_device *to;
    } device = {.from = wb_cpu_device()};
    failing = wb_cpu_backend;
    failing.run = run_some;
    device.to->backend = &failing;
    return 0;
}

static void a_struck_parameter_is_lost_and_says_so(void **state) {
    (void)state;
    if (!is_on_host()) skip(); /* the device that fails is the CPU */
    if (!is_planned()) skip(); /* one plan, and parameters written in place */
    wb_layer *model = wb_tree(wb_full(WB_F32, 2, 3), wb_full(WB_F32, 4, 5));
    wb_optimiser *o = wb_setup(wb_momentum(), model);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    commands_left = 1;
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "struck by lightning");
    float numbers[3];
    assert_int_equal(wb_read_f32(wb_get(model, "1"), numbers, 3), WB_ERROR_LOST);
    assert_error(WB_ERROR_LOST, "the values of (3) were lost in an earlier device error");
    assert_true(isnan(wb_item(wb_sum(wb_get(model, "2"))))); /* also what would be made of it */
    assert_error(WB_ERROR_LOST, "the values of (5) were lost");
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_ERROR_LOST);
    wb_clear_error();
    wb_free(o), wb_free(model);
}

static void what_was_not_written_in_place_is_not_lost(void **state) {
    (void)state;
    if (!is_on_host()) skip(); /* the device that fails is the CPU */
    wb_layer *model = wb_tree(wb_vector(1, 2), wb_vector(3));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    wb_array *held = wb_keep(wb_get(model, "1")), *also = wb_keep(wb_get(model, "2"));
    commands_left = 0;
    assert_int_not_equal(scoped_step(o, model, squares_of_two), WB_OK);
    assert_error(WB_ERROR_DEVICE, "struck by lightning");
    assert_values(wb_get(model, "1"), 0, 1, 2);
    assert_true(wb_get(model, "1") == held);
    assert_int_equal(wb_step_count(o), 0);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK); /* the device is well again */
    assert_values(wb_get(model, "1"), 1e-6, 0.5, 1);
    assert_values(held, 0, 1, 2);
    wb_free(held), wb_free(also), wb_free(o), wb_free(model);
}

static void a_new_array_heals_the_slot(void **state) {
    (void)state;
    if (!is_on_host()) skip(); /* the device that fails is the CPU */
    if (!is_planned()) skip();
    wb_layer *model = wb_tree(wb_full(WB_F32, 2, 3), wb_full(WB_F32, 4, 5));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    commands_left = 1;
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_ERROR_DEVICE);
    wb_clear_error();
    assert_int_equal(wb_set(model, "1", wb_vector(1, 1, 1)), WB_OK);
    assert_int_equal(wb_set(model, "2", wb_vector(1, 1, 1, 1, 1)), WB_OK);
    assert_int_equal(scoped_step(o, model, squares_of_two), WB_OK);
    assert_values(wb_get(model, "1"), 1e-6, 0.5, 0.5, 0.5);
    wb_free(o), wb_free(model);
}

/* A reading that fails leaves its argument, and can be tried again. */
static void a_failed_reading_can_be_tried_again(void **state) {
    (void)state;
    if (!is_on_host()) skip(); /* the device that fails is the CPU */
    wb_array *x = wb_vector(1, 2, 3), *l = wb_sum(wb_exp(x));
    commands_left = 0;
    assert_true(isnan(wb_item(l)));
    assert_error(WB_ERROR_DEVICE, "struck by lightning");
    assert_values(x, 0, 1, 2, 3);
    assert_value(l, exp(1) + exp(2) + exp(3), 1e-6);
}

/* ---- memory ---- */

/* With the n-th allocation of a step failing, for every n: an error, and every bit is where it
 * was. */
static void without_memory_nothing_is_written(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        assert_true(n < 2000);
        wb_layer *model =
            wb_tree(wb_full(WB_F32, 2, n), wb_full(WB_F32, 4, 5 + n)); /* a new plan */
        wb_optimiser *o = wb_setup(wb_adam(.eta = 0.5), model);
        (void)wb_fail_allocation(n);
        const wb_status status = scoped_step(o, model, squares_of_two);
        (void)wb_fail_allocation(0);
        done = status == WB_OK;
        if (!done) {
            assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
            assert_value(wb_minimum(wb_get(model, "1")), 2, 0);
            assert_value(wb_maximum(wb_get(model, "1")), 2, 0);
            assert_value(wb_minimum(wb_get(model, "2")), 4, 0);
            assert_value(wb_maximum(wb_get(model, "2")), 4, 0);
        }
        wb_free(o), wb_free(model);
    }
}

/* Sizes that no machine has: refused by the allocator before anything runs. */
static void a_result_that_is_too_large_writes_nothing(void **state) {
    (void)state;
    NEEDS_64_BITS();
    wb_array *x = wb_vector(1, 2, 3, 4);
    wb_scope_open();
    wb_array *y = wb_keep(wb_add_number(x, 1)); /* could take over x's memory */
    wb_array *huge = wb_keep(wb_add(wb_reshape(x, 4, 1), wb_iota(WB_F32, 1, 4, (int64_t)1 << 44)));
    const wb_plan_counts before = wb_plan_status();
    assert_int_equal(wb_eval(y, huge), WB_ERROR_MEMORY);
    assert_error(WB_ERROR_MEMORY, "out of memory");
    assert_int_equal(wb_plan_status().kernels, before.kernels);
    wb_free(huge);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_values(y, 0, 2, 3, 4, 5);
    assert_values(x, 0, 1, 2, 3, 4);
    wb_free(y);
}

static int run(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_struck_parameter_is_lost_and_says_so),
        TEST(what_was_not_written_in_place_is_not_lost),
        TEST(a_new_array_heals_the_slot),
        TEST(a_failed_reading_can_be_tried_again),
        TEST(without_memory_nothing_is_written),
        TEST(a_result_that_is_too_large_writes_nothing),
    };
    return cmocka_run_group_tests_name("values 9", tests, install, NULL);
}

int main(void) { return run_in_all_modes(run); }
