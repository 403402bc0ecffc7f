/* Parallel: y = connection(layer1(x1), layer2(x2), ...). */
#include "layers/layer.h"

typedef struct wb_parallel_layer {
    wb_layer layer;
    wb_connection *connection;
    wb_layer_list layers;
} wb_parallel_layer;

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_parallel_layer *p = (const wb_parallel_layer *)(const void *)layer;
    const int layers = (int)p->layers.count, most = layers > count ? layers : count;
    if (layers != count && layers != 1 && count != 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "%d layers take one array or %d, got %d", layers, layers,
                      count);
        return 0;
    }
    for (int i = 0; i < most; i++) {
        wb_layer *own = p->layers.items[layers == 1 ? 0 : i].layer;
        results[i] = wb_apply(own, inputs[count == 1 ? 0 : i]);
        if (!results[i]) return 0;
    }
    if (!p->connection) return most;
    results[0] = p->connection(most, results);
    return results[0] != NULL;
}

static const wb_field fields[] = {
    WB_SETTING(wb_parallel_layer, connection, WB_FIELD_CONNECTION),
    WB_SETTING(wb_parallel_layer, layers, WB_FIELD_LIST, .trainable = true, .spread = true),
};

static bool complete(wb_layer *layer) {
    const int64_t count = ((const wb_parallel_layer *)(const void *)layer)->layers.count;
    if (count >= 1 && count <= WB_MOST_ARRAYS) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "Parallel: layers must be from 1 to %d, got %lld",
                  WB_MOST_ARRAYS, (long long)count);
    return false;
}

const wb_layer_class wb_parallel_class = {.name = "Parallel",
                                          WB_LAYER_ROWS(wb_parallel_layer, fields),
                                          .forward_many = forward,
                                          .complete = complete};

wb_layer *wb_parallel_make(wb_connection *connection, int64_t count, wb_layer *const *layers) {
    const wb_contents contents = {.count = count, .layers = layers};
    wb_layer *p = wb_container_new("wb_parallel", &wb_parallel_class,
                                   offsetof(wb_parallel_layer, layers), &contents, true);
    if (p) ((wb_parallel_layer *)(void *)p)->connection = connection;
    return wb_layer_complete(p);
}
