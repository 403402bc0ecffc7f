/* What is not Weber's, given to functions that take a void *: an error, not a crash. */
#include <stdlib.h>

#include <weber/data.h>
#include <weber/distributed.h>
#include <weber/show.h>
#include <weber/state.h>

#include "support/support.h"

static void *stranger;

static void shown(void) {
    char text[64];
    assert_int_equal(wb_show_text(stranger, text, sizeof text), WB_ERROR_ARGUMENT);
}
static void moved(void) { assert_null(wb_to(wb_cpu_device(), stranger)); }
static void moved_in_place(void) {
    assert_int_equal(wb_move(wb_cpu_device(), stranger), WB_ERROR_ARGUMENT);
}
static void freed(void) { wb_free(stranger); }
static void asked_for_its_device(void) { assert_null(wb_device_of(stranger)); }
static void handed_over(void) { assert_int_equal(wb_hand_over(stranger), WB_ERROR_ARGUMENT); }
static void saved(void) {
    assert_int_equal(wb_save("/tmp/weber-stranger.npz", stranger), WB_ERROR_ARGUMENT);
}
static void saved_by_name(void) {
    assert_int_equal(wb_save_named("/tmp/weber-stranger.npz", {"vocabulary", stranger}),
                     WB_ERROR_ARGUMENT);
}
static void loaded(void) {
    assert_int_equal(wb_load_named("/tmp/weber-stranger.npz", {"vocabulary", stranger}),
                     WB_ERROR_ARGUMENT);
}
static void put_into_a_tree(void) { assert_null(wb_tree(stranger)); }
static void loaded_from(void) {
    wb_layer *model = wb_dense(1, 1);
    assert_int_equal(wb_load_from(model, stranger), WB_ERROR_ARGUMENT);
    wb_free(model);
}

static void (*const calls[])(void) = {
    shown, moved,         moved_in_place, freed,           asked_for_its_device, handed_over,
    saved, saved_by_name, loaded,         put_into_a_tree, loaded_from,
};

static void each_call_refuses(void *what) {
    stranger = what;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        calls[i]();
        if (!wb_failed()) fail_msg("call %zu took it", i);
        assert_int_equal(wb_error_status(), WB_ERROR_ARGUMENT);
        wb_clear_error();
    }
}

static void texts_are_refused(void **state) {
    static char text[] = "a text";
    (void)state;
    for (int i = 0; i < 4; i++) each_call_refuses(text + i);
}

static void numbers_are_refused(void **state) {
    double number = 3;
    int64_t count = 4;
    (void)state;
    each_call_refuses(&number);
    each_call_refuses(&count);
}

static void structs_of_others_are_refused(void **state) {
    struct other {
        const void *first;
        double second[8];
    } *s = calloc(1, sizeof *s);
    (void)state;
    assert_non_null(s);
    each_call_refuses(s);
    s->first = s;
    each_call_refuses(s);
    s->first = (const void *)0x1234567;
    each_call_refuses(s);
    free(s);
}

/* It cannot give the caller's array other numbers. */
static void an_array_is_not_synchronized(void **state) {
    (void)state;
    wb_array *x = wb_keep(wb_ones(WB_F32, 2));
    assert_int_equal(wb_synchronize(x), WB_ERROR_ARGUMENT);
    assert_string_equal(wb_error_message(),
                        "wb_synchronize: an array cannot be changed in place: use x = wb_bcast(x, "
                        "0), or put x into a tree, whose arrays are replaced");
    wb_clear_error();
    wb_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(texts_are_refused),
        TEST(numbers_are_refused),
        TEST(structs_of_others_are_refused),
        TEST(an_array_is_not_synchronized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
