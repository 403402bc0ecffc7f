/* ClassToken and FirstToken: a learnt token before the others, and the first of all tokens. */
#include <stdio.h>

#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_class_token_layer {
    wb_layer layer;
    wb_class_token_desc desc;
} wb_class_token_layer;

static wb_class_token_desc *desc_of(wb_layer *layer) {
    return &((wb_class_token_layer *)(void *)layer)->desc;
}

/* ---- ClassToken ---- */

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_class_token_desc *d = desc_of(layer);
    if (x->ndim < 2 || x->sizes[0] != d->features)
        return wb_fail_null(WB_ERROR_SHAPE, "input must be (%lld, tokens, ...), got %s",
                            (long long)d->features, wb_text_of(x));
    int64_t sizes[WB_MAX_DIMS], own[WB_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) sizes[i] = x->sizes[i], own[i] = 1;
    own[0] = d->features, sizes[1] = 1;
    x = wb_convert_input(x, d->given_token);
    wb_array *token = wb_reshape_make(d->given_token, x ? x->ndim : 1, own);
    wb_array *both[] = {token ? wb_expand_make(token, x->ndim, sizes) : NULL, x};
    return both[0] && x ? wb_concat_make(1, 2, both) : NULL;
}

static const wb_field fields[] = {
    WB_ROW(wb_class_token_layer, features, WB_FIELD_INTEGER, .low = 1, .positional = true,
           .given_by = offsetof(wb_class_token_layer, desc.given_token)),
    WB_ROW_NAMED(wb_class_token_layer, given_token, "token", WB_FIELD_ARRAY, .trainable = true,
                 .torch = "class_token squeeze 2|cls_token squeeze 2"),
};

static bool complete(wb_layer *layer) {
    wb_class_token_desc *d = desc_of(layer);
    return wb_layer_fill(layer, &d->given_token, d->init ? d->init : wb_small_normal, d->dtype, 1,
                         &d->features);
}

const wb_layer_class wb_class_token_class = {.name = "ClassToken",
                                             WB_LAYER_ROWS(wb_class_token_layer, fields),
                                             .forward = forward,
                                             .complete = complete};

wb_layer *wb_class_token_make(wb_class_token_desc desc) {
    return wb_layer_of_desc(&wb_class_token_class, &desc, sizeof desc);
}

/* ---- FirstToken ---- */

static wb_array *forward_first(wb_layer *layer, wb_array *x) {
    (void)layer;
    if (x->ndim < 2 || x->sizes[1] == 0)
        return wb_fail_null(WB_ERROR_SHAPE, "input must be (features, tokens, ...), got %s",
                            wb_text_of(x));
    wb_array *first = wb_slice(x, 1, 0, 1, 1);
    return first ? wb_squeeze(first, 1) : NULL;
}

static void describe(const wb_layer *layer, bool is_brief, char *text, size_t size) {
    (void)layer, (void)is_brief;
    (void)snprintf(text, size, "FirstToken()");
}

static const wb_field no_fields[1] = {{.kind = WB_FIELD_VALUE}};
const wb_layer_class wb_first_token_class = {.name = "FirstToken",
                                             .size_bytes = sizeof(wb_layer),
                                             .fields = no_fields,
                                             .forward = forward_first,
                                             .describe = describe};

wb_layer *wb_first_token(void) { return wb_layer_new(&wb_first_token_class); }
