/* Lists of layers and arrays: what chains and trees are made of. */
#include <stdio.h>
#include <string.h>

#include "array/state.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "layers/layer.h"

/* The items follow this header in memory. Optimisers know the arrays of a model by their slots. So
 * the memory in which a list's items were before it grew is kept as long as the list: no other slot
 * gets the address, and wb_list_had finds it. */
typedef struct block {
    struct block *before;
    int64_t capacity;
} block;

static block *block_of(const wb_layer_list *list) {
    return list->items ? (block *)(void *)list->items - 1 : NULL;
}
static wb_layer_item *items_of(block *b) { return (wb_layer_item *)(void *)(b + 1); }

static block *new_block(int64_t capacity) {
    block *b = wb_alloc(sizeof *b + (size_t)capacity * sizeof(wb_layer_item));
    if (b) b->capacity = capacity;
    return b;
}

bool wb_list_new(wb_layer_list *list, int64_t count) {
    block *b = count ? new_block(count) : NULL;
    if (!b) return count == 0;
    *list = (wb_layer_list){items_of(b), count};
    return true;
}

static int64_t moves; /* __atomic */
int64_t wb_list_moves(void) { return __atomic_load_n(&moves, __ATOMIC_RELAXED); }
void wb_places_changed(void) { (void)__atomic_add_fetch(&moves, 1, __ATOMIC_RELAXED); }

/* Room for at least one item more; false when out of memory. */
static bool grow(wb_layer_list *list) {
    block *old = block_of(list), *b;
    if (old && list->count < old->capacity) return true;
    if (!(b = new_block(2 * list->count + 1))) return false;
    wb_layer_item *items = items_of(b);
    for (int64_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
        wb_state_moved(&list->items[i].array, &items[i].array);
    }
    b->before = old;
    list->items = items;
    if (old) wb_places_changed();
    return true;
}

wb_layer_item *wb_list_add(wb_layer_list *list, const char *name) {
    char *copy = name ? wb_copy_text(name) : NULL;
    if ((name && !copy) || !grow(list)) return wb_release(copy), NULL;
    wb_layer_item *item = &list->items[list->count++];
    *item = (wb_layer_item){.name = copy};
    return item;
}

bool wb_list_had(const wb_layer_list *list, int64_t i, wb_array *const *slot) {
    block *b = block_of(list);
    while (b && (i >= b->capacity || &items_of(b)[i].array != slot)) b = b->before;
    return b != NULL;
}

void wb_list_release(wb_layer_list *list) {
    for (int64_t i = 0; i < list->count; i++) {
        wb_layer_item *item = &list->items[i];
        if (item->layer) wb_layer_disown(item->layer);
        wb_unhold(item->array);
        wb_release(item->name);
    }
    for (block *b = block_of(list), *before; b; b = before) {
        before = b->before;
        wb_release(b);
    }
    *list = (wb_layer_list){NULL, 0};
}

/* ---- checks ---- */

static void *object_at(const wb_contents *contents, int64_t i) {
    if (contents->layers) return contents->layers[i];
    return contents->named ? contents->named[i].object : contents->objects[i];
}

/* False for another thread's object, too, which is refused and stays where it is. */
static bool is_own_layer(void *object) {
    return wb_is_layer(object) && wb_claim_owner(&((wb_layer *)object)->owner_);
}

void wb_drop_given_layer(void *object) {
    if (is_own_layer(object)) wb_free(object);
}

static bool is_array(const void *object) {
    return object && ((const wb_object *)object)->klass == &wb_array_class;
}

/* The maker of the entry has said why it is NULL; or an error was pending already, and it was not
 * run. */
static bool fail_null(const char *function, const char *what) {
    if (wb_failed())
        wb_error_add("so %s got NULL as %s", function, what);
    else
        (void)wb_fail_argument_null(function, what);
    return false;
}

static bool check_object(const char *function, int64_t place, const void *object,
                         bool layers_only) {
    char what[40];
    (void)snprintf(what, sizeof what, "%s %lld", layers_only ? "layer" : "entry", (long long)place);
    if (!object) return fail_null(function, what);
    if (layers_only || wb_is_layer(object)) return wb_may_use_layer(function, object, what);
    if (wb_known_class(object) && is_array(object)) return wb_may_use_array(function, object, what);
    if (wb_object_is_released(object)) return wb_object_check(function, object, NULL, what);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: %s is neither layer nor array; a struct of your own is declared with "
                  "WB_FUNCTOR and made by wb_new",
                  function, what);
    return false;
}

static bool is_number(const char *text) { return text[strspn(text, "0123456789")] == 0; }

/* In chains and their like "layers" is the list itself. */
static bool check_name(const char *function, const wb_named *named, int64_t i, bool layers_only) {
    const char *name = named[i].name;
    bool good = name && *name && !(layers_only && strcmp(name, "layers") == 0) &&
                !strchr(name, '.') && !is_number(name);
    for (int64_t k = 0; good && k < i; k++) good = strcmp(name, named[k].name) != 0;
    if (!good)
        (void)wb_fail(
            WB_ERROR_ARGUMENT,
            "%s: entry %lld cannot be named \"%s\": names differ from each other, have no dot, "
            "are no numbers%s",
            function, (long long)i + 1, name ? name : "", layers_only ? " and not \"layers\"" : "");
    return good;
}

static const void *list_in(const wb_contents *contents) {
    return contents->named    ? (const void *)contents->named
           : contents->layers ? (const void *)contents->layers
                              : (const void *)contents->objects;
}

static bool check_contents(const char *function, const wb_contents *contents, bool layers_only) {
    if (!wb_check_list(function, contents->count, list_in(contents))) return false;
    for (int64_t i = 0; i < contents->count; i++) {
        if (contents->named && !check_name(function, contents->named, i, layers_only)) return false;
        if (!check_object(function, i + 1, object_at(contents, i), layers_only)) return false;
    }
    return true;
}

/* ---- making ---- */

/* The layers among the contents were given to a maker that failed, each with a reference that no
 * container holds. Layers of another thread stay that thread's. */
static void release_contents(const wb_contents *contents) {
    if (!list_in(contents)) return;
    for (int64_t i = 0; i < contents->count; i++) {
        wb_layer *layer = object_at(contents, i);
        if (is_own_layer(layer) && layer->refs_ > layer->owned_) wb_free(layer);
    }
}

/* Takes over a reference to each layer; for a layer that appears again, the caller's next
 * reference, or else a new one. */
static bool own_layers(const char *function, const wb_contents *contents) {
    const uint64_t stamp = wb_new_stamp();
    for (int64_t i = 0; i < contents->count; i++) {
        wb_layer *layer = object_at(contents, i);
        if (!wb_is_layer(layer)) continue;
        if (layer->stamp_ == stamp && layer->refs_ == layer->owned_) layer->refs_++;
        layer->stamp_ = stamp;
        if (wb_layer_own(function, i + 1, layer)) continue;
        while (i-- > 0) /* as it was */
            if (wb_is_layer(object_at(contents, i))) ((wb_layer *)object_at(contents, i))->owned_--;
        return false;
    }
    return true;
}

static bool copy_names(wb_layer_list *list, const wb_contents *contents) {
    for (int64_t i = 0; contents->named && i < list->count; i++)
        if (!(list->items[i].name = wb_copy_text(contents->named[i].name))) return false;
    return true;
}

bool wb_list_fill(const char *function, wb_layer_list *list, const wb_contents *contents,
                  bool layers_only) {
    if (!check_contents(function, contents, layers_only) || !wb_list_new(list, contents->count) ||
        !copy_names(list, contents) || !own_layers(function, contents)) {
        release_contents(contents);
        return false;
    }
    for (int64_t i = 0; i < list->count; i++) {
        void *object = object_at(contents, i);
        if (is_array(object))
            list->items[i].array = wb_hold(object);
        else
            list->items[i].layer = object;
    }
    return true;
}

wb_layer *wb_wrapper_new(const char *function, const wb_layer_class *k,
                         const wb_contents *contents) {
    wb_layer *layer = check_contents(function, contents, true) ? wb_layer_new(k) : NULL;
    if (!layer) release_contents(contents);
    for (int i = 0, at = 0; layer && at < contents->count; i++)
        if (k->fields[i].kind == WB_FIELD_CHILD)
            *wb_field_child(layer, &k->fields[i]) = contents->layers[at++];
    return layer;
}

wb_layer *wb_container_new(const char *function, const wb_layer_class *layer_class,
                           size_t list_offset, const wb_contents *contents, bool layers_only) {
    wb_layer *layer = wb_layer_new(layer_class);
    if (!layer) {
        release_contents(contents);
        return NULL;
    }
    if (wb_list_fill(function, (void *)((char *)layer + list_offset), contents, layers_only))
        return layer;
    wb_free(layer);
    return NULL;
}

static bool has_names(const wb_layer_list *list) { return list->count > 0 && list->items[0].name; }

/* The names of the list and the new one, as check_name wants them. */
static bool check_new_name(const char *function, const wb_layer_list *list, const char *name,
                           bool layers_only) {
    const wb_named last = {.name = name};
    bool is_there = false;
    for (int64_t i = 0; name && i < list->count; i++)
        is_there = is_there || (list->items[i].name && strcmp(list->items[i].name, name) == 0);
    if (is_there)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: a layer is named \"%s\" already", function, name);
    else if (list->count > 0 && has_names(list) != (name != NULL))
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the other layers have %s", function,
                      name ? "no names, so the new one must have none"
                           : "names, so the new one needs one");
    else
        return !name || check_name(function, &last, 0, layers_only);
    return false;
}

static bool append(const char *function, wb_layer_list *list, const char *name, void *object,
                   bool layers_only) {
    if (!check_new_name(function, list, name, layers_only)) return false;
    wb_layer_item *item = wb_list_add(list, name);
    if (!item) return false;
    if (is_array(object)) {
        item->array = wb_hold(object);
    } else if (wb_layer_own(function, list->count, object)) {
        item->layer = object;
    } else {
        wb_release(item->name);
        list->count--;
        return false;
    }
    return true;
}

bool wb_list_extend(const char *function, wb_layer_list *list, const char *name, void *object,
                    bool layers_only) {
    const wb_contents contents = {.count = 1, .objects = &object};
    if (check_object(function, list->count + 1, object, layers_only) &&
        append(function, list, name, object, layers_only))
        return true;
    release_contents(&contents);
    return false;
}

/* ---- lists of any struct ---- */

typedef struct search {
    wb_visitor visitor;
    const wb_layer *wanted;
    bool is_found;
} search;

static bool compare(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    (void)path;
    search *s = (search *)(void *)visitor;
    s->is_found = s->is_found || layer == s->wanted;
    return true;
}

bool wb_check_cycle(const char *function, const wb_layer *outer, void *object) {
    search s = {.visitor = {.layer = compare}, .wanted = outer};
    if (!is_own_layer(object) || !wb_visit(&s.visitor, object) || !s.is_found) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: a layer cannot be part of itself, but the one given is %s or contains it",
                  function, outer->class_->name);
    return false;
}

bool wb_class_is_of_library(const wb_layer_class *k) {
    for (int i = 0; wb_class_at(i); i++)
        if (wb_class_at(i) == k) return true;
    return false;
}

/* True if no other member of the struct is in paths and files: there a list without a name of its
 * own takes the place of all members. */
static bool is_alone(const wb_layer_class *k, const wb_field *list) {
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        const bool is_in_files = wb_field_is_setting(f) ? !f->text_only : f->kind < WB_FIELD_HIDDEN;
        if (f != list && is_in_files) return false;
    }
    return true;
}

static wb_layer_list *list_found(const char *function, wb_layer *layer, const wb_field *f) {
    if (f->name || is_alone(layer->class_, f)) return wb_field_list(layer, f);
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "%s: %s has other members in its table, so its list must have a name",
                        function, layer->class_->name);
}

static wb_layer_list *list_named(const char *function, wb_layer *layer, const char *name) {
    char there[200] = "";
    size_t used = 0;
    if (!wb_check_layer(function, layer)) return NULL;
    if (!name) return wb_fail_argument_null(function, "the list's name");
    if (wb_class_is_of_library(layer->class_))
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: a struct of your own is expected, got %s%s",
                            function, layer->class_->name,
                            layer->class_ == &wb_chain_class ? ", for wb_chain_append" : "");
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        if (f->kind != WB_FIELD_LIST) continue;
        if (strcmp(f->name ? f->name : "", name) == 0) return list_found(function, layer, f);
        if (f->name && used < sizeof there)
            used += (size_t)snprintf(there + used, sizeof there - used, "%s%s",
                                     used ? ", " : "; it has ", f->name);
    }
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: %s has no list \"%s\"%s", function,
                        layer->class_->name, name, there);
}

wb_status wb_list_append(wb_layer *layer, const char *list, const char *name, void *object) {
    wb_layer_list *at = list_named("wb_list_append", layer, list);
    if (at && !wb_check_cycle("wb_list_append", layer, object)) return wb_error_status();
    if (at && wb_list_extend("wb_list_append", at, name, object, false)) return WB_OK;
    if (!at) wb_drop_given_layer(object);
    return wb_error_status();
}
