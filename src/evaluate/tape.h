/* What the roots are made of: nodes in order, and what messages say of them. */
#ifndef WB_EVALUATE_TAPE_H
#define WB_EVALUATE_TAPE_H

#include "array/body.h"
#include "device/device.h"
#include "evaluate/evaluate.h"
#include "ops/ops.h"

/* ---- order.c ---- */

/* What a walk notes about a node on the tape. */
enum {
    WB_TAPE_LEAF = 1, /* evaluated: its buffer is read */
    WB_TAPE_ROOT = 2,
    WB_TAPE_STORED = 4,   /* gets memory of its own: roots, held nodes, nodes computed before */
    WB_TAPE_EXPOSED = 8,  /* an array outside may read it later, and so also what it is made of */
    WB_TAPE_DONATED = 16, /* a leaf that is not read after this plan */
    WB_TAPE_SETTLED = 32, /* a new parameter or state: it should take over an old one's memory */
};

typedef struct wb_tape_node {
    wb_array *node;
    int32_t uses; /* references from nodes on the tape */
    /* evaluated views on the tape that share this leaf's buffer and are released with the plan */
    int32_t sharers;
    uint8_t marks;
} wb_tape_node;

typedef struct wb_tape {
    wb_tape_node *at; /* nodes, each after its inputs */
    uint64_t *key;
    int64_t count, capacity;
    int64_t words, words_capacity; /* key */
    struct wb_tape_step *stack;
    int64_t stack_capacity;
    uint64_t stamp; /* of its walk */
    /* number of moves whose inputs must be evaluated first, by plans of their own */
    int64_t pending_moves;
    int64_t unusable;        /* number of leaves without values: lost, or placeholders of a body */
    bool keeps_recipes;      /* some node is WB_TAPE_EXPOSED */
    const wb_device *device; /* where the plan runs */
    /* the body of a scan that this is the tape of (leaves are placeholders), or NULL */
    const wb_body *body;
} wb_tape;

static inline bool wb_is_pending_move(const wb_array *x) {
    return x->op == WB_OP_move && !x->buffer;
}

/* True if x is a leaf: the plan reads its buffer. Not so an evaluated reshape, permute or expand of
 * evaluated data: the walk goes on to its input, so that the plan knows that both share memory. A
 * slice is a leaf, since otherwise its place would be part of the key. */
static inline bool wb_is_plan_leaf(const wb_array *x) {
    if (!x->buffer) return x->op == WB_OP_placeholder;
    const bool is_view = x->op == WB_OP_reshape || x->op == WB_OP_permute || x->op == WB_OP_expand;
    return !is_view || x->ninputs == 0 || x->inputs[0]->buffer != x->buffer;
}

/* Puts the nodes that the pending roots are made of in order, through pending moves as well. */
bool wb_tape_walk(wb_tape *tape, int count, wb_array *const *roots);

/* After a walk without pending moves: marks the nodes, chooses the device and writes the key. */
bool wb_tape_order(wb_tape *tape, int count, wb_array *const *roots);

/* The tape of a body that is to run on the device, with marks and key. The body owns it, and the
 * next call changes it. NULL with an error recorded. */
const wb_tape *wb_body_order(wb_body *body, const wb_device *device);
void wb_tape_end(wb_tape *tape);

/* The place of the node on the tape; -1: it is not there. node->index cannot be used while a body
 * is planned: another walk may have changed it. */
int64_t wb_tape_place(const wb_tape *tape, const wb_array *node);

/* ---- origins.c ---- */

/* The node that computes x: x itself, or, if x is one of several results, their operation. */
const wb_array *wb_maker_of(const wb_array *x);
const char *wb_operation_of(const wb_array *x);
/* "Dense(2 => 3), layer 1 of Chain", or ""; of an optimiser's step, the layer of the gradient. */
const char *wb_layer_of(const wb_array *x);
/* "forward", "backward" or "update". */
const char *wb_direction_of(const wb_array *x);

/* ---- numbers.c ---- */

/* WEBER_DEBUG=nan */
bool wb_watches_numbers(void);
/* After the marks: makes the plan store every value and overwrite nothing, so that wb_numbers_check
 * finds the values. */
void wb_numbers_store(wb_tape *tape);
/* After a plan: if a root is NaN or infinite, an error that names the first operation that made it
 * so. */
wb_status wb_numbers_check(const wb_tape *tape);

#endif
