/* A custom node's first input is its value; derivatives go to the others. Its derivative is a
 * function and a context, which is released with the last node that refers to it. */
#include "ops/custom.h"

#include "base/memory.h"
#include "ops/check.h"

static wb_array *node_of(wb_array *y, int count, wb_array *const *inputs) {
    wb_array **all = wb_alloc((size_t)(count + 1) * sizeof *all);
    if (!all) return NULL;
    all[0] = y;
    for (int i = 0; i < count; i++) all[i + 1] = inputs[i];
    wb_array *node =
        wb_node_new(WB_OP_custom, (wb_dtype)y->dtype, y->ndim, y->sizes, count + 1, all);
    wb_release(all);
    return node;
}

static void custom_free(wb_payload *payload) {
    wb_custom *custom = (wb_custom *)(void *)payload;
    if (custom->release) custom->release(custom->context);
    wb_release(custom);
}

wb_array *wb_custom_node(wb_array *y, int count, wb_array *const *inputs, wb_custom_pull *pull,
                         void *context, void (*release)(void *context)) {
    wb_custom *custom = wb_alloc(sizeof *custom);
    if (!custom) {
        if (release) release(context);
        return NULL;
    }
    *custom = (wb_custom){.payload = {.refs = 1, .free = custom_free},
                          .pull = pull,
                          .context = context,
                          .release = release};
    wb_array *node = node_of(y, count, inputs);
    if (node)
        node->payload = &custom->payload;
    else
        wb_payload_unref(&custom->payload);
    return node;
}

void wb_vjp_custom(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    const wb_custom *custom = wb_custom_of(o);
    custom->pull(custom->context, o, g, want, out);
}

/* x^2 whose derivative is given. */
static void pull_square(void *context, wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)context, (void)want;
    out[1] = MUL(g, MUL(NUM(2), o->inputs[1]));
}
CHECK(custom, wb_custom_node(SQUARE(wb_stop_gradient(x)), 1, &x, pull_square, NULL, NULL), 1,
      {{2, {3, 2}}}, -2, 2)
