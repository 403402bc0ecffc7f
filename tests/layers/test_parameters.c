/* src/layers/parameters.c */
#include <string.h>

#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

/* "path" for what is trained, "(path)" for the others, one after another. */
static const char *list_of(wb_layer *model) {
    static char text[512];
    text[0] = 0;
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, p.is_trainable ? "%s " : "(%s) ", p.path);
        assert_ptr_equal(p.array, wb_get(model, p.path));
        assert_null(p.gradient);
    }
    return text;
}

static void each_array_once(void **state) {
    (void)state;
    const struct {
        const char *name;
        wb_layer *model;
        const char *tied, *list;
    } rows[] = {
        {"a layer", wb_dense(2, 3), NULL, "weight bias "},
        {"states are not trained", wb_batchnorm(2), NULL, "β γ (μ) (σ²) "},
        {"a chain", wb_chain(wb_dense(2, 2), wb_dense(2, 2, .bias = false)), NULL,
         "layers.1.weight layers.1.bias layers.2.weight "},
        {"a tie", wb_chain(wb_dense(2, 2), wb_dense(2, 2)), "layers.2.weight",
         "layers.1.weight layers.1.bias layers.2.bias "},
        {"nothing", wb_flatten(), NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = rows[i].model;
        if (rows[i].tied)
            assert_int_equal(wb_tie(model, rows[i].tied, wb_get(model, "layers.1.weight")), WB_OK);
        if (strcmp(list_of(model), rows[i].list) != 0)
            fail_msg("%s: %s, not %s", rows[i].name, list_of(model), rows[i].list);
        wb_free(model);
    }
}

static void a_transpose_is_the_same_array(void **state) { /* D15 */
    (void)state;
    wb_array *w = wb_matrix(2, {1, 2}, {3, 4});
    wb_eval(w);
    wb_layer *pair = wb_tree_named({"a", w}, {"b", wb_transpose(w)});
    assert_string_equal(list_of(pair), "a ");
    wb_free(pair);
}

static void a_loop_may_end_early(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 3);
    wb_scope_open();
    wb_parameter p = {0};
    assert_true(wb_next_parameter(model, &p));
    assert_string_equal(p.path, "weight");
    wb_scope_close(); /* has the list */
    wb_free(model);
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = wb_dense(2, 3);
    wb_parameter p = {0};
    assert_false(wb_next_parameter(NULL, &p));
    assert_error(WB_ERROR_ARGUMENT, "wb_next_parameter: the model is NULL");
    assert_false(wb_next_parameter(model, NULL));
    assert_error(WB_ERROR_ARGUMENT, "wb_next_parameter: the parameter is NULL");
    assert_true(wb_next_parameter(model, &p));
    (void)wb_add(wb_ones(WB_F32, 2), wb_ones(WB_F32, 3));
    assert_false(wb_next_parameter(model, &p)); /* an error ends the loop */
    assert_null(p.list_);
    wb_clear_error();
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(each_array_once),
        TEST(a_transpose_is_the_same_array),
        TEST(a_loop_may_end_early),
        TEST(mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
