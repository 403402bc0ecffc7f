/* Rule 16: ties and kinks have one table. */
#include "values/modes.h"

typedef struct row {
    const char *name;
    wb_array *(*fn)(wb_array *x, wb_array *y);
    double x[4], y[4];   /* arguments */
    double dx[4], dy[4]; /* gradients of the sum; dy NAN: y is not looked at */
} row;

static wb_array *relu(wb_array *x, wb_array *y) { return (void)y, wb_relu(x); }
static wb_array *absolute(wb_array *x, wb_array *y) { return (void)y, wb_abs(x); }
static wb_array *relu6(wb_array *x, wb_array *y) { return (void)y, wb_relu6(x); }
static wb_array *sign(wb_array *x, wb_array *y) { return (void)y, wb_mul(x, wb_sign(x)); }
static wb_array *larger(wb_array *x, wb_array *y) { return wb_max(x, y); }
static wb_array *smaller(wb_array *x, wb_array *y) { return wb_min(x, y); }
static wb_array *larger_turned(wb_array *x, wb_array *y) { return wb_max(y, x); }
static wb_array *with_itself(wb_array *x, wb_array *y) { return (void)y, wb_max(x, x); }
static wb_array *maximum(wb_array *x, wb_array *y) { return (void)y, wb_maximum(x); }
static wb_array *minimum(wb_array *x, wb_array *y) { return (void)y, wb_minimum(x); }
static wb_array *maximum_of_pairs(wb_array *x, wb_array *y) {
    return (void)y, wb_maximum_dims(wb_reshape(x, 2, 2), 0);
}
static wb_array *pooled(wb_array *x, wb_array *y) {
    return (void)y, wb_maxpool_op(wb_reshape(x, 2, 2, 1, 1), .kernel = {2, 2});
}
static wb_array *pooled_turned(wb_array *x, wb_array *y) { /* first in memory of what is pooled */
    return (void)y, wb_maxpool_op(wb_reshape(wb_flip(x, 0), 2, 2, 1, 1), .kernel = {2, 2});
}
static wb_array *pooled_overlapping(wb_array *x, wb_array *y) {
    return (void)y, wb_maxpool_op(wb_reshape(x, 4, 1, 1), .kernel = {2}, .stride = {1});
}
static wb_array *pooled_with_padding(wb_array *x, wb_array *y) {
    return (void)y, wb_maxpool_op(wb_reshape(x, 4, 1, 1), .kernel = {2}, .pad = {1});
}

#define NO                                                                                         \
    { NAN }
static const row rows[] = {
    {"the slope of relu at 0 is 0", relu, {-1, 0, -0.0, 2}, {0}, {0, 0, 0, 1}, NO},
    {"the slope of relu6 at 0 and at 6 is 0", relu6, {0, 6, 3, 7}, {0}, {0, 0, 1, 0}, NO},
    {"the slope of |x| at 0 is 0", absolute, {-1, 0, -0.0, 2}, {0}, {-1, 0, 0, 1}, NO},
    {"the slope of sign is 0", sign, {-1, 0, 3, 2}, {0}, {-1, 0, 1, 1}, NO},
    {"of two equal arguments of max the first",
     larger,
     {1, 2, 3, 0},
     {1, 3, 3, -0.0},
     {1, 0, 1, 1},
     {0, 1, 0, 0}},
    {"of two equal arguments of min the first",
     smaller,
     {1, 2, 3, 0},
     {1, 3, 3, 5},
     {1, 1, 1, 1},
     {0, 0, 0, 0}},
    {"whichever stands first",
     larger_turned,
     {1, 2, 3, 0},
     {1, 3, 3, 5},
     {0, 0, 0, 0},
     {1, 1, 1, 1}},
    {"max(x, x) has slope 1", with_itself, {1, 2, 3, 0}, {0}, {1, 1, 1, 1}, NO},
    {"a maximum is shared among equals", maximum, {1, 3, 3, 0}, {0}, {0, 0.5, 0.5, 0}, NO},
    {"a maximum of equals is shared by all",
     maximum,
     {2, 2, 2, 2},
     {0},
     {0.25, 0.25, 0.25, 0.25},
     NO},
    {"a minimum is shared among equals",
     minimum,
     {0, 3, 0, 0},
     {0},
     {1.0 / 3, 0, 1.0 / 3, 1.0 / 3},
     NO},
    {"along a dimension, each by itself",
     maximum_of_pairs,
     {5, 5, 1, 2},
     {0},
     {0.5, 0.5, 0, 1},
     NO},
    {"of a window the first in memory", pooled, {1, 3, 3, 3}, {0}, {0, 1, 0, 0}, NO},
    {"of an even window the first", pooled, {7, 7, 7, 7}, {0}, {1, 0, 0, 0}, NO},
    {"of a reversed window the first there", pooled_turned, {7, 7, 7, 7}, {0}, {0, 0, 0, 1}, NO},
    {"of overlapping windows each the first",
     pooled_overlapping,
     {4, 4, 4, 4},
     {0},
     {1, 1, 1, 0},
     NO},
    {"padding never wins", pooled_with_padding, {-4, -4, -4, -4}, {0}, {1, 1, 0, 1}, NO},
};

static void the_gradient_is_that_of_the_table(void **state) {
    const row *r = *state;
    const wb_dtype types[] = {WB_F64, WB_F32, WB_F16};
    for (int t = 0; t < 3; t++) {
        const int64_t four = 4;
        wb_array *arrays[2] = {array_of(types[t], r->x, 1, &four),
                               array_of(types[t], r->y, 1, &four)};
        wb_array *g[2], *l = wb_sum(r->fn(arrays[0], arrays[1]));
        const bool both = !isnan(r->dy[0]);
        assert_int_equal(wb_gradient_of(l, both ? 2 : 1, arrays, g), WB_OK);
        assert_numbers(g[0], 4, r->dx, types[t] == WB_F16 ? 1e-3 : 1e-7);
        if (both) assert_numbers(g[1], 4, r->dy, 1e-7);
    }
}

/* A window of 2 x 2 in a larger image: first in memory order, dimension 0 fastest. */
static void pooling_planes_break_ties_alike(void **state) {
    (void)state;
    for (int64_t width = 2; width <= 34; width += 4) {
        wb_array *x = wb_full(WB_F32, 3, width, 6, 2, 3), *g[1];
        wb_array *l = wb_sum(wb_maxpool_op(x, .kernel = {2, 2}));
        assert_int_equal(wb_gradient_of(l, 1, &x, g), WB_OK);
        wb_array *even_0 =
            wb_eq(wb_mod(wb_iota(WB_F32, 0, width, 6, 2, 3), wb_number(2)), wb_number(0));
        wb_array *even_1 =
            wb_eq(wb_mod(wb_iota(WB_F32, 1, width, 6, 2, 3), wb_number(2)), wb_number(0));
        char where[128] = "";
        if (!wb_approx(g[0], wb_cast(wb_and(even_0, even_1), WB_F32), 0, 0, where, sizeof where))
            fail_msg("width %lld: %s", (long long)width, where);
    }
}

static void the_first_largest_has_the_position(void **state) {
    (void)state;
    assert_values(wb_argmax(wb_vector(1, 3, 3, 2), 0), 0, 1);
    assert_values(wb_argmax(wb_vector(5, 5, 5), 0), 0, 0);
    assert_values(wb_argmax(wb_vector(5, NAN, NAN), 0), 0, 1);
    assert_values(wb_onecold(wb_reshape(wb_vector(1, 1, 0, 0, 2, 2), 3, 2)), 0, 0, 1);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(pooling_planes_break_ties_alike),
        TEST(the_first_largest_has_the_position),
    };
    ADD_ROWS(&tests, rows, the_gradient_is_that_of_the_table);
    ADD_TESTS(&tests, others);
    return run_test_list("values 16", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
