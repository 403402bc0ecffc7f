/* A folder of Hugging Face's: the input is config.json, a zero byte, and the index of two files,
 * which have the arrays of a small GPT-2, Llama and BERT. What is made can be applied; what is not
 * made is an error. */
#include <string.h>
#include <sys/stat.h>

#include "fuzz_path.h"

enum { VOCABULARY = 7, FEATURES = 4, HIDDEN = 6, POSITIONS = 5 };

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(in_folder(name), "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
}

#define A(name, ...)                                                                               \
    { name, wb_normal(WB_F32, __VA_ARGS__) }
#define LINEAR(name, in, out) A(name ".weight", in, out), A(name ".bias", out)
#define NORM(name)            A(name ".weight", FEATURES), A(name ".bias", FEATURES)

static void write_arrays(void) {
    wb_scope_open();
    const wb_named first[] = {
        A("transformer.wte.weight", FEATURES, VOCABULARY),
        A("transformer.wpe.weight", FEATURES, POSITIONS),
        NORM("transformer.h.0.ln_1"),
        NORM("transformer.h.0.ln_2"),
        NORM("transformer.ln_f"),
        LINEAR("transformer.h.0.attn.c_attn", 3 * FEATURES, FEATURES),
        LINEAR("transformer.h.0.attn.c_proj", FEATURES, FEATURES),
        LINEAR("transformer.h.0.mlp.c_fc", HIDDEN, FEATURES),
        LINEAR("transformer.h.0.mlp.c_proj", FEATURES, HIDDEN),
        A("model.embed_tokens.weight", FEATURES, VOCABULARY),
        A("model.layers.0.input_layernorm.weight", FEATURES),
        A("model.layers.0.post_attention_layernorm.weight", FEATURES),
        A("model.layers.0.self_attn.q_proj.weight", FEATURES, FEATURES),
        A("model.layers.0.self_attn.k_proj.weight", FEATURES, FEATURES / 2),
    };
    const wb_named second[] = {
        A("model.layers.0.self_attn.v_proj.weight", FEATURES, FEATURES / 2),
        A("model.layers.0.self_attn.o_proj.weight", FEATURES, FEATURES),
        A("model.layers.0.mlp.gate_proj.weight", FEATURES, HIDDEN),
        A("model.layers.0.mlp.up_proj.weight", FEATURES, HIDDEN),
        A("model.layers.0.mlp.down_proj.weight", HIDDEN, FEATURES),
        A("model.norm.weight", FEATURES),
        A("lm_head.weight", FEATURES, VOCABULARY),
        A("bert.embeddings.word_embeddings.weight", FEATURES, VOCABULARY),
        A("bert.embeddings.position_embeddings.weight", FEATURES, POSITIONS),
        A("bert.embeddings.token_type_embeddings.weight", FEATURES, 2),
        NORM("bert.embeddings.LayerNorm"),
    };
    DEMAND(wb_save_make(in_folder("a.safetensors"), sizeof first / sizeof *first, first) == WB_OK);
    DEMAND(wb_save_make(in_folder("b.safetensors"), sizeof second / sizeof *second, second) ==
           WB_OK);
    (void)wb_scope_close();
}

static void remove_folder(void) {
    static const char *const names[] = {"a.safetensors", "b.safetensors", "config.json",
                                        "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)unlink(in_folder(names[i]));
    (void)rmdir(folder);
}

static void prepare(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/weber-fuzz-XXXXXX");
    if (!mkdtemp(folder)) abort();
    write_arrays();
    (void)atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!*folder) prepare();
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    const size_t config = end ? (size_t)(end - data) : size;
    write_bytes("config.json", data, config);
    write_bytes("model.safetensors.index.json", end ? end + 1 : data, end ? size - config - 1 : 0);
    wb_clear_error();
    wb_scope_open();
    wb_layer *model = wb_load_model(folder, NULL);
    DEMAND((model == NULL) == wb_failed());
    if (model) {
        wb_array *y = wb_apply(model, wb_from(WB_I32, ((int32_t[]){1, 2, 3}), 3));
        DEMAND((y && wb_eval(y) == WB_OK) || wb_failed());
        wb_free(model);
    }
    wb_clear_error();
    (void)wb_end_token(folder);
    wb_clear_error();
    (void)wb_scope_close();
    wb_clear_error();
    return 0;
}
