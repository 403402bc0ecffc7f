/* The result sizes and the cost of each layer for an input of given sizes. */
#include <stdlib.h>
#include <string.h>

#include <weber/show.h>
#include <weber/watch.h>

#include "array/body.h"
#include "base/memory.h"
#include "base/text.h"
#include "layers/layer.h"
#include "layers/watch.h"
#include "ops/ops.h"
#include "ops/trace.h"
#include "show/seen.h"

typedef struct row {
    char path[WB_PATH_BYTES], what[160], sizes[120];
    int64_t parameters, products;
} row;

typedef struct listing {
    wb_layer *model;
    row *rows;
    int64_t count, capacity;
    wb_seen seen; /* nodes that were counted */
    wb_array **stack;
    int64_t depth, stack_capacity;
    bool failed;
} listing;

/* ---- multiply-adds ---- */

static int64_t of_attention(const wb_array *x) {
    const wb_attention_call *a = wb_attention_of(x);
    return wb_times(wb_times(a->queries, a->keys), wb_times(a->dk + a->dv, a->heads * a->batch));
}

/* Of one filter. */
static int64_t of_filter(const wb_array *weights) {
    const int64_t filters = weights->sizes[weights->ndim - 1];
    return filters ? wb_count(weights) / filters : 0;
}

static int64_t of_node(const wb_array *x) {
    const wb_array *const *in = (const wb_array *const *)x->inputs;
    switch (x->op) {
    case WB_OP_matmul:
        return wb_times(wb_count(x),
                        in[0]->sizes[x->attributes.product.flags & WB_MATMUL_TRANSPOSE_A ? 0 : 1]);
    case WB_OP_conv_forward:
        return wb_times(wb_count(x), of_filter(in[1]));
    case WB_OP_conv_data: /* each element of its input goes through the filter */
        return wb_times(wb_count(in[0]), of_filter(in[1]));
    case WB_OP_attention:
        return of_attention(x);
    default:
        return 0;
    }
}

static bool push(listing *l, wb_array *x) {
    if (wb_seen_find(&l->seen, x) >= 0) return true;
    if (!wb_seen_add(&l->seen, x) || !WB_GROW(l->stack, l->depth, l->stack_capacity)) return false;
    l->stack[l->depth++] = x;
    return true;
}

static int64_t count_new(listing *l, wb_array *root);

/* Of all steps. */
static int64_t of_scan(listing *l, const wb_array *scan) {
    const wb_body *body = wb_body_of(scan);
    const int64_t depth = l->depth;
    int64_t sum = 0;
    for (int32_t r = 0; r < body->nresults; r++) sum = wb_plus(sum, count_new(l, body->results[r]));
    l->depth = depth;
    return wb_times(sum, scan->attributes.scan.steps);
}

/* Counts the nodes that root depends on and that were not counted yet. */
static int64_t count_new(listing *l, wb_array *root) {
    const int64_t floor = l->depth;
    int64_t sum = 0;
    if (!push(l, root)) l->failed = true;
    while (l->depth > floor && !l->failed) {
        const wb_array *x = l->stack[--l->depth];
        sum = wb_plus(sum, x->op == WB_OP_scan ? of_scan(l, x) : of_node(x));
        for (int k = 0; k < x->ninputs; k++)
            if (!push(l, x->inputs[k])) l->failed = true;
    }
    return sum;
}

/* ---- rows ---- */

static void describe(listing *l, row *r, const wb_array *x) {
    wb_layer *layer = *r->path ? wb_get_layer(l->model, r->path) : l->model;
    (void)snprintf(r->sizes, sizeof r->sizes, "%s", wb_text_of(x));
    if (!layer) {
        l->failed = true;
        return;
    }
    wb_layer_describe(layer, false, r->what, sizeof r->what);
    r->parameters = wb_parameter_count(layer);
}

/* A layer comes after the layers inside of it, which are shown instead; its own operations count
 * for the last of these. */
static void note(void *user, const char *path, wb_array *x, bool is_gradient) {
    listing *l = user;
    (void)is_gradient;
    const int64_t products = count_new(l, x);
    row *last = l->count ? &l->rows[l->count - 1] : NULL;
    if (last && (wb_path_is_inside(last->path, path) || strcmp(last->path, path) == 0)) {
        last->products = wb_plus(last->products, products);
        return;
    }
    if (l->failed || !WB_GROW(l->rows, l->count, l->capacity)) {
        l->failed = true;
        return;
    }
    row *r = &l->rows[l->count++];
    *r = (row){.products = products};
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    describe(l, r, x);
}

/* ---- printing ---- */

/* Characters, not bytes: settings have Greek letters. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++) width += (*text & 0xC0) != 0x80;
    return width;
}

static void widen(int *width, const char *text) {
    if (width_of(text) > *width) *width = width_of(text);
}

static void put(wb_text *out, const char *text, int width) {
    wb_text_add(out, "%s%*s  ", text, width - width_of(text), "");
}

static void print(const listing *l, wb_text *out) {
    int path = (int)strlen("total"), what = 0, sizes = 0;
    int64_t products = 0;
    for (int64_t i = 0; i < l->count; i++) {
        widen(&path, l->rows[i].path), widen(&what, l->rows[i].what);
        widen(&sizes, l->rows[i].sizes);
    }
    for (int64_t i = 0; i < l->count; i++) {
        const row *r = &l->rows[i];
        put(out, r->path, path), put(out, r->what, what), put(out, r->sizes, sizes);
        wb_text_add(out, "%10lld %14lld\n", (long long)r->parameters, (long long)r->products);
        products = wb_plus(products, r->products);
    }
    put(out, "total", path), put(out, "", what), put(out, "", sizes);
    wb_text_add(out, "%10lld %14lld\n", (long long)wb_parameter_count(l->model),
                (long long)products);
}

wb_status wb_show_sizes_make(FILE *file, wb_layer *model, wb_outputsize_desc desc) {
    if (!wb_check_model("show_sizes", model)) return wb_error_status();
    if (!file) return (void)wb_fail_argument_null("show_sizes", "the file"), wb_error_status();
    wb_text out = {.file = file, .path = "show_sizes: the file"};
    listing l = {.model = model};
    wb_watcher before = wb_watch_begin(note, NULL, &l);
    const wb_shape shape = wb_outputsize_make(model, desc);
    wb_watch_end(before);
    const bool good = shape.ndim >= 0 && !l.failed;
    if (good) print(&l, &out);
    wb_seen_release(&l.seen);
    wb_release(l.stack);
    wb_release(l.rows);
    if (!good) return wb_failed() ? wb_error_status() : WB_ERROR_MEMORY;
    return wb_text_status(&out);
}
