/* src/models/parse.c: models of texts alone, sizes that follow from an input's */
#include <weber/state.h>

#include "models/model_files.h"
#include "support/sample.h"

static void a_text_is_a_model(void **state) {
    (void)state;
    wb_layer *model = wb_parse("Chain(Dense(784 => 128, relu), Dense(128 => 10))");
    if (!model) fail_msg("%s", wb_error_message());
    assert_structure(model, "Chain(Dense(784 => 128, relu), Dense(128 => 10))");
    assert_sizes(wb_apply(model, wb_ones(WB_F32, 784, 3)), 10, 3);
    assert_true(wb_item(wb_maximum(wb_abs(wb_get(model, "layers.1.weight")))) > 0.01);
    wb_free(model);
}

/* What is printed, of any class, is parsed to the same. */
static void every_layer_comes_back_from_its_text(void **state) {
    (void)state;
    test_random r = {test_seed()};
    int count = 0;
    while (wb_class_at(count)) count++;
    for (int i = 0; i < 4 * count; i++) {
        wb_scope_open();
        wb_layer *layer = sample_layer(&r, wb_class_at(i % count));
        wb_arena arena = {.blocks = NULL};
        const char *text = wb_structure_text(layer, &arena);
        wb_layer *again = wb_parse(text);
        if (!again) fail_msg("%s: %s", text, wb_error_message());
        assert_structure(again, text);
        assert_int_equal(wb_parameter_count(again), wb_parameter_count(layer));
        wb_free(layer), wb_free(again);
        wb_arena_release(&arena);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
}

/* As Flux prints them: a mode that is not automatic comes after the other settings. */
static void modes_stand_in_text(void **state) {
    (void)state;
    wb_layer *model = wb_parse("Chain(BatchNorm(64, relu, affine=false, active=true), "
                               "Dropout(0.5, active=false), AlphaDropout(0.1, active=nothing))");
    if (!model) fail_msg("%s", wb_error_message());
    assert_int_equal(wb_chain_at(model, 1)->mode_, WB_MODE_TRAIN);
    assert_int_equal(wb_chain_at(model, 2)->mode_, WB_MODE_TEST);
    assert_int_equal(wb_chain_at(model, 3)->mode_, WB_MODE_AUTO);
    assert_structure(model, "Chain(BatchNorm(64, relu, affine=false, active=true), "
                            "Dropout(0.5, active=false), AlphaDropout(0.1))");
    assert_int_equal(wb_auto_mode(model), WB_OK);
    assert_structure(model, "Chain(BatchNorm(64, relu, affine=false), Dropout(0.5), "
                            "AlphaDropout(0.1))");
    wb_free(model);
}

static void trees_and_ties(void **state) {
    (void)state;
    static const char text[] = "(a = zeros(Float64, 2, 3), b = Chain(Dense(2 => 3; bias=false), "
                               "Dense(3 => 2)))\nb.layers.2.weight = transpose(b.layers.1.weight)";
    wb_layer *model = wb_parse(text);
    if (!model) fail_msg("%s", wb_error_message());
    assert_structure(model, text);
    assert_int_equal(wb_dtype_of(wb_get(model, "a")), WB_F64);
    assert_int_equal(wb_parameter_count(model), 6 + 6 + 2);
    wb_free(model);
}

static const struct hole_row {
    const char *name;
    wb_parse_desc desc;
    const char *structure;
} holes[] = {
    {"features", {.text = "Dense(_ => 5)", .input = {3, 1}}, "Dense(3 => 5)"},
    {"one after the other",
     {.text = "Chain(Dense(_ => 4, relu), Dense(_ => 2))", .input = {7, 1}},
     "Chain(Dense(7 => 4, relu), Dense(4 => 2))"},
    {"images",
     {.text = "Chain(Conv((3, 3), _ => 5), BatchNorm(_), flatten, Dense(_ => 2))",
      .input = {10, 10, 3, 32}},
     "Chain(Conv((3, 3), 3 => 5), BatchNorm(5), flatten, Dense(320 => 2))"},
    {"a batch that is added",
     {.text = "Chain(GroupNorm(_, 2), flatten, Dense(_ => 1))", .input = {4, 4}, .pad_batch = true},
     "Chain(GroupNorm(4, 2), flatten, Dense(16 => 1))"},
    {"features come first in sequences",
     {.text = "Chain(LSTM(_ => 4), LayerNorm(_), Dense(_ => 2))", .input = {3, 9, 5}},
     "Chain(LSTM(3 => 4), LayerNorm(4), Dense(4 => 2))"},
    {"attention",
     {.text = "Chain(MultiHeadAttention(_ => 8 => 4; nheads=2), LayerNorm(_))", .input = {3, 9, 5}},
     "Chain(MultiHeadAttention(3 => 8 => 4; nheads=2), LayerNorm(4))"},
    {"inside other containers",
     {.text = "SkipConnection(Chain(Dense(_ => 6), Dense(_ => 3)), +)", .input = {3, 1}},
     "SkipConnection(Chain(Dense(3 => 6), Dense(6 => 3)), +)"},
    {"branches",
     {.text = "Chain(Parallel(vcat, Dense(_ => 2), Dense(_ => 3)), Dense(_ => 1))",
      .input = {4, 1}},
     "Chain(Parallel(vcat, Dense(4 => 2), Dense(4 => 3)), Dense(5 => 1))"},
    {"below a WeightNorm",
     {.text = "Chain(Dense(_ => 3), WeightNorm(Dense(_ => 2), :weight))", .input = {4, 1}},
     "Chain(Dense(4 => 3), WeightNorm(Dense(3 => 2), :weight, dims=2))"},
    {"words",
     {.text = "Chain(Embedding(9 => 4), Dense(_ => 2))", .input = {6, 1}, .dtype = WB_I32},
     "Chain(Embedding(9 => 4), Dense(4 => 2))"},
};

static void sizes_follow_from_the_input(void **state) {
    const struct hole_row *r = *state;
    wb_layer *model = wb_parse_make(r->desc);
    if (!model) fail_msg("%s", wb_error_message());
    assert_structure(model, r->structure);
    wb_layer *copy = wb_clone(model);
    assert_structure(copy, r->structure);
    wb_free(model), wb_free(copy);
}

/* Arrays that are made while sizes are found draw numbers of their own. */
static void no_random_number_is_drawn_twice(void **state) {
    (void)state;
    wb_seed(5);
    wb_layer *model = wb_parse("Chain(Dense(_ => 4), Dense(_ => 4))", .input = {4, 1});
    wb_array *w = wb_get(model, "layers.1.weight"), *v = wb_get(model, "layers.2.weight");
    assert_false(wb_approx(w, v, 1e-3, 1e-3, NULL, 0));
    wb_layer *next = wb_dense(4, 4);
    assert_false(wb_approx(w, wb_get(next, "weight"), 1e-3, 1e-3, NULL, 0));
    assert_false(wb_approx(v, wb_get(next, "weight"), 1e-3, 1e-3, NULL, 0));
    wb_free(model), wb_free(next);
}

static const struct fault_row {
    const char *name;
    wb_parse_desc desc;
    const char *error;
} faults[] = {
    {"an unknown layer",
     {.text = "Chain(Dens(1 => 2))"},
     "wb_parse: layers.1: Dens is not a layer that Weber knows"},
    {"a function's name with a slip",
     {.text = "Dense(1 => 2, rely)"},
     "there is no function \"rely\"; did you mean \"relu\"?"},
    {"a long one with two",
     {.text = "Dense(1 => 2, hardsigmod)"},
     "there is no function \"hardsigmod\"; did you mean \"hardsigmoid\"?"},
    {"an unknown function", {.text = "Dense(1 => 2, mine)"}, "there is no function \"mine\""},
    {"a text that ends",
     {.text = "Chain(Dense(1 => 2)"},
     "wb_parse: character 20 of the structure"},
    {"a setting twice", {.text = "Dropout(0.5, p=0.1)"}, "wb_parse: p is written twice"},
    {"a size out of range", {.text = "Chain(Dense(0 => 2))"}, "Dense: in must be positive, got 0"},
    {"sizes out of range",
     {.text = "LayerNorm(3, 0)"},
     "LayerNorm: size must be positive, got (3, 0)"},
    {"no input", {.text = "Chain(Dense(_ => 2))"}, "the size _ in Dense(_ => 2) needs an input"},
    {"a layer that does not fit",
     {.text = "Chain(Dense(_ => 2), Dense(3 => 1))", .input = {5, 1}},
     "Dense(3 => 1), layer 2 of Chain: input has 2 features in (2, 1)"},
    {"sizes that do not divide",
     {.text = "Chain(GroupNorm(_, 3))", .input = {4, 4, 1}},
     "GroupNorm: 3 groups do not divide 4 channels"},
    {"a mode that is none (G4)",
     {.text = "BatchNorm(10, active=:else)"},
     "active must be a bool, or nothing, got :else"},
    {"no text", {.text = NULL}, "wb_parse: the text is NULL"},
    {"zeros of no type", {.text = "(zeros(Float33, 2),)"}, "zeros must have a type and sizes"},
};

static void a_fault_is_named(void **state) {
    const struct fault_row *r = *state;
    char message[700];
    assert_null(wb_parse_make(r->desc));
    assert_true(wb_take_error(message, sizeof message) != WB_OK);
    if (!strstr(message, r->error)) fail_msg("\"%s\" does not say \"%s\"", message, r->error);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(a_text_is_a_model),
        TEST(every_layer_comes_back_from_its_text),
        TEST(modes_stand_in_text),
        TEST(trees_and_ties),
        TEST(no_random_number_is_drawn_twice),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, holes, sizes_follow_from_the_input);
    ADD_ROWS(&tests, faults, a_fault_is_named);
    return run_test_list("models/test_parse", &tests, NULL, NULL);
}
