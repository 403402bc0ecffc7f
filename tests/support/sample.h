/* A layer of any class with settings at random, by its table. */
#ifndef WB_TESTS_SUPPORT_SAMPLE_H
#define WB_TESTS_SUPPORT_SAMPLE_H

#include "layers/kinds.h"
#include "support/support.h"

/* A setting; a quarter of all is left to the default. */
typedef struct sampled {
    test_random *r;
    wb_layer *layer;
    wb_member m;
    bool is_usual;
} sampled;

static inline void sample_numbers(test_random *r, int64_t *numbers, int count, int least) {
    for (int i = 0; i < count; i++) numbers[i] = least + (int64_t)random_below(r, 3);
}

static inline void sample_list(sampled *s) {
    wb_layer *layers[] = {wb_dense(2, 3, wb_tanh), wb_flatten()};
    const wb_contents contents = {.count = 2, .layers = layers};
    (void)wb_list_fill("sample", s->m.at, &contents, true);
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

static inline void sample_nothing(sampled *s) { (void)s; }

static inline void sample_child(sampled *s) {
    if (s->m.field->part) return;
    *(wb_layer **)s->m.at =
        strcmp(s->m.field->name, "cell") == 0 ? wb_rnn_cell(2, 3) : wb_dense(2, 3);
}

/* Settings that limit each other; tests/layers has them. */
static inline bool is_apart(const sampled *s) {
    const char *name = s->m.field->name;
    return strcmp(name, "kv_heads") == 0 || strncmp(name, "rotary_", 7) == 0 ||
           strcmp(name, "image") == 0;
}

static inline void sample_integer(sampled *s) {
    if (is_apart(s)) return;
    const int64_t usual = s->m.field->zero_counts ? (int64_t)s->m.field->usual : 0;
    *s->m.numbers = s->m.field->usual == 0 ? 8
                    : s->is_usual          ? usual
                                           : 1 + (int64_t)random_below(s->r, 2);
}

/* Eights and sixteens, which what divides them divides. */
static inline void sample_pair(sampled *s) {
    int counts[WB_MOST_GROUPS];
    const int groups = wb_pair_groups(s->m.field, counts);
    const bool may_be_one = s->m.field->usual < 0;
    int64_t *x = s->m.numbers;
    for (int g = 0; g < groups; x += counts[g++]) {
        x[0] = g == 0 ? may_be_one ? 16 : 8 : may_be_one ? 0 : 16;
        for (int i = 1; i < counts[g]; i++) x[i] = s->is_usual ? 0 : 32;
    }
}

static inline void sample_real(sampled *s) {
    if (is_apart(s)) return;
    const double low = s->m.field->low, high = s->m.field->high != 0 ? s->m.field->high : low + 1;
    if (!s->is_usual)
        *s->m.reals = low + (high - low) * (1 + (double)random_below(s->r, 999)) / 999;
}

static inline void sample_bool(sampled *s) {
    const bool may_differ = strcmp(s->m.field->name, "by_scale") != 0 || goes_by_scale(s->layer);
    *s->m.flag = (s->m.field->usual != 0) != (s->is_usual && may_differ);
}

static inline void sample_activation(sampled *s) {
    static wb_activation *const functions[] = {NULL,         wb_relu,     wb_sigmoid,
                                               wb_leakyrelu, wb_identity, wb_softmax};
    *s->m.activation = functions[random_below(s->r, sizeof functions / sizeof *functions)];
}

static inline void sample_connection(sampled *s) {
    static wb_connection *const connections[] = {wb_connect_add, wb_connect_channels};
    *s->m.connection = connections[random_below(s->r, 2)];
}

static inline void sample_choice(sampled *s) { *s->m.choice = (int)random_below(s->r, 2); }

static inline void sample_reals(sampled *s) {
    const char *instead = (const char *)s->layer + s->m.field->instead;
    if (s->m.field->instead ? *(const double *)(const void *)instead != 0 : s->is_usual) return;
    for (int i = 0; i < 1 + (int)random_below(s->r, is_linear(s->layer) ? 1 : 3); i++)
        s->m.reals[i] = 1 + (double)random_below(s->r, 3);
}

static inline void sample_sizes(sampled *s) {
    sample_numbers(s->r, s->m.numbers, 1 + (int)random_below(s->r, wb_field_most(s->m.field)), 1);
}

static inline void sample_each(sampled *s) {
    if (!s->is_usual && !is_apart(s)) sample_numbers(s->r, s->m.numbers, s->m.n, 1);
}

static inline void sample_padding(sampled *s) {
    for (int i = 0; i < s->m.n && !s->is_usual; i++)
        s->m.numbers[i] = random_below(s->r, 2) ? 1 + (int64_t)random_below(s->r, 2) : WB_NONE_;
    if (random_below(s->r, 2)) sample_numbers(s->r, s->m.numbers + 3, s->m.n, 0);
}

/* A Dense has no more than two. */
static inline void sample_dims(sampled *s) { *s->m.dims = (unsigned)random_below(s->r, 4); }

static inline void sample_mode(sampled *s) {
    if (random_below(s->r, 2)) (void)wb_test_mode(s->layer);
}

typedef void sampler(sampled *setting);

/* Of each kind. */
static inline sampler *sampler_of(int kind) {
    static sampler *const samplers[WB_FIELD_KINDS] = {
        [WB_FIELD_ARRAY] = sample_nothing,
        [WB_FIELD_STATE] = sample_nothing,
        [WB_FIELD_CHILD] = sample_child,
        [WB_FIELD_LIST] = sample_list,
        [WB_FIELD_HIDDEN] = sample_nothing,
        [WB_FIELD_VALUE] = sample_nothing,
        [WB_FIELD_INTEGER] = sample_integer,
        [WB_FIELD_PAIR] = sample_pair,
        [WB_FIELD_REAL] = sample_real,
        [WB_FIELD_BOOL] = sample_bool,
        [WB_FIELD_ACTIVATION] = sample_activation,
        [WB_FIELD_CONNECTION] = sample_connection,
        [WB_FIELD_CHOICE] = sample_choice,
        [WB_FIELD_NAME] = sample_nothing,
        [WB_FIELD_REALS] = sample_reals,
        [WB_FIELD_SIZES] = sample_sizes,
        [WB_FIELD_EACH] = sample_each,
        [WB_FIELD_PADDING] = sample_padding,
        [WB_FIELD_DIMS] = sample_dims,
        [WB_FIELD_MODE] = sample_mode,
        [WB_FIELD_OTHER] = sample_nothing,
    };
    return samplers[kind];
}

static inline void sample_setting(test_random *r, wb_layer *layer, const wb_field *f) {
    sampled s = {.r = r, .layer = layer, .m = wb_member_of(layer, f)};
    s.is_usual = random_below(r, 4) == 0;
    sampler_of((int)f->kind)(&s);
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
