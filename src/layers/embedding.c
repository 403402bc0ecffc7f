/* Embedding: features of words. */
#include "base/count.h"
#include "layers/layer.h"
#include "ops/ops.h"

/* padding_idx counts from 1 here, as in Flux and in files; 0: none. */
typedef struct wb_embedding_layer {
    wb_layer layer;
    wb_embedding_desc desc;
} wb_embedding_layer;

static wb_embedding_desc *desc_of(wb_layer *layer) {
    return &((wb_embedding_layer *)(void *)layer)->desc;
}

/* y (out, ...) with zeros where x (...) is the word of padding. */
static wb_array *without_padding(const wb_embedding_desc *d, wb_array *x, wb_array *y) {
    int64_t sizes[WB_MAX_DIMS] = {1};
    for (int i = 0; i < x->ndim; i++) sizes[i + 1] = x->sizes[i];
    wb_array *is_word = wb_ne(x, wb_constant((double)(d->padding_idx - 1)));
    return wb_select(wb_reshape_make(is_word, x->ndim + 1, sizes), y, wb_constant(0));
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_embedding_desc *d = desc_of(layer);
    if (wb_dtype_is_float((wb_dtype)x->dtype) || x->dtype == WB_BOOL) {
        if (x->ndim >= 1 && x->sizes[0] == d->in)
            return wb_matmul(d->given_weight, wb_cast(x, (wb_dtype)d->given_weight->dtype));
        return wb_fail_null(WB_ERROR_SHAPE,
                            "input must be integers (wb_cast(x, WB_I32)), or one-hot with %lld "
                            "rows, got %s %s",
                            (long long)d->in, wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
    }
    wb_array *y = wb_gather_named("word", d->given_weight, x, 1);
    return y && d->padding_idx ? without_padding(d, x, y) : y;
}

static const wb_field fields[] = {
    WB_ROW(wb_embedding_layer, in, WB_FIELD_PAIR, .low = 1, .text_only = true,
           .given_by = offsetof(wb_embedding_layer, desc.given_weight)),
    WB_ROW_NAMED(wb_embedding_layer, given_weight, "weight", WB_FIELD_ARRAY, .trainable = true),
    WB_ROW(wb_embedding_layer, padding_idx, WB_FIELD_INTEGER, .since = 2),
};

/* The column of padding is zeros. */
static bool clear_padding(wb_embedding_desc *d) {
    wb_array *columns = wb_iota(WB_I64, 1, 1, d->in);
    wb_array *is_word = wb_ne(columns, wb_constant((double)(d->padding_idx - 1)));
    wb_array *weight = wb_hold(wb_select(is_word, d->given_weight, wb_constant(0)));
    if (!weight) return false;
    wb_unhold(d->given_weight);
    d->given_weight = weight;
    return true;
}

static bool complete(wb_layer *layer) {
    wb_embedding_desc *d = desc_of(layer);
    const bool is_new = !d->given_weight;
    if (d->in > 0 && d->padding_idx > d->in) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "Embedding: padding_idx must be one of the words, from 0 to %lld in C and "
                      "from 1 to %lld in text, got %lld, which is %lld in text",
                      (long long)d->in - 1, (long long)d->in, (long long)d->padding_idx - 1,
                      (long long)d->padding_idx);
        return false;
    }
    return wb_layer_fill(layer, &d->given_weight, d->init ? d->init : wb_normal_init, d->dtype, 2,
                         (int64_t[]){d->out, d->in}) &&
           (!is_new || !d->padding_idx || clear_padding(d));
}

const wb_layer_class wb_embedding_class = {.name = "Embedding",
                                           WB_LAYER_ROWS(wb_embedding_layer, fields),
                                           .forward = forward,
                                           .complete = complete};

wb_layer *wb_embedding_make(wb_embedding_desc desc) {
    desc.padding_idx = desc.padding_idx < 0 ? 0 : wb_plus(desc.padding_idx, 1);
    return wb_layer_of_desc(&wb_embedding_class, &desc, sizeof desc);
}
