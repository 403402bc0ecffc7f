/* Flatten: (5, 5, 3, N) to (75, N). */
#include <stdio.h>

#include "layers/layer.h"

static wb_array *forward(wb_layer *layer, wb_array *x) {
    (void)layer;
    return wb_flatten_batch(x);
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    (void)layer, (void)brief;
    (void)snprintf(text, size, "flatten");
}

static const wb_field no_fields[1] = {{.kind = WB_FIELD_VALUE}};
const wb_layer_class wb_flatten_class = {.name = "flatten",
                                         .size_bytes = sizeof(wb_layer),
                                         .fields = no_fields,
                                         .forward = forward,
                                         .describe = describe};

wb_layer *wb_flatten(void) { return wb_layer_new(&wb_flatten_class); }
