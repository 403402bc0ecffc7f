/* A layer of any class with settings at random, by its table. */
#ifndef WB_TESTS_SUPPORT_SAMPLE_H
#define WB_TESTS_SUPPORT_SAMPLE_H

#include "layers/layer.h"
#include "support/support.h"

static inline void sample_numbers(test_random *r, int64_t *numbers, int count, int least) {
    for (int i = 0; i < count; i++) numbers[i] = least + (int64_t)random_below(r, 3);
}

static inline void sample_list(wb_layer_list *list) {
    wb_layer *layers[] = {wb_dense(2, 3, wb_tanh), wb_flatten()};
    const wb_contents contents = {.count = 2, .layers = layers};
    (void)wb_list_fill("sample", list, &contents, true);
}

/* True of an Upsample that takes as many numbers as its mode has dimensions. */
static inline bool is_linear(const wb_layer *layer) {
    const wb_field *mode = layer->class_->fields;
    return mode->kind == WB_FIELD_CHOICE && *(const int *)wb_field_at(layer, mode) != 0;
}

/* by_scale is of upsampling by a scale, between pixels that are areas. */
static inline bool goes_by_scale(const wb_layer *layer) {
    const wb_upsample_desc *d = (const void *)(layer + 1);
    return d->mode != WB_UPSAMPLE_NEAREST && d->scale[0] != 0 && !d->align_corners;
}

/* Eights and sixteens, which what divides them divides; a quarter of all settings is left to the
 * default. */
static inline void sample_setting(test_random *r, wb_layer *layer, const wb_field *f) {
    static wb_activation *const functions[] = {NULL,         wb_relu,     wb_sigmoid,
                                               wb_leakyrelu, wb_identity, wb_softmax};
    static wb_connection *const connections[] = {wb_connect_add, wb_connect_channels};
    void *at = wb_field_at(layer, f);
    int64_t *numbers = at;
    const bool is_usual = random_below(r, 4) == 0;
    const double high = f->high != 0 ? f->high : f->low + 1;
    int n;
    (void)wb_layer_sizes(layer, &n);
    switch (f->kind) {
    case WB_FIELD_INTEGER:
        *numbers = f->usual == 0 ? 8 : is_usual ? 0 : 1 + (int64_t)random_below(r, 2);
        return;
    case WB_FIELD_PAIR:
        numbers[0] = 8, numbers[1] = 16;
        return;
    case WB_FIELD_JOINT:
        numbers[0] = 8, numbers[1] = is_usual ? 0 : 4, numbers[2] = 16;
        return;
    case WB_FIELD_PROJECTIONS:
        numbers[0] = 16, numbers[1] = is_usual ? 0 : 4, numbers[4] = is_usual ? 0 : 32;
        return;
    case WB_FIELD_CHOICE:
        *(int *)at = (int)random_below(r, 2);
        return;
    case WB_FIELD_REALS:
        if (f->instead ? *(const double *)(const void *)((const char *)layer + f->instead) != 0
                       : is_usual)
            return;
        for (int i = 0; i < 1 + (int)random_below(r, is_linear(layer) ? 1 : 3); i++)
            ((double *)at)[i] = 1 + (double)random_below(r, 3);
        return;
    case WB_FIELD_REAL:
        if (!is_usual)
            *(double *)at = f->low + (high - f->low) * (1 + (double)random_below(r, 999)) / 999;
        return;
    case WB_FIELD_BOOL:
        *(bool *)at = (f->usual != 0) !=
                      (is_usual && (strcmp(f->name, "by_scale") != 0 || goes_by_scale(layer)));
        return;
    case WB_FIELD_ACTIVATION:
        *(wb_activation **)at = functions[random_below(r, sizeof functions / sizeof *functions)];
        return;
    case WB_FIELD_CONNECTION:
        *(wb_connection **)at = connections[random_below(r, 2)];
        return;
    case WB_FIELD_CHILD:
        if (!f->part)
            *(wb_layer **)at = strcmp(f->name, "cell") == 0 ? wb_rnn_cell(2, 3) : wb_dense(2, 3);
        return;
    case WB_FIELD_LIST:
        sample_list(at);
        return;
    case WB_FIELD_SIZES:
        sample_numbers(r, numbers, 1 + (int)random_below(r, wb_field_most(f)), 1);
        return;
    case WB_FIELD_EACH:
        if (!is_usual) sample_numbers(r, numbers, n, 1);
        return;
    case WB_FIELD_PADDING:
        for (int i = 0; i < n && !is_usual; i++)
            numbers[i] = random_below(r, 2) ? 1 + (int64_t)random_below(r, 2) : WB_NONE_;
        if (random_below(r, 2)) sample_numbers(r, numbers + 3, n, 0);
        return;
    case WB_FIELD_DIMS:
        *(unsigned *)at = (unsigned)random_below(r, 4); /* a Dense has no more */
        return;
    case WB_FIELD_MODE:
        if (random_below(r, 2)) (void)wb_test_mode(layer);
        return;
    default:
        return;
    }
}

/* With its settings, not yet complete. */
static inline wb_layer *sample_incomplete(test_random *r, const wb_layer_class *k) {
    wb_layer *layer = wb_layer_new(k);
    for (int i = 0; layer && i < k->field_count; i++) sample_setting(r, layer, &k->fields[i]);
    return layer;
}

static inline wb_layer *sample_layer(test_random *r, const wb_layer_class *k) {
    return wb_layer_complete(sample_incomplete(r, k));
}

#endif
