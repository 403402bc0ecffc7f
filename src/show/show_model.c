/* Models and optimisers as text, after Flux. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>

#include "array/use.h"
#include "layers/layer.h"
#include "ops/step.h"
#include "optimise/optimiser.h"
#include "show/print.h"

enum { COMMENT_COLUMN = 40, LAST_COLUMN = 20, LINE_BYTES = 512 };

/* ---- numbers ---- */

/* 1234567 as 1_234_567. */
static void grouped(int64_t number, char *text, size_t size) {
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i && (length - i) % 3 == 0) text[used++] = '_';
        text[used++] = digits[i];
    }
    text[used] = 0;
}

static void bytes_text(int64_t bytes, char *text, size_t size) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 10240) {
        (void)snprintf(text, size, "%lld bytes", (long long)bytes);
        return;
    }
    double scaled = (double)bytes / 1024;
    size_t unit = 0;
    for (; scaled >= 1024 && unit < 3; unit++) scaled /= 1024;
    (void)snprintf(text, size, "%.3f %s", scaled, units[unit]);
}

/* ---- what is odd about a layer's numbers ---- */

typedef struct oddity {
    wb_visitor visitor;
    bool nonzero, nan, infinite;
} oddity;

static void look_at(oddity *o, double value) {
    if (isnan(value))
        o->nan = true;
    else if (isinf(value))
        o->infinite = true;
    if (value != 0) o->nonzero = true;
}

static bool look_at_array(wb_visitor *visitor, const wb_path *path, wb_array **slot,
                          bool trainable) {
    (void)path;
    oddity *o = (oddity *)(void *)visitor;
    wb_array *x = *slot;
    const void *data =
        trainable && (x->dtype == WB_F32 || x->dtype == WB_F64) ? wb_read_begin(x) : NULL;
    if (!data) {
        o->nonzero = true;
        return true;
    }
    const int64_t count = wb_count(x);
    for (int64_t i = 0; i < count; i++)
        look_at(o,
                x->dtype == WB_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i]);
    wb_read_end(x);
    return true;
}

static const char *remark(wb_layer *layer) {
    oddity o = {.visitor = {.array = look_at_array}};
    (void)wb_visit(&o.visitor, layer);
    if (o.nan) return "  (some NaN)";
    if (o.infinite) return "  (some Inf)";
    return o.nonzero ? "" : "  (all zero)";
}

/* ---- lines ---- */

static void pad_to(wb_text *out, size_t used, size_t column) {
    const size_t spaces = used + 2 < column ? column - used : 2;
    wb_text_add(out, "%*s", (int)spaces, "");
}

/* "# 100_480 parameters, plus 64", or nothing for a layer without arrays. */
static void print_counts(wb_text *out, size_t used, int depth, const wb_model_counts *counts,
                         const char *note) {
    char numbers[32], more[32];
    if (counts->numbers + counts->fixed_numbers == 0) return;
    pad_to(out, used, depth ? COMMENT_COLUMN : LAST_COLUMN);
    grouped(counts->numbers, numbers, sizeof numbers);
    grouped(counts->fixed_numbers, more, sizeof more);
    wb_text_add(out, "# %s parameter%s", numbers, counts->numbers == 1 ? "" : "s");
    if (counts->fixed_numbers) wb_text_add(out, ", plus %s%s", more, depth ? "" : " non-trainable");
    wb_text_add(out, "%s", note);
}

static void print_line(wb_text *out, int depth, const char *name, const char *text,
                       const wb_model_counts *counts, const char *note) {
    const size_t before = out->size;
    wb_text_add(out, "%*s%s%s%s%s", 2 * depth, "", name ? name : "", name ? " = " : "", text,
                depth ? "," : "");
    print_counts(out, out->size - before, depth, counts, note);
    wb_text_add(out, "\n");
}

/* ---- the tree ---- */

static void print_layer(wb_text *out, int depth, const char *name, wb_layer *layer);

static void print_array_line(wb_text *out, int depth, const char *name, wb_array *x,
                             bool trainable) {
    char text[LINE_BYTES];
    (void)snprintf(text, sizeof text, "%s %s", wb_dtype_name((wb_dtype)x->dtype), wb_text_of(x));
    wb_model_counts counts = {0};
    *(trainable ? &counts.numbers : &counts.fixed_numbers) = wb_count(x);
    print_line(out, depth, name, text, &counts, "");
}

static void print_list(wb_text *out, int depth, const wb_layer_list *list, bool trainable) {
    for (int64_t i = 0; i < list->count; i++) {
        const wb_layer_item *item = &list->items[i];
        if (item->layer) print_layer(out, depth, item->name, item->layer);
        if (item->array) print_array_line(out, depth, item->name, item->array, trainable);
    }
}

static void print_field(wb_text *out, int depth, wb_layer *layer, const wb_field *field) {
    if (field->kind == WB_FIELD_LIST) {
        print_list(out, depth, wb_field_list(layer, field), !layer->frozen_);
    } else if (field->kind == WB_FIELD_CHILD) {
        wb_layer *child = *wb_field_child(layer, field);
        if (child) print_layer(out, depth, field->positional ? NULL : field->name, child);
    } else if (wb_field_is_array(field)) {
        wb_array *x = *wb_field_array(layer, field);
        if (x) print_array_line(out, depth, field->name, x, field->trainable && !layer->frozen_);
    }
}

/* Settings of a layer that takes several lines, and children among them. */
static void print_settings(wb_text *out, int depth, wb_layer *layer) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    char text[LINE_BYTES];
    const int count = wb_settings_in_text(layer->class_, list, &positional);
    for (int i = 0; i < count; i++) {
        if (list[i]->kind == WB_FIELD_CHILD)
            print_field(out, depth, layer, list[i]);
        else if (wb_setting_text(layer, list[i], wb_short_real, text, sizeof text))
            wb_text_add(out, "%*s%s,\n", 2 * depth, "", text);
    }
}

/* A layer that describes itself takes one line; others open a level for their layers. */
static void print_layer(wb_text *out, int depth, const char *name, wb_layer *layer) {
    const wb_layer_class *layer_class = layer->class_;
    const wb_model_counts counts = wb_count_model(layer);
    if (wb_is_one_line(layer_class)) {
        char text[LINE_BYTES];
        wb_layer_describe(layer, false, text, sizeof text);
        print_line(out, depth, name, text, &counts, counts.numbers ? remark(layer) : "");
        return;
    }
    wb_text_add(out, "%*s%s%s%s(\n", 2 * depth, "", name ? name : "", name ? " = " : "",
                layer_class->name);
    print_settings(out, depth + 1, layer);
    for (int i = 0; i < layer_class->field_count; i++)
        if (!layer_class->fields[i].positional)
            print_field(out, depth + 1, layer, &layer_class->fields[i]);
    wb_text_add(out, "%*s)%s", 2 * depth, "", depth ? ",\n" : "");
}

/* The last line's "# Total: 4 arrays, 769 parameters, 3076 bytes.", as in Flux only if there are
 * more than two arrays. */
static void print_total(wb_text *out, const wb_model_counts *counts) {
    char numbers[32], more[32], bytes[32];
    if (counts->arrays + counts->fixed_arrays <= 2) {
        wb_text_add(out, "\n");
        return;
    }
    grouped(counts->numbers, numbers, sizeof numbers);
    grouped(counts->fixed_numbers, more, sizeof more);
    bytes_text(counts->bytes + counts->fixed_bytes, bytes, sizeof bytes);
    pad_to(out, 1, LAST_COLUMN);
    if (!counts->fixed_arrays) {
        wb_text_add(out, "# Total: %lld arrays, %s parameters, %s.\n", (long long)counts->arrays,
                    numbers, bytes);
        return;
    }
    wb_text_add(out, "# Total: %lld trainable arrays, %s parameters,\n", (long long)counts->arrays,
                numbers);
    pad_to(out, 0, LAST_COLUMN);
    wb_text_add(out, "# plus %lld non-trainable, %s parameters, %s.\n",
                (long long)counts->fixed_arrays, more, bytes);
}

/* "# on OpenCL(0)", unless it is the CPU. */
static void print_place(wb_text *out, const wb_layer *model) {
    wb_error_aside older;
    wb_error_put_aside(&older);
    const wb_device *device = wb_device_of(model);
    const bool is_mixed = wb_failed();
    wb_clear_error();
    wb_error_bring_back(&older);
    if (is_mixed)
        wb_text_add(out, "# on several devices\n");
    else if (device && device != wb_cpu_device())
        wb_text_add(out, "# on %s\n", wb_device_name(device));
}

static void print_model(wb_text *out, wb_layer *model) {
    print_layer(out, 0, NULL, model);
    if (!wb_is_one_line(model->class_)) {
        const wb_model_counts counts = wb_count_model(model);
        print_total(out, &counts);
    }
    print_place(out, model);
}

/* ---- optimisers ---- */

/* True if a name of the row's ends in 1 and the next one is the same with a 2: "beta1", "beta2". */
static bool is_pair(const wb_rule_row *row, int i, int count) {
    const char *name = row->settings[i].name;
    const size_t n = strlen(name) - 1;
    return i + 1 < count && name[n] == '1' && strlen(row->settings[i + 1].name) == n + 1 &&
           row->settings[i + 1].name[n] == '2' && memcmp(name, row->settings[i + 1].name, n) == 0;
}

/* "Adam(eta=0.001, beta=(0.9, 0.999), epsilon=1e-08)" */
static void print_link(wb_text *out, const wb_rule_row *row, const double *values) {
    const int count = wb_rule_settings(row);
    wb_text_add(out, "%s(", row->name);
    for (int i = 0; i < count; i++) {
        const wb_rule_setting *s = &row->settings[i];
        const char *name = s->flux ? s->flux : s->name;
        if (i) wb_text_add(out, ", ");
        if (s->kind == WB_SETTING_FLAG) {
            const bool is_opposite = name[0] == '!';
            wb_text_add(out, "%s=%s", name + is_opposite,
                        (values[i] != 0) != is_opposite ? "true" : "false");
        } else if (is_pair(row, i, count)) {
            wb_text_add(out, "%.*s=(%g, %g)", (int)strlen(name) - 1, name, values[i],
                        values[i + 1]);
            i++;
        } else {
            wb_text_add(out, "%s=%g", name, values[i]);
        }
    }
    wb_text_add(out, ")");
}

static void print_rule(wb_text *out, const wb_rule *rule) {
    const int links = wb_rule_links(rule);
    const double *values = rule->settings;
    if (links != 1) wb_text_add(out, "OptimiserChain(");
    for (int i = 0; i < links; i++) {
        if (i) wb_text_add(out, ", ");
        print_link(out, rule->links[i], values);
        values += wb_rule_settings(rule->links[i]);
    }
    if (links != 1) wb_text_add(out, ")");
}

typedef struct leaf_printer {
    wb_visitor visitor;
    wb_text *out;
    const wb_optimiser *optimiser;
} leaf_printer;

static const wb_member *member_of(const wb_optimiser *o, wb_array **slot) {
    for (int64_t i = 0; i < o->member_count; i++)
        if (o->members[i].slot == slot) return &o->members[i];
    return NULL;
}

/* "  layers.1.weight = Leaf(m, v: f32 (256, 1), 3 steps)", or to which parameter it is tied. */
static bool print_leaf(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    (void)trainable;
    const leaf_printer *p = (const leaf_printer *)(const void *)visitor;
    const wb_member *member = member_of(p->optimiser, slot);
    if (!member) return true;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    wb_text_add(p->out, "  %s = ", text);
    const wb_tie_group *group = &p->optimiser->groups[member->group];
    if (&p->optimiser->members[group->first] != member) {
        wb_text_add(p->out, "tied,\n");
        return true;
    }
    const wb_array *state = group->states[0];
    const wb_rule *rule = wb_group_rule(p->optimiser, group);
    wb_text_add(p->out, "Leaf(");
    for (int k = 0; k < wb_rule_states(rule); k++) {
        char name[WB_STATE_NAME_BYTES];
        wb_text_add(p->out, "%s%s", k ? ", " : "", wb_rule_state_name(rule, k, name));
    }
    if (state)
        wb_text_add(p->out, ": %s %s", wb_dtype_name((wb_dtype)state->dtype), wb_text_of(state));
    wb_text_add(p->out, ")");
    if (!wb_rule_equal(rule, &p->optimiser->rule)) {
        wb_text_add(p->out, " by ");
        print_rule(p->out, rule);
    }
    wb_text_add(p->out, "%s,\n", group->is_frozen ? ", frozen" : "");
    return true;
}

static void print_optimiser(wb_text *out, wb_optimiser *o) {
    if (wb_optimiser_follow(o) != WB_OK) return;
    const int64_t steps = wb_step_count(o), skipped = wb_skipped(o);
    print_rule(out, &o->rule);
    if (o->clip_norm > 0) wb_text_add(out, ", clip_total_norm=%g", o->clip_norm);
    wb_text_add(out, ", %lld step%s", (long long)steps, steps == 1 ? "" : "s");
    if (skipped) wb_text_add(out, ", %lld skipped", (long long)skipped);
    wb_text_add(out, " (\n");
    leaf_printer p = {.visitor = {.array = print_leaf}, .out = out, .optimiser = o};
    (void)wb_visit(&p.visitor, o->model);
    wb_text_add(out, ")\n");
}

/* ---- anything ---- */

static wb_status show_to(wb_text *out, void *object) {
    const wb_object *any = object;
    if (!wb_may_use_any("wb_show", object, NULL)) return wb_error_status();
    if (any->klass == &wb_array_class) return wb_array_text(out, object);
    wb_error_aside older;
    wb_error_put_aside(&older);
    if (wb_is_layer(object))
        print_model(out, object);
    else if (wb_is_optimiser(object))
        print_optimiser(out, object);
    else
        wb_text_add(out, "%s\n", any->klass->name);
    const wb_status status = wb_failed() ? wb_error_status() : wb_text_status(out);
    wb_error_bring_back(&older);
    return status;
}

wb_status wb_show(void *object) {
    wb_text out = {.file = stdout, .path = "wb_show: the output"};
    return show_to(&out, object);
}

wb_status wb_show_text(void *object, char *text, size_t size_bytes) {
    if (!text || size_bytes == 0)
        return wb_fail(WB_ERROR_ARGUMENT, "wb_show_text: no room for text");
    wb_text all = {.data = NULL};
    const wb_status status = show_to(&all, object);
    (void)snprintf(text, size_bytes, "%s", status == WB_OK ? all.data : "");
    wb_text_release(&all);
    return status;
}
