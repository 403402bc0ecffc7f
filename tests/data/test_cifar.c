/* src/data/cifar.c, on files that the test writes. */
#include <sys/stat.h>

#include <weber/observations.h>

#include "support/files.h"
#include "support/support.h"

enum { PIXELS = 3072 };

static unsigned char pixel(int record, int place) { return (unsigned char)(place % 251 + record); }

static void write_records(const char *path, int labels, int count, int size_off) {
    const size_t record = (size_t)labels + PIXELS;
    unsigned char *bytes = calloc((size_t)count + 1, record);
    for (int i = 0; i < count; i++) {
        unsigned char *own = bytes + (size_t)i * record;
        for (int k = 0; k < labels; k++) own[k] = (unsigned char)(i + 10 * k);
        for (int p = 0; p < PIXELS; p++) own[labels + p] = pixel(i, p);
    }
    write_file(path, bytes, (size_t)count * record + (size_t)size_off);
    free(bytes);
}

static void records_are_images(void **state) {
    (void)state;
    wb_array *x, *y;
    write_records(path_of("ten"), 1, 3, 0);
    assert_int_equal(wb_read_cifar(path_of("ten"), 1, &x, &y), WB_OK);
    const int64_t sizes[] = {32, 32, 3, 3};
    for (int d = 0; d < 4; d++) assert_int_equal(wb_size(x, d), sizes[d]);
    assert_float_equal(wb_at(x, 5, 2, 1, 2), pixel(2, 5 + 32 * 2 + 1024), 0);
    assert_float_equal(wb_at(y, 2), 2, 0);
    write_records(path_of("hundred"), 2, 2, 0);
    assert_int_equal(wb_read_cifar(path_of("hundred"), 2, &x, &y), WB_OK);
    assert_float_equal(wb_at(y, 1, 1), 11, 0);
}

static void sets_are_found(void **state) {
    (void)state;
    wb_array *x, *y;
    char path[160];
    unsetenv("WEBER_DATA");
    assert_int_equal(wb_cifar10(WB_SPLIT_TEST, &x, &y), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "WEBER_DATA must name the folder that has cifar-10-batches-bin");
    assert_int_equal(mkdir(path_of("cifar-10-batches-bin"), 0700), 0);
    assert_int_equal(mkdir(path_of("cifar-100-binary"), 0700), 0);
    for (int i = 1; i <= 5; i++) {
        snprintf(path, sizeof path, "%s/cifar-10-batches-bin/data_batch_%d.bin", folder, i);
        write_records(path, 1, i, 0);
    }
    snprintf(path, sizeof path, "%s/cifar-100-binary/test.bin", folder);
    write_records(path, 2, 4, 0);
    setenv("WEBER_DATA", folder, 1);
    assert_int_equal(wb_cifar10(WB_SPLIT_TRAIN, &x, &y), WB_OK);
    assert_int_equal(wb_numobs(x), 15);
    assert_float_equal(wb_at(y, 14), 4, 0);
    assert_int_equal(wb_cifar100(WB_SPLIT_TEST, false, &x, &y), WB_OK);
    assert_float_equal(wb_at(y, 3), 13, 0);
    assert_int_equal(wb_cifar100(WB_SPLIT_TEST, true, &x, &y), WB_OK);
    assert_float_equal(wb_at(y, 3), 3, 0);
    unsetenv("WEBER_DATA");
}

static void damaged_files_are_named(void **state) {
    (void)state;
    wb_array *x, *y;
    write_records(path_of("cut"), 1, 2, 7);
    assert_int_equal(wb_read_cifar(path_of("cut"), 1, &x, &y), WB_ERROR_FORMAT);
    assert_null(x);
    assert_error(WB_ERROR_FORMAT, "has 6153 bytes, 7 of them after the last record");
    write_records(path_of("empty"), 1, 0, 0);
    assert_int_equal(wb_read_cifar(path_of("empty"), 1, &x, &y), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "but has 0");
    assert_int_equal(wb_read_cifar(path_of("nowhere"), 1, &x, &y), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "No such file");
    assert_int_equal(wb_read_cifar(path_of("cut"), 3, &x, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "a record has 1 or 2 labels, got 3");
    assert_int_equal(wb_read_cifar(path_of("ten"), 1, NULL, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_cifar: images is NULL");
    assert_int_equal(wb_cifar100(WB_SPLIT_TEST, false, &x, NULL), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "cifar100: labels is NULL");
    assert_int_equal(wb_read_cifar(NULL, 1, &x, &y), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "read_cifar: path is NULL");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(records_are_images), TEST(sets_are_found),
                                       TEST(damaged_files_are_named)};
    return cmocka_run_group_tests_name("data/test_cifar", tests, make_folder, drop_folder);
}
