/* weber/language.h: known models of language, made of the layers in weber/sequences.h, and texts
 * from them.
 *
 *     wb_layer *model = wb_load_model("gpt2", NULL);        // a folder of Hugging Face's
 *     wb_layer *small = wb_gpt2(.features = 192, .layers = 6, .heads = 6);
 *     int32_t tokens[100] = {464, 2068}; // two that are given, room for 98
 *     int64_t count = wb_generate(model, 2, tokens, .most = 100, .temperature = 0.8);
 *
 * x  (length, N) of integers, the tokens      y  (vocabulary, length, N), logits of the next token
 *
 * Each model is a chain: an embedding of words, perhaps positions, blocks, a norm, and a Dense that
 * is left out with .head = false; y is then (features, length, N). Dense layers are initialised by
 * wb_glorot_uniform, embeddings by normal numbers with standard deviation 0.02, as in GPT-2, unless
 * .init is given. wb_cache(model, length) keeps keys and values, for texts that are given piece by
 * piece.
 *
 * The makers fail with WB_ERROR_ARGUMENT on sizes that are not positive or do not divide. */
#ifndef WEBER_LANGUAGE_H
#define WEBER_LANGUAGE_H

#include "sequences.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wb_gpt2_desc {
    WB_START_MEMBER;
    int64_t vocabulary WB_DEFAULT(50257); /* tokens */
    int64_t positions WB_DEFAULT(1024);   /* the longest text */
    int64_t features WB_DEFAULT(768);
    int64_t layers WB_DEFAULT(12); /* blocks */
    int64_t heads WB_DEFAULT(12);
    int64_t hidden;             /* of the feed-forward parts; default 4 times features */
    wb_activation *activation;  /* of the feed-forward parts; default wb_gelu */
    double dropout;             /* after the embeddings and in the blocks, in training; default 0 */
    double eps;                 /* of the norms; default 1e-5 */
    bool tied WB_DEFAULT(true); /* the last Dense has the embedding's weight */
    bool head WB_DEFAULT(true); /* there is a last Dense */
    wb_init *init;
    wb_dtype dtype; /* default f32 */
} wb_gpt2_desc;

/* GPT-2 (Radford et al. 2019): learnt positions, blocks with the norms first, biases. wb_gpt2() is
 * the model of 124 million parameters. */
#define wb_gpt2(...) WB_MAKE(wb_gpt2_make, gpt2, __VA_ARGS__)
WB_API wb_layer *wb_gpt2_make(wb_gpt2_desc desc);

typedef struct wb_llama_desc {
    WB_START_MEMBER;
    int64_t vocabulary, features, layers, heads; /* required */
    int64_t kv_heads;                /* of keys and values, divides heads; default heads */
    int64_t head_features;           /* of each head; default features / heads */
    int64_t hidden;                  /* of the feed-forward parts; required */
    wb_activation *activation;       /* of the gates; default wb_swish */
    double eps;                      /* of the norms; default 1e-5 */
    bool bias;                       /* of queries, keys and values, as in Qwen2 */
    bool out_bias;                   /* of the attention's last Dense */
    bool feed_forward_bias;          /* of the feed-forward parts */
    int64_t window;                  /* how far queries see, as in Mistral; default 0: all */
    double rotary WB_DEFAULT(10000); /* base of the positions */
    /* for texts longer than those in training: wb_rotary's factor, low, high and length */
    double rotary_factor, rotary_low, rotary_high;
    int64_t rotary_length;
    bool tied;                  /* the last Dense has the embedding's weight */
    bool head WB_DEFAULT(true); /* there is a last Dense */
    wb_init *init;
    wb_dtype dtype; /* default f32 */
} wb_llama_desc;

/* Llama, Mistral and Qwen2 (Touvron et al. 2023; Jiang et al. 2023; Yang et al. 2024): rotary
 * positions, RMSNorms, which come first, and feed-forward parts with a gate (SwiGLU, Shazeer 2020),
 *
 *     y = down(activation(gate(x)) * up(x))
 *
 * wb_llama(.vocabulary = 32000, .features = 512, .layers = 8, .heads = 8, .hidden = 1376). */
#define wb_llama(...) WB_MAKE(wb_llama_make, llama, __VA_ARGS__)
WB_API wb_layer *wb_llama_make(wb_llama_desc desc);

typedef struct wb_bert_desc {
    WB_START_MEMBER;
    int64_t vocabulary WB_DEFAULT(30522); /* tokens */
    int64_t positions WB_DEFAULT(512);    /* the longest text */
    int64_t types WB_DEFAULT(2);          /* of tokens */
    int64_t features WB_DEFAULT(768);
    int64_t layers WB_DEFAULT(12); /* blocks */
    int64_t heads WB_DEFAULT(12);
    int64_t hidden;            /* of the feed-forward parts; default 4 times features */
    wb_activation *activation; /* of the feed-forward parts; default wb_gelu_erf */
    double dropout;            /* after the embeddings and in the blocks, in training; default 0 */
    double eps;                /* of the norms; default 1e-12 */
    wb_init *init;
    wb_dtype dtype; /* default f32 */
} wb_bert_desc;

/* The encoder of BERT (Devlin et al. 2018): a TokenEmbedding, and blocks in which each token sees
 * all others. y (features, length, N). A batch of texts of different lengths needs a mask, bool
 * (length, N), false behind the end of a shorter text; it is also the second result:
 *
 *     wb_array *y[2];
 *     wb_apply_many(model, 2, (wb_array *[]){x, mask}, 2, y);
 *     wb_apply_many(model, 3, (wb_array *[]){x, types, mask}, 2, y); // types: TokenEmbedding */
#define wb_bert(...) WB_MAKE(wb_bert_make, bert, __VA_ARGS__)
WB_API wb_layer *wb_bert_make(wb_bert_desc desc);

/* ---- texts ---- */

/* Called with each new token; false ends the text. */
typedef bool wb_token_fn(void *user, int32_t token);

typedef struct wb_generate_desc {
    WB_START_MEMBER;
    wb_layer *model;
    int64_t count;                    /* tokens that are given, at least one */
    int32_t *tokens;                  /* room for `most` tokens; the first `count` are given */
    int64_t most;                     /* the longest text, with the given tokens; required */
    double temperature WB_DEFAULT(1); /* logits are divided by it; 0: always the likeliest token */
    int64_t top_k;                    /* of the likeliest tokens alone; default 0: of all */
    double top_p WB_DEFAULT(1);       /* of the likeliest that together have this probability */
    /* logits of tokens that the text has are divided by it if positive, else multiplied
     * (Keskar et al. 2019); 1: no change */
    double repetition WB_DEFAULT(1);
    int64_t end WB_DEFAULT(-1); /* a token that ends the text and belongs to it; negative: none */
    wb_token_fn *each;          /* must not use the model; default NULL */
    void *user;                 /* given to each */
} wb_generate_desc;

/* Continues a text: wb_generate(model, count, tokens, .most = 100, .temperature = 0.8, .top_k =
 * 40). The model takes (length) and gives logits (vocabulary, length); it is used with wb_cache,
 * which is removed at the end. Tokens are drawn from the softmax of the last logits with the
 * thread's random numbers (wb_seed). First `repetition` changes the logits, then temperature, then
 * top_k and top_p leave tokens out (Holtzman et al. 2019); the likeliest always stays. On the CPU a
 * model of f16 or bf16 is ten times slower than wb_f32(model), since each product widens its
 * weights.
 *
 * Returns the length of the text, at most `most`, or -1 with an error: WB_ERROR_ARGUMENT on
 * settings out of range. */
#define wb_generate(...) WB_MAKE(wb_generate_make, generate, __VA_ARGS__)
WB_API int64_t wb_generate_make(wb_generate_desc desc);

/* The token that ends a text, by the folder's generation_config.json or config.json (the first one,
 * if there are several), or by the metadata of a GGUF file; -1 if they name none, and with an error
 * if they cannot be read. For wb_generate's .end. */
WB_API int64_t wb_end_token(const char *folder);

#ifdef __cplusplus
}
#endif

#endif
