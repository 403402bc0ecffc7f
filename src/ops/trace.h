/* Tracing: a function is called once with placeholders, and the nodes that it makes become a
 * body. */
#ifndef WB_OPS_TRACE_H
#define WB_OPS_TRACE_H

#include "array/body.h"
#include "array/user_call.h"
#include "base/table.h"
#include "ops/ops.h"

/* ---- copies of graphs ---- */

/* Copies each node once, even if several roots lead to it. Initialise it with stand_in and context,
 * the rest zero. */
typedef struct wb_copier {
    /* Returns the replacement of x in the copy. NULL: x is copied, unless an error is recorded. */
    wb_array *(*stand_in)(void *context, wb_array *x);
    void *context;
    int64_t draws;  /* added to the random counters of the copies */
    wb_table table; /* of nodes, by address */
    wb_array **copies;
    int64_t capacity;
    struct wb_copier_visit *stack;
    int64_t stack_capacity;
} wb_copier;

/* From now on `copy` replaces x. False when out of memory. */
bool wb_copier_set(wb_copier *copier, const wb_array *x, wb_array *copy);
/* Returns the copy of root; NULL with an error recorded. The scope owns the new nodes. */
wb_array *wb_copier_run(wb_copier *copier, wb_array *root);
void wb_copier_end(wb_copier *copier);

/* ---- traces ---- */

/* What a placeholder stands for; the inputs of a scan are in this order. */
typedef enum wb_given {
    WB_GIVEN_CARRY,
    WB_GIVEN_SLICE,
    WB_GIVEN_CAPTURED,
    WB_GIVEN_COUNT
} wb_given;

typedef struct wb_trace {
    wb_copier copier;
    int64_t count, capacity;
    struct wb_trace_given {
        wb_array *placeholder; /* in the scope of the trace */
        wb_array *outer; /* the outside array that it is, or is a slice of; holds a reference */
        wb_given kind;
    } * given;
    uint64_t counter;  /* the random counter when it began */
    wb_user_call call; /* of the body */
    bool is_open;
} wb_trace;

/* Opens a scope; until wb_trace_leave nothing is computed on this thread. stand_in(context, x)
 * returns what replaces x in the body, or NULL: x is copied, unless an error is recorded. Without
 * stand_in, arrays that were made outside become inputs of the scan. */
bool wb_trace_begin(wb_trace *trace, wb_array *(*stand_in)(void *context, wb_array *x),
                    void *context);
/* A new placeholder; for a slice, it is one step of outer, whose last dimension counts the
 * steps. */
wb_array *wb_trace_given(wb_trace *trace, wb_given kind, wb_array *outer);
/* The body with these results, of which the first are its carries. NULL with an error recorded. */
wb_body *wb_trace_close(wb_trace *trace, int32_t nresults, wb_array *const *results);
/* The list of inputs for a scan of the body; the caller releases it. NULL when out of memory. */
wb_array **wb_trace_inputs(const wb_trace *trace);
/* Nodes that are made between the two calls are outside of the body. */
void wb_trace_step_out(void);
void wb_trace_step_in(void);
/* Ends the tracing; may come twice. The lists stay until wb_trace_end. */
void wb_trace_leave(wb_trace *trace);
void wb_trace_end(wb_trace *trace);

/* ---- the node of a scan ---- */

/* Makes a scan. Takes over the caller's reference to the body, also on failure (inputs NULL is
 * one). late[0] of the node, at first 0, is added to the random counters of its body. */
wb_array *wb_scan_node(wb_body *body, wb_array *const *inputs, int64_t steps, bool reverse);
/* Result r: a carry after the last step, or an output of all steps, the steps last. */
wb_array *wb_scan_result(wb_array *scan, int32_t r);

#endif
