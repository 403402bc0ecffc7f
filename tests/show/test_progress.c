/* src/show/progress.c */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>

#include "support/scoped.h"

/* All that a bar of total steps writes, of which some were done before; to be freed. */
static char *drawn_from(int64_t done, int64_t total, int steps, bool always, double loss) {
    FILE *file = tmpfile();
    wb_progress *bar = wb_progress_begin(.what = "epoch 1/5", .total = total, .done = done,
                                         .items = 64, .file = file, .always = always);
    assert_non_null(bar);
    for (int i = 0; i < steps; i++)
        wb_progress_step(bar, isnan(loss) ? NULL : wb_scalar(WB_F32, loss));
    assert_true(wb_progress_end(bar) >= 0);
    const long size = ftell(file);
    char *text = calloc(1, (size_t)size + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    (void)fclose(file);
    return text;
}

static char *drawn(int64_t total, int steps, bool always, double loss) {
    return drawn_from(0, total, steps, always, loss);
}

static void where_no_terminal_is_it_is_a_line_at_the_end(void **state) {
    (void)state;
    char *text = drawn(10, 10, false, 0.53125);
    assert_int_equal(strncmp(text, "epoch 1/5 10/10  ", 17), 0);
    assert_non_null(strstr(text, "loss 0.5312"));
    assert_null(strpbrk(text, "\r\033"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    free(text);
    text = drawn(0, 12, false, 1);
    assert_int_equal(strncmp(text, "epoch 1/5 12  ", 14), 0);
    free(text);
}

static void the_rate_has_a_unit(void **state) {
    (void)state;
    char text[512] = "";
    FILE *file = tmpfile();
    wb_progress *bar = wb_progress_begin(.total = 1, .unit = "images", .file = file);
    wb_progress_step(bar, NULL);
    (void)wb_progress_end(bar);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    assert_non_null(strstr(text, " images/s  "));
}

static void the_bar_says_share_rate_loss_and_memory(void **state) {
    (void)state;
    char *text = drawn(10, 10, true, 0.53125);
    assert_non_null(strstr(text, "\repoch 1/5 ▕████████"));
    assert_non_null(strstr(text, "█▏100%  "));
    assert_non_null(strstr(text, "/s  0:00"));
    assert_non_null(strstr(text, "loss 0.5312"));
    assert_true(text[strlen(text) - 1] == '\n');
    free(text);
}

static void a_bar_that_stops_early_shows_what_was_done(void **state) {
    (void)state;
    char *text = drawn(8, 3, true, (double)NAN);
    assert_non_null(strstr(text, "▕███"));
    assert_non_null(strstr(text, "       ▏ 37%"));
    assert_null(strstr(text, "loss"));
    free(text);
}

static void a_note_stands_behind_the_loss(void **state) {
    (void)state;
    char text[512] = "";
    FILE *file = tmpfile();
    wb_progress *bar = wb_progress_begin(.total = 2, .file = file, .always = true);
    wb_progress_note(bar, "kl 0.1250");
    wb_progress_step(bar, wb_scalar(WB_F32, 0.5));
    (void)wb_progress_end(bar);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    assert_non_null(strstr(text, "loss 0.5000  kl 0.1250  peak"));
}

/* The share counts what was done before; the rate does not. */
static void a_bar_goes_on(void **state) {
    (void)state;
    char *text = drawn_from(6, 8, 1, true, (double)NAN);
    assert_non_null(strstr(text, "▏ 87%"));
    assert_non_null(strstr(text, "/s"));
    free(text);
    text = drawn_from(6, 8, 0, true, (double)NAN);
    assert_non_null(strstr(text, "▏ 75%"));
    assert_null(strstr(text, "/s"));
    assert_null(strstr(text, "left"));
    free(text);
}

static void an_unknown_total_counts(void **state) {
    (void)state;
    char *text = drawn(0, 12, true, 1);
    assert_non_null(strstr(text, "epoch 1/5 12 "));
    assert_null(strstr(text, "left"));
    free(text);
}

static void fast_steps_are_not_all_drawn(void **state) {
    (void)state;
    char *text = drawn(100000, 99999, true, (double)NAN);
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\r')); at++) lines++;
    assert_in_range(lines, 2, 2000);
    free(text);
}

static void longer_than_times_are_written(void **state) {
    (void)state;
    char *text = drawn_from(1, INT64_MAX, 2, true, (double)NAN);
    assert_non_null(strstr(text, "  1000000:00:00 left"));
    free(text);
    free(drawn_from(INT64_MAX, INT64_MAX, 2, true, (double)NAN));
}

static void null_is_fine(void **state) {
    (void)state;
    wb_progress_step(NULL, NULL);
    wb_progress_note(NULL, "kl 0.1");
    assert_true(wb_progress_end(NULL) == 0);
    wb_progress *bar = wb_progress_begin(.total = 3);
    wb_free(bar);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(where_no_terminal_is_it_is_a_line_at_the_end),
        TEST(the_rate_has_a_unit),
        TEST(the_bar_says_share_rate_loss_and_memory),
        TEST(a_bar_that_stops_early_shows_what_was_done),
        TEST(a_bar_goes_on),
        TEST(a_note_stands_behind_the_loss),
        TEST(an_unknown_total_counts),
        TEST(fast_steps_are_not_all_drawn),
        TEST(longer_than_times_are_written),
        TEST(null_is_fine),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
