/* Known models of language: chains of embeddings, blocks and a Dense. */
#include <weber/language.h>
#include <weber/layers.h>
#include <weber/ops.h>

#include "layers/layer.h"

enum { MOST_BLOCKS = 1024, OTHERS = 6 };

/* The layers of a model that is being made. */
typedef struct stack {
    wb_layer *layers[MOST_BLOCKS + OTHERS];
    int64_t count;
} stack;

typedef struct size {
    const char *name;
    int64_t number;
} size;

static bool may_make(const char *function, wb_start start, int64_t blocks, int count,
                     const size *sizes) {
    if (!wb_check_start(function, start)) return false;
    for (int i = 0; i < count; i++)
        if (sizes[i].number <= 0) {
            (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be positive, got %lld", function,
                          sizes[i].name, (long long)sizes[i].number);
            return false;
        }
    if (blocks > 0 && blocks <= MOST_BLOCKS) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: layers must be from 1 to %d, got %lld", function,
                  MOST_BLOCKS, (long long)blocks);
    return false;
}
#define MAY_MAKE(function, start, blocks, ...)                                                     \
    may_make(function, start, blocks, (int)(sizeof((size[]){__VA_ARGS__}) / sizeof(size)),         \
             (size[]){__VA_ARGS__})

static void add(stack *s, wb_layer *layer) { s->layers[s->count++] = layer; }

/* The embedding is small, so that a head with its weight begins with small logits. */
static wb_init *small(wb_init *init) { return init ? init : wb_small_normal; }

/* The chain of what was added; an error begins with the maker's name. */
static wb_layer *finish(stack *s, const char *function, uint64_t errors) {
    wb_layer *chain = wb_chain_make(s->count, s->layers);
    if (!chain) wb_error_prefix(errors, "%s: ", function);
    return chain;
}

/* The chain with a last Dense, which may have the weight of the embedding, turned. */
static wb_layer *with_head(stack *s, const char *function, uint64_t errors, wb_layer *head,
                           bool tied) {
    add(s, head);
    wb_layer *chain = finish(s, function, errors);
    char path[48];
    (void)snprintf(path, sizeof path, "layers.%lld.weight", (long long)s->count);
    if (!chain || !tied ||
        wb_tie(chain, path, wb_transpose(wb_get(chain, "layers.1.weight"))) == WB_OK)
        return chain;
    wb_free(chain);
    return NULL;
}

/* ---- GPT-2 ---- */

wb_layer *wb_gpt2_make(wb_gpt2_desc d) {
    stack s = {.count = 0};
    if (!MAY_MAKE("wb_gpt2", d.start_, d.layers, {"vocabulary", d.vocabulary},
                  {"positions", d.positions}, {"features", d.features}, {"heads", d.heads}))
        return NULL;
    const uint64_t errors = wb_error_count();
    wb_activation *activation = d.activation ? d.activation : wb_gelu;
    add(&s, wb_embedding(d.vocabulary, d.features, .init = small(d.init), .dtype = d.dtype));
    add(&s, wb_position_embedding(d.positions, d.features, .init = d.init, .dtype = d.dtype));
    add(&s, wb_dropout(d.dropout));
    for (int64_t i = 0; i < d.layers; i++)
        add(&s, wb_transformer_encoder(d.features, .heads = d.heads, .hidden = d.hidden,
                                       .activation = activation, .dropout = d.dropout,
                                       .causal = true, .norm_first = true, .eps = d.eps,
                                       .init = d.init, .dtype = d.dtype));
    add(&s, wb_layernorm({d.features}, .eps = d.eps, .dtype = d.dtype));
    if (!d.head) return finish(&s, "wb_gpt2", errors);
    wb_layer *head =
        wb_dense(d.features, d.vocabulary, .bias = false, .init = d.init, .dtype = d.dtype);
    return with_head(&s, "wb_gpt2", errors, head, d.tied);
}

/* ---- Llama ---- */

static wb_layer *gated(const wb_llama_desc *d, wb_activation *activation) {
    wb_layer *gate = wb_dense(d->features, d->hidden, activation, .bias = d->feed_forward_bias,
                              .init = d->init, .dtype = d->dtype);
    wb_layer *up = wb_dense(d->features, d->hidden, .bias = d->feed_forward_bias, .init = d->init,
                            .dtype = d->dtype);
    wb_layer *down = wb_dense(d->hidden, d->features, .bias = d->feed_forward_bias, .init = d->init,
                              .dtype = d->dtype);
    return wb_chain(wb_parallel(wb_connect_mul, gate, up), down);
}

static wb_layer *llama_block(const wb_llama_desc *d, wb_activation *activation, int64_t qk) {
    wb_layer *attention = wb_multi_head_attention(
        d->features, .qk = qk, .v = qk, .out = d->features, .heads = d->heads,
        .kv_heads = d->kv_heads, .bias = d->bias, .out_bias = d->out_bias, .causal = true,
        .window = d->window, .rotary = d->rotary, .rotary_factor = d->rotary_factor,
        .rotary_low = d->rotary_low, .rotary_high = d->rotary_high,
        .rotary_length = d->rotary_length, .init = d->init, .dtype = d->dtype);
    return wb_transformer_encoder(d->features, .attention = attention,
                                  .feed_forward = gated(d, activation), .norm_first = true,
                                  .rms = true, .eps = d->eps, .dtype = d->dtype);
}

wb_layer *wb_llama_make(wb_llama_desc d) {
    stack s = {.count = 0};
    int64_t qk;
    const bool is_given = d.head_features != 0;
    if (!is_given && d.heads > 0) d.head_features = d.features / d.heads;
    if (__builtin_mul_overflow(d.head_features, d.heads, &qk)) qk = -1;
    if (!MAY_MAKE("wb_llama", d.start_, d.layers, {"vocabulary", d.vocabulary},
                  {"features", d.features}, {"heads", d.heads}, {"hidden", d.hidden},
                  {"heads times head_features", qk}))
        return NULL;
    if (!is_given && d.features % d.heads)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "wb_llama: heads must divide features, unless head_features is given, "
                            "got %lld and %lld",
                            (long long)d.heads, (long long)d.features);
    const uint64_t errors = wb_error_count();
    wb_activation *activation = d.activation ? d.activation : wb_swish;
    add(&s, wb_embedding(d.vocabulary, d.features, .init = small(d.init), .dtype = d.dtype));
    for (int64_t i = 0; i < d.layers; i++) add(&s, llama_block(&d, activation, qk));
    add(&s, wb_rmsnorm({d.features}, .eps = d.eps, .dtype = d.dtype));
    if (!d.head) return finish(&s, "wb_llama", errors);
    wb_layer *head =
        wb_dense(d.features, d.vocabulary, .bias = false, .init = d.init, .dtype = d.dtype);
    return with_head(&s, "wb_llama", errors, head, d.tied);
}

/* ---- BERT ---- */

wb_layer *wb_bert_make(wb_bert_desc d) {
    stack s = {.count = 0};
    if (!MAY_MAKE("wb_bert", d.start_, d.layers, {"vocabulary", d.vocabulary},
                  {"positions", d.positions}, {"types", d.types}, {"features", d.features},
                  {"heads", d.heads}))
        return NULL;
    const uint64_t errors = wb_error_count();
    wb_activation *activation = d.activation ? d.activation : wb_gelu_erf;
    if (d.eps == 0) d.eps = 1e-12;
    add(&s, wb_token_embedding(d.vocabulary, d.features, .positions = d.positions, .types = d.types,
                               .dropout = d.dropout, .eps = d.eps, .init = small(d.init),
                               .dtype = d.dtype));
    for (int64_t i = 0; i < d.layers; i++)
        add(&s, wb_transformer_encoder(d.features, .heads = d.heads, .hidden = d.hidden,
                                       .activation = activation, .dropout = d.dropout, .eps = d.eps,
                                       .init = d.init, .dtype = d.dtype));
    return finish(&s, "wb_bert", errors);
}
