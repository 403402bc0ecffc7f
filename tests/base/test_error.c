/* src/base/error.c: the first error stays until it is taken, reported or forgotten */
#include "base/error.h"

#include <unistd.h>

#include "support/support.h"

static void an_error_is_pending_until_it_is_taken(void **state) {
    (void)state;
    char text[64];
    assert_false(wb_failed());
    assert_int_equal(wb_take_error(text, sizeof text), WB_OK);
    assert_string_equal(text, "");
    assert_int_equal(wb_fail(WB_ERROR_SHAPE, "%d by %d", 3, 4), WB_ERROR_SHAPE);
    assert_true(wb_failed());
    assert_int_equal(wb_error_status(), WB_ERROR_SHAPE);
    assert_string_equal(wb_error_message(), "3 by 4");
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_SHAPE);
    assert_string_equal(text, "3 by 4");
    assert_false(wb_failed());
    assert_string_equal(wb_error_message(), "");
}

static void later_errors_do_not_replace_it(void **state) {
    (void)state;
    (void)wb_fail(WB_ERROR_IO, "first");
    assert_int_equal(wb_fail(WB_ERROR_MEMORY, "second"), WB_ERROR_MEMORY);
    assert_null(wb_fail_argument_null("function", "x"));
    assert_error(WB_ERROR_IO, "first");
    assert_null(wb_fail_argument_null("function", "x"));
    assert_error(WB_ERROR_ARGUMENT, "function: x is NULL");
}

static void a_short_place_gets_the_beginning(void **state) {
    (void)state;
    char text[6];
    (void)wb_fail(WB_ERROR_IO, "a long story");
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_IO);
    assert_string_equal(text, "a lon");
    (void)wb_fail(WB_ERROR_IO, "a long story");
    assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_IO);
    assert_false(wb_failed());
    char longest[4000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    (void)wb_fail(WB_ERROR_IO, "%s", longest);
    assert_true(strlen(wb_error_message()) > 500 && strlen(wb_error_message()) < sizeof longest);
    wb_clear_error();
}

static char last_line[256];
static wb_log_level last_level;
static void remember(void *context, wb_log_level level, const char *line) {
    *(int *)context += 1;
    last_level = level;
    (void)snprintf(last_line, sizeof last_line, "%s", line);
}

/* What the default log writes to stderr. */
static void the_log_cannot_steer_a_terminal(void **state) {
    (void)state;
    char text[512] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    const int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    wb_log_to(NULL, NULL);
    wb_log_line(WB_LOG_ERROR, "%s",
                "a\x1b[2J\xc2\x9b\x7f\xff\r\nweber error: \xe2\x80\xae\xc3\xa4");
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    assert_string_equal(text, "weber error: a\\x1b[2J\\xc2\\x9b\\x7f\\xff\\x0d\n"
                              "  weber error: \\xe2\\x80\\xae\xc3\xa4\n");
}

static void reports_go_to_the_log(void **state) {
    (void)state;
    int lines = 0;
    wb_log_to(remember, &lines);
    assert_int_equal(wb_report("predict"), 0);
    assert_int_equal(lines, 0);
    (void)wb_fail(WB_ERROR_SHAPE, "no fit");
    assert_int_equal(wb_report("predict"), 1);
    assert_int_equal(lines, 1);
    assert_int_equal(last_level, WB_LOG_ERROR);
    assert_string_equal(last_line, "predict: no fit");
    assert_false(wb_failed());
    (void)wb_fail(WB_ERROR_SHAPE, "no fit");
    assert_int_equal(wb_report(NULL), 1);
    wb_log_to(NULL, NULL);
    assert_string_equal(last_line, "weber: no fit");
}

static void every_status_has_a_text(void **state) {
    (void)state;
#define X(name, text) assert_string_equal(wb_status_text(WB_##name), text);
    WB_STATUS_LIST(X)
#undef X
    assert_string_equal(wb_status_text((wb_status)999), "unknown status");
}

static void questions_about_null_are_answered(void **state) {
    (void)state;
    assert_int_equal(wb_ndim(NULL), 0);
    assert_int_equal(wb_count(NULL), 0);
    assert_int_equal(wb_size(NULL, 0), 0);
    assert_null(wb_sizes(NULL));
    assert_null(wb_device_of(NULL));
    assert_null(wb_identity(NULL));
    assert_null(wb_keep(NULL));
    wb_free(NULL);
    assert_false(wb_failed());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_error_is_pending_until_it_is_taken),
        TEST(later_errors_do_not_replace_it),
        TEST(a_short_place_gets_the_beginning),
        TEST(the_log_cannot_steer_a_terminal),
        TEST(reports_go_to_the_log),
        TEST(every_status_has_a_text),
        TEST(questions_about_null_are_answered),
    };
    return cmocka_run_group_tests_name("base/test_error", tests, NULL, NULL);
}
