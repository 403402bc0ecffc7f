/* Making, releasing and applying layers. */
#include "layers/layer.h"

#include <stdio.h>
#include <string.h>

#include "array/state.h"
#include "array/thread.h"
#include "array/use.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "gradient/mode.h"
#include "layers/watch.h"

_Static_assert(sizeof(wb_object) <= sizeof(int64_t[2]), "wb_layer begins with a wb_object");

/* ---- release ---- */

/* Releases the struct's reference to a layer, which may have been freed before, by mistake. */
static void release_child(wb_layer *layer, const wb_field *field) {
    wb_layer *child = *wb_field_child(layer, field);
    if (child && field->counted)
        wb_layer_disown(child);
    else if (wb_object_is_released(child))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_free: %s.%s was freed before the %s that owns it; free the %s alone",
                      layer->class_->name, field->name, layer->class_->name, layer->class_->name);
    else
        wb_free(child);
}

/* A user's struct may have an array that was never kept. */
static bool check_kept(const wb_layer *layer, const wb_field *field) {
    const wb_array *x = *wb_field_array((wb_layer *)(uintptr_t)layer, field);
    if (!x || (wb_class_of(x) == &wb_array_class && x->holds > 0)) return true;
    (void)wb_fail(
        WB_ERROR_ARGUMENT,
        "%s.%s must hold an array by wb_keep, got one that is not held; call wb_keep once "
        "for each field",
        layer->class_->name, field->name);
    return false;
}

static void release_field(wb_layer *layer, const wb_field *field) {
    switch (field->kind) {
    case WB_FIELD_STATE:
    case WB_FIELD_HIDDEN:
        wb_state_forget(wb_field_array(layer, field));
        if (check_kept(layer, field)) wb_unhold(*wb_field_array(layer, field));
        return;
    case WB_FIELD_ARRAY:
        if (check_kept(layer, field)) wb_unhold(*wb_field_array(layer, field));
        return;
    case WB_FIELD_CHILD:
        release_child(layer, field);
        return;
    case WB_FIELD_LIST:
        wb_list_release(wb_field_list(layer, field));
        return;
    default:
        return;
    }
}

static void drop_reference(wb_layer *layer) {
    if (--layer->refs_ > 0) return;
    wb_spare *spare = layer->spare_;
    if (spare) spare->free(spare);
    if (layer->class_->released) layer->class_->released(layer);
    for (int i = 0; i < layer->class_->field_count; i++)
        release_field(layer, &layer->class_->fields[i]);
    wb_positions *positions = wb_positions_of(layer);
    if (positions) wb_state_forget_number(&positions->passed);
    wb_layer_ends(layer);
    wb_object_delete(layer, layer->class_->size_bytes, layer->class_->name);
}

/* wb_free gives one owner's reference back, but not one that belongs to a container. */
static void layer_free(void *object) {
    wb_layer *layer = object;
    char text[200];
    if (layer->refs_ > layer->owned_) {
        drop_reference(layer);
        return;
    }
    wb_layer_describe(layer, true, text, sizeof text);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "wb_free: %s belongs to a container, an optimiser or gradients, which release "
                  "it: free those, or call wb_keep_layer before you put the layer into a container",
                  text);
}

static bool is_free(const char *function, int64_t place, wb_layer *layer) {
    char text[200], what[40];
    (void)snprintf(what, sizeof what, "layer %lld", (long long)place);
    if (!wb_may_use_layer(function, layer, what)) return false;
    if (layer->refs_ > layer->owned_) return true;
    wb_layer_describe(layer, true, text, sizeof text);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: layer %lld, %s, belongs to another container already: "
                  "wb_keep_layer(layer) shares it",
                  function, (long long)place, text);
    return false;
}

bool wb_layer_own(const char *function, int64_t place, wb_layer *layer) {
    const bool good = is_free(function, place, layer);
    layer->owned_ += good;
    return good;
}

void wb_layer_disown(wb_layer *layer) {
    layer->owned_--;
    drop_reference(layer);
}

wb_layer *wb_layer_hold(wb_layer *layer) {
    layer->refs_++;
    (void)__atomic_add_fetch(&layer->owned_, 1, __ATOMIC_RELAXED);
    return layer;
}

void wb_layer_let_go(wb_layer *layer) {
    if (!layer) return;
    (void)__atomic_sub_fetch(&layer->owned_, 1, __ATOMIC_RELAXED);
    wb_free(layer); /* gradients that outlive a hand-over give it back to another thread */
}

bool wb_layer_own_children(wb_layer *layer) {
    bool good = true;
    for (int i = 0, place = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        wb_layer **child = wb_field_child(layer, field);
        if (field->kind != WB_FIELD_CHILD || !field->counted || !*child) continue;
        if (wb_layer_own(layer->class_->name, ++place, *child)) continue;
        *child = NULL;
        good = false;
    }
    return good;
}

static bool describe_leak(void *object, char *text, size_t size_bytes) {
    wb_layer *layer = object;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        const bool is_array = field->kind == WB_FIELD_ARRAY || field->kind == WB_FIELD_STATE;
        wb_array *x = is_array ? *wb_field_array(layer, field) : NULL;
        if (x && wb_class_of(x) == &wb_array_class) x->keeps = 0;
    }
    char name[160];
    wb_layer_describe(layer, true, name, sizeof name);
    (void)snprintf(text, size_bytes, "%s with %lld parameters", name,
                   (long long)wb_count_model(layer).numbers);
    return layer->refs_ > layer->owned_;
}

static uint32_t *owner_of(const void *object) { return &((wb_layer *)(uintptr_t)object)->owner_; }

static const wb_class layer_object_class = {
    .name = "layer",
    .hand_over = wb_layer_hand_over,
    .owner = owner_of,
    .to_other_threads = "call wb_share in that thread to apply the model in this one, too, or "
                        "wb_hand_over to give it to this one",
    .free = layer_free,
    .describe_leak = describe_leak};

/* ---- making ---- */

wb_layer *wb_layer_new(const wb_layer_class *layer_class) {
    if (!layer_class) return wb_fail_argument_null("wb_layer_new", "the class");
    if (!layer_class->fields)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "%s has no field table: declare it with WB_FUNCTOR (weber/class.h)",
                            layer_class->name ? layer_class->name : "a struct");
    if (layer_class->size_bytes < sizeof(wb_layer))
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s does not begin with a wb_layer",
                            layer_class->name);
    wb_layer *layer = wb_object_new(&layer_object_class, layer_class->size_bytes);
    if (!layer) return NULL;
    if (!wb_layer_begins(layer)) {
        wb_object_delete(layer, layer_class->size_bytes, layer_class->name);
        return NULL;
    }
    layer->class_ = layer_class;
    layer->refs_ = 1;
    (void)wb_claim_owner(&layer->owner_);
    wb_layer_begin_settings(layer);
    return layer;
}

wb_layer *wb_keep_layer(wb_layer *layer) {
    if (!wb_check_layer("wb_keep_layer", layer)) return NULL;
    layer->refs_++;
    return layer;
}

bool wb_is_layer(const void *object) { return wb_known_class(object) == &layer_object_class; }

bool wb_may_use_layer(const char *function, const void *object, const char *what) {
    if (!object || wb_is_layer(object) || wb_object_is_released(object))
        return wb_may_use(function, object, &layer_object_class, what);
    if (!wb_failed())
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "%s: %s is not a layer; a struct of your own must have a wb_layer as its first member, "
            "be declared with WB_FUNCTOR and be made by wb_new (weber/class.h)",
            function, what);
    return false;
}

static bool check_named(const char *function, const void *object, const char *name) {
    char what[80] = "this";
    if (wb_is_layer(object))
        (void)snprintf(what, sizeof what, "the %s", ((const wb_layer *)object)->class_->name);
    const bool is_named = !object || wb_object_is_released(object);
    return wb_may_use_layer(function, object, is_named ? name : what);
}

bool wb_check_layer(const char *function, const void *object) {
    return check_named(function, object, "the layer");
}

bool wb_check_model(const char *function, const void *object) {
    return check_named(function, object, "the model");
}

bool wb_layer_check_fields(const wb_layer *layer) {
    const wb_layer_class *layer_class = layer->class_;
    for (int i = 0; i < layer_class->field_count; i++) {
        const wb_field *field = &layer_class->fields[i];
        const bool is_array = field->kind == WB_FIELD_ARRAY || field->kind == WB_FIELD_STATE;
        if (is_array && !check_kept(layer, field)) return false;
    }
    return true;
}

bool wb_scope_begin(void) { return wb_scope_open() == WB_OK; }

wb_layer *wb_layer_finish(wb_layer *layer, bool failed) {
    if (!failed && layer && wb_model_evaluate(layer) != WB_OK) failed = true;
    if (failed) {
        wb_free(layer);
        layer = NULL;
    }
    if (wb_scope_leave() == WB_OK) return layer;
    wb_free(layer);
    return NULL;
}

/* ---- applying ---- */

/* The layer that is being applied; inner is the one that it is applying in turn. */
typedef struct layer_place {
    wb_place place;
    wb_layer *layer;
    const wb_layer *inner;
} layer_place;

/* "layer 2 of Chain", "actor of ActorCritic"; false if inner is in no field. */
static bool describe_inner(const wb_layer *layer, const wb_layer *inner, char *text, size_t size) {
    const char *name = layer->class_->name;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        if (field->kind == WB_FIELD_CHILD && *wb_field_child(layer, field) == inner) {
            (void)snprintf(text, size, "%s of %s", field->name, name);
            return true;
        }
        if (field->kind != WB_FIELD_LIST) continue;
        const wb_layer_list *list = wb_field_list(layer, field);
        for (int64_t k = 0; k < list->count; k++) {
            const wb_layer_item *item = &list->items[k];
            if (item->layer != inner) continue;
            if (item->name)
                (void)snprintf(text, size, "%s of %s", item->name, name);
            else
                (void)snprintf(text, size, "layer %lld of %s", (long long)k + 1, name);
            return true;
        }
    }
    return false;
}

static void describe_place(const wb_place *place, char *text, size_t size) {
    const layer_place *own = (const layer_place *)(const void *)place;
    if (own->inner && describe_inner(place->object, own->inner, text, size)) return;
    wb_layer_describe(place->object, true, text, size);
}

static layer_place *outer_layer(const layer_place *own) {
    wb_place *outer = own->place.outer;
    return outer && outer->describe == describe_place ? (layer_place *)(void *)outer : NULL;
}

typedef struct finder {
    wb_visitor visitor;
    const wb_layer *wanted;
    char text[WB_PATH_BYTES];
} finder;

static bool find_wanted(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    finder *f = (finder *)(void *)visitor;
    if (layer != f->wanted) return true;
    wb_path_text(path, f->text, sizeof f->text);
    return false;
}

/* For a layer that stands deeper, in one that is not applied itself, as a list of Python's. */
static void append_steps(wb_layer *layer, const wb_layer *inner, char *text, size_t size) {
    finder f = {.visitor = {.layer = find_wanted}, .wanted = inner};
    const size_t used = strlen(text);
    (void)wb_visit(&f.visitor, layer);
    if (*f.text) (void)snprintf(text + used, size - used, "%s%s", used ? "." : "", f.text);
}

/* The part of a path that leads from a layer to one in its fields, at the end of text. */
static void append_step(wb_layer *layer, const wb_layer *inner, char *text, size_t size) {
    size_t used = strlen(text);
    const char *dot = used ? "." : "";
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        if (field->kind == WB_FIELD_CHILD && *wb_field_child(layer, field) == inner) {
            (void)snprintf(text + used, size - used, "%s%s", dot, field->name);
            return;
        }
        const wb_layer_list *list =
            field->kind == WB_FIELD_LIST ? wb_field_list(layer, field) : NULL;
        for (int64_t k = 0; list && k < list->count; k++) {
            if (list->items[k].layer != inner) continue;
            const wb_path outer = {.name = field->name, .index = 0};
            const wb_path path = {.outer = &outer, .name = list->items[k].name, .index = k + 1};
            if (*dot && used + 1 < size) text[used++] = '.', text[used] = 0;
            wb_path_text(&path, text + used, size - used);
            return;
        }
    }
    append_steps(layer, inner, text, size);
}

/* The place of the layer that is being applied in the outermost layer that is being applied. */
static void path_of(const layer_place *own, char *text, size_t size) {
    const layer_place *outer = outer_layer(own);
    text[0] = 0;
    if (!outer) return;
    path_of(outer, text, size);
    append_step(outer->layer, own->layer, text, size);
}

static bool show_results(const layer_place *own, int count, wb_array **results) {
    char path[WB_PATH_BYTES];
    path_of(own, path, sizeof path);
    return wb_show_results(path, count, results);
}

/* How many results the forward function gave; 0: it failed. */
static int check_results(int count, wb_array *const *results) {
    const bool fits = count > 0 && count <= WB_MOST_ARRAYS;
    bool good = fits;
    for (int i = 0; good && i < count; i++) good = results[i] != NULL;
    if (!fits && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "the forward function must give 1 to %d arrays, got %d without an error",
                      WB_MOST_ARRAYS, count);
    if (!good && !wb_failed())
        (void)wb_fail(WB_ERROR_ARGUMENT, "the forward function returned NULL without an error");
    return good ? count : 0;
}

static int forward(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_layer_class *k = layer->class_;
    if (!k->forward && !k->forward_many)
        (void)wb_fail(WB_ERROR_ARGUMENT, "cannot be applied: it has no forward function");
    else if (k->forward && count != 1)
        (void)wb_fail(WB_ERROR_ARGUMENT, "takes one array, got %d", count);
    else if (!wb_layer_check_fields(layer))
        return 0;
    else if (k->forward_many)
        return check_results(k->forward_many(layer, count, inputs, results), results);
    else
        return results[0] = k->forward(layer, inputs[0]), check_results(1, results);
    return 0;
}

/* Up to `most` results. */
static int apply(wb_layer *layer, int count, wb_array *const *inputs, int most,
                 wb_array **results) {
    layer_place own = {.place = {.describe = describe_place, .object = layer}, .layer = layer};
    wb_place_push(&own.place);
    layer_place *outer = outer_layer(&own);
    const wb_layer *before = outer ? outer->inner : NULL;
    if (outer) outer->inner = layer;
    const int64_t states = wb_state_begin();
    wb_user_call call;
    wb_user_call_begin(&call, "the forward function");
    int given = forward(layer, count, inputs, results);
    if (!wb_user_call_end(&call, NULL)) given = 0;
    if (given > most) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "gives %d arrays, expected %d; wb_apply_many returns several", given, most);
        given = 0;
    }
    if (given > 0 && wb_is_watched() && !show_results(&own, given, results)) given = 0;
    wb_state_end(states, given > 0);
    if (outer) outer->inner = before;
    wb_place_pop(&own.place);
    return given;
}

/* "Good.a": the children that are NULL in the layer whose forward function this is; false: none. */
static bool name_missing(char *text, size_t size) {
    const wb_place *place = wb_place_innermost();
    const wb_layer *outer = place && place->describe == describe_place ? place->object : NULL;
    size_t used = 0;
    for (int i = 0; outer && i < outer->class_->field_count && used < size; i++) {
        const wb_field *f = &outer->class_->fields[i];
        if (f->kind != WB_FIELD_CHILD || *wb_field_child(outer, f)) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s.%s", used ? " or " : "",
                                 outer->class_->name, f->name);
    }
    return used > 0;
}

static bool check_applied(const char *function, const wb_layer *layer) {
    char missing[120];
    if (layer || !name_missing(missing, sizeof missing)) return wb_check_layer(function, layer);
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the layer %s is NULL", function, missing);
    return false;
}

wb_array *wb_apply(wb_layer *layer, wb_array *x) {
    wb_array *results[WB_MOST_ARRAYS];
    if (!check_applied("wb_apply", layer) || !wb_may_use_array("wb_apply", x, "x")) return NULL;
    return apply(layer, 1, &x, 1, results) ? results[0] : NULL;
}

static bool check_inputs(int count, wb_array *const *inputs) {
    if (count < 1 || count > WB_MOST_ARRAYS)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_apply_many: count must be from 1 to %d, got %d",
                       WB_MOST_ARRAYS, count) == WB_OK;
    return wb_may_use_arrays("wb_apply_many", count, inputs);
}

int wb_apply_many(wb_layer *layer, int count, wb_array *const *inputs, int capacity,
                  wb_array **out) {
    wb_array *results[WB_MOST_ARRAYS];
    if (!check_applied("wb_apply_many", layer) || !check_inputs(count, inputs) ||
        !wb_check_list("wb_apply_many", capacity, out))
        return 0;
    const int given = apply(layer, count, inputs, capacity, results);
    for (int i = 0; i < given; i++) out[i] = results[i];
    return given;
}

int wb_layer_pass(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    if (!layer->class_->forward)
        return wb_apply_many(layer, count, inputs, WB_MOST_ARRAYS, results);
    wb_array *own = wb_apply(layer, inputs[0]);
    for (int i = 1; i < count; i++) results[i] = inputs[i];
    results[0] = own;
    return own ? count : 0;
}

/* ---- modes ---- */

bool wb_training(bool training) { return wb_set_training(training); }

bool wb_is_active(const wb_layer *layer) {
    if (!layer || !wb_check_layer("wb_is_active", layer) || wb_is_sizing()) return false;
    return layer->mode_ == WB_MODE_AUTO ? wb_is_training() : layer->mode_ == WB_MODE_TRAIN;
}

typedef struct mode_visitor {
    wb_visitor visitor;
    uint8_t mode;
} mode_visitor;

static bool set_layer_mode(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)path;
    layer->mode_ = ((mode_visitor *)(void *)visitor)->mode;
    return true;
}

bool wb_layer_forget(wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *field = &layer->class_->fields[i];
        if (field->kind == WB_FIELD_HIDDEN && *wb_field_array(layer, field) &&
            wb_state_clear(wb_field_array(layer, field)) != WB_OK)
            return false;
    }
    return wb_forget_positions(layer);
}

static bool forget_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)visitor, (void)path;
    return wb_layer_forget(layer);
}

wb_status wb_reset(wb_layer *model) {
    if (!wb_check_layer("wb_reset", model)) return WB_ERROR_ARGUMENT;
    if (wb_is_tracing("wb_reset")) return WB_ERROR_ARGUMENT;
    wb_visitor v = {.layer = forget_layer};
    return wb_visit(&v, model) ? WB_OK : wb_error_status();
}

static wb_status set_mode(const char *function, wb_layer *model, uint8_t mode) {
    if (!wb_check_layer(function, model)) return WB_ERROR_ARGUMENT;
    mode_visitor v = {.visitor = {.layer = set_layer_mode}, .mode = mode};
    (void)wb_visit(&v.visitor, model);
    return WB_OK;
}

wb_status wb_train_mode(wb_layer *model) { return set_mode("wb_train_mode", model, WB_MODE_TRAIN); }
wb_status wb_test_mode(wb_layer *model) { return set_mode("wb_test_mode", model, WB_MODE_TEST); }
wb_status wb_auto_mode(wb_layer *model) { return set_mode("wb_auto_mode", model, WB_MODE_AUTO); }
