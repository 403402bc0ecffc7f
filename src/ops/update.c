#include "ops/update.h"

#include "ops/build.h"

wb_array *wb_part(wb_array *node, int index, wb_dtype dtype, int ndim, const int64_t *sizes) {
    const int64_t attribute = index;
    return node ? wb_node_with(WB_OP_part, dtype, ndim, sizes, 1, &node, 1, &attribute) : NULL;
}

/* The cotangent of the first result is that of the node; the others have none. */
void wb_vjp_part(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    if (o->attributes[0] == 0) out[0] = g;
}

/* Attribute 3 tells which of the optional inputs are there. */
enum { HAS_GUARD = 1, HAS_DECAY = 2 };

const char *wb_step_name(const wb_array *node) {
    switch (node->op) {
    case WB_OP_descent:
        return "descent";
    case WB_OP_momentum:
        return "momentum";
    case WB_OP_adam:
        return node->attributes[3] & HAS_DECAY ? "adamw" : "adam";
    default:
        return NULL;
    }
}

static wb_array *guarded(wb_array *guard, wb_array *new_value, wb_array *old) {
    wb_array *value = guard ? SELECT(guard, new_value, old) : new_value;
    return value ? wb_cast(value, (wb_dtype)old->dtype) : NULL;
}

/* f32 for the two halves: steps are computed there and rounded once. */
static wb_array *wide(wb_array *x) {
    return x && (x->dtype == WB_F16 || x->dtype == WB_BF16) ? wb_cast(x, WB_F32) : x;
}

static wb_status refuse(const char *rule, const wb_array *p, const wb_array *g) {
    return wb_fail(WB_ERROR_SHAPE, "%s: the gradient is %s, the parameter %s", rule, wb_text_of(g),
                   wb_text_of(p));
}

static bool same_sizes(const wb_array *p, const wb_array *x) {
    bool same = p->ndim == x->ndim;
    for (int d = 0; same && d < p->ndim; d++) same = p->sizes[d] == x->sizes[d];
    return same;
}

static wb_status parts_of(wb_array *node, int count, wb_array *const *like, wb_array **out) {
    for (int i = 0; node && i < count; i++)
        out[i] = wb_part(node, i, (wb_dtype)like[i]->dtype, like[i]->ndim, like[i]->sizes);
    return wb_failed() ? wb_error_status() : WB_OK;
}

wb_status wb_step_descent(wb_array *p, wb_array *g, wb_array *eta, wb_array *guard,
                          wb_array **new_p) {
    if (!same_sizes(p, g)) return refuse("descent", p, g);
    const int64_t attribute = guard ? HAS_GUARD : 0;
    wb_array *inputs[4] = {p, g, eta, guard};
    wb_array *node = wb_node_with(WB_OP_descent, (wb_dtype)p->dtype, p->ndim, p->sizes,
                                  guard ? 4 : 3, inputs, 1, &attribute);
    return parts_of(node, 1, &p, new_p);
}

bool wb_expand_descent(wb_array *node, wb_array **parts) {
    wb_array **in = node->inputs, *p = wide(in[0]);
    return (parts[0] = guarded(node->attributes[0] ? in[3] : NULL, SUB(p, MUL(wide(in[1]), in[2])),
                               in[0])) != NULL;
}

wb_status wb_step_momentum(wb_array *p, wb_array *g, wb_array *v, double rho, wb_array *eta,
                           wb_array *guard, wb_array *out[2]) {
    if (!same_sizes(p, g) || !same_sizes(p, v)) return refuse("momentum", p, g);
    const int64_t attributes[2] = {wb_bits_of(rho), guard ? HAS_GUARD : 0};
    wb_array *inputs[5] = {p, g, v, eta, guard};
    wb_array *node = wb_node_with(WB_OP_momentum, (wb_dtype)p->dtype, p->ndim, p->sizes,
                                  guard ? 5 : 4, inputs, 2, attributes);
    return parts_of(node, 2, (wb_array *[]){p, v}, out);
}

bool wb_expand_momentum(wb_array *node, wb_array **parts) {
    wb_array **in = node->inputs, *guard = node->attributes[1] ? in[4] : NULL;
    wb_array *v = ADD(MUL(in[2], NUM(wb_value_of(node->attributes[0]))), MUL(wide(in[1]), in[3]));
    parts[0] = guarded(guard, SUB(wide(in[0]), v), in[0]);
    parts[1] = guarded(guard, v, in[2]);
    return parts[0] && parts[1];
}

wb_status wb_step_adam(const wb_adam_step *step, wb_array *out[3]) {
    wb_array *p = step->p;
    if (!same_sizes(p, step->g) || !same_sizes(p, step->m) || !same_sizes(p, step->v))
        return refuse("adam", p, step->g);
    const int64_t attributes[4] = {wb_bits_of(step->beta1), wb_bits_of(step->beta2),
                                   wb_bits_of(step->epsilon),
                                   (step->guard ? HAS_GUARD : 0) | (step->decay ? HAS_DECAY : 0)};
    wb_array *inputs[8] = {p, step->g, step->m, step->v, step->rate, step->correction};
    int count = 6;
    if (step->decay) inputs[count++] = step->decay;
    if (step->guard) inputs[count++] = step->guard;
    wb_array *node = wb_node_with(WB_OP_adam, (wb_dtype)p->dtype, p->ndim, p->sizes, count, inputs,
                                  4, attributes);
    return parts_of(node, 3, (wb_array *[]){p, step->m, step->v}, out);
}

bool wb_expand_adam(wb_array *node, wb_array **parts) {
    wb_array **in = node->inputs, *p = wide(in[0]), *g = wide(in[1]);
    const double beta1 = wb_value_of(node->attributes[0]), beta2 = wb_value_of(node->attributes[1]);
    const int64_t flags = node->attributes[3];
    wb_array *decay = flags & HAS_DECAY ? in[6] : NULL;
    wb_array *guard = flags & HAS_GUARD ? in[flags & HAS_DECAY ? 7 : 6] : NULL;
    wb_array *m = ADD(MUL(in[2], NUM(beta1)), MUL(g, NUM(1 - beta1)));
    wb_array *v = ADD(MUL(in[3], NUM(beta2)), MUL(SQUARE(g), NUM(1 - beta2)));
    wb_array *root = ADD(SQRT(MUL(v, in[5])), NUM(wb_value_of(node->attributes[2])));
    wb_array *kept = decay ? SUB(p, MUL(p, decay)) : p;
    parts[0] = guarded(guard, SUB(kept, DIV(MUL(m, in[4]), root)), in[0]);
    parts[1] = guarded(guard, m, in[2]);
    parts[2] = guarded(guard, v, in[3]);
    return parts[0] && parts[1] && parts[2];
}
