/* Curves through gnuplot. */
#include <weber/show.h>

#include "base/error.h"
#include "show/program.h"

static void write_quoted(FILE *script, const char *before, const char *text) {
    (void)fprintf(script, "'%s", before);
    for (; *text; text++) {
        if (*text == '\'') (void)fputc('\'', script); /* doubled: gnuplot's way to say ' */
        if (*text != '\n') (void)fputc(*text, script);
    }
    (void)fputc('\'', script);
}

static void write_data(FILE *script, const wb_series *s, int i) {
    (void)fprintf(script, "$series%d << END_OF_SERIES\n", i);
    for (int64_t k = 0; k < s->count; k++)
        (void)fprintf(script, "%lld %.9g\n", (long long)k + 1, s->values[k]);
    (void)fprintf(script, "END_OF_SERIES\n");
}

static void write_script(FILE *script, const char *path, bool svg, int count,
                         const wb_series *series) {
    (void)fprintf(script, "set terminal %s size 800,500%s\nset output ", svg ? "svg" : "png",
                  svg ? " background 'white'" : "");
    write_quoted(script, *path == '/' ? "" : "./", path); /* '|...' would be a command */
    (void)fprintf(script,
                  "\nset grid\nset key outside bottom center horizontal\nset xtics autofreq\n");
    bool right = false;
    for (int i = 0; i < count; i++) {
        write_data(script, &series[i], i);
        right |= series[i].right;
    }
    if (right) (void)fprintf(script, "set ytics nomirror\nset y2tics\n");
    for (int i = 0; i < count; i++) {
        (void)fprintf(script,
                      "%s $series%d using 1:2 axes x1y%d with linespoints linewidth 2 title ",
                      i ? "," : "plot", i, series[i].right ? 2 : 1);
        write_quoted(script, "", series[i].name);
    }
    (void)fprintf(script, "\n");
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

static void write_plot(FILE *file, void *user) {
    const plot *p = user;
    write_script(file, p->path, wb_ends_in(p->path, ".svg"), p->count, p->series);
}

wb_status wb_plot_curves_make(const char *path, int count, const wb_series *series) {
    static const char *const arguments[] = {""};
    const wb_picture picture = {"plot", path, "gnuplot", "gnuplot-nox"};
    const wb_status checked = check_arguments(path, count, series);
    if (checked != WB_OK) return checked;
    return wb_draw_picture(&picture, 1, arguments, write_plot, &(plot){path, count, series});
}
