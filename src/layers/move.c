/* Moving objects that hold arrays from device to device. */
#include "array/use.h"
#include "layers/layer.h"
#include "ops/ops.h"

static bool is_array(const void *object) {
    return object && ((const wb_object *)object)->klass == &wb_array_class;
}

static bool check(const char *function, const wb_to_desc *desc) {
    if (!wb_may_use_any(function, desc->x, "x")) return false;
    if (!desc->device) {
        if (!wb_failed()) (void)wb_fail_argument_null(function, "the device");
        return false;
    }
    if ((unsigned)desc->eltype <= WB_ELTYPE_BF16) return true;
    (void)wb_fail(WB_ERROR_DTYPE, "%s: there is no policy %d for floating types", function,
                  (int)desc->eltype);
    return false;
}

static const char *class_name(const void *object) {
    const wb_class *klass = ((const wb_object *)object)->klass;
    return klass && klass->name ? klass->name : "object";
}

/* ---- models ---- */

static wb_array *move_leaf(void *user, const char *path, wb_array *x) {
    const wb_to_desc *desc = user;
    (void)path;
    return wb_move_array(desc->device, x, desc->eltype);
}

/* A walk that ends at the first array which a move would change. */
typedef struct search {
    wb_visitor visitor;
    const wb_to_desc *desc;
    bool changes;
} search;

static bool is_there(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    search *s = (search *)(void *)visitor;
    (void)path, (void)trainable;
    if (!*slot) return true;
    s->changes = wb_move_array(s->desc->device, *slot, s->desc->eltype) != *slot;
    return !s->changes;
}

/* True if all arrays are there, in the wanted types. */
static bool all_there(const wb_to_desc *desc) {
    search s = {.visitor = {.array = is_there}, .desc = desc};
    if (!wb_scope_begin()) return false;
    (void)wb_visit(&s.visitor, desc->x);
    return wb_scope_leave() == WB_OK && !s.changes;
}

static wb_layer *move_model(wb_to_desc *desc) {
    if (all_there(desc)) return wb_keep_layer(desc->x);
    return wb_failed() ? NULL : wb_map(move_leaf, desc, desc->x);
}

/* ---- the public functions ---- */

void *wb_to_make(wb_to_desc desc) {
    if (!check("wb_to", &desc)) return NULL;
    if (is_array(desc.x)) return wb_move_array(desc.device, desc.x, desc.eltype);
    if (wb_is_layer(desc.x)) return move_model(&desc);
    return wb_fail_null(WB_ERROR_ARGUMENT,
                        "wb_to: %s is neither array nor model; wb_move works in place",
                        class_name(desc.x));
}

wb_status wb_move_make(wb_to_desc desc) {
    if (!check("wb_move", &desc)) return wb_error_status();
    if (wb_is_layer(desc.x)) return wb_walk(move_leaf, &desc, desc.x);
    if (is_array(desc.x))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_move: an array stays where it is; wb_to gives a new one");
    const wb_class *klass = ((wb_object *)desc.x)->klass;
    if (klass && klass->move) return klass->move(&desc);
    return wb_fail(WB_ERROR_ARGUMENT, "wb_move: %s holds nothing to be moved", class_name(desc.x));
}

void *wb_gpu(void *x) {
    const wb_device *device = x && wb_may_use_any("wb_gpu", x, "x") ? wb_gpu_device() : NULL;
    return device ? wb_to(device, x) : NULL;
}

void *wb_cpu(void *x) {
    return x && wb_may_use_any("wb_cpu", x, "x") ? wb_to(wb_cpu_device(), x) : NULL;
}

/* ---- where it is ---- */

typedef struct census {
    wb_visitor visitor;
    const wb_device *device;
    char path[WB_PATH_BYTES]; /* of the first array */
    bool mixed;
} census;

static bool note_device(wb_visitor *visitor, const wb_path *path, wb_array **slot, bool trainable) {
    census *c = (census *)(void *)visitor;
    (void)trainable;
    if (!*slot) return true;
    const wb_device *device = wb_node_device(*slot);
    if (!c->device) {
        c->device = device;
        wb_path_text(path, c->path, sizeof c->path);
    }
    if (c->device == device) return true;
    char text[WB_PATH_BYTES];
    wb_path_text(path, text, sizeof text);
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "wb_device_of: the model is on several devices: %s on %s, %s on %s", c->path,
                  wb_device_name(c->device), text, wb_device_name(device));
    c->mixed = true;
    return false;
}

static const wb_device *device_of_model(const wb_layer *model) {
    census c = {.visitor = {.array = note_device}};
    union {
        const wb_layer *from;
        wb_layer *to; /* visited, not changed */
    } cast = {.from = model};
    (void)wb_visit(&c.visitor, cast.to);
    return c.mixed ? NULL : c.device;
}

const wb_device *wb_device_of(const void *x) {
    if (!x || !wb_may_use_any("wb_device_of", x, "x")) return NULL;
    if (is_array(x)) return wb_node_device(x);
    if (wb_is_layer(x)) return device_of_model(x);
    const wb_class *klass = ((const wb_object *)x)->klass;
    return klass && klass->device_of ? klass->device_of(x) : NULL;
}
