/* wb_load, wb_load_from and wb_state: what goes where, and what is refused. */
#include <unistd.h>

#include <weber/state.h>

#include "layers/layer.h"
#include "support/numbers.h"
#include "support/support.h"

static char path[64];

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/weber-load-%ld.bson", (long)getpid());
    return 0;
}

static int drop_path(void **state) {
    (void)state;
    return unlink(path);
}

/* All arrays of the model are value. */
static wb_array *fill(void *user, const char *where, wb_array *x) {
    (void)where;
    return wb_full_make(wb_dtype_of(x), *(const double *)user, wb_ndim(x), wb_sizes(x));
}

static wb_layer *filled(wb_layer *model, double value) {
    assert_int_equal(wb_walk(fill, &value, model), WB_OK);
    return model;
}

static void assert_all(wb_layer *model, const char *where, double value) {
    wb_array *x = wb_get(model, where);
    assert_true(
        wb_approx(x, wb_full_make(wb_dtype_of(x), value, wb_ndim(x), wb_sizes(x)), 0, 0, NULL, 0));
}

/* ---- both ways in: a file, and another model ---- */

typedef struct way {
    const char *name;
    wb_status (*load)(wb_layer *to, wb_layer *from, wb_load_desc desc);
} way;

static wb_status by_file(wb_layer *to, wb_layer *from, wb_load_desc desc) {
    if (wb_save(path, from) != WB_OK) return wb_error_status();
    desc.path = path, desc.model = to;
    return wb_load_make(desc);
}

static wb_status by_model(wb_layer *to, wb_layer *from, wb_load_desc desc) {
    return wb_load_from(to, from, .filter = desc.filter, .layers = desc.layers, .user = desc.user,
                        .partial = desc.partial);
}

static wb_status by_state(wb_layer *to, wb_layer *from, wb_load_desc desc) {
    wb_file *state = wb_state(from);
    const wb_status status = wb_load_from(to, state, .filter = desc.filter, .layers = desc.layers,
                                          .user = desc.user, .partial = desc.partial);
    wb_free(state);
    return status;
}

static wb_status by_open_file(wb_layer *to, wb_layer *from, wb_load_desc desc) {
    if (wb_save(path, from) != WB_OK) return wb_error_status();
    wb_file *file = wb_open(path);
    const wb_status status = wb_load_from(to, file, .filter = desc.filter, .layers = desc.layers,
                                          .user = desc.user, .partial = desc.partial);
    wb_free(file);
    return status;
}

static const way ways[] = {{"by a file", by_file},
                           {"by a model", by_model},
                           {"by a state", by_state},
                           {"by an open file", by_open_file}};
enum { WAYS = sizeof ways / sizeof *ways };

/* acceptance L1 */
static void arrays_are_copied_settings_are_not(void **state) {
    const way *w = *state;
    wb_layer *from = filled(wb_chain(wb_dense(2, 3, wb_relu), wb_dropout(.p = 0.5)), 7);
    wb_layer *to = filled(wb_chain(wb_dense(2, 3, wb_tanh), wb_dropout(.p = 0.25)), 1);
    char text[200];
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_all(to, "layers.1.weight", 7);
    assert_all(to, "layers.1.bias", 7);
    assert_int_equal(wb_show_text(to, text, sizeof text), WB_OK);
    assert_non_null(strstr(text, "tanh"));
    assert_non_null(strstr(text, "0.25"));
    assert_all(filled(from, 8), "layers.1.weight", 8); /* copied: */
    assert_all(to, "layers.1.weight", 7);
    wb_free(to), wb_free(from);
}

/* acceptance L3 */
static void running_statistics_are_copied_modes_are_not(void **state) {
    const way *w = *state;
    wb_layer *from = wb_chain(wb_batchnorm(2)), *to = wb_chain(wb_batchnorm(2, wb_relu));
    assert_int_equal(wb_train_mode(from), WB_OK);
    assert_non_null(wb_apply(from, wb_from(WB_F32, ((const float[]){1, 2, 3, 4, 5, 6}), 2, 3)));
    assert_int_equal(wb_test_mode(to), WB_OK);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_values(wb_get(to, "layers.1.μ"), 1e-6, 0.3, 0.4);
    assert_values(wb_get(to, "layers.1.σ²"), 1e-6, 1.3, 1.3);
    assert_int_equal(wb_get_layer(to, "layers.1")->mode_, WB_MODE_TEST);
    wb_free(to), wb_free(from);
}

static void another_structure_is_refused(void **state) {
    const way *w = *state;
    wb_layer *two = wb_chain(wb_dense(2, 2), wb_dense(2, 2));
    wb_layer *one = filled(wb_chain(wb_dense(2, 2)), 1);
    assert_int_equal(w->load(one, two, (wb_load_desc){.start_ = 0}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "the model has no array for");
    assert_all(one, "layers.1.weight", 1);
    assert_int_equal(w->load(two, one, (wb_load_desc){.start_ = 0}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "layers.2.weight");
    assert_int_equal(w->load(one, two, (wb_load_desc){.partial = true}), WB_OK);
    wb_free(two), wb_free(one);
}

static int warnings;
static char warning[400];
static void keep_warning(void *context, wb_log_level level, const char *line) {
    (void)context;
    if (level != WB_LOG_WARN) return;
    warnings++;
    snprintf(warning, sizeof warning, "%s", line);
}

/* By a name that is misspelt: a bias that a file of arrays lacks may be one that the model there
 * was made without. */
static void a_bias_that_becomes_zeros_is_told(void **state) {
    (void)state;
    wb_layer *tree = wb_tree_named({"weight", wb_ones(WB_F32, 2, 2)}, {"bais", wb_ones(WB_F32, 2)});
    wb_layer *model = filled(wb_dense(2, 2), 3);
    char file[80];
    snprintf(file, sizeof file, "/tmp/weber-misspelt-%ld.safetensors", (long)getpid());
    assert_int_equal(wb_save(file, tree), WB_OK);
    assert_int_equal(wb_load(file, model), WB_ERROR_ARGUMENT);
    wb_clear_error();
    warnings = 0;
    wb_log_to(keep_warning, NULL);
    assert_int_equal(wb_load(file, model, .partial = true), WB_OK);
    wb_log_to(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, ".safetensors: the file has no bias, which becomes zeros, and "
                                    "no place of the model takes bais"));
    assert_all(model, "bias", 0);
    assert_int_equal(unlink(file), 0);
    wb_free(model), wb_free(tree);
}

static void other_sizes_are_refused_with_both(void **state) {
    const way *w = *state;
    wb_layer *from = wb_chain(wb_dense(2, 3), wb_dense(3, 4));
    wb_layer *to = filled(wb_chain(wb_dense(2, 3), wb_dense(3, 5)), 1);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "layers.2.weight is (4, 3) in the ");
    assert_all(to, "layers.1.weight", 1);
    wb_free(to), wb_free(from);
}

static bool is_second(void *user, const char *where) {
    ++*(int *)user;
    return strncmp(where, "layers.2.", 9) == 0;
}

static void a_filter_says_what_takes_part(void **state) {
    const way *w = *state;
    int calls = 0;
    wb_layer *from = filled(wb_chain(wb_dense(5, 3), wb_dense(3, 4)), 7);
    wb_layer *to = filled(wb_chain(wb_dense(2, 3), wb_dense(3, 4)), 1);
    assert_int_equal(w->load(to, from, (wb_load_desc){.filter = is_second, .user = &calls}), WB_OK);
    assert_true(calls >= 4);
    assert_all(to, "layers.1.weight", 1);
    assert_all(to, "layers.2.weight", 7);
    wb_free(to), wb_free(from);
}

/* A layer norm takes no part; where a source does not say what its layers are, the one at path. */
typedef struct leaving_out {
    const char *source_path;
    int unknown, known;
} leaving_out;

static bool is_no_norm(void *user, const wb_load_layer *layer) {
    leaving_out *l = user;
    assert_non_null(layer->path);
    if (layer->type) l->known++;
    if (layer->type) return strcmp(layer->type, "LayerNorm") != 0;
    assert_true(layer->is_source);
    l->unknown++;
    return strcmp(layer->path, l->source_path) != 0;
}

typedef struct alignment {
    const char *name, *from, *to, *left_out; /* in the source, by its path */
    const char *path;                        /* that gets the arrays of the last Dense */
    const char *message;                     /* or the error */
} alignment;

static const alignment alignments[] = {
    {"a longer one", "Chain(Dense(2 => 3), Dense(3 => 4))",
     "Chain(Dense(2 => 3), LayerNorm(3), Dense(3 => 4))", "", "layers.3.weight", NULL},
    {"a shorter one", "Chain(Dense(2 => 3), LayerNorm(3), Dense(3 => 4))",
     "Chain(Dense(2 => 3), Dense(3 => 4))", "layers.2", "layers.2.weight", NULL},
    {"both have some", "Chain(LayerNorm(2), Dense(2 => 3), Dense(3 => 4))",
     "Chain(Dense(2 => 3), LayerNorm(3), LayerNorm(3), Dense(3 => 4))", "layers.1",
     "layers.4.weight", NULL},
    {"a chain in another place", "Chain(Dense(2 => 2), Chain(LayerNorm(2), Dense(2 => 4)))",
     "Chain(LayerNorm(2), Dense(2 => 2), Chain(Dense(2 => 4)))", "layers.2.layers.1",
     "layers.3.layers.1.weight", NULL},
    {"layers without arrays are counted", "Chain(Dense(2 => 3), Dropout(0.5), Dense(3 => 4))",
     "Chain(LayerNorm(2), Dense(2 => 3), Dropout(0.1), Dense(3 => 4))", "", "layers.4.weight",
     NULL},
    {"names", "Chain(a = Dense(2 => 3), n = LayerNorm(3), b = Dense(3 => 4))",
     "Chain(a = Dense(2 => 3), b = Dense(3 => 4))", "layers.n", "layers.b.weight", NULL},
    {"none is left", "Chain(Dense(2 => 3))", "Chain(LayerNorm(2), Dense(2 => 3), Dense(3 => 4))",
     "", NULL, "fewer layers of layers in the "},
    {"one too many", "Chain(Dense(2 => 3), LayerNorm(3), Dense(3 => 4))", "Chain(Dense(2 => 3))",
     "layers.2", NULL, "the model has no array for layers.3."},
    {"other sizes", "Chain(LayerNorm(2), Dense(2 => 3))", "Chain(Dense(2 => 4))", "layers.1", NULL,
     "is (3, 2) in the "},
};

static void layers_that_take_part_meet_in_order(void **state) {
    const way *w = *state;
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        const alignment *row = &alignments[i];
        leaving_out user = {.source_path = row->left_out};
        wb_layer *from = filled(wb_parse(row->from), 7), *to = filled(wb_parse(row->to), 1);
        const wb_status status =
            w->load(to, from, (wb_load_desc){.layers = is_no_norm, .user = &user});
        if ((status == WB_OK) != !row->message) fail_msg("%s: %s", row->name, wb_error_message());
        if (row->message) assert_error(status, row->message);
        if (row->path) assert_all(to, row->path, 7);
        assert_true(user.known > 0);
        if (w->load == by_model) assert_int_equal(user.unknown, 0);
        wb_free(from), wb_free(to);
    }
}

static void an_absent_bias_is_zeros(void **state) {
    const way *w = *state;
    wb_layer *with = filled(wb_dense(2, 3), 1), *without = filled(wb_dense(2, 3, .bias = false), 7);
    assert_int_equal(w->load(with, without, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_all(with, "weight", 7);
    assert_all(with, "bias", 0);
    assert_int_equal(w->load(without, with, (wb_load_desc){.start_ = 0}), WB_OK);
    (void)filled(with, 2);
    assert_int_equal(w->load(without, with, (wb_load_desc){.start_ = 0}), WB_ERROR_SHAPE);
    assert_error(WB_ERROR_SHAPE, "bias is (3) in the ");
    assert_all(without, "weight", 7);
    wb_free(with), wb_free(without);
}

static void types_are_the_models_own(void **state) {
    const way *w = *state;
    wb_layer *from = filled(wb_dense(2, 3, .dtype = WB_F64), 0.5), *to = wb_dense(2, 3);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_int_equal(wb_dtype_of(wb_get(to, "weight")), WB_F32);
    assert_all(to, "weight", 0.5);
    wb_free(to), wb_free(from);
}

/* ---- ties ---- */

static wb_layer *transposed(void) {
    wb_layer *first = wb_dense(2, 3, .bias = false);
    wb_array *weight = wb_transpose(wb_get(first, "weight"));
    return wb_chain(first, wb_dense(.given_weight = weight, .bias = false));
}

static void tied_places_take_equal_arrays(void **state) {
    const way *w = *state;
    wb_layer *from = wb_chain(wb_dense(2, 3, .bias = false), wb_dense(3, 2, .bias = false));
    wb_layer *to = filled(transposed(), 1);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "layers.1.weight and layers.2.weight are one array");
    assert_all(to, "layers.2.weight", 1);
    wb_array *second = wb_transpose(wb_get(from, "layers.1.weight"));
    assert_int_equal(wb_set(from, "layers.2.weight", wb_copy(second)), WB_OK);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_same_bits(wb_get(to, "layers.2.weight"), second, "the transpose");
    assert_int_equal(wb_parameter_count(wb_get_layer(to, "layers.1")), 6);
    assert_int_equal(wb_set(to, "layers.1.weight", wb_get(to, "layers.1.weight")), WB_OK);
    (void)filled(to, 3); /* still one array */
    assert_all(to, "layers.2.weight", 3);
    wb_free(to), wb_free(from);
}

static void a_layer_in_two_places_takes_both(void **state) {
    const way *w = *state;
    wb_layer *shared = wb_dense(2, 2), *to = wb_chain(shared, wb_keep_layer(shared));
    wb_layer *from = filled(wb_chain(wb_dense(2, 2), wb_dense(2, 2)), 4);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_OK);
    assert_all(to, "layers.2.bias", 4);
    assert_int_equal(wb_set(from, "layers.2.bias", wb_ones(WB_F32, 2)), WB_OK);
    assert_int_equal(w->load(to, from, (wb_load_desc){.start_ = 0}), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "layers.1.bias and layers.2.bias are one array");
    wb_free(to), wb_free(from);
}

/* ---- files ---- */

static void a_key_says_where(void **state) {
    (void)state;
    wb_layer *from = filled(wb_chain(wb_dense(2, 2)), 5), *to = wb_chain(wb_dense(2, 2));
    wb_layer *first = wb_dense(2, 2), *best = filled(wb_clone(from), 6);
    assert_int_equal(wb_save_named(path, {"net", from}, {"best", best}), WB_OK);
    assert_int_equal(wb_load(path, to, .key = "best"), WB_OK);
    assert_all(to, "layers.1.weight", 6);
    assert_int_equal(wb_load(path, first, .key = "net.layers.1"), WB_OK);
    assert_all(first, "weight", 5);
    assert_int_equal(wb_load(path, to), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "best");
    assert_int_equal(wb_load(path, to, .key = "worst"), WB_ERROR_ARGUMENT);
    assert_error(WB_ERROR_ARGUMENT, "worst");
    wb_free(to), wb_free(from), wb_free(first), wb_free(best);
}

/* As Flux's manual has it; the model goes on in between, on a device. */
static void a_state_is_saved_and_loaded(void **state) {
    (void)state;
    const wb_device *device = wb_get_device("checked", 0);
    wb_layer *shared = filled(wb_dense(2, 2), 5);
    wb_layer *model = wb_chain(shared, wb_dropout(.p = 0.5), wb_keep_layer(shared));
    assert_int_equal(wb_move(device, model), WB_OK);
    wb_file *s = wb_state(model);
    (void)filled(model, 6);
    assert_int_equal(wb_save_named(path, {"model_state", s}, {"now", model}), WB_OK);
    wb_free(s);
    assert_int_equal(wb_load(path, model, .key = "model_state"), WB_OK);
    assert_int_equal(wb_move(wb_cpu_device(), model), WB_OK);
    assert_all(model, "layers.3.weight", 5);
    wb_file *file = wb_open(path);
    wb_array *now = wb_record_array(file, wb_record_get(wb_file_root(file), "now.layers.1.weight"));
    assert_true(wb_item(wb_sum(wb_cpu(now))) == 24);
    wb_free(file), wb_free(model);
    (void)wb_device_sync(device);
}

/* ---- wb_state ---- */

static const wb_record *get(const wb_file *state, const char *where) {
    const wb_record *r = wb_record_get(wb_file_root(state), where);
    assert_non_null(r);
    return r;
}

/* acceptance L5 */
static void a_state_has_the_arrays_and_no_functions(void **state) {
    (void)state;
    wb_layer *tree = wb_tree(wb_scalar(WB_F32, 1), wb_fn(wb_tanh));
    wb_file *s = wb_state(tree);
    assert_int_equal(wb_record_kind_of(wb_file_root(s)), WB_RECORD_LIST);
    assert_int_equal(wb_record_count(wb_file_root(s)), 2);
    assert_true(wb_item(wb_record_array(s, get(s, "1"))) == 1);
    assert_int_equal(wb_record_count(get(s, "2")), 0);
    assert_true(wb_record_kind_of(get(s, "2")) != WB_RECORD_ARRAY);
    wb_free(s), wb_free(tree);
}

static void a_state_is_the_models_own_arrays(void **state) {
    (void)state;
    wb_layer *model = wb_chain(wb_dense(2, 3));
    wb_array *weight = wb_get(model, "layers.1.weight");
    wb_file *s = wb_state(model);
    assert_ptr_equal(wb_record_array(s, get(s, "layers.1.weight")), weight);
    (void)filled(model, 2); /* does not reach it */
    assert_ptr_equal(wb_record_array(s, get(s, "layers.1.weight")), weight);
    wb_free(model);
    assert_int_equal(wb_count(wb_record_array(s, get(s, "layers.1.weight"))), 6);
    wb_free(s);
}

int main(void) {
    static const struct {
        const char *name;
        void (*test)(void **state);
    } tests_of_ways[] = {
#define OF_WAYS(f) {#f, f}
        OF_WAYS(arrays_are_copied_settings_are_not),
        OF_WAYS(running_statistics_are_copied_modes_are_not),
        OF_WAYS(another_structure_is_refused),
        OF_WAYS(other_sizes_are_refused_with_both),
        OF_WAYS(a_filter_says_what_takes_part),
        OF_WAYS(layers_that_take_part_meet_in_order),
        OF_WAYS(an_absent_bias_is_zeros),
        OF_WAYS(types_are_the_models_own),
        OF_WAYS(tied_places_take_equal_arrays),
        OF_WAYS(a_layer_in_two_places_takes_both),
    };
    enum { OF_WAYS_COUNT = sizeof tests_of_ways / sizeof *tests_of_ways };
    struct CMUnitTest tests[WAYS * OF_WAYS_COUNT + 5];
    int count = 0;
    for (int t = 0; t < OF_WAYS_COUNT; t++)
        for (int w = 0; w < WAYS; w++) {
            tests[count] = TEST_ROW(&ways[w], tests_of_ways[t].test);
            tests[count++].name = tests_of_ways[t].name;
        }
    tests[count++] = (struct CMUnitTest)TEST(a_bias_that_becomes_zeros_is_told);
    tests[count++] = (struct CMUnitTest)TEST(a_key_says_where);
    tests[count++] = (struct CMUnitTest)TEST(a_state_is_saved_and_loaded);
    tests[count++] = (struct CMUnitTest)TEST(a_state_has_the_arrays_and_no_functions);
    tests[count++] = (struct CMUnitTest)TEST(a_state_is_the_models_own_arrays);
    return _cmocka_run_group_tests("models/test_load", tests, (size_t)count, make_path, drop_path);
}
