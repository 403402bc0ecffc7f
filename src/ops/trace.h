/* Tracing: a function is called once with placeholders, and what it makes becomes a body. */
#ifndef WB_OPS_TRACE_H
#define WB_OPS_TRACE_H

#include "array/body.h"
#include "array/user_call.h"
#include "base/table.h"
#include "ops/ops.h"

/* ---- copies of graphs ---- */

/* Each node is copied once, however many roots lead to it. Begins with stand_in and context set,
 * the rest zero. */
typedef struct wb_copier {
    /* What stands for x in the copy. NULL: x is copied, unless an error is recorded. */
    wb_array *(*stand_in)(void *context, wb_array *x);
    void *context;
    int64_t draws;  /* by how much random counters of the copies are further on */
    wb_table table; /* of nodes, by address */
    wb_array **copies;
    int64_t capacity;
    struct wb_copier_visit *stack;
    int64_t stack_capacity;
} wb_copier;

/* From now on `copy` stands for x. False when out of memory. */
bool wb_copier_set(wb_copier *copier, const wb_array *x, wb_array *copy);
/* The copy of root; NULL with an error recorded. The scope owns the new nodes. */
wb_array *wb_copier_run(wb_copier *copier, wb_array *root);
void wb_copier_end(wb_copier *copier);

/* ---- traces ---- */

/* What a placeholder stands for: the inputs of a scan, in their order. */
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
        wb_array *outer;       /* what it stands for outside, or is a slice of; referred to */
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
/* A placeholder; of a slice, for one step of an array whose last dimension is the steps'
 * dimension. */
wb_array *wb_trace_given(wb_trace *trace, wb_given kind, wb_array *outer);
/* The body that gives these results; the first ones are its carries. NULL with an error recorded.
 * */
wb_body *wb_trace_close(wb_trace *trace, int32_t nresults, wb_array *const *results);
/* The inputs of the scan that runs the body: to be released. NULL when out of memory. */
wb_array **wb_trace_inputs(const wb_trace *trace);
/* Between the two, what is made is outside of the body. */
void wb_trace_step_out(void);
void wb_trace_step_in(void);
/* Ends the tracing; may come twice. The lists stay until wb_trace_end. */
void wb_trace_leave(wb_trace *trace);
void wb_trace_end(wb_trace *trace);

/* ---- the node of a scan ---- */

/* Takes over the caller's reference to the body, also on failure; NULL inputs are one. late[0] of
 * the node, which is 0 at first, is added to the random counters of its body ("draws"). */
wb_array *wb_scan_node(wb_body *body, wb_array *const *inputs, int64_t steps, bool reverse);
/* Result r: a carry after the last step, or an output of all steps, the steps last. */
wb_array *wb_scan_result(wb_array *scan, int32_t r);

#endif
