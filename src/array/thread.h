/* What one thread owns: its scopes, its free nodes, its random sequence, its constants. */
#ifndef WB_ARRAY_THREAD_H
#define WB_ARRAY_THREAD_H

#include "array/array.h"

enum {
    WB_CONSTANTS = 64,
    WB_RESTING_NODES = 1 << 10,
    WB_QUARANTINE = 1 << 16,
    WB_LARGE_SCOPE = 100000,     /* entries of a scope that was meant to be closed before */
    WB_PENDING_BUDGET = 1 << 18, /* nodes made without an evaluation, outside training */
};

/* While a step that several parts share draws: what belongs to an observation follows from its
 * number among those of all parts, as if one process drew for all of them. */
typedef struct wb_drawing {
    bool is_shared;
    bool is_common; /* what is drawn now belongs to no observation, whatever its size */
    uint64_t key;   /* of the step, added to the thread's */
    int64_t part;   /* its number among all */
    int64_t first;  /* the number of its first observation */
    int64_t count;  /* of observations that its arrays have; -1: unknown */
} wb_drawing;

typedef struct wb_thread {
    uint32_t number; /* from 1 on, of all threads there ever were */
    /* What other threads freed that belongs to this one; the list's mutex guards it. */
    void **inbox;
    int64_t inbox_count, inbox_capacity;
    wb_object **entries; /* what the open scopes own, oldest first; NULL: taken out */
    int64_t entry_count, entry_capacity;
    int64_t *scope_starts;
    int64_t scope_count, scope_capacity;
    struct wb_user_call
        *call; /* of a function of the user's, which leaves scopes as they are; or NULL */
    int numbered_entries; /* those who know entries by number: their places stay */
    bool has_large_scope; /* and was told so */
    wb_array **survivors; /* of a scope that closes; the list stays */
    int64_t survivor_capacity;
    wb_array *free_nodes;
    struct {
        wb_array *oldest, *newest; /* linked as free ones are */
        int64_t count;
    } quarantine;                   /* released nodes that are not used again yet: wb_node_give */
    _Alignas(8) int64_t live_nodes; /* made minus released on this thread; read by others */
    wb_array *constants[WB_CONSTANTS]; /* wb_constant's cache, by hash of the value */
    bool has_read_constants;           /* some of them were evaluated */
    uint64_t seed, counter;            /* random numbers: key and next block */
    wb_drawing drawing;
    bool seeded;
    bool training;
    struct wb_divisor *divisor; /* where losses note theirs; or NULL */
    int64_t pending_nodes;      /* made since the last evaluation */
    wb_array **effects; /* referred to: nodes that the next evaluation computes, in this order */
    int64_t effect_count, effect_capacity;
    struct wb_write *writes; /* of state: array/state.c */
    int64_t write_count, write_capacity;
    int state_depth; /* those who may take writes back */
    uint8_t depth;   /* bodies of scans that are being traced: nothing is computed now */
    bool is_sizing; /* only sizes are asked for: no eager evaluation, all layers are in test mode */
    bool is_walking; /* a walk uses the nodes' scratch fields: no eager evaluation now */
    uint64_t stamp;  /* of the last walk */
    uint64_t leaves; /* made so far */
    void *evaluator; /* src/evaluate's state */
    void (*evaluator_free)(void *evaluator);
    void *walk; /* src/gradient's lists */
    void (*walk_free)(void *walk);
    struct wb_thread *next, **previous; /* list of all threads */
} wb_thread;

extern _Thread_local wb_thread *wb_current_thread __attribute__((tls_model("initial-exec")));
wb_thread *wb_thread_new(void);

/* This thread's, made at the first call; NULL when out of memory. */
static inline wb_thread *wb_thread_get(void) {
    return wb_current_thread ? wb_current_thread : wb_thread_new();
}

/* Makes this thread the owner of what belongs to no thread (0), or to one that has ended. True if
 * it is the owner now. */
bool wb_claim_owner(uint32_t *owner);

/* wb_free of what belongs to another thread: that one releases it at its next scope, or wb_free.
 * False if that thread has ended. If memory is out, the object stays and an error is recorded. */
bool wb_thread_hand_back(uint32_t owner, void *object);
/* Releases what other threads handed back. */
void wb_thread_empty_inbox(wb_thread *thread);

/* Makes room for one more entry: where half of the innermost scope's are gaps, which arrays that
 * were freed left, the gaps are closed. False when out of memory. */
bool wb_scope_make_room(wb_thread *thread);
static inline bool wb_scope_has_room(wb_thread *thread) {
    return thread->entry_count < thread->entry_capacity || wb_scope_make_room(thread);
}

/* Memory for one node from the thread's pool, and back. Sanitizer builds take each from malloc. A
 * released node rests until WB_RESTING_NODES later ones are released, in debug builds and with
 * WEBER_DEBUG=mem WB_QUARANTINE, so that its use is noticed (wb_refuse). */
wb_array *wb_node_take_anew(wb_thread *thread);
void wb_node_give(wb_thread *thread, wb_array *node);

/* True if a live array stands there. Slow. With the address sanitizer, whose nodes are malloc's, it
 * is not known. */
bool wb_is_node(const void *place);

/* Free nodes are linked by this. */
static inline wb_array **wb_node_link(wb_array *node) { return &node->own_inputs[0]; }

static inline wb_array *wb_node_take(wb_thread *thread) {
    wb_array *node = thread->free_nodes;
    if (!node) return wb_node_take_anew(thread);
    thread->free_nodes = *wb_node_link(node);
    __atomic_store_n(&thread->live_nodes, thread->live_nodes + 1, __ATOMIC_RELAXED);
    return node;
}

#endif
