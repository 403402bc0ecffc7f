/* Loops over the arrays or the layers of a model: a list is made at the first one, and released
 * after the last or with the scope. */
#include "base/memory.h"
#include "layers/layer.h"

typedef struct place {
    char *path;
    wb_layer *layer;            /* borrowed */
    wb_array *array, *gradient; /* a reference each */
    bool is_trainable;
} place;

typedef struct wb_places {
    wb_object object;
    place *items;
    int64_t count, capacity, next;
} wb_places;

static void places_free(void *object) {
    wb_places *list = object;
    for (int64_t i = 0; i < list->count; i++) {
        wb_release(list->items[i].path);
        wb_unref(list->items[i].array);
        wb_unref(list->items[i].gradient);
    }
    wb_release(list->items);
    wb_object_delete(list, sizeof *list, "list of places");
}

static const wb_class places_class = {
    .name = "list of places", .free = places_free, .maker = "wb_next_parameter or wb_next_module"};

/* ---- listing ---- */

typedef struct lister {
    wb_visitor visitor;
    wb_places *list;
    wb_place_filter *filter;
    void *user;
} lister;

static place *new_place(const lister *l, const wb_path *path) {
    wb_places *list = l->list;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    if (!WB_GROW(list->items, list->count, list->capacity)) return NULL;
    place *p = &list->items[list->count];
    *p = (place){.path = wb_copy_text(text)};
    list->count += p->path != NULL;
    return p->path ? p : NULL;
}

static bool add_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    place *p = new_place((lister *)(void *)visitor, path);
    if (p) p->layer = layer;
    return p;
}

static bool add_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    lister *l = (lister *)(void *)visitor;
    wb_array *gradient = NULL;
    trainable = trainable && wb_dtype_is_float((wb_dtype)(*slot)->dtype);
    if (!l->filter(l->user, slot, trainable, &gradient)) return !wb_failed();
    place *p = new_place(l, path);
    if (!p) return false;
    p->is_trainable = trainable;
    p->array = wb_ref(*slot);
    p->gradient = gradient ? wb_ref(gradient) : NULL;
    return true;
}

static wb_places *list_places(wb_layer *model, lister l) {
    l.list = wb_object_new(&places_class, sizeof *l.list);
    if (!l.list) return NULL;
    if (wb_visit(&l.visitor, model)) return wb_scope_own(l.list);
    wb_free(l.list);
    return NULL;
}

/* ---- going on ---- */

/* NULL after the last one, and where an error is pending. */
static const place *next_place(wb_places **list, wb_layer *model, lister l) {
    if (wb_failed()) return NULL;
    if (!*list) *list = list_places(model, l);
    return *list && (*list)->next < (*list)->count ? &(*list)->items[(*list)->next++] : NULL;
}

bool wb_next_place(wb_parameter *p, wb_layer *model, wb_place_filter *filter, void *user) {
    const place *at =
        next_place(&p->list_, model,
                   (lister){.visitor = {.array = add_array}, .filter = filter, .user = user});
    if (at) {
        p->path = at->path, p->is_trainable = at->is_trainable;
        p->array = wb_scope_add(at->array), p->gradient = wb_scope_add(at->gradient);
        if (p->array && (p->gradient || !at->gradient)) return true;
    }
    wb_free(p->list_);
    *p = (wb_parameter){.path = NULL};
    return false;
}

bool wb_next_module(wb_layer *model, wb_module *m) {
    if (!wb_check_model("wb_next_module", model)) return false;
    if (!m) return wb_fail_argument_null("wb_next_module", "the module") != NULL;
    const place *at = next_place(&m->list_, model, (lister){.visitor = {.layer = add_layer}});
    if (at) {
        m->path = at->path, m->layer = at->layer, m->type = at->layer->class_->name;
        return true;
    }
    wb_free(m->list_);
    *m = (wb_module){.path = NULL};
    return false;
}

/* Lists each array once: one that is at an earlier place already is left out. */
static bool is_new(void *user, wb_array **slot, bool trainable, wb_array **gradient) {
    wb_ties *earlier = user;
    (void)trainable, (void)gradient;
    return wb_ties_find(earlier, *slot) < 0 && wb_ties_add(earlier, *slot);
}

bool wb_next_parameter(wb_layer *model, wb_parameter *p) {
    if (!wb_check_model("wb_next_parameter", model)) return false;
    if (!p) return wb_fail_argument_null("wb_next_parameter", "the parameter") != NULL;
    wb_ties earlier = {.capacity = 0};
    const bool found = wb_next_place(p, model, is_new, &earlier);
    wb_ties_release(&earlier);
    return found;
}
