/* Tree: arrays and layers in a list or by name. */
#include "layers/layer.h"

typedef struct wb_tree_layer {
    wb_layer layer;
    wb_layer_list items;
} wb_tree_layer;

static const wb_field fields[] = {{.offset = offsetof(wb_tree_layer, items),
                                   .kind = WB_FIELD_LIST,
                                   .trainable = true,
                                   .spread = true}};
const wb_layer_class wb_tree_class = {.name = "Tree", WB_LAYER_ROWS(wb_tree_layer, fields)};

static wb_layer *make(const char *function, const wb_contents *contents) {
    return wb_container_new(function, &wb_tree_class, offsetof(wb_tree_layer, items), contents,
                            false);
}

wb_layer *wb_tree_make(int64_t count, void *const *objects) {
    const wb_contents contents = {.count = count, .objects = objects};
    return make("wb_tree", &contents);
}

wb_layer *wb_tree_named_make(int64_t count, const wb_named *objects) {
    const wb_contents contents = {.count = count, .named = objects};
    return make("wb_tree_named", &contents);
}
