/* Layers that take the places of others in a model. */
#include "layers/layer.h"

/* In a place that counts as a container's, is_owned. */
static bool replace(wb_layer **place, bool is_owned, wb_replace_fn *fn, void *user);

/* Recursive, as walks over models are. */
static bool replace_inside(wb_layer *layer, wb_replace_fn *fn, void *user) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        wb_layer **child = wb_field_child(layer, f);
        if (f->kind == WB_FIELD_CHILD && *child && !replace(child, f->counted, fn, user))
            return false;
        if (f->kind != WB_FIELD_LIST) continue;
        const wb_layer_list *list = wb_field_list(layer, f);
        for (int64_t k = 0; k < list->count; k++)
            if (list->items[k].layer && !replace(&list->items[k].layer, true, fn, user))
                return false;
    }
    return true;
}

static bool replace(wb_layer **place, bool is_owned, wb_replace_fn *fn, void *user) {
    wb_layer *old = *place, *new = fn(user, old);
    if (!new) return false;
    if (new != old) {
        *place = new;
        new->owned_ += is_owned;
        if (is_owned)
            wb_layer_disown(old);
        else
            wb_free(old);
    }
    return replace_inside(new, fn, user);
}

bool wb_replace_layers(wb_layer **model, wb_replace_fn *fn, void *user) {
    return replace(model, false, fn, user);
}
