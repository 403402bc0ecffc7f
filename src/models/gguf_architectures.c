/* The rows of architectures.h for GGUF: names of llama.cpp's (gguf-py/gguf/constants.py). */
#include <stddef.h>

#include "models/architectures.h"

#define END                                                                                        \
    { NULL, WB_CONFIG_INTEGER, 0 }

/* ---- GPT-2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_gpt2_desc, member) }
static const wb_config_setting gpt2_settings[] = {
    ROW("token_embd.weight", ROWS_OF_ARRAY, vocabulary),
    ROW("position_embd.weight", ROWS_OF_ARRAY, positions),
    ROW("embedding_length", INTEGER, features),
    ROW("block_count", INTEGER, layers),
    ROW("attention.head_count", INTEGER, heads),
    ROW("feed_forward_length", INTEGER, hidden),
    ROW("attention.layer_norm_epsilon", POSITIVE, eps),
    ROW("output.weight", LACKS_ARRAY, tied),
    END,
};
#undef ROW

static const char *const prefixes[] = {"", NULL};

#define LINEAR(from, to)                                                                           \
    {from ".weight -> " to ".weight transpose", NULL}, { from ".bias -> " to ".bias", NULL }
#define NORM(from, to)                                                                             \
    {from ".weight -> " to ".diag.scale", NULL}, { from ".bias -> " to ".diag.bias", NULL }
static const wb_name_row gpt2_names[] = {
    {"token_embd.weight -> layers.1.weight", NULL},
    {"position_embd.weight -> layers.2.weight", NULL},
    NORM("blk.*.attn_norm", "layers.*+4.norm1"),
    NORM("blk.*.ffn_norm", "layers.*+4.norm2"),
    {"blk.*.attn_qkv.weight -> layers.*+4.attention.q_proj.weight transpose part 1/3", NULL},
    {"blk.*.attn_qkv.weight -> layers.*+4.attention.k_proj.weight transpose part 2/3", NULL},
    {"blk.*.attn_qkv.weight -> layers.*+4.attention.v_proj.weight transpose part 3/3", NULL},
    {"blk.*.attn_qkv.bias -> layers.*+4.attention.q_proj.bias part 1/3", NULL},
    {"blk.*.attn_qkv.bias -> layers.*+4.attention.k_proj.bias part 2/3", NULL},
    {"blk.*.attn_qkv.bias -> layers.*+4.attention.v_proj.bias part 3/3", NULL},
    LINEAR("blk.*.attn_output", "layers.*+4.attention.out_proj"),
    LINEAR("blk.*.ffn_up", "layers.*+4.feed_forward.layers.1"),
    LINEAR("blk.*.ffn_down", "layers.*+4.feed_forward.layers.3"),
    NORM("output_norm", "layers.#"),
    {NULL, NULL},
};

/* ---- Llama, Mistral, Qwen2 ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_llama_desc, member) }
static const wb_config_setting llama_settings[] = {
    ROW("token_embd.weight", ROWS_OF_ARRAY, vocabulary),
    ROW("embedding_length", INTEGER, features),
    ROW("block_count", INTEGER, layers),
    ROW("attention.head_count", INTEGER, heads),
    ROW("attention.head_count_kv", INTEGER, kv_heads),
    ROW("attention.key_length", INTEGER, head_features),
    ROW("attention.sliding_window", INTEGER, window),
    ROW("feed_forward_length", INTEGER, hidden),
    ROW("attention.layer_norm_rms_epsilon", POSITIVE, eps),
    ROW("rope.freq_base", POSITIVE, rotary),
    ROW("output.weight", LACKS_ARRAY, tied),
    ROW("blk.0.attn_q.bias", HAS_ARRAY, bias),
    ROW("blk.0.attn_output.bias", HAS_ARRAY, out_bias),
    ROW("blk.0.ffn_gate.bias", HAS_ARRAY, feed_forward_bias),
    {"expert_count", WB_CONFIG_ABSENT, 0},
    END,
};
#undef ROW

static const wb_name_row llama_names[] = {
    {"token_embd.weight -> layers.1.weight", NULL},
    {"blk.*.attn_norm.weight -> layers.*+2.norm1.scale", NULL},
    {"blk.*.ffn_norm.weight -> layers.*+2.norm2.scale", NULL},
    {"blk.*.attn_output.weight -> layers.*+2.attention.out_proj.weight transpose", NULL},
    {"blk.*.attn_output.bias -> layers.*+2.attention.out_proj.bias", "blk.0.attn_output.bias"},
    {"blk.*.attn_*.weight -> layers.*+2.attention.*_proj.weight transpose", NULL},
    {"blk.*.attn_*.bias -> layers.*+2.attention.*_proj.bias", "blk.0.attn_q.bias"},
    {"blk.*.ffn_gate.weight -> layers.*+2.feed_forward.layers.1.layers.1.weight transpose", NULL},
    {"blk.*.ffn_up.weight -> layers.*+2.feed_forward.layers.1.layers.2.weight transpose", NULL},
    {"blk.*.ffn_down.weight -> layers.*+2.feed_forward.layers.2.weight transpose", NULL},
    {"blk.*.ffn_gate.bias -> layers.*+2.feed_forward.layers.1.layers.1.bias",
     "blk.0.ffn_gate.bias"},
    {"blk.*.ffn_up.bias -> layers.*+2.feed_forward.layers.1.layers.2.bias", "blk.0.ffn_up.bias"},
    {"blk.*.ffn_down.bias -> layers.*+2.feed_forward.layers.2.bias", "blk.0.ffn_down.bias"},
    {"output_norm.weight -> layers.#.scale", NULL},
    {WB_GGUF_RATES " ->", WB_GGUF_RATES},
    {NULL, NULL},
};

/* ---- BERT ---- */

#define ROW(name, kind, member)                                                                    \
    { name, WB_CONFIG_##kind, offsetof(wb_bert_desc, member) }
static const wb_config_setting bert_settings[] = {
    ROW("token_embd.weight", ROWS_OF_ARRAY, vocabulary),
    ROW("position_embd.weight", ROWS_OF_ARRAY, positions),
    ROW("token_types.weight", ROWS_OF_ARRAY, types),
    ROW("embedding_length", INTEGER, features),
    ROW("block_count", INTEGER, layers),
    ROW("attention.head_count", INTEGER, heads),
    ROW("feed_forward_length", INTEGER, hidden),
    ROW("attention.layer_norm_epsilon", POSITIVE, eps),
    {"attention.causal", WB_CONFIG_FALSE, 0},
    END,
};
#undef ROW

static const wb_name_row bert_names[] = {
    {"token_embd.weight -> layers.1.words.weight", NULL},
    {"position_embd.weight -> layers.1.positions.weight", NULL},
    {"token_types.weight -> layers.1.types.weight", NULL},
    NORM("token_embd_norm", "layers.1.norm"),
    LINEAR("blk.*.attn_q", "layers.*+2.attention.q_proj"),
    LINEAR("blk.*.attn_k", "layers.*+2.attention.k_proj"),
    LINEAR("blk.*.attn_v", "layers.*+2.attention.v_proj"),
    LINEAR("blk.*.attn_output", "layers.*+2.attention.out_proj"),
    NORM("blk.*.attn_output_norm", "layers.*+2.norm1"),
    LINEAR("blk.*.ffn_up", "layers.*+2.feed_forward.layers.1"),
    LINEAR("blk.*.ffn_down", "layers.*+2.feed_forward.layers.3"),
    NORM("blk.*.layer_output_norm", "layers.*+2.norm2"),
    {NULL, NULL},
};

/* ---- the rows ---- */

#define FAMILY(family, settings_, names_, before_)                                                 \
    .begin = wb_begin_##family, .settings = settings_, .names = names_,                            \
    .embedding = "token_embd.weight", .prefixes = prefixes, .before = before_,                     \
    .layers = offsetof(wb_##family##_desc, layers), .init = offsetof(wb_##family##_desc, init),    \
    .dtype = offsetof(wb_##family##_desc, dtype), .least = wb_least_of_##family,                   \
    .make = wb_make_##family
#define HEAD(family)                                                                               \
    .head = offsetof(wb_##family##_desc, head), .tied = offsetof(wb_##family##_desc, tied),        \
    .head_name = "output.weight"
static const wb_family gpt2 = {FAMILY(gpt2, gpt2_settings, gpt2_names, 3), HEAD(gpt2)};
static const wb_family llama = {FAMILY(llama, llama_settings, llama_names, 1), HEAD(llama),
                                .positions = wb_gguf_rotary, .has_pairs = true};
static const wb_family qwen2 = {FAMILY(llama, llama_settings, llama_names, 1), HEAD(llama),
                                .positions = wb_gguf_rotary};
static const wb_family bert = {FAMILY(bert, bert_settings, bert_names, 1)};

const wb_architecture wb_gguf_architectures[] = {
    {"gpt2", &gpt2, true, NULL},
    {"llama", &llama, true, NULL},
    {"qwen2", &qwen2, true, NULL},
    {"bert", &bert, false, NULL},
};
const int wb_gguf_architecture_count = sizeof wb_gguf_architectures / sizeof *wb_gguf_architectures;
