/* The layers that there are, with their settings, as a page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>

#include "layers/layer.h"

/* mean, + or max; the first is the default. */
static void print_choices(FILE *file, const wb_field *f) {
    for (int i = 0; f->choices[i]; i++)
        (void)fprintf(file, "%s%.*s", i ? "/" : "", (int)strcspn(f->choices[i], "|"),
                      f->choices[i]);
}

static void print_default(FILE *file, const wb_field *f) {
    if (f->kind == WB_FIELD_ACTIVATION)
        (void)fputs("activation", file);
    else if (f->kind == WB_FIELD_PAIR)
        (void)fputs("in => out", file);
    else if (f->kind == WB_FIELD_JOINT)
        (void)fputs("(in, in2) => out", file);
    else if (f->kind == WB_FIELD_PROJECTIONS)
        (void)fputs("(q, k, v) => (qk, v) => out", file);
    else if (f->kind == WB_FIELD_CHOICE)
        print_choices(file, f);
    else if (f->kind == WB_FIELD_NAME)
        (void)fprintf(file, ":%s", f->choices[0]);
    else if (f->kind == WB_FIELD_REALS)
        (void)fprintf(file, "%s", f->name);
    else if (f->kind == WB_FIELD_SIZES)
        (void)fputs(f->spread ? "size..." : "(size...)", file);
    else if (f->kind == WB_FIELD_WITHOUT)
        (void)fprintf(file, "%s=true", f->name);
    else if (f->kind == WB_FIELD_BOOL || f->kind == WB_FIELD_WITH)
        (void)fprintf(file, "%s=false", f->name);
    else if (f->kind == WB_FIELD_DIMS)
        (void)fprintf(file, "%s=%s", f->name, f->usual < 0 ? "last" : ":");
    else if (f->kind == WB_FIELD_MODE)
        (void)fprintf(file, "%s=nothing", f->name);
    else if (f->positional || f->kind == WB_FIELD_CONNECTION)
        (void)fputs(f->name, file);
    else if (f->kind == WB_FIELD_EACH && f->usual < 0)
        (void)fprintf(file, "%s=size", f->name);
    else
        (void)fprintf(file, "%s=%g", f->name, f->usual);
}

/* `BatchNorm(channels, activation; affine=true, ...)` */
static void print_call(FILE *file, const wb_layer_class *k) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional;
    const int count = wb_settings_in_text(k, list, &positional);
    (void)fprintf(file, "`%s", k->name);
    if (k->field_count) (void)fputc('(', file);
    for (int i = 0; i < count; i++) {
        if (i) (void)fputs(i == positional ? "; " : ", ", file);
        print_default(file, list[i]);
    }
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (f->kind == WB_FIELD_LIST) (void)fputs(count ? ", ..." : "...", file);
        if (f->kind == WB_FIELD_CHILD && !f->part && !f->positional)
            (void)fprintf(file, "%s%s = ...", count ? ", " : "", f->name);
    }
    (void)fputs(k->field_count ? ")`" : "`", file);
}

static void print_ranges(FILE *file, const wb_layer_class *k) {
    const wb_field *list[WB_MOST_SETTINGS];
    int positional, printed = 0;
    const int count = wb_settings_in_text(k, list, &positional);
    for (int i = 0; i < count; i++) {
        char range[80];
        const wb_field *f = list[i];
        if (f->kind == WB_FIELD_CHILD) continue;
        if (f->kind > WB_FIELD_REAL && f->kind != WB_FIELD_SIZES && f->kind != WB_FIELD_EACH &&
            f->kind != WB_FIELD_PADDING && f->kind != WB_FIELD_REALS)
            continue;
        wb_range_text(f, range, sizeof range);
        (void)fprintf(file, "%s%s %s", printed++ ? "; " : "",
                      f->kind == WB_FIELD_PAIR          ? "in, out"
                      : f->kind == WB_FIELD_JOINT       ? "in, in2, out"
                      : f->kind == WB_FIELD_PROJECTIONS ? "q, k, v, qk, v, out"
                                                        : f->name,
                      range);
    }
}

/* Arrays, or all fields that Flux's struct has. */
static void print_fields(FILE *file, const wb_layer_class *k, bool only_arrays) {
    int printed = 0;
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (only_arrays ? !wb_field_is_array(f) && !f->part : f->text_only) continue;
        (void)fprintf(file, "%s%s", printed++ ? ", " : "",
                      f->flux && !only_arrays ? f->flux : f->name);
        if (only_arrays && f->kind == WB_FIELD_STATE) (void)fputs(" (state)", file);
    }
}

static void print_class(FILE *file, const wb_layer_class *k) {
    (void)fputs("| ", file);
    print_call(file, k);
    (void)fputs(" | ", file);
    print_ranges(file, k);
    (void)fputs(" | ", file);
    print_fields(file, k, true);
    (void)fputs(" | ", file);
    print_fields(file, k, false);
    (void)fputs(" |\n", file);
}

wb_status wb_show_layers(void) {
    (void)fputs("# Layers\n\n"
                "Written by `scripts/layers` from the rows of `src/layers`; change them there.\n"
                "Layers that models in files are made of, as their text is written, with the "
                "defaults.\n\n"
                "| layer | settings | arrays | fields of Flux's struct |\n"
                "|---|---|---|---|\n",
                stdout);
    const wb_layer_class *k;
    for (int i = 0; (k = wb_class_at(i)) != NULL; i++) print_class(stdout, k);
    return ferror(stdout) ? wb_fail(WB_ERROR_IO, "wb_show_layers: the output cannot be written")
                          : WB_OK;
}
