/* The implicit style of Flux 0.11 to 0.14: a list of parameters, which a rule changes. */
#include <string.h>

#include "array/use.h"
#include "base/memory.h"
#include "layers/layer.h"
#include "optimise/optimiser.h"

struct wb_parameters {
    wb_object object;
    wb_layer *model;         /* owned */
    wb_optimiser *optimiser; /* owned; NULL before the first update */
    char **deleted;          /* paths that the optimiser is to freeze */
    int64_t deleted_count, deleted_capacity;
};

static void parameters_free(void *object) {
    wb_parameters *p = object;
    for (int64_t i = 0; i < p->deleted_count; i++) wb_release(p->deleted[i]);
    wb_release(p->deleted);
    wb_free(p->optimiser);
    wb_layer_let_go(p->model);
    wb_object_delete(p, sizeof *p, "list of parameters");
}

/* The owner of its model, as for an optimiser. */
static uint32_t *owner_of(const void *object) {
    return &((const wb_parameters *)object)->model->owner_;
}

static const wb_class parameters_class = {
    .name = "parameters", .owner = owner_of, .free = parameters_free, .maker = "wb_params"};

static bool check(const char *function, const wb_parameters *p) {
    return wb_may_use(function, p, &parameters_class, "the list of parameters");
}

wb_parameters *wb_params(wb_layer *model) {
    if (!wb_check_model("wb_params", model)) return NULL;
    wb_parameters *p = wb_object_new(&parameters_class, sizeof *p);
    if (p) p->model = wb_layer_hold(model);
    return p;
}

/* ---- left out ---- */

static wb_status note_deleted(wb_parameters *p, const char *path) {
    if (!WB_GROW(p->deleted, p->deleted_count, p->deleted_capacity)) return WB_ERROR_MEMORY;
    char *text = wb_copy_text(path);
    if (!text) return WB_ERROR_MEMORY;
    p->deleted[p->deleted_count++] = text;
    return WB_OK;
}

wb_status wb_params_delete(wb_parameters *parameters, const char *path) {
    static const char function[] = "wb_params_delete";
    if (!check(function, parameters)) return WB_ERROR_ARGUMENT;
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "%s: the path is NULL", function);
    if (parameters->optimiser) return wb_freeze(parameters->optimiser, path);
    if (!wb_path_is_there(parameters->model, path))
        return wb_fail(WB_ERROR_ARGUMENT, "%s: \"%s\" matches no trainable array of %s", function,
                       path, parameters->model->class_->name);
    return note_deleted(parameters, path);
}

/* ---- updates ---- */

static wb_status begin(wb_parameters *p, const wb_rule *rule) {
    wb_optimiser *o = wb_setup_make(WB_DESC(setup, .rule = *rule, .model = p->model));
    if (!o) return wb_error_status();
    for (int64_t i = 0; i < p->deleted_count; i++) {
        const wb_status status = wb_freeze(o, p->deleted[i]);
        if (status == WB_OK) continue;
        wb_free(o);
        return status;
    }
    p->optimiser = o;
    return WB_OK;
}

static wb_status take_rule(const char *function, wb_parameters *p, const wb_rule *rule) {
    wb_optimiser *o = p->optimiser;
    const wb_status status = wb_rule_check(function, rule);
    if (status != WB_OK || wb_rule_equal(&o->rule, rule)) return status;
    if (memcmp(o->rule.links, rule->links, sizeof rule->links) != 0)
        return wb_fail(WB_ERROR_ARGUMENT,
                       "%s: the parameters keep the state of %s, and the rule is %s now: a rule of "
                       "another kind needs another list, wb_params(model)",
                       function, o->rule.links[0]->name, rule->links[0]->name);
    wb_optimiser_take_settings(o, rule);
    return WB_OK;
}

wb_status wb_update_params(wb_rule rule, wb_parameters *parameters, wb_gradients *gradients) {
    static const char function[] = "wb_update_params";
    if (!check(function, parameters) || !wb_gradients_check(function, gradients))
        return WB_ERROR_ARGUMENT;
    const wb_status status =
        parameters->optimiser ? take_rule(function, parameters, &rule) : begin(parameters, &rule);
    return status == WB_OK ? wb_update(parameters->optimiser, parameters->model, gradients)
                           : status;
}

wb_optimiser *wb_params_optimiser(wb_parameters *parameters) {
    return check("wb_params_optimiser", parameters) ? parameters->optimiser : NULL;
}
