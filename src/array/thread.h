/* What a context owns: its scopes, its free nodes, its random sequence, its constants. A thread has
 * one of its own, and may enter others (weber/context.h); the one that it uses now is
 * wb_current_thread. */
#ifndef WB_ARRAY_THREAD_H
#define WB_ARRAY_THREAD_H

#include "array/array.h"

enum {
    WB_CONSTANTS = 64,
    WB_RESTING_NODES = 1 << 10,
    WB_QUARANTINE = 1 << 16,
    WB_LARGE_SCOPE = 100000,     /* this many entries of a scope warn that it is not closed */
    WB_PENDING_BUDGET = 1 << 18, /* nodes made without an evaluation, outside training */
};

/* How random numbers are drawn in a step that is split into parts: what belongs to an observation
 * follows from the observation's number among those of all parts, as if one process drew for
 * all. */
typedef struct wb_drawing {
    bool is_shared;
    bool is_common; /* what is drawn now is the same for all observations, whatever its sizes */
    uint64_t key;   /* of the step, added to the thread's */
    int64_t part;   /* number of this part among all parts */
    int64_t first;  /* number of this part's first observation */
    int64_t count;  /* observations of this part; -1: unknown */
} wb_drawing;

/* State of higher folders (rooms) that belongs to a context. */
typedef enum wb_room_state {
    WB_ROOM_EVALUATOR, /* evaluate/run.c: plans, workspaces */
    WB_ROOM_WALK,      /* gradient/gradient.c: lists of a walk, kept between walks */
    WB_ROOM_INNERMOST, /* gradient/gradient.c: the innermost of nested walks */
    WB_ROOM_WATCHER,   /* layers/watch.c: the watcher that gets the results of layers */
    WB_ROOM_AUXILIARY, /* optimise/auxiliary.c: where wb_aux puts what a loss hands out */
    WB_ROOM_OPTIMISER, /* optimise/turns.c: the optimiser that made the last step */
    WB_ROOM_STATES
} wb_room_state;

/* A context: one thread uses it at a time, the thread that owns it or one that has entered it
 * (context.c). Only that thread reads and writes the members, except number, inbox, live_nodes and
 * the list. Each group begins with the files that write it. */
typedef struct wb_thread {
    /* thread.c: the list of all contexts */
    uint32_t number;                    /* from 1 on; never used again */
    bool is_own;                        /* belongs to one thread, and ends with it */
    struct wb_thread *next, **previous; /* list of all; the lock THREADS guards it */
    const wb_device *device;            /* the default one; NULL: the process's */
    /* thread.c: objects of this context that other threads freed; the lock THREADS guards it */
    void **inbox;
    int64_t inbox_count, inbox_capacity;

    /* scope.c; entries: node.c, too */
    wb_object **entries; /* objects that the open scopes own, oldest first; NULL: taken out */
    int64_t entry_count, entry_capacity;
    int64_t *scope_starts;
    int64_t scope_count, scope_capacity;
    bool has_large_scope; /* and a warning was given */
    /* of a scope that closes, and of state.c; the memory of the list is used again */
    wb_array **survivors;
    int64_t survivor_capacity;
    int numbered_entries; /* gradient/recompute.c: > 0: entries stay at their numbers */
    /* user_call.c: the user's function that is running, which must leave scopes as they are; or
     * NULL */
    struct wb_user_call *call;

    /* thread.c: memory for nodes */
    wb_array *free_nodes;
    struct {
        wb_array *oldest, *newest; /* linked as free ones are */
        int64_t count;
    } quarantine; /* released nodes that may not be used again yet: wb_node_give */
    _Alignas(8) int64_t live_nodes; /* nodes made minus nodes released; other threads read it */

    /* node.c: making nodes */
    wb_array *constants[WB_CONSTANTS]; /* wb_constant's cache, by hash of the value */
    bool has_read_constants;           /* evaluate/run.c: some constants were evaluated */
    uint64_t leaves;                   /* made so far */
    int64_t pending_nodes;             /* made since the last evaluation, which sets it to 0 */

    /* random.c, ops/source.c (users restore what they draw), optimise/distributed.c */
    uint64_t seed, counter; /* random numbers: key and next block */
    wb_drawing drawing;     /* and layers/dropout.c */

    /* gradient/mode.c */
    bool training;
    bool is_sizing; /* only sizes are needed: no eager evaluation, all layers are in test mode */
    struct wb_divisor *divisor; /* divisor.c: where losses note their divisors; or NULL */

    /* state.c */
    struct wb_write *writes; /* of state */
    int64_t write_count, write_capacity;
    int state_depth; /* open wb_state_begin: they may take writes back */
    /* ops/collective.c, evaluate/order.c: nodes that the next evaluation computes, in this order;
     * holds a reference to each */
    wb_array **effects;
    int64_t effect_count, effect_capacity;

    uint8_t depth;   /* ops/trace.c: scan bodies that are being traced: nothing is computed now */
    bool is_walking; /* walks (gradient, evaluate/lower.c) use the nodes' scratch fields: no eager
                        evaluation now */
    uint64_t stamp;  /* of the last walk; each walk adds 1 */

    struct {
        void *state;
        void (*free)(void *state); /* NULL: nothing is to be freed */
    } rooms[WB_ROOM_STATES];
} wb_thread;

extern _Thread_local wb_thread *wb_current_thread __attribute__((tls_model("initial-exec")));
/* Makes it the context that this thread uses; NULL: none. */
void wb_thread_use(wb_thread *thread);

/* A new context, zeroed, in the list of all; NULL when out of memory. */
wb_thread *wb_thread_make(bool is_own);
/* Releases a context and what belongs to it; any thread may call it. */
void wb_thread_end(wb_thread *thread);

/* context.c: this thread's own context, made if there is none, which the thread uses from now on.
 * wb_thread_own only returns it, or NULL. */
wb_thread *wb_thread_new(void);
const wb_thread *wb_thread_own(void);

/* The context that this thread uses; NULL when out of memory. */
static inline wb_thread *wb_thread_get(void) {
    return wb_current_thread ? wb_current_thread : wb_thread_new();
}

/* A room's state; NULL: there is none. The context does not free what wb_room_set puts there. */
static inline void *wb_room_get(wb_room_state room) {
    const wb_thread *thread = wb_current_thread;
    return thread ? thread->rooms[room].state : NULL;
}
static inline void wb_room_set(wb_room_state room, void *state) {
    wb_thread *thread = wb_thread_get();
    if (thread) thread->rooms[room].state = state;
}
/* A room's state, made and zeroed at the first call, released by free when the context ends; NULL
 * when out of memory. */
void *wb_room_state_of(wb_thread *thread, wb_room_state room, size_t size_bytes,
                       void (*free)(void *state));

/* Makes this context the owner if there is none (0), or if the owner has ended. True if this
 * context is the owner now. */
bool wb_claim_owner(uint32_t *owner);
/* True of a context that threads enter; false of a thread's own. */
bool wb_is_to_enter(uint32_t owner);

/* wb_free of an object of another context: the thread that uses that context releases the object at
 * its next scope or wb_free. False if that context has ended. When out of memory, the object stays
 * and an error is recorded. */
bool wb_thread_hand_back(uint32_t owner, void *object);
/* Releases what other threads handed back. */
void wb_thread_empty_inbox(wb_thread *thread);

/* Makes room for one more entry. If half of the innermost scope's entries are gaps, left by arrays
 * that were freed, closes the gaps. False when out of memory. */
bool wb_scope_make_room(wb_thread *thread);
static inline bool wb_scope_has_room(wb_thread *thread) {
    return thread->entry_count < thread->entry_capacity || wb_scope_make_room(thread);
}

/* Memory for one node from the thread's pool, and back. Sanitizer builds take each from malloc. A
 * released node is not used again until WB_RESTING_NODES later ones are released (WB_QUARANTINE in
 * debug builds and with WEBER_DEBUG=mem), so that a use of it is noticed (wb_refuse). */
wb_array *wb_node_take_anew(wb_thread *thread);
void wb_node_give(wb_thread *thread, wb_array *node);

/* True if a live array is at this address. Slow. Not known with the address sanitizer, since nodes
 * come from malloc then. */
bool wb_is_node(const void *place);

/* The link of a free node to the next one. */
static inline wb_array **wb_node_link(wb_array *node) { return &node->own_inputs[0]; }

static inline wb_array *wb_node_take(wb_thread *thread) {
    wb_array *node = thread->free_nodes;
    if (!node) return wb_node_take_anew(thread);
    thread->free_nodes = *wb_node_link(node);
    __atomic_store_n(&thread->live_nodes, thread->live_nodes + 1, __ATOMIC_RELAXED);
    return node;
}

#endif
