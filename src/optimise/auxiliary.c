/* Auxiliary outputs of a loss, and its divisor. */
#include <stdio.h>
#include <string.h>

#include "array/divisor.h"
#include "array/thread.h"
#include "array/use.h"
#include "optimise/optimiser.h"

/* Where the current loss hands out its outputs; NULL: they are not wanted. */
static wb_aux_list *handing_to(void) { return wb_room_get(WB_ROOM_AUXILIARY); }

wb_aux_list *wb_aux_to(wb_aux_list *list) {
    wb_aux_list *before = handing_to();
    wb_room_set(WB_ROOM_AUXILIARY, list);
    return before;
}

static wb_aux_item *find(wb_aux_list *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    return NULL;
}

/* ---- in a loss ---- */

static bool check(const wb_array *x, const char *name) {
    static const char function[] = "wb_aux";
    wb_aux_list *list = handing_to();
    if (wb_failed()) return false;
    if (!name) return wb_fail_argument_null(function, "the name") != NULL;
    if (!wb_may_use_array(function, x, "x") || wb_is_tracing(function)) return false;
    if (!name[0] || strlen(name) >= WB_AUX_NAME_BYTES)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: the name must have 1 to %d bytes, got \"%s\"",
                      function, WB_AUX_NAME_BYTES - 1, name);
    else if (list && find(list, name))
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: \"%s\" was handed out already", function, name);
    else if (list && list->count == WB_AUX)
        (void)wb_fail(WB_ERROR_ARGUMENT, "%s: a loss can hand out %d arrays, \"%s\" is one more",
                      function, WB_AUX, name);
    else
        return true;
    return false;
}

wb_array *wb_aux(const char *name, wb_array *x) {
    if (!check(x, name)) return NULL;
    wb_aux_list *list = handing_to();
    if (!list) return x;
    wb_aux_item *item = &list->items[list->count++];
    (void)snprintf(item->name, sizeof item->name, "%s", name);
    item->x = wb_ref(x);
    return x;
}

/* ---- read after the call ---- */

static wb_array *get(const char *function, const wb_aux_list *list, const char *name) {
    if (!name) return wb_fail_argument_null(function, "the name");
    char names[WB_AUX * (WB_AUX_NAME_BYTES + 2)] = "none";
    size_t used = 0;
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) return wb_scope_add(list->items[i].x);
        const int n =
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", list->items[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return wb_fail_null(WB_ERROR_ARGUMENT, "%s: the loss handed out no \"%s\"; there are: %s",
                        function, name, names);
}

wb_array *wb_gradients_aux(const wb_gradients *gradients, const char *name) {
    static const char function[] = "wb_gradients_aux";
    if (!wb_gradients_check(function, gradients)) return NULL;
    return get(function, &gradients->aux, name);
}

wb_array *wb_optimiser_aux(wb_optimiser *optimiser, const char *name) {
    static const char function[] = "wb_optimiser_aux";
    if (!wb_optimiser_check(function, optimiser)) return NULL;
    return get(function, &optimiser->aux, name);
}

static void hold(wb_optimiser *o, wb_aux_list aux) {
    const wb_aux_list old = o->aux;
    o->aux = aux;
    for (int i = 0; i < o->aux.count; i++) (void)wb_hold(o->aux.items[i].x);
    for (int i = 0; i < old.count; i++) wb_unhold(old.items[i].x);
}

void wb_optimiser_hold_aux(wb_optimiser *o, const wb_gradients *g) { hold(o, g->aux); }

/* ---- what it was divided by ---- */

wb_array *wb_divided_by(wb_array *l, wb_array *divisor) {
    static const char function[] = "wb_divided_by";
    if (wb_failed()) return NULL;
    if (!l || !divisor) return wb_fail_argument_null(function, l ? "the divisor" : "the loss");
    if (!wb_may_use_array(function, l, "the loss") ||
        !wb_may_use_array(function, divisor, "the divisor") || wb_is_tracing(function))
        return NULL;
    if (wb_count(divisor) != 1 || divisor->dtype == WB_BOOL)
        return wb_fail_null(WB_ERROR_SHAPE, "%s: the divisor must be one number, got %s of %s",
                            function, wb_dtype_name((wb_dtype)divisor->dtype), wb_text_of(divisor));
    wb_divisor_tell(divisor);
    return l;
}

static void hold_divisor(wb_optimiser *o, wb_array *divisor, int64_t observations) {
    wb_array *old = o->divisor;
    o->divisor = divisor ? wb_hold(divisor) : NULL, o->observations = observations;
    wb_unhold(old);
}

void wb_optimiser_hold_divisor(wb_optimiser *o, const wb_gradients *g) {
    hold_divisor(o, g->divisor, g->observations);
}

void wb_optimiser_forget_loss(wb_optimiser *o) {
    hold(o, (wb_aux_list){.count = 0});
    hold_divisor(o, NULL, 0);
}

double wb_optimiser_weight(const wb_optimiser *o) {
    return o->divisor ? wb_item(o->divisor) : (double)o->observations;
}

wb_array *wb_optimiser_divisor(wb_optimiser *optimiser) {
    if (!wb_optimiser_check("wb_optimiser_divisor", optimiser)) return NULL;
    if (optimiser->divisor) return wb_scope_add(optimiser->divisor);
    return wb_scalar(WB_F32, (double)optimiser->observations);
}
