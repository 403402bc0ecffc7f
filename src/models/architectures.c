/* The rows of architectures.h. */
#include "models/architectures.h"

#include <stddef.h>
#include <weber/ops.h>

#define END                                                                                        \
    { NULL, WB_CONFIG_INTEGER, 0 }
/* What all architectures must not have, since their numbers would be others. */
#define REFUSED                                                                                    \
    {"quantization_config", WB_CONFIG_ABSENT, 0}, { "add_cross_attention", WB_CONFIG_FALSE, 0 }

/* Of matrices with so many columns: their rows outside of the blocks, and in each. */
static double least(int64_t columns, double outside, int64_t layers, double inside) {
    return (double)columns * (outside + (double)layers * inside);
}

/* ---- GPT-2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_gpt2_desc, member) }
static const wb_config_setting gpt2_settings[] = {
    ROW("vocab_size", INTEGER, vocabulary),
    ROW("n_positions", INTEGER, positions),
    ROW("n_embd", INTEGER, features),
    ROW("n_layer", INTEGER, layers),
    ROW("n_head", INTEGER, heads),
    ROW("n_inner", INTEGER, hidden),
    ROW("activation_function", ACTIVATION, activation),
    ROW("resid_pdrop", REAL, dropout),
    ROW("layer_norm_epsilon", POSITIVE, eps),
    ROW("tie_word_embeddings", BOOL, tied),
    {"scale_attn_weights", WB_CONFIG_TRUE, 0},
    {"scale_attn_by_inverse_layer_idx", WB_CONFIG_FALSE, 0},
    REFUSED,
    END,
};
#undef ROW

static const char *const gpt2_prefixes[] = {"transformer.", "", NULL};
static const wb_name_row gpt2_names[] = {
    {"@wte.weight -> layers.1.weight", NULL},
    {"@wpe.weight -> layers.2.weight", NULL},
    {"@h.*.ln_*.weight -> layers.*+4.norm*.diag.scale", NULL},
    {"@h.*.ln_*.bias -> layers.*+4.norm*.diag.bias", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.q_proj.weight part 1/3 along 0", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.k_proj.weight part 2/3 along 0", NULL},
    {"@h.*.attn.c_attn.weight -> layers.*+4.attention.v_proj.weight part 3/3 along 0", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.q_proj.bias part 1/3", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.k_proj.bias part 2/3", NULL},
    {"@h.*.attn.c_attn.bias -> layers.*+4.attention.v_proj.bias part 3/3", NULL},
    {"@h.*.attn.c_proj.* -> layers.*+4.attention.out_proj.*", NULL},
    {"@h.*.mlp.c_fc.* -> layers.*+4.feed_forward.layers.1.*", NULL},
    {"@h.*.mlp.c_proj.* -> layers.*+4.feed_forward.layers.3.*", NULL},
    {"@ln_f.weight -> layers.#.diag.scale", NULL},
    {"@ln_f.bias -> layers.#.diag.bias", NULL},
    {"@h.*.attn.bias ->", "@h.0.attn.bias"}, /* the causal mask */
    {"@h.*.attn.masked_bias ->", "@h.0.attn.masked_bias"},
    {NULL, NULL},
};

void wb_begin_gpt2(wb_architecture_desc *d) { d->gpt2 = WB_DESC(gpt2, .eps = 1e-5); }
double wb_least_of_gpt2(const wb_architecture_desc *d) {
    const wb_gpt2_desc *s = &d->gpt2;
    return least(s->features, (double)s->vocabulary + (double)s->positions, s->layers,
                 (double)s->features + (double)s->hidden);
}
wb_layer *wb_make_gpt2(const wb_architecture_desc *d) { return wb_gpt2_make(d->gpt2); }

/* ---- Llama, Mistral, Qwen2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_llama_desc, member) }
#define LLAMA_SETTINGS                                                                             \
    ROW("vocab_size", INTEGER, vocabulary), ROW("hidden_size", INTEGER, features),                 \
        ROW("num_hidden_layers", INTEGER, layers), ROW("num_attention_heads", INTEGER, heads),     \
        ROW("num_key_value_heads", INTEGER, kv_heads), ROW("head_dim", INTEGER, head_features),    \
        ROW("intermediate_size", INTEGER, hidden), ROW("hidden_act", ACTIVATION, activation),      \
        ROW("rms_norm_eps", POSITIVE, eps), ROW("rope_theta", POSITIVE, rotary),                   \
        ROW("tie_word_embeddings", BOOL, tied), REFUSED
static const wb_config_setting llama_settings[] = {
    LLAMA_SETTINGS, ROW("attention_bias", BOOL, bias), ROW("attention_bias", BOOL, out_bias),
    ROW("mlp_bias", BOOL, feed_forward_bias), END};
static const wb_config_setting mistral_settings[] = {LLAMA_SETTINGS,
                                                     ROW("sliding_window", INTEGER, window), END};
static const wb_config_setting qwen2_settings[] = {
    LLAMA_SETTINGS, {"use_sliding_window", WB_CONFIG_FALSE, 0}, END};
#undef ROW

static const char *const llama_prefixes[] = {"model.", "", NULL};
static const wb_name_row llama_names[] = {
    {"@embed_tokens.weight -> layers.1.weight", NULL},
    {"@layers.*.input_layernorm.weight -> layers.*+2.norm1.scale", NULL},
    {"@layers.*.post_attention_layernorm.weight -> layers.*+2.norm2.scale", NULL},
    {"@layers.*.self_attn.o_proj.weight -> layers.*+2.attention.out_proj.weight transpose", NULL},
    {"@layers.*.self_attn.o_proj.bias -> layers.*+2.attention.out_proj.bias",
     "@layers.0.self_attn.o_proj.bias"},
    {"@layers.*.self_attn.*_proj.weight -> layers.*+2.attention.*_proj.weight transpose", NULL},
    {"@layers.*.self_attn.*_proj.bias -> layers.*+2.attention.*_proj.bias",
     "@layers.0.self_attn.q_proj.bias"},
    {"@layers.*.mlp.gate_proj.weight -> layers.*+2.feed_forward.layers.1.layers.1.weight transpose",
     NULL},
    {"@layers.*.mlp.up_proj.weight -> layers.*+2.feed_forward.layers.1.layers.2.weight transpose",
     NULL},
    {"@layers.*.mlp.down_proj.weight -> layers.*+2.feed_forward.layers.2.weight transpose", NULL},
    {"@layers.*.mlp.gate_proj.bias -> layers.*+2.feed_forward.layers.1.layers.1.bias",
     "@layers.0.mlp.gate_proj.bias"},
    {"@layers.*.mlp.up_proj.bias -> layers.*+2.feed_forward.layers.1.layers.2.bias",
     "@layers.0.mlp.up_proj.bias"},
    {"@layers.*.mlp.down_proj.bias -> layers.*+2.feed_forward.layers.2.bias",
     "@layers.0.mlp.down_proj.bias"},
    {"@norm.weight -> layers.#.scale", NULL},
    {"@layers.*.self_attn.rotary_emb.inv_freq ->", "@layers.0.self_attn.rotary_emb.inv_freq"},
    {NULL, NULL},
};

void wb_begin_llama(wb_architecture_desc *d) {
    d->llama = WB_DESC(llama, .vocabulary = 32000, .eps = 1e-6);
}
static void begin_qwen2(wb_architecture_desc *d) {
    wb_begin_llama(d);
    d->llama.bias = true;
}
double wb_least_of_llama(const wb_architecture_desc *d) {
    const wb_llama_desc *s = &d->llama;
    const bool is_given = s->head_features != 0;
    const double qk = is_given ? (double)s->heads * (double)s->head_features : (double)s->features;
    return least(s->features, (double)s->vocabulary, s->layers, qk + (double)s->hidden);
}
wb_layer *wb_make_llama(const wb_architecture_desc *d) { return wb_llama_make(d->llama); }

/* ---- BERT ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_bert_desc, member) }
static const wb_config_setting bert_settings[] = {
    ROW("vocab_size", INTEGER, vocabulary),
    ROW("max_position_embeddings", INTEGER, positions),
    ROW("type_vocab_size", INTEGER, types),
    ROW("hidden_size", INTEGER, features),
    ROW("num_hidden_layers", INTEGER, layers),
    ROW("num_attention_heads", INTEGER, heads),
    ROW("intermediate_size", INTEGER, hidden),
    ROW("hidden_act", ACTIVATION, activation),
    ROW("hidden_dropout_prob", REAL, dropout),
    ROW("layer_norm_eps", POSITIVE, eps),
    {"is_decoder", WB_CONFIG_FALSE, 0},
    REFUSED,
    END,
};
#undef ROW

static const char *const bert_prefixes[] = {"bert.", "", NULL};
/* gamma and beta: before 2019 */
#define NORM(from, first, to)                                                                      \
    {from ".weight -> " to ".diag.scale", first ".weight"},                                        \
        {from ".bias -> " to ".diag.bias", first ".bias"},                                         \
        {from ".gamma -> " to ".diag.scale", first ".gamma"}, {                                    \
        from ".beta -> " to ".diag.bias", first ".beta"                                            \
    }
#define BLOCK_NORM(from, to)                                                                       \
    NORM("@encoder.layer.*." from, "@encoder.layer.0." from, "layers.*+2." to)
#define LINEAR(from, to)                                                                           \
    {"@encoder.layer.*." from ".weight -> layers.*+2." to ".weight transpose", NULL}, {            \
        "@encoder.layer.*." from ".bias -> layers.*+2." to ".bias", NULL                           \
    }
static const wb_name_row bert_names[] = {
    {"@embeddings.word_embeddings.weight -> layers.1.words.weight", NULL},
    {"@embeddings.position_embeddings.weight -> layers.1.positions.weight", NULL},
    {"@embeddings.token_type_embeddings.weight -> layers.1.types.weight", NULL},
    NORM("@embeddings.LayerNorm", "@embeddings.LayerNorm", "layers.1.norm"),
    {"@embeddings.position_ids ->", "@embeddings.position_ids"},
    LINEAR("attention.self.query", "attention.q_proj"),
    LINEAR("attention.self.key", "attention.k_proj"),
    LINEAR("attention.self.value", "attention.v_proj"),
    LINEAR("attention.output.dense", "attention.out_proj"),
    BLOCK_NORM("attention.output.LayerNorm", "norm1"),
    LINEAR("intermediate.dense", "feed_forward.layers.1"),
    LINEAR("output.dense", "feed_forward.layers.3"),
    BLOCK_NORM("output.LayerNorm", "norm2"),
    /* what comes after the encoder is left out */
    {"@pooler.** ->", "@pooler.dense.weight"},
    {"cls.** ->", "cls.predictions.transform.dense.weight"},
    {NULL, NULL},
};

void wb_begin_bert(wb_architecture_desc *d) { d->bert = WB_DESC(bert, .types = 2); }
double wb_least_of_bert(const wb_architecture_desc *d) {
    const wb_bert_desc *s = &d->bert;
    return least(s->features, (double)s->vocabulary + (double)s->positions + (double)s->types,
                 s->layers, (double)s->features + (double)s->hidden);
}
wb_layer *wb_make_bert(const wb_architecture_desc *d) { return wb_bert_make(d->bert); }

/* ---- the rows ---- */

#define LLAMA(settings_, begin_)                                                                   \
    {                                                                                              \
        .begin = begin_, .settings = settings_, .names = llama_names,                              \
        .embedding = "embed_tokens.weight", .prefixes = llama_prefixes, .before = 1,               \
        .layers = offsetof(wb_llama_desc, layers), .head = offsetof(wb_llama_desc, head),          \
        .tied = offsetof(wb_llama_desc, tied), .init = offsetof(wb_llama_desc, init),              \
        .dtype = offsetof(wb_llama_desc, dtype), .least = wb_least_of_llama,                       \
        .make = wb_make_llama, .head_name = "lm_head.weight", .positions = wb_config_rotary        \
    }
static const wb_family gpt2 = {.begin = wb_begin_gpt2,
                               .settings = gpt2_settings,
                               .names = gpt2_names,
                               .embedding = "wte.weight",
                               .prefixes = gpt2_prefixes,
                               .before = 3,
                               .layers = offsetof(wb_gpt2_desc, layers),
                               .head = offsetof(wb_gpt2_desc, head),
                               .tied = offsetof(wb_gpt2_desc, tied),
                               .init = offsetof(wb_gpt2_desc, init),
                               .dtype = offsetof(wb_gpt2_desc, dtype),
                               .least = wb_least_of_gpt2,
                               .make = wb_make_gpt2,
                               .head_name = "lm_head.weight",
                               .positions = wb_config_positions};
static const wb_family llama = LLAMA(llama_settings, wb_begin_llama);
static const wb_family mistral = LLAMA(mistral_settings, wb_begin_llama);
static const wb_family qwen2 = LLAMA(qwen2_settings, begin_qwen2);
static const wb_family bert = {.begin = wb_begin_bert,
                               .settings = bert_settings,
                               .names = bert_names,
                               .embedding = "embeddings.word_embeddings.weight",
                               .prefixes = bert_prefixes,
                               .before = 1,
                               .layers = offsetof(wb_bert_desc, layers),
                               .init = offsetof(wb_bert_desc, init),
                               .dtype = offsetof(wb_bert_desc, dtype),
                               .least = wb_least_of_bert,
                               .make = wb_make_bert,
                               .positions = wb_config_positions};

const wb_architecture wb_architectures[] = {
    {"GPT2LMHeadModel", &gpt2, true, NULL},
    {"GPT2Model", &gpt2, false, NULL},
    {"LlamaForCausalLM", &llama, true, NULL},
    {"LlamaModel", &llama, false, NULL},
    {"MistralForCausalLM", &mistral, true, NULL},
    {"MistralModel", &mistral, false, NULL},
    {"Qwen2ForCausalLM", &qwen2, true, NULL},
    {"Qwen2Model", &qwen2, false, NULL},
    {"BertModel", &bert, false, NULL},
    {"BertForMaskedLM", &bert, false, "cls"},
    {"BertForPreTraining", &bert, false, "pooler and cls"},
};

const int wb_architecture_count = sizeof wb_architectures / sizeof *wb_architectures;

const wb_named_activation wb_named_activations[] = {
    {"gelu", wb_gelu_erf},  {"gelu_new", wb_gelu}, {"gelu_pytorch_tanh", wb_gelu},
    {"gelu_fast", wb_gelu}, {"relu", wb_relu},     {"silu", wb_swish},
    {"swish", wb_swish},    {"tanh", wb_tanh},     {"sigmoid", wb_sigmoid}};
const int wb_named_activation_count = sizeof wb_named_activations / sizeof *wb_named_activations;
