/* The node: data or a recipe. Private side of weber/array.h. */
#ifndef WB_ARRAY_ARRAY_H
#define WB_ARRAY_ARRAY_H

#include <weber/array.h>
#include <weber/device.h>

#include "array/attributes.h"
#include "base/count.h"
#include "base/error.h"
#include "base/object.h"
#include "device/buffer.h"

/* ---- nodes ---- */

/* Operations by number; wb_op_rows (ops/ops.h) has one row for each. */
typedef enum wb_op {
#define WB_UNARY(name, ...)     WB_OP_##name,
#define WB_BINARY(name, ...)    WB_OP_##name,
#define WB_MACRO(name, ...)     WB_OP_##name,
#define WB_OPERATION(name, ...) WB_OP_##name,
#include <weber/ops.def>
    WB_OP_COUNT
} wb_op;

enum { WB_INLINE_INPUTS = 8 }; /* more inputs are in a list of their own */

/* Flags of a node. */
enum {
    WB_NODE_WEAK = 1,      /* a C number: takes the type of what it meets */
    WB_NODE_DETACHED = 2,  /* had a recipe; a closed scope took it away */
    WB_NODE_LEFT = 4,      /* left its scope pending: detached as soon as it is evaluated */
    WB_NODE_COMPUTED = 8,  /* some plan computed it without storing it: the next one stores it */
    WB_NODE_STRIDED = 32,  /* data: stride[] is set; otherwise dense */
    WB_NODE_INTERNED = 64, /* a cached constant of the thread: no scope, no count */
    WB_NODE_UNTIED = 128, /* an automatic layer made it in test mode: a gradient through it warns */
    WB_NODE_SETTLED =
        256, /* with WB_NODE_LEFT: data like any other afterwards (a parameter, a state) */
    WB_NODE_FORGETS = 1024, /* with WB_NODE_LEFT: stored by the plan that computes it, and data like
                               any other afterwards (wb_forget_recipe) */
    WB_NODE_REPEATED = 512, /* part of what is computed again for the gradient */
};

struct wb_array {
    _Alignas(64) wb_object object; /* cache lines: the head, the inputs, sizes, the rest */
    int32_t refs;                  /* nodes that read it + scopes + holds */
    int32_t holds;                 /* wb_keep, slots of models and optimisers */
    uint16_t op, flags;
    /* how many holds are by wb_keep, which wb_free takes back; stays at the largest uint16_t */
    uint16_t keeps;
    uint8_t dtype, ndim, nattributes;
    uint8_t depth;   /* number of scan bodies that were being traced when it was made */
    uint16_t origin; /* where it was made, see array/origin.h; 0: not noted */
    int32_t ninputs;
    uint32_t index; /* scratch of a walk, valid where stamp is the walk's */
    uint32_t owner; /* number of the context that it belongs to; 0: the first that uses it */
    uint64_t stamp;
    /* which leaves it was made of: two bits for each leaf. If x lacks a bit that y has, x was not
     * made of y, even when the recipe of x is gone */
    uint64_t leaves;
    wb_array **inputs; /* own_inputs, or a list of its own when there are more */
    wb_array *own_inputs[WB_INLINE_INPUTS];
    const wb_device *device; /* NULL: a recipe of numbers alone, computed wherever it is needed */
    wb_buffer *buffer;       /* NULL while pending */
    uint32_t taken;          /* how many references are by wb_take, which wb_free takes back */
    int64_t offset;          /* elements */
    int64_t sizes[WB_MAX_DIMS];
    wb_attributes attributes;     /* the operation says which member is in use */
    int64_t late[2];              /* not in the key: value, key or counter */
    struct wb_payload *payload;   /* of operations that have one; holds a reference */
    int64_t strides[WB_MAX_DIMS]; /* elements; only with WB_NODE_STRIDED */
};

extern const wb_class wb_array_class;

/* Number of elements of a node, without the check of its owner that the public wb_count makes. */
int64_t wb_node_count(const wb_array *x);
#define wb_count(x) wb_node_count(x)

const char *wb_op_name(wb_op op);

/* The device where x is, or where it would be computed by itself. */
const wb_device *wb_node_device(const wb_array *x);

/* Whether the device computes in f64. Every step asks this; wb_device_properties would ask the
 * processor for its name as well, which takes 7 us in a virtual machine. */
bool wb_device_has_f64(const wb_device *device);

/* ---- operands ---- */

/* The number of this thread, from 1 on; 0 before its first array. */
extern _Thread_local uint32_t wb_this_thread __attribute__((tls_model("initial-exec")));

/* Makes this thread the owner of x if x has none yet; true if this thread owns it now. */
bool wb_claim(const wb_array *x);

/* True if x can be an operand: it is there, was not released, and belongs to this thread. Otherwise
 * wb_refuse records why not, in the name of the function, and returns NULL. */
static inline bool wb_is_usable(const wb_array *x) {
    if (!x || wb_class_of(x) != &wb_array_class) return false;
    return (x->owner == wb_this_thread && x->owner) || wb_claim(x);
}
void *wb_refuse(const char *function, const wb_array *x, const char *what);

/* True, with an error that names the function, if x was released. Not every use after a release is
 * noticed: the memory may be another array's node by then. With WEBER_DEBUG=mem, and in debug
 * builds, it stays unused for a while. */
static inline bool wb_is_gone(const char *function, const wb_array *x) {
    return x->object.klass != &wb_array_class && !wb_refuse(function, x, "an operand");
}

/* True, with an error that names the function, while the body of a scan is traced: no array has a
 * value there. */
bool wb_is_tracing(const char *function);

/* Fails where operands are on several devices, as wb_node_new does: for operations that make other
 * nodes first. */
bool wb_check_devices(wb_op op, int ninputs, wb_array *const *inputs);

/* A node owned by the innermost scope, with a reference to each input; sizes and inputs are copied.
 * Inputs are not NULL. Its device is that of its inputs. NULL when those are on several devices, or
 * when out of memory. */
wb_array *wb_node_new(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                      wb_array *const *inputs);

/* A node over memory; takes over the caller's reference to the buffer, also on failure. */
wb_array *wb_node_data(wb_dtype dtype, int ndim, const int64_t *sizes, wb_buffer *buffer);

/* As wb_number, but a thread has one node for each value: for numbers that the library uses inside
 * and never returns to the user. */
wb_array *wb_constant(double value);

/* A new node over the memory of x, which must be evaluated. The first thread that uses the node
 * owns it. */
wb_array *wb_node_share(const wb_array *x);

wb_array *wb_ref(wb_array *x); /* one more reference; returns x */
void wb_unref(wb_array *x);    /* one fewer; NULL is fine; no recursion */

/* A reference that counts as visible: a slot, a kept array. */
wb_array *wb_hold(wb_array *x);
void wb_unhold(wb_array *x);

/* Puts x, which may be NULL, into the slot in place of the old array. If only wb_keep held the old
 * one, as in a user's own struct, x counts as kept, too, so that wb_free works on it. */
void wb_slot_put(wb_array **slot, wb_array *x);

/* Gives the innermost scope a reference to x (for getters); returns x, or NULL when out of
 * memory. */
wb_array *wb_scope_add(wb_array *x);

/* Gives any object (gradients, say) to the innermost scope, which calls wb_free on it when it
 * closes. Returns the object. On failure it is freed at once and NULL returned. If wb_free is
 * called earlier, it takes the object out of the scope. */
void *wb_scope_own(void *object);

/* The text of a wb_text_entry; NULL: the object is not one. */
const char *wb_entry_text(const void *object);

/* Takes any object out of the scope that owns it; false if no scope of this thread does. */
bool wb_scope_disown(void *object);

/* How many entries the scopes of this thread have. */
int64_t wb_scope_entries(void);
/* Entry number i as an array; NULL: it is not an array. */
wb_array *wb_scope_entry(int64_t i);
/* The array at entry i leaves its scope. */
void wb_scope_drop(int64_t i);

/* Closes the innermost scope (opened by wb_scope_open) without evaluating the given arrays: they
 * pass to the scope around it, pending, and lose their recipe when they are evaluated. NULL entries
 * are skipped. */
wb_status wb_scope_close_leaving(int count, wb_array *const *leaving);

/* Drops the recipe of an evaluated node. */
void wb_node_detach(wb_array *x);

static inline bool wb_is_evaluated(const wb_array *x) { return x->buffer != NULL; }
/* True if an error occurred while its memory was written. */
static inline bool wb_is_lost(const wb_array *x) {
    return x->buffer && wb_buffer_is_lost(x->buffer);
}
wb_status wb_fail_lost(const char *function, const wb_array *x);
/* Operations with several results, whose values are in nodes of their own. */
static inline bool wb_has_results(const wb_array *x) {
    return x->op == WB_OP_maxpool || x->op == WB_OP_step || x->op == WB_OP_step_numbers ||
           x->op == WB_OP_scan || x->op == WB_OP_attention || x->op == WB_OP_attention_backward;
}
/* One of the results of a scan. */
static inline bool wb_is_scan_result(const wb_array *x) {
    return x->op == WB_OP_result && x->inputs[0]->op == WB_OP_scan;
}
static inline bool wb_is_leaf(const wb_array *x) { return x->op == WB_OP_data; }
static inline int64_t wb_bytes_of(const wb_array *x) {
    return wb_count(x) * (int64_t)wb_dtype_size((wb_dtype)x->dtype);
}

/* The product of the sizes; -1 on overflow or a negative size. */
int64_t wb_count_sizes(int ndim, const int64_t *sizes);

/* Strides of x in elements: those in the node if WB_NODE_STRIDED, else dense ones. */
void wb_node_strides(const wb_array *x, int64_t *strides);
bool wb_node_is_dense(const wb_array *x);
void wb_dense_strides(int ndim, const int64_t *sizes, int64_t *strides);

/* ---- sizes in messages ---- */

/* "(32, 32, 4, 8)", in one of a few buffers that the thread uses in turn. */
const char *wb_sizes_text(int ndim, const int64_t *sizes);
const char *wb_text_of(const wb_array *x); /* the same for an array's sizes */

/* Fails unless 0 <= ndim <= 8 and wb_count_sizes of the sizes is not -1; messages begin with
 * function. */
bool wb_check_sizes(const char *function, int ndim, const int64_t *sizes);
static inline bool wb_is_half(wb_dtype dtype) { return dtype == WB_F16 || dtype == WB_BF16; }

static inline bool wb_same_sizes(const wb_array *a, const wb_array *b) {
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) same = a->sizes[d] == b->sizes[d];
    return same;
}

/* Fails unless dtype is an element type; the error has the number that was given. */
bool wb_check_dtype(const char *function, wb_dtype dtype);
/* Fails unless the C type of a pointer to numbers, as WB_NUMBERS_AT gives it, fits dtype. */
bool wb_check_numbers(const char *function, wb_dtype dtype, int numbers);
/* dim as 0 .. ndim - 1, or -1 with the error recorded. */
int wb_check_dim(const char *function, int dim, int ndim);
int wb_check_dim_of(const char *function, int dim, const wb_array *x); /* names x's sizes */

/* A dense copy of the numbers of x, as data without a recipe (src/evaluate). */
wb_array *wb_data_copy(wb_array *x);

/* ---- evaluation, set by src/evaluate: array knows nothing above it ---- */
typedef wb_status wb_evaluate_fn(int count, wb_array *const *roots);
extern wb_evaluate_fn *wb_evaluate_hook;

/* Computes the collectives (effects) that the thread has made so far, whether their results are
 * used or not. */
wb_status wb_settle_effects(void);

#endif
