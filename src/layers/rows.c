/* Settings: completes and checks the numbers in a layer's struct by the rows of its table. */
#include <stdio.h>
#include <string.h>

#include "array/use.h"
#include "array/user_call.h"
#include "layers/kinds.h"
#include "ops/ops.h"

bool wb_field_is_array(const wb_field *f) {
    return f->kind == WB_FIELD_ARRAY || f->kind == WB_FIELD_STATE;
}

bool wb_field_is_setting(const wb_field *f) { return f->kind > WB_FIELD_VALUE; }

bool wb_is_without(const wb_layer *layer, const wb_field *f) {
    return (f->without && *(const bool *)((const char *)layer + f->without)) ||
           (f->with && !*(const bool *)((const char *)layer + f->with));
}

bool wb_field_is_presence(const wb_layer_class *k, const wb_field *f) {
    for (int i = 0; f->kind == WB_FIELD_BOOL && i < k->field_count; i++)
        if (k->fields[i].with == f->offset) return true;
    return false;
}

const wb_field *wb_field_presence(const wb_layer_class *k, const wb_field *f) {
    for (int i = 0; f->with && i < k->field_count; i++)
        if (k->fields[i].offset == f->with) return &k->fields[i];
    return NULL;
}

static const wb_array *array_at(const wb_layer *layer, size_t offset) {
    return offset ? *(wb_array *const *)(const void *)((const char *)layer + offset) : NULL;
}

/* ---- defaults and ranges ---- */

void wb_layer_begin_settings(wb_layer *layer) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_member m = wb_member_of(layer, &layer->class_->fields[i]);
        if (wb_kind_of(m.field)->begin) wb_kind_of(m.field)->begin(&m);
    }
}

/* Fails if there are numbers for dimensions that the layer does not have. */
static bool check_surplus(const wb_member *m) {
    for (int list = 0; m->n > 0 && list < wb_kind_of(m->field)->per_size; list++) {
        const int64_t *x = m->numbers + list * WB_MOST_SIZES;
        int64_t got[WB_MOST_SIZES];
        int count = 0;
        for (int i = 0; i < WB_MOST_SIZES; i++) {
            got[i] = wb_said(x[i]);
            if (x[i] != 0 && x[i] != WB_SAME_) count = i + 1;
        }
        if (count > m->n)
            return wb_member_fail(m, "%s must have at most %d number%s, got %s",
                                  list ? "pad_more" : m->field->name, m->n, m->n == 1 ? "" : "s",
                                  wb_sizes_text(count, got));
    }
    return true;
}

/* ---- functions of the class ---- */

static bool derive(wb_layer *layer) {
    wb_user_call call;
    wb_user_call_begin(&call, "its derive function");
    layer->class_->derive(layer);
    return wb_user_call_end(&call, layer->class_->name);
}

static bool complete_own(wb_layer *layer) {
    wb_user_call call;
    wb_user_call_begin(&call, "its complete function");
    const bool good = layer->class_->complete(layer);
    return wb_user_call_end(&call, layer->class_->name) && good;
}

void wb_class_describe(const wb_layer *layer, bool is_brief, char *text, size_t size) {
    wb_user_call call;
    wb_user_call_begin(&call, "its describe function");
    layer->class_->describe(layer, is_brief, text, size);
    (void)wb_user_call_end(&call, layer->class_->name);
}

bool wb_class_most_positions(const wb_layer *layer, int64_t *most) {
    const wb_layer_class *k = layer->class_;
    *most = INT64_MAX;
    if (!k->most_positions) return true;
    wb_user_call call;
    wb_user_call_begin(&call, "its most_positions function");
    *most = k->most_positions(layer);
    return wb_user_call_end(&call, k->name);
}

bool wb_layer_derive(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    if (k->derive) return derive(layer);
    for (int i = 0; i < k->field_count; i++) {
        const wb_member m = wb_member_of(layer, &k->fields[i]);
        const wb_array *given = array_at(layer, m.field->given_by);
        if (given && wb_kind_of(m.field)->derive) wb_kind_of(m.field)->derive(&m, given);
    }
    return true;
}

/* In the order of the rows, with defaults first where they are wanted. */
static bool check_fields(const wb_layer *layer, bool with_defaults) {
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_member m = wb_member_of(layer, &layer->class_->fields[i]);
        const wb_kind_row *kind = wb_kind_of(m.field);
        if (!check_surplus(&m)) return false;
        if (with_defaults && kind->complete && !kind->complete(&m)) return false;
        if (kind->check && !array_at(layer, m.field->given_by) && !kind->check(&m)) return false;
    }
    return true;
}

bool wb_layer_check_settings(wb_layer *layer) { return check_fields(layer, false); }

static bool complete(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    return wb_layer_derive(layer) && check_fields(layer, true) &&
           (!k->complete || complete_own(layer));
}

/* ---- making ---- */

/* Adds the layer to an out-of-memory error; other errors name the setting. */
static void name_in_error(const wb_layer *layer, uint64_t errors) {
    char text[160];
    if (wb_error_status() != WB_ERROR_MEMORY) return;
    wb_layer_describe(layer, true, text, sizeof text);
    (void)wb_error_prefix(errors, "%s: ", text);
}

wb_layer *wb_layer_complete(wb_layer *layer) {
    if (!layer || !wb_check_layer("wb_layer_complete", layer)) return NULL;
    if (!wb_layer_own_children(layer) || !wb_scope_begin()) {
        wb_free(layer);
        return NULL;
    }
    const uint64_t errors = wb_error_count();
    const bool is_complete = complete(layer);
    name_in_error(layer, errors);
    return wb_layer_finish(layer, !is_complete);
}

/* Holds the arrays that were given. One that was released, or belongs to another thread, is taken
 * out of the layer. */
static bool hold_given(wb_layer *layer) {
    const wb_layer_class *k = layer->class_;
    bool good = true;
    for (int i = 0; i < k->field_count; i++) {
        wb_array **slot = wb_field_array(layer, &k->fields[i]);
        if (!wb_field_is_array(&k->fields[i]) || !*slot) continue;
        if (wb_may_use_array(k->name, *slot, k->fields[i].name))
            (void)wb_hold(*slot);
        else
            *slot = NULL, good = false;
    }
    return good;
}

wb_layer *wb_layer_of_desc(const wb_layer_class *k, const void *desc, size_t desc_bytes) {
    return wb_check_start(k->name, *(const char *)desc) ? wb_layer_make(k, desc, desc_bytes) : NULL;
}

wb_layer *wb_layer_make(const wb_layer_class *k, const void *desc, size_t desc_bytes) {
    wb_layer *layer = wb_layer_new(k);
    if (!layer) return NULL;
    memcpy((char *)layer + sizeof *layer, desc, desc_bytes);
    if (hold_given(layer)) return wb_layer_complete(layer);
    (void)wb_layer_own_children(layer); /* which go with it */
    wb_free(layer);
    return NULL;
}

static const wb_field *field_of(const wb_layer *layer, wb_array *const *slot) {
    for (int i = 0; i < layer->class_->field_count; i++)
        if (wb_field_at(layer, &layer->class_->fields[i]) == slot) return &layer->class_->fields[i];
    return NULL;
}

static wb_array *filled(const char *name, wb_init *init, wb_dtype dtype, int ndim,
                        const int64_t *sizes) {
    wb_user_call call;
    wb_user_call_begin(&call, ".init");
    wb_array *x = init(ndim, sizes, dtype);
    return wb_user_call_end(&call, name) ? x : NULL;
}

bool wb_layer_fill(wb_layer *layer, wb_array **slot, wb_init *init, wb_dtype dtype, int ndim,
                   const int64_t *sizes) {
    const wb_field *f = field_of(layer, slot);
    const char *name = layer->class_->name;
    if (wb_is_without(layer, f)) return true;
    if (!*slot && wb_dtype_size(dtype) && !wb_dtype_is_float(dtype)) {
        (void)wb_fail(WB_ERROR_DTYPE, "%s: dtype must be floating, got %s", name,
                      wb_dtype_name(dtype));
        return false;
    }
    if (!*slot) *slot = wb_hold(filled(name, init, dtype, ndim, sizes));
    const wb_array *x = *slot;
    if (!x) return false;
    if (x->ndim != ndim)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must have %d dimension%s, got %s", name, f->name,
                      ndim, ndim == 1 ? "" : "s", wb_text_of(x));
    else if (memcmp(x->sizes, sizes, (size_t)ndim * sizeof *sizes) != 0)
        (void)wb_fail(WB_ERROR_SHAPE, "%s: %s must be %s, got %s", name, f->name,
                      wb_sizes_text(ndim, sizes), wb_text_of(x));
    else if (!wb_dtype_is_float((wb_dtype)x->dtype))
        (void)wb_fail(WB_ERROR_DTYPE, "%s: %s must be floating, got %s", name, f->name,
                      wb_dtype_name((wb_dtype)x->dtype));
    else
        return true;
    return false;
}
