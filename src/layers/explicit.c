/* Parameters and states as separate trees, with which a model is applied. */
#include <weber/parameters.h>

#include <stdio.h>
#include <string.h>

#include "array/state.h"
#include "base/memory.h"
#include "layers/layer.h"

/* ---- trees with a model's paths ---- */

static wb_layer_list *items_of(const wb_layer *tree) {
    return wb_field_list(tree, &wb_tree_class.fields[0]);
}

static wb_layer_item *item_named(const wb_layer *tree, const char *name) {
    wb_layer_list *list = items_of(tree);
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    return NULL;
}

/* The tree of that name in another one, made where it is missing. */
static wb_layer *inner_tree(wb_layer *tree, const char *name) {
    const wb_layer_item *known = item_named(tree, name);
    if (known) return known->layer;
    wb_layer *inner = wb_layer_new(&wb_tree_class);
    wb_layer_item *item = inner ? wb_list_add(items_of(tree), name) : NULL;
    if (!item || !wb_layer_own("wb_tree", items_of(tree)->count, inner)) {
        wb_free(inner);
        return NULL;
    }
    return item->layer = inner;
}

static bool put_at(wb_layer *tree, const char *path, wb_array *x) {
    char name[WB_PATH_BYTES];
    for (const char *dot; (dot = strchr(path, '.')) && tree; path = dot + 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        tree = inner_tree(tree, name);
    }
    wb_layer_item *item = tree ? wb_list_add(items_of(tree), path) : NULL;
    if (item) item->array = wb_hold(x);
    return item != NULL;
}

/* ---- the places of a model ---- */

typedef struct slot {
    wb_array **place;
    wb_array *own; /* the model's array, which the list holds while another one is in its place */
    wb_array *put; /* NULL: the model has its own */
    char *path;
    bool is_parameter;
} slot;

typedef struct places {
    wb_visitor visitor;
    slot *items;
    int64_t count, capacity;
} places;

static bool add_place(wb_visitor *visitor, const wb_path *path, wb_array **place, bool trainable) {
    places *p = (places *)(void *)visitor;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    if (!WB_GROW(p->items, p->count, p->capacity)) return false;
    slot *s = &p->items[p->count];
    *s = (slot){.place = place, .own = *place, .path = wb_copy_text(text)};
    s->is_parameter = trainable && wb_dtype_is_float((wb_dtype)(*place)->dtype);
    if (s->path) p->count++;
    return s->path != NULL;
}

/* To be released in any case. */
static bool list_places(places *p, const char *function, wb_layer *model) {
    *p = (places){.visitor = {.array = add_place}};
    return wb_check_layer(function, model) && wb_visit(&p->visitor, model);
}

static void release(places *p) {
    for (int64_t i = 0; i < p->count; i++) wb_release(p->items[i].path);
    wb_release(p->items);
}

/* What the places hold now. */
static wb_layer *tree_of(const places *p, bool parameters) {
    wb_layer *tree = wb_layer_new(&wb_tree_class);
    bool good = tree != NULL;
    for (int64_t i = 0; good && i < p->count; i++) {
        const slot *s = &p->items[i];
        if (s->is_parameter == parameters) good = put_at(tree, s->path, *s->place);
    }
    if (good) return tree;
    wb_free(tree);
    return NULL;
}

static wb_layer *tree_of_model(const char *function, wb_layer *model, bool parameters) {
    places p;
    wb_layer *tree = list_places(&p, function, model) ? tree_of(&p, parameters) : NULL;
    release(&p);
    return tree;
}

wb_layer *wb_parameter_tree(wb_layer *model) {
    return tree_of_model("wb_parameter_tree", model, true);
}

wb_layer *wb_state_tree(wb_layer *model) { return tree_of_model("wb_state_tree", model, false); }

/* ---- applying ---- */

static const char function[] = "wb_apply_tree";

/* The tree's array for the slot, in the slot's type. */
static wb_array *array_for(const slot *s, wb_layer *ps, wb_layer *st) {
    wb_array **place = wb_slot_at(function, s->is_parameter ? ps : st, s->path);
    wb_array *x = place ? *place : NULL;
    if (!x) return NULL;
    if (!wb_same_sizes(x, s->own))
        return wb_fail_null(WB_ERROR_SHAPE, "%s: %s must be %s, as in the model, got %s", function,
                            s->path, wb_text_of(s->own), wb_text_of(x));
    return wb_cast(wb_scope_add(x), (wb_dtype)s->own->dtype);
}

static bool put_in(places *p, wb_layer *ps, wb_layer *st) {
    for (int64_t i = 0; i < p->count; i++) {
        slot *s = &p->items[i];
        wb_array *x = array_for(s, ps, st);
        if (!x) return false;
        s->put = *s->place = wb_hold(x);
    }
    return true;
}

/* States that were written meanwhile are taken back first. */
static void take_out(places *p) {
    for (int64_t i = 0; i < p->count; i++) {
        slot *s = &p->items[i];
        if (!s->put) continue;
        wb_unhold(*s->place);
        *s->place = s->own;
    }
}

static wb_array *apply(places *p, wb_layer *model, wb_array *x, wb_layer **next) {
    const int64_t begin = wb_state_begin();
    wb_array *y = wb_apply(model, x);
    wb_layer *states = y && next ? tree_of(p, false) : NULL;
    wb_state_end(begin, false);
    if (!next || !y) return y;
    *next = states;
    return states ? y : NULL;
}

static bool is_given(const wb_layer *layer, const char *what) {
    if (layer) return wb_check_layer(function, layer);
    return wb_fail_argument_null(function, what) != NULL;
}

wb_array *wb_apply_tree(wb_layer *model, wb_array *x, wb_layer *ps, wb_layer *st, wb_layer **next) {
    places p = {.count = 0};
    wb_hidden hidden;
    wb_array *y = NULL;
    if (next) *next = NULL;
    if (!is_given(model, "model") || !is_given(ps, "ps") || !is_given(st, "st")) return NULL;
    if (list_places(&p, function, model) && wb_hidden_put_aside(&hidden, model)) {
        if (put_in(&p, ps, st)) y = apply(&p, model, x, next);
        take_out(&p);
        wb_hidden_bring_back(&hidden, model);
    }
    release(&p);
    return y;
}
