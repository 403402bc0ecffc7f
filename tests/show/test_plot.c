/* src/show/plot.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weber/show.h>

#include "support/scoped.h"

static const double loss[] = {0.6, 0.4, 0.3}, accuracy[] = {0.8, 0.85, 0.9};

static void curves_become_a_picture(void **state) {
    (void)state;
    if (system("command -v gnuplot >/dev/null") != 0) skip();
    char folder[] = "/tmp/weber it's-XXXXXX", path[64], head[8] = "";
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/curves.png", folder);
    assert_int_equal(
        wb_plot_curves(path, {"loss", loss, 3, false}, {"it's the accuracy", accuracy, 3, true}),
        WB_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, 4, file), 4);
    (void)fclose(file);
    assert_memory_equal(head, "\x89PNG", 4);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void a_folder_that_is_not_there_is_an_error(void **state) {
    (void)state;
    if (system("command -v gnuplot >/dev/null") != 0) skip();
    assert_int_equal(wb_plot_curves("/nowhere/at/all.png", {"loss", loss, 3, false}), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "/nowhere/at/all.png");
}

static void a_missing_gnuplot_names_the_package(void **state) {
    (void)state;
    const char *before = getenv("PATH");
    char *path = strdup(before ? before : "");
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(wb_plot_curves("curves.png", {"loss", loss, 3, false}), WB_ERROR_UNSUPPORTED);
    setenv("PATH", path, 1);
    free(path);
    assert_error(WB_ERROR_UNSUPPORTED, "gnuplot-nox");
}

/* Instead of gnuplot: what prints its script. To gnuplot, an output '|...' is a command, so that
 * the script must not have the name. */
static void a_name_is_no_command(void **state) {
    (void)state;
    char folder[] = "/tmp/weber-plot-XXXXXX", path[64], script[256] = "";
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/gnuplot", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "#!/bin/sh\nwhile read -r line; do echo \"$line\"; done <$1\n");
    assert_int_equal(fclose(file) || chmod(path, 0700), 0);
    char *kept = strdup(getenv("PATH") ? getenv("PATH") : "");
    setenv("PATH", folder, 1);
    const wb_status status = wb_plot_curves("|touch a.svg", {"loss", loss, 3, false});
    setenv("PATH", kept, 1);
    free(kept);
    assert_int_equal(status, WB_OK);
    assert_int_equal(unlink(path), 0);
    file = fopen("|touch a.svg", "r");
    assert_non_null(file);
    assert_true(fread(script, 1, sizeof script - 1, file) > 0);
    assert_non_null(strstr(script, "set terminal svg"));
    assert_null(strstr(script, "touch"));
    assert_int_equal(fclose(file) || unlink("|touch a.svg") || rmdir(folder), 0);
}

static void nothing_to_draw_is_an_error(void **state) {
    (void)state;
    assert_int_equal(wb_plot_curves("curves.png", {"loss", loss, 0, false}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "without a point");
    assert_int_equal(wb_plot_curves("curves.png", {NULL, loss, 3, false}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "series 0 lacks its name");
    assert_int_equal(wb_plot_curves("a.png/b", {"loss", loss, 3, false}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "plot: the name of a picture must end in .png or .svg, got "
                                    "a.png/b");
    assert_int_equal(wb_plot_curves("curves.jpg", {"loss", loss, 3, false}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "got curves.jpg");
    assert_int_equal(wb_plot_curves(NULL, {"loss", loss, 3, false}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "path is NULL");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(curves_become_a_picture),
        TEST(a_folder_that_is_not_there_is_an_error),
        TEST(a_missing_gnuplot_names_the_package),
        TEST(a_name_is_no_command),
        TEST(nothing_to_draw_is_an_error),
    };
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
