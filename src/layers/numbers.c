/* The numbers in a model's structs, as bytes. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "layers/kinds.h"
#include "ranks/facts.h"

/* ---- one number ---- */

static size_t value_bytes(int number) {
    if (number == WB_FLOATS) return sizeof(float);
    if (number == WB_DOUBLES) return sizeof(double);
    if (number == WB_BOOLS) return sizeof(bool);
    return (size_t)(number / WB_WHOLE_NUMBERS);
}

/* Functions are not sent, nor whether an array is there: both must be the same on all ranks. */
static size_t number_bytes(const wb_layer_class *k, const wb_field *f) {
    if (f->kind == WB_FIELD_VALUE) return value_bytes(f->number);
    if (!wb_field_is_setting(f) || wb_kind_of(f)->is_function) return 0;
    return wb_field_is_presence(k, f) ? 0 : wb_field_bytes(k, f);
}

/* Bytes that are not a value of the C type, such as a bool of 2, are refused before they are read
 * as one. */
static bool is_of_type(const wb_field *f, const char *bytes) {
    const wb_kind_row *kind = wb_kind_of(f);
    const int most = f->number == WB_BOOLS ? 1 : kind->most_byte;
    if (kind->is_ended) return memchr(bytes, 0, kind->bytes);
    return most == 0 || (unsigned char)*bytes <= most;
}

/* ---- all ---- */

typedef struct walker {
    wb_visitor visitor;
    char *to;         /* or NULL */
    const char *from; /* or NULL */
    size_t used;
    wb_text *facts;
} walker;

static bool copy_numbers(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    walker *w = (walker *)(void *)visitor;
    (void)path;
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        const wb_member m = wb_member_of(layer, f);
        const size_t bytes = number_bytes(layer->class_, f);
        if (bytes && w->to) memcpy(w->to + w->used, m.at, bytes);
        if (bytes && w->from && !is_of_type(f, w->from + w->used))
            return wb_fail(WB_ERROR_ARGUMENT, "%s: %s is not a number of its type",
                           layer->class_->name, f->name) == WB_OK;
        if (bytes && w->from) memcpy(m.at, w->from + w->used, bytes);
        w->used += bytes;
    }
    return !w->from || wb_layer_check_settings(layer);
}

size_t wb_model_numbers(wb_layer *model, char *bytes) {
    walker w = {.visitor = {.layer = copy_numbers}, .to = bytes};
    (void)wb_visit(&w.visitor, model);
    return w.used;
}

bool wb_model_set_numbers(wb_layer *model, const char *bytes) {
    walker w = {.visitor = {.layer = copy_numbers}, .from = bytes};
    char *before = wb_alloc(wb_model_numbers(model, NULL) + 1);
    if (!before) return false;
    (void)wb_model_numbers(model, before);
    const bool good = wb_visit(&w.visitor, model);
    if (!good) {
        w.from = before, w.used = 0;
        (void)wb_visit(&w.visitor, model);
    }
    wb_release(before);
    return good;
}

static bool tell_layer(wb_visitor *visitor, const wb_path *path, wb_layer *layer) {
    wb_text *facts = ((walker *)(void *)visitor)->facts;
    char name[WB_PATH_BYTES], value[160];
    wb_path_text(path, name, sizeof name);
    wb_fact_add(facts, name[0] ? name : "the model", layer->class_->name);
    for (int i = 0; i < layer->class_->field_count; i++) {
        const wb_field *f = &layer->class_->fields[i];
        const wb_path own = {.outer = path, .name = f->name};
        if (number_bytes(layer->class_, f)) continue;
        if (!wb_setting_value(layer, f, wb_short_real, value, sizeof value)) continue;
        wb_path_text(&own, name, sizeof name);
        wb_fact_add(facts, name, value);
    }
    return true;
}

static bool tell_array(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    char name[WB_PATH_BYTES], text[160];
    (void)trainable;
    wb_path_text(path, name, sizeof name);
    (void)snprintf(text, sizeof text, "%s %s", wb_dtype_name((wb_dtype)(*slot)->dtype),
                   wb_text_of(*slot));
    wb_fact_add(((walker *)(void *)visitor)->facts, name, text);
    return true;
}

static bool tell(wb_layer *model, wb_text *facts, wb_visitor visitor) {
    walker w = {.visitor = visitor, .facts = facts};
    return wb_visit(&w.visitor, model) && wb_text_status(facts) == WB_OK;
}

bool wb_model_tell_structure(wb_layer *model, wb_text *facts) {
    return tell(model, facts, (wb_visitor){.layer = tell_layer, .array = tell_array});
}

bool wb_model_tell_arrays(wb_layer *model, wb_text *facts) {
    return tell(model, facts, (wb_visitor){.array = tell_array});
}
