/* src/device/device.c, src/evaluate/run.c, read.c: a device that fails (WEBER_CHECKED_FAIL), and
 * errors that come late. Each test is a process of its own, since a device that failed is given
 * up. */
#include <weber/losses.h>
#include <weber/optimise.h>
#include <weber/train.h>

#include "support/support.h"

static const wb_device *broken, *sound;

static int find_devices(void **state) {
    (void)state;
    broken = wb_get_device("checked", 0);
    sound = wb_get_device("checked", 1);
    wb_scope_open();
    return broken && sound ? 0 : 1;
}

static int leave(void **state) {
    (void)state;
    if (wb_failed()) print_error("left behind: %s\n", wb_error_message());
    return wb_failed() || wb_scope_close() != WB_OK;
}

/* The next command that is queued anywhere fails. */
static void strike(void) { (void)setenv("WEBER_CHECKED_FAIL", "1", 1); }

static const char what_happened[] = "exp: the device failed (WEBER_CHECKED_FAIL)";

/* x on the broken device, computed; the device has failed meanwhile, and that was noticed. */
static wb_array *break_device(void) {
    wb_array *x = wb_to(broken, wb_vector(1, 2, 3)), *y = wb_exp(x);
    assert_int_equal(wb_eval(x), WB_OK);
    assert_int_equal(wb_device_sync(broken), WB_OK);
    strike();
    assert_int_equal(wb_eval(y), WB_OK); /* queued */
    float numbers[3];
    assert_int_equal(wb_read_f32(y, numbers, 3), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, what_happened);
    return x;
}

static void everything_there_is_lost(void **state) {
    (void)state;
    wb_array *x = break_device();
    float numbers[3];
    assert_int_equal(wb_read_f32(x, numbers, 3), WB_ERROR_LOST);
    assert_error(WB_ERROR_LOST, "the values of (3) were lost when checked(0) failed");
    assert_int_equal(wb_read(x, numbers, sizeof numbers), WB_ERROR_LOST);
    assert_error(WB_ERROR_LOST, what_happened);
    assert_null(wb_read_begin(x));
    assert_error(WB_ERROR_LOST, "read_begin");
    assert_true(isnan(wb_at(x, 1)));
    assert_error(WB_ERROR_LOST, "lost");
    assert_false(wb_approx(x, x, 0, 0, NULL, 0));
    assert_error(WB_ERROR_LOST, "lost");
}

static void nothing_is_done_there_any_more(void **state) {
    (void)state;
    wb_array *x = break_device(), *later = wb_mul_number(x, 2);
    assert_int_equal(wb_eval(later), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "checked(0) failed earlier: ");
    assert_int_equal(wb_device_sync(broken), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, what_happened);
    wb_array *moved = wb_to(broken, wb_vector(1));
    assert_int_not_equal(moved ? wb_eval(moved) : WB_ERROR_DEVICE, WB_OK);
    assert_error(WB_ERROR_DEVICE, what_happened);
    wb_array *back = wb_cpu(x);
    assert_true(isnan(wb_item(wb_sum(back))));
    assert_int_not_equal(wb_take_error(NULL, 0), WB_OK);
    assert_ptr_equal(wb_device_of(x), broken); /* questions are answered */
    assert_true(wb_memory_status(broken).live > 0);
}

static void other_devices_go_on(void **state) {
    (void)state;
    (void)break_device();
    wb_array *here = wb_exp(wb_vector(0, 1)), *there = wb_exp(wb_to(sound, wb_vector(0, 1)));
    assert_values(here, 1e-6, 1, exp(1));
    assert_values(wb_add(there, wb_to(sound, here)), 1e-6, 2, 2 * exp(1));
    assert_int_equal(wb_device_sync(sound), WB_OK);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static void a_training_ends_with_its_device(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 1), *copy = wb_clone(model);
    wb_optimiser *o = wb_setup(wb_adam(), model);
    assert_int_equal(wb_move(broken, o), WB_OK);
    wb_loader *data = wb_loader_new(.x = wb_ones(WB_F32, 2, 64), .y = wb_ones(WB_F32, 1, 64),
                                    .batchsize = 4, .device = broken);
    assert_int_equal(wb_train(loss, model, data, o), WB_OK);
    (void)setenv("WEBER_CHECKED_FAIL", "7", 1);
    assert_int_equal(wb_train(loss, model, data, o, .epochs = 3), WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, "the device failed (WEBER_CHECKED_FAIL)");
    wb_array *weight = wb_get(model, "weight");
    assert_int_not_equal(wb_move(wb_cpu_device(), o), WB_OK);
    assert_int_not_equal(wb_take_error(NULL, 0), WB_OK);
    assert_ptr_equal(wb_get(model, "weight"), weight);
    wb_free(o), wb_free(model);
    wb_batch batch = {0};
    assert_false(wb_next(data, &batch));
    assert_int_not_equal(wb_take_error(NULL, 0), WB_OK);
    wb_loader *again = wb_loader_to(sound, data); /* the data is here */
    wb_free(data);
    o = wb_setup(wb_adam(), copy);
    assert_int_equal(wb_move(sound, o), WB_OK);
    assert_int_equal(wb_train(loss, copy, again, o), WB_OK);
    wb_free(again), wb_free(o), wb_free(copy);
}

/* A bad index comes with the next sync, once, and the queue goes on. */
static void a_late_error_is_none_of_the_device(void **state) {
    (void)state;
    wb_array *x = wb_to(sound, wb_vector(1, 2, 3)), *good = wb_exp(x);
    wb_array *bad = wb_gather(x, wb_to(sound, wb_from(WB_I32, ((int32_t[]){5}), 1)), 0);
    assert_int_equal(wb_eval(bad), WB_OK);
    assert_int_equal(wb_eval(good), WB_OK);
    assert_int_equal(wb_device_sync(sound), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gather: index 5 at place 0 is not in 0 .. 2");
    assert_int_equal(wb_device_sync(sound), WB_OK);
    assert_values(good, 1e-6, exp(1), exp(2), exp(3));
    assert_values(x, 0, 1, 2, 3);
}

/* ---- a bad index, found after the step ---- */

/* Embeds numbers 0 .. 2 of a table of four; another one, or one that is bad, with `bad`. */
static wb_array *embedding_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_square(wb_gather(wb_get(model, "1"), batch->x, 0)));
}

static wb_array *plain_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user, (void)batch;
    return wb_sum(wb_square(wb_get(model, "1")));
}

static void train_step(wb_loss_fn *loss_of, wb_optimiser *o, wb_layer *model, int32_t index) {
    const int32_t indices[] = {0, index};
    wb_scope_open();
    const wb_batch batch = {.x = wb_to(sound, wb_from(WB_I32, indices, 2))};
    wb_gradients *g;
    assert_non_null(wb_withgradient(loss_of, model, &batch, NULL, &g));
    assert_int_equal(wb_update(o, model, g), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK); /* queued */
}

/* Values 9: what was written in place is lost, and what was made of it. */
static void a_bad_index_loses_the_parameters(void **state) {
    (void)state;
    for (int further_steps = 0; further_steps < 2; further_steps++) {
        wb_layer *model = wb_tree(wb_full(WB_F32, 1, 4)), *other = wb_tree(wb_full(WB_F32, 1, 4));
        wb_optimiser *o = wb_setup(wb_descent(.eta = 0.25), model);
        wb_optimiser *p = wb_setup(wb_descent(.eta = 0.25), other);
        assert_int_equal(wb_move(sound, o), WB_OK);
        assert_int_equal(wb_move(sound, p), WB_OK);
        train_step(embedding_loss, o, model, 2);
        assert_values(wb_get(model, "1"), 0, 0.5, 1, 0.5, 1); /* a good one loses nothing */
        train_step(embedding_loss, o, model, 4);
        for (int i = 0; i < further_steps; i++) train_step(plain_loss, o, model, 0);
        train_step(plain_loss, p, other, 0);
        assert_int_equal(wb_device_sync(sound), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "index 4 at place 1 is not in 0 .. 3");
        float numbers[4];
        assert_int_equal(wb_read_f32(wb_get(model, "1"), numbers, 4), WB_ERROR_LOST);
        assert_error(WB_ERROR_LOST, "the values of (4) were lost in an earlier device error");
        assert_true(isnan(wb_item(wb_sum(wb_get(model, "1")))));
        assert_error(WB_ERROR_LOST, "the values of (4) were lost");
        assert_null(wb_copy(wb_cpu(wb_get(model, "1"))));
        assert_error(WB_ERROR_LOST, "the values of (4) were lost");
        assert_values(wb_get(other, "1"), 0, 0.5, 0.5, 0.5, 0.5);
        assert_int_equal(wb_set(model, "1", wb_to(sound, wb_full(WB_F32, 1, 4))), WB_OK);
        train_step(embedding_loss, o, model, 3); /* healed */
        assert_values(wb_get(model, "1"), 0, 0.5, 1, 1, 0.5);
        wb_free(o), wb_free(p), wb_free(model), wb_free(other);
    }
}

/* An allocation that has to wait for the queue does not report what it finds there. */
static void a_late_error_is_none_of_an_allocations(void **state) {
    (void)state;
    wb_array *x = wb_to(sound, wb_vector(1, 2, 3));
    wb_array *bad = wb_gather(x, wb_to(sound, wb_from(WB_I32, ((int32_t[]){5}), 1)), 0);
    wb_array *first = wb_to(sound, wb_full(WB_F32, 1, 1 << 18));
    assert_int_equal(wb_eval(first), WB_OK);
    wb_free(first); /* a megabyte in the cache */
    assert_int_equal(wb_eval(bad), WB_OK);
    const wb_memory_info info = wb_memory_status(sound);
    assert_int_equal(wb_memory_limit(sound, info.live + info.workspace + info.cached + (1 << 18)),
                     WB_OK);
    wb_array *larger = wb_to(sound, wb_full(WB_F32, 2, (1 << 18) + (1 << 16)));
    assert_int_equal(wb_eval(larger), WB_OK); /* in the cache's place */
    assert_int_equal(wb_memory_limit(sound, 0), WB_OK);
    assert_int_equal(wb_device_sync(sound), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "gather: index 5 at place 0 is not in 0 .. 2");
    assert_int_equal(wb_device_sync(sound), WB_OK);
    assert_value(wb_sum(larger), 2.0 * ((1 << 18) + (1 << 16)), 0);
}

/* ---- what a failed device held ---- */

/* The device fails while it does what is queued, and nobody waits for it. */
static void memory_of_uploads_is_let_go(void **state) {
    (void)state;
    wb_array *x = wb_to(broken, wb_vector(1, 2, 3));
    assert_int_equal(wb_eval(x), WB_OK);
    assert_int_equal(wb_device_sync(broken), WB_OK);
    const int64_t before = wb_live().buffers;
    wb_scope_open();
    for (int i = 0; i < 10; i++) assert_int_equal(wb_eval(wb_to(broken, wb_vector(1, 2))), WB_OK);
    strike();
    wb_status status = WB_OK;
    for (int i = 0; i < 2000 && status == WB_OK; i++) status = wb_eval(wb_exp(x));
    assert_int_equal(status, WB_ERROR_DEVICE);
    assert_error(WB_ERROR_DEVICE, what_happened);
    (void)wb_scope_close();
    assert_int_equal(wb_live().buffers, before);
}

static struct CMUnitTest current[1];

static int run_current(void) {
    return cmocka_run_group_tests_name("device/test_failure", current, NULL, NULL);
}

int main(void) {
#define ALONE(function) cmocka_unit_test_setup_teardown(function, find_devices, leave)
    const struct CMUnitTest tests[] = {
        ALONE(everything_there_is_lost),
        ALONE(nothing_is_done_there_any_more),
        ALONE(other_devices_go_on),
        ALONE(a_training_ends_with_its_device),
        ALONE(a_late_error_is_none_of_the_device),
        ALONE(a_bad_index_loses_the_parameters),
        ALONE(a_late_error_is_none_of_an_allocations),
        ALONE(memory_of_uploads_is_let_go),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        current[0] = tests[i];
        failed += run_with(NULL, NULL, run_current);
    }
    return failed;
}
