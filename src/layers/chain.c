/* Chain: one layer after another. */
#include <string.h>

#include "array/use.h"
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
        count = wb_layer_pass(list->items[i].layer, count, results, results);
    return count;
}

static const wb_field fields[] = {
    WB_SETTING(wb_chain_layer, layers, WB_FIELD_LIST, .trainable = true, .spread = true)};
const wb_layer_class wb_chain_class = {
    .name = "Chain", WB_LAYER_ROWS(wb_chain_layer, fields), .forward_many = forward};

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

/* ---- looking at a chain ---- */

static wb_layer_list *list_of(const char *function, wb_layer *chain) {
    if (!wb_check_layer(function, chain)) return NULL;
    if (chain->class_ == &wb_chain_class) return &((wb_chain_layer *)(void *)chain)->layers;
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: expected a Chain, got %s", function,
                        chain->class_->name);
}

int64_t wb_chain_count(wb_layer *chain) {
    const wb_layer_list *list = list_of("wb_chain_count", chain);
    return list ? list->count : -1;
}

/* From 0; -1 with the error recorded. */
static int64_t place_of(const char *function, const wb_layer_list *list, int64_t i) {
    const int64_t place = i < 0 ? list->count + i : i - 1;
    if (place >= 0 && place < list->count) return place;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: layer must be from 1 to %lld, or -1 to -%lld, got %lld",
                  function, (long long)list->count, (long long)list->count, (long long)i);
    return -1;
}

wb_layer *wb_chain_at(wb_layer *chain, int64_t i) {
    const wb_layer_list *list = list_of("wb_chain_at", chain);
    const int64_t place = list ? place_of("wb_chain_at", list, i) : -1;
    return place < 0 ? NULL : list->items[place].layer;
}

wb_layer *wb_chain_get(wb_layer *chain, const char *name) {
    const wb_layer_list *list = list_of("wb_chain_get", chain);
    if (!list || !name) return list ? wb_fail_argument_null("wb_chain_get", "the name") : NULL;
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i].name && strcmp(list->items[i].name, name) == 0)
            return list->items[i].layer;
    return wb_fail_null(WB_ERROR_ARGUMENT, "wb_chain_get: the chain has no layer \"%s\"", name);
}

static bool take_slice(const wb_layer_list *from, int64_t first, int64_t last, wb_layer *slice) {
    wb_layer_list *to = list_of("wb_chain_slice", slice);
    for (int64_t i = first; i <= last; i++)
        if (!wb_list_extend("wb_chain_slice", to, from->items[i].name,
                            wb_keep_layer(from->items[i].layer), true))
            return false;
    return true;
}

wb_layer *wb_chain_slice(wb_layer *chain, int64_t first, int64_t last) {
    static const char function[] = "wb_chain_slice";
    const wb_layer_list *list = list_of(function, chain);
    const int64_t begin = list ? place_of(function, list, first) : -1;
    const int64_t end = begin < 0 ? -1 : place_of(function, list, last);
    if (end >= 0 && end < begin)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "%s: first must not be after last, got %lld and "
                            "%lld",
                            function, (long long)first, (long long)last);
    wb_layer *slice = end < 0 ? NULL : wb_chain_make(0, NULL);
    if (!slice || take_slice(list, begin, end, slice)) return slice;
    wb_free(slice);
    return NULL;
}

wb_status wb_chain_append(wb_layer *chain, const char *name, wb_layer *layer) {
    wb_layer_list *list = list_of("wb_chain_append", chain);
    /* a layer that contains the chain stays the caller's, because freeing it would free the
     * chain */
    if (list && !wb_check_cycle("wb_chain_append", chain, layer)) return wb_error_status();
    if (list && wb_list_extend("wb_chain_append", list, name, layer, true)) return WB_OK;
    if (!list) wb_drop_given_layer(layer);
    return wb_error_status();
}

int64_t wb_activations(wb_layer *chain, wb_array *x, int64_t capacity, wb_array **out) {
    if (!wb_check_list("wb_activations", capacity, out)) return 0;
    for (int64_t i = 0; i < capacity; i++) out[i] = NULL;
    const wb_layer_list *list = list_of("wb_activations", chain);
    if (!list || !wb_may_use_array("wb_activations", x, "x")) return 0;
    for (int64_t i = 0; i < list->count; i++) {
        x = wb_apply(list->items[i].layer, x);
        if (i < capacity) out[i] = x;
        if (x) continue;
        for (int64_t k = 0; k < i && k < capacity; k++) out[k] = NULL;
        return 0;
    }
    return list->count;
}
