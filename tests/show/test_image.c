/* src/show/image.c: what is written is read again by the rules of the format. */
#include <sys/stat.h>
#include <zlib.h>

#include "support/files.h"
#include "support/support.h"

static uint32_t get32(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

typedef struct picture {
    uint32_t width, height;
    int channels;
    unsigned char rows[1 << 18]; /* each with its filter */
    uLongf size;
} picture;

static picture read_png(const char *path) {
    static unsigned char bytes[1 << 18], packed[1 << 18];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    assert_true(size < sizeof bytes && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0);
    picture p = {.size = sizeof p.rows};
    uLong length = 0;
    for (size_t at = 8; at < size; at += 12 + get32(bytes + at)) {
        const uint32_t n = get32(bytes + at);
        const unsigned char *name = bytes + at + 4, *data = name + 4;
        assert_int_equal(get32(data + n), crc32(0, name, n + 4));
        if (memcmp(name, "IHDR", 4) == 0) {
            p.width = get32(data), p.height = get32(data + 4);
            assert_int_equal(data[8], 8);
            p.channels = data[9] == 2 ? 3 : 1;
            assert_true(data[9] == 0 || data[9] == 2);
            assert_true(data[10] == 0 && data[11] == 0 && data[12] == 0);
        } else if (memcmp(name, "IDAT", 4) == 0) {
            memcpy(packed + length, data, n), length += n;
        } else {
            assert_true(memcmp(name, "IEND", 4) == 0 && n == 0 && at + 12 == size);
        }
    }
    assert_int_equal(uncompress(p.rows, &p.size, packed, length), Z_OK);
    assert_int_equal(p.size, p.height * (1 + p.width * (uint32_t)p.channels));
    return p;
}

static void assert_pixels(const char *path, uint32_t width, uint32_t height, int channels,
                          const unsigned char *wanted) {
    const picture p = read_png(path);
    assert_int_equal(p.width, width);
    assert_int_equal(p.height, height);
    assert_int_equal(p.channels, channels);
    const uint32_t row = width * (uint32_t)channels;
    for (uint32_t h = 0; h < height; h++) {
        assert_int_equal(p.rows[h * (row + 1)], 0);
        assert_memory_equal(p.rows + h * (row + 1) + 1, wanted + h * row, row);
    }
}

static void grey_and_rgb_are_written_row_by_row(void **state) {
    (void)state;
    const char *path = path_of("image.png");
    const uint8_t grey[] = {0, 1, 2, 253, 254, 255};
    assert_int_equal(wb_image_write(path, wb_from(WB_U8, grey, 3, 2)), WB_OK);
    assert_pixels(path, 3, 2, 1, grey);
    assert_int_equal(wb_image_write(path, wb_from(WB_U8, grey, 2, 3, 1)), WB_OK);
    assert_pixels(path, 2, 3, 1, grey);
    const uint8_t planes[] = {1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24};
    const unsigned char pixels[] = {1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24};
    assert_int_equal(wb_image_write(path, wb_from(WB_U8, planes, 2, 2, 3)), WB_OK);
    assert_pixels(path, 2, 2, 3, pixels);
    wb_array *view = wb_transpose(wb_from(WB_U8, grey, 3, 2));
    assert_int_equal(wb_image_write(path, view), WB_OK);
    assert_pixels(path, 2, 3, 1, (const unsigned char[]){0, 253, 1, 254, 2, 255});
}

static void numbers_become_bytes(void **state) {
    (void)state;
    const char *path = path_of("image.png");
    wb_array *x = wb_reshape(wb_vector(-1, 0, 0.5, 1, 2, 0.1, INFINITY, -INFINITY), 8, 1);
    const unsigned char wanted[] = {0, 0, 128, 255, 255, 26, 255, 0};
    assert_int_equal(wb_image_write(path, x), WB_OK);
    assert_pixels(path, 8, 1, 1, wanted);
    assert_int_equal(wb_image_write(path, wb_gt(x, wb_number(0.5))), WB_OK);
    assert_pixels(path, 8, 1, 1, (const unsigned char[]){0, 0, 0, 255, 255, 0, 255, 0});
}

static void large_images_come_in_pieces(void **state) {
    (void)state;
    const char *path = path_of("image.png");
    wb_array *x = wb_cast(wb_mul_number(wb_uniform(WB_F32, 301, 199, 3), 255), WB_U8);
    assert_int_equal(wb_image_write(path, x), WB_OK);
    const picture p = read_png(path);
    for (int64_t i = 0; i < 301; i += 20)
        for (int64_t j = 0; j < 199; j += 11)
            for (int64_t c = 0; c < 3; c++)
                assert_int_equal(p.rows[j * (301 * 3 + 1) + 1 + i * 3 + c], wb_at(x, i, j, c));
}

static void what_is_no_image_leaves_the_file(void **state) {
    (void)state;
    const char *path = path_of("image.png");
    assert_int_equal(wb_image_write(path, wb_ones(WB_F32, 1, 1)), WB_OK);
    assert_int_equal(wb_image_write(path, wb_ones(WB_F32, 2, 2, 2)), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "image.png: an image must be (W, H), (W, H, 1) or (W, H, 3), with "
                                 "pixels, got (2, 2, 2)");
    assert_int_equal(wb_image_write(path, wb_ones(WB_F32, 2, 0)), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "got (2, 0)");
    assert_int_equal(wb_image_write(path, wb_ones(WB_F32, 5)), WB_ERROR_SHAPE);
    wb_clear_error();
    assert_int_equal(wb_image_write(path, wb_ones(WB_I32, 2, 2)), WB_ERROR_DTYPE);
    assert_error(WB_ERROR_DTYPE, "an image must be u8, bool or floating, got i32");
    wb_array *bad = wb_reshape(wb_vector(0, 0, 0, NAN, 0, 0), 3, 2);
    assert_int_equal(wb_image_write(path, bad), WB_ERROR_NUMBER);
    assert_error(WB_ERROR_NUMBER, "pixel (0, 1) of (3, 2) is NaN");
    assert_pixels(path, 1, 1, 1, (const unsigned char[]){255});
    assert_int_equal(wb_image_write(path_of("nowhere/image.png"), wb_ones(WB_F32, 1, 1)),
                     WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "nowhere/image.png: cannot be made: No such file or directory");
    assert_int_equal(wb_image_write(path_of("image.jpg"), wb_ones(WB_F32, 1, 1)),
                     WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "image_write: the file is a PNG, so its name must end in .png");
    assert_int_equal(wb_image_write(path_of("IMAGE.PNG"), wb_ones(WB_F32, 1, 1)), WB_OK);
    assert_int_equal(wb_image_write(path_of("image"), wb_ones(WB_F32, 1, 1)), WB_OK);
    assert_int_equal(mkfifo(path_of("pipe.png"), 0600), 0);
    assert_int_equal(wb_image_write(path_of("pipe.png"), wb_ones(WB_F32, 1, 1)), WB_ERROR_IO);
    assert_error(WB_ERROR_IO, "pipe.png: cannot be made: it must be a regular file, got a pipe");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(grey_and_rgb_are_written_row_by_row),
        TEST(numbers_become_bytes),
        TEST(large_images_come_in_pieces),
        TEST(what_is_no_image_leaves_the_file),
    };
    return cmocka_run_group_tests_name("show/test_image", tests, make_folder, drop_folder);
}
