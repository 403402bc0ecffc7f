/* src/layers/embedding_bag.c */

#include "models/flux_structs.h"
#include "support/support.h"

/* Features of words 0 to 3: (1, -1), (2, 5), (3, 0), (6, 4). */
static wb_array *table(void) {
    return wb_reshape(wb_vector_of(WB_F64, 1, -1, 2, 5, 3, 0, 6, 4), 2, 4);
}

static struct bag_row {
    const char *name;
    int reduction;
    double wanted[4]; /* of the bags {0, 1, 3} and {2, 2} */
} bags[] = {
    {"mean", WB_BAG_MEAN, {3, 8. / 3, 3, 0}},
    {"sum", WB_BAG_SUM, {9, 8, 6, 0}},
    {"max", WB_BAG_MAX, {6, 5, 3, 0}},
};

static void bags_are_reduced(void **state) {
    const struct bag_row *r = *state;
    const double *w = r->wanted;
    wb_layer *layer = wb_embedding_bag(.given_weight = table(), .reduction = r->reduction);
    wb_array *first = wb_vector_of(WB_I32, 0, 1, 3);
    wb_array *xs[] = {wb_vector_of(WB_I64, 0, 1, 3, 2, 2), wb_vector_of(WB_I32, 0, 3)}, *y[1];
    assert_values(wb_apply(layer, first), 1e-12, w[0], w[1]);
    assert_int_equal(wb_apply_many(layer, 2, xs, 1, y), 1);
    assert_values(y[0], 1e-12, w[0], w[1], w[2], w[3]);
    wb_array *columns = wb_reshape(wb_vector_of(WB_I64, 0, 1, 3, 2, 2, 2), 3, 2);
    const double last = r->reduction == WB_BAG_SUM ? 9 : 3;
    assert_values(wb_apply(layer, columns), 1e-12, w[0], w[1], last, 0);
    wb_array *hot = wb_eq(wb_reshape(first, 1, 3), wb_iota(WB_I32, 0, 4, 1));
    assert_values(wb_apply(layer, hot), 1e-12, w[0], w[1]);
    wb_free(layer);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *layer = wb_embedding_bag(4, 2);
    wb_array *x = wb_vector_of(WB_I64, 0, 1, 3), *y[1];
    const int at[][3] = {{1, 2, 2}, {0, 2, 1}, {0, 3, 4}};
    const char *const got[] = {"got 1 at 0", "got 1 at 2", "got 4 at 2"};
    for (int i = 0; i < 3; i++) {
        wb_array *xs[] = {x, wb_from(WB_I32, at[i], 3)};
        assert_int_equal(wb_apply_many(layer, 2, xs, 1, y), 0);
        assert_error(WB_ERROR_ARGUMENT, got[i]);
    }
    wb_array *xs[] = {x, wb_vector(0, 1), x};
    assert_int_equal(wb_apply_many(layer, 2, xs, 1, y), 0);
    assert_error(WB_ERROR_SHAPE, "EmbeddingBag(4 => 2): inputs must be integers (n) and positions "
                                 "(N), got i64 (3) and f32 (2)");
    assert_int_equal(wb_apply_many(layer, 3, xs, 1, y), 0);
    assert_error(WB_ERROR_ARGUMENT, "expected words and perhaps positions, got 3 arrays");
    assert_null(wb_apply(layer, wb_ones(WB_F32, 3, 2)));
    assert_error(WB_ERROR_SHAPE, "or one-hot (4, n), got f32 (3, 2)");
    wb_free(layer);
}

static void it_is_written_with_its_reduction(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_embedding_bag(26, 4), wb_embedding_bag(26, 4, WB_BAG_SUM));
    assert_structure(model, "Chain(EmbeddingBag(26 => 4), EmbeddingBag(26 => 4, +))");
    wb_free(model);
}

#define BAG(function) MODEL(STRUCT("Flux", "EmbeddingBag", W ", " function))
static const flux_row structs[] = {
    FLUX("an EmbeddingBag of Flux", BAG(FUNCTION("Statistics", "mean")), "EmbeddingBag(1 => 2)",
         "weight"),
    FLUX("one that adds", BAG(FUNCTION("Base", "+")), "EmbeddingBag(1 => 2, +)", "weight"),
    FLUX("one with the largest", BAG(FUNCTION("Base", "max")), "EmbeddingBag(1 => 2, max)",
         "weight"),
};

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(mistakes),
        TEST(it_is_written_with_its_reduction),
    };
    ADD_ROWS(&tests, bags, bags_are_reduced);
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, structs, flux_is_understood);
    return run_test_list("layers/test_embedding_bag", &tests, make_folder, drop_folder);
}
