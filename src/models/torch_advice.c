/* Errors that say where a model and a PyTorch file differ, in the sizes that both sides print. */
#include <string.h>

#include "models/structure.h"
#include "models/torch.h"

/* "weight (48, 10), bias (10)" */
static void put_array(wb_text *text, const char *role, int ndim, const int64_t *sizes) {
    const char *hash = strchr(role, '#'); /* stands for the number of a layer */
    const int length = hash ? (int)(hash - role) : (int)strlen(role);
    wb_text_add(text, "%s%.*s%s", text->size ? ", " : "", length, role, hash ? hash + 1 : "");
    wb_text_add(text, ndim ? " %s" : ", a number", wb_sizes_text(ndim, sizes));
}

static bool is_put(const wb_torch_node *layer, int64_t i) {
    for (int64_t k = 0; k < i; k++)
        if (strcmp(layer->arrays[k].forms[0].role, layer->arrays[i].forms[0].role) == 0)
            return true;
    return false;
}

static void put_needs(wb_text *text, const wb_torch_node *layer) {
    for (int64_t i = 0; i < layer->array_count; i++) {
        const wb_torch_form *f = &layer->arrays[i].forms[0];
        if (!is_put(layer, i)) put_array(text, f->role, f->ndim, f->sizes);
    }
}

static void put_has(wb_text *text, const wb_torch_node *module) {
    for (int64_t i = 0; i < module->array_count; i++) {
        const wb_torch_array *a = &module->arrays[i];
        put_array(text, a->role, a->record->ndim, a->record->sizes);
    }
}

/* "Dense(48 => 10), layers.4" */
static void put_layer(wb_text *text, const wb_torch_node *layer) {
    char name[160];
    wb_layer_describe(layer->layer, false, name, sizeof name);
    wb_text_add(text, "%s%s%s", name, *layer->path ? ", " : "", layer->path);
}

static const char *name_of(const wb_torch_node *module) {
    return *module->path ? module->path : "which has no name";
}

/* "module 4 of the file, classifier," */
static void put_module(wb_text *text, const wb_torch *t, int64_t step,
                       const wb_torch_node *module) {
    if (t->is_ordered && !t->told_by_names)
        wb_text_add(text, "module %lld of the file, %s,", (long long)step + 1, name_of(module));
    else
        wb_text_add(text, "the file's module %s", name_of(module));
}

static void fail_pair(const wb_torch *t, int64_t step, const wb_torch_node *layer,
                      const wb_torch_node *module) {
    wb_text own = {.data = NULL}, needs = {.data = NULL}, its = {.data = NULL},
            has = {.data = NULL};
    put_layer(&own, layer), put_needs(&needs, layer);
    put_module(&its, t, step, module), put_has(&has, module);
    if (own.data && needs.data && its.data && has.data)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: layer %lld of the model, %s, needs %s, but %s has %s",
                      t->file->path, (long long)step + 1, own.data, needs.data, its.data, has.data);
    wb_text_release(&own), wb_text_release(&needs);
    wb_text_release(&its), wb_text_release(&has);
}

/* One side is at its end. */
static void fail_end(const wb_torch *t, int64_t step, const wb_torch_node *layer,
                     const wb_torch_node *module) {
    wb_text text = {.data = NULL};
    if (layer)
        put_layer(&text, layer);
    else
        put_module(&text, t, step, module);
    wb_text arrays = {.data = NULL};
    layer ? put_needs(&arrays, layer) : put_has(&arrays, module);
    if (text.data && arrays.data && layer)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: layer %lld of the model, %s, needs %s, but the file has only %lld "
                      "module%s with arrays",
                      t->file->path, (long long)step + 1, text.data, arrays.data,
                      (long long)t->module_count, t->module_count == 1 ? "" : "s");
    else if (text.data && arrays.data)
        (void)wb_fail(WB_ERROR_SHAPE,
                      "%s: %s has %s, but the model has only %lld layer%s with arrays",
                      t->file->path, text.data, arrays.data, (long long)step, step == 1 ? "" : "s");
    wb_text_release(&text), wb_text_release(&arrays);
}

void wb_torch_fail(const wb_torch *t, int64_t step, const wb_torch_node *layer,
                   const wb_torch_node *module) {
    if (layer && module)
        fail_pair(t, step, layer, module);
    else
        fail_end(t, step, layer, module);
    if (layer && layer->array_count && strstr(layer->arrays[0].forms[0].role, "in_proj"))
        wb_error_add("queries, keys and values that are a module each need names that say so: q, "
                     "query, to_q, q_proj");
}

/* The row for the first array of the pair. */
static void put_row(wb_text *text, const wb_torch_node *layer, const wb_torch_node *module) {
    const wb_torch_array *a = &layer->arrays[0], *found;
    const wb_torch_form *form = wb_torch_form_in(module, a, &found);
    if (!form) return;
    wb_torch_put_name(text, found->name);
    wb_text_put(text, " -> ");
    wb_torch_put_name(text, a->name);
    wb_text_add(text, "%s%s", *form->options ? " " : "", form->options);
}

static const char *reason(const wb_torch *t, const wb_torch_doubt *d) {
    if (d->names_contradict) return "the first by the order of the file, the second by the names";
    return t->is_ordered ? "their sizes are the same, and nothing in their names says which; the "
                           "order of the file is that in which a program makes modules, not that "
                           "in which it uses them"
                         : "their sizes are the same, nothing in their names says which, and this "
                           "file does not keep the order of the modules";
}

void wb_torch_fail_either(const wb_torch *t, const wb_torch_doubt *d) {
    wb_text a = {.data = NULL}, b = {.data = NULL}, own = {.data = NULL};
    put_row(&a, d->layer, d->first), put_row(&b, d->layer, d->second), put_layer(&own, d->layer);
    if (a.data && b.data && own.data)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: %s could be %s or %s: %s; give layers the names of their modules, or "
                      "the right row of a rename table (.rename): \"%s\" or \"%s\"",
                      t->file->path, own.data, name_of(d->first), name_of(d->second), reason(t, d),
                      a.data, b.data);
    wb_text_release(&a), wb_text_release(&b), wb_text_release(&own);
}

/* ---- what a file does not say ---- */

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length) {
        const char next = at[length];
        if (next != '_' && (next < 'a' || next > 'z')) return true;
    }
    return false;
}

void wb_torch_tell_assumed(wb_file *file, wb_layer *model) {
    const char *text = wb_structure_text(model, &file->arena);
    if (text && has_word(text, "gelu"))
        wb_log_line(WB_LOG_WARN,
                    "%s: the file does not say which gelu; the model's is PyTorch's gelu with "
                    "approximate='tanh', and gelu_erf would be its default",
                    file->path);
    if (text && strstr(text, "Norm("))
        wb_log_line(WB_LOG_INFO, "%s: the file does not say the eps of norms; the model's stay",
                    file->path);
    if (!text) wb_clear_error();
}
