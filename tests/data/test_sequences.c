/* src/data/sequences.c and images.c: windows, chunks, padding, scaling, crops, flips. */
#include <weber/observations.h>

#include "support/support.h"

static void windows_overlap(void **state) {
    (void)state;
    wb_array *x = wb_iota(WB_F32, 1, 2, 10), *w = wb_slidingwindow(x, 4, 3);
    assert_int_equal(wb_ndim(w), 3);
    assert_int_equal(wb_size(w, 1), 4);
    assert_int_equal(wb_size(w, 2), 3);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) assert_true(wb_at(w, 1, k, i) == 3 * i + k);
    assert_null(wb_slidingwindow(x, 11, 1));
    assert_error(WB_ERROR_ARGUMENT, "slidingwindow: the size must be from 1 to 10");
    assert_sizes(wb_slidingwindow(x, 4, INT64_MAX), 2, 4, 1);
    assert_null(wb_slidingwindow(x, 2, 0));
    assert_error(WB_ERROR_ARGUMENT, "the stride at least 1, got 2 and 0");
}

static const struct chunk_row {
    const char *name;
    int64_t size, n, count, sizes[4];
} chunk_rows[] = {
    {"J9: 10 in 3 chunks are 4, 4, 2", 10, 3, 3, {4, 4, 2}},
    {"9 in 4 chunks are 3", 9, 4, 3, {3, 3, 3}},
    {"5 in 4 chunks are 3", 5, 4, 3, {2, 2, 1}},
    {"nothing has no chunks", 0, 2, 0, {0}},
};

static void chunks_of_equal_size(void **state) {
    const struct chunk_row *row = *state;
    wb_array *chunks[4], *x = wb_iota(WB_F32, 0, row->size, 2);
    assert_int_equal(wb_chunk(x, row->n, 0, chunks), row->count);
    int64_t start = 0;
    for (int64_t i = 0; i < row->count; start += row->sizes[i++]) {
        assert_int_equal(wb_size(chunks[i], 0), row->sizes[i]);
        assert_float_equal(wb_at(chunks[i], 0, 1), (double)start, 0);
    }
}

static void chunks_of_given_sizes(void **state) {
    (void)state;
    wb_array *x = wb_iota(WB_F32, 0, 6), *chunks[3] = {x};
    assert_int_equal(wb_chunk_sizes(x, 3, (int64_t[]){1, 2, 3}, -1, chunks), WB_OK);
    assert_float_equal(wb_at(chunks[2], 0), 3, 0);
    int64_t large[] = {INT64_MAX, INT64_MAX, 2 + wb_size(x, 0)};
    assert_int_equal(wb_chunk_sizes(x, 3, large, 0, chunks), WB_ERROR_SHAPE);
    wb_clear_error();
    assert_int_equal(wb_chunk_sizes(x, 2, (int64_t[]){1, 2}, 0, chunks), WB_ERROR_SHAPE);
    assert_null(chunks[0]);
    assert_error(WB_ERROR_SHAPE, "their sum must be 6, dimension 0 of (6), got 3");
    assert_int_equal(wb_chunk(x, 0, 0, chunks), -1);
    assert_error(WB_ERROR_ARGUMENT, "chunk: n must be at least 1, got 0");
}

static void sequences_are_padded(void **state) {
    (void)state;
    wb_array *both[] = {wb_vector(1, 2, 3), wb_vector(4, 5)}, *batch = wb_batchseq(2, both, -1);
    assert_int_equal(wb_size(batch, 0), 3);
    assert_int_equal(wb_size(batch, 1), 2);
    assert_float_equal(wb_at(batch, 1, 1), 5, 0);
    assert_float_equal(wb_at(batch, 2, 1), -1, 0);
    wb_array *x = wb_zeros(WB_F32, 2, 3);
    assert_ptr_equal(wb_rpad(x, 3, 1, 1), x);
    assert_int_equal(wb_size(wb_rpad(x, 5, 1, 1), 1), 5);
    wb_array *wrong[] = {x, wb_zeros(WB_F32, 3, 3)};
    assert_null(wb_batchseq(2, wrong, 0));
    assert_error(WB_ERROR_SHAPE, "sequence 0 is f32 (2, 3), sequence 1 is f32 (3, 3)");
    assert_null(wb_batchseq(0, wrong, 0));
    assert_error(WB_ERROR_ARGUMENT, "at least one sequence is needed");
}

static void numbers_are_scaled(void **state) {
    (void)state;
    wb_array *x = wb_vector_of(WB_F64, 1, 2, 3, 4), *y = wb_standardise(x, -1, 0);
    assert_float_equal(wb_at(y, 0), -1.341628787, 1e-8);
    assert_float_equal(wb_at(y, 1), -.447209596, 1e-8);
    wb_array *z = wb_rescale(wb_vector_of(WB_F64, 2, 4, 6), 0, 0);
    assert_float_equal(wb_at(z, 0), 0, 0);
    assert_float_equal(wb_at(z, 1), .49999875, 1e-8);
    assert_float_equal(wb_at(z, 2), .9999975, 1e-8);
    wb_array *rows = wb_standardise(wb_cast(wb_matrix(2, {1, 3}, {5, 5}), WB_F64), 1, 1e-9);
    assert_float_equal(wb_at(rows, 0, 0), -1, 1e-6);
    assert_float_equal(wb_at(rows, 1, 0), 0, 1e-6);
}

/* Pixel (w, h, c, n) is w + 10 h + 100 c + 1000 n. */
static wb_array *images(void) {
    wb_array *x = wb_iota(WB_F32, 0, 5, 4, 2, 30);
    const double steps[] = {10, 100, 1000};
    for (int d = 1; d < 4; d++)
        x = wb_add(x, wb_mul_number(wb_iota(WB_F32, d, 5, 4, 2, 30), steps[d - 1]));
    return x;
}

static void crops_are_parts(void **state) {
    (void)state;
    wb_seed(1);
    wb_array *x = images(), *y = wb_random_crop(x, 3, 2, 0), *wide = wb_random_crop(x, 5, 4, 2);
    bool columns[3] = {false}, rows[3] = {false};
    for (int n = 0; n < 30; n++) {
        const int first = (int)wb_at(y, 0, 0, 0, n) - 1000 * n;
        const int column = first % 10, row = first / 10;
        columns[column] = rows[row] = true;
        for (int c = 0; c < 2; c++)
            for (int h = 0; h < 2; h++)
                for (int w = 0; w < 3; w++)
                    assert_true(wb_at(y, w, h, c, n) == first + w + 10 * h + 100 * c + 1000 * n);
    }
    for (int i = 0; i < 3; i++) assert_true(columns[i] && rows[i]);
    assert_int_equal(wb_size(wide, 0), 5);
    assert_true(wb_item(wb_sum(wide)) < wb_item(wb_sum(x)));
    assert_null(wb_random_crop(x, 2, 2, INT64_MAX / 2 + 1));
    assert_error(WB_ERROR_ARGUMENT, "must lie within images of");
    assert_null(wb_random_crop(x, 6, 4, 0));
    assert_error(WB_ERROR_ARGUMENT, "random_crop: (6, 4) must lie within images of (5, 4, 2, 30)");
}

static void flips_turn_some(void **state) {
    (void)state;
    wb_seed(1);
    wb_array *x = images(), *y = wb_random_flip(x, 0, 0.5);
    int flipped = 0;
    for (int n = 0; n < 30; n++) {
        const bool turned = wb_at(y, 0, 1, 1, n) != wb_at(x, 0, 1, 1, n);
        flipped += turned;
        for (int w = 0; w < 5; w++)
            assert_float_equal(wb_at(y, w, 3, 1, n), wb_at(x, turned ? 4 - w : w, 3, 1, n), 0);
    }
    assert_in_range(flipped, 5, 25);
    assert_same_bits(wb_random_flip(x, 1, 1), wb_flip(x, 1), "always");
    assert_null(wb_random_flip(x, 0, 2));
    assert_error(WB_ERROR_ARGUMENT, "random_flip: p must be from 0 to 1, got 2");
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, chunk_rows, chunks_of_equal_size);
    const struct CMUnitTest others[] = {TEST(windows_overlap),      TEST(chunks_of_given_sizes),
                                        TEST(sequences_are_padded), TEST(numbers_are_scaled),
                                        TEST(crops_are_parts),      TEST(flips_turn_some)};
    ADD_TESTS(&tests, others);
    return run_test_list("data/test_sequences", &tests, NULL, NULL);
}
