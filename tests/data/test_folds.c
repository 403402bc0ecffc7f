/* src/data/folds.c and split.c: folds, splits, shuffles, filters. */
#include <weber/observations.h>

#include "support/support.h"

enum { MOST = 16 };

typedef struct list {
    int count;
    int64_t items[MOST];
} list;

static void assert_places(wb_array *x, const list *expected, const char *what) {
    int64_t given[64];
    assert_non_null(x);
    if (wb_count(x) != expected->count)
        fail_msg("%s: %lld places, %d expected", what, (long long)wb_count(x), expected->count);
    assert_int_equal(wb_dtype_of(x), WB_I64);
    assert_int_equal(wb_read(x, given, (size_t)expected->count * sizeof *given), WB_OK);
    for (int i = 0; i < expected->count; i++)
        if (given[i] != expected->items[i])
            fail_msg("%s: place %d is %lld, expected %lld", what, i, (long long)given[i],
                     (long long)expected->items[i]);
}

/* ---- folds ---- */

static const struct fold_row {
    const char *name;
    int64_t n;
    int k;
    list held[5];
} fold_rows[] = {
    {"J7: 15 in 5 folds hold 3 each",
     15,
     5,
     {{3, {0, 1, 2}}, {3, {3, 4, 5}}, {3, {6, 7, 8}}, {3, {9, 10, 11}}, {3, {12, 13, 14}}}},
    {"J7: 10 in 5 folds hold 2 each",
     10,
     5,
     {{2, {0, 1}}, {2, {2, 3}}, {2, {4, 5}}, {2, {6, 7}}, {2, {8, 9}}}},
    {"7 in 3 folds: the first is one longer", 7, 3, {{3, {0, 1, 2}}, {2, {3, 4}}, {2, {5, 6}}}},
    {"2 in 2 folds", 2, 2, {{1, {0}}, {1, {1}}}},
};

static void folds_are_blocks(void **state) {
    const struct fold_row *row = *state;
    wb_array *train[5], *held[5];
    assert_int_equal(wb_kfolds(row->n, row->k, train, held), WB_OK);
    for (int i = 0; i < row->k; i++) {
        list others = {0};
        assert_places(held[i], &row->held[i], row->name);
        for (int64_t p = 0, j = 0; p < row->n; p++) {
            if (j < row->held[i].count && row->held[i].items[j] == p)
                j++;
            else
                others.items[others.count++] = p;
        }
        assert_places(train[i], &others, row->name);
    }
}

static void stratified_folds(void **state) {
    (void)state;
    /* a b b a b b a b */
    wb_array *labels = wb_vector_of(WB_I32, 0, 1, 1, 0, 1, 1, 0, 1), *train[4], *held[4];
    assert_int_equal(wb_kfolds_stratified(labels, 2, train, held), WB_OK);
    assert_places(held[0], &(list){5, {0, 1, 2, 3, 4}}, "first");
    assert_places(held[1], &(list){3, {5, 6, 7}}, "second");
    assert_places(train[0], &(list){3, {5, 6, 7}}, "first train");
    assert_int_equal(wb_kfolds_stratified(labels, 4, train, held), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "label 0 has 3 observations, and 4 folds need at least");
}

static void folds_in_time(void **state) {
    (void)state;
    wb_array *train[3], *held[3];
    assert_int_equal(wb_timeseries_kfolds(11, 3, 0, 0, train, held), WB_OK);
    assert_places(train[0], &(list){5, {0, 1, 2, 3, 4}}, "first train");
    assert_places(held[0], &(list){2, {5, 6}}, "first");
    assert_places(train[2], &(list){9, {0, 1, 2, 3, 4, 5, 6, 7, 8}}, "last train");
    assert_places(held[2], &(list){2, {9, 10}}, "last");
    assert_int_equal(wb_timeseries_kfolds(11, 3, 1, 3, train, held), WB_OK);
    assert_places(train[1], &(list){3, {3, 4, 5}}, "with a gap, and 3 at most");
    assert_int_equal(wb_timeseries_kfolds(3, 3, 0, 0, train, held), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "timeseries_kfolds: k must be from 1 to 2");
}

static void leaving_some_out(void **state) {
    (void)state;
    wb_array *train[4], *held[4];
    assert_int_equal(wb_leavepout_folds(9, 2), 4);
    assert_int_equal(wb_leavepout(9, 2, train, held), WB_OK);
    assert_places(held[0], &(list){3, {0, 1, 2}}, "first");
    assert_places(held[3], &(list){2, {7, 8}}, "last");
    assert_int_equal(wb_leavepout_folds(9, 5), 0);
    assert_int_equal(wb_leavepout(9, 5, train, held), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "leavepout: p must be from 1 to 4");
    assert_int_equal(wb_kfolds(3, 4, train, held), WB_ERROR_ARGUMENT);
    assert_null(held[0]);
    assert_error(WB_ERROR_ARGUMENT, "kfolds: k must be from 2 to 3, the number of observations");
    assert_int_equal(wb_kfolds(3, 2, NULL, held), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "kfolds: a list of folds is NULL");
}

/* ---- splits ---- */

static const struct split_row {
    const char *name;
    int64_t n;
    double at[3];
    int64_t counts[3];
    int parts;
    int64_t sizes[4];
} split_rows[] = {
    {"5 at a half: 2 and 3", 5, {.5}, {0}, 2, {2, 3}},
    {"7 at a half: 4 and 3", 7, {.5}, {0}, 2, {4, 3}},
    {"10 at 0.15 and 0.25: 2, 2, 6", 10, {.15, .25}, {0}, 3, {2, 2, 6}},
    {"11 in thirds: 4, 4, 3", 11, {1. / 3, 1. / 3}, {0}, 3, {4, 4, 3}},
    {"numbers of observations", 10, {0}, {3, 5}, 3, {3, 5, 2}},
};

static void splits_have_these_sizes(void **state) {
    const struct split_row *row = *state;
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        wb_array *x = wb_iota(WB_F32, 1, 2, row->n), *y = wb_iota(WB_I32, 0, row->n);
        wb_array *both[] = {x, y}, *parts[4][2], *all[4];
        wb_split_desc desc = {.shuffle = shuffle != 0, .seed = 3};
        for (int i = 0; i < 3; i++) desc.at[i] = row->at[i], desc.counts[i] = row->counts[i];
        assert_int_equal(wb_splitobs_all_make(2, both, parts[0], desc), WB_OK);
        for (int p = 0; p < row->parts; p++) {
            assert_int_equal(wb_numobs(parts[p][0]), row->sizes[p]);
            wb_array *first = wb_reshape(wb_slice(parts[p][0], 0, 0, 1, 1), -1);
            assert_true(wb_approx(first, wb_cast(parts[p][1], WB_F32), 0, 0, NULL, 0));
            all[p] = parts[p][1];
        }
        wb_array *sorted = wb_sort(wb_concat_make(0, row->parts, all), 0, false);
        assert_true(wb_approx(sorted, y, 0, 0, NULL, 0));
    }
}

static void stratified_splits(void **state) {
    (void)state;
    wb_array *labels = wb_vector_of(WB_I32, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1);
    wb_array *x = wb_iota(WB_I64, 0, 10), *parts[2];
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {.5}, .stratified = labels), WB_OK);
    assert_places(parts[0], &(list){5, {0, 1, 4, 5, 6}}, "first half");
    assert_places(parts[1], &(list){5, {2, 3, 7, 8, 9}}, "second half");
}

static void wrong_splits_are_named(void **state) {
    (void)state;
    wb_array *x = wb_iota(WB_F32, 0, 10), *y = wb_iota(WB_F32, 0, 9), *both[] = {x, y}, *parts[8];
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {.7, .7}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "part 1 is 0.7, the sum up to it 1.4");
    assert_int_equal(wb_splitobs_all(1, &x, parts, .counts = {11}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "their sum at most 10; part 0 is 11");
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {.7}, .counts = {1}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "splitobs: .at or .counts can be given, not both");
    parts[0] = x;
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {0}), WB_ERROR_ARGUMENT);
    assert_null(parts[0]);
    assert_error(WB_ERROR_ARGUMENT, "splitobs: .at, fractions, or .counts, numbers of observations,"
                                    " must be given, above 0");
    assert_int_equal(wb_splitobs_all(1, &x, parts, .counts = {5, 0, 2}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT,
                 "parts must be positive, and their sum at most 10; part 1 is 0");
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {.7, NAN}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "part 1 is nan");
    assert_int_equal(wb_splitobs_all(2, both, parts, .at = {.7}), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "array 0 is (10), array 1 is (9)");
    assert_int_equal(wb_splitobs_all(1, &x, parts, .at = {.7}, .stratified = wb_zeros(WB_I32, 9)),
                     WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE,
                 "splitobs: stratified must have 10 labels, one for each observation, got 9");
    assert_int_equal(wb_splitobs_all(0, &x, parts, .at = {.7}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "at least one array is needed");
}

/* ---- order and choice ---- */

static void shuffles_keep_observations_together(void **state) {
    (void)state;
    wb_array *x = wb_iota(WB_F32, 1, 2, 20), *y = wb_iota(WB_F32, 0, 20), *both[] = {x, y};
    wb_array *mixed[2], *again[2];
    assert_int_equal(wb_shuffleobs(2, both, 5, mixed), WB_OK);
    assert_int_equal(wb_shuffleobs(2, both, 5, again), WB_OK);
    assert_same_bits(mixed[1], again[1], "the same seed");
    wb_array *first = wb_reshape(wb_slice(mixed[0], 0, 0, 1, 1), -1);
    assert_true(wb_approx(first, mixed[1], 0, 0, NULL, 0));
    assert_false(wb_approx(mixed[1], y, 0, 0, NULL, 0));
    assert_true(wb_approx(wb_sort(mixed[1], 0, false), y, 0, 0, NULL, 0));
}

static bool is_large(void *user, int64_t place, wb_array *observation) {
    (void)place;
    return wb_item(wb_sum(observation)) > *(double *)user;
}

static void filters_choose_observations(void **state) {
    (void)state;
    double limit = 4;
    wb_array *x = wb_matrix(4, {1, 2, 3, 0}, {1, 3, 3, 9});
    wb_array *kept = wb_filterobs(is_large, &limit, x);
    assert_int_equal(wb_numobs(kept), 3);
    assert_float_equal(wb_at(kept, 1, 2), 9, 0);
    limit = 100;
    assert_int_equal(wb_numobs(wb_filterobs(is_large, &limit, x)), 0);
    assert_null(wb_filterobs(NULL, NULL, x));
    assert_error(WB_ERROR_ARGUMENT, "filterobs: the function is NULL");
    assert_int_equal(wb_numobs(wb_joinobs(x, kept)), 7);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, fold_rows, folds_are_blocks);
    ADD_ROWS(&tests, split_rows, splits_have_these_sizes);
    const struct CMUnitTest others[] = {
        TEST(stratified_folds),           TEST(folds_in_time),
        TEST(leaving_some_out),           TEST(stratified_splits),
        TEST(wrong_splits_are_named),     TEST(shuffles_keep_observations_together),
        TEST(filters_choose_observations)};
    ADD_TESTS(&tests, others);
    return run_test_list("data/test_folds", &tests, NULL, NULL);
}
