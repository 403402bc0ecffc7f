/* src/images/folder.c and src/data/pictures.c: what is listed, in which order, and what loaders
 * make of it. peers.py compares the order with torchvision. */
#include <dlfcn.h>
#include <math.h>
#include <sys/stat.h>

#include <weber/csv.h>
#include <weber/images.h>
#include <weber/ops.h>
#include <weber/show.h>
#include <weber/state.h>

#include "support/files.h"
#include "support/support.h"

int64_t wb_fail_allocation(int64_t n);

static bool has_png(void) { return dlopen("libpng16.so.16", RTLD_NOW) != NULL; }

static void make_folders(const char *const *names, int count) {
    for (int i = 0; i < count; i++) assert_int_equal(mkdir(path_of(names[i]), 0755), 0);
}

/* A picture (6, 5) that is grey all over. */
static void make_picture(const char *name, int grey) {
    char path[256];
    assert_int_equal(wb_image_write(path_of("made.png"), wb_full(WB_U8, grey, 6, 5)), WB_OK);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(rename(path_of("made.png"), path), 0);
}

/* pets: bird (1), cat (3, one in a folder), dog (2), and what is passed over. */
static int make_pets(void **state) {
    static const char *const names[] = {"pets",          "pets/dog",  "pets/cat",
                                        "pets/cat/more", "pets/bird", "pets/.git"};
    if (make_folder(state) != 0 || wb_scope_open() != WB_OK) return -1;
    make_folders(names, 6);
    make_picture("pets/dog/b.png", 50);
    make_picture("pets/dog/a.PNG", 40);
    make_picture("pets/cat/z.png", 20);
    make_picture("pets/cat/more/a.png", 30);
    make_picture("pets/cat/10.png", 10);
    make_picture("pets/bird/x.jpeg", 0); /* a PNG by another name */
    write_file(path_of("pets/dog/.hidden.png"), "x", 1);
    write_file(path_of("pets/dog/notes.txt"), "x", 1);
    write_file(path_of("pets/readme"), "x", 1);
    return wb_scope_close();
}

static const struct {
    const char *path;
    int grey, label;
} pets[] = {{"bird/x.jpeg", 0, 0},     {"cat/10.png", 10, 1}, {"cat/z.png", 20, 1},
            {"cat/more/a.png", 30, 1}, {"dog/a.PNG", 40, 2},  {"dog/b.png", 50, 2}};

/* Of one number: it is grey / 255. */
#define PLAIN WB_DESC(image_prepare, .resize = 0, .crop = 4, .mean = {0}, .std = {1, 1, 1})

static void files_are_in_order_and_labels_are_places_of_names(void **state) {
    (void)state;
    wb_image_folder *f = wb_image_folder_open(path_of("pets"));
    assert_int_equal(wb_image_folder_count(f), 6);
    wb_array *labels = wb_image_folder_labels(f);
    assert_int_equal(wb_dtype_of(labels), WB_I32);
    for (int i = 0; i < 6; i++) {
        const char *path = wb_image_folder_path(f, i);
        assert_string_equal(path + strlen(path_of("pets")) + 1, pets[i].path);
        assert_int_equal((int)wb_at(labels, i), pets[i].label);
    }
    assert_null(wb_image_folder_path(f, 6));
    assert_null(wb_image_folder_path(f, -1));
    assert_string_equal(wb_image_folder_class(f, 2), "dog");
    assert_null(wb_image_folder_class(f, 3));
    assert_false(wb_failed());
    wb_free(f);
}

static void the_vocabulary_is_kept_and_numbers_other_folders(void **state) {
    (void)state;
    static const char *const names[] = {"test", "test/dog"};
    wb_image_folder *f = wb_image_folder_open(path_of("pets"));
    wb_text_entry *vocabulary = wb_image_folder_vocabulary(f);
    assert_string_equal(wb_text_of_entry(vocabulary), "bird\ncat\ndog");
    assert_int_equal(wb_save_named(path_of("pets.npz"), {"classes", vocabulary}), WB_OK);
    wb_free(f);
    make_folders(names, 2);
    make_picture("test/dog/q.png", 7);
    wb_file *file = wb_open(path_of("pets.npz"));
    wb_image_folder *test =
        wb_image_folder_open(path_of("test"), .vocabulary = wb_file_text(file, "classes"));
    wb_free(file);
    assert_int_equal((int)wb_at(wb_image_folder_labels(test), 0), 2);
    assert_string_equal(wb_image_folder_class(test, 0), "bird");
    wb_free(test);
    assert_null(wb_image_folder_open(path_of("pets"), .vocabulary = "cat\ndog\ncat"));
    assert_error(WB_ERROR_ARGUMENT, "the vocabulary has the class \"cat\" twice");
    wb_image_folder *again =
        wb_image_folder_open(path_of("pets"), .vocabulary = "dog\ncat\nbird\n");
    assert_string_equal(wb_image_folder_class(again, 2), "bird");
    assert_null(wb_image_folder_class(again, 3));
    wb_free(again);
    assert_null(wb_image_folder_open(path_of("pets"), .vocabulary = "cat\ndog"));
    assert_error(WB_ERROR_ARGUMENT, "pets: the vocabulary lacks the class \"bird\"");
}

static void check_batch(const wb_batch *batch, const int *places) {
    assert_true(wb_size(batch->x, 0) == 4 && wb_size(batch->x, 1) == 4 &&
                wb_size(batch->x, 2) == 3);
    for (int i = 0; i < batch->size; i++) {
        const int place = places[batch->index * 4 + i];
        assert_int_equal((int)wb_at(batch->y, i), pets[place].label);
        assert_true(fabs(wb_at(batch->x, 3, 0, 2, i) * 255 - pets[place].grey) < 1e-3);
    }
}

static void loaders_read_the_pictures_of_each_batch(void **state) {
    (void)state;
    static const int in_order[] = {0, 1, 2, 3, 4, 5};
    if (!has_png()) skip();
    wb_image_folder *f = wb_image_folder_open(path_of("pets"), .prepare = PLAIN);
    wb_loader *first = wb_loader_new(.images = f, .batchsize = 4, .threads = 3);
    wb_free(f); /* loaders go on */
    wb_loader *second = wb_loader_to(wb_default_device(), first);
    for (int i = 0; i < 2; i++) {
        wb_loader *loader = i ? second : first;
        assert_int_equal(wb_loader_length(loader), 2);
        int batches = 0;
        for (wb_batch batch = {0}; wb_next(loader, &batch); batches++)
            check_batch(&batch, in_order);
        assert_int_equal(batches, 2);
    }
    assert_false(wb_failed());
    wb_free(first);
    wb_free(second);
}

static void what_is_random_depends_on_the_seed_alone(void **state) {
    (void)state;
    float values[2][8];
    if (!has_png()) skip();
    uint8_t ramp[30 * 30];
    for (int i = 0; i < 900; i++) ramp[i] = (uint8_t)(i % 30 * 8);
    static const char *const names[] = {"ramps", "ramps/a"};
    make_folders(names, 2);
    for (int i = 0; i < 8; i++) {
        const char name[] = {'r', 'a', 'm', 'p', 's', '/', 'a', '/', (char)('0' + i),
                             '.', 'p', 'n', 'g', 0};
        assert_int_equal(wb_image_write(path_of(name), wb_from(WB_U8, ramp, 30, 30)), WB_OK);
    }
    wb_image_folder *f = wb_image_folder_open(
        path_of("ramps"), .prepare = WB_DESC(image_prepare, .crop = 8, .random_crop = true));
    for (int i = 0; i < 2; i++) {
        wb_loader *loader = wb_loader_new(.images = f, .batchsize = 8, .seed = 3, .threads = 1 + i,
                                          .background = i == 0);
        wb_batch batch = {0};
        assert_true(wb_next(loader, &batch));
        for (int k = 0; k < 8; k++) values[i][k] = (float)wb_at(batch.x, 2, 3, 0, k);
        assert_int_equal(wb_batch_end(&batch), WB_OK);
        wb_free(loader);
    }
    assert_memory_equal(values[0], values[1], sizeof values[0]);
    assert_true(fabsf(values[0][0] - values[0][1]) > 1e-6f);
    wb_free(f);
}

static void damaged_pictures_are_named_at_their_turn(void **state) {
    (void)state;
    static const char *const names[] = {"bad", "bad/a"};
    if (!has_png()) skip();
    make_folders(names, 2);
    make_picture("bad/a/1.png", 3);
    write_file(path_of("bad/a/2.png"), "\x89PNG\r\n\x1a\nno", 10);
    wb_image_folder *f = wb_image_folder_open(path_of("bad"), .prepare = PLAIN);
    wb_loader *loader = wb_loader_new(.images = f);
    wb_batch batch = {0};
    assert_true(wb_next(loader, &batch));
    assert_false(wb_next(loader, &batch));
    assert_error(WB_ERROR_FORMAT, "bad/a/2.png: the picture cannot be read: it is cut short");
    wb_free(loader);
    wb_free(f);
}

static void refuse_folder(const char *name, wb_status status, const char *text) {
    assert_null(wb_image_folder_open(path_of(name)));
    assert_error(status, text);
}

static void mistakes_are_named(void **state) {
    (void)state;
    static const char *const names[] = {"none", "empty",     "empty/cat", "gif",   "gif/a",
                                        "line", "line/a\nb", "loop",      "loop/a"};
    make_folders(names, 9);
    write_file(path_of("gif/a/x.gif"), "x", 1);
    assert_int_equal(symlink(".", path_of("loop/a/again")), 0);
    refuse_folder("absent", WB_ERROR_IO, "absent: No such file");
    refuse_folder("none", WB_ERROR_FORMAT, "none: it must have a folder for each class");
    refuse_folder("empty", WB_ERROR_FORMAT, "empty/cat: the class has no picture");
    refuse_folder("gif", WB_ERROR_UNSUPPORTED, "gif/a/x.gif: pictures of this kind are not read");
    refuse_folder("line", WB_ERROR_UNSUPPORTED, "has a line end in its name");
    refuse_folder("loop", WB_ERROR_UNSUPPORTED, "does a link lead back?");
    assert_null(wb_image_folder_open(NULL));
    assert_error(WB_ERROR_ARGUMENT, "the path is NULL");
    assert_null(wb_image_folder_open(path_of("pets"), .channels = 2));
    assert_error(WB_ERROR_ARGUMENT, "channels must be 1, 3 or 4, got 2");
    wb_image_folder *f =
        wb_image_folder_open(path_of("pets"), .prepare = WB_DESC(image_prepare, .crop = 0));
    assert_null(wb_loader_new(.images = f));
    assert_error(WB_ERROR_ARGUMENT, "loader: the pictures of a loader must have one size");
    assert_null(wb_loader_new(.images = f, .x = wb_zeros(WB_F32, 1)));
    assert_error(WB_ERROR_ARGUMENT, "with images all observations come from the folder, so x");
    wb_free(f);
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    bool is_listed = false;
    if (!has_png()) skip();
    for (int64_t n = 1; !is_listed; n++) {
        (void)wb_fail_allocation(n);
        wb_image_folder *f = wb_image_folder_open(path_of("pets"), .prepare = PLAIN);
        wb_loader *loader = f ? wb_loader_new(.images = f, .background = false) : NULL;
        wb_batch batch = {0};
        is_listed = loader && wb_next(loader, &batch);
        (void)wb_fail_allocation(0);
        assert_true(is_listed || wb_error_status() == WB_ERROR_MEMORY);
        wb_clear_error();
        (void)wb_batch_end(&batch);
        wb_free(loader);
        wb_free(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(files_are_in_order_and_labels_are_places_of_names),
        TEST(the_vocabulary_is_kept_and_numbers_other_folders),
        TEST(loaders_read_the_pictures_of_each_batch),
        TEST(what_is_random_depends_on_the_seed_alone),
        TEST(damaged_pictures_are_named_at_their_turn),
        TEST(mistakes_are_named),
        TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests_name("images/test_folder", tests, make_pets, drop_folder);
}
