/* Timing by events. The first run is not counted: it loads modules. Short runs are queued several
 * times in a row, and in a graph where plans have graphs, so that the device is measured and not
 * the way to it. */
#include "bench.h"

#include <math.h>
#include <time.h>

enum {
    WARM_MS = 5,
    TRIALS = 3,
    MOST_REPEATS = 10,
    ENOUGH_US = 200,     /* so long runs are not repeated */
    NOISE_US = 20,       /* of one run */
    FAR = 2,             /* times the best: not worth another run */
    FIRST_RUN_US = 20000 /* loading takes less */
};

static double now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

double wb_bench_spent_ms(const wb_bench *b) { return now_ms() - b->begin_ms; }

bool wb_bench_is_over(const wb_bench *b) { return now_ms() >= b->end_ms; }

/* ---- memory ---- */

static int64_t array_bytes(const wb_conv_shape *s, int tensor) {
    int64_t sizes[5], strides[5];
    (void)wb_conv_sizes(s, tensor, sizes, strides);
    return sizes[0] * strides[0] * wb_gpu_element_bytes(s->dtype);
}

static wb_gpu_outcome take(gpu_pointer *memory, int64_t bytes, gpu_stream stream) {
    enum { FILLING = 0x3c }; /* 0.011 in f32 and bf16, 1.06 in f16, 1.5e-18 in f64 */
    gpu_pointer made = 0;
    wb_gpu_outcome o = GPU_TRY(MemAlloc, &made, (size_t)bytes);
    if (o.error) return o;
    *memory = made;
    return GPU_TRY(MemsetD8Async, made, FILLING, (size_t)bytes, stream);
}

static bool reserve(wb_bench *b, int64_t bytes) {
    if (bytes <= b->workspace_bytes) return true;
    if (b->workspace) (void)gpu.MemFree(b->workspace);
    b->workspace = 0, b->workspace_bytes = 0;
    if (!take(&b->workspace, bytes, b->stream).error) {
        b->workspace_bytes = bytes;
        return true;
    }
    b->is_short = true;
    return false;
}

/* ---- life ---- */

bool wb_bench_open(wb_bench *b, wb_gpu_device *device, const wb_conv_shape *shape) {
    const double now = now_ms();
    *b = (wb_bench){.device = device,
                    .best_us = (double)INFINITY,
                    .begin_ms = now,
                    .end_ms = now + (double)device->tune_ms};
    wb_gpu_outcome o = wb_gpu_outcome_of(GPU_CALL(CtxSynchronize), gpu.CtxSynchronize());
    if (!o.error) o = GPU_TRY(StreamCreate, &b->stream, GPU_STREAM_NON_BLOCKING);
    if (!o.error) o = GPU_TRY(EventCreate, &b->from, 0);
    if (!o.error) o = GPU_TRY(EventCreate, &b->to, 0);
    for (int t = 0; t < WB_CONV_TENSORS && !o.error; t++)
        o = take(&b->at[t], array_bytes(shape, t), b->stream);
    if (!o.error) return true;
    wb_bench_close(b);
    return false;
}

void wb_bench_close(wb_bench *b) {
    if (b->stream) (void)gpu.StreamSynchronize(b->stream);
    for (int t = 0; t < WB_CONV_TENSORS; t++)
        if (b->at[t]) (void)gpu.MemFree(b->at[t]);
    if (b->workspace) (void)gpu.MemFree(b->workspace);
    if (b->from) (void)gpu.EventDestroy(b->from);
    if (b->to) (void)gpu.EventDestroy(b->to);
    if (b->stream) (void)gpu.StreamDestroy(b->stream);
}

/* ---- one way ---- */

typedef struct trial {
    wb_bench_run *run;
    const void *what;
    int repeats;         /* runs in a row */
    gpu_graph_exec exec; /* of all of them; NULL: they are queued one by one */
} trial;

static wb_gpu_outcome run_all(const wb_bench *b, const trial *t) {
    wb_gpu_outcome o = {.error = NULL};
    for (int i = 0; i < t->repeats && !o.error; i++) o = t->run(t->what, b);
    return o;
}

/* As a graph, like the commands of plans (graph.c). */
static void capture(const wb_bench *b, trial *t) {
    gpu_graph recorded = NULL;
    gpu_graph_exec exec = NULL;
    wb_gpu_outcome o = GPU_TRY(StreamBeginCapture, b->stream, GPU_CAPTURE_THREAD_LOCAL);
    if (o.error) return;
    o = run_all(b, t);
    const wb_gpu_outcome ended = GPU_TRY(StreamEndCapture, b->stream, &recorded);
    if (!o.error && !ended.error) o = GPU_TRY(GraphInstantiate, &exec, recorded, 0);
    if (!o.error && !ended.error) t->exec = exec;
    if (!ended.error && recorded) (void)gpu.GraphDestroy(recorded);
}

/* Microseconds of a run; INFINITY: an error. */
static double measure(const wb_bench *b, const trial *t) {
    float ms = 0;
    wb_gpu_outcome o = GPU_TRY(EventRecord, b->from, b->stream);
    if (!o.error) o = t->exec ? GPU_TRY(GraphLaunch, t->exec, b->stream) : run_all(b, t);
    if (!o.error) o = GPU_TRY(EventRecord, b->to, b->stream);
    if (!o.error) o = GPU_TRY(EventSynchronize, b->to);
    if (!o.error) o = GPU_TRY(EventElapsedTime, &ms, b->from, b->to);
    return o.error ? (double)INFINITY : (double)ms * 1e3 / t->repeats;
}

/* ---- timing ---- */

static bool is_first(const wb_bench *b) { return isinf(b->best_us); }

static bool is_far(const wb_bench *b, double us) { return us > FAR * b->best_us + NOISE_US; }

/* An idle card needs some milliseconds to reach its full clock; without this the first way would
 * seem slow. */
static double warm_up(const wb_bench *b, const trial *t) {
    const double until = b->begin_ms + WARM_MS;
    double us = measure(b, t);
    while (is_first(b) && !isinf(us) && now_ms() < until) us = measure(b, t);
    return us;
}

static int repeats_of(double us) {
    const double repeats = us > 0 ? ENOUGH_US / us : MOST_REPEATS;
    return repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (int)repeats;
}

/* In a graph, where plans have graphs: a way that cannot be in one would keep its plan out. */
static double time_all(wb_bench *b, trial *t) {
    double best = (double)INFINITY, us = 0;
    if (b->device->uses_graphs) capture(b, t);
    if (is_first(b)) b->has_graphs = t->exec;
    if (b->has_graphs && !t->exec) return (double)INFINITY;
    for (int i = 0; i < TRIALS && !isinf(us); i++) {
        us = measure(b, t);
        if (us < best) best = us;
    }
    if (t->exec) (void)gpu.GraphExecDestroy(t->exec);
    if (best < b->best_us) b->best_us = best;
    return best;
}

double wb_bench_time(wb_bench *b, int64_t workspace_bytes, wb_bench_run *run, const void *what) {
    trial t = {.run = run, .what = what, .repeats = 1};
    if (!reserve(b, workspace_bytes)) return (double)INFINITY;
    double us = measure(b, &t);
    if (isinf(us) || (us > FIRST_RUN_US && is_far(b, us))) return us;
    us = warm_up(b, &t);
    if (isinf(us) || is_far(b, us)) return us;
    t.repeats = repeats_of(us);
    return time_all(b, &t);
}
