/* Curves through gnuplot. */
#include <weber/show.h>

#include "base/error.h"
#include "show/program.h"

static void write_quoted(wb_text *script, const char *text) {
    wb_text_byte(script, '\'');
    for (; *text; text++) {
        if (*text == '\'') wb_text_byte(script, '\''); /* doubled: gnuplot's way to say ' */
        if (*text != '\n') wb_text_byte(script, *text);
    }
    wb_text_byte(script, '\'');
}

static void write_data(wb_text *script, const wb_series *s, int i) {
    wb_text_add(script, "$series%d << END_OF_SERIES\n", i);
    for (int64_t k = 0; k < s->count; k++)
        wb_text_add(script, "%lld %.9g\n", (long long)k + 1, s->values[k]);
    wb_text_add(script, "END_OF_SERIES\n");
}

static void write_script(wb_text *script, bool svg, int count, const wb_series *series) {
    wb_text_add(script,
                "set terminal %s size 800,500%s\nset grid\n"
                "set key outside bottom center horizontal\nset xtics autofreq\n",
                svg ? "svg" : "png", svg ? " background 'white'" : "");
    bool right = false;
    for (int i = 0; i < count; i++) {
        write_data(script, &series[i], i);
        right |= series[i].right;
    }
    if (right) wb_text_add(script, "set ytics nomirror\nset y2tics\n");
    for (int i = 0; i < count; i++) {
        wb_text_add(script, "%s $series%d using 1:2 axes x1y%d with linespoints linewidth 2 title ",
                    i ? "," : "plot", i, series[i].right ? 2 : 1);
        write_quoted(script, series[i].name);
    }
    wb_text_add(script, "\n");
}

static wb_status check_arguments(const char *path, int count, const wb_series *series) {
    if (!path) return wb_fail(WB_ERROR_ARGUMENT, "plot: path is NULL");
    if (!wb_ends_in(path, ".png") && !wb_ends_in(path, ".svg"))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "plot: the name of a picture must end in .png or "
                       ".svg, got %s",
                       path);
    int64_t points = 0;
    for (int i = 0; i < count; i++) {
        if (!series[i].name || (!series[i].values && series[i].count))
            return wb_fail(WB_ERROR_ARGUMENT, "plot: series %d lacks its %s", i,
                           series[i].name ? "values" : "name");
        points += series[i].count;
    }
    return points > 0
               ? WB_OK
               : wb_fail(WB_ERROR_ARGUMENT, "plot: %s: %d series without a point", path, count);
}

typedef struct plot {
    const char *path;
    int count;
    const wb_series *series;
} plot;

static void write_plot(wb_text *file, void *user) {
    const plot *p = user;
    write_script(file, wb_ends_in(p->path, ".svg"), p->count, p->series);
}

wb_status wb_plot_curves_make(const char *path, int count, const wb_series *series) {
    static const char *const arguments[] = {""};
    const wb_picture picture = {"plot", path, "gnuplot", "gnuplot-nox"};
    const wb_status checked = check_arguments(path, count, series);
    if (checked != WB_OK) return checked;
    return wb_draw_picture(&picture, 1, arguments, write_plot, &(plot){path, count, series});
}
