/* PairwiseFusion: each layer takes its array joined with the result of the layer before. */
#include "layers/layer.h"

typedef struct wb_pairwise_fusion_layer {
    wb_layer layer;
    wb_connection *connection;
    wb_layer_list layers;
} wb_pairwise_fusion_layer;

static wb_array *apply_next(const wb_pairwise_fusion_layer *f, int i, wb_array *before,
                            wb_array *x) {
    wb_layer *layer = f->layers.items[i].layer;
    wb_array *both[] = {before, x}, *y;
    if (i == 0) return wb_apply(layer, x);
    if (!f->connection) return wb_apply_many(layer, 2, both, 1, &y) == 1 ? y : NULL;
    wb_array *joined = f->connection(2, both);
    return joined ? wb_apply(layer, joined) : NULL;
}

/* y1 = layer1(x1), y2 = layer2(connection(y1, x2)), ... */
static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_pairwise_fusion_layer *f = (const wb_pairwise_fusion_layer *)(const void *)layer;
    const int layers = (int)f->layers.count;
    if (count != 1 && count != layers) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%d layers take one array or %d, got %d", layers, layers,
                      count);
        return 0;
    }
    for (int i = 0; i < layers; i++) {
        wb_array *before = i > 0 ? results[i - 1] : NULL;
        results[i] = apply_next(f, i, before, inputs[count == 1 ? 0 : i]);
        if (!results[i]) return 0;
    }
    return layers;
}

static const wb_field fields[] = {
    WB_SETTING(wb_pairwise_fusion_layer, connection, WB_FIELD_CONNECTION),
    WB_SETTING(wb_pairwise_fusion_layer, layers, WB_FIELD_LIST, .trainable = true, .spread = true),
};

static bool complete(wb_layer *layer) {
    const wb_pairwise_fusion_layer *f = (const wb_pairwise_fusion_layer *)(const void *)layer;
    const int64_t count = f->layers.count;
    if (count >= 1 && count <= WB_MOST_ARRAYS) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "PairwiseFusion: layers must be from 1 to %d, got %lld",
                  WB_MOST_ARRAYS, (long long)count);
    return false;
}

const wb_layer_class wb_pairwise_fusion_class = {.name = "PairwiseFusion",
                                                 WB_LAYER_ROWS(wb_pairwise_fusion_layer, fields),
                                                 .forward_many = forward,
                                                 .complete = complete};

wb_layer *wb_pairwise_fusion_make(wb_connection *connection, int64_t count,
                                  wb_layer *const *layers) {
    const wb_contents contents = {.count = count, .layers = layers};
    wb_layer *f = wb_container_new("wb_pairwise_fusion", &wb_pairwise_fusion_class,
                                   offsetof(wb_pairwise_fusion_layer, layers), &contents, true);
    if (f) ((wb_pairwise_fusion_layer *)(void *)f)->connection = connection;
    return wb_layer_complete(f);
}
