/* Models from texts alone, and sizes that are inferred from an input's. */
#include <stdio.h>
#include <string.h>

#include "array/thread.h"
#include "models/build.h"

/* Stands where a layer will be whose sizes are not all known. */
typedef struct lazy_layer {
    wb_layer layer;
    wb_building *building;
    const wb_term *term;
    wb_layer *real; /* once it was applied */
} lazy_layer;

/* ---- sizes in terms ---- */

static bool is_hole(const wb_term *t) {
    return t->kind == WB_TERM_NAME && strcmp(t->name, "_") == 0;
}

static bool is_group(const wb_term *t) {
    return t->kind == WB_TERM_TUPLE || t->kind == WB_TERM_PAIR;
}

/* Recursive, as the next one: no text is deeper than WB_TERM_DEPTH. */
static bool has_hole(const wb_term *term) {
    for (const wb_term *t = term->first; t; t = t->next)
        if (is_hole(t) || (is_group(t) && has_hole(t))) return true;
    return false;
}

/* The layer whose sizes are inferred: for a WeightNorm its inner layer, whose arrays it needs when
 * it is made. */
static const wb_term *sized_term(const wb_term *term) {
    while (term->first && term->first->kind == WB_TERM_CALL &&
           wb_class_named(term->name) == &wb_weight_norm_class)
        term = term->first;
    return term;
}

bool wb_term_has_hole(const wb_term *term) { return has_hole(sized_term(term)); }

static void fill_holes(const wb_term *term, int64_t size) {
    for (wb_term *t = term->first; t; t = t->next) {
        if (is_hole(t)) t->kind = WB_TERM_INTEGER, t->integer = size;
        if (is_group(t)) fill_holes(t, size);
    }
}

static int64_t size_for(const wb_term *term, const wb_array *x) {
    const wb_layer_class *k = wb_class_named(term->name);
    if (x->ndim == 0) return 1;
    return x->sizes[x->ndim >= 3 && k && k->has_channels ? x->ndim - 2 : 0];
}

/* ---- the stand-in ---- */

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    lazy_layer *l = (lazy_layer *)(void *)layer;
    if (!l->real) {
        const wb_term *sized = sized_term(l->term);
        fill_holes(sized, size_for(sized, inputs[0]));
        l->real = wb_build_new(l->building, l->term);
    }
    return l->real ? wb_apply_many(l->real, count, inputs, WB_MOST_ARRAYS, results) : 0;
}

static void describe(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_term *t = ((const lazy_layer *)(const void *)layer)->term;
    (void)brief;
    (void)snprintf(text, size, "%.*s", (int)(t->text_bytes < 80 ? t->text_bytes : 80), t->text);
}

static const wb_field fields[] = {WB_CHILD_FIELD(lazy_layer, real)};
static const wb_layer_class lazy_class = {.name = "_",
                                          .size_bytes = sizeof(lazy_layer),
                                          .fields = fields,
                                          .field_count = 1,
                                          .forward_many = forward,
                                          .describe = describe};

wb_layer *wb_lazy_new(wb_building *building, const wb_term *term) {
    lazy_layer *l = (lazy_layer *)(void *)wb_layer_new(&lazy_class);
    if (!l) return NULL;
    l->building = building, l->term = term;
    return &l->layer;
}

/* The layer itself, in the place of its stand-in. */
static wb_layer *real_of(void *user, wb_layer *layer) {
    const lazy_layer *l = (const lazy_layer *)(const void *)layer;
    char text[100];
    (void)user;
    if (layer->class_ != &lazy_class) return layer;
    if (l->real) return wb_keep_layer(l->real);
    describe(layer, true, text, sizeof text);
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "wb_parse: the size _ in %s needs an input: .input = {...}", text);
}

/* ---- the model ---- */

/* Arrays that are made here draw random numbers, so the counter is not set back. */
static bool send_input_through(const wb_parse_desc *d, wb_layer *model) {
    wb_outputsize_desc sizes = {.pad_batch = d->pad_batch, .dtype = d->dtype};
    memcpy(sizes.inputs[0], d->input, sizeof d->input);
    return wb_size_of_output(model, &sizes, true, NULL, NULL).ndim >= 0;
}

static wb_layer *finish(void *user, wb_layer *model) {
    const wb_parse_desc *d = user;
    if ((d->input[0] == 0 || send_input_through(d, model)) &&
        wb_replace_layers(&model, real_of, NULL))
        return model;
    wb_free(model);
    return NULL;
}

wb_layer *wb_parse_make(wb_parse_desc desc) {
    if (!desc.text) return wb_failed() ? NULL : wb_fail_argument_null("wb_parse", "the text");
    return wb_build_of_text(desc.text, finish, &desc);
}
