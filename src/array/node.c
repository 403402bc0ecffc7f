/* Nodes: making, counting, detaching and releasing them. A node holds a reference to each of its
 * inputs and to its memory. Releasing works through a list instead of recursing, so that a long
 * recipe cannot overflow the stack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/array.h"
#include "array/origin.h"
#include "array/payload.h"
#include "array/thread.h"
#include "array/use.h"
#include "base/memory.h"
#include "base/switch.h"
#include "device/device.h"

const wb_class wb_array_class = {.name = "array"}; /* wb_free releases arrays itself */

const char *wb_op_name(wb_op op) {
    static const char *const names[WB_OP_COUNT] = {
#define WB_UNARY(name, ...)     #name,
#define WB_BINARY(name, ...)    #name,
#define WB_MACRO(name, ...)     #name,
#define WB_OPERATION(name, ...) #name,
#include <weber/ops.def>
    };
    return names[op];
}

/* Bits of a new leaf. */
static uint64_t new_leaf(wb_thread *thread) {
    const uint64_t hash = ++thread->leaves * 0x9e3779b97f4a7c15u;
    return 1ull << (hash >> 58) | 1ull << (hash >> 52 & 63);
}

/* A node without inputs, whose one reference is the caller's. */
static inline wb_array *blank(wb_thread *thread, wb_op op, wb_dtype dtype, int ndim,
                              const int64_t *sizes) {
    wb_array *node = wb_node_take(thread);
    if (!node) return NULL;
    memset(node, 0, offsetof(wb_array, inputs));
    node->object.klass = &wb_array_class;
    node->refs = 1;
    node->op = (uint16_t)op;
    node->dtype = (uint8_t)dtype;
    node->ndim = (uint8_t)ndim;
    node->owner = thread->number;
    node->depth = thread->depth;
    if (wb_notes_origins()) node->origin = wb_origin_now();
    node->inputs = node->own_inputs;
    node->device = NULL;
    node->buffer = NULL;
    node->taken = 0;
    node->payload = NULL;
    node->offset = 0;
    for (int d = 0; d < ndim; d++) node->sizes[d] = sizes[d];
    return node;
}

/* The new node's one reference becomes the scope's. */
static inline wb_array *into_scope(wb_thread *thread, wb_array *node) {
    if (wb_scope_has_room(thread)) {
        thread->entries[thread->entry_count++] = &node->object;
        node->object.scope_slot = thread->entry_count;
        return node;
    }
    wb_unref(node);
    return NULL;
}

/* WEBER_EAGER=1: an operation finds its inputs evaluated, each by a plan of its own. */
static bool is_eager(void) {
    static wb_switch eager = {.variable = "WEBER_EAGER", .word = "1"};
    return wb_is_on(&eager);
}

wb_status wb_settle_effects(void) { return wb_evaluate_hook(0, NULL); }

static bool evaluate_inputs(int ninputs, wb_array *const *inputs) {
    for (int i = 0; i < ninputs; i++) {
        const bool is_number = inputs[i]->op == WB_OP_full || inputs[i]->op == WB_OP_late;
        if (is_number || wb_is_evaluated(inputs[i]) || wb_has_results(inputs[i])) continue;
        if (wb_evaluate_hook(1, &inputs[i]) != WB_OK) return false;
    }
    return true;
}

/* A safety net for programs that never read anything: past the budget an operation's inputs are
 * evaluated, which cuts no recipe. Not while a loss is built: a step stays one plan. */
static bool wants_inputs(wb_thread *thread) {
    if (thread->is_walking || thread->is_sizing || thread->depth > 0) return false;
    if (is_eager()) return true;
    if (++thread->pending_nodes < WB_PENDING_BUDGET || thread->training) return false;
    thread->pending_nodes = 0;
    return true;
}

/* ---- where ---- */

static bool mixed_devices(wb_op op, const wb_array *a, const wb_array *b) {
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: the arrays must be on one device, but %s is on %s, %s on %s; wb_to moves "
                  "arrays and models",
                  wb_op_name(op), wb_text_of(a), wb_device_name(a->device), wb_text_of(b),
                  wb_device_name(b->device));
    return false;
}

bool wb_claim(const wb_array *x) {
    union {
        const wb_array *from;
        wb_array *to;
    } cast = {.from = x}; /* its numbers stay */
    return wb_claim_owner(&cast.to->owner);
}

static void *refuse_foreign(const char *function, const wb_array *x, const char *what) {
    char name[240];
    (void)snprintf(name, sizeof name, "%s %s", what, wb_text_of(x));
    return wb_fail_foreign(function, x->owner, name,
                           "wb_share lets that thread and this one apply a model, wb_hand_over "
                           "gives a model away, wb_read copies numbers");
}

void *wb_refuse(const char *function, const wb_array *x, const char *what) {
    const wb_class *klass = x ? wb_class_of(x) : NULL;
    if (klass == &wb_array_class) return refuse_foreign(function, x, what);
    if (x && (!klass || wb_object_is_released(x)))
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: an array was released: its scope was closed, or a later batch took its "
                      "place; wb_keep keeps an array longer",
                      function);
    else
        (void)wb_object_check(function, x, &wb_array_class, what);
    return NULL;
}

wb_status wb_fail_lost(const char *function, const wb_array *x) {
    return wb_fail(WB_ERROR_LOST, "%s: the values of %s were lost in an earlier device error",
                   function, wb_text_of(x));
}

bool wb_is_tracing(const char *function) {
    const wb_thread *thread = wb_thread_get();
    if (!thread || thread->depth == 0) return false;
    (void)wb_fail(WB_ERROR_ARGUMENT,
                  "%s: cannot be called inside the body of a scan or the step of a rule, "
                  "whose arrays have no values yet; return what you need",
                  function);
    return true;
}

bool wb_check_devices(wb_op op, int ninputs, wb_array *const *inputs) {
    const wb_array *placed = NULL;
    for (int i = 0; i < ninputs; i++) {
        if (wb_is_gone(wb_op_name(op), inputs[i])) return false;
        if (!inputs[i]->device) continue;
        if (placed && inputs[i]->device != placed->device)
            return mixed_devices(op, placed, inputs[i]);
        placed = inputs[i];
    }
    return true;
}

static bool has_type(const wb_device *device, wb_op op, wb_dtype dtype) {
    if (dtype != WB_F64 || !device || wb_device_has_f64(device)) return true;
    (void)wb_fail(
        WB_ERROR_DTYPE,
        "%s of f64: %s has no f64; use f32 (wb_cast, or wb_to where the data is moved), or the CPU",
        wb_op_name(op), device->name);
    return false;
}

/* References, device and leaves, in one pass. On failure the node has the inputs so far. */
static inline bool attach_inputs(wb_array *node, int ninputs, wb_array *const *inputs) {
    const wb_device *device = NULL;
    uint64_t leaves = 0;
    if (ninputs > WB_INLINE_INPUTS) {
        node->inputs = wb_alloc((size_t)ninputs * sizeof *inputs);
        if (!node->inputs) return false;
    }
    wb_array **list = node->inputs;
    for (int i = 0; i < ninputs; i++) {
        wb_array *x = inputs[i];
        node->ninputs = i;
        if (x->object.klass != &wb_array_class || (device && x->device && x->device != device))
            return wb_check_devices((wb_op)node->op, ninputs, inputs);
        if (x->device) device = x->device;
        leaves |= x->leaves;
        x->refs++;
        list[i] = x;
    }
    node->ninputs = ninputs;
    node->device = device;
    node->leaves = leaves;
    return true;
}

bool wb_device_has_f64(const wb_device *device) { return device->info.has_f64; }

const wb_device *wb_node_device(const wb_array *x) {
    return x->device ? x->device : wb_default_device();
}

wb_array *wb_node_new(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                      wb_array *const *inputs) {
    wb_thread *thread = wb_thread_get();
    if (!thread || (wants_inputs(thread) &&
                    (!wb_check_devices(op, ninputs, inputs) || !evaluate_inputs(ninputs, inputs))))
        return NULL;
    wb_array *node = blank(thread, op, dtype, ndim, sizes);
    if (!node) return NULL;
    if (!attach_inputs(node, ninputs, inputs) || !has_type(node->device, (wb_op)op, dtype)) {
        wb_unref(node);
        return NULL;
    }
    if (ninputs == 0) node->leaves = new_leaf(thread);
    return into_scope(thread, node);
}

wb_array *wb_node_data(wb_dtype dtype, int ndim, const int64_t *sizes, wb_buffer *buffer) {
    if (!buffer) return NULL;
    wb_thread *thread = wb_thread_get();
    const bool fits = thread && has_type(buffer->device, WB_OP_data, dtype);
    wb_array *node = fits ? blank(thread, WB_OP_data, dtype, ndim, sizes) : NULL;
    if (!node) {
        wb_buffer_unref(buffer);
        return NULL;
    }
    node->device = buffer->device;
    node->buffer = buffer;
    node->leaves = new_leaf(thread);
    return into_scope(thread, node);
}

wb_array *wb_node_share(const wb_array *x) {
    wb_array *y = wb_node_data((wb_dtype)x->dtype, x->ndim, x->sizes, wb_buffer_ref(x->buffer));
    if (!y) return NULL;
    y->owner = 0;
    y->offset = x->offset;
    y->flags |= x->flags & WB_NODE_STRIDED;
    if (x->flags & WB_NODE_STRIDED)
        memcpy(y->strides, x->strides, (size_t)x->ndim * sizeof *x->strides);
    return y;
}

wb_array *wb_ref(wb_array *x) {
    x->refs++;
    return x;
}

/* Takes node's inputs off it; those that are not referred to any more join the list of dead
 * nodes. */
static wb_array *drop_inputs(wb_array *node, wb_array *dead) {
    for (int i = 0; i < node->ninputs; i++) {
        wb_array *input = node->inputs[i];
        if (--input->refs > 0) continue;
        input->stamp = (uint64_t)(uintptr_t)dead; /* a dead node's stamp links the list */
        dead = input;
    }
    if (node->inputs != node->own_inputs) wb_release(node->inputs);
    node->inputs = node->own_inputs;
    node->ninputs = 0;
    if (node->payload) {
        wb_payload_unref(node->payload);
        node->payload = NULL;
    }
    return dead;
}

static void bury(wb_thread *thread, wb_array *dead) {
    while (dead) {
        wb_array *node = dead;
        dead = (wb_array *)(uintptr_t)node->stamp;
        dead = drop_inputs(node, dead);
        if (node->buffer) wb_buffer_unref(node->buffer);
        wb_node_give(thread, node);
    }
}

void wb_unref(wb_array *x) {
    if (!x || --x->refs > 0) return;
    wb_thread *thread = wb_thread_get();
    if (!thread) return; /* only a thread that never made an array: the memory is not freed */
    x->stamp = 0;
    bury(thread, x);
}

void wb_node_detach(wb_array *x) {
    if (x->ninputs == 0) return;
    wb_thread *thread = wb_thread_get();
    if (!(x->flags & (WB_NODE_SETTLED | WB_NODE_FORGETS))) x->flags |= WB_NODE_DETACHED;
    x->flags &= (uint16_t) ~(WB_NODE_LEFT | WB_NODE_SETTLED | WB_NODE_FORGETS);
    x->op = WB_OP_data;
    if (x->buffer) x->device = x->buffer->device;
    bury(thread, drop_inputs(x, NULL));
}

wb_array *wb_hold(wb_array *x) {
    const bool is_number = x && (x->flags & WB_NODE_WEAK); /* which belongs to no device */
    if (!x) return NULL;
    if (!x->device && !is_number) x->device = x->buffer ? x->buffer->device : wb_default_device();
    x->refs++, x->holds++;
    return x;
}

void wb_unhold(wb_array *x) {
    if (!x) return;
    x->holds--;
    if (x->keeps > x->holds) x->keeps = (uint16_t)x->holds; /* a struct gave its kept array back */
    wb_unref(x);
}

void wb_slot_put(wb_array **slot, wb_array *x) {
    wb_array *old = *slot;
    const bool is_kept = old && old->keeps > 0 && old->keeps == old->holds;
    *slot = wb_hold(x);
    if (x && is_kept && x->keeps < UINT16_MAX) x->keeps++;
    wb_unhold(old);
}

wb_array *wb_keep(wb_array *x) {
    if (x && (!wb_may_use_array("wb_keep", x, "x") || wb_is_tracing("wb_keep"))) return NULL;
    if (x && x->keeps < UINT16_MAX) x->keeps++;
    return wb_hold(x);
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A number that the scope owns, or one that the thread keeps, which has no count. */
static wb_array *number(wb_thread *thread, double value, bool is_kept) {
    wb_array *node = blank(thread, WB_OP_full, WB_F64, 0, NULL);
    if (!node) return NULL;
    node->flags = WB_NODE_WEAK;
    node->nattributes = 1;
    node->attributes.number.value = value;
    node->device = NULL;
    if (!is_kept) return into_scope(thread, node);
    node->flags |= WB_NODE_INTERNED;
    thread->live_nodes--;
    return node;
}

wb_array *wb_number(double value) {
    wb_thread *thread = wb_thread_get();
    return thread ? number(thread, value, false) : NULL;
}

/* Constants stay in the cache. A constant that was read or held, as the result of a function may
 * be, is data like any other array, and is not handed out again. */
wb_array *wb_constant(double value) {
    wb_thread *thread = wb_thread_get();
    if (!thread) return NULL;
    const uint64_t bits = bits_of(value);
    wb_array **place = &thread->constants[(bits * 0x9E3779B97F4A7C15ull) >> 58], *x = *place;
    if (!x) return *place = number(thread, value, true);
    const bool is_it = (uint64_t)x->attributes.words[0] == bits && !x->buffer && !x->device;
    return is_it ? x : number(thread, value, false);
}
