/* How nodes become a plan, and how it runs. The stages, one file each; tape.h declares the first
 * and what messages say of nodes, graph.h those to check.c, emit.h the three after them:
 *
 *     order.c   the nodes that the roots are made of, in order, and their key
 *     lower.c   macros expanded, operations offered, nodes written as values: a graph
 *     values.c  of these: equal ones merged, constants folded
 *     separate.c of these: separate memory for results that are equal
 *     readers.c who reads each value
 *     units.c   the graph of units: what each needs, and their order
 *     fuse.c    values grouped into units: programs, library calls, copies
 *     sink.c    values moved to the programs that use them
 *     store.c   which values get memory
 *     emit.c    units written as programs and calls, with their operands' layouts
 *     kernels.c one kernel for all programs and calls that are equal
 *     updates.c which programs are updates, and which of these may run at once
 *     copies.c  which copies need not be made
 *     place.c   order of the units, memory of the values, donation
 *     gaps.c    the free stretches of the workspace
 *     check.c   that every value is read after it was written
 *     commands.c units as commands, and what the host does between them
 *     plan.c    the finished plan
 *     scan.c    bodies of scans: where each step finds its arrays
 *     explain.c what became of it, in lines, for WEBER_DEBUG=plan
 *     pause.c   commands, bodies and collectives run in turn
 *     origins.c what messages and events say of a node
 *     numbers.c WEBER_DEBUG=nan: where the first NaN or infinity was made
 *     run.c     leaves bound, commands run, results handed to their nodes; the cache
 */
#ifndef WB_EVALUATE_PLAN_H
#define WB_EVALUATE_PLAN_H

#include "base/events.h"
#include "evaluate/graph.h"
#include "program/cost.h"

/* ---- plan.c ---- */

/* An output. The plan's memory table has leaves, outputs, workspace, and what commands keep (in a
 * body that is part of the workspace). */
typedef struct wb_plan_output {
    int32_t memory; /* entry of the table; the leaf's entry if it takes over the leaf's buffer */
    bool is_donated;
    const char *tag; /* of its memory */
    size_t size_bytes;
} wb_plan_output;

/* What a command keeps from one run of a plan to the next was made from this leaf, with these
 * contents. */
typedef struct wb_plan_kept {
    int32_t leaf;
    int64_t offset;
    uint64_t contents; /* of wb_buffer_contents */
} wb_plan_kept;

/* A node on the tape that is a view of an output's or a leaf's memory. */
typedef struct wb_plan_view {
    int32_t tape, memory;
    wb_layout layout;
} wb_plan_view;

/* Where an entry of a body's memory table is: at `first` in the first step; in step t (also 0) at
 * even[t & 1] plus t strides. These are arguments of the plan that runs the scan. */
typedef struct wb_scan_memory {
    wb_argument first, even[2];
    int64_t stride_bytes;
} wb_scan_memory;

/* A carry that steps update in place is copied to that place before the first step. */
typedef struct wb_scan_start {
    wb_argument from, to;
    int64_t size_bytes;
} wb_scan_start;

/* A body that runs between two commands of its plan. */
typedef struct wb_plan_scan {
    int64_t steps;
    struct wb_plan *body;   /* holds a reference; NULL: no scan */
    wb_scan_memory *places; /* where the leaves and outputs are, then the workspace */
    wb_scan_start *starts;
    int32_t start_count;
} wb_plan_scan;

/* What the host does between two commands: a scan, or a collective. */
typedef struct wb_plan_pause {
    int32_t before; /* the command that comes next */
    int32_t tape;   /* place of its node, which has late values (scan) or the number (collective) */
    wb_plan_scan scan;
    wb_argument from, to; /* of a collective */
    bool is_begun;        /* a collective that continues while commands run */
    /* only waits, until at most `left` of the collectives that were begun are unfinished */
    bool is_wait;
    int32_t left;
} wb_plan_pause;

typedef struct wb_plan {
    /* run.c: its place in the cache */
    int32_t refs;                  /* held by the cache, and by plans whose body it is */
    int64_t runs;                  /* runs so far, the current one included */
    struct wb_plan *next;          /* in its bucket */
    struct wb_plan *newer, *older; /* by last use */
    /* plan.c: what it is the plan of */
    uint64_t hash;
    uint64_t *key;
    int64_t words;
    const wb_device *device;
    /* plan.c, from what place.c found: the memory table, and what fills it */
    int32_t leaf_count, output_count, view_count, late_count;
    int32_t *leaves; /* places on the tape, in the order of the memory table */
    wb_plan_output *outputs;
    wb_plan_view *views;
    int32_t *late;    /* place on the tape << 1 | which word, for each late word */
    int32_t *results; /* of a body: which outputs hold its results */
    size_t workspace_bytes, size_bytes;
    int32_t missed_donations;
    /* commands.c */
    int32_t command_count, keeper_count, pause_count, offset_count;
    wb_command *commands;
    wb_argument *arguments; /* of all commands */
    wb_plan_pause *pauses;  /* in the order of the commands */
    wb_command *keepers; /* copies of the commands that keep something made from fixed operands */
    int64_t **offsets;   /* batch offsets of matrix products */
    /* for each command the place on the tape of what it computes, or -1; NULL: not noted */
    int32_t *sources;
    wb_cost *costs;      /* of the commands, if sources are noted */
    bool checks_indices; /* has indices, and the device reports a bad one only later */
    bool has_collectives;
    /* room for the memory tables and late words of the bodies that run at once */
    int64_t body_entries, body_late;
    /* kernels.c */
    void **kernels; /* of the commands, each once */
    int64_t kernel_count;
    /* plan.c, and run.c when the contents have changed: what each keeper was made from, and its
     * memory; NULL: the plan is a body */
    wb_plan_kept *kept;
    void *kept_memory;
    size_t kept_bytes;
} wb_plan;

wb_plan *wb_plan_new(const wb_tape *tape, uint64_t hash);
void wb_plan_unref(wb_plan *plan);

/* ---- run.c ---- */

/* The plan of a body on the device, from the thread's cache or new; the caller gets a reference.
 * NULL with an error recorded. */
wb_plan *wb_plan_of_body(wb_body *body, const wb_device *device);

/* ---- scan.c ---- */

/* Room for the memory tables and late words of the bodies in one run. */
typedef struct wb_scan_room {
    wb_memory *memory;
    uint64_t *late;
    int64_t kernels; /* number of commands that ran */
    int64_t run;     /* number of the plan's run, from 1 on */
    bool has_run;    /* something was queued */
} wb_scan_room;

/* Plans the body of a scan, which is the call `value`. scratch: memory at the end of the workspace;
 * *scratch_bytes is set to what the body needs of it. False with an error recorded. */
bool wb_scan_plan(const wb_graph *graph, int32_t value, wb_argument scratch, wb_plan_scan *scan,
                  int64_t *scratch_bytes);
void wb_scan_release(wb_plan_scan *scan);
/* Runs the body for each step. node: the scan's. */
wb_status wb_scan_run(const wb_plan_scan *scan, const wb_array *node, const wb_memory *memory,
                      wb_scan_room *room, int64_t draws);

/* ---- device_times.c ---- */

/* For the trace: notes when the device finishes the last command, which was queued at the time
 * `queued`. Does nothing if the backend has no events that can be polled. */
void wb_note_device_time(const wb_device *device, const wb_event_info *info, double queued);

/* ---- pause.c ---- */

/* Runs the plan's commands and, between them, its bodies and collectives. draws: added to the
 * random counters that the nodes in bodies have. */
wb_status wb_plan_run(const wb_plan *plan, const wb_tape *tape, const wb_memory *memory,
                      const uint64_t *late, wb_scan_room *room, int64_t draws);
/* The memory of an argument, from this memory table. */
static inline wb_memory wb_plan_place(const wb_memory *memory, const wb_argument *a) {
    return (wb_memory){memory[a->memory].handle, memory[a->memory].offset_bytes + a->offset_bytes};
}
wb_status wb_plan_copy(const wb_device *device, wb_copy_kind kind, wb_memory to, wb_memory from,
                       int64_t size_bytes);

/* ---- explain.c ---- */

bool wb_plan_is_explained(void);
void wb_plan_explain(const wb_graph *graph, const wb_plan *plan);

#endif
