/* Adapters in PEFT's folders. What PEFT itself writes and computes is in
 * tests/formats/peers_language.py. */
#include <sys/stat.h>
#include <weber/language.h>
#include <weber/lora.h>
#include <weber/ops.h>

#include "base/memory.h"
#include "models/model_files.h"

static wb_layer *model_of(void) {
    wb_seed(4);
    return wb_llama(.vocabulary = 9, .features = 4, .layers = 2, .heads = 2, .hidden = 6);
}

static wb_array *results(wb_layer *model) {
    static const int32_t ids[] = {1, 8, 0, 3};
    return wb_apply(model, wb_from(WB_I32, ids, 4, 1));
}

static bool equal(wb_array *a, wb_array *b) { return wb_approx(a, b, 1e-6, 1e-7, NULL, 0); }

/* Adapters whose B is not zero. */
static wb_layer *adapted(const char *target) {
    wb_layer *model = model_of();
    assert_int_equal(wb_lora(model, .rank = 2, .alpha = 3, .targets = {target}), WB_OK);
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        if (p.is_trainable)
            assert_int_equal(wb_set(model, p.path, wb_add_number(p.array, 0.25)), WB_OK);
    return model;
}

static void there_and_back(void **state) {
    (void)state;
    static const char *const targets[] = {"*", "*.q_proj", "layers.2", "layers.5"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        wb_layer *model = adapted(targets[i]), *again = model_of();
        assert_int_equal(wb_lora_save(path_of("adapter"), model), WB_OK);
        assert_int_equal(wb_lora_load(path_of("adapter"), again), WB_OK);
        assert_true(equal(results(again), results(model)));
        assert_int_equal(wb_parameter_count(again), wb_parameter_count(model));
        assert_int_equal(wb_lora_load(path_of("adapter"), again), WB_OK); /* in their place */
        assert_true(equal(results(again), results(model)));
        wb_free(model), wb_free(again);
    }
}

static void all_adapters_are_replaced(void **state) {
    (void)state;
    wb_layer *model = adapted("*.q_proj"), *other = adapted("*.k_proj");
    assert_int_equal(wb_lora_save(path_of("adapter"), model), WB_OK);
    assert_int_equal(wb_lora_load(path_of("adapter"), other), WB_OK);
    assert_true(equal(results(other), results(model)));
    assert_int_equal(wb_parameter_count(other), wb_parameter_count(model));
    wb_free(model), wb_free(other);
}

static void a_model_by_itself(void **state) {
    (void)state;
    wb_layer *dense = wb_dense(3, 2), *again;
    assert_int_equal(wb_lora(dense, .rank = 1, .targets = {"*"}), WB_OK);
    assert_int_equal(wb_set(dense, "adapter.b", wb_ones(WB_F32, 2, 1)), WB_OK);
    assert_int_equal(wb_lora_save(path_of("adapter"), dense), WB_OK);
    again = wb_dense(3, 2, .given_weight = wb_get(dense, "weight"));
    assert_int_equal(wb_lora_load(path_of("adapter"), again), WB_OK);
    wb_array *x = wb_normal(WB_F32, 3, 4);
    assert_true(equal(wb_apply(again, x), wb_apply(dense, x)));
    wb_free(dense), wb_free(again);
}

/* What PEFT would write for a Llama: names of its modules. */
static void write_adapter(const char *config, const wb_named *arrays, int64_t count) {
    (void)mkdir(path_of("peft"), 0777);
    write_file(path_of("peft/adapter_config.json"), config, strlen(config));
    assert_int_equal(wb_save_make(path_of("peft/adapter_model.safetensors"), count, arrays), WB_OK);
}

#define MODULE "base_model.model.model.layers.1.self_attn.q_proj"
static void names_of_hugging_face(void **state) {
    (void)state;
    wb_array *a = wb_normal(WB_F32, 4, 2), *b = wb_normal(WB_F32, 2, 4);
    const wb_named arrays[] = {{MODULE ".lora_A.weight", a}, {MODULE ".lora_B.weight", b}};
    static const struct {
        const char *more;
        double scale;
    } rows[] = {{"", 3}, {", \"use_rslora\": true", 4.242640687}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char config[200];
        snprintf(config, sizeof config, "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 6%s}",
                 rows[i].more);
        write_adapter(config, arrays, 2);
        wb_layer *model = model_of(), *by_hand = model_of();
        assert_int_equal(wb_lora_load(path_of("peft"), model), WB_OK);
        wb_array *low = wb_matmul(wb_transpose(b), wb_transpose(a));
        static const char path[] = "layers.3.attention.q_proj.weight";
        low = wb_mul_number(low, rows[i].scale);
        assert_int_equal(wb_set(by_hand, path, wb_add(wb_get(by_hand, path), low)), WB_OK);
        assert_true(wb_approx(results(model), results(by_hand), 1e-5, 1e-5, NULL, 0));
        wb_free(model), wb_free(by_hand);
    }
}

static void what_is_refused(void **state) {
    (void)state;
    wb_array *a = wb_normal(WB_F32, 4, 2), *b = wb_normal(WB_F32, 2, 4);
    const wb_named good[] = {{MODULE ".lora_A.weight", a}, {MODULE ".lora_B.weight", b}},
                   half[] = {{MODULE ".lora_A.weight", a}},
                   stray[] = {good[0], good[1], {"base_model.model.lm_head.lora_embedding_A", a}},
                   whole[] = {{MODULE ".lora_A.weight", wb_cast(a, WB_I32)}, good[1]},
                   wrong[] = {{MODULE ".lora_A.weight", a}, {MODULE ".lora_B.weight", a}};
#define CONFIG(more) "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 6" more "}"
    const struct {
        const char *config;
        const wb_named *arrays;
        int64_t count;
        wb_status status;
        const char *text;
    } rows[] = {
        {"{\"peft_type\": \"IA3\"}", good, 2, WB_ERROR_FORMAT, "peft_type must be \"LORA\""},
        {CONFIG(", \"use_dora\": true"), good, 2, WB_ERROR_FORMAT,
         "adapters with use_dora are not read"},
        {CONFIG(", \"modules_to_save\": [\"lm_head\"]"), good, 2, WB_ERROR_FORMAT,
         "adapters with modules_to_save are not read"},
        {CONFIG(", \"bias\": \"all\""), good, 2, WB_ERROR_FORMAT,
         "biases beside adapters are not read"},
        {"{\"peft_type\": \"LORA\", \"r\": 0, \"lora_alpha\": 6}", good, 2, WB_ERROR_FORMAT,
         "r must be a positive integer"},
        {"{\"peft_type\": \"LORA\", \"r\": 2}", good, 2, WB_ERROR_FORMAT,
         "lora_alpha must be a number"},
        {"{\"peft_type\": \"LORA\", \"r\": 3, \"lora_alpha\": 6}", good, 2, WB_ERROR_SHAPE,
         "layers.3.attention.q_proj: r is 3 in adapter_config.json, but A is (2, 4)"},
        {CONFIG(", \"use_rslora\": \"yes\""), good, 2, WB_ERROR_FORMAT,
         "use_rslora must be true or false"},
        {CONFIG(""), whole, 2, WB_ERROR_DTYPE, "must be of a floating type, but is i32"},
        {CONFIG(""), half, 1, WB_ERROR_FORMAT,
         "the adapter of layers.3.attention.q_proj has no lora_B"},
        {CONFIG(""), stray, 3, WB_ERROR_FORMAT,
         "lora_embedding_A is no adapter of a Dense layer that the model has"},
        {CONFIG(""), wrong, 2, WB_ERROR_SHAPE,
         "layers.3.attention.q_proj: the adapter's A (2, 4) and B (2, 4) do not fit the weight "
         "(4, 4)"},
        {CONFIG(""), (wb_named[]){{"x", a}}, 1, WB_ERROR_FORMAT,
         "x is no adapter of a Dense layer that the model has"},
        {CONFIG(", \"use_dora\": false, \"rank_pattern\": {}, \"modules_to_save\": null"), good, 2,
         WB_OK, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = model_of();
        const int64_t numbers = wb_parameter_count(model);
        write_adapter(rows[i].config, rows[i].arrays, rows[i].count);
        assert_int_equal(wb_lora_load(path_of("peft"), model), rows[i].status);
        if (rows[i].status == WB_OK) {
            assert_true(wb_parameter_count(model) < numbers);
        } else {
            assert_error(rows[i].status, rows[i].text);
            assert_int_equal(wb_parameter_count(model), numbers);
        }
        wb_free(model);
    }
}

static void mistakes(void **state) {
    (void)state;
    wb_layer *model = model_of();
    (void)wb_lora_save(path_of("adapter"), model);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora_save: Chain has no adapters");
    (void)wb_lora_load(path_of("nowhere"), model);
    assert_error(WB_ERROR_IO, "nowhere/adapter_config.json");
    (void)wb_lora_load(NULL, model);
    assert_error(WB_ERROR_ARGUMENT, "wb_lora_load: the path is NULL");
    assert_int_equal(wb_lora(model, .rank = 1, .targets = {"layers.2"}), WB_OK);
    assert_int_equal(wb_lora(model, .rank = 2, .targets = {"layers.3"}), WB_OK);
    (void)wb_lora_save(path_of("adapter"), model);
    assert_error(WB_ERROR_ARGUMENT, "all adapters must have one rank and alpha");
    static const char scale[] = "layers.2.attention.q_proj.adapter.scale";
    assert_int_equal(wb_set(model, scale, wb_scalar(WB_F32, INFINITY)), WB_OK);
    (void)wb_lora_save(path_of("adapter"), model);
    assert_error(WB_ERROR_ARGUMENT, "alpha / rank of layers.2.attention.q_proj is inf");
    assert_int_equal(wb_set(model, scale, wb_scalar(WB_F32, 1.5)), WB_OK);
    write_file(path_of("plain"), "x", 1);
    (void)wb_lora_save(path_of("plain/x"), model);
    assert_error(WB_ERROR_ARGUMENT, "all adapters must have one rank and alpha");
    wb_free(model);
    model = adapted("*.q_proj");
    (void)wb_lora_save(path_of("plain/x"), model);
    assert_error(WB_ERROR_IO, "plain/x: the folder cannot be made: Not a directory");
    wb_free(model);
}

/* Each call fails as a whole, or does all of it. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    wb_layer *model = model_of();
    wb_array *before = results(model);
    const int64_t numbers = wb_parameter_count(model);
    enum { ADD, SAVE, REMOVE, LOAD, MERGE, DONE };
    for (int step = ADD, n = 1; step < DONE; n++) {
        (void)wb_fail_allocation(n);
        const wb_status status =
            step == ADD      ? wb_lora(model, .rank = 1, .targets = {"*.q_proj", "layers.5"})
            : step == SAVE   ? wb_lora_save(path_of("adapter"), model)
            : step == REMOVE ? wb_lora_remove(model)
            : step == LOAD   ? wb_lora_load(path_of("adapter"), model)
                             : wb_lora_merge(model);
        (void)wb_fail_allocation(0);
        if (status != WB_OK) {
            assert_error(WB_ERROR_MEMORY, "");
            const bool has_adapters = step == SAVE || step == REMOVE || step == MERGE;
            assert_int_equal(wb_parameter_count(model) < numbers, has_adapters);
            continue;
        }
        assert_true(equal(results(model), before)); /* B is zero */
        step++, n = 0;
    }
    wb_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(there_and_back),
        TEST(all_adapters_are_replaced),
        TEST(a_model_by_itself),
        TEST(names_of_hugging_face),
        TEST(what_is_refused),
        TEST(mistakes),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("models/test_lora_files", tests, make_folder, drop_folder);
}
