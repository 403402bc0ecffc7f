/* src/layers/position_embedding.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void each_position_has_a_column(void **state) {
    (void)state;
    wb_layer *p = wb_position_embedding(.given_weight = wb_matrix(3, {1, 2, 3}, {4, 5, 6}));
    wb_array *x = wb_zeros(WB_F32, 2, 2, 2);
    assert_values(wb_apply(p, x), 0, 1, 4, 2, 5, 1, 4, 2, 5);
    assert_values(wb_apply(p, wb_ones(WB_F32, 2, 3)), 0, 2, 5, 3, 6, 4, 7);
    assert_structure(p, "PositionEmbedding(3 => 2)");
    wb_free(p);
}

static void it_begins_small(void **state) {
    (void)state;
    wb_seed(1);
    wb_layer *p = wb_position_embedding(400, 100);
    wb_array *w = wb_get(p, "weight");
    assert_sizes(w, 100, 400);
    assert_values(wb_std(w, false), 5e-4, 0.02);
    wb_free(p);
    p = wb_position_embedding(4, 3, .init = wb_ones_init, .dtype = WB_F64);
    assert_int_equal(wb_dtype_of(wb_get(p, "weight")), WB_F64);
    assert_values(wb_sum(wb_get(p, "weight")), 0, 12);
    wb_free(p);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(each_position_has_a_column),
        TEST(it_begins_small),
    };
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_position_embedding", &tests, make_folder, drop_folder);
}
