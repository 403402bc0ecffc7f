/* Chain: one layer after another. */
#include "layers/layer.h"

typedef struct wb_chain_layer {
    wb_layer layer;
    wb_layer_list layers;
} wb_chain_layer;

static const wb_layer_list *layers_of(const wb_layer *layer) {
    return &((const wb_chain_layer *)(const void *)layer)->layers;
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_layer_list *list = layers_of(layer);
    for (int i = 0; i < count; i++) results[i] = inputs[i];
    for (int64_t i = 0; i < list->count && count > 0; i++)
        count = wb_apply_many(list->items[i].layer, count, results, WB_MOST_ARRAYS, results);
    return count;
}

static const wb_field fields[] = {
    WB_SETTING(wb_chain_layer, layers, WB_FIELD_LIST, .trainable = true, .spread = true)};
const wb_layer_class wb_chain_class = {.name = "Chain",
                                       .size_bytes = sizeof(wb_chain_layer),
                                       .fields = fields,
                                       .field_count = 1,
                                       .forward_many = forward};

static wb_layer *make(const char *function, const wb_contents *contents) {
    return wb_container_new(function, &wb_chain_class, offsetof(wb_chain_layer, layers), contents,
                            true);
}

wb_layer *wb_chain_make(int64_t count, wb_layer *const *layers) {
    const wb_contents contents = {.count = count, .layers = layers};
    return make("wb_chain", &contents);
}

wb_layer *wb_chain_named_make(int64_t count, const wb_named *layers) {
    const wb_contents contents = {.count = count, .named = layers};
    return make("wb_chain_named", &contents);
}

int64_t wb_activations(wb_layer *chain, wb_array *x, int64_t capacity, wb_array **out) {
    for (int64_t i = 0; i < capacity; i++) out[i] = NULL;
    if (!wb_check_layer("wb_activations", chain)) return 0;
    if (chain->class_ != &wb_chain_class) {
        (void)wb_fail(WB_ERROR_ARGUMENT, "wb_activations: a chain wanted, not %s",
                      chain->class_->name);
        return 0;
    }
    const wb_layer_list *list = layers_of(chain);
    for (int64_t i = 0; i < list->count; i++) {
        x = wb_apply(list->items[i].layer, x);
        if (i < capacity) out[i] = x;
        if (x) continue;
        for (int64_t k = 0; k < i && k < capacity; k++) out[k] = NULL;
        return 0;
    }
    return list->count;
}
