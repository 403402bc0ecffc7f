/* Maxout: the elementwise maximum of the results of several layers for the same input. */
#include "layers/layer.h"

typedef struct wb_maxout_layer {
    wb_layer layer;
    wb_layer_list layers;
} wb_maxout_layer;

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_layer_list *list = &((const wb_maxout_layer *)(const void *)layer)->layers;
    wb_array *y = wb_apply(list->items[0].layer, x);
    for (int64_t i = 1; i < list->count && y; i++) y = wb_max(y, wb_apply(list->items[i].layer, x));
    return y;
}

static const wb_field fields[] = {
    WB_SETTING(wb_maxout_layer, layers, WB_FIELD_LIST, .trainable = true, .spread = true)};

static bool complete(wb_layer *layer) {
    if (((const wb_maxout_layer *)(const void *)layer)->layers.count > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "Maxout: at least one layer is needed, got none");
    return false;
}

const wb_layer_class wb_maxout_class = {.name = "Maxout",
                                        WB_LAYER_ROWS(wb_maxout_layer, fields),
                                        .forward = forward,
                                        .complete = complete};

wb_layer *wb_maxout_make(int64_t count, wb_layer *const *layers) {
    const wb_contents contents = {.count = count, .layers = layers};
    return wb_layer_complete(wb_container_new("wb_maxout", &wb_maxout_class,
                                              offsetof(wb_maxout_layer, layers), &contents, true));
}
