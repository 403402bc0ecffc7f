/* Bidirectional: one layer reads a sequence from its beginning, another one from its end. */
#include "layers/layer.h"

typedef struct wb_bidirectional_layer {
    wb_layer layer;
    wb_layer *forward, *backward;
} wb_bidirectional_layer;

enum { TIME = 1 };

/* y of a layer applied to x, and to lengths if there are any. */
static wb_array *run(wb_layer *layer, wb_array *x, wb_array *lengths) {
    wb_array *inputs[] = {x, lengths}, *results[2];
    const int count = lengths ? 2 : 1;
    if (!x || wb_apply_many(layer, count, inputs, count, results) == 0) return NULL;
    return results[0];
}

static wb_array *turned(wb_array *x, wb_array *lengths) {
    return lengths ? wb_lengths_reverse(x, lengths) : wb_flip(x, TIME);
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_bidirectional_layer *b = (const wb_bidirectional_layer *)(const void *)layer;
    wb_array *x = inputs[0], *lengths = count > 1 ? inputs[1] : NULL;
    if (count > 2 || x->ndim < 2) {
        if (count > 2)
            (void)wb_fail(WB_ERROR_ARGUMENT, "expected an input and perhaps lengths, got %d arrays",
                          count);
        else
            (void)wb_fail(WB_ERROR_SHAPE, "input must have features and time, got %s",
                          wb_text_of(x));
        return 0;
    }
    wb_array *there = run(b->forward, x, lengths);
    wb_array *back = there ? run(b->backward, turned(x, lengths), lengths) : NULL;
    if (back && back->ndim < 2) {
        (void)wb_fail(WB_ERROR_SHAPE, "backward must give features and time, got %s",
                      wb_text_of(back));
        return 0;
    }
    results[0] = back ? wb_concat(0, there, turned(back, lengths)) : NULL;
    results[1] = lengths;
    return results[0] ? count : 0;
}

#define CHILD(member, ...)                                                                         \
    WB_SETTING(wb_bidirectional_layer, member, WB_FIELD_CHILD, .trainable = true,                  \
               .positional = true, .counted = true, __VA_ARGS__)

static const wb_field fields[] = {CHILD(forward, .torch = NULL),
                                  CHILD(backward, .torch = "*_reverse")};

static bool complete(wb_layer *layer) {
    const wb_bidirectional_layer *b = (const wb_bidirectional_layer *)(const void *)layer;
    if (b->forward && b->backward) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "Bidirectional: two layers are needed");
    return false;
}

const wb_layer_class wb_bidirectional_class = {.name = "Bidirectional",
                                               WB_LAYER_ROWS(wb_bidirectional_layer, fields),
                                               .forward_many = forward,
                                               .complete = complete};

wb_layer *wb_bidirectional(wb_layer *there, wb_layer *back) {
    const wb_contents contents = {.count = 2, .layers = (wb_layer *const[]){there, back}};
    return wb_layer_complete(
        wb_wrapper_new("wb_bidirectional", &wb_bidirectional_class, &contents));
}
