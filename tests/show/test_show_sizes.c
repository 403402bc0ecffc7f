/* src/show/show_sizes.c: what layers make of sizes, and what it costs. */
#include <weber/show.h>

#include "support/support.h"
#include "twofold.h"

static char *printed(wb_layer *model, wb_outputsize_desc desc) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    const wb_status status = wb_show_sizes_make(file, model, desc);
    fclose(file);
    if (status == WB_OK) return text;
    free(text);
    return NULL;
}

static void assert_says(const char *text, const char *part) {
    assert_non_null(text);
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

static void layers_have_sizes_and_costs(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_conv(.kernel = {3, 3}, .in = 1, .out = 4, .activation = wb_relu),
                               wb_flatten(), wb_dense(2704, 10));
    char *text = printed(model, (wb_outputsize_desc){.inputs = {{28, 28, 1, 32}}});
    assert_says(text, "layers.1  Conv((3, 3), 1 => 4, relu)  (26, 26, 4, 32)          40"
                      "         778752\n");
    assert_says(text, "(2704, 32)                0              0\n");
    assert_says(text, "(10, 32)              27050         865280\n");
    assert_says(text, "27090        1644032\n");
    free(text);
    wb_free(model);
}

static void steps_and_inner_layers_count(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_skip(wb_dense(3, 3), wb_connect_add), wb_dense(3, 2));
    char *text = printed(model, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_says(text, "layers.1.layers  Dense(3 => 3)  (3, 5)          12             45\n");
    assert_says(text, "layers.2         Dense(3 => 2)  (2, 5)           8             30\n");
    free(text);
    wb_free(model);
    model = wb_rnn(2, 3);
    text = printed(model, (wb_outputsize_desc){.inputs = {{2, 7, 5}}});
    assert_says(text, "(3, 7, 5)"); /* 7 steps, batch 5: (3 x 2 + 3 x 3) products */
    assert_says(text, "525\n");
    free(text);
    wb_free(model);
}

static void what_comes_after_a_scope_counts(void **state) {
    (void)state;
    twofold *model = new_twofold();
    char *text = printed(&model->layer, (wb_outputsize_desc){.inputs = {{3, 5}}});
    assert_says(text, "Dense(3 => 2)  (2, 5)           8             30\n");
    free(text);
    wb_free(model);
}

/* More products than a number can tell. */
static void costs_have_an_end(void **state) {
    (void)state;
    NEEDS_64_BITS();
    wb_layer *model = wb_chain(wb_dense(1024, 1024), wb_dense(1024, 1024));
    char *text = printed(model, (wb_outputsize_desc){.inputs = {{1024, (int64_t)1 << 48}}});
    assert_says(text, " 9223372036854775807\n");
    free(text);
    wb_free(model);
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_layer *model = wb_dense(3, 2);
    assert_null(printed(model, (wb_outputsize_desc){.inputs = {{4, 5}}}));
    assert_error(WB_ERROR_SHAPE, "Dense(3 => 2)");
    assert_int_equal(wb_show_sizes(NULL, model, {{3, 5}}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "show_sizes: the file is NULL");
    wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(layers_have_sizes_and_costs), TEST(steps_and_inner_layers_count),
        TEST(what_comes_after_a_scope_counts), TEST(costs_have_an_end), TEST(mistakes_are_named)};
    return cmocka_run_group_tests_name("show/test_show_sizes", tests, NULL, NULL);
}
