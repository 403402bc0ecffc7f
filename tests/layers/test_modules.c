/* src/layers/modules.c */
#include <string.h>

#include <weber.h>

#include "support/scoped.h"

/* "path:type", one after another. */
static const char *list_of(wb_layer *model) {
    static char text[512];
    text[0] = 0;
    for (wb_module m = {0}; wb_next_module(model, &m);) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s:%s ", m.path, m.type);
        assert_ptr_equal(m.layer, wb_get_layer(model, m.path));
    }
    return text;
}

static void each_layer_comes_once_from_outside_in(void **state) {
    (void)state;
    wb_layer *twice = wb_dense(2, 2);
    const struct {
        const char *name;
        wb_layer *model;
        const char *list;
    } rows[] = {
        {"a layer", wb_dense(2, 3), ":Dense "},
        {"a chain in a chain", wb_chain(wb_dense(2, 2), wb_chain(wb_flatten()), wb_batchnorm(2)),
         ":Chain layers.1:Dense layers.2:Chain layers.2.layers.1:flatten layers.3:BatchNorm "},
        {"names", wb_chain_named({"a", wb_dense(1, 1)}, {"b", wb_dropout(0.5)}),
         ":Chain layers.a:Dense layers.b:Dropout "},
        {"one layer in two places", wb_chain(twice, wb_skip(wb_keep_layer(twice), wb_connect_add)),
         ":Chain layers.1:Dense layers.2:SkipConnection "},
        {"a cell", wb_lstm(2, 3), ":LSTM cell:LSTMCell "},
        {"arrays are none", wb_tree(wb_ones(WB_F32, 2), wb_dense(1, 1)), ":Tree 2:Dense "},
        {"nothing in it", wb_chain(), ":Chain "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_non_null(rows[i].model);
        if (strcmp(list_of(rows[i].model), rows[i].list) != 0)
            fail_msg("%s: %s, not %s", rows[i].name, list_of(rows[i].model), rows[i].list);
        wb_free(rows[i].model);
    }
}

static void a_loop_may_end_early(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3));
    wb_scope_open();
    wb_module m = {0};
    assert_true(wb_next_module(model, &m));
    assert_string_equal(m.type, "Chain");
    wb_scope_close(); /* has the list */
    wb_free(model);
}

static void layers_are_set_in_the_loop(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dropout(0.5), wb_dense(2, 2), wb_dropout(0.5));
    wb_array *x = wb_ones(WB_F32, 2, 3);
    for (wb_module m = {0}; wb_next_module(model, &m);)
        if (strcmp(m.type, "Dropout") == 0) assert_int_equal(wb_test_mode(m.layer), WB_OK);
    const bool before = wb_training(true);
    wb_array *with = wb_apply(model, x), *without = wb_apply(wb_get_layer(model, "layers.2"), x);
    (void)wb_training(before);
    assert_true(wb_item(wb_maximum(wb_abs(wb_sub(with, without)))) == 0);
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 3);
    wb_module m = {0};
    assert_false(wb_next_module(NULL, &m));
    assert_error(WB_ERROR_ARGUMENT, "wb_next_module: the model is NULL");
    assert_false(wb_next_module(model, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_next_module: the module is NULL");
    assert_true(wb_next_module(model, &m));
    (void)wb_add(wb_ones(WB_F32, 2), wb_ones(WB_F32, 3));
    assert_false(wb_next_module(model, &m)); /* an error ends the loop */
    assert_null(m.list_);
    wb_clear_error();
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(each_layer_comes_once_from_outside_in),
        TEST(a_loop_may_end_early),
        TEST(layers_are_set_in_the_loop),
        TEST(mistakes),
    };
    return cmocka_run_group_tests_name("layers/test_modules", tests, NULL, NULL);
}
