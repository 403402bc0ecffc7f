/* Bidirectional: one layer reads a sequence from its begin, another one from its end. */
#include "layers/layer.h"

typedef struct wb_bidirectional_layer {
    wb_layer layer;
    wb_layer *forward, *backward;
} wb_bidirectional_layer;

enum { TIME = 1 };

static wb_array *forward(wb_layer *layer, wb_array *x) {
    const wb_bidirectional_layer *b = (const wb_bidirectional_layer *)(const void *)layer;
    if (x->ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE, "input must have features and time, got %s",
                            wb_text_of(x));
    wb_array *there = wb_apply(b->forward, x);
    wb_array *back = there ? wb_apply(b->backward, wb_flip(x, TIME)) : NULL;
    if (back && back->ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE, "backward must give features and time, got %s",
                            wb_text_of(back));
    return back ? wb_concat(0, there, wb_flip(back, TIME)) : NULL;
}

#define CHILD(member)                                                                              \
    WB_SETTING(wb_bidirectional_layer, member, WB_FIELD_CHILD, .trainable = true,                  \
               .positional = true, .counted = true)

static const wb_field fields[] = {CHILD(forward), CHILD(backward)};

static bool complete(wb_layer *layer) {
    const wb_bidirectional_layer *b = (const wb_bidirectional_layer *)(const void *)layer;
    if (b->forward && b->backward) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "Bidirectional: two layers are needed");
    return false;
}

const wb_layer_class wb_bidirectional_class = {.name = "Bidirectional",
                                               WB_LAYER_ROWS(wb_bidirectional_layer, fields),
                                               .forward = forward,
                                               .complete = complete};

wb_layer *wb_bidirectional(wb_layer *there, wb_layer *back) {
    const wb_contents contents = {.count = 2, .layers = (wb_layer *const[]){there, back}};
    return wb_layer_complete(
        wb_wrapper_new("wb_bidirectional", &wb_bidirectional_class, &contents));
}
