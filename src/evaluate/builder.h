/* A plan in the making: what plan.c and commands.c share. */
#ifndef WB_EVALUATE_BUILDER_H
#define WB_EVALUATE_BUILDER_H

#include "evaluate/emit.h"
#include "evaluate/plan.h"

typedef struct wb_builder {
    wb_graph graph;
    wb_plan *plan;
    const wb_backend *backend;
    int64_t command_capacity, argument_count, argument_capacity, offset_capacity, pause_capacity;
    int64_t *first_argument; /* of each command: arguments[] moves while it grows */
    int64_t first_capacity, source_capacity, cost_capacity;
    int32_t *places;  /* of each value, for emit.c */
    int32_t *tape_of; /* of each value, its place on the tape, or -1; NULL: not needed */
    int64_t scratch_bytes, kept_bytes;
    int64_t keeper_capacity;
    wb_kernels kernels;
    /* results of collectives that were begun and not waited for, in order */
    int32_t *under_way;
    int64_t under_way_count, under_way_capacity;
} wb_builder;

static inline int64_t wb_scratch_aligned(int64_t bytes) {
    return (bytes + WB_SCRATCH_ALIGNMENT - 1) / WB_SCRATCH_ALIGNMENT * WB_SCRATCH_ALIGNMENT;
}

/* Where scratch memory begins: after the arrays of the workspace, aligned for any library. */
static inline int64_t wb_scratch_offset(const wb_graph *graph) {
    return wb_scratch_aligned(graph->places.workspace_bytes);
}

static inline wb_argument wb_scratch_argument(const wb_builder *b) {
    return (wb_argument){.memory =
                             (uint32_t)(b->graph.places.leaf_count + b->graph.places.output_count),
                         .offset_bytes = wb_scratch_offset(&b->graph)};
}

/* commands.c: writes the commands of all units, in order, with scans and collectives between them.
 * False with an error recorded, or without one if the backend lacks a kernel. */
bool wb_plan_units(wb_builder *builder);

#endif
