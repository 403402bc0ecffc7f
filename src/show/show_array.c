/* Arrays in Julia's layout, as in base/arrayshow.jl of Julia 1.10. */
#include <string.h>

#include <weber/show.h>

#include "array/array.h"
#include "array/use.h"
#include "base/memory.h"
#include "show/number.h"
#include "show/print.h"

enum {
    LINE_WIDTH = 80,
    MOST_ROWS = 20,
    MOST_COLUMNS = LINE_WIDTH / 3, /* a column is at least one digit and two spaces wide */
    MOST_SLICES = 6,
    DOTS_EVERY = 5, /* rows and columns between two signs that something is left out */
    LINE_BYTES = 4 * LINE_WIDTH + WB_NUMBER_BYTES,
};

/* What is shown of one dimension: all of it, or its first and last places. */
typedef struct span {
    int first, last; /* how many */
    int64_t size;
} span;

static int shown(span s) { return s.first + s.last; }
static bool is_cut(span s) { return shown(s) < s.size; }
static int64_t place_of(span s, int i) { return i < s.first ? i : s.size - shown(s) + i; }

static span cut(int64_t size, int most) {
    if (size <= most) return (span){(int)size, 0, size};
    return (span){most / 2, (most - 1) / 2, size};
}

/* A slice of two dimensions, its cells as text. */
typedef struct table {
    span rows, columns;
    char cells[MOST_COLUMNS][MOST_ROWS][WB_NUMBER_BYTES];
    int left[MOST_COLUMNS], right[MOST_COLUMNS]; /* widths before and from the decimal point */
} table;

typedef struct line {
    char text[LINE_BYTES];
    size_t used;
} line;

static void add(line *l, const char *text) {
    const size_t length = strlen(text);
    if (l->used + length >= sizeof l->text) return;
    memcpy(l->text + l->used, text, length);
    l->used += length;
}

static void add_spaces(line *l, int count) {
    while (count-- > 0) add(l, " ");
}

static void print_line(wb_text *out, line *l) {
    while (l->used && l->text[l->used - 1] == ' ') l->used--;
    wb_text_add(out, "%.*s\n", (int)l->used, l->text);
}

/* ---- the table ---- */

static int left_width(const char *cell) { return (int)strcspn(cell, ".e"); }

/* Writes column number c of the data as column i of the table; returns its width. */
static int fill_column(table *t, int i, const wb_array *x, const void *data, int64_t start,
                       int64_t c) {
    t->left[i] = t->right[i] = 0;
    for (int r = 0; r < shown(t->rows); r++) {
        char *cell = t->cells[i][r];
        wb_show_number(cell, data, wb_dtype_of(x), start + c * t->rows.size + place_of(t->rows, r));
        const int left = left_width(cell), right = (int)strlen(cell) - left;
        if (left > t->left[i]) t->left[i] = left;
        if (right > t->right[i]) t->right[i] = right;
    }
    return t->left[i] + t->right[i] + 2;
}

static void swap_columns(table *t, int a, int b) {
    char cells[MOST_ROWS][WB_NUMBER_BYTES];
    memcpy(cells, t->cells[a], sizeof cells);
    memcpy(t->cells[a], t->cells[b], sizeof cells);
    memcpy(t->cells[b], cells, sizeof cells);
    const int left = t->left[a], right = t->right[a];
    t->left[a] = t->left[b], t->right[a] = t->right[b];
    t->left[b] = left, t->right[b] = right;
}

/* As many columns as fit: all, or those of the left half and those of the right half. The last ones
 * are found from the end backwards, then put in order. */
static void fill_columns(table *t, const wb_array *x, const void *data, int64_t start) {
    const int64_t columns = t->columns.size;
    int used = 0, count = 0;
    while (count < columns && count < MOST_COLUMNS && used <= LINE_WIDTH)
        used += fill_column(t, count, x, data, start, count), count++;
    t->columns.first = count, t->columns.last = 0;
    if (count == columns && used <= LINE_WIDTH + 1) return;

    const int half = (LINE_WIDTH - 5) / 2;
    int first = 0;
    for (used = 0; first < MOST_COLUMNS / 2; first++) {
        used += t->left[first] + t->right[first] + 2;
        if (used > half && first > 0) break;
    }
    int last = 0;
    for (used = 0; last < MOST_COLUMNS / 2 && first + last < columns; last++) {
        used += fill_column(t, first + last, x, data, start, columns - 1 - last);
        if (used > half && last > 0) break;
    }
    for (int i = 0; i < last / 2; i++) swap_columns(t, first + i, first + last - 1 - i);
    t->columns.first = first, t->columns.last = last;
}

static void add_cell(line *l, const table *t, int i, const char *cell) {
    const int left = left_width(cell);
    add_spaces(l, t->left[i] - left);
    add(l, cell);
    add_spaces(l, t->right[i] - ((int)strlen(cell) - left));
}

static void add_dots(line *l, const table *t, int i) {
    add_spaces(l, t->left[i] - 1);
    add(l, "⋮");
    add_spaces(l, t->right[i]);
}

/* r < 0: the line of dots between the first and the last rows */
static void print_row(wb_text *out, const table *t, int r) {
    line l = {.used = 0};
    add(&l, " ");
    for (int i = 0; i < shown(t->columns); i++) {
        const char *gap = r < 0 ? "⋱" : r % DOTS_EVERY == 0 ? "…" : " ";
        if (i == t->columns.first && is_cut(t->columns))
            add(&l, "  "), add(&l, gap), add(&l, "  ");
        else if (i > 0)
            add(&l, "  ");
        if (r >= 0)
            add_cell(&l, t, i, t->cells[i][r]);
        else if (i % DOTS_EVERY == 0)
            add_dots(&l, t, i);
        else
            add_spaces(&l, t->left[i] + t->right[i]);
    }
    print_line(out, &l);
}

static void print_table(wb_text *out, table *t, const wb_array *x, const void *data,
                        int64_t start) {
    t->rows = cut(x->ndim ? x->sizes[0] : 1, MOST_ROWS);
    t->columns = (span){.size = wb_size(x, 1)};
    fill_columns(t, x, data, start);
    for (int r = 0; r < shown(t->rows); r++) {
        if (r == t->rows.first && is_cut(t->rows)) print_row(out, t, -1);
        print_row(out, t, r);
    }
}

/* ---- slices ---- */

static void print_slice_title(wb_text *out, const wb_array *x, int64_t slice) {
    wb_text_add(out, "[:, :");
    for (int d = 2; d < x->ndim; d++) {
        wb_text_add(out, ", %lld", (long long)(slice % x->sizes[d]) + 1);
        slice /= x->sizes[d];
    }
    wb_text_add(out, "] =\n");
}

static void print_slices(wb_text *out, table *t, const wb_array *x, const void *data) {
    const int64_t size = x->sizes[0] * x->sizes[1];
    const span slices = cut(wb_count(x) / size, MOST_SLICES);
    for (int i = 0; i < shown(slices); i++) {
        if (i == slices.first && is_cut(slices)) wb_text_add(out, "\n⋮\n");
        if (i > 0) wb_text_add(out, "\n");
        print_slice_title(out, x, place_of(slices, i));
        print_table(out, t, x, data, place_of(slices, i) * size);
    }
}

/* "2×3 Array{f32} on CPU", "10-element Array{f32} on CPU" */
static void print_header(wb_text *out, const wb_array *x) {
    if (x->ndim == 0)
        wb_text_add(out, "0-dimensional");
    else if (x->ndim == 1)
        wb_text_add(out, "%lld-element", (long long)x->sizes[0]);
    for (int d = 0; d < x->ndim && x->ndim > 1; d++)
        wb_text_add(out, "%s%lld", d ? "×" : "", (long long)x->sizes[d]);
    wb_text_add(out, " Array{%s} on %s", wb_dtype_name(wb_dtype_of(x)),
                wb_device_name(wb_device_of(x)));
}

static void print_values(wb_text *out, table *t, const wb_array *x, const void *data) {
    print_header(out, x);
    if (x->ndim == 0) {
        wb_show_number(t->cells[0][0], data, wb_dtype_of(x), 0);
        wb_text_add(out, ": %s\n", t->cells[0][0]);
        return;
    }
    wb_text_add(out, ":\n");
    if (x->ndim > 2)
        print_slices(out, t, x, data);
    else
        print_table(out, t, x, data, 0);
}

wb_status wb_array_text(wb_text *out, wb_array *x) {
    if (wb_count(x) == 0) {
        print_header(out, x);
        wb_text_byte(out, '\n');
        return wb_text_status(out);
    }
    table *t = wb_alloc(sizeof *t);
    const void *data = t ? wb_read_begin(x) : NULL;
    if (data) print_values(out, t, x, data), wb_read_end(x);
    wb_release(t);
    return data ? wb_text_status(out) : wb_error_status();
}

wb_status wb_show_array(FILE *file, wb_array *x) {
    if (!wb_may_use_array("wb_show_array", x, "x")) return wb_error_status();
    if (!file) return (void)wb_fail_argument_null("wb_show_array", "file"), wb_error_status();
    wb_text out = {.file = file, .path = "wb_show_array: the output"};
    return wb_array_text(&out, x);
}
