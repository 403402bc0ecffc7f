/* PositionEmbedding: learnt numbers for each position, added to the input. */
#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_position_embedding_layer {
    wb_layer layer;
    wb_position_embedding_desc desc;
    wb_positions positions;
} wb_position_embedding_layer;

static wb_position_embedding_desc *desc_of(wb_layer *layer) {
    return &((wb_position_embedding_layer *)(void *)layer)->desc;
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_position_embedding_desc *d = desc_of(layer);
    if (x->ndim < 2 || x->sizes[0] != d->out || x->sizes[1] > d->in)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "input must be (%lld, length, ...) with at most %lld positions, got %s",
                            (long long)d->out, (long long)d->in, wb_text_of(x));
    const wb_position_embedding_layer *l = (const wb_position_embedding_layer *)(void *)layer;
    int64_t first;
    if (!(x = wb_convert_input(x, d->given_weight)) || !wb_pass_positions(layer, x, &first))
        return NULL;
    if (l->positions.length == 0) return wb_add(x, wb_slice(d->given_weight, 1, 0, x->sizes[1], 1));
    wb_array *places = wb_add(wb_iota(WB_I32, 0, x->sizes[1]), wb_late_position(first));
    return wb_add(x, wb_gather_named("position", d->given_weight, places, 1));
}

static int64_t most_positions(const wb_layer *layer) {
    return ((const wb_position_embedding_layer *)(const void *)layer)->desc.in;
}

static const wb_field fields[] = {
    WB_ROW(wb_position_embedding_layer, in, WB_FIELD_PAIR, .low = 1, .text_only = true,
           .given_by = offsetof(wb_position_embedding_layer, desc.given_weight)),
    WB_ROW_NAMED(wb_position_embedding_layer, given_weight, "weight", WB_FIELD_ARRAY,
                 .trainable = true, .torch = "weight|pos_embedding squeeze 1|pos_embed squeeze 1"),
};

wb_array *wb_small_normal(int ndim, const int64_t *sizes, wb_dtype dtype) {
    return wb_mul_number(wb_normal_init(ndim, sizes, dtype), 0.02);
}

static bool complete(wb_layer *layer) {
    wb_position_embedding_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->given_weight, d->init ? d->init : wb_small_normal, d->dtype, 2,
                         (int64_t[]){d->out, d->in});
}

const wb_layer_class wb_position_embedding_class = {
    .name = "PositionEmbedding",
    WB_LAYER_ROWS(wb_position_embedding_layer, fields),
    .forward = forward,
    .complete = complete,
    .positions = offsetof(wb_position_embedding_layer, positions),
    .most_positions = most_positions};

wb_layer *wb_position_embedding_make(wb_position_embedding_desc desc) {
    return wb_layer_of_desc(&wb_position_embedding_class, &desc, sizeof desc);
}
