/* GlobalMeanPool and GlobalMaxPool: one number for each channel of each image. */
#include <stdio.h>

#include "layers/layer.h"

typedef wb_array *reduction(wb_array *x, int ndim, const int64_t *dims);

static wb_array *pool(wb_array *x, reduction *reduce) {
    static const int64_t dims[WB_MOST_SIZES] = {0, 1, 2};
    if (x->ndim >= 3 && x->ndim <= 5) return reduce(x, x->ndim - 2, dims);
    return wb_fail_null(WB_ERROR_SHAPE,
                        "input must have 1 to 3 spatial dimensions, channels and batch, got %s",
                        wb_text_of(x));
}

static wb_array *mean_forward(wb_layer *layer, wb_array *x) {
    (void)layer;
    return pool(x, wb_mean_make);
}

static wb_array *max_forward(wb_layer *layer, wb_array *x) {
    (void)layer;
    return pool(x, wb_maximum_make);
}

static void describe(const wb_layer *layer, bool is_brief, char *text, size_t size) {
    (void)is_brief;
    (void)snprintf(text, size, "%s()", layer->class_->name);
}

static const wb_field no_fields[1] = {{.kind = WB_FIELD_VALUE}};
const wb_layer_class wb_global_meanpool_class = {.name = "GlobalMeanPool",
                                                 .size_bytes = sizeof(wb_layer),
                                                 .fields = no_fields,
                                                 .forward = mean_forward,
                                                 .describe = describe};
const wb_layer_class wb_global_maxpool_class = {.name = "GlobalMaxPool",
                                                .size_bytes = sizeof(wb_layer),
                                                .fields = no_fields,
                                                .forward = max_forward,
                                                .describe = describe};

wb_layer *wb_global_meanpool(void) { return wb_layer_new(&wb_global_meanpool_class); }
wb_layer *wb_global_maxpool(void) { return wb_layer_new(&wb_global_maxpool_class); }
