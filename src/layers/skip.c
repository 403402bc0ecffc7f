/* SkipConnection: y = connection(layer(x), x). */
#include "layers/layer.h"

typedef struct wb_skip_layer {
    wb_layer layer;
    wb_layer *layers; /* one, which Flux calls so */
    wb_connection *connection;
} wb_skip_layer;

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_skip_layer *s = (const wb_skip_layer *)(const void *)layer;
    if (!s->connection && count != 1) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "without a connection takes one array, got %d", count);
        return 0;
    }
    count = wb_layer_pass(s->layers, count, inputs, results);
    wb_array *both[] = {count ? results[0] : NULL, inputs[0]};
    if (!both[0]) return 0;
    if (s->connection) return (results[0] = s->connection(2, both)) ? count : 0;
    results[1] = inputs[0];
    return 2;
}

static const wb_field fields[] = {
    WB_SETTING(wb_skip_layer, layers, WB_FIELD_CHILD, .trainable = true, .positional = true,
               .counted = true),
    WB_SETTING(wb_skip_layer, connection, WB_FIELD_CONNECTION),
};

static bool complete(wb_layer *layer) {
    if (((const wb_skip_layer *)(const void *)layer)->layers) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "SkipConnection: the layer is NULL");
    return false;
}

const wb_layer_class wb_skip_class = {.name = "SkipConnection",
                                      WB_LAYER_ROWS(wb_skip_layer, fields),
                                      .forward_many = forward,
                                      .complete = complete};

wb_layer *wb_skip(wb_layer *layers, wb_connection *connection) {
    const wb_contents contents = {.count = 1, .layers = &layers};
    wb_layer *s = wb_wrapper_new("wb_skip", &wb_skip_class, &contents);
    if (s) ((wb_skip_layer *)(void *)s)->connection = connection;
    return wb_layer_complete(s);
}
