/* Functions as layers, closures among them, and the names of activations. */
#include <stdio.h>
#include <string.h>

#include "array/thread.h"
#include "array/user_call.h"
#include "base/memory.h"
#include "layers/layer.h"
#include "ops/ops.h"

typedef struct wb_function {
    wb_layer layer;
    wb_activation *function;
    char name[48]; /* "": that of its operation */
} wb_function;

/* ---- names ---- */

static bool takes_default(const wb_array *y, wb_array *probe) {
    const wb_op_row *row = &wb_op_rows[y->op];
    if (row->arity == 1) return !row->expand || y->attributes.number.value == row->parameter;
    const wb_array *usual = NULL;
    if (y->op == WB_OP_softmax) usual = wb_softmax(probe);
    if (y->op == WB_OP_logsoftmax) usual = wb_logsoftmax(probe);
    return usual && usual->nattributes == y->nattributes &&
           memcmp(&usual->attributes, &y->attributes, y->nattributes * sizeof(int64_t)) == 0;
}

/* Only the recipe of the result is used. The call has no effects and draws no random numbers,
 * because one rank alone may ask for names. */
static wb_array *probed(wb_activation *activation, wb_array *probe) {
    wb_thread *thread = wb_thread_get();
    const bool is_inner = thread->is_sizing;
    const uint64_t counter = thread->counter;
    thread->is_sizing = true;
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    wb_array *y = activation(probe);
    if (!wb_user_call_end(&call, NULL)) y = NULL;
    thread->is_sizing = is_inner, thread->counter = counter;
    return y;
}

/* A user's function is applied to a small array: if its recipe is one operation, that is its name;
 * if x comes back, it is the identity. */
const char *wb_activation_name(wb_activation *activation) {
    const char *listed = activation ? wb_activation_listed(activation) : "";
    if (listed || !wb_scope_begin()) return listed ? listed : "";
    const bool failed = wb_failed();
    const char *name = "";
    wb_array *probe = wb_vector(0.5f, -0.5f);
    wb_array *y = probe ? probed(activation, probe) : NULL;
    if (y && y == probe) name = "identity";
    if (y && y != probe && y->ninputs == 1 && y->inputs[0] == probe && takes_default(y, probe))
        name = wb_op_name((wb_op)y->op);
    if (!failed && wb_failed()) wb_clear_error(); /* it does not take vectors: it has no name */
    (void)wb_scope_leave();
    return name;
}

const char *wb_activation_text(wb_activation *activation) {
    const char *name = wb_activation_name(activation);
    return activation && !*name ? WB_NAMELESS : name;
}

/* ---- the layer ---- */

static wb_array *apply_function(wb_layer *layer, wb_array *x) {
    return ((wb_function *)(void *)layer)->function(x);
}

static void describe_function(const wb_layer *layer, bool brief, char *text, size_t size) {
    const wb_function *f = (const wb_function *)(const void *)layer;
    const char *name = f->name;
    if (!*name && !brief) name = wb_activation_name(f->function);
    (void)snprintf(text, size, "%s", *name ? name : WB_NAMELESS);
}

static const wb_field function_fields[] = {WB_VALUE_FIELD(wb_function, function)};
const wb_layer_class wb_fn_class = {.name = "Function",
                                    WB_LAYER_ROWS(wb_function, function_fields),
                                    .forward = apply_function,
                                    .describe = describe_function};

static wb_layer *make(const char *caller, const char *name, wb_activation *function) {
    if (!function) return wb_failed() ? NULL : wb_fail_argument_null(caller, "the function");
    wb_function *f = (wb_function *)(void *)wb_layer_new(&wb_fn_class);
    if (!f) return NULL;
    f->function = function;
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    return &f->layer;
}

wb_layer *wb_fn(wb_activation *function) { return make("wb_fn", "", function); }

wb_layer *wb_fn_named(const char *name, wb_activation *function) {
    if (!name) return wb_failed() ? NULL : wb_fail_argument_null("wb_fn_named", "the name");
    return make("wb_fn_named", name, function);
}

/* ---- closures ---- */

/* What a layer and its copies have in common; they may be on several threads. */
typedef struct closure {
    wb_fn_with_desc desc;
    char name[48];
    int64_t refs; /* __atomic */
} closure;

typedef struct wb_closure_layer {
    wb_layer layer;
    closure *closure; /* NULL in a struct that is not complete */
} wb_closure_layer;

static closure *closure_of(const wb_layer *layer) {
    return ((const wb_closure_layer *)(const void *)layer)->closure;
}

static int apply_closure(wb_layer *layer, int count, wb_array *const *inputs, wb_array **results) {
    const wb_fn_with_desc *desc = &closure_of(layer)->desc;
    return desc->function(desc->context, count, inputs, results);
}

static void describe_closure(const wb_layer *layer, bool brief, char *text, size_t size) {
    const closure *c = closure_of(layer);
    (void)brief;
    (void)snprintf(text, size, "%s", c && *c->name ? c->name : WB_NAMELESS);
}

static bool share_closure(wb_layer *copy) {
    closure *c = closure_of(copy);
    if (c) (void)__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
    return true;
}

static void release_closure(wb_layer *layer) {
    closure *c = closure_of(layer);
    if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (c->desc.release) c->desc.release(c->desc.context);
    wb_release(c);
}

static const wb_field closure_fields[] = {WB_VALUE_FIELD(wb_closure_layer, closure)};
static const wb_layer_class closure_class = {.name = "Function",
                                             WB_LAYER_ROWS(wb_closure_layer, closure_fields),
                                             .forward_many = apply_closure,
                                             .describe = describe_closure,
                                             .copied = share_closure,
                                             .released = release_closure};

static wb_layer *fail_closure(const wb_fn_with_desc *desc, closure *c) {
    if (desc->release) desc->release(desc->context);
    wb_release(c);
    return NULL;
}

wb_layer *wb_fn_with_make(wb_fn_with_desc desc) {
    if (!wb_check_start("wb_fn_with", desc.start_)) return fail_closure(&desc, NULL);
    if (!desc.function) {
        if (!wb_failed()) (void)wb_fail_argument_null("wb_fn_with", "the function");
        return fail_closure(&desc, NULL);
    }
    closure *c = wb_alloc(sizeof *c);
    wb_layer *layer = c ? wb_layer_new(&closure_class) : NULL;
    if (!layer) return fail_closure(&desc, c);
    *c = (closure){.desc = desc, .refs = 1};
    (void)snprintf(c->name, sizeof c->name, "%s", desc.name ? desc.name : "");
    ((wb_closure_layer *)(void *)layer)->closure = c;
    return layer;
}

const char *wb_function_in_files(const wb_layer *layer) {
    if (layer->class_ == &closure_class) return WB_NAMELESS;
    if (layer->class_ != &wb_fn_class) return NULL;
    return wb_activation_text(((const wb_function *)(const void *)layer)->function);
}
