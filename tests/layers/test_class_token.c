/* src/layers/class_token.c */
#include "models/flux_structs.h"
#include "support/support.h"

static void a_token_comes_first(void **state) {
    (void)state;
    wb_layer *t = wb_class_token(.given_token = wb_vector(7, 8));
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6, 7, 8), 2, 2, 2);
    assert_values(wb_apply(t, x), 0, 7, 8, 1, 2, 3, 4, 7, 8, 5, 6, 7, 8);
    assert_values(wb_apply(t, wb_ones(WB_F32, 2, 1)), 0, 7, 8, 1, 1);
    assert_sizes(wb_apply(t, wb_zeros(WB_F32, 2, 0, 3)), 2, 1, 3);
    assert_structure(t, "ClassToken(2)");
    wb_free(t);
}

static void it_begins_small(void **state) {
    (void)state;
    wb_seed(1);
    wb_layer *t = wb_class_token(40000, .dtype = WB_F64);
    assert_values(wb_std(wb_get(t, "token"), false), 5e-4, 0.02);
    assert_int_equal(wb_dtype_of(wb_get(t, "token")), WB_F64);
    wb_free(t);
}

static void the_first_token_is_taken(void **state) {
    (void)state;
    wb_layer *f = wb_first_token();
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6, 7, 8), 2, 2, 2);
    wb_array *y = wb_apply(f, x);
    assert_sizes(y, 2, 2);
    assert_values(y, 0, 1, 2, 5, 6);
    assert_sizes(wb_apply(f, wb_ones(WB_F32, 3, 4)), 3);
    wb_free(f);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {TEST(a_token_comes_first), TEST(it_begins_small),
                                        TEST(the_first_token_is_taken)};
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_class_token", &tests, make_folder, drop_folder);
}
