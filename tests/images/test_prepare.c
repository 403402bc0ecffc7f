/* src/images/resize.c and prepare.c: properties, pictures by hand, mistakes. peers.py compares with
 * PIL and torchvision. */
#include <math.h>

#include <weber/gradient.h>
#include <weber/images.h>
#include <weber/ops.h>

#include "support/support.h"

int64_t wb_fail_allocation(int64_t n);

#define assert_close(value, wanted) assert_true(fabs((value) - (wanted)) < 1e-6)

static wb_array *picture_of(int64_t width, int64_t height, int64_t channels) {
    const int64_t sizes[] = {width, height, channels};
    uint8_t values[4096];
    for (int64_t i = 0; i < width * height * channels; i++) values[i] = (uint8_t)(i * i * 31 + i);
    return wb_from_make(WB_U8, values, 3, sizes);
}

static void assert_bytes(wb_array *x, int64_t count, const uint8_t *wanted) {
    uint8_t found[64];
    assert_int_equal(wb_count(x), count);
    assert_int_equal(wb_read(x, found, (size_t)count), WB_OK);
    for (int64_t i = 0; i < count; i++) assert_int_equal(found[i], wanted[i]);
}

static void halves_are_weighted_means(void **state) {
    (void)state;
    const uint8_t values[] = {0, 100, 200, 40}, wide[] = {0, 25, 75, 125, 175, 160, 80, 40};
    wb_array *x = wb_from(WB_U8, values, 4, 1, 1);
    assert_bytes(wb_image_resize(x, 8, 1), 8, wide);
    assert_bytes(wb_image_resize(x, 4, 3), 12,
                 (const uint8_t[]){0, 100, 200, 40, 0, 100, 200, 40, 0, 100, 200, 40});
    /* to two: triangles of 2 on each side, 3 + 3 + 1 of the pixels within */
    assert_bytes(wb_image_resize(x, 2, 1), 2, (const uint8_t[]){71, 117});
    assert_bytes(wb_image_resize(x, 4, 1), 4, values);
}

/* Of PIL, for which rounding heights first would give 94, 117, 182 and 127. */
static void widths_are_rounded_before_heights(void **state) {
    (void)state;
    static const uint8_t cubic[] = {66, 129, 95, 118, 173, 181, 121, 140, 124, 126, 137, 160},
                         linear[] = {73, 127, 100, 118, 165, 170, 128, 136, 127, 131, 130, 160};
    uint8_t values[9 * 7];
    for (int i = 0; i < 9 * 7; i++) {
        const int x = i % 9, y = i / 9;
        values[i] = (uint8_t)(x * x * 37 + y * y * y * 11 + x * y * 53);
    }
    wb_array *x = wb_from(WB_U8, values, 9, 7, 1);
    assert_bytes(wb_image_resize(x, 4, 3, WB_IMAGE_BICUBIC), 12, cubic);
    assert_bytes(wb_image_resize(x, 4, 3), 12, linear);
}

/* As Python's round does: 0.5 to 0, 1.5 to 2. */
static void halves_of_the_middle_become_even(void **state) {
    (void)state;
    const uint8_t values[] = {0, 1, 2, 3, 4};
    wb_array *three = wb_from(WB_U8, values, 3, 1), *five = wb_from(WB_U8, values, 5, 1);
    assert_bytes(wb_image_crop(three, 2, 1), 2, (const uint8_t[]){0, 1});
    assert_bytes(wb_image_crop(five, 2, 1), 2, (const uint8_t[]){2, 3});
}

static void constant_pictures_stay_constant(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 30};
    for (int i = 0; i < 25; i++)
        for (int filter = 0; filter < 2; filter++) {
            wb_array *x = wb_full(WB_U8, 217, 5, 6, 2);
            wb_array *y = wb_image_resize(x, sizes[i % 5], sizes[i / 5], filter);
            assert_true(wb_item(wb_all(wb_eq(y, wb_number(217)))) == 1);
            y = wb_image_resize(wb_full(WB_F32, 0.3, 5, 6, 2, 3), sizes[i % 5], sizes[i / 5],
                                filter);
            assert_int_equal(wb_ndim(y), 4);
            assert_true(wb_item(wb_all(wb_lt(wb_abs(wb_sub_number(y, 0.3)), wb_number(1e-6)))) ==
                        1);
        }
}

static void numbers_are_near_to_bytes(void **state) {
    (void)state;
    /* from 64 to 191: bytes are cut off at 0 and 255 after each direction */
    wb_array *numbers = wb_floor(wb_div_number(wb_cast(picture_of(13, 9, 3), WB_F32), 2));
    numbers = wb_add_number(numbers, 64);
    wb_array *x = wb_cast(numbers, WB_U8);
    for (int filter = 0; filter < 2; filter++)
        for (int64_t width = 1; width < 30; width += 7) {
            wb_array *y = wb_image_resize(x, width, 17, filter);
            wb_array *z = wb_image_resize(numbers, width, 17, filter);
            z = wb_abs(wb_sub(z, wb_cast(y, WB_F32)));
            assert_true(wb_item(wb_all(wb_lt(z, wb_number(filter ? 1.7 : 1.1)))) == 1);
        }
}

static wb_array *sum_of_resized(void *context, int count, wb_array *const *x) {
    (void)context, (void)count;
    wb_array *y = wb_image_resize(x[0], 3, 7, .filter = WB_IMAGE_BICUBIC);
    return wb_sum(wb_mul(y, wb_cast(wb_iota(WB_I32, 0, 3, 7, 2), WB_F64)));
}

static void numbers_have_a_gradient(void **state) {
    (void)state;
    if (wb_dtype_of(wb_ones(WB_F64, 1)) != WB_F64) skip();
    wb_array *x = wb_cast(picture_of(5, 4, 2), WB_F64);
    assert_int_equal(wb_gradient_check(sum_of_resized, NULL, 1, &x, 1, 1e-6), WB_OK);
}

static void the_middle_is_cut_out_or_has_zeros_around_it(void **state) {
    (void)state;
    wb_array *x = wb_iota(WB_I32, 0, 5, 2);
    wb_array *y = wb_image_crop(x, 2, 1); /* (5 - 2) / 2 is 1.5, to even 2; (2 - 1) / 2 to 0 */
    assert_true(wb_at(y, 0, 0) == 2 && wb_at(y, 1, 0) == 3);
    y = wb_image_crop(wb_add_number(x, 1), 8, 2); /* 3 more: 1 in front */
    assert_true(wb_at(y, 0, 0) == 0 && wb_at(y, 1, 0) == 1 && wb_at(y, 5, 1) == 5);
    assert_true(wb_at(y, 6, 0) == 0 && wb_at(y, 7, 1) == 0);
}

static void a_prepared_picture_is_normalised(void **state) {
    (void)state;
    wb_array *x = wb_full(WB_U8, 51, 300, 200, 3), *y = wb_image_prepare(x);
    assert_true(wb_size(y, 0) == 224 && wb_size(y, 1) == 224 && wb_size(y, 2) == 3);
    assert_close(wb_at(y, 10, 20, 0), (0.2 - 0.485) / 0.229);
    assert_close(wb_at(y, 223, 0, 2), (0.2 - 0.406) / 0.225);
    y = wb_image_prepare(x, .resize = 100, .crop = 0, .mean = {0}, .std = {1, 1, 1});
    assert_true(wb_size(y, 0) == 150 && wb_size(y, 1) == 100);
    assert_close(wb_at(y, 149, 99, 1), 0.2);
    y = wb_image_prepare(x, .resize = 0, .crop = 302, .mean = {0.5, 0.5, 0.5}, .std = {1, 1, 1});
    assert_close(wb_at(y, 0, 100, 0), -0.5); /* outside is black */
    assert_close(wb_at(y, 1, 100, 0), -0.3);
    assert_close(wb_at(y, 1, 50, 0), -0.5);
    y = wb_image_prepare(wb_full(WB_U8, 255, 3, 4, 1), .resize = 0, .crop = 0);
    assert_close(wb_at(y, 2, 3, 0), (1 - 0.485) / 0.229);
}

static void flips_exchange_left_and_right(void **state) {
    (void)state;
    wb_array *x = picture_of(7, 5, 3);
    wb_array *y = wb_image_prepare(x, .resize = 10, .crop = 9);
    wb_array *z = wb_image_prepare(x, .resize = 10, .crop = 9, .flip = 1);
    assert_true(wb_item(wb_all(wb_eq(wb_flip(y, 0), z))) == 1);
    wb_seed(5);
    int count = 0;
    for (int i = 0; i < 200; i++) {
        wb_array *u = wb_image_prepare(x, .resize = 10, .crop = 9, .flip = 0.25);
        const bool is_flipped = wb_item(wb_all(wb_eq(u, z))) == 1;
        assert_true(is_flipped || wb_item(wb_all(wb_eq(u, y))) == 1);
        count += is_flipped;
    }
    assert_true(count > 25 && count < 80);
}

/* A ramp: its slope says how wide the part was, its middle where. */
static void random_crops_are_parts_of_the_picture(void **state) {
    (void)state;
    uint8_t ramp[200 * 150];
    for (int i = 0; i < 200 * 150; i++) ramp[i] = (uint8_t)(i % 200);
    wb_array *x = wb_from(WB_U8, ramp, 200, 150, 1);
    double least = 200, most = 0, sum = 0;
    wb_seed(1);
    for (int i = 0; i < 300; i++) {
        wb_array *y = wb_image_prepare(x, .crop = 20, .random_crop = true, .mean = {0}, .std = {1});
        assert_true(wb_size(y, 0) == 20 && wb_size(y, 1) == 20);
        const double left = wb_at(y, 2, 10, 0) * 255, right = wb_at(y, 17, 10, 0) * 255;
        const double width = (right - left) / 15 * 20;
        least = width < least ? width : least, most = width > most ? width : most;
        sum += (left + right) / 2;
        assert_true(left >= 0 && right < 200 && width < 205);
    }
    /* of 8% to 100% of the area: sqrt(0.08 * 30000 * 3 / 4) = 42, up to all 200 */
    assert_true(least > 35 && least < 70 && most > 165);
    assert_true(fabs(sum / 300 - 100) < 6);
    wb_array *thin = wb_image_prepare(wb_zeros(WB_U8, 10000, 1, 3), .random_crop = true);
    assert_int_equal(wb_size(thin, 1), 224);
}

static void random_numbers_are_those_of_the_thread(void **state) {
    (void)state;
    wb_array *x = picture_of(30, 20, 3), *y[3];
    for (int i = 0; i < 3; i++) {
        if (i < 2) wb_seed(9);
        y[i] = wb_image_prepare(x, .crop = 8, .random_crop = true, .flip = 0.5);
    }
    assert_true(wb_item(wb_all(wb_eq(y[0], y[1]))) == 1);
    assert_true(wb_item(wb_all(wb_eq(y[0], y[2]))) == 0);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *x = picture_of(8, 8, 3);
    assert_null(wb_image_resize(x, 0, 4));
    assert_error(WB_ERROR_ARGUMENT, "width and height must be from 1 to 1048576, got (0, 4)");
    assert_null(wb_image_resize(x, 4, 4, 7));
    assert_error(WB_ERROR_ARGUMENT, "filter must be a wb_image_filter, got 7");
    assert_null(wb_image_resize(wb_zeros(WB_I32, 3, 3), 4, 4));
    assert_error(WB_ERROR_DTYPE, "x must be u8 or floating, got i32");
    assert_null(wb_image_resize(wb_zeros(WB_U8, 3), 4, 4));
    assert_error(WB_ERROR_SHAPE, "x must be (width, height, ...), with pixels, got (3)");
    assert_null(wb_image_crop(x, 3, -1));
    assert_error(WB_ERROR_ARGUMENT, "image_crop: width and height must be from 1");
    assert_null(wb_image_prepare(wb_zeros(WB_F32, 3, 3, 3)));
    assert_error(WB_ERROR_DTYPE, "x must be u8 (width, height, channels)");
    assert_null(wb_image_prepare(wb_zeros(WB_U8, 3, 3, 5)));
    assert_error(WB_ERROR_SHAPE, "with at most 4 channels");
    assert_null(wb_image_prepare(wb_zeros(WB_U8, 3, 3, 4)));
    assert_error(WB_ERROR_ARGUMENT, "std of channel 3 must be above 0, got 0");
    assert_null(wb_image_prepare(x, .crop = 0, .random_crop = true));
    assert_error(WB_ERROR_ARGUMENT, "random_crop needs .crop");
    assert_null(wb_image_prepare(x, .resize = -1));
    assert_error(WB_ERROR_ARGUMENT, "resize and crop must be from 0 to 1048576, got -1 and 224");
    assert_null(wb_image_prepare(x, .flip = 1.5));
    assert_error(WB_ERROR_ARGUMENT, "flip must be from 0 to 1, got 1.5");
    assert_null(wb_image_prepare(wb_zeros(WB_U8, 5000, 1, 3)));
    assert_error(WB_ERROR_SHAPE, "would become (1280000, 256)");
    assert_null(wb_image_prepare(NULL));
    assert_error(WB_ERROR_ARGUMENT, "x is NULL");
}

static void without_memory_nothing_is_left(void **state) {
    (void)state;
    wb_array *x = picture_of(9, 8, 3), *f = wb_cast(x, WB_F32);
    assert_int_equal(wb_eval(f), WB_OK);
    for (int i = 0; i < 3; i++) {
        bool is_made = false;
        for (int64_t n = 1; !is_made; n++) {
            (void)wb_fail_allocation(n);
            wb_array *y = i == 0   ? wb_image_prepare(x, .resize = 6, .crop = 5)
                          : i == 1 ? wb_image_prepare(x, .crop = 5, .random_crop = true)
                                   : wb_image_resize(f, 4, 4);
            (void)wb_fail_allocation(0);
            is_made = y != NULL;
            assert_true(is_made || wb_error_status() == WB_ERROR_MEMORY);
            wb_clear_error();
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(halves_are_weighted_means),
        TEST(widths_are_rounded_before_heights),
        TEST(halves_of_the_middle_become_even),
        TEST(constant_pictures_stay_constant),
        TEST(numbers_are_near_to_bytes),
        TEST(numbers_have_a_gradient),
        TEST(the_middle_is_cut_out_or_has_zeros_around_it),
        TEST(a_prepared_picture_is_normalised),
        TEST(flips_exchange_left_and_right),
        TEST(random_crops_are_parts_of_the_picture),
        TEST(random_numbers_are_those_of_the_thread),
        TEST(mistakes_are_named),
        TEST(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests_name("images/test_prepare", tests, NULL, NULL);
}
