/* Applies a function to all arrays of a model: to a new model (wb_map), in place (wb_walk); copies
 * models and shares them with other threads. */
#include <string.h>

#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "layers/layer.h"

/* An array or a layer and its replacement; the old one is not held, because the model holds it. */
typedef struct pair {
    const void *old;
    void *new;
} pair;

typedef struct mapping {
    const char *function; /* of the library, for errors */
    wb_leaf_fn *fn;
    void *user;
    pair *pairs;
    int64_t count, capacity;
    wb_table by_address; /* of what is old */
    wb_table made;       /* arrays that fn gave, by address */
    wb_ties arrays;      /* the old ones; NULL for layers */
} mapping;

static void release(mapping *m) {
    wb_release(m->pairs);
    wb_table_release(&m->by_address);
    wb_table_release(&m->made);
    wb_ties_release(&m->arrays);
}

static void *known(const mapping *m, const void *old) {
    const int64_t i = wb_table_find(&m->by_address, (uint64_t)(uintptr_t)old);
    return i >= 0 ? m->pairs[i].new : NULL;
}

static bool remember(mapping *m, const void *old, void *new, bool is_array) {
    if (!WB_GROW(m->pairs, m->count, m->capacity) ||
        !wb_table_add(&m->by_address, (uint64_t)(uintptr_t)old) ||
        !wb_ties_add(&m->arrays, is_array ? old : NULL))
        return false;
    m->pairs[m->count++] = (pair){old, new};
    return true;
}

/* If x is a view of an array that was mapped, *y is that view of what the array became. */
static bool map_view(const mapping *m, const wb_array *x, wb_array **y) {
    const int64_t i = wb_ties_find(&m->arrays, x);
    if (i < 0) return false;
    const wb_array *old = m->pairs[i].old;
    wb_array *new = m->pairs[i].new;
    if (new->ndim != old->ndim || wb_count(new) != wb_count(old)) return false;
    *y = wb_through_memory(old, new, x);
    return true;
}

/* The result of fn, or a copy if fn returned the same array for another one, since the two would be
 * tied. */
static wb_array *untied(mapping *m, const wb_array *x, wb_array *y) {
    if (!y || y == x) return y;
    if (wb_table_find(&m->made, (uint64_t)(uintptr_t)y) >= 0) return wb_copy(y);
    return wb_table_add(&m->made, (uint64_t)(uintptr_t)y) ? y : NULL;
}

static wb_array *call(const mapping *m, const char *path, wb_array *x) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *y = m->fn(m->user, path, x);
    if (!wb_user_call_end(&call, m->function)) return NULL;
    if (!y && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the function gave NULL for %s", m->function, path);
    return y;
}

/* fn's result for the array at path, the same for the same array; belongs to the scope. */
static wb_array *map_array(mapping *m, const wb_path *path, wb_array *x) {
    wb_array *y = known(m, x);
    if (y) return y;
    if (map_view(m, x, &y)) return y && remember(m, x, y, true) ? y : NULL;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    y = untied(m, x, call(m, text, x));
    return y && remember(m, x, y, true) ? y : NULL;
}

/* ---- wb_map ---- */

static wb_layer *map_layer(mapping *m, const wb_path *outer, wb_layer *layer);

static bool map_slot(mapping *m, const wb_path *path, wb_array *old, wb_array **slot) {
    return !old || (*slot = wb_hold(map_array(m, path, old))) != NULL;
}

static bool map_child(mapping *m, const wb_path *path, wb_layer *old, wb_layer **child) {
    return !old || (*child = map_layer(m, path, old)) != NULL;
}

static bool map_list(mapping *m, const wb_path *outer, const wb_layer_list *old,
                     wb_layer_list *new) {
    if (!wb_list_new(new, old->count)) return false;
    for (int64_t i = 0; i < old->count; i++) {
        const wb_layer_item *from = &old->items[i];
        wb_layer_item *to = &new->items[i];
        const wb_path path = {.outer = outer, .name = from->name, .index = i + 1};
        if (from->name && !(to->name = wb_copy_text(from->name))) return false;
        if (!map_child(m, &path, from->layer, &to->layer)) return false;
        if (to->layer) to->layer->owned_++;
        if (!map_slot(m, &path, from->array, &to->array)) return false;
    }
    return true;
}

static bool map_field(mapping *m, const wb_path *outer, wb_layer *layer, wb_layer *copy,
                      const wb_field *field) {
    const wb_path path = {.outer = outer, .name = field->name, .index = 0};
    switch (field->kind) {
    case WB_FIELD_ARRAY:
    case WB_FIELD_STATE: {
        wb_array *old = *wb_field_array(layer, field), **slot = wb_field_array(copy, field);
        if (!field->fixed) return map_slot(m, &path, old, slot);
        *slot = wb_hold(old);
        return true;
    }
    case WB_FIELD_CHILD: {
        wb_layer *old = *wb_field_child(layer, field), **child = wb_field_child(copy, field);
        if (!field->fixed || !old) {
            if (!map_child(m, &path, old, child)) return false;
            if (*child && field->counted) (*child)->owned_++;
            return true;
        }
        *child = wb_keep_layer(old);
        return true;
    }
    case WB_FIELD_LIST:
        return map_list(m, &path, wb_field_list(layer, field), wb_field_list(copy, field));
    default:
        return true;
    }
}

/* The copy has none of the fields that are arrays or layers. */
static void empty_fields(wb_layer *copy) {
    const wb_layer_class *layer_class = copy->class_;
    wb_positions *positions = wb_positions_of(copy);
    if (positions) positions->passed = 0; /* as the hidden states, which the copy has none of */
    for (int i = 0; i < layer_class->field_count; i++) {
        const wb_field *field = &layer_class->fields[i];
        if (field->kind == WB_FIELD_LIST)
            *wb_field_list(copy, field) = (wb_layer_list){NULL, 0};
        else if (field->kind == WB_FIELD_CHILD)
            *wb_field_child(copy, field) = NULL;
        else if (wb_field_is_array(field) || field->kind == WB_FIELD_HIDDEN)
            *wb_field_array(copy, field) = NULL;
    }
}

/* A copy of the layer's bytes that owns nothing yet, except what the class's hook has made for
 * it. */
static wb_layer *copy_values(const wb_layer *layer) {
    const wb_layer_class *layer_class = layer->class_;
    wb_layer *copy = wb_layer_new(layer_class);
    if (!copy) return NULL;
    char *bytes = (char *)copy + sizeof *copy;
    const size_t count = layer_class->size_bytes - sizeof *copy;
    memcpy(bytes, (const char *)layer + sizeof *layer, count);
    copy->mode_ = layer->mode_, copy->frozen_ = layer->frozen_;
    empty_fields(copy);
    if (!layer_class->copied || layer_class->copied(copy)) return copy;
    memset(bytes, 0, count); /* nothing that is the original's is released with it */
    wb_free(copy);
    if (wb_failed()) return NULL;
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: the hook `copied` gave false without an error",
                        layer_class->name);
}

static wb_layer *map_layer(mapping *m, const wb_path *outer, wb_layer *layer) {
    wb_layer *copy = known(m, layer);
    if (copy) return wb_keep_layer(copy);
    copy = copy_values(layer);
    if (!copy) return NULL;
    bool good = remember(m, layer, copy, false);
    for (int i = 0; good && i < layer->class_->field_count; i++)
        good = map_field(m, outer, layer, copy, &layer->class_->fields[i]);
    if (good) return copy;
    wb_free(copy);
    return NULL;
}

wb_layer *wb_map(wb_leaf_fn *fn, void *user, wb_layer *model) {
    if (!wb_check_layer("wb_map", model)) return NULL;
    if (!fn) return wb_fail_argument_null("wb_map", "the function");
    if (wb_model_evaluate(model) != WB_OK || !wb_scope_begin()) return NULL;
    mapping m = {.function = "wb_map", .fn = fn, .user = user};
    wb_layer *copy = map_layer(&m, NULL, model);
    release(&m);
    return wb_layer_finish(copy, copy == NULL);
}

/* ---- in place ---- */

typedef struct wb_exchange_place {
    wb_array **slot, *new; /* held */
} place;

bool wb_exchange_add(wb_exchange *e, wb_array **slot, wb_array *new) {
    if (!new || !WB_GROW(e->places, e->count, e->capacity)) return false;
    e->places[e->count++] = (place){slot, wb_hold(new)};
    return true;
}

typedef struct walker {
    wb_visitor visitor;
    mapping mapping;
    wb_exchange *exchange;
} walker;

static bool plan_place(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)trainable;
    walker *w = (walker *)(void *)visitor;
    return wb_exchange_add(w->exchange, slot, map_array(&w->mapping, path, *slot));
}

bool wb_exchange_walk(wb_exchange *e, wb_leaf_fn *fn, void *user, wb_layer *model) {
    walker w = {.visitor = {.array = plan_place},
                .mapping = {.function = "wb_walk", .fn = fn, .user = user},
                .exchange = e};
    const bool good = wb_visit(&w.visitor, model);
    release(&w.mapping);
    return good;
}

wb_status wb_exchange_evaluate(const wb_exchange *e) {
    wb_array **pending = wb_alloc((size_t)(e->count + 1) * sizeof(wb_array *));
    if (!pending) return WB_ERROR_MEMORY;
    int count = 0;
    for (int64_t i = 0; i < e->count; i++) {
        wb_array *x = e->places[i].new;
        if (wb_is_evaluated(x)) continue;
        x->flags |= WB_NODE_SETTLED;
        pending[count++] = x;
    }
    const wb_status status = count ? wb_evaluate_roots(count, pending) : WB_OK;
    wb_release(pending);
    return status;
}

void wb_exchange_end(wb_exchange *e, bool commit) {
    for (int64_t i = 0; i < e->count; i++) {
        const place *p = &e->places[i];
        if (commit) wb_slot_put(p->slot, p->new);
        wb_unhold(p->new);
    }
    wb_release(e->places);
    *e = (wb_exchange){.count = 0};
}

wb_status wb_walk(wb_leaf_fn *fn, void *user, wb_layer *model) {
    if (!wb_check_model("wb_walk", model)) return WB_ERROR_ARGUMENT;
    if (!fn) return wb_fail(WB_ERROR_ARGUMENT, "wb_walk: the function is NULL");
    if (wb_model_evaluate(model) != WB_OK || !wb_scope_begin()) return wb_error_status();
    wb_exchange e = {.count = 0};
    wb_status status = WB_OK;
    if (!wb_exchange_walk(&e, fn, user, model))
        status = wb_failed() ? wb_error_status() : WB_ERROR_MEMORY;
    if (status == WB_OK) status = wb_exchange_evaluate(&e);
    wb_exchange_end(&e, status == WB_OK);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}

/* ---- copies ---- */

static wb_array *copy_leaf(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_data_copy(x);
}

wb_layer *wb_clone(wb_layer *model) {
    return wb_check_layer("wb_clone", model) ? wb_map(copy_leaf, NULL, model) : NULL;
}

static wb_array *share_leaf(void *user, const char *path, wb_array *x) {
    (void)user, (void)path;
    return wb_node_share(x);
}

/* It belongs to the thread that uses it first. */
static bool mark_shared(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)visitor, (void)path;
    layer->shared_ = true;
    layer->owner_ = 0;
    return true;
}

wb_layer *wb_share(wb_layer *model) {
    if (!wb_check_model("wb_share", model)) return NULL;
    wb_layer *copy = wb_map(share_leaf, NULL, model);
    wb_visitor v = {.layer = mark_shared};
    if (copy) (void)wb_visit(&v, copy);
    return copy;
}

wb_array *wb_share_array(wb_array *x) {
    if (!x || !wb_may_use_array("wb_share_array", x, "x") || !wb_scope_begin()) return NULL;
    wb_array *shared = wb_evaluate_roots(1, &x) == WB_OK ? wb_node_share(x) : NULL;
    if (shared) wb_ref(shared)->taken++;
    if (wb_scope_leave() == WB_OK) return shared;
    wb_free(shared);
    return NULL;
}

static bool let_go(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)visitor, (void)path;
    wb_spare *spare = layer->spare_;
    layer->spare_ = NULL;
    if (spare) spare->free(spare);
    layer->owner_ = 0;
    return wb_layer_forget(layer);
}

wb_status wb_layer_hand_over(void *object) {
    wb_layer *model = object;
    if (!wb_check_layer("wb_hand_over", model)) return WB_ERROR_ARGUMENT;
    wb_status status = wb_model_evaluate(model);
    if (status == WB_OK) status = wb_walk(share_leaf, NULL, model);
    wb_visitor v = {.layer = let_go};
    if (status == WB_OK && !wb_visit(&v, model)) status = wb_error_status();
    return status;
}

wb_status wb_hand_over(void *object) {
    if (!wb_may_use_any("wb_hand_over", object, NULL)) return wb_error_status();
    const wb_class *klass = ((wb_object *)object)->klass;
    if (klass->hand_over) return klass->hand_over(object);
    return wb_fail(WB_ERROR_ARGUMENT,
                   "wb_hand_over: expected a model, an optimiser or a loader, got a %s",
                   klass->name);
}
