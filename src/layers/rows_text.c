/* Settings of layers as text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/kinds.h"

/* ---- order ---- */

static bool is_positional(const wb_field *f) {
    return f->positional || wb_kind_of(f)->is_positional;
}

/* True for a child that is written as a positional argument. */
static bool is_in_text(const wb_field *f) {
    return f->kind == WB_FIELD_CHILD ? f->positional : wb_kind_of(f)->put != NULL;
}

int wb_settings_in_text(const wb_layer_class *k, const wb_field **list, int *positional) {
    int count = 0;
    for (int keyed = 0; keyed <= 1; keyed++) {
        for (int rank = -1; rank <= 1; rank++)
            for (int i = 0; i < k->field_count && count < WB_MOST_SETTINGS; i++) {
                const wb_field *f = &k->fields[i];
                if (is_in_text(f) && is_positional(f) == !keyed && f->rank == rank)
                    list[count++] = f;
            }
        if (!keyed) *positional = count;
    }
    return count;
}

bool wb_is_one_line(const wb_layer_class *k) {
    bool has_settings = k->field_count == 0;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        const bool is_open = (f->kind == WB_FIELD_CHILD && !f->part) || f->kind == WB_FIELD_LIST;
        if (is_open && !k->describe) return false;
        has_settings = has_settings || wb_field_is_setting(f);
    }
    return k->describe || has_settings;
}

/* ---- values ---- */

void wb_put(wb_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
    w->used += written > 0 ? (size_t)written : 0;
    if (w->used >= w->size) w->used = w->size - 1;
}

void wb_put_numbers(wb_writer *w, int count, const int64_t *numbers, bool is_short) {
    bool equal = is_short && count > 0;
    for (int i = 1; i < count; i++) equal = equal && numbers[i] == numbers[0];
    wb_put(w, equal ? "" : "(");
    for (int i = 0; i < (equal ? 1 : count); i++)
        wb_put(w, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    wb_put(w, equal ? "" : count == 1 ? ",)" : ")");
}

static bool is_usual(const wb_member *m) {
    const wb_kind_row *kind = wb_kind_of(m->field);
    const size_t bytes = wb_field_bytes(m->layer->class_, m->field);
    size_t zeros = 0;
    if (kind->is_usual) return kind->is_usual(m);
    while (zeros < bytes && m->name[zeros] == 0) zeros++;
    return zeros == bytes;
}

/* Positional settings are always written, except optional ones with their usual value. */
static bool is_written(const wb_member *m, bool is_brief) {
    const wb_kind_row *kind = wb_kind_of(m->field);
    if (!kind->put) return false;
    if (kind->is_optional ? m->field->usual < 0 : is_positional(m->field)) return true;
    return !is_brief && !is_usual(m);
}

static const char *equals_of(const wb_layer *layer) {
    return layer->class_->equals ? layer->class_->equals : "=";
}

void wb_short_real(double value, char *text, size_t size) {
    (void)snprintf(text, size, "%g", value);
}

/* "784 => 128, relu", and how many settings that are. */
static int settings_text(const wb_layer *layer, bool is_brief, wb_real_writer *real, char *text,
                         size_t size) {
    const wb_field *list[WB_MOST_SETTINGS];
    wb_writer w = {.text = text, .size = size, .real = real};
    int positional, written = 0;
    const int count = wb_settings_in_text(layer->class_, list, &positional);
    const char *before_keys = layer->class_->before_keys;
    bool has_keys = false;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        const wb_member m = wb_member_of(layer, list[i]);
        if (!is_written(&m, is_brief)) continue;
        const bool begins_keys = i >= positional && !has_keys && before_keys;
        if (written++) wb_put(&w, "%s", begins_keys ? before_keys : ", ");
        if (i >= positional) wb_put(&w, "%s%s", list[i]->name, equals_of(layer));
        has_keys = i >= positional;
        wb_kind_of(m.field)->put(&w, &m);
    }
    return written;
}

bool wb_setting_text(const wb_layer *layer, const wb_field *f, wb_real_writer *real, char *text,
                     size_t size) {
    const wb_member m = wb_member_of(layer, f);
    wb_writer w = {.text = text, .size = size, .real = real};
    text[0] = 0;
    if (!is_written(&m, false)) return false;
    if (!is_positional(f)) wb_put(&w, "%s%s", f->name, equals_of(layer));
    wb_kind_of(f)->put(&w, &m);
    return true;
}

bool wb_setting_value(const wb_layer *layer, const wb_field *f, wb_real_writer *real, char *text,
                      size_t size) {
    const wb_member m = wb_member_of(layer, f);
    wb_writer w = {.text = text, .size = size, .real = real};
    text[0] = 0;
    if (wb_kind_of(f)->put) wb_kind_of(f)->put(&w, &m);
    return wb_kind_of(f)->put != NULL;
}

void wb_setting_default(const wb_field *f, char *text, size_t size) {
    wb_writer w = {.text = text, .size = size};
    text[0] = 0;
    if (wb_kind_of(f)->put_default)
        wb_kind_of(f)->put_default(&w, f);
    else if (is_positional(f))
        wb_put(&w, "%s", f->name);
    else
        wb_put(&w, "%s=%g", f->name, f->usual);
}

bool wb_setting_range(const wb_field *f, char *text, size_t size) {
    wb_writer w = {.text = text, .size = size};
    char range[80];
    if (!wb_kind_of(f)->put_names) return false;
    wb_range_text(f, range, sizeof range);
    wb_kind_of(f)->put_names(&w, f);
    wb_put(&w, " %s", range);
    return true;
}

void wb_layer_describe(const wb_layer *layer, bool is_brief, char *text, size_t size) {
    const wb_layer_class *k = layer->class_;
    char settings[400];
    if (k->describe) {
        wb_class_describe(layer, is_brief, text, size);
        return;
    }
    (void)settings_text(layer, is_brief, wb_short_real, settings, sizeof settings);
    (void)snprintf(text, size, wb_is_one_line(k) ? "%s(%s)" : "%s", k->name, settings);
}
