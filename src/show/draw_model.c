/* A model as a graph for Graphviz: the inputs and results of its layers. */
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>

#include "base/memory.h"
#include "layers/layer.h"
#include "layers/watch.h"
#include "show/program.h"
#include "show/seen.h"

enum { LABEL_BYTES = 400, SIZES_BYTES = 120 };

/* An application of a layer, or an input of the model. */
typedef struct box {
    char path[WB_PATH_BYTES], label[LABEL_BYTES], sizes[SIZES_BYTES];
    bool is_input, is_needed; /* for the model's result */
} box;

typedef struct arrow {
    int64_t from, to;
} arrow;

typedef struct graph {
    wb_layer *model;
    box *boxes;
    int64_t count, capacity;
    arrow *arrows;
    int64_t arrow_count, arrow_capacity;
    wb_seen results; /* arrays that layers gave */
    int64_t *of;     /* the box of each */
    int64_t of_capacity;
    const wb_array **stack;
    int64_t stack_capacity;
    int64_t last; /* box of the latest result */
    bool failed;
} graph;

/* ---- from results to boxes ---- */

static bool register_node(graph *g, wb_array *x, int64_t number) {
    const int64_t at = g->results.table.count;
    if (!WB_GROW(g->of, at, g->of_capacity) || !wb_seen_add(&g->results, x)) return false;
    g->of[at] = g->last = number;
    return true;
}

static void release(graph *g) {
    wb_seen_release(&g->results);
    wb_release(g->boxes), wb_release(g->arrows), wb_release(g->of), wb_release(g->stack);
}

static int64_t box_of(const graph *g, const wb_array *x) {
    const int64_t at = wb_seen_find(&g->results, x);
    return at < 0 ? -1 : g->of[at];
}

static bool add_arrow(graph *g, int64_t from, int64_t to) {
    for (int64_t i = g->arrow_count - 1; i >= 0 && g->arrows[i].to == to; i--)
        if (g->arrows[i].from == from) return true;
    if (!WB_GROW(g->arrows, g->arrow_count, g->arrow_capacity)) return false;
    g->arrows[g->arrow_count++] = (arrow){from, to};
    return true;
}

/* Draws arrows from the arrays that x was computed from. */
static bool add_arrows(graph *g, wb_array *x, int64_t to) {
    wb_seen seen = {.capacity = 0};
    int64_t depth = 0;
    bool good = WB_GROW(g->stack, depth, g->stack_capacity);
    if (good) g->stack[depth++] = x;
    while (good && depth > 0) {
        const wb_array *node = g->stack[--depth];
        for (int k = 0; good && k < node->ninputs; k++) {
            wb_array *in = node->inputs[k];
            const int64_t from = box_of(g, in);
            if (from >= 0)
                good = add_arrow(g, from, to);
            else if (wb_seen_find(&seen, in) < 0) {
                good = wb_seen_add(&seen, in) && WB_GROW(g->stack, depth, g->stack_capacity);
                if (good) g->stack[depth++] = in;
            }
        }
    }
    wb_seen_release(&seen);
    return good;
}

static bool has_boxes(const graph *g, const char *path) {
    for (int64_t i = 0; i < g->count; i++)
        if (!g->boxes[i].is_input && wb_path_is_inside(g->boxes[i].path, path)) return true;
    return false;
}

/* The box whose result a container passes on: a layer in it, or its input; -1: the container has
 * computed the result itself. */
static int64_t passed_on(const graph *g, const wb_array *x) {
    int64_t number = box_of(g, x);
    while (number < 0 && x->op == WB_OP_custom) number = box_of(g, x = x->inputs[0]);
    return number;
}

static box *new_box(graph *g, const char *path, const wb_array *x) {
    if (!WB_GROW(g->boxes, g->count, g->capacity)) return NULL;
    box *b = &g->boxes[g->count++];
    *b = (box){.is_input = false};
    (void)snprintf(b->path, sizeof b->path, "%s", path);
    (void)snprintf(b->sizes, sizeof b->sizes, "%s", wb_text_of(x));
    return b;
}

/* "SkipConnection", and its connection: "+". */
static void describe_container(const wb_layer *layer, char *text, size_t size) {
    const wb_layer_class *k = layer->class_;
    (void)snprintf(text, size, "%s", k->name);
    for (int i = 0; i < k->field_count; i++) {
        const wb_field *f = &k->fields[i];
        if (f->kind != WB_FIELD_CONNECTION) continue;
        wb_connection *const *connection = wb_field_at(layer, f);
        (void)snprintf(text, size, "%s: %s", k->name, wb_connection_name(*connection));
    }
}

static void describe(const graph *g, box *b, bool is_container) {
    wb_layer *layer = *b->path ? wb_get_layer(g->model, b->path) : g->model;
    if (!layer) return;
    if (is_container && !wb_is_one_line(layer->class_))
        describe_container(layer, b->label, sizeof b->label - 80);
    else
        wb_layer_describe(layer, false, b->label, sizeof b->label - 80);
    size_t used = strlen(b->label);
    if (*b->path)
        used += (size_t)snprintf(b->label + used, sizeof b->label - used, "\n%.70s", b->path);
    const int64_t numbers = is_container ? 0 : wb_parameter_count(layer);
    if (numbers)
        (void)snprintf(b->label + used, sizeof b->label - used, "\n%lld parameters",
                       (long long)numbers);
}

/* A layer comes after the layers inside of it. */
static bool add_result(graph *g, const char *path, wb_array *x) {
    const bool is_container = has_boxes(g, path);
    const int64_t before = is_container ? passed_on(g, x) : -1;
    if (before >= 0) return register_node(g, x, before);
    const int64_t number = g->count;
    box *b = new_box(g, path, x);
    if (!b) return false;
    describe(g, b, is_container);
    return !wb_failed() && add_arrows(g, x, number) && register_node(g, x, number);
}

static void look_on(void *user, const char *path, wb_array *x, bool is_gradient) {
    (void)user, (void)path, (void)x, (void)is_gradient;
}

static void take_result(void *user, const char *path, wb_array *x) {
    graph *g = user;
    if (!g->failed && !add_result(g, path, x)) g->failed = true;
}

static void take_inputs(void *user, int count, wb_array *const *inputs) {
    graph *g = user;
    for (int i = 0; i < count && !g->failed; i++) {
        box *b = new_box(g, "", inputs[i]);
        if (b) b->is_input = true, (void)snprintf(b->label, sizeof b->label, "input");
        if (b && count > 1) (void)snprintf(b->label, sizeof b->label, "input %d", i + 1);
        g->failed = !b || !register_node(g, inputs[i], g->count - 1);
    }
}

/* From the last box to the first, because each box comes after those that it was computed from. */
static void mark_needed(graph *g) {
    g->boxes[g->last].is_needed = true;
    for (int64_t i = g->count - 1; i >= 0; i--)
        for (int64_t k = 0; g->boxes[i].is_needed && k < g->arrow_count; k++)
            if (g->arrows[k].to == i) g->boxes[g->arrows[k].from].is_needed = true;
}

/* ---- the text ---- */

static void put_label(wb_text *out, const char *text) {
    wb_text_byte(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') wb_text_byte(out, '\\');
        if (*text == '\n')
            wb_text_put(out, "\\n");
        else
            wb_text_byte(out, *text);
    }
    wb_text_byte(out, '"');
}

/* Opens a frame for each container that the path leads through, the last layer itself only if it
 * is one; how many. */
static int open_frames(const graph *g, wb_text *out, const box *b) {
    int frames = 0;
    for (wb_module m = {0}; wb_next_module(g->model, &m);) {
        const bool is_own = strcmp(m.path, b->path) == 0;
        if (!*m.path || !(is_own ? has_boxes(g, m.path) : wb_path_is_inside(b->path, m.path)))
            continue;
        wb_text_put(out, "subgraph ");
        char name[WB_PATH_BYTES + 16], label[WB_PATH_BYTES + 80];
        (void)snprintf(name, sizeof name, "cluster_%s", m.path);
        (void)snprintf(label, sizeof label, "%s  %s", m.type, m.path);
        put_label(out, name);
        wb_text_put(out, " { label="), put_label(out, label), wb_text_put(out, "; ");
        frames++;
    }
    return frames;
}

static void put_box(const graph *g, wb_text *out, int64_t number) {
    const box *b = &g->boxes[number];
    const int frames = b->is_input ? 0 : open_frames(g, out, b);
    wb_text_add(out, "n%lld [label=", (long long)number);
    put_label(out, b->label);
    wb_text_put(out, b->is_input ? ", shape=plaintext, style=\"\"];" : "];");
    for (int i = 0; i < frames; i++) wb_text_put(out, " }");
    wb_text_byte(out, '\n');
}

static void put_arrow(const graph *g, wb_text *out, const arrow *a) {
    wb_text_add(out, "n%lld -> n%lld [label=", (long long)a->from, (long long)a->to);
    put_label(out, g->boxes[a->from].sizes);
    wb_text_put(out, "];\n");
}

static void put_graph(wb_text *out, void *user) {
    const graph *g = user;
    wb_text_put(out, "digraph model {\n"
                     "node [shape=box, style=\"rounded,filled\", fillcolor=white, "
                     "fontname=\"sans-serif\", fontsize=11];\n"
                     "edge [fontname=\"sans-serif\", fontsize=9, arrowsize=0.7];\n"
                     "graph [fontname=\"sans-serif\", fontsize=10, style=filled, labeljust=l, "
                     "fillcolor=\"#f4f6f8\", color=\"#a0a8b0\", bgcolor=white];\n");
    for (int64_t i = 0; i < g->count; i++)
        if (g->boxes[i].is_needed) put_box(g, out, i);
    for (int64_t i = 0; i < g->arrow_count; i++)
        if (g->boxes[g->arrows[i].to].is_needed) put_arrow(g, out, &g->arrows[i]);
    wb_text_put(out, "result [label=\"result\", shape=plaintext, style=\"\"];\n");
    wb_text_add(out, "n%lld -> result [label=", (long long)g->last);
    put_label(out, g->boxes[g->last].sizes);
    wb_text_put(out, "];\n");
    wb_text_put(out, "}\n");
}

/* ---- the picture ---- */

static const char *format_of(const char *path) {
    static const char *const endings[] = {".svg", ".png", ".pdf", ".dot"};
    static const char *const formats[] = {"-Tsvg", "-Tpng", "-Tpdf", ""};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (wb_ends_in(path, endings[i])) return formats[i];
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "draw_model: the name of the picture must end in .svg, .png, .pdf or .dot, "
                        "got %s",
                        path);
}

static wb_status write_text(const wb_picture *picture, graph *g) {
    wb_text out = {.file = NULL};
    put_graph(&out, g);
    const wb_status status = wb_write_picture(picture, &out);
    wb_text_release(&out);
    return status;
}

static wb_status draw(const char *path, const char *format, graph *g) {
    const wb_picture picture = {"draw_model", path, "dot", "graphviz"};
    const char *const arguments[] = {format, ""};
    return *format ? wb_draw_picture(&picture, 2, arguments, put_graph, g)
                   : write_text(&picture, g);
}

static bool trace(graph *g, const wb_outputsize_desc *desc) {
    const wb_watcher before = wb_watch_begin(look_on, take_result, g);
    const wb_shape shape = wb_size_of_output(g->model, desc, false, take_inputs, g);
    wb_watch_end(before);
    return shape.ndim >= 0 && !g->failed;
}

wb_status wb_draw_model_make(const char *path, wb_layer *model, wb_outputsize_desc desc) {
    if (!path) return (void)wb_fail_argument_null("draw_model", "path"), wb_error_status();
    if (!wb_check_model("draw_model", model)) return wb_error_status();
    const char *format = format_of(path);
    if (!format || !wb_scope_begin()) return wb_error_status();
    graph g = {.model = model};
    wb_status status = WB_ERROR_MEMORY;
    if (trace(&g, &desc)) {
        mark_needed(&g);
        status = draw(path, format, &g);
    } else if (wb_failed()) {
        status = wb_error_status();
    }
    release(&g);
    const wb_status closed = wb_scope_leave();
    return status == WB_OK ? closed : status;
}
