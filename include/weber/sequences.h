/* weber/sequences.h: layers over sequences: embeddings and positions, attention, transformers,
 * recurrent layers.
 *
 * All other layers: weber/layers.h. */
#ifndef WEBER_SEQUENCES_H
#define WEBER_SEQUENCES_H

#include "initialisers.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- embeddings and positions ---- */

typedef struct wb_embedding_desc {
    WB_START_MEMBER;
    int64_t in, out; /* words and features; required without given_weight */
    /* a word whose features are always zeros (one-hot input still uses W's column); default, or
     * negative: none. In files it counts from 1, as in Flux */
    int64_t padding_idx WB_DEFAULT(-1);
    wb_init *init; /* default wb_normal_init */
    wb_dtype dtype;
    wb_array *given_weight; /* (out, in), instead of init */
} wb_embedding_desc;

/* Features of words: x (...) of integers from 0 to in - 1 gives (out, ...), column x of W (out,
 * in). An array of reals or bools is one-hot: x (in, N) gives W x. A word out of range is an error
 * when the result is computed. Fails with WB_ERROR_SHAPE on one-hot input whose first size is not
 * in, with WB_ERROR_ARGUMENT if padding_idx is not below in. (Flux) */
#define wb_embedding(...) WB_MAKE(wb_embedding_make, embedding, __VA_ARGS__)
WB_API wb_layer *wb_embedding_make(wb_embedding_desc desc);

typedef struct wb_position_embedding_desc {
    WB_START_MEMBER;
    int64_t in, out; /* number of positions, and features; required without given_weight */
    wb_init *init;   /* default: normal with standard deviation 0.02, as in GPT-2 */
    wb_dtype dtype;
    wb_array *given_weight; /* (out, in), instead of init */
} wb_position_embedding_desc;

/* Learnt positions: y = x + the first columns of W, one for each position; used after an embedding
 * of words. wb_position_embedding(256, 64).
 *
 * x  (out, length, ...)     W  (out, in)     y  (out, length, ...)
 *
 * Fails with WB_ERROR_SHAPE if x has other features or more than `in` positions. (Gehring and
 * others 2017) */
#define wb_position_embedding(...)                                                                 \
    WB_MAKE(wb_position_embedding_make, position_embedding, __VA_ARGS__)
WB_API wb_layer *wb_position_embedding_make(wb_position_embedding_desc desc);

typedef struct wb_token_embedding_desc {
    WB_START_MEMBER;
    int64_t in, out;             /* words and features; required */
    int64_t positions;           /* the longest text; required */
    int64_t types WB_DEFAULT(2); /* of words */
    double dropout;              /* in training; default 0 */
    double eps;                  /* of the norm; default 1e-5 */
    wb_init *init;               /* default: those of Embedding and PositionEmbedding */
    wb_dtype dtype;
} wb_token_embedding_desc;

/* y = dropout(norm(words(x) + types(t) + positions)), as in BERT (Devlin et al. 2018): Embeddings
 * `words` and `types`, a PositionEmbedding `positions`, a LayerNorm and a Dropout. x (length, ...)
 * of integers, y (out, length, ...). wb_apply_many takes x, then t, integers with x's sizes
 * (without them all are 0), then a mask, bool with x's sizes, false where a text has ended; the
 * mask is returned after y, as the attention of blocks takes it. */
#define wb_token_embedding(...) WB_MAKE(wb_token_embedding_make, token_embedding, __VA_ARGS__)
WB_API wb_layer *wb_token_embedding_make(wb_token_embedding_desc desc);

typedef struct wb_patch_embedding_desc {
    WB_START_MEMBER;
    int64_t patch[3]; /* one size for each spatial dimension of x; required without given_weight */
    int64_t in, out;  /* channels and features; required without given_weight */
    int64_t image[3]; /* spatial sizes that x must have; default: any multiples of the patch */
    wb_init *init;    /* of the weight; default wb_glorot_uniform */
    wb_dtype dtype;
    wb_array *given_weight; /* (patch..., in, out), instead of init */
    wb_array *given_bias;   /* (out), instead of zeros */
} wb_patch_embedding_desc;

/* An image as a sequence of tokens: y has a token W x + b for each patch of the image, where x is
 * the patch; along the width first, then along the height. It is a convolution whose stride is its
 * kernel, which is not flipped. wb_patch_embedding({16, 16}, 3, 768). (Dosovitskiy et al. 2020)
 *
 * x  (W, [H, [D,]] in, N)     W  (patch..., in, out)     b  (out)     y  (out, tokens, N)
 *
 * Fails with WB_ERROR_SHAPE on an x of other channels or sizes than `image`, or that patches do not
 * cover, and with WB_ERROR_ARGUMENT on an image that they do not cover. */
#define wb_patch_embedding(...) WB_MAKE(wb_patch_embedding_make, patch_embedding, __VA_ARGS__)
WB_API wb_layer *wb_patch_embedding_make(wb_patch_embedding_desc desc);

typedef struct wb_class_token_desc {
    WB_START_MEMBER;
    int64_t features; /* required without given_token */
    wb_init *init;    /* default: normal with standard deviation 0.02 */
    wb_dtype dtype;
    wb_array *given_token; /* (features), instead of init */
} wb_class_token_desc;

/* Puts a learnt token before those of each sequence: x (features, tokens, ...) gives (features,
 * tokens + 1, ...). wb_class_token(768). (Devlin et al. 2018) Fails with WB_ERROR_SHAPE on other
 * features. */
#define wb_class_token(...) WB_MAKE(wb_class_token_make, class_token, __VA_ARGS__)
WB_API wb_layer *wb_class_token_make(wb_class_token_desc desc);

/* The first token of each sequence: x (features, tokens, ...) gives (features, ...). Fails with
 * WB_ERROR_SHAPE on an x without tokens. */
WB_API wb_layer *wb_first_token(void);

/* Fixed positions: y = x + the columns of wb_sinusoidal, one for each position (weber/ops.h;
 * Vaswani et al. 2017; Lux). x and y (features, length, ...); features even, at least 4. */
WB_API wb_layer *wb_sinusoidal_positions(void);

typedef struct wb_rotary_positions_desc {
    WB_START_MEMBER;
    int64_t heads WB_DEFAULT(1);
    double base WB_DEFAULT(10000); /* above 0 */
} wb_rotary_positions_desc;

/* wb_rotary as a layer (weber/ops.h; Su et al. 2021): x (d heads, length, ...), d even; for q and k
 * in an attention of your own. MultiHeadAttention has it as a setting, .rotary.
 * wb_rotary_positions(.heads = 4). */
#define wb_rotary_positions(...) WB_MAKE(wb_rotary_positions_make, rotary_positions, __VA_ARGS__)
WB_API wb_layer *wb_rotary_positions_make(wb_rotary_positions_desc desc);

typedef enum wb_bag_reduction { WB_BAG_MEAN, WB_BAG_SUM, WB_BAG_MAX } wb_bag_reduction;

typedef struct wb_embedding_bag_desc {
    WB_START_MEMBER;
    int64_t in, out; /* words and features; required without given_weight */
    int reduction;   /* wb_bag_reduction; default mean */
    wb_init *init;   /* default wb_normal_init */
    wb_dtype dtype;
    wb_array *given_weight; /* (out, in), instead of init */
} wb_embedding_bag_desc;

/* The mean, sum or largest of the features of the words in a bag: x (n) of integers from 0 to in -
 * 1 is one bag and gives (out); x (n, N) has a bag in each column and gives (out, N).
 * wb_apply_many(l, 2, {x, at}) splits x (n) into N bags, where at (N) has the position in x of each
 * bag's first word: integers from 0 to n that start with 0 and do not decrease. An empty bag gives
 * 0, as in PyTorch. Reals or bools (in, n) are one bag of one-hot words. wb_embedding_bag(26, 4,
 * WB_BAG_SUM). In Flux positions count from 1.
 *
 * Fails with WB_ERROR_SHAPE on other sizes, with WB_ERROR_ARGUMENT on invalid positions (if their
 * numbers are computed already). A word out of range is an error when the result is computed. */
#define wb_embedding_bag(...) WB_MAKE(wb_embedding_bag_make, embedding_bag, __VA_ARGS__)
WB_API wb_layer *wb_embedding_bag_make(wb_embedding_bag_desc desc);

/* ---- attention ---- */

typedef struct wb_multi_head_attention_desc {
    WB_START_MEMBER;
    int64_t in;         /* features of q; required */
    int64_t k_in, v_in; /* features of k and v; default in, k_in */
    int64_t qk, v;      /* sums over the heads, divisible by heads; default in, qk */
    int64_t out;        /* default in */
    int64_t heads WB_DEFAULT(8);
    int64_t kv_heads; /* of k and v, divides heads; default heads (Ainslie et al. 2023) */
    bool bias;        /* of the four Dense layers */
    bool out_bias WB_DEFAULT(true); /* with bias: of out_proj, too */
    double dropout;                 /* of the attention weights, in training; default 0 */
    bool causal;    /* a query sees its own position and those before, as in wb_attention */
    int64_t window; /* a query sees keys less than so many positions away; default 0: all */
    double rotary;  /* base of rotary positions of q and k, usually 10000; default 0: none */
    /* of wb_rotary: factor, low, high, length */
    double rotary_factor, rotary_low, rotary_high;
    int64_t rotary_length;
    wb_init *init;  /* default wb_glorot_uniform */
    wb_dtype dtype; /* default f32 */
} wb_multi_head_attention_desc;

/* wb_attention between Dense layers q_proj, k_proj, v_proj (qk or v features, of which k_proj and
 * v_proj have those of kv_heads of the heads) and out_proj:
 *
 *     y = out_proj(attention(q_proj(q), k_proj(k), v_proj(v)))      (Vaswani et al. 2017; Flux)
 *
 * wb_multi_head_attention(64, .heads = 4). wb_apply takes one array as q, k and v; wb_apply_many
 * takes (q), (q, kv), (q, k, v) or (q, k, v, bias), and after these, optionally, a mask (bool);
 * bias and mask are as in wb_attention. Unlike Flux's layer it returns only y, so it can be used in
 * a chain. With .rotary = 10000 each head's q and k pass through wb_rotary before their product, as
 * in Llama.
 *
 * q  (in, queries, ...)   k  (k_in, keys, ...)   v  (v_in, keys, ...)   y  (out, queries, ...) */
#define wb_multi_head_attention(...)                                                               \
    WB_MAKE(wb_multi_head_attention_make, multi_head_attention, __VA_ARGS__)
WB_API wb_layer *wb_multi_head_attention_make(wb_multi_head_attention_desc desc);

typedef struct wb_transformer_block_desc {
    WB_START_MEMBER;
    int64_t in;                  /* features; required */
    int64_t heads WB_DEFAULT(8); /* of each attention, divides in */
    int64_t hidden;              /* features inside the feed-forward part; default 4 times in */
    wb_activation *activation;   /* of the feed-forward part; default wb_relu */
    double dropout;  /* of attention weights, inside feed_forward, after each part; default 0 */
    bool causal;     /* a position sees itself and those before */
    bool norm_first; /* norm before each part, as in GPT-2, instead of after each sum */
    bool bias WB_DEFAULT(true); /* of Dense layers and norms */
    bool rms;                   /* RMSNorms instead of LayerNorms */
    double rotary;              /* base of rotary positions in `attention`; default 0: none */
    double eps;                 /* of the norms, above 0; default 1e-5 */
    wb_init *init;              /* of Dense layers; default wb_glorot_uniform */
    wb_dtype dtype;             /* default f32 */
    /* instead of a MultiHeadAttention, and of Dense, Dropout and Dense; they belong to the block,
     * also on failure */
    wb_layer *attention, *feed_forward;
} wb_transformer_block_desc;

/* One block of a transformer; put several into a chain. A block has two or three parts; each part F
 * computes
 *
 *     y = norm(x + dropout(F(x))), or with norm_first y = x + dropout(F(norm(x)))
 *
 * The parts are `attention` (a MultiHeadAttention of x with itself, or the layer that is given); in
 * a decoder `cross_attention` (queries from x, keys and values from memory); and `feed_forward`, a
 * chain of Dense, Dropout and Dense, or the layer that is given. The norms are norm1, norm2 and, in
 * a decoder, norm3, LayerNorms or RMSNorms; `dropout` is a Dropout. With .causal = true an encoder
 * is GPT's block. (Vaswani et al. 2017; torch.nn.TransformerEncoderLayer and
 * TransformerDecoderLayer: docs/files.md.)
 *
 * x  (in, length, ...)     memory  (in, keys, ...)     y  (in, length, ...)
 *
 * wb_transformer_encoder(64, .heads = 4). With wb_apply_many an encoder takes x and, optionally, a
 * bias and a mask for its attention; a decoder takes x, memory and, optionally, a bias and a mask
 * for its cross_attention (weber/ops.h, wb_attention). The inputs besides x are returned after y,
 * for the next block. Fails with WB_ERROR_ARGUMENT if heads do not divide `in`, on hidden or
 * activation beside a given feed_forward, and on causal or rotary beside a given attention. */
#define wb_transformer_encoder(...)                                                                \
    WB_MAKE(wb_transformer_encoder_make, transformer_block, __VA_ARGS__)
#define wb_transformer_decoder(...)                                                                \
    WB_MAKE(wb_transformer_decoder_make, transformer_block, __VA_ARGS__)
WB_API wb_layer *wb_transformer_encoder_make(wb_transformer_block_desc desc);
WB_API wb_layer *wb_transformer_decoder_make(wb_transformer_block_desc desc);

/* ---- recurrent layers ---- */

typedef struct wb_recurrent_desc {
    WB_START_MEMBER;
    int64_t in, out;           /* required without given_wi */
    wb_activation *activation; /* RNN only; default wb_tanh; wb_identity for none */
    bool bias WB_DEFAULT(true);
    bool return_state;              /* not for cells: also return the last states */
    bool lengths;                   /* not for cells: x comes with an array of lengths */
    wb_init *init, *init_recurrent; /* of wi, wh; default wb_glorot_uniform */
    wb_dtype dtype;
    wb_array *given_wi, *given_wh, *given_bias; /* see below */
    wb_array *given_wh_candidate;               /* GRUv3 only: (out, out) */
    /* a second bias, added to wh h (PyTorch's bias_hh); not for GRUv3; default false */
    bool bias_h;
    wb_array *given_bias_h; /* instead of zeros */
    /* cells only: the initial state of a sequence is a parameter, as in Flux until 0.14 */
    bool state0;
    wb_array *given_state0, *given_cell0; /* h, and c of LSTM: (out, 1), instead of zeros */
    /* LSTM only: initial bias of the forget gate σ(g_1); default 0; Flux 0.11 to 0.14 had 1 */
    double forget_bias;
} wb_recurrent_desc;

/* Recurrent layers over x (in, time) or (in, time, N), which return y (out, time[, N]). The initial
 * state is zeros, or given: wb_apply_many(lstm, 3, {x, h, c}), each (out) or (out, N). The results
 * are y, then the lengths if they came with x (see below), then, with return_state, the last state
 * h and, for an LSTM, c. wb_lstm(3, 5). Let g = wi x + wh h + bias, where bias_h, if any, is added
 * to wh h, and let g_0, g_1, ... be its blocks of `out` rows; with G blocks (RNN 1, LSTM 4, GRU 3)
 * the sizes are wi (G out, in), wh (G out, out), bias and bias_h (G out):
 *
 *     RNN    h' = activation(g)
 *     LSTM   c' = σ(g_1) c + σ(g_0) tanh(g_2), h' = σ(g_3) tanh(c')
 *     GRU    r = σ(g_0), z = σ(g_1), n = tanh(wi_2 x + bias_2 + r (wh_2 h)), h' = (1 - z) n + z h
 *     GRUv3  the same, but n = tanh(wi_2 x + bias_2 + wh_candidate (r h)); wh_2 is not used
 *
 * With .lengths = true the sequences of a batch have different lengths: lengths (N), integers,
 * comes after x and before any states, and is returned after y: wb_apply_many(lstm, 2, {x,
 * lengths}, 2, {y, lengths}). The steps of sequence n from lengths[n] (counted from 0) are padding,
 * which has no effect on results and gradients: y is 0 there, and the last state is the state after
 * step lengths[n] - 1. A length above time counts as time, one below 0 as 0; with length 0 the last
 * state is the initial one. In a chain, lengths bypass layers of one array, so that a second
 * .lengths layer gets them. (PyTorch's pack_padded_sequence, with sequences in any order.)
 *
 * A cell computes one step: from x (in) or (in, N) and the states it returns the next states, of
 * which the first is the output. (Hochreiter and Schmidhuber 1997; Cho et al. 2014; Flux 0.16.)
 * Arrays have Flux's paths, cell.Wi, cell.Wh and cell.bias, in GRUs cell.b; Weber's own are
 * cell.bias_h and, for cells, state0 and cell0. For PyTorch's see docs/files.md.
 *
 * Fails with WB_ERROR_SHAPE on input, states or given arrays of other sizes, and with
 * WB_ERROR_ARGUMENT on a setting that this kind of layer or cell does not have. */
#define wb_rnn(...)         WB_MAKE(wb_rnn_make, recurrent, __VA_ARGS__)
#define wb_lstm(...)        WB_MAKE(wb_lstm_make, recurrent, __VA_ARGS__)
#define wb_gru(...)         WB_MAKE(wb_gru_make, recurrent, __VA_ARGS__)
#define wb_gru_v3(...)      WB_MAKE(wb_gru_v3_make, recurrent, __VA_ARGS__)
#define wb_rnn_cell(...)    WB_MAKE(wb_rnn_cell_make, recurrent, __VA_ARGS__)
#define wb_lstm_cell(...)   WB_MAKE(wb_lstm_cell_make, recurrent, __VA_ARGS__)
#define wb_gru_cell(...)    WB_MAKE(wb_gru_cell_make, recurrent, __VA_ARGS__)
#define wb_gru_v3_cell(...) WB_MAKE(wb_gru_v3_cell_make, recurrent, __VA_ARGS__)
WB_API wb_layer *wb_rnn_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_lstm_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_gru_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_gru_v3_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_rnn_cell_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_lstm_cell_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_gru_cell_make(wb_recurrent_desc desc);
WB_API wb_layer *wb_gru_v3_cell_make(wb_recurrent_desc desc);

/* A cell that keeps its states from call to call, as Flux's recurrent layers did until 0.14:
 * wb_recur(wb_lstm_cell(3, 5)). x (in) or (in, N) is one step and gives (out[, N]); x (in, N, time)
 * is a whole sequence and gives (out, N, time). The gradient of a loss goes through all calls in
 * that loss; from one training step to the next, only the numbers of the states are kept. wb_reset
 * starts a new sequence, with the cell's state0 or zeros.
 *
 * The states have the paths "hidden" and "hidden2"; they are not saved, and a copy of the model
 * starts a new sequence. A cell is any layer that takes x, or x and its states, and returns its
 * next states, at most two; the first is the output. Fails with WB_ERROR_SHAPE if the states have
 * another batch size. */
WB_API wb_layer *wb_recur(wb_layer *cell);

typedef struct wb_recurrence_desc {
    WB_START_MEMBER;
    wb_layer *cell;    /* required; it belongs to the result, also on failure */
    bool return_state; /* the last states are returned after y */
    /* sequences have different lengths, as in wb_lstm. The cell is called with zeros for the
     * padding, so its derivative must be finite there. The last state of a sequence of length 0 is
     * the given state, or 0, even if the cell itself starts with another one */
    bool lengths;
} wb_recurrence_desc;

/* Applies a cell, as for wb_recur, to a sequence: x (in, time) or (in, time, N) gives y (out,
 * time[, N]), as the recurrent layers do with their own cells. The initial state is the cell's own,
 * or given: wb_apply_many(l, 2, {x, h}). wb_recurrence(cell), wb_recurrence(cell, .return_state =
 * true). (Flux 0.16) Fails with WB_ERROR_SHAPE on an x without steps. */
#define wb_recurrence(...) WB_MAKE(wb_recurrence_make, recurrence, __VA_ARGS__)
WB_API wb_layer *wb_recurrence_make(wb_recurrence_desc desc);

/* Two layers over one sequence: backward gets the steps of x in reverse order, its result is
 * reversed again and appended to forward(x) along the first dimension. x (in, time[, N]) gives
 * (out1 + out2, time[, N]). wb_bidirectional(wb_lstm(3, 5), wb_lstm(3, 5)). If both layers have
 * .lengths = true, lengths may come with x: each sequence is then reversed within its length, and
 * lengths is returned after y. (Schuster and Paliwal 1997.) Fails with WB_ERROR_SHAPE on an x
 * without a second dimension. */
WB_API wb_layer *wb_bidirectional(wb_layer *forward, wb_layer *backward);

#ifdef __cplusplus
}
#endif
#endif
