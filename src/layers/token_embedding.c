/* TokenEmbedding: the sum of the features of words, positions and types, with a norm, as in
 * BERT. */
#include "array/state.h"
#include "layers/layer.h"

typedef struct token_layer {
    wb_layer layer;
    wb_layer *words, *positions, *types, *norm, *dropout;
} token_layer;

/* (tokens), (tokens, mask), (tokens, types) or (tokens, types, mask); what is missing is NULL. */
typedef struct inputs {
    wb_array *tokens, *types, *mask;
} inputs;

static bool take_inputs(int count, wb_array *const *given, inputs *in) {
    *in = (inputs){.tokens = count > 0 ? given[0] : NULL};
    if (count > 1 && wb_dtype_of(given[count - 1]) == WB_BOOL) in->mask = given[--count];
    if (count == 2) in->types = given[1];
    if (count == 1 || count == 2) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "expected (tokens), (tokens, types), and perhaps a bool mask as the last one, got "
        "%d arrays",
        count + (in->mask != NULL));
    return false;
}

/* types and the mask have the tokens' sizes. */
static bool check(const inputs *in) {
    const wb_array *const more[] = {in->types, in->mask};
    for (int i = 0; i < 2; i++)
        if (more[i] && !wb_same_sizes(in->tokens, more[i])) {
            (void)wb_fail(WB_ERROR_SHAPE, "%s must have the sizes of the tokens, %s, got %s",
                          i ? "the mask" : "types",
                          wb_sizes_text(in->tokens->ndim, in->tokens->sizes), wb_text_of(more[i]));
            return false;
        }
    if (!wb_dtype_is_float((wb_dtype)in->tokens->dtype) && in->tokens->ndim > 0) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "tokens must be integers (length, ...), got %s",
                  wb_text_of(in->tokens));
    return false;
}

/* Without types, all are the first one. */
static wb_array *type_features(const token_layer *l, wb_array *types) {
    if (types) return wb_apply(l->types, types);
    wb_array *weight = wb_get(l->types, "weight");
    return weight ? wb_slice(weight, 1, 0, 1, 1) : NULL;
}

/* (length, ...) as wb_attention's (keys, queries, heads, ...). */
static wb_array *attention_mask(wb_array *mask) {
    wb_array *y = wb_unsqueeze(mask, 1);
    return y ? wb_unsqueeze(y, 2) : NULL;
}

static int forward(wb_layer *layer, int count, wb_array *const *given, wb_array **results) {
    const token_layer *l = (const token_layer *)(void *)layer;
    inputs in;
    if (!take_inputs(count, given, &in) || !check(&in)) return 0;
    wb_array *x = wb_apply(l->words, in.tokens);
    x = x ? wb_add(x, type_features(l, in.types)) : NULL;
    x = x ? wb_apply(l->positions, x) : NULL;
    x = x ? wb_apply(l->norm, x) : NULL;
    results[0] = x ? wb_apply(l->dropout, x) : NULL;
    if (!results[0] || !in.mask) return results[0] != NULL;
    results[1] = attention_mask(in.mask);
    return results[1] ? 2 : 0;
}

#define CHILD(member, ...)                                                                         \
    {                                                                                              \
        .name = #member, .offset = offsetof(token_layer, member), .kind = WB_FIELD_CHILD,          \
        .trainable = true, .counted = true, __VA_ARGS__                                            \
    }
static const wb_field fields[] = {CHILD(words, .torch = "word_embeddings"),
                                  CHILD(positions, .torch = "position_embeddings"),
                                  CHILD(types, .torch = "token_type_embeddings"),
                                  CHILD(norm, .torch = "LayerNorm"), CHILD(dropout, .torch = NULL)};

static bool complete(wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (f->kind != WB_FIELD_CHILD || *wb_field_child(layer, f)) continue;
        (void)wb_fail(WB_ERROR_ARGUMENT, "TokenEmbedding: %s must be a layer, but is missing",
                      f->name);
        return false;
    }
    return true;
}

const wb_layer_class wb_token_embedding_class = {.name = "TokenEmbedding",
                                                 WB_LAYER_ROWS(token_layer, fields),
                                                 .forward_many = forward,
                                                 .complete = complete};

wb_layer *wb_token_embedding_make(wb_token_embedding_desc d) {
    if (!wb_check_start("wb_token_embedding", d.start_)) return NULL;
    wb_layer *layers[] = {
        wb_embedding(d.in, d.out, .init = d.init, .dtype = d.dtype),
        wb_position_embedding(d.positions, d.out, .init = d.init, .dtype = d.dtype),
        wb_embedding(d.types, d.out, .init = d.init, .dtype = d.dtype),
        wb_layernorm({d.out}, .eps = d.eps, .dtype = d.dtype),
        wb_dropout(d.dropout),
    };
    return wb_layer_complete(
        wb_wrapper_new("wb_token_embedding", &wb_token_embedding_class,
                       &(wb_contents){.count = sizeof layers / sizeof *layers, .layers = layers}));
}
