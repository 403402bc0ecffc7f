/* wb_take and wb_give: references outside of scopes, for bindings of other languages. */
#include "array/array.h"
#include "array/use.h"

static wb_array *array_of(void *object) {
    return wb_class_of(object) == &wb_array_class ? object : NULL;
}

void *wb_take(void *object) {
    if (!object || !wb_may_use_any("wb_take", object, NULL)) return NULL;
    wb_array *x = array_of(object);
    if (x)
        wb_ref(x)->taken++;
    else
        (void)wb_scope_disown(object);
    return object;
}

static bool is_yours(const wb_object *object, const wb_array *x) {
    if (x ? x->taken + x->keeps > 0 : object->scope_slot == 0) return true;
    return wb_fail(WB_ERROR_ARGUMENT, "wb_give: the %s is not yours to give: %s",
                   object->klass->name,
                   x ? "call wb_take first" : "it belongs to a scope already") == WB_OK;
}

void *wb_give(void *object) {
    if (!object || !wb_may_use_any("wb_give", object, NULL)) return NULL;
    wb_array *x = array_of(object);
    if (!is_yours(object, x)) return NULL;
    if (!x) return wb_scope_own(object);
    if (!wb_scope_add(x)) return NULL;
    if (x->taken > 0) {
        x->taken--;
        wb_unref(x);
    } else
        wb_free(x);
    return x;
}

wb_array *wb_forget_recipe(wb_array *x) {
    static const char function[] = "wb_forget_recipe";
    if (!wb_may_use_array(function, x, "x") || wb_is_tracing(function)) return NULL;
    if (x->ninputs == 0) return x; /* a recipe of numbers alone holds nothing */
    x->flags |= WB_NODE_LEFT | WB_NODE_FORGETS;
    if (wb_is_evaluated(x)) wb_node_detach(x);
    return x;
}
