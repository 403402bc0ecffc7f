/* A page of all layers with their settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>

#include "base/text.h"
#include "layers/layer.h"

/* `BatchNorm(channels, activation; affine=true, ...)` */
static void print_call(wb_text *out, const wb_layer_class *k) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    const int count = wb_settings_in_text(k, list, &positional);
    wb_text_add(out, "`%s", k->name);
    if (k->field_count) wb_text_byte(out, '(');
    for (int i = 0; i < count; i++) {
        char text[80];
        wb_setting_default(list[i], text, sizeof text);
        if (i) wb_text_put(out, i == positional ? "; " : ", ");
        wb_text_put(out, text);
    }
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (f->kind == WB_FIELD_LIST) wb_text_put(out, count ? ", ..." : "...");
        if (f->kind == WB_FIELD_CHILD && !f->part && !f->positional)
            wb_text_add(out, "%s%s = ...", count ? ", " : "", f->name);
    }
    wb_text_put(out, k->field_count ? ")`" : "`");
}

static void print_ranges(wb_text *out, const wb_layer_class *k) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional, printed = 0;
    const int count = wb_settings_in_text(k, list, &positional);
    for (int i = 0; i < count; i++) {
        char range[120];
        if (wb_setting_range(list[i], range, sizeof range))
            wb_text_add(out, "%s%s", printed++ ? "; " : "", range);
    }
}

/* Arrays, or all fields that Flux's struct has. */
static void print_fields(wb_text *out, const wb_layer_class *k, bool only_arrays) {
    int printed = 0;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (only_arrays ? !wb_field_is_array(f) && !f->part : f->text_only) continue;
        wb_text_add(out, "%s%s", printed++ ? ", " : "",
                    f->flux && !only_arrays ? f->flux : f->name);
        if (only_arrays && f->kind == WB_FIELD_STATE) wb_text_put(out, " (state)");
    }
}

static void print_class(wb_text *out, const wb_layer_class *k) {
    wb_text_put(out, "| ");
    print_call(out, k);
    wb_text_put(out, " | ");
    print_ranges(out, k);
    wb_text_put(out, " | ");
    print_fields(out, k, true);
    wb_text_put(out, " | ");
    print_fields(out, k, false);
    wb_text_put(out, " |\n");
}

wb_status wb_show_layers(void) {
    wb_text out = {.file = stdout, .path = "wb_show_layers: the output"};
    wb_text_put(&out,
                "# Layers\n\n"
                "Written by `scripts/layers` from the rows of `src/layers`; change them there.\n"
                "Layers that models in files are made of, as their text is written, with the "
                "defaults.\n\n"
                "| layer | settings | arrays | fields of Flux's struct |\n"
                "|---|---|---|---|\n");
    const wb_layer_class *k;
    for (int i = 0; (k = wb_class_at(i)) != NULL; i++) print_class(&out, k);
    return wb_text_status(&out);
}
