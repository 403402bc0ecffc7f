/* src/data/idx.c and fashion_mnist.c: whole files, and damaged ones, each byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <weber/data.h>

#include "support/scoped.h"

static char folder[] = "/tmp/weber-idx-XXXXXX";
static char path[256];

/* u8, (4, 3, 2) fastest first: 0, 1, ... 23 */
static size_t small_file(unsigned char *bytes) {
    const unsigned char header[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
    memcpy(bytes, header, sizeof header);
    for (int i = 0; i < 24; i++) bytes[sizeof header + (size_t)i] = (unsigned char)i;
    return sizeof header + 24;
}

static void write_file(const unsigned char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t zip(const unsigned char *bytes, size_t size, unsigned char *out, size_t capacity) {
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)bytes,
                       .avail_in = (uInt)size,
                       .next_out = out,
                       .avail_out = (uInt)capacity};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const size_t written = stream.total_out;
    assert_int_equal(deflateEnd(&stream), Z_OK);
    return written;
}

static void assert_small(wb_array *x) {
    assert_non_null(x);
    assert_int_equal(wb_dtype_of(x), WB_U8);
    assert_int_equal(wb_ndim(x), 3);
    assert_true(wb_size(x, 0) == 4 && wb_size(x, 1) == 3 && wb_size(x, 2) == 2);
    const uint8_t *values = wb_read_begin(x);
    for (int i = 0; i < 24; i++) assert_int_equal(values[i], i);
    wb_read_end(x);
}

static void sizes_come_fastest_first(void **state) {
    (void)state;
    unsigned char bytes[64], zipped[256];
    const size_t size = small_file(bytes);
    write_file(bytes, size);
    assert_small(wb_read_idx(path));
    write_file(zipped, zip(bytes, size, zipped, sizeof zipped));
    assert_small(wb_read_idx(path));
}

static void numbers_of_several_bytes_are_turned_around(void **state) {
    (void)state;
    const unsigned char i32[] = {0, 0, 0x0C, 1, 0, 0, 0, 2, 0, 0, 1, 2, 0xFF, 0xFF, 0xFF, 0xFE};
    write_file(i32, sizeof i32);
    wb_array *x = wb_read_idx(path);
    assert_int_equal(wb_dtype_of(x), WB_I32);
    assert_true(wb_at(x, 0) == 258 && wb_at(x, 1) == -2);
    const unsigned char f32[] = {0, 0, 0x0D, 0, 0x3F, 0xC0, 0, 0};
    write_file(f32, sizeof f32);
    assert_true(wb_item(wb_read_idx(path)) == 1.5);
    const unsigned char f64[] = {0, 0, 0x0E, 1, 0, 0, 0, 1, 0xC0, 0x04, 0, 0, 0, 0, 0, 0};
    write_file(f64, sizeof f64);
    assert_true(wb_item(wb_read_idx(path)) == -2.5);
    const unsigned char i16[] = {0, 0, 0x0B, 1, 0, 0, 0, 2, 1, 2, 0xFF, 0xFE};
    write_file(i16, sizeof i16);
    x = wb_read_idx(path);
    assert_int_equal(wb_dtype_of(x), WB_I32);
    assert_true(wb_at(x, 0) == 258 && wb_at(x, 1) == -2);
    const unsigned char i8[] = {0, 0, 0x09, 1, 0, 0, 0, 2, 3, 0xFE};
    write_file(i8, sizeof i8);
    x = wb_read_idx(path);
    assert_true(wb_at(x, 0) == 3 && wb_at(x, 1) == -2);
    const unsigned char none[] = {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 5};
    write_file(none, sizeof none);
    x = wb_read_idx(path);
    assert_true(wb_size(x, 0) == 5 && wb_size(x, 1) == 0);
}

static void every_truncation_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[64];
    const size_t size = small_file(bytes);
    for (size_t cut = 0; cut < size; cut++) {
        write_file(bytes, cut);
        assert_null(wb_read_idx(path));
        char offset[32];
        (void)snprintf(offset, sizeof offset, "offset %zu", cut);
        assert_true(strstr(wb_error_message(), path) != NULL);
        assert_error(WB_ERROR_FORMAT, cut < 4 || cut >= 16 ? offset : "cut short");
    }
}

static void every_truncation_of_a_zipped_file_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[64], zipped[256];
    const size_t size = zip(bytes, small_file(bytes), zipped, sizeof zipped);
    for (size_t cut = 0; cut < size; cut++) {
        write_file(zipped, cut);
        assert_null(wb_read_idx(path));
        assert_true(strstr(wb_error_message(), path) != NULL);
        assert_error(WB_ERROR_FORMAT, "offset ");
    }
}

static void every_wrong_byte_of_a_zipped_file_is_noticed(void **state) {
    (void)state;
    unsigned char bytes[64], zipped[256];
    const size_t size = zip(bytes, small_file(bytes), zipped, sizeof zipped);
    for (size_t i = 0; i < size; i++) {
        if (i >= 4 && i < 10)
            continue; /* time, flags and system of the gzip header say nothing about the data */
        zipped[i] ^= 0x20;
        write_file(zipped, size);
        wb_array *x = wb_read_idx(path);
        zipped[i] ^= 0x20;
        if (i == 3) { /* a reserved or optional part of the header: either refused or harmless */
            wb_clear_error();
            continue;
        }
        if (x)
            assert_small(x); /* a bit between the last symbol and the checksum, say */
        else
            assert_true(wb_take_error(NULL, 0) != WB_OK);
    }
}

/* As `cat a.gz b.gz` makes it. */
static void members_of_gzip_are_one_stream(void **state) {
    (void)state;
    unsigned char bytes[64], zipped[256];
    const size_t size = small_file(bytes);
    size_t end = zip(bytes, 9, zipped, sizeof zipped);
    end += zip(bytes + 9, size - 9, zipped + end, sizeof zipped - end);
    write_file(zipped, end);
    assert_small(wb_read_idx(path));
    zipped[end - 5] ^= 1; /* the second one's checksum */
    write_file(zipped, end);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "cut short or damaged");
}

/* 3 MiB of zeros in 3 kB. */
static void what_a_small_file_becomes_has_a_limit(void **state) {
    (void)state;
    enum { SIZE = 3 << 20 };
    unsigned char *bytes = calloc(1, SIZE + 16), *zipped = calloc(1, 16384);
    assert_true(bytes && zipped);
    const unsigned char header[] = {0, 0, 8, 1, 0, 0x30, 0, 0};
    memcpy(bytes, header, sizeof header);
    write_file(zipped, zip(bytes, SIZE + sizeof header, zipped, 16384));
    setenv("WEBER_INFLATE_MIB", "2", 1);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "inflates to 3145736 bytes or more; at most 2097152 are allowed "
                                  "(WEBER_INFLATE_MIB sets the limit, in mebibytes)");
    unsetenv("WEBER_INFLATE_MIB");
    assert_int_equal(wb_count(wb_read_idx(path)), SIZE);
    free(bytes), free(zipped);
}

static void bytes_behind_the_end_are_noticed(void **state) {
    (void)state;
    unsigned char bytes[64], zipped[256];
    const size_t size = small_file(bytes);
    bytes[size] = 9;
    write_file(bytes, size + 1);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "after its last element at offset 40");
    write_file(zipped, zip(bytes, size + 1, zipped, sizeof zipped));
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "offset 40 of the unzipped bytes");
    const size_t zipped_size = zip(bytes, size, zipped, sizeof zipped);
    zipped[zipped_size] = 0;
    write_file(zipped, zipped_size + 1);
    assert_null(wb_read_idx(path));
    char offset[64];
    (void)snprintf(offset, sizeof offset, "after the compressed stream, at offset %zu",
                   zipped_size);
    assert_error(WB_ERROR_FORMAT, offset);
}

static void what_is_no_idx_file_is_refused(void **state) {
    (void)state;
    write_file((const unsigned char *)"\x89PNG\r\n\x1a\n", 8);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "not an IDX file: it begins with 89 50 4e 47 at offset 0");
    write_file((const unsigned char *)"\0\0\x0a\x01\0\0\0\0", 8);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_UNSUPPORTED, "IDX type 0a");
    write_file((const unsigned char *)"\0\0\x08\x09\0\0\0\0", 8);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "9 dimensions");
    write_file(
        (const unsigned char *)"\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "more than the file can hold");
    write_file((const unsigned char *)"\0\0\x08\x01\x7f\xff\xff\xff", 8);
    assert_null(wb_read_idx(path));
    assert_error(WB_ERROR_FORMAT, "sizes (2147483647) (up to offset 8) are more than the file can");
    assert_null(wb_read_idx(folder));
    assert_error(WB_ERROR_IO, folder);
}

static void write_set(const char *name, const unsigned char *bytes, size_t size) {
    unsigned char zipped[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(zipped, zip(bytes, size, zipped, sizeof zipped));
}

static void fashion_mnist_is_read_from_weber_data(void **state) {
    (void)state;
    unsigned char bytes[64];
    const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 3},
                        wrong[] = {0, 0, 8, 1, 0, 0, 0, 1, 7};
    wb_array *x, *y;
    setenv("WEBER_DATA", folder, 1);
    write_set("t10k-images-idx3-ubyte.gz", bytes, small_file(bytes));
    write_set("t10k-labels-idx1-ubyte.gz", labels, sizeof labels);
    assert_int_equal(wb_fashion_mnist(WB_SPLIT_TEST, &x, &y), WB_OK);
    assert_small(x);
    assert_int_equal(wb_dtype_of(y), WB_I32);
    assert_true(wb_at(y, 0) == 7 && wb_at(y, 1) == 3);
    write_set("t10k-labels-idx1-ubyte.gz", wrong, sizeof wrong);
    assert_int_equal(wb_fashion_mnist(WB_SPLIT_TEST, &x, &y), WB_ERROR_FORMAT);
    assert_null(x);
    assert_error(WB_ERROR_FORMAT, "images (4, 3, 2) and labels (1)");
    unsetenv("WEBER_DATA");
    assert_string_equal(wb_fashion_mnist_class(9), "Ankle boot");
    assert_null(wb_fashion_mnist_class(10));
}

static void missing_data_name_the_package(void **state) {
    (void)state;
    wb_array *x, *y;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) == 0) skip();
    assert_int_equal(wb_fashion_mnist(WB_SPLIT_TRAIN, &x, &y), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "Debian package dataset-fashion-mnist");
}

static void the_installed_data_are_whole(void **state) {
    (void)state;
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0) skip();
    wb_array *x, *y;
    assert_int_equal(wb_fashion_mnist(WB_SPLIT_TEST, &x, &y), WB_OK);
    assert_int_equal(wb_numobs(x), 10000);
    const int32_t *labels = wb_read_begin(y);
    int counts[10] = {0};
    for (int i = 0; i < 10000; i++) counts[labels[i]]++;
    for (int c = 0; c < 10; c++) assert_int_equal(counts[c], 1000);
    wb_read_end(y);
}

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return 1;
    (void)snprintf(path, sizeof path, "%s/file.idx", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    const char *const names[] = {"file.idx", "t10k-images-idx3-ubyte.gz",
                                 "t10k-labels-idx1-ubyte.gz"};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sizes_come_fastest_first),
        TEST(numbers_of_several_bytes_are_turned_around),
        TEST(every_truncation_is_noticed),
        TEST(every_truncation_of_a_zipped_file_is_noticed),
        TEST(every_wrong_byte_of_a_zipped_file_is_noticed),
        TEST(members_of_gzip_are_one_stream),
        TEST(what_a_small_file_becomes_has_a_limit),
        TEST(bytes_behind_the_end_are_noticed),
        TEST(what_is_no_idx_file_is_refused),
        TEST(fashion_mnist_is_read_from_weber_data),
        TEST(missing_data_name_the_package),
        TEST(the_installed_data_are_whole),
    };
    return cmocka_run_group_tests_name("idx", tests, make_folder, remove_folder);
}
