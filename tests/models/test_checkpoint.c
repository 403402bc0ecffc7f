/* src/models/checkpoint.c: which files a folder of checkpoints has, which of them count, and which
 * go. */
#include <fcntl.h>

#include <weber.h>

#include "base/replace.h"
#include "support/files.h"
#include "support/support.h"

static wb_layer *number(double value) { return wb_tree_named({"n", wb_scalar(WB_F32, value)}); }

static void save(const char *path, int64_t n, int64_t keep) {
    wb_layer *tree = number((double)n);
    assert_int_equal(wb_checkpoint_save(path, n, keep, {"tree", tree}), WB_OK);
    wb_free(tree);
}

/* Which checkpoint is loaded: -1 for none. */
static int64_t loaded(const char *path) {
    wb_layer *tree = number(-1);
    int64_t n = -2;
    assert_int_equal(wb_checkpoint_load(path, &n, {"tree", tree}), WB_OK);
    assert_true(wb_item(wb_get(tree, "n")) == (double)n);
    wb_free(tree);
    return n;
}

static bool is_there(const char *name) { return access(path_of(name), F_OK) == 0; }

static void the_newest_ones_stay(void **state) {
    (void)state;
    assert_int_equal(loaded(path_of("a/")), -1); /* not even the folder is there */
    for (int64_t n = 8; n <= 12; n++) save(path_of("a/"), n, 0);
    assert_false(is_there("a/checkpoint-000000000009.npz"));
    for (int n = 10; n <= 12; n++) {
        char name[64];
        snprintf(name, sizeof name, "a/checkpoint-%012d.npz", n);
        assert_true(is_there(name));
    }
    assert_int_equal(loaded(path_of("a")), 12); /* with and without the slash */
    save(path_of("a"), 13, 1);
    assert_false(is_there("a/checkpoint-000000000012.npz"));
    assert_int_equal(loaded(path_of("a/")), 13);
}

/* An older number, saved again, pushes out none that is newer, and is not pushed out. */
static void a_lower_number_removes_no_higher_one(void **state) {
    (void)state;
    save(path_of("b/"), 100, 2), save(path_of("b/"), 200, 2), save(path_of("b/"), 50, 1);
    assert_int_equal(loaded(path_of("b/")), 200);
    assert_true(is_there("b/checkpoint-000000000050.npz"));
    assert_true(is_there("b/checkpoint-000000000100.npz"));
}

static void other_files_are_left_alone(void **state) {
    (void)state;
    static const char *const others[] = {"c/checkpoint-1.npz",
                                         "c/checkpoint-00000000000x.npz",
                                         "c/checkpoint-000000000001.bson",
                                         "c/checkpoint-000000000001.npz.damaged",
                                         "c/net-000000000001.npz",
                                         "c/checkpoint-000000000001.npz.notes",
                                         "c/checkpoint-99999999999999999999.npz"};
    static const char *const halves[] = {"c/checkpoint-000000000001.npz.aB3xYz",
                                         "c/checkpoint-000000000007.npz.000000"};
    enum { OTHERS = sizeof others / sizeof *others };
    save(path_of("c/"), 2, 0);
    for (int i = 0; i < OTHERS; i++) write_file(path_of(others[i]), "x", 1);
    for (int i = 0; i < 2; i++) write_file(path_of(halves[i]), "x", 1);
    assert_int_equal(loaded(path_of("c/")), 2);
    save(path_of("c/"), 3, 1);
    for (int i = 0; i < OTHERS; i++) assert_true(is_there(others[i]));
    for (int i = 0; i < 2; i++) assert_false(is_there(halves[i])); /* of killed writers */
    assert_false(is_there("c/checkpoint-000000000002.npz"));
}

static void the_path_names_begin_and_format(void **state) {
    (void)state;
    save(path_of("d/net.bson"), 7, 0), save(path_of("d/net.safetensors"), 8, 0);
    save(path_of("d/.npz"), 9, 0);
    assert_true(is_there("d/net-000000000007.bson"));
    assert_true(is_there("d/net-000000000008.safetensors"));
    assert_true(is_there("d/checkpoint-000000000009.npz"));
    assert_int_equal(loaded(path_of("d/net.bson")), 7); /* each a series of its own */
    assert_int_equal(loaded(path_of("d/net.safetensors")), 8);
    assert_int_equal(loaded(path_of("d/")), 9);
    assert_int_equal(chdir(folder), 0);
    save("here.bson", 1, 0);
    assert_true(is_there("here-000000000001.bson"));
    assert_int_equal(loaded("here.bson"), 1);
    assert_int_equal(chdir("/"), 0);
}

static int warnings;
static void count_warnings(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level == WB_LOG_WARN && strstr(line, "trying the one before")) warnings++;
}

static void damaged_ones_are_set_aside_once(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 3; n++) save(path_of("e/"), n, 0);
    write_file(path_of("e/checkpoint-000000000003.npz"), "", 0);
    write_file(path_of("e/checkpoint-000000000002.npz"), "PK", 2);
    wb_log_to(count_warnings, NULL);
    assert_int_equal(loaded(path_of("e/")), 1);
    assert_int_equal(warnings, 2);
    assert_true(is_there("e/checkpoint-000000000002.npz.damaged"));
    assert_true(is_there("e/checkpoint-000000000003.npz.damaged"));
    assert_int_equal(loaded(path_of("e/")), 1);
    assert_int_equal(warnings, 2);
    write_file(path_of("e/checkpoint-000000000001.npz"), "", 0);
    wb_layer *tree = number(-1);
    assert_int_equal(wb_checkpoint_load(path_of("e/"), NULL, {"tree", tree}), WB_ERROR_FORMAT);
    wb_log_to(NULL, NULL);
    assert_error(WB_ERROR_FORMAT, "none of 1 checkpoints can be read");
    assert_true(is_there("e/checkpoint-000000000001.npz")); /* nobody starts anew over it */
    assert_true(wb_item(wb_get(tree, "n")) == -1);
    wb_free(tree);
}

/* A whole file of something else is no damage. */
static void what_does_not_fit_is_an_error(void **state) {
    (void)state;
    save(path_of("f/"), 1, 0);
    wb_layer *tree = wb_tree_named({"n", wb_vector(1, 2)}), *other = number(4);
    int64_t n = -2;
    assert_int_equal(wb_checkpoint_save(path_of("f/"), 2, 0, {"tree", tree}), WB_OK);
    assert_int_equal(wb_checkpoint_load(path_of("f/"), &n, {"tree", other}), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "checkpoint-000000000002.npz: n is (2)");
    assert_int_equal(n, -1);
    assert_true(is_there("f/checkpoint-000000000002.npz"));
    wb_free(tree), wb_free(other);
}

static void bad_calls_are_told(void **state) {
    (void)state;
    wb_layer *tree = number(1);
    write_file(path_of("plain"), "x", 1);
    assert_int_equal(wb_checkpoint_save(path_of("plain/x/"), 1, 0, {"t", tree}), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "plain");
    assert_int_equal(wb_checkpoint_load(path_of("plain/"), NULL, {"t", tree}), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "plain/: cannot be read");
    assert_int_equal(wb_checkpoint_save(path_of("g/"), -1, 0, {"t", tree}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "number and keep must not be negative, got -1");
    assert_int_equal(wb_checkpoint_save("", 1, 0, {"t", tree}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "empty");
    assert_int_equal(wb_checkpoint_save(path_of("h.txt"), 1, 0, {"t", tree}), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "must end in .bson, .safetensors, .npy or .npz, or in / for a ");
    assert_int_equal(wb_checkpoint_load(path_of("h.txt"), NULL, {"t", tree}), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "h.txt");
    assert_int_equal(wb_checkpoint_save(path_of("h.txt/"), 1, 0, {"t", tree}), WB_OK);
    assert_int_equal(wb_checkpoint_save(path_of("lr0.1"), 1, 0, {"t", tree}), WB_OK);
    assert_true(is_there("lr0.1/checkpoint-000000000001.npz"));
    assert_int_equal(wb_checkpoint_load(NULL, NULL, {"t", tree}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the path is NULL");
    wb_free(tree);
}

/* Of two trainings in one folder, each leaves alone what the other writes. */
static void only_abandoned_halves_are_removed(void **state) {
    (void)state;
    wb_replacement other;
    save(path_of("h/"), 1, 0);
    const int half =
        open(path_of("h/checkpoint-000000000007.npz.aB3dE6"), O_CREAT | O_WRONLY, 0666);
    assert_true(half >= 0 && close(half) == 0);
    assert_true(wb_replace_begin(&other, path_of("h/checkpoint-000000000008.npz")));
    save(path_of("h/"), 2, 0);
    assert_false(is_there("h/checkpoint-000000000007.npz.aB3dE6"));
    assert_int_equal(access(other.fresh, F_OK), 0);
    assert_true(fputs("whole", other.stream) >= 0 && wb_replace_end(&other, true));
    assert_true(is_there("h/checkpoint-000000000008.npz"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_newest_ones_stay),
        TEST(a_lower_number_removes_no_higher_one),
        TEST(other_files_are_left_alone),
        TEST(only_abandoned_halves_are_removed),
        TEST(the_path_names_begin_and_format),
        TEST(damaged_ones_are_set_aside_once),
        TEST(what_does_not_fit_is_an_error),
        TEST(bad_calls_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
