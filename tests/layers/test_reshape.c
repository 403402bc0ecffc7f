/* src/layers/reshape.c */

#include "models/flux_structs.h"
#include "support/support.h"

static void observations_get_other_sizes(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_reshape_layer({2, 3, 2}), wb_flatten());
    wb_array *x = wb_normal(WB_F32, 4, 3, 5);
    assert_sizes(wb_apply(wb_get_layer(model, "layers.1"), x), 2, 3, 2, 5);
    assert_same_bits(wb_apply(model, x), wb_reshape(x, 12, 5), "there and back");
    assert_structure(model, "Chain(ReshapeLayer((2, 3, 2)), flatten)");
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(observations_get_other_sizes),
    };
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_reshape", &tests, make_folder, drop_folder);
}
