/* The arrays of a model, one after another: a list is made at the first, and goes with the last or
 * with the scope. */
#include "base/memory.h"
#include "layers/layer.h"

typedef struct place {
    char *path;
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
    wb_object_delete(list, sizeof *list, "list of parameters");
}

static const wb_class places_class = {
    .name = "list of parameters", .free = places_free, .maker = "wb_next_parameter"};

/* ---- listing ---- */

typedef struct lister {
    wb_visitor visitor;
    wb_places *list;
    wb_place_filter *filter;
    void *user;
} lister;

static bool add_place(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    lister *l = (lister *)(void *)visitor;
    wb_array *gradient = NULL;
    trainable = trainable && wb_dtype_is_float((wb_dtype)(*slot)->dtype);
    if (!l->filter(l->user, slot, trainable, &gradient)) return !wb_failed();
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    wb_places *list = l->list;
    if (!WB_GROW(list->items, list->count, list->capacity)) return false;
    place *p = &list->items[list->count];
    *p = (place){.path = wb_copy_text(text), .is_trainable = trainable};
    if (!p->path) return false;
    p->array = wb_ref(*slot);
    p->gradient = gradient ? wb_ref(gradient) : NULL;
    list->count++;
    return true;
}

static wb_places *list_places(wb_layer *model, wb_place_filter *filter, void *user) {
    wb_places *list = wb_object_new(&places_class, sizeof *list);
    if (!list) return NULL;
    lister l = {.visitor = {.array = add_place}, .list = list, .filter = filter, .user = user};
    if (wb_visit(&l.visitor, model)) return wb_scope_own(list);
    wb_free(list);
    return NULL;
}

/* ---- going on ---- */

bool wb_next_place(wb_parameter *p, wb_layer *model, wb_place_filter *filter, void *user) {
    if (!p->list_ && !wb_failed()) p->list_ = list_places(model, filter, user);
    wb_places *list = p->list_;
    if (list && !wb_failed() && list->next < list->count) {
        const place *at = &list->items[list->next++];
        p->path = at->path, p->is_trainable = at->is_trainable;
        p->array = wb_scope_add(at->array), p->gradient = wb_scope_add(at->gradient);
        if (p->array && (p->gradient || !at->gradient)) return true;
    }
    wb_free(list);
    *p = (wb_parameter){.path = NULL};
    return false;
}

/* Each once, by what stands at earlier places. */
static bool is_new(void *user, wb_array **slot, bool trainable, wb_array **gradient) {
    wb_ties *earlier = user;
    (void)trainable, (void)gradient;
    return wb_ties_find(earlier, *slot) < 0 && wb_ties_add(earlier, *slot);
}

bool wb_next_parameter(wb_layer *model, wb_parameter *p) {
    if (!wb_check_layer("wb_next_parameter", model)) return false;
    if (!p) return wb_fail_argument_null("wb_next_parameter", "the parameter") != NULL;
    wb_ties earlier = {.capacity = 0};
    const bool found = wb_next_place(p, model, is_new, &earlier);
    wb_ties_release(&earlier);
    return found;
}
