/* Models from Weber's own files: the text of their structure (src/models/structure.c, term.c), what
 * is built from it (build.c), and the tree beside it. */
#include <locale.h>

#include <weber/state.h>

#include "base/memory.h"
#include "formats/bson_decoder.h"
#include "layers/layer.h"
#include "models/model_files.h"
#include "models/structure.h"
#include "models/term.h"
#include "support/sample.h"

#define ARRAY(size, data) "{tag: 'array', type: $Float32, size: [" size "], data: <" data ">}"
#define W                 ARRAY("2, 1", "00 00 80 3f 00 00 00 40") /* 1 => 2 */
#define B                 ARRAY("2", "00 00 80 3f 00 00 00 40")

static void assert_says(const char *error) {
    char message[1024];
    assert_true(wb_take_error(message, sizeof message) != WB_OK);
    if (!strstr(message, error)) fail_msg("\"%s\" does not say \"%s\"", message, error);
}

/* ---- there and back ---- */

typedef struct format_row {
    const char *name, *file;
} format_row;
static const format_row formats[] = {
    {"BSON", "m.bson"},
    {"safetensors", "m.safetensors"},
    {"npz", "m.npz"},
};

static wb_layer *random_model(test_random *r, int depth);

/* Of any class that models in files are made of; the first is Chain. */
static wb_layer *random_layer(test_random *r, int depth) {
    static wb_activation *const functions[] = {wb_relu,    wb_sigmoid, wb_leakyrelu,
                                               wb_softmax, wb_rrelu,   wb_glu};
    const wb_dtype dtype = (wb_dtype[]){WB_F32, WB_F64, WB_F16}[random_below(r, 3)];
    int count = 0;
    while (wb_class_at(count)) count++;
    const int i = (int)random_below(r, count + 2);
    if (i == 0) return depth ? random_model(r, depth - 1) : wb_dense(2, 3, .dtype = dtype);
    if (i < count) return sample_layer(r, wb_class_at(i));
    return i == count ? wb_fn(functions[random_below(r, 6)])
                      : wb_batchnorm(1 + random_below(r, 4), .dtype = dtype);
}

/* Chains of random layers, some of which stand twice, with names or without. */
static wb_layer *random_model(test_random *r, int depth) {
    wb_layer *layers[6];
    wb_named named[6];
    static const char *const names[6] = {"encoder", "σ", "two words", "say \"so\\\"", "true", "x!"};
    const int64_t count = random_below(r, 7);
    for (int i = 0; i < count; i++) {
        const int64_t again = i ? random_below(r, 4 * i) : 0;
        layers[i] = i && again < i ? wb_keep_layer(layers[again]) : random_layer(r, depth);
        named[i] = (wb_named){names[i], layers[i]};
    }
    return random_below(r, 3) ? wb_chain_make(count, layers) : wb_chain_named_make(count, named);
}

typedef struct pair {
    wb_visitor visitor;
    wb_layer *other;
    const char *text;
} pair;

static bool compare(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    pair *p = (pair *)(void *)visitor;
    char text[WB_PATH_BYTES];
    (void)trainable;
    wb_path_text(path, text, sizeof text);
    assert_same_bits(*slot, wb_get(p->other, text), p->text);
    return true;
}

static void random_models_come_back(void **state) {
    const format_row *f = *state;
    test_random r = {test_seed()};
    for (int i = 0; i < 10; i++) {
        wb_scope_open();
        wb_layer *model = random_model(&r, 2);
        wb_arena arena = {.blocks = NULL};
        const char *text = wb_structure_text(model, &arena);
        assert_int_equal(wb_save(path_of(f->file), model), WB_OK);
        wb_layer *again = wb_load_model(path_of(f->file), "model");
        if (!again) fail_msg("%s: %s", text, wb_error_message());
        assert_structure(again, text);
        assert_int_equal(wb_parameter_count(model), wb_parameter_count(again)); /* ties */
        pair p = {.visitor = {.array = compare}, .other = again, .text = text};
        assert_true(wb_visit(&p.visitor, model));
        wb_arena_release(&arena);
        wb_free(model), wb_free(again);
        assert_int_equal(wb_scope_close(), WB_OK);
    }
}

static void all_ties_come_back(void **state) {
    const format_row *f = *state;
    wb_layer *shared = wb_dense(3, 3), *first = wb_dense(2, 3, .bias = false);
    wb_layer *conv = wb_conv({2, 3}, 4, 2);
    wb_layer *turned =
        wb_conv({3, 4}, 2, 2, .given_weight = wb_permute(wb_get(conv, "weight"), 1, 2, 0, 3));
    wb_layer *model =
        wb_chain(shared, first, wb_keep_layer(shared),
                 wb_dense(.given_weight = wb_transpose(wb_get(first, "weight")), .bias = false),
                 wb_dense(.given_weight = wb_get(first, "weight")), conv, turned);
    assert_int_equal(wb_save(path_of(f->file), model), WB_OK);
    wb_layer *again = wb_load_model(path_of(f->file), NULL);
    assert_non_null(again);
    assert_structure(again, "Chain(Dense(3 => 3), Dense(2 => 3; bias=false), Dense(3 => 3), "
                            "Dense(3 => 2; bias=false), Dense(2 => 3), Conv((2, 3), 4 => 2), "
                            "Conv((3, 4), 2 => 2))\n"
                            "layers.4.weight = transpose(layers.2.weight)\n"
                            "layers.7.weight = permutedims(layers.6.weight, (2, 3, 1, 4))");
    assert_ptr_equal(wb_get_layer(again, "layers.1"), wb_get_layer(again, "layers.3"));
    assert_ptr_equal(wb_get(again, "layers.2.weight"), wb_get(again, "layers.5.weight"));
    assert_true(wb_is_tied(wb_get(again, "layers.2.weight"), wb_get(again, "layers.4.weight")));
    assert_true(wb_is_tied(wb_get(again, "layers.6.weight"), wb_get(again, "layers.7.weight")));
    pair p = {.visitor = {.array = compare}, .other = again, .text = f->name};
    assert_true(wb_visit(&p.visitor, model));
    wb_free(model), wb_free(again);
}

static wb_array *custom(wb_array *x) { return wb_add(wb_relu(x), wb_tanh(x)); }

static void what_has_no_name_is_not_made(void **state) {
    const format_row *f = *state;
    wb_layer *model = wb_chain(wb_dense(1, 2, custom)), *again = wb_chain(wb_dense(1, 2, custom));
    assert_int_equal(wb_save(path_of(f->file), model), WB_OK);
    assert_null(wb_load_model(path_of(f->file), NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "model.layers.1: a function without a name cannot be made "
                                       "from a text; wb_register_function names it");
    assert_int_equal(wb_load(path_of(f->file), again), WB_OK);
    assert_same_bits(wb_get(model, "layers.1.weight"), wb_get(again, "layers.1.weight"), "weight");
    wb_free(model), wb_free(again);
}

static void several_models_have_their_structures(void **state) {
    const format_row *f = *state;
    wb_layer *a = wb_dense(1, 2, wb_tanh),
             *b = wb_tree_named({"net", wb_chain(wb_flatten())}, {"x", wb_vector(1, 2, 3)});
    assert_int_equal(wb_save_named(path_of(f->file), {"a", a}, {"b", b}, {"n", wb_vector(1)}),
                     WB_OK);
    wb_layer *c = wb_load_model(path_of(f->file), "a"), *d = wb_load_model(path_of(f->file), "b");
    assert_structure(c, "Dense(1 => 2, tanh)");
    assert_structure(d, "(net = Chain(flatten), x = zeros(Float32, 3))");
    assert_same_bits(wb_get(b, "x"), wb_get(d, "x"), "x");
    assert_null(wb_load_model(path_of(f->file), "n"));
    assert_error(WB_ERROR_UNSUPPORTED, "a model needs a structure");
    wb_free(a), wb_free(b), wb_free(c), wb_free(d);
}

/* ---- texts ---- */

#define STATE "{weight: " W ", bias: " B "}"
#define NORM  "{β: " B ", γ: " B ", μ: " B ", σ²: " B "}"
typedef struct text_row {
    const char *name, *text, *tree;
    const char *says; /* as it is written again, or the error */
} text_row;

static const text_row texts[] = {
    {"spaces and semicolons", " Dense( 1=>2 ;)", STATE, "Dense(1 => 2)"},
    {"modules are passed over", "Flux.Dense(1 => 2, NNlib.relu)", STATE, "Dense(1 => 2, relu)"},
    {"a tuple of one", "(Dense(1 => 2),)", "[" STATE "]", "(Dense(1 => 2),)"},
    {"a value in parentheses", "(Dense((1) => 2))", STATE, "Dense(1 => 2)"},
    {"dims behind a semicolon", "Dropout(0.5; dims=(1, 3))", "{}", "Dropout(0.5, dims=(1, 3))"},
    {"a norm with settings", "BatchNorm(2, relu; eps=1e-3, momentum=0.5)", NORM,
     "BatchNorm(2, relu, eps=0.001, momentum=0.5)"},
    {"a norm of defaults", "BatchNorm(2; momentum=0.1, eps=1.0e-5)", NORM, "BatchNorm(2)"},
    {"a norm over ranks", "BatchNorm(2, sync=true)", NORM, "BatchNorm(2, sync=true)"},
    {"a norm without arrays", "BatchNorm(2, affine=false, track_stats=false)", "{}",
     "BatchNorm(2, affine=false, track_stats=false)"},
};

static const text_row wrong_texts[] = {
    {"a larger layer than the file has", "Dense(1000000 => 1000000)", STATE,
     "model: Dense: weight must be (1000000, 1000000), got (2, 1)"},
    {"a larger layer without arrays", "Dense(1000000 => 1000000)", "{}",
     "it needs weight, which the file does not have"},
    {"more layers with arrays than the file has", "Chain(Dense(1 => 2), Dense(2 => 2))",
     "{layers: [" STATE "]}", "model.layers.2: it needs weight, which the file does not have"},
    {"fewer layers than the file has", "Chain(Dense(1 => 2))", "{layers: [" STATE ", []]}",
     "the structure has 1 layers, the file has 2"},
    {"no bias where there is one", "Dense(1 => 2; bias=false)", STATE,
     "the structure says that there is no bias, but the file has one"},
    {"a bias where there is none", "Dense(1 => 2)", "{weight: " W ", bias: false}",
     "its bias is a bool"},
    {"a norm of other channels", "BatchNorm(3)", NORM, "BatchNorm: β must be (3), got (2)"},
    {"a norm without its arrays", "BatchNorm(2)", "{}",
     "model: it needs β, which the file does "
     "not have"},
    {"a norm with arrays it does not want", "BatchNorm(2, track_stats=false)", NORM,
     "model: the structure says that there is no μ, but the file has one"},
    {"half a norm", "BatchNorm(2)", "{γ: " B ", μ: " B ", σ²: " B "}",
     "it needs β, which the file does not have"},
    {"a norm that moves too far", "BatchNorm(2, momentum=1.5)", NORM,
     "BatchNorm: momentum must be from 0 to 1, got 1.5"},
    {"a norm of a word", "BatchNorm(2, sync=1)", NORM, "BatchNorm: sync must be a bool, got 1"},
    {"a norm without a number", "BatchNorm(2, eps=relu)", NORM,
     "BatchNorm: eps must be a number, got relu"},
    {"a norm without channels", "BatchNorm(affine=false, track_stats=false)", "{}",
     "BatchNorm: channels must be positive, got 0"},
    {"a number as activation", "Dense(1 => 2, 7)", STATE,
     "Dense: activation must be the name of a function, got 7"},
    {"another setting", "Dense(1 => 2; init=ones)", STATE,
     "init=ones, an argument of Dense(1 => 2; init=ones), is not known; it has in, activation, "
     "bias"},
    {"a setting in its place and by its name", "Dropout(0.5, p=0.1)", "{}",
     "p is written twice in Dropout(0.5, p=0.1)"},
    {"a key that stands twice", "Dropout(0.5; dims=1, dims=2)", "{}",
     "dims is written twice in Dropout(0.5; dims=1, dims=2)"},
    {"sizes in their places and by name", "LayerNorm(3, 4, affine=false, size=(5,))", "{}",
     "size is written twice"},
    {"a mode that is none", "Dropout(0.5; active=1)", "{}", "active must be a bool, or nothing"},
    {"a part without its arrays", "LayerNorm(3; diag=false)", "{}",
     "diag=false, an argument of LayerNorm(3; diag=false), is not known"},
    {"another layer", "Chain(Cascade(1 => 2))", "{layers: [" STATE "]}",
     "model.layers.1: Cascade is not a layer"},
    {"another function", "Dense(1 => 2, sin_fast)", STATE, "no function \"sin_fast\""},
    {"nothing", "", STATE, "character 1 of the structure: a value is expected"},
    {"the end is missing", "Chain(Dense(1 => 2", STATE, "is missing, at \"\""},
    {"a comma too many", "Chain(,relu)", STATE,
     "character 7 of the structure: a value is "
     "expected"},
    {"a number without end", "Dense(99999999999999999999 => 2)", STATE, "a number is expected"},
    {"a text without end", "Chain(var\"a", STATE, "a quoted text has no closing quote"},
    {"words instead of layers", "drop table", STATE, "character 11 of the structure"},
    {"a number alone", "3", STATE, "a number is not a layer"},
    {"a tie to what is not there", "Dense(1 => 2)\nweight = transpose(w)", STATE, "no \"w\""},
    {"a tie of other sizes", "Dense(1 => 2)\nbias = transpose(weight)", STATE,
     "bias should be weight with its dimensions permuted"},
    {"a tie of no dimensions", "Dense(1 => 2)\nbias = permutedims(weight, (1, 1))", STATE,
     "dimensions are expected, as in (3, 2)"},
    {"names for some", "Chain(a = relu, tanh)", "{layers: [1, 2]}",
     "either all of its layers or none must have names"},
};

static const char *write_text(const text_row *r) {
    static char bson[4096];
    snprintf(bson, sizeof bson, "{model_structure: '%s', model: %s}", r->text, r->tree);
    return write_bson(bson);
}

static void a_text_is_read(void **state) {
    const text_row *r = *state;
    wb_layer *model = wb_load_model(write_text(r), "model");
    assert_non_null(model);
    assert_structure(model, r->says);
    wb_free(model);
}

static void a_wrong_text_is_refused(void **state) {
    const text_row *r = *state;
    assert_null(wb_load_model(write_text(r), "model"));
    assert_says(r->says);
}

/* Any depth is an error or a model, on an ordinary stack. */
static void deep_texts_are_refused(void **state) {
    (void)state;
    static char text[20001];
    for (int i = 0; i < 20000; i += 2) memcpy(text + i, i < 10000 ? "((" : "=>", 2);
    wb_arena arena = {.blocks = NULL};
    wb_structure structure;
    assert_int_equal(wb_structure_read(&structure, text, "deep", &arena), WB_ERROR_FORMAT);
    assert_error(WB_ERROR_FORMAT, "deep: character 258 of the structure: nested too deep");
    wb_arena_release(&arena);
}

typedef struct number_row {
    const char *name;
    double value;
} number_row;

static const number_row numbers[] = {
    {"0", 0},
    {"1", 1},
    {"0.5", 0.5},
    {"0.1", 0.1},
    {"0.1f0", 0.1f},
    {"1e-05", 1e-5},
    {"1f-05", 1e-5f},
    {"0.3333333333333333", 1.0 / 3},
    {"0.33333334f0", 1.0f / 3},
};

/* In a country of decimal commas, too, where it is installed. */
static void a_number_is_written_as_it_is_read(void **state) {
    const number_row *r = *state;
    char text[40];
    wb_arena arena = {.blocks = NULL};
    wb_structure s;
    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8");
    wb_real_text(r->value, text, sizeof text);
    assert_string_equal(text, r->name);
    assert_int_equal(wb_structure_read(&s, text, "number", &arena), WB_OK);
    const bool is_integer = s.model->kind == WB_TERM_INTEGER;
    assert_true((is_integer ? (double)s.model->integer : s.model->real) == r->value);
    (void)setlocale(LC_NUMERIC, "C");
    wb_arena_release(&arena);
}

/* ---- the tree ---- */

/* By a decoder that knows Julia's format alone: the fields of Flux's structs in their order, which
 * is what Flux.loadmodel! compares. */
static void the_tree_is_that_of_flux_state(void **state) {
    (void)state;
    wb_init *ones = wb_ones_init;
    wb_layer *model =
        wb_chain(wb_conv({1}, 1, 1, wb_relu, .pad = {1}, .init = ones),
                 wb_cross_cor({1, 1}, 1, 1, .pad = {1, 2}, .init = ones, .bias = false),
                 wb_maxpool({2, 2}), wb_meanpool({2}, .stride = {1}, .same_pad = true),
                 wb_dropout(.p = 0.5, .dims = WB_DIM(2)), wb_flatten(), wb_fn(wb_softmax),
                 wb_chain_named({"last", wb_dense(1, 1, wb_tanh, .init = ones)}));
    size_t size = 0, backrefs = 0;
    assert_int_equal(wb_save(path_of("m.bson"), model), WB_OK);
    unsigned char *bytes = read_file(path_of("m.bson"), &size);
    char *julia = decode_bson(bytes, size, &backrefs);
    assert_string_equal(
        julia,
        "{model: (layers = ("
        "(σ = (), weight = Float32(1, 1, 1)[1], bias = Float32(1)[0], stride = (1), pad = (1, 1), "
        "dilation = (1), groups = 1), "
        "(σ = (), weight = Float32(1, 1, 1, 1)[1], bias = false, stride = (1, 1), pad = (1, 2), "
        "dilation = (1, 1)), "
        "(k = (2, 2), pad = (0, 0, 0, 0), stride = (2, 2)), (k = (2), pad = (1, 0), stride = (1)), "
        "(p = 0.5, dims = 3, active = nothing, rng = ()), (), (), "
        "(layers = (last = (weight = Float32(1, 1)[1], bias = Float32(1)[0], σ = ()))))), "
        "model_structure: \"Chain(Conv((1,), 1 => 1, relu, pad=1), CrossCor((1, 1), 1 => 1, "
        "pad=(1, 2), bias=false), MaxPool((2, 2)), MeanPool((2,), pad=(1, 0), stride=1), "
        "Dropout(0.5, dims=3), flatten, softmax, Chain(last = Dense(1 => 1, tanh)))\"}");
    free(julia), free(bytes);
    wb_free(model);
}

/* ---- damage ---- */

/* Every byte of a file changed: a model or an error, and nothing left behind (close_scope). */
static void every_wrong_byte_is_survived(void **state) {
    (void)state;
    static const unsigned char flips[] = {0x01, 0x10, 0x80, 0xff};
    wb_layer *shared = wb_dense(2, 2);
    wb_layer *model = wb_chain(shared, wb_conv({1, 1}, 1, 1, wb_relu, .pad = {1, 1}),
                               wb_dropout(.p = 0.5), wb_keep_layer(shared),
                               wb_dense(.given_weight = wb_transpose(wb_get(shared, "weight"))));
    size_t size = 0;
    assert_int_equal(wb_save(path_of("m.bson"), model), WB_OK);
    unsigned char *bytes = read_file(path_of("m.bson"), &size);
    const char *path = path_of("damaged.bson");
    for (size_t at = 4; at < size; at++) {
        bytes[at] ^= flips[at % 4];
        (void)unlink(path); /* rewriting a file waits for the disk */
        write_file(path, bytes, size);
        wb_layer *read = wb_load_model(path, "model");
        assert_true((read != NULL) == !wb_failed());
        wb_clear_error();
        wb_free(read);
        (void)wb_load(path, model);
        wb_clear_error();
        bytes[at] ^= flips[at % 4];
    }
    free(bytes);
    wb_free(model);
}

/* Whichever allocation fails: no model, an error, nothing left behind. */
static void without_memory_there_is_an_error(void **state) {
    const format_row *f = *state;
    wb_layer *first = wb_dense(2, 3);
    wb_layer *model =
        wb_chain_named({"a", first}, {"b", wb_conv({1, 1}, 1, 1, wb_relu)},
                       {"c", wb_dense(.given_weight = wb_transpose(wb_get(first, "weight")))});
    const char *path = path_of(f->file);
    assert_int_equal(wb_save(path, model), WB_OK);
    for (int64_t n = 1;; n++) {
        (void)wb_fail_allocation(n);
        wb_layer *read = wb_load_model(path, "model");
        const wb_status status = read ? wb_load(path, read) : WB_ERROR_MEMORY;
        (void)wb_fail_allocation(0);
        wb_free(read);
        if (status == WB_OK) break;
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_true(n < 100000);
    }
    wb_free(model);
}

/* The same for saving, less often: each time there is a file. */
static void without_memory_nothing_is_saved(void **state) {
    const format_row *f = *state;
    wb_layer *model = wb_chain(wb_dense(2, 3), wb_dropout(.p = 0.1));
    for (int64_t n = 1;; n += 13) {
        (void)wb_fail_allocation(n);
        const wb_status status = wb_save(path_of(f->file), model);
        (void)wb_fail_allocation(0);
        if (status == WB_OK) break;
        assert_int_equal(wb_take_error(NULL, 0), WB_ERROR_MEMORY);
        assert_true(n < 100000);
    }
    wb_free(model);
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest single[] = {
        TEST(deep_texts_are_refused),
        TEST(the_tree_is_that_of_flux_state),
        TEST(every_wrong_byte_is_survived),
    };
    ADD_TESTS(&tests, single);
    ADD_ROWS(&tests, texts, a_text_is_read);
    ADD_ROWS(&tests, wrong_texts, a_wrong_text_is_refused);
    ADD_ROWS(&tests, numbers, a_number_is_written_as_it_is_read);
    ADD_ROWS(&tests, formats, random_models_come_back);
    ADD_ROWS(&tests, formats, all_ties_come_back);
    ADD_ROWS(&tests, formats, what_has_no_name_is_not_made);
    ADD_ROWS(&tests, formats, several_models_have_their_structures);
    ADD_ROWS(&tests, formats, without_memory_there_is_an_error);
    ADD_ROWS(&tests, formats, without_memory_nothing_is_saved);
    return run_test_list("models/test_structure", &tests, make_folder, drop_folder);
}
