/* Folders of Hugging Face's, and models in several files. What `transformers` itself saves, and its
 * results, are in tests/formats/peers_language.py. */
#include <sys/stat.h>
#include <weber/language.h>
#include <weber/metrics.h>

#include "models/model_files.h"

static void write_text(const char *name, const char *text) {
    write_file(path_of(name), text, strlen(text));
}

static const char llama_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": 11, \"hidden_size\": 8, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
    "\"intermediate_size\": 6, \"rms_norm_eps\": 1e-5%s}";

static void write_config(const char *more) {
    char text[2000];
    (void)mkdir(path_of("llama"), 0777);
    snprintf(text, sizeof text, llama_config, more);
    write_text("llama/config.json", text);
}

static wb_array *numbers(int64_t a, int64_t b) { return wb_normal(WB_F32, a, b); }

/* PyTorch's Linear(in, out) has Weber's sizes (in, out). */
static void write_weights(const char *name) {
    const wb_named arrays[] = {
        {"model.embed_tokens.weight", numbers(8, 11)},
        {"model.layers.0.input_layernorm.weight", wb_ones(WB_F32, 8)},
        {"model.layers.0.self_attn.q_proj.weight", numbers(8, 8)},
        {"model.layers.0.self_attn.k_proj.weight", numbers(8, 4)},
        {"model.layers.0.self_attn.v_proj.weight", numbers(8, 4)},
        {"model.layers.0.self_attn.o_proj.weight", numbers(8, 8)},
        {"model.layers.0.post_attention_layernorm.weight", wb_ones(WB_F32, 8)},
        {"model.layers.0.mlp.gate_proj.weight", numbers(8, 6)},
        {"model.layers.0.mlp.up_proj.weight", numbers(8, 6)},
        {"model.layers.0.mlp.down_proj.weight", numbers(6, 8)},
        {"model.norm.weight", wb_ones(WB_F32, 8)},
        {"lm_head.weight", numbers(8, 11)},
    };
    assert_int_equal(wb_save_make(path_of(name), sizeof arrays / sizeof *arrays, arrays), WB_OK);
}

static void a_folder_is_a_model(void **state) {
    (void)state;
    write_config("");
    write_weights("llama/model.safetensors");
    wb_layer *model = wb_load_model(path_of("llama"), NULL);
    if (!model) fail_msg("%s", wb_error_message());
    wb_file *file = wb_open(path_of("llama"));
    wb_array *gate = wb_record_array(
        file, wb_record_get(wb_file_root(file), "model.layers.0.mlp.gate_proj.weight"));
    wb_array *taken = wb_get(model, "layers.2.feed_forward.layers.1.layers.1.weight");
    assert_true(wb_approx(taken, wb_transpose(gate), 0, 0, NULL, 0));
    int32_t tokens[9] = {1, 2};
    assert_int_equal(wb_generate(model, 2, tokens, .most = 9), 9);
    /* what is saved is made again, with its settings */
    assert_int_equal(wb_save(path_of("ours.bson"), model), WB_OK);
    wb_layer *again = wb_load_model(path_of("ours.bson"), NULL);
    wb_array *x = wb_from(WB_I32, tokens, 9);
    assert_true(wb_approx(wb_apply(again, x), wb_apply(model, x), 0, 0, NULL, 0));
    wb_free(again), wb_free(file), wb_free(model);
    assert_null(wb_load_model(path_of("llama"), "modle"));
    assert_error(WB_ERROR_ARGUMENT, "the key must be NULL or \"model\", got \"modle\"");
}

typedef struct config_row {
    const char *name, *more; /* members of config.json after those above */
    wb_status status;
    const char *message;
} config_row;

static const config_row configs[] = {
    {"quantised", ", \"quantization_config\": {\"bits\": 4}", WB_ERROR_UNSUPPORTED,
     "models with quantization_config cannot be made"},
    {"an unknown activation", ", \"hidden_act\": \"xielu\"", WB_ERROR_UNSUPPORTED,
     "models with the activation xielu cannot be made"},
    {"unknown positions", ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}",
     WB_ERROR_UNSUPPORTED, "models with rotary positions of the type yarn cannot be made"},
    {"a text for a number", ", \"rope_theta\": \"10000\"", WB_ERROR_FORMAT,
     "rope_theta must be a number, but is a text"},
    {"a real for an integer", ", \"mlp_bias\": 0.5", WB_ERROR_FORMAT,
     "mlp_bias must be a bool, but is a number"},
    {"heads that do not fit", ", \"tie_word_embeddings\": true, \"head_dim\": 6", WB_ERROR_SHAPE,
     "is (8, 8) in the file"},
    {"a bad factor", ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": -1}",
     WB_ERROR_FORMAT, "factor must be positive, but is -1"},
    {"no factor", ", \"rope_scaling\": {\"type\": \"linear\"}", WB_ERROR_FORMAT,
     ": factor is missing"},
    {"no length",
     ", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 1, "
     "\"high_freq_factor\": 4}",
     WB_ERROR_FORMAT, "original_max_position_embeddings is missing"},
    {"a text for an object", ", \"rope_scaling\": \"linear\"", WB_ERROR_FORMAT,
     "rope_scaling must be an object, but is a text"},
    {"no base", ", \"rope_theta\": 0", WB_ERROR_FORMAT, "rope_theta must be positive, but is 0"},
    {"a model that is larger than its file", ", \"head_dim\": 1000000000000", WB_ERROR_SHAPE,
     "the model has at least 32000000000136 numbers, but the weights 536"},
    {"biases that the file lacks", ", \"mlp_bias\": true, \"auto_map\": {\"AutoModel\": \"x.y\"}",
     WB_ERROR_ARGUMENT, "layers.2.feed_forward.layers.1.layers.1.bias"},
};

static void a_config_that_does_not_fit(void **state) {
    const config_row *r = *state;
    write_config(r->more);
    write_weights("llama/model.safetensors");
    assert_null(wb_load_model(path_of("llama"), NULL));
    assert_error(r->status, r->message);
}

static void strange_folders(void **state) {
    (void)state;
    (void)mkdir(path_of("empty"), 0777);
    assert_null(wb_load_model(path_of("empty"), NULL));
    assert_error(WB_ERROR_IO, "config.json: cannot be opened");
    assert_null(wb_open(path_of("empty")));
    assert_error(WB_ERROR_IO, "the folder must have model.safetensors or pytorch_model.bin");
    write_text("empty/config.json", "{\"architectures\": [\"MambaForCausalLM\"]}");
    assert_null(wb_load_model(path_of("empty"), NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "must be one of GPT2LMHeadModel, ");
    write_text("empty/config.json", "{\"architectures\": \"x\"}");
    assert_null(wb_load_model(path_of("empty"), NULL));
    assert_error(WB_ERROR_FORMAT, "must be a list that begins with a text, but is a text");
    write_text("empty/config.json",
               "{\"architectures\": [\"GPT2Model\"], \"scale_attn_weights\": false}");
    assert_null(wb_load_model(path_of("empty"), NULL));
    assert_error(WB_ERROR_UNSUPPORTED, "models with scale_attn_weights = false cannot be made");
    write_text("empty/config.json", "{\"architectures\": [\"BertModel\"]}");
    assert_int_equal(wb_save_named(path_of("empty/model.safetensors"), {"a", wb_ones(WB_F32, 2)}),
                     WB_OK);
    assert_null(wb_load_model(path_of("empty"), NULL));
    assert_error(WB_ERROR_FORMAT,
                 "a BertModel must have the array bert.embeddings.word_embeddings.weight");
}

/* ---- several files ---- */

static void an_index_is_one_file(void **state) {
    (void)state;
    wb_array *a = wb_normal(WB_F32, 3, 2), *b = wb_normal(WB_F32, 4);
    assert_int_equal(wb_save_named(path_of("a.safetensors"), {"x.a", a}), WB_OK);
    assert_int_equal(wb_save_named(path_of("b.safetensors"), {"x.b", b}), WB_OK);
    write_text("m.safetensors.index.json",
               "\n {\"metadata\": {\"total_size\": 40}, \"weight_map\": "
               "{\"x.a\": \"a.safetensors\", \"x.b\": "
               "\"b.safetensors\"}}");
    wb_file *file = wb_open(path_of("m.safetensors.index.json"));
    if (!file) fail_msg("%s", wb_error_message());
    wb_array *first = wb_record_array(file, wb_record_get(wb_file_root(file), "x.a"));
    wb_array *second = wb_record_array(file, wb_record_get(wb_file_root(file), "x.b"));
    wb_free(file); /* the arrays hold it */
    assert_true(wb_approx(first, a, 0, 0, NULL, 0));
    assert_true(wb_approx(second, b, 0, 0, NULL, 0));
}

typedef struct index_row {
    const char *name, *text, *message;
} index_row;

static const index_row indices[] = {
    {"no map", "{\"weight_map\": [1]}", "weight_map must be an object, but is a list"},
    {"a number for a name", "{\"weight_map\": {\"a\": 1}}",
     "offset 16: the file of a tensor must be a text, but is an integer"},
    {"a name with a zero byte", "{\"weight_map\": {\"a\": \"x\\u0000\"}}",
     "the file of a tensor must be a text, but is a text with a zero byte"},
    {"another folder", "{\"weight_map\": {\"a\": \"../a.safetensors\"}}",
     "\"../a.safetensors\" must be the name of a file beside the index"},
    {"its folder", "{\"weight_map\": {\"a\": \"..\"}}", "must be the name of a file"},
    {"itself", "{\"weight_map\": {\"a\": \"m.index.json\"}}", "an index must not name an index"},
    {"a tensor that is not there", "{\"weight_map\": {\"b\": \"one.safetensors\"}}",
     "offset 16: \"b\" must be a tensor in "},
    {"a tensor twice", "{\"weight_map\": {\"a\": \"one.safetensors\", \"a\": \"one.safetensors\"}}",
     "twice"},
    {"no JSON", "{\"weight_map\"", "m.index.json, offset "},
};

static void an_index_that_is_wrong(void **state) {
    const index_row *r = *state;
    assert_int_equal(wb_save_named(path_of("one.safetensors"), {"a", wb_ones(WB_F32, 2)}), WB_OK);
    write_text("m.index.json", r->text);
    assert_null(wb_open(path_of("m.index.json")));
    assert_error(WB_ERROR_FORMAT, r->message);
}

static void in_memory_nothing_is_beside(void **state) {
    (void)state;
    static const char text[] = "{\"weight_map\": {\"a\": \"one.safetensors\"}}";
    assert_null(wb_open_memory("m.index.json", text, sizeof text - 1, NULL, NULL));
    assert_error(WB_ERROR_FORMAT, "in memory there are no files beside the index");
}

int main(void) {
    static test_list tests;
    const struct CMUnitTest all[] = {
        TEST(a_folder_is_a_model),
        TEST(strange_folders),
        TEST(an_index_is_one_file),
        TEST(in_memory_nothing_is_beside),
    };
    ADD_TESTS(&tests, all);
    ADD_ROWS(&tests, configs, a_config_that_does_not_fit);
    ADD_ROWS(&tests, indices, an_index_that_is_wrong);
    return run_test_list("models/test_hugging_face", &tests, make_folder, drop_folder);
}
