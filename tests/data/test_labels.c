/* src/data/labels.c: groups, samples, one-hot arrays of any values. */
#include <weber/observations.h>

#include "support/support.h"

/* a b b b b a c, and a b b b b a */
static wb_array *seven(void) { return wb_vector_of(WB_I32, 4, 7, 7, 7, 7, 4, 9); }
static wb_array *six(void) { return wb_vector_of(WB_I32, 4, 7, 7, 7, 7, 4); }

static void assert_places(wb_array *x, int64_t count, const int64_t *expected) {
    int64_t given[32];
    assert_non_null(x);
    assert_int_equal(wb_count(x), count);
    assert_int_equal(wb_read(x, given, (size_t)count * sizeof *given), WB_OK);
    for (int64_t i = 0; i < count; i++) assert_int_equal(given[i], expected[i]);
}

static void groups_by_label(void **state) {
    (void)state;
    wb_group groups[3];
    assert_int_equal(wb_groupobs(seven(), 3, groups), 3);
    const int64_t labels[] = {4, 7, 9}, counts[] = {2, 4, 1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(groups[i].label, labels[i]);
        assert_int_equal(groups[i].count, counts[i]);
    }
    assert_places(groups[0].places, 2, (int64_t[]){0, 5});
    assert_places(groups[1].places, 4, (int64_t[]){1, 2, 3, 4});
    assert_int_equal(wb_frequencies(seven(), 1, groups), 3);
    assert_int_equal(groups[0].count, 2);
    assert_null(groups[0].places);
    assert_int_equal(wb_frequencies(wb_vector(1, 2), 3, groups), -1);
    assert_error(WB_ERROR_DTYPE, "frequencies: labels must be integers, got f32");
    assert_int_equal(wb_frequencies(wb_zeros(WB_I32, 2, 2), 3, groups), -1);
    assert_error(WB_ERROR_SHAPE, "labels must have one dimension, got (2, 2)");
}

static void rare_labels_are_repeated(void **state) {
    (void)state;
    assert_places(wb_oversample(seven()), 12, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 0, 5, 6, 6, 6});
    assert_places(wb_oversample(seven(), .fraction = 0.5), 8, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 6});
    wb_array *mixed = wb_oversample(seven(), .shuffle = true, .seed = 2);
    wb_group groups[3];
    assert_int_equal(wb_groupobs(wb_gather(seven(), mixed, 0), 3, groups), 3);
    for (int i = 0; i < 3; i++) assert_int_equal(groups[i].count, 4);
    assert_null(wb_oversample(seven(), .fraction = 1.5));
    assert_error(WB_ERROR_ARGUMENT, "oversample: the fraction must be above 0 and at most 1");
}

static void frequent_labels_are_thinned(void **state) {
    (void)state;
    assert_places(wb_undersample(six()), 4, (int64_t[]){0, 1, 2, 5});
    wb_array *mixed = wb_undersample(six(), .shuffle = true, .seed = 2);
    wb_group groups[2];
    assert_int_equal(wb_groupobs(wb_gather(six(), mixed, 0), 2, groups), 2);
    for (int i = 0; i < 2; i++) assert_int_equal(groups[i].count, 2);
    assert_null(wb_undersample(six(), .fraction = 0.5));
    assert_error(WB_ERROR_ARGUMENT, "undersample: takes no .fraction");
}

static void one_hot_of_any_values(void **state) {
    (void)state;
    const int64_t values[] = {7, 4, -1}, other = -1, none = 3;
    wb_array *y = wb_onehot_of(seven(), 3, values, &other), *labels = wb_onecold(y);
    assert_int_equal(wb_size(y, 0), 3);
    assert_int_equal(wb_dtype_of(y), WB_BOOL);
    assert_places(labels, 7, (int64_t[]){1, 0, 0, 0, 0, 1, 2});
    assert_null(wb_onehot_of(seven(), 3, values, NULL));
    assert_error(WB_ERROR_ARGUMENT, "label 9 at place 6 is not among the 3 values");
    assert_null(wb_onehot_of(seven(), 3, values, &none));
    assert_error(WB_ERROR_ARGUMENT, "the other value 3 must be among the 3 values");
    assert_null(wb_onehot_of(seven(), 0, values, NULL));
    assert_error(WB_ERROR_ARGUMENT, "at least one value is needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(groups_by_label), TEST(rare_labels_are_repeated),
                                       TEST(frequent_labels_are_thinned),
                                       TEST(one_hot_of_any_values)};
    return cmocka_run_group_tests_name("data/test_labels", tests, NULL, NULL);
}
