/* src/layers/bidirectional.c, and recurrent layers one above the other */
#include <weber/gradient.h>

#include "models/flux_structs.h"
#include "support/support.h"

static bool are_near(wb_array *a, wb_array *b) { return wb_approx(a, b, 1e-5, 1e-6, NULL, 0); }

static void both_directions_are_one_above_the_other(void **state) {
    (void)state;
    wb_layer *there = wb_lstm(3, 4), *back = wb_gru(3, 2);
    wb_layer *both = wb_bidirectional(wb_keep_layer(there), wb_keep_layer(back));
    wb_array *x = wb_normal(WB_F32, 3, 5, 2), *y = wb_apply(both, x);
    assert_sizes(y, 6, 5, 2);
    assert_true(are_near(wb_slice(y, 0, 0, 4, 1), wb_apply(there, x)));
    wb_array *turned = wb_flip(wb_apply(back, wb_flip(x, 1)), 1);
    assert_true(are_near(wb_slice(y, 0, 4, 6, 1), turned));
    assert_sizes(wb_apply(both, wb_ones(WB_F32, 3, 7)), 6, 7);
    assert_structure(both, "Bidirectional(LSTM(3 => 4), GRU(3 => 2))");
    assert_non_null(wb_get(both, "backward.cell.Wi"));
    wb_free(there), wb_free(back), wb_free(both);
}

static wb_array *apply(void *model, int count, wb_array *const *inputs) {
    (void)count;
    return wb_apply(model, inputs[0]);
}

/* As PyTorch's num_layers=2 with dropout, which stands between layers. */
static void layers_are_stacked_in_a_chain(void **state) {
    (void)state;
    const wb_dtype f64 = WB_F64;
    wb_layer *first = wb_bidirectional(wb_rnn(2, 2, .dtype = f64), wb_rnn(2, 2, .dtype = f64));
    wb_layer *second = wb_bidirectional(wb_lstm(4, 1, .dtype = f64), wb_gru(4, 2, .dtype = f64));
    wb_layer *model = wb_chain(first, wb_dropout(0.5), second);
    wb_array *x = wb_normal(WB_F64, 2, 3, 2);
    assert_sizes(wb_apply(model, x), 3, 3, 2);
    for (int order = 1; order <= 2; order++)
        if (wb_gradient_check(apply, model, 1, &x, order, 2e-6) != WB_OK)
            fail_msg("order %d: %s", order, wb_error_message());
    wb_free(model);
}

static void it_is_printed_with_its_layers(void **state) {
    (void)state;
    char text[1000];
    wb_layer *model = wb_bidirectional(wb_lstm(3, 4), wb_lstm(3, 4));
    assert_int_equal(wb_show_text(model, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "Bidirectional(\n"
                                 "  LSTM(3 => 4),                         # 128 parameters\n"
                                 "  LSTM(3 => 4),                         # 128 parameters\n"
                                 ")"));
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(both_directions_are_one_above_the_other),
        TEST(layers_are_stacked_in_a_chain),
        TEST(it_is_printed_with_its_layers),
    };
    ADD_TESTS(&tests, single);
    return run_test_list("layers/test_bidirectional", &tests, make_folder, drop_folder);
}
