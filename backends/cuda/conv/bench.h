/* How long runs take on the device: on arrays of a shape's sizes and a workspace, which belong to
 * the bench, and on a stream of its own. Graphs are paused while there is one. */
#ifndef WB_CONV_BENCH_H
#define WB_CONV_BENCH_H

#include "conv.h"

typedef struct wb_bench {
    wb_gpu_device *device;
    gpu_stream stream;
    gpu_event from, to;
    gpu_pointer at[WB_CONV_TENSORS]; /* x, w, y: small positive numbers in every type */
    gpu_pointer workspace;
    int64_t workspace_bytes;
    double best_us;          /* of what was timed so far */
    double begin_ms, end_ms; /* of the time that there is for the shape */
    bool has_graphs;         /* the first way could be in a graph: so must the others */
    bool is_short;           /* there was no memory for a workspace: not all could be timed */
} wb_bench;

/* Waits for all that the device has to do. False, with nothing to close: there is no memory. */
bool wb_bench_open(wb_bench *bench, wb_gpu_device *device, const wb_conv_shape *shape);
void wb_bench_close(wb_bench *bench);

/* Queues what is timed on bench->stream. */
typedef wb_gpu_outcome wb_bench_run(const void *what, const wb_bench *bench);

/* Microseconds, the best of a few runs; one that is far from the best so far is not run again.
 * INFINITY: the run failed, or there is no memory for its workspace. */
double wb_bench_time(wb_bench *bench, int64_t workspace_bytes, wb_bench_run *run, const void *what);

/* Since it was opened. */
double wb_bench_spent_ms(const wb_bench *bench);
bool wb_bench_is_over(const wb_bench *bench);

#endif
