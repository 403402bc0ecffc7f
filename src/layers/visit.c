/* Walks over a model by its field tables, and paths. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/state.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"
#include "ops/ops.h"

uint64_t wb_new_stamp(void) {
    wb_thread *thread = wb_thread_get();
    return thread ? ++thread->stamp : 0;
}

/* ---- paths ---- */

void wb_path_text(const wb_path *path, char *text, size_t size) {
    if (size == 0) return;
    text[0] = 0;
    if (!path) return;
    wb_path_text(path->outer, text, size);
    if (!path->name && path->index == 0) return; /* a list without a name */
    const size_t used = strlen(text);
    const char *dot = used ? "." : "";
    if (path->name)
        (void)snprintf(text + used, size - used, "%s%s", dot, path->name);
    else
        (void)snprintf(text + used, size - used, "%s%lld", dot, (long long)path->index);
}

/* ---- the walk ---- */

static bool visit_layer(wb_visitor *v, const wb_path *outer, wb_layer *layer, bool trainable);

static bool visit_list(wb_visitor *v, const wb_path *outer, const wb_layer_list *list,
                       bool trainable, bool arrays_trainable) {
    for (int64_t i = 0; i < list->count; i++) {
        wb_layer_item *item = &list->items[i];
        const wb_path path = {.outer = outer, .name = item->name, .index = i + 1, .list = list};
        if (item->layer && !visit_layer(v, &path, item->layer, trainable)) return false;
        if (item->array && v->array && !v->array(v, &path, &item->array, arrays_trainable))
            return false;
    }
    return true;
}

/* Among those that Flux's struct would have, from 1. */
static int64_t place_of(const wb_layer_class *k, const wb_field *field) {
    int64_t place = 1;
    for (const wb_field *f = k->fields; f < field; f++) place += !f->text_only;
    return place;
}

static bool visit_field(wb_visitor *v, const wb_path *outer, wb_layer *layer, const wb_field *field,
                        bool trainable) {
    if (field->fixed) return true;
    trainable = trainable && field->trainable;
    const int64_t place = field->name ? place_of(layer->class_, field) : 0;
    const wb_path path = {.outer = outer, .name = field->name, .index = place};
    switch (field->kind) {
    case WB_FIELD_ARRAY:
    case WB_FIELD_STATE: {
        wb_array **slot = wb_field_array(layer, field);
        if ((!*slot && !v->everywhere) || !v->array) return true;
        return v->array(v, &path, slot, trainable && !layer->frozen_);
    }
    case WB_FIELD_CHILD: {
        wb_layer *child = *wb_field_child(layer, field);
        return !child || (wb_check_layer(layer->class_->name, child) &&
                          visit_layer(v, &path, child, trainable));
    }
    case WB_FIELD_LIST:
        return visit_list(v, &path, wb_field_list(layer, field), trainable,
                          trainable && !layer->frozen_);
    default:
        return true;
    }
}

static bool visit_layer(wb_visitor *v, const wb_path *outer, wb_layer *layer, bool trainable) {
    if (layer->stamp_ == v->stamp && !v->everywhere) return true;
    layer->stamp_ = v->stamp;
    if (!wb_layer_check_fields(layer) || (v->layer && !v->layer(v, outer, layer))) return false;
    const wb_layer_class *layer_class = layer->class_;
    for (int i = 0; i < layer_class->field_count; i++)
        if (!visit_field(v, outer, layer, &layer_class->fields[i], trainable)) return false;
    return true;
}

bool wb_visit(wb_visitor *visitor, wb_layer *model) {
    visitor->stamp = wb_new_stamp();
    return visit_layer(visitor, NULL, model, true);
}

/* ---- looking a path up ---- */

/* A found place: an array's slot or a layer. */
typedef struct found {
    wb_array **slot;
    bool is_state;
    wb_layer *layer;
} found;

/* The rest of path after `name` and a dot, or NULL if it does not begin so. */
static const char *after(const char *path, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(path, name, length) != 0) return NULL;
    if (path[length] == 0) return path + length;
    return path[length] == '.' ? path + length + 1 : NULL;
}

static bool find_in_layer(wb_layer *layer, const char *path, found *out);

static bool find_in_list(const wb_layer_list *list, const char *path, found *out) {
    for (int64_t i = 0; i < list->count; i++) {
        wb_layer_item *item = &list->items[i];
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)i + 1);
        const char *rest = after(path, item->name ? item->name : number);
        if (!rest) continue;
        if (item->layer) return find_in_layer(item->layer, rest, out);
        out->slot = &item->array;
        return *rest == 0;
    }
    return false;
}

static bool find_in_field(wb_layer *layer, const wb_field *field, const char *rest, found *out) {
    switch (field->kind) {
    case WB_FIELD_ARRAY:
    case WB_FIELD_STATE:
    case WB_FIELD_HIDDEN:
        out->slot = wb_field_array(layer, field);
        out->is_state = field->kind != WB_FIELD_ARRAY;
        return *rest == 0;
    case WB_FIELD_CHILD: {
        wb_layer *child = *wb_field_child(layer, field);
        return child && find_in_layer(child, rest, out);
    }
    case WB_FIELD_LIST:
        return find_in_list(wb_field_list(layer, field), rest, out);
    default:
        return false;
    }
}

static bool find_in_layer(wb_layer *layer, const char *path, found *out) {
    if (*path == 0) {
        out->layer = layer;
        return true;
    }
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        const char *rest = field->name ? after(path, field->name) : path;
        if (rest && find_in_field(layer, field, rest, out)) return true;
    }
    return false;
}

typedef struct name_list {
    wb_visitor visitor;
    char text[700];
    size_t used;
} name_list;

static bool add_name(wb_visitor *visitor, const wb_path *path) {
    name_list *names = (name_list *)(void *)visitor;
    char one[WB_PATH_BYTES];
    wb_path_text(path, one, sizeof one);
    const size_t room = sizeof names->text - names->used, wanted = strlen(one) + 2;
    if (wanted + 4 > room) {
        (void)snprintf(names->text + names->used, room, ", ...");
        return false;
    }
    const char *separator = names->used ? ", " : "";
    names->used += (size_t)snprintf(names->text + names->used, room, "%s%s", separator, one);
    return true;
}

static bool add_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)slot, (void)trainable;
    return add_name(visitor, path);
}

static bool add_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)layer;
    return !path || add_name(visitor, path);
}

void wb_error_add_paths(wb_layer *model) {
    name_list names = {.visitor = {.array = add_array}};
    (void)wb_visit(&names.visitor, model);
    wb_error_add("it has %s", names.used ? names.text : "no arrays");
}

void wb_fail_unknown_path(const char *function, wb_layer *model, const char *path, bool of_layers) {
    name_list names = {.visitor = {.array = add_array}};
    if (of_layers) names.visitor = (wb_visitor){.layer = add_layer};
    (void)wb_visit(&names.visitor, model);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: no \"%.100s\" in %s; it has %s", function, path,
                  model->class_->name,
                  names.used  ? names.text
                  : of_layers ? "no layers"
                              : "no arrays");
}

static wb_array **find_slot(const char *function, wb_layer *model, const char *path,
                            bool *is_state) {
    found place = {.slot = NULL};
    if (!path) return wb_fail_argument_null(function, "the path");
    const bool is_there = find_in_layer(model, path, &place) && place.slot;
    *is_state = place.is_state;
    if (is_there) return place.slot;
    wb_fail_unknown_path(function, model, path, false);
    return NULL;
}

wb_array **wb_slot_at(const char *function, wb_layer *model, const char *path) {
    bool is_state = false;
    return find_slot(function, model, path, &is_state);
}

bool wb_is_state_at(wb_layer *model, const char *path) {
    found place = {.slot = NULL};
    return find_in_layer(model, path, &place) && place.is_state;
}

wb_array *wb_get(wb_layer *model, const char *path) {
    if (!wb_check_model("wb_get", model)) return NULL;
    wb_array **slot = wb_slot_at("wb_get", model, path);
    if (!slot) return NULL;
    if (*slot) return wb_scope_add(*slot);
    return wb_fail_null(WB_ERROR_ARGUMENT, "wb_get: %s has no \"%s\": it was made without one",
                        model->class_->name, path);
}

wb_layer *wb_get_layer(wb_layer *model, const char *path) {
    if (!wb_check_model("wb_get_layer", model)) return NULL;
    if (!path) return wb_fail_argument_null("wb_get_layer", "the path");
    found place = {.slot = NULL};
    if (find_in_layer(model, path, &place) && place.layer) return place.layer;
    wb_fail_unknown_path("wb_get_layer", model, path, true);
    return NULL;
}

/* The array that x is a view of, or x. */
static wb_array *origin_of(wb_array *x) {
    while (!wb_is_evaluated(x) && wb_op_rows[x->op].kind == WB_KIND_VIEW) x = x->inputs[0];
    return x;
}

/* Whether somebody else holds x, or its memory is another array's, too. */
static bool is_shared(wb_array *x) {
    if (origin_of(x) != x || x->holds > 0 || (x->flags & WB_NODE_INTERNED)) return true;
    return x->buffer && __atomic_load_n(&x->buffer->refs, __ATOMIC_RELAXED) > 1;
}

/* x, or a copy where its memory would be shared: of computed numbers now, else with them. */
static wb_array *own(wb_array *x) {
    if (!is_shared(x)) return x;
    return wb_is_evaluated(origin_of(x)) ? wb_copy(x) : wb_copied(x);
}

/* The same for a parameter: it is detached, so that no gradient reaches the arrays it was
 * computed from. */
static wb_array *own_leaf(wb_array *x) {
    if (!wb_is_evaluated(origin_of(x))) return wb_copied(wb_stop_gradient(x));
    return wb_is_leaf(x) && !is_shared(x) ? x : wb_data_copy(x);
}

/* A place, for an array of its sizes on its device. */
typedef struct target {
    wb_array **slot;
    bool is_state;
} target;

static wb_status find_target(const char *function, wb_layer *model, const char *path, wb_array **x,
                             target *t) {
    if (!wb_check_layer(function, model) || (!*x && wb_failed())) return WB_ERROR_ARGUMENT;
    if (!*x) return wb_fail(WB_ERROR_ARGUMENT, "%s: x is NULL", function);
    if (!wb_may_use_array(function, *x, "x") || wb_is_tracing(function)) return WB_ERROR_ARGUMENT;
    t->slot = find_slot(function, model, path, &t->is_state);
    if (!t->slot) return WB_ERROR_ARGUMENT;
    const wb_array *old = *t->slot;
    if (old && !wb_same_sizes(old, *x))
        return wb_fail(WB_ERROR_SHAPE, "%s: %s has sizes %s, the new array %s", function, path,
                       wb_text_of(old), wb_text_of(*x));
    if (old && !(*x = wb_beside(old, *x))) return wb_error_status();
    if (!old || wb_node_device(old) == wb_node_device(*x)) return WB_OK;
    return wb_fail(WB_ERROR_ARGUMENT, "%s: %s is on %s, the new array on %s; wb_to moves it",
                   function, path, wb_device_name(wb_node_device(old)),
                   wb_device_name(wb_node_device(*x)));
}

static wb_status put(const target *t, wb_array *x) {
    if (!x) return wb_error_status();
    if (t->is_state || wb_state_is_open()) return wb_state_write(t->slot, x);
    wb_slot_put(t->slot, x);
    return WB_OK;
}

wb_status wb_set(wb_layer *model, const char *path, wb_array *x) {
    target t = {.slot = NULL};
    const wb_status status = find_target("wb_set", model, path, &x, &t);
    if (status != WB_OK || *t.slot == x) return status;
    if (*t.slot && x->dtype != (*t.slot)->dtype) x = wb_cast(x, (wb_dtype)(*t.slot)->dtype);
    if (!x) return wb_error_status();
    return put(&t, t.is_state || wb_state_is_open() ? own(x) : own_leaf(x));
}

wb_status wb_tie(wb_layer *model, const char *path, wb_array *x) {
    static const char function[] = "wb_tie";
    target t = {.slot = NULL};
    const wb_status status = find_target(function, model, path, &x, &t);
    if (status != WB_OK) return status;
    if (*t.slot && x->dtype != (*t.slot)->dtype)
        return wb_fail(WB_ERROR_DTYPE, "%s: %s is %s, so it cannot be tied to %s", function, path,
                       wb_dtype_name((wb_dtype)(*t.slot)->dtype),
                       wb_dtype_name((wb_dtype)x->dtype));
    if (!is_shared(x) || (x->flags & WB_NODE_INTERNED))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: x must be the array of another place (from wb_get), or a view of one, "
                       "got an array that belongs to no place",
                       function);
    wb_array *origin = origin_of(x); /* of computed memory x is a view */
    if (wb_evaluate_roots(1, &origin) != WB_OK || wb_evaluate_roots(1, &x) != WB_OK)
        return wb_error_status();
    if (!wb_lies_dense(x) || !wb_is_tied(origin, x))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: x must be a whole array, perhaps transposed, permuted or reshaped, got "
                       "a view of %s that is flipped, expanded or a part of it",
                       function, wb_text_of(origin));
    return put(&t, x);
}

/* ---- counting and evaluating ---- */

typedef struct counter {
    wb_visitor visitor;
    wb_ties seen;
    wb_model_counts counts;
} counter;

static bool count_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)path;
    counter *c = (counter *)(void *)visitor;
    wb_array *x = *slot;
    if (wb_ties_find(&c->seen, x) >= 0) return true;
    if (!wb_ties_add(&c->seen, x)) return false;
    const int64_t numbers = wb_count(x), bytes = numbers * (int64_t)wb_dtype_size(x->dtype);
    if (trainable) {
        c->counts.arrays++, c->counts.numbers += numbers, c->counts.bytes += bytes;
    } else {
        c->counts.fixed_arrays++, c->counts.fixed_numbers += numbers;
        c->counts.fixed_bytes += bytes;
    }
    return true;
}

wb_model_counts wb_count_model(wb_layer *model) {
    counter c = {.visitor = {.array = count_array}};
    const bool done = wb_visit(&c.visitor, model);
    wb_ties_release(&c.seen);
    return done ? c.counts : (wb_model_counts){0};
}

int64_t wb_parameter_count(wb_layer *model) {
    return wb_check_model("wb_parameter_count", model) ? wb_count_model(model).numbers : 0;
}

typedef struct collector {
    wb_visitor visitor;
    wb_array **items;
    int64_t count, capacity;
} collector;

static bool collect_pending(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                            bool trainable) {
    (void)path, (void)trainable;
    collector *c = (collector *)(void *)visitor;
    if (wb_is_evaluated(*slot)) return true;
    if (!WB_GROW(c->items, c->count, c->capacity)) return false;
    (*slot)->flags |= WB_NODE_SETTLED;
    c->items[c->count++] = *slot;
    return true;
}

wb_status wb_model_evaluate(wb_layer *model) {
    collector c = {.visitor = {.array = collect_pending}};
    wb_status status = wb_state_settle();
    if (status != WB_OK) return status;
    status = WB_ERROR_MEMORY;
    if (wb_visit(&c.visitor, model))
        status = c.count ? wb_evaluate_roots((int)c.count, c.items) : WB_OK;
    wb_release(c.items);
    return status;
}

/* ---- where an array is ---- */

typedef struct slot_finder {
    wb_visitor visitor;
    wb_array *const *slot;
    char *text;
} slot_finder;

static bool note_path(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    const slot_finder *f = (const slot_finder *)(const void *)visitor;
    (void)trainable;
    if (slot != f->slot) return true;
    wb_path_text(path, f->text, WB_PATH_BYTES);
    return false;
}

void wb_slot_path(wb_layer *model, wb_array *const *slot, char text[WB_PATH_BYTES]) {
    slot_finder f = {.visitor = {.array = note_path}, .slot = slot, .text = text};
    text[0] = 0;
    (void)wb_visit(&f.visitor, model);
}
