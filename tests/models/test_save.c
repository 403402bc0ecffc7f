/* wb_save and wb_load through every format: bits, ties, devices, and what happens when something is
 * in the way. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weber/state.h>

#include "support/support.h"

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weber-save-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name) {
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static wb_layer *network(void) {
    return wb_chain(wb_conv({3, 3}, 1, 2, wb_relu), wb_maxpool({2, 2}), wb_flatten(),
                    wb_dense(8, 3, wb_tanh), wb_dropout(.p = 0.5), wb_dense(3, 2, .bias = false));
}

static const char *const places[] = {"layers.1.weight", "layers.1.bias", "layers.4.weight",
                                     "layers.4.bias", "layers.6.weight"};
enum { PLACES = sizeof places / sizeof *places };

static void assert_same_model(wb_layer *a, wb_layer *b) {
    for (int i = 0; i < PLACES; i++)
        assert_same_bits(wb_get(a, places[i]), wb_get(b, places[i]), places[i]);
}

typedef struct row {
    const char *name, *file;
    bool keeps_ties;
} row;
static const row rows[] = {
    {"BSON", "m.bson", true},
    {"safetensors", "m.safetensors", true},
    {"npz", "m.npz", true},
    {"GGUF", "m.gguf", true},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void a_model_comes_back(void **state) {
    const row *r = *state;
    wb_layer *model = network(), *other = network();
    assert_int_equal(wb_save(path_of(r->file), model), WB_OK);
    assert_int_equal(wb_load(path_of(r->file), other), WB_OK);
    assert_same_model(model, other);
    wb_free(model), wb_free(other);
}

/* What was loaded is in memory of its own: the file may change in place. */
static void a_loaded_model_needs_its_file_no_more(void **state) {
    const row *r = *state;
    wb_layer *model = network(), *other = network();
    assert_int_equal(wb_save(path_of(r->file), model), WB_OK);
    assert_int_equal(wb_load(path_of(r->file), other), WB_OK);
    FILE *file = fopen(path_of(r->file), "r+b");
    assert_non_null(file);
    for (int i = 0; i < 1 << 14; i++) (void)fputc(0xa5, file);
    assert_int_equal(fclose(file), 0);
    assert_same_model(model, other);
    wb_free(model), wb_free(other);
}

static void a_model_comes_back_from_a_device(void **state) {
    const row *r = *state;
    const wb_device *device = wb_get_device("checked", 0);
    wb_layer *model = network(), *other = network();
    assert_int_equal(wb_move(device, model), WB_OK);
    assert_int_equal(wb_save(path_of(r->file), model), WB_OK);
    assert_ptr_equal(wb_device_of(model), device); /* it stays where it is */
    assert_int_equal(wb_load(path_of(r->file), other), WB_OK);
    assert_ptr_equal(wb_device_of(other), wb_default_device());
    for (int i = 0; i < PLACES; i++)
        assert_same_bits(wb_cpu(wb_get(model, places[i])), wb_cpu(wb_get(other, places[i])),
                         places[i]);
    assert_int_equal(wb_load(path_of(r->file), model), WB_OK); /* and back to the device */
    assert_ptr_equal(wb_device_of(model), device);
    wb_free(model), wb_free(other);
    (void)wb_device_sync(device);
}

static void several_objects_have_their_keys(void **state) {
    const row *r = *state;
    wb_layer *model = wb_dense(2, 3);
    wb_array *numbers = wb_vector(1, 2, 3);
    assert_int_equal(wb_save_named(path_of(r->file), {"net", model}, {"numbers", numbers}), WB_OK);
    wb_file *file = wb_open(path_of(r->file));
    assert_non_null(file);
    const wb_record *root = wb_file_root(file);
    assert_same_bits(wb_cpu(numbers), wb_record_array(file, wb_record_get(root, "numbers")),
                     "numbers");
    assert_same_bits(wb_cpu(wb_get(model, "weight")),
                     wb_record_array(file, wb_record_get(root, "net.weight")), "net.weight");
    assert_null(wb_record_get(root, "net.nothing"));
    assert_error(WB_ERROR_ARGUMENT, "weight");
    wb_free(file), wb_free(model);
}

/* What was borrowed from a file outlives it. */
static void arrays_outlive_the_file(void **state) {
    const row *r = *state;
    wb_array *x = wb_vector(1, 2, 3, 4);
    assert_int_equal(wb_save_named(path_of(r->file), {"x", x}), WB_OK);
    wb_file *file = wb_open(path_of(r->file));
    assert_non_null(file);
    wb_array *y = wb_record_array(file, wb_record_get(wb_file_root(file), "x"));
    wb_free(file);
    assert_same_bits(wb_cpu(x), y, "after the file was closed");
}

static void a_tie_is_one_record(void **state) {
    const row *r = *state;
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(shared, wb_keep_layer(shared));
    assert_int_equal(wb_save(path_of(r->file), model), WB_OK);
    wb_file *file = wb_open(path_of(r->file));
    assert_non_null(file);
    const wb_record *root = wb_file_root(file);
    const wb_record *a = wb_record_get(root, "model.layers.1.weight"),
                    *b = wb_record_get(root, "model.layers.2.weight");
    assert_true(a && b);
    if (r->keeps_ties) assert_ptr_equal(a, b);
    wb_free(file), wb_free(model);
}

static void a_misfit_changes_nothing(void **state) {
    const row *r = *state;
    wb_layer *model = wb_chain(wb_dense(4, 3), wb_dense(3, 2));
    wb_layer *wide = wb_chain(wb_dense(4, 3), wb_dense(3, 5)), *before = wb_clone(wide);
    wb_layer *longer = wb_chain(wb_dense(4, 3), wb_dense(3, 2), wb_dense(2, 2));
    assert_int_equal(wb_save(path_of(r->file), model), WB_OK);
    assert_int_equal(wb_load(path_of(r->file), wide), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "layers.2.weight is (2, 3) in the file, (5, 3) in the model");
    assert_same_bits(wb_get(wide, "layers.1.weight"), wb_get(before, "layers.1.weight"), "before");
    assert_int_equal(wb_load(path_of(r->file), longer), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "layers.3");
    wb_free(model), wb_free(wide), wb_free(before), wb_free(longer);
}

static int64_t size_of_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

/* The writer is killed after some microseconds, many times: the name is the old file or the new
 * one. */
static void a_killed_writer_leaves_a_whole_file(void **state) {
    const row *r = *state;
    wb_layer *old = wb_dense(64, 64), *read = wb_dense(64, 64);
    assert_int_equal(wb_save(path_of(r->file), old), WB_OK);
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (;;) (void)wb_save(path_of(r->file), old);
        }
        usleep((useconds_t)(i * 137 % 4000));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(wb_load(path_of(r->file), read), WB_OK);
        assert_same_bits(wb_get(old, "weight"), wb_get(read, "weight"), "after a kill");
    }
    wb_free(old), wb_free(read);
}

static void what_cannot_be_written_leaves_the_old_file(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(wb_save(path_of("keep.bson"), model), WB_OK);
    const int64_t size = size_of_file(path_of("keep.bson"));
    wb_array *brain = wb_cast(wb_vector(1, 2), WB_BF16); /* Julia has no such type */
    assert_true(wb_save_named(path_of("keep.bson"), {"x", brain}) != WB_OK);
    assert_true(wb_failed());
    wb_clear_error();
    assert_int_equal(size_of_file(path_of("keep.bson")), size);
    assert_int_equal(wb_save(path_of("no/folder.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "no/folder.bson: cannot be made");
    assert_int_equal(wb_save(path_of("m.unknown"), model), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, ".safetensors");
    wb_free(model);
}

/* As the preference file: a link stays a link. */
static void a_link_leads_to_the_new_file(void **state) {
    (void)state;
    char target[300];
    struct stat status;
    wb_layer *model = wb_dense(2, 2);
    snprintf(target, sizeof target, "%s", path_of("target.bson"));
    assert_int_equal(symlink(target, path_of("link.bson")), 0);
    FILE *old = fopen(target, "wb");
    assert_true(old && fclose(old) == 0 && chmod(target, 0640) == 0);
    assert_int_equal(wb_save(path_of("link.bson"), model), WB_OK);
    assert_true(lstat(path_of("link.bson"), &status) == 0 && S_ISLNK(status.st_mode));
    assert_true(stat(target, &status) == 0 && (status.st_mode & 07777) == 0640);
    assert_true(size_of_file(target) > 0);

    assert_int_equal(unlink(target), 0);
    assert_int_equal(symlink("link.bson", path_of("other.bson")), 0);
    assert_int_equal(wb_save(path_of("other.bson"), model), WB_OK);
    assert_true(lstat(path_of("link.bson"), &status) == 0 && S_ISLNK(status.st_mode));
    assert_true(size_of_file(target) > 0);
    wb_free(model);
}

/* Another thread's files would be open to all as long as the mask is 0. */
static int masks_set;
mode_t umask(mode_t mask) {
    masks_set++;
    return mask;
}

static void the_mask_of_the_process_is_left_alone(void **state) {
    (void)state;
    struct stat saved, made;
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(wb_save(path_of("masked.bson"), model), WB_OK);
    assert_int_equal(masks_set, 0);
    const int file = open(path_of("made"), O_CREAT | O_WRONLY, 0666);
    assert_true(file >= 0 && fstat(file, &made) == 0 && close(file) == 0);
    assert_int_equal(stat(path_of("masked.bson"), &saved), 0);
    assert_int_equal(saved.st_mode, made.st_mode);
    wb_free(model);
}

/* In a folder as /tmp is; only root can make what belongs to another. */
static void a_link_of_another_user_is_not_followed(void **state) {
    (void)state;
    if (geteuid() != 0) skip();
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(mkdir(path_of("all"), 0755), 0);
    assert_int_equal(chmod(path_of("all"), 01777), 0);
    assert_int_equal(mkdir(path_of("own"), 0755), 0);
    assert_int_equal(symlink("../own/m.bson", path_of("all/m.bson")), 0);
    assert_int_equal(symlink("../own", path_of("all/folder")), 0);
    assert_int_equal(wb_save(path_of("all/m.bson"), model), WB_OK);
    assert_int_equal(unlink(path_of("own/m.bson")), 0);
    assert_int_equal(lchown(path_of("all/m.bson"), 65534, 65534), 0);
    assert_int_equal(lchown(path_of("all/folder"), 65534, 65534), 0);
    assert_int_equal(wb_save(path_of("all/m.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "a link on the way to it belongs to another user");
    assert_int_equal(wb_save(path_of("all/folder/n.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "a link on the way to it belongs to another user");
    assert_int_equal(wb_image_write(path_of("all/folder/i.png"), wb_ones(WB_F32, 1, 1)),
                     WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "a link on the way to it belongs to another user");
    assert_int_not_equal(access(path_of("own/m.bson"), F_OK), 0);
    assert_int_equal(chmod(path_of("all"), 0755), 0);
    assert_int_equal(wb_save(path_of("all/m.bson"), model), WB_OK);
    wb_free(model);
}

static void only_files_are_replaced(void **state) {
    (void)state;
    struct stat status;
    wb_layer *model = wb_dense(2, 2);
    assert_int_equal(mkfifo(path_of("pipe.bson"), 0600), 0);
    assert_int_equal(mkdir(path_of("folder.bson"), 0700), 0);
    assert_int_equal(symlink("pipe.bson", path_of("to_pipe.bson")), 0);
    assert_int_equal(wb_save(path_of("pipe.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO,
                 "pipe.bson: cannot be made: it must be a regular file, got a pipe or a device");
    assert_int_equal(wb_save(path_of("to_pipe.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "to_pipe.bson: cannot be made: it must be a regular file");
    assert_true(stat(path_of("pipe.bson"), &status) == 0 && S_ISFIFO(status.st_mode));
    assert_int_equal(wb_save(path_of("folder.bson"), model), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "folder.bson: cannot be made: Is a directory");
    wb_free(model);
}

static void texts_and_numbers_stand_beside_a_model(void **state) {
    static const char *const names[] = {"texts.bson", "texts.npz", "texts.safetensors"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *path = path_of(names[i]);
        wb_layer *model = network(), *again = network();
        assert_int_equal(wb_save_named(path, {"vocabulary", wb_text("cat\nd\"og")},
                                       {"model", model}, {"epoch", wb_number(3)},
                                       {"note", wb_text("")}),
                         WB_OK);
        assert_int_equal(wb_load(path, again), WB_OK);
        assert_same_model(model, again);
        wb_file *file = wb_open(path);
        assert_string_equal(wb_file_text(file, "vocabulary"), "cat\nd\"og");
        assert_string_equal(wb_file_text(file, "note"), "");
        assert_null(wb_file_text(file, "epoch"));
        assert_error(WB_ERROR_ARGUMENT, "there is no text \"epoch\"");
        assert_value(wb_file_array(file, "epoch"), 3, 0);
        assert_null(wb_file_array(file, "note"));
        assert_error(WB_ERROR_ARGUMENT, "there is no array \"note\"");
        wb_free(file), wb_free(model), wb_free(again);
    }
    assert_int_equal(wb_save_named(path_of("text.npy"), {"x", wb_vector(1)}, {"a", wb_text("b")}),
                     WB_ERROR_UNSUPPORTED);
    assert_error(WB_ERROR_UNSUPPORTED, ".npy has no place for \"a\"");
}

/* Names and texts go into files as UTF-8, or not at all, in each format. */
static void what_is_no_utf8_is_refused(void **state) {
    static const char *const names[] = {"latin.bson", "latin.npz", "latin.safetensors"};
    (void)state;
    wb_layer *model = wb_chain_named({"caf\xe9", wb_dense(2, 2)});
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wb_save(path_of(names[i]), model), WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "is not UTF-8");
        assert_int_equal(wb_save_named(path_of(names[i]), {"caf\xe9", wb_vector(1)}),
                         WB_ERROR_ARGUMENT);
        assert_error(WB_ERROR_ARGUMENT, "is not UTF-8");
        assert_int_equal(access(path_of(names[i]), F_OK), -1);
    }
    wb_free(model);
}

/* ---- functions of one's own ---- */

static wb_array *steep(wb_array *x) { return wb_mul(x, wb_sigmoid(wb_mul_number(x, 1.7))); }

static int warnings;

static void count_nameless(void *context, wb_log_level level, const char *line) {
    (void)context;
    warnings += level == WB_LOG_WARN && strstr(line, "wb_register_function names it");
}

static void a_function_of_ones_own_has_a_name(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3, steep), wb_fn(steep), wb_fn(wb_relu));
    const char *path = path_of("steep.npz");
    wb_log_to(count_nameless, NULL);
    assert_int_equal(wb_save(path, model), WB_OK);
    assert_null(wb_load_model(path, NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "wb_register_function names it before the model is saved");
    assert_int_equal(warnings, 1);
    assert_int_equal(wb_register_function("steep", steep), WB_OK);
    assert_int_equal(wb_register_function("steep", steep), WB_OK);
    assert_int_equal(wb_save(path, model), WB_OK);
    wb_layer *same = wb_load_model(path, NULL);
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, 1);
    wb_array *x = wb_normal(WB_F32, 2, 4);
    assert_true(wb_approx(wb_apply(same, x), wb_apply(model, x), 0, 0, NULL, 0));
    wb_layer *parsed = wb_parse("Chain(Dense(2 => 3, steep), steep, relu)");
    assert_non_null(parsed);
    wb_free(model), wb_free(same), wb_free(parsed);
    assert_int_equal(wb_register_function("relu", steep), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "another function has the name relu");
    assert_int_equal(wb_register_function("2nd", steep), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "got \"2nd\"");
    assert_int_equal(wb_register_function("true", steep), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "not true, false, nothing or function, got \"true\"");
    assert_int_equal(wb_register_function(NULL, steep), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the name is NULL");
}

/* It was saved by the name that is printed, by which nothing was found. */
static void a_name_for_printing_is_not_what_files_have(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_fn_named("mine", wb_tanh));
    const char *path = path_of("printed.npz");
    assert_int_equal(wb_save(path, model), WB_OK);
    wb_layer *same = wb_load_model(path, NULL);
    wb_array *x = wb_normal(WB_F32, 2, 4);
    assert_true(wb_approx(wb_apply(same, x), wb_tanh(x), 0, 0, NULL, 0));
    wb_free(model), wb_free(same);
}

static int scaled(void *context, int count, wb_array *const *x, wb_array **y) {
    *y = count == 1 ? wb_mul_number(*x, *(const double *)context) : NULL;
    return *y ? 1 : 0;
}

static void a_model_with_a_closure_is_filled_but_not_made(void **state) {
    (void)state;
    double factor = 3;
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_fn_with(scaled, &factor, .name = "scaled"));
    wb_layer *other = wb_chain(wb_dense(2, 3), wb_fn_with(scaled, &factor));
    const char *path = path_of("closure.safetensors");
    const int before = warnings;
    wb_log_to(count_nameless, NULL);
    assert_int_equal(wb_save(path, model), WB_OK);
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, before + 1);
    assert_null(wb_load_model(path, NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "unless it has a context (wb_fn_with): then the program");
    assert_int_equal(wb_load(path, other), WB_OK);
    wb_array *x = wb_normal(WB_F32, 2, 4);
    assert_true(wb_approx(wb_apply(other, x), wb_apply(model, x), 0, 0, NULL, 0));
    wb_free(model), wb_free(other);
}

int main(void) {
    static const struct {
        const char *name;
        void (*test)(void **state);
    } tests_of_rows[] = {
#define OF_ROWS(f) {#f, f}
        OF_ROWS(a_model_comes_back),
        OF_ROWS(a_loaded_model_needs_its_file_no_more),
        OF_ROWS(a_model_comes_back_from_a_device),
        OF_ROWS(several_objects_have_their_keys),
        OF_ROWS(arrays_outlive_the_file),
        OF_ROWS(a_tie_is_one_record),
        OF_ROWS(a_misfit_changes_nothing),
        OF_ROWS(a_killed_writer_leaves_a_whole_file),
    };
    enum { OF_ROWS_COUNT = sizeof tests_of_rows / sizeof *tests_of_rows };
    struct CMUnitTest tests[ROWS * OF_ROWS_COUNT + 16];
    int count = 0;
    for (int t = 0; t < OF_ROWS_COUNT; t++)
        for (int r = 0; r < ROWS; r++) {
            tests[count] = TEST_ROW(&rows[r], tests_of_rows[t].test);
            tests[count++].name = tests_of_rows[t].name;
        }
    tests[count++] = (struct CMUnitTest)TEST(what_cannot_be_written_leaves_the_old_file);
    tests[count++] = (struct CMUnitTest)TEST(a_link_leads_to_the_new_file);
    tests[count++] = (struct CMUnitTest)TEST(the_mask_of_the_process_is_left_alone);
    tests[count++] = (struct CMUnitTest)TEST(a_link_of_another_user_is_not_followed);
    tests[count++] = (struct CMUnitTest)TEST(only_files_are_replaced);
    tests[count++] = (struct CMUnitTest)TEST(texts_and_numbers_stand_beside_a_model);
    tests[count++] = (struct CMUnitTest)TEST(what_is_no_utf8_is_refused);
    tests[count++] = (struct CMUnitTest)TEST(a_function_of_ones_own_has_a_name);
    tests[count++] = (struct CMUnitTest)TEST(a_name_for_printing_is_not_what_files_have);
    tests[count++] = (struct CMUnitTest)TEST(a_model_with_a_closure_is_filled_but_not_made);
    return _cmocka_run_group_tests("models/test_save", tests, (size_t)count, make_folder,
                                   drop_folder);
}
