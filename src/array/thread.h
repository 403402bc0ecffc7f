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

/* What rooms above keep here, so that it goes where the context goes. */
typedef enum wb_room_state {
    WB_ROOM_EVALUATOR, /* evaluate/run.c: plans, workspaces */
    WB_ROOM_WALK,      /* gradient/gradient.c: lists of a walk, kept between walks */
    WB_ROOM_INNERMOST, /* the same: the walk that goes on, of walks within walks */
    WB_ROOM_WATCHER,   /* layers/watch.c: who is told what layers give */
    WB_ROOM_AUXILIARY, /* optimise/auxiliary.c: where wb_aux puts what a loss hands out */
    WB_ROOM_OPTIMISER, /* optimise/turns.c: which made the last step */
    WB_ROOM_STATES
} wb_room_state;

/* A context: one thread uses it at a time, its own or one that has entered it (context.c). Only
 * that thread reads and writes what is here, but for number, inbox, live_nodes and the list. Each
 * group begins with the files that write it. */
typedef struct wb_thread {
    /* thread.c: where it stands among all */
    uint32_t number;                    /* from 1 on, of all contexts there ever were */
    bool is_own;                        /* a thread's, and ends with it */
    struct wb_thread *next, **previous; /* list of all; the lock THREADS guards it */
    const wb_device *device;            /* the default one; NULL: the process's */
    /* thread.c: what other threads freed that belongs here; the lock THREADS guards it */
    void **inbox;
    int64_t inbox_count, inbox_capacity;

    /* scope.c; entries: node.c, too */
    wb_object **entries; /* what the open scopes own, oldest first; NULL: taken out */
    int64_t entry_count, entry_capacity;
    int64_t *scope_starts;
    int64_t scope_count, scope_capacity;
    bool has_large_scope; /* and was told so */
    wb_array **survivors; /* of a scope that closes, and of state.c; the list stays */
    int64_t survivor_capacity;
    int numbered_entries; /* gradient/recompute.c: who know entries by number: their places stay */
    /* user_call.c: of a function of the user's, which leaves scopes as they are; or NULL */
    struct wb_user_call *call;

    /* thread.c: memory for nodes */
    wb_array *free_nodes;
    struct {
        wb_array *oldest, *newest; /* linked as free ones are */
        int64_t count;
    } quarantine;                   /* released nodes that are not used again yet: wb_node_give */
    _Alignas(8) int64_t live_nodes; /* made minus released here; read by others */

    /* node.c: making nodes */
    wb_array *constants[WB_CONSTANTS]; /* wb_constant's cache, by hash of the value */
    bool has_read_constants;           /* evaluate/run.c: some of them were evaluated */
    uint64_t leaves;                   /* made so far */
    int64_t pending_nodes;             /* made since the last evaluation, which sets it to 0 */

    /* random.c, ops/source.c, who restore what they draw, optimise/distributed.c */
    uint64_t seed, counter; /* random numbers: key and next block */
    wb_drawing drawing;     /* and layers/dropout.c */

    /* gradient/mode.c */
    bool training;
    bool is_sizing; /* only sizes are asked for: no eager evaluation, all layers are in test mode */
    struct wb_divisor *divisor; /* divisor.c: where losses note theirs; or NULL */

    /* state.c */
    struct wb_write *writes; /* of state */
    int64_t write_count, write_capacity;
    int state_depth; /* those who may take writes back */
    /* ops/collective.c, evaluate/order.c: referred to; nodes that the next evaluation computes, in
     * this order */
    wb_array **effects;
    int64_t effect_count, effect_capacity;

    uint8_t depth;   /* ops/trace.c: bodies of scans that are traced: nothing is computed now */
    bool is_walking; /* walks (gradient, evaluate/lower.c) use the nodes' scratch fields: no eager
                        evaluation now */
    uint64_t stamp;  /* of the last walk, each of which counts it up */

    struct {
        void *state;
        void (*free)(void *state); /* NULL: nothing is to be freed */
    } rooms[WB_ROOM_STATES];
} wb_thread;

extern _Thread_local wb_thread *wb_current_thread __attribute__((tls_model("initial-exec")));
/* Makes it the one that this thread uses; NULL: none. */
void wb_thread_use(wb_thread *thread);

/* One more in the list of all, zeroed; NULL when out of memory. */
wb_thread *wb_thread_make(bool is_own);
/* Releases it and what belongs to it, on any thread. */
void wb_thread_end(wb_thread *thread);

/* context.c: this thread's own, made if there is none, which it uses from now on; and the same
 * without making or using it. */
wb_thread *wb_thread_new(void);
const wb_thread *wb_thread_own(void);

/* The one that this thread uses; NULL when out of memory. */
static inline wb_thread *wb_thread_get(void) {
    return wb_current_thread ? wb_current_thread : wb_thread_new();
}

/* A room's state; NULL: there is none. What is set is not the context's to free. */
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

/* Makes this context the owner of what belongs to none (0), or to one that has ended. True if it is
 * the owner now. */
bool wb_claim_owner(uint32_t *owner);
/* True of a context that threads enter; false of a thread's own. */
bool wb_is_to_enter(uint32_t owner);

/* wb_free of what belongs to another context: whoever uses it releases it at its next scope, or
 * wb_free. False if that context has ended. If memory is out, the object stays and an error is
 * recorded. */
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
