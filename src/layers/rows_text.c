/* Settings of layers as text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/layer.h"

/* ---- order ---- */

static bool is_positional(const wb_field *f) {
    return f->positional || f->kind == WB_FIELD_PAIR || f->kind == WB_FIELD_JOINT ||
           f->kind == WB_FIELD_PROJECTIONS || f->kind == WB_FIELD_ACTIVATION ||
           f->kind == WB_FIELD_CONNECTION || f->kind == WB_FIELD_SIZES;
}

/* A child stands there if it is positional. */
static bool is_in_text(const wb_field *f) {
    if (f->kind == WB_FIELD_CHILD) return f->positional;
    return wb_field_is_setting(f) && f->kind != WB_FIELD_OTHER;
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

typedef struct writer {
    char *text;
    size_t size, used;
    wb_real_writer *real;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
    w->used += written > 0 ? (size_t)written : 0;
    if (w->used >= w->size) w->used = w->size - 1;
}

/* "(3, 3)"; "3" if all are equal and is_short. */
static void put_numbers(writer *w, int count, const int64_t *numbers, bool is_short) {
    bool equal = is_short && count > 0;
    for (int i = 1; i < count; i++) equal = equal && numbers[i] == numbers[0];
    put(w, equal ? "" : "(");
    for (int i = 0; i < (equal ? 1 : count); i++)
        put(w, "%s%lld", i ? ", " : "", (long long)numbers[i]);
    put(w, equal ? "" : count == 1 ? ",)" : ")");
}

/* 1, (1, 2), or, uneven, (lo, hi, lo, hi), as in Flux. */
static void put_padding(writer *w, int n, const int64_t *pad) {
    int64_t both[2 * WB_MOST_SIZES];
    const bool is_uneven = wb_padding_numbers(n, pad, both);
    put_numbers(w, is_uneven ? 2 * n : n, is_uneven ? both : pad, !is_uneven);
}

bool wb_padding_numbers(int n, const int64_t *pad, int64_t *both) {
    bool is_uneven = false;
    for (int i = 0; i < n; i++) {
        both[2 * i] = pad[i], both[2 * i + 1] = pad[i] + pad[WB_MOST_SIZES + i];
        is_uneven = is_uneven || pad[WB_MOST_SIZES + i] != 0;
    }
    return is_uneven;
}

int wb_dims_numbers(unsigned dims, int64_t *numbers) {
    int count = 0;
    for (int i = 0; i < WB_MAX_DIMS; i++)
        if (dims & WB_DIM(i)) numbers[count++] = i + 1;
    return count;
}

static void put_reals(writer *w, const double *x) {
    const int n = wb_count_reals(x);
    char number[40];
    put(w, n == 1 ? "" : "(");
    for (int i = 0; i < n; i++) {
        w->real(x[i], number, sizeof number);
        put(w, "%s%s", i ? ", " : "", number);
    }
    put(w, n == 1 ? "" : ")");
}

static void put_choice(writer *w, const char *choice) {
    put(w, "%.*s", (int)strcspn(choice, "|"), choice);
}

static void put_joint(writer *w, const int64_t *x) {
    put_numbers(w, 2, x, true);
    put(w, " => %lld", (long long)x[2]);
}

static void put_projections(writer *w, const int64_t *x) {
    put_numbers(w, 3, x, true);
    put(w, " => ");
    put_numbers(w, 2, x + 3, true);
    put(w, " => %lld", (long long)x[5]);
}

static void put_sizes(writer *w, const wb_field *f, int n, const int64_t *x) {
    for (int i = 0; f->spread && i < n; i++) put(w, "%s%lld", i ? ", " : "", (long long)x[i]);
    if (!f->spread) put_numbers(w, n, x, false);
}

static void put_dims(writer *w, unsigned dims) {
    int64_t numbers[WB_MAX_DIMS];
    const int n = wb_dims_numbers(dims, numbers);
    put_numbers(w, n, numbers, n == 1);
}

/* False: the field is not of whole numbers. */
static bool put_whole(writer *w, const wb_layer *layer, const wb_field *f) {
    const int64_t *x = wb_field_at(layer, f);
    int n;
    (void)wb_layer_sizes(layer, &n);
    switch (f->kind) {
    case WB_FIELD_INTEGER:
        put(w, "%lld", (long long)*x);
        return true;
    case WB_FIELD_PAIR:
        put(w, "%lld => %lld", (long long)x[0], (long long)x[1]);
        return true;
    case WB_FIELD_JOINT:
        put_joint(w, x);
        return true;
    case WB_FIELD_PROJECTIONS:
        put_projections(w, x);
        return true;
    case WB_FIELD_SIZES:
        put_sizes(w, f, n, x);
        return true;
    case WB_FIELD_EACH:
        put_numbers(w, n, x, true);
        return true;
    case WB_FIELD_PADDING:
        put_padding(w, n, x);
        return true;
    default:
        return false;
    }
}

static void put_value(writer *w, const wb_layer *layer, const wb_field *f) {
    const void *at = wb_field_at(layer, f);
    char number[40];
    if (put_whole(w, layer, f)) return;
    switch (f->kind) {
    case WB_FIELD_NAME:
        put(w, ":%s", (const char *)at);
        return;
    case WB_FIELD_REALS:
        put_reals(w, at);
        return;
    case WB_FIELD_CHOICE:
        put_choice(w, f->choices[*(const int *)at]);
        return;
    case WB_FIELD_REAL:
        w->real(*(const double *)at, number, sizeof number);
        put(w, "%s", number);
        return;
    case WB_FIELD_BOOL:
        put(w, *(const bool *)at ? "true" : "false");
        return;
    case WB_FIELD_MODE:
        put(w, layer->mode_ == WB_MODE_TRAIN ? "true" : "false");
        return;
    case WB_FIELD_ACTIVATION:
        put(w, "%s", wb_activation_text(*(wb_activation *const *)at));
        return;
    case WB_FIELD_CONNECTION:
        put(w, "%s", wb_connection_name(*(wb_connection *const *)at));
        return;
    case WB_FIELD_DIMS:
        put_dims(w, *(const unsigned *)at);
        return;
    default:
        return;
    }
}

static bool is_usual_each(const wb_layer *layer, const wb_field *f, const int64_t *x) {
    int n;
    const int64_t *sizes = wb_layer_sizes(layer, &n);
    for (int i = 0; i < n; i++)
        if (x[i] != (f->usual >= 0 ? (int64_t)f->usual : sizes[i])) return false;
    return true;
}

/* Files have defaults as f32, too. */
static bool is_usual(const wb_layer *layer, const wb_field *f) {
    static const int64_t zeros[2 * WB_MOST_SIZES];
    const void *at = wb_field_at(layer, f);
    switch (f->kind) {
    case WB_FIELD_INTEGER:
        return (double)*(const int64_t *)at == f->usual;
    case WB_FIELD_REAL:
        return *(const double *)at == f->usual || *(const double *)at == (double)(float)f->usual;
    case WB_FIELD_BOOL:
        return *(const bool *)at == (f->usual != 0);
    case WB_FIELD_EACH:
        return is_usual_each(layer, f, at);
    case WB_FIELD_PADDING:
        return memcmp(at, zeros, sizeof zeros) == 0;
    case WB_FIELD_DIMS:
        return *(const unsigned *)at == 0;
    case WB_FIELD_MODE:
        return layer->mode_ == WB_MODE_AUTO;
    case WB_FIELD_ACTIVATION:
        return !*(wb_activation *const *)at;
    case WB_FIELD_CHOICE:
        return (double)*(const int *)at == f->usual;
    case WB_FIELD_REALS:
        return *(const double *)at == 0;
    default:
        return false;
    }
}

/* Positional ones have their places, but an activation or choice that is not there. */
static bool is_written(const wb_layer *layer, const wb_field *f, bool is_brief) {
    const bool may_be_missing = f->kind == WB_FIELD_ACTIVATION || f->kind == WB_FIELD_CHOICE;
    if (f->kind == WB_FIELD_CHILD) return false;
    if (f->kind == WB_FIELD_CHOICE && f->usual < 0) return true;
    if (is_positional(f) && !may_be_missing) return true;
    return !is_brief && !is_usual(layer, f);
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
    writer w = {.text = text, .size = size, .real = real};
    int positional, written = 0;
    const int count = wb_settings_in_text(layer->class_, list, &positional);
    const char *before_keys = layer->class_->before_keys;
    bool has_keys = false;
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        if (!is_written(layer, list[i], is_brief)) continue;
        const bool begins_keys = i >= positional && !has_keys && before_keys;
        if (written++) put(&w, "%s", begins_keys ? before_keys : ", ");
        if (i >= positional) put(&w, "%s%s", list[i]->name, equals_of(layer));
        has_keys = i >= positional;
        put_value(&w, layer, list[i]);
    }
    return written;
}

bool wb_setting_text(const wb_layer *layer, const wb_field *f, wb_real_writer *real, char *text,
                     size_t size) {
    writer w = {.text = text, .size = size, .real = real};
    text[0] = 0;
    if (!is_written(layer, f, false)) return false;
    if (!is_positional(f)) put(&w, "%s%s", f->name, equals_of(layer));
    put_value(&w, layer, f);
    return true;
}

static const char *text_of_flag(const wb_layer *layer, const wb_field *f) {
    if (f->kind == WB_FIELD_MODE)
        return layer->mode_ == WB_MODE_AUTO    ? "auto"
               : layer->mode_ == WB_MODE_TRAIN ? "true"
                                               : "false";
    return *(const bool *)wb_field_at(layer, f) ? "true" : "false";
}

bool wb_setting_value(const wb_layer *layer, const wb_field *f, wb_real_writer *real, char *text,
                      size_t size) {
    writer w = {.text = text, .size = size, .real = real};
    const bool is_flag = f->kind == WB_FIELD_BOOL || f->kind == WB_FIELD_MODE;
    text[0] = 0;
    if (!wb_field_is_setting(f) || f->kind == WB_FIELD_OTHER) return false;
    if (is_flag)
        put(&w, "%s", text_of_flag(layer, f));
    else
        put_value(&w, layer, f);
    return true;
}

void wb_layer_describe(const wb_layer *layer, bool is_brief, char *text, size_t size) {
    const wb_layer_class *k = layer->class_;
    char settings[400];
    if (k->describe) {
        k->describe(layer, is_brief, text, size);
        return;
    }
    (void)settings_text(layer, is_brief, wb_short_real, settings, sizeof settings);
    (void)snprintf(text, size, wb_is_one_line(k) ? "%s(%s)" : "%s", k->name, settings);
}
