/* Graphs: lists of commands that come again with the same memory are launched as one.
 *
 * A list is known by what it does: its kernels, which are numbered for life, and the addresses that
 * they are given. Nothing else goes into a launch, for late values are read from where
 * wb_gpu_queue_late puts them before each run. So a graph stays right whoever asks for it, and goes
 * when one of its kernels goes. It is made on a stream of its own, on which nothing runs (stream
 * capture). */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

enum {
    MOST_GRAPHS = 64,
    FEWEST_COMMANDS = 2,
    RUNS_BEFORE = 2, /* lists that come once or twice are not worth one */
};

struct wb_gpu_graph {
    wb_gpu_graph *next;
    uint64_t hash;
    size_t words;        /* of the key */
    uint64_t *key;       /* stored right after this struct */
    gpu_graph_exec exec; /* NULL: none yet */
    int runs;            /* before it got one */
    bool is_refused;     /* it could not be made: launches do */
};

/* ---- keys ---- */

static bool reserve_key(wb_gpu_queue *queue, size_t words) {
    if (words <= queue->key_capacity) return true;
    uint64_t *key = malloc(2 * words * sizeof *key); /* NULL: kernels are launched one by one */
    if (!key) return false;
    free(queue->key);
    queue->key = key, queue->key_capacity = 2 * words;
    return true;
}

/* Kernel and addresses of each command. 0 words: a kernel does not take part, or there is no memory
 * for the key. */
static size_t write_key(const wb_gpu_run *run, const wb_command *commands, int count) {
    size_t words = 1;
    for (int i = 0; i < count; i++) {
        const wb_gpu_kernel *kernel = commands[i].kernel;
        if (kernel->cannot_be_captured) return 0;
        words += 2 + 2 * (size_t)commands[i].narguments;
    }
    if (!reserve_key(run->queue, words)) return 0;
    uint64_t *at = run->queue->key;
    *at++ = run->late;
    for (int i = 0; i < count; i++) {
        *at++ = ((const wb_gpu_kernel *)commands[i].kernel)->number;
        *at++ = (uint64_t)(uintptr_t)commands[i].what; /* names its status words */
        for (int32_t a = 0; a < commands[i].narguments; a++) {
            const wb_memory *m = &run->memory[commands[i].arguments[a].memory];
            *at++ = (uint64_t)(uintptr_t)m->handle;
            *at++ = (uint64_t)(m->offset_bytes + commands[i].arguments[a].offset_bytes);
        }
    }
    return words;
}

static uint64_t hash_of(const uint64_t *key, size_t words) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < words; i++) {
        hash = (hash ^ key[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* ---- the list, newest first ---- */

static void release_graph(wb_gpu_queue *queue, wb_gpu_graph *graph) {
    if (graph->exec) {
        (void)gpu.StreamSynchronize(queue->stream); /* it may be running */
        (void)gpu.GraphExecDestroy(graph->exec);
    }
    free(graph);
    queue->graph_count--;
}

static void drop_oldest(wb_gpu_queue *queue) {
    wb_gpu_graph **link = &queue->graphs;
    while ((*link)->next) link = &(*link)->next;
    wb_gpu_graph *oldest = *link;
    *link = NULL;
    release_graph(queue, oldest);
}

static wb_gpu_graph *find(wb_gpu_queue *queue, uint64_t hash, size_t words) {
    for (wb_gpu_graph **link = &queue->graphs; *link; link = &(*link)->next) {
        wb_gpu_graph *graph = *link;
        if (graph->hash != hash || graph->words != words ||
            memcmp(graph->key, queue->key, words * sizeof *graph->key) != 0)
            continue;
        *link = graph->next;
        graph->next = queue->graphs;
        return queue->graphs = graph;
    }
    return NULL;
}

static wb_gpu_graph *add(wb_gpu_queue *queue, uint64_t hash, size_t words) {
    wb_gpu_graph *graph = malloc(sizeof *graph + words * sizeof *graph->key);
    if (!graph) return NULL;
    if (queue->graph_count == MOST_GRAPHS) drop_oldest(queue);
    *graph = (wb_gpu_graph){
        .next = queue->graphs, .hash = hash, .words = words, .key = (uint64_t *)(graph + 1)};
    memcpy(graph->key, queue->key, words * sizeof *graph->key);
    queue->graph_count++;
    return queue->graphs = graph;
}

/* A graph is taken to hold the kernel if the kernel's number is among the words of its key. If
 * another word is equal by chance, the graph is only made again. */
static bool holds(const wb_gpu_graph *graph, const wb_gpu_kernel *kernel) {
    if (!kernel) return true;
    for (size_t i = 0; i < graph->words; i++)
        if (graph->key[i] == kernel->number) return true;
    return false;
}

void wb_gpu_graphs_drop(wb_gpu_queue *queue, const wb_gpu_kernel *kernel) {
    for (wb_gpu_graph **link = &queue->graphs; *link;) {
        wb_gpu_graph *graph = *link;
        if (!holds(graph, kernel)) {
            link = &graph->next;
            continue;
        }
        *link = graph->next;
        release_graph(queue, graph);
    }
}

/* ---- making one ---- */

static wb_gpu_outcome record(const wb_gpu_run *run, const wb_command *commands, int count,
                             gpu_graph *graph) {
    wb_gpu_run recording = *run;
    int at;
    recording.stream = run->device->capture;
    wb_gpu_outcome o = GPU_TRY(StreamBeginCapture, recording.stream, GPU_CAPTURE_THREAD_LOCAL);
    if (o.error) return o;
    o = wb_gpu_launch_all(&recording, commands, count, &at);
    const wb_gpu_outcome ended = GPU_TRY(StreamEndCapture, recording.stream, graph);
    if (ended.error) *graph = NULL;
    return o.error ? o : ended;
}

static void make(wb_gpu_graph *graph, const wb_gpu_run *run, const wb_command *commands,
                 int count) {
    gpu_graph recorded = NULL;
    gpu_graph_exec exec = NULL;
    wb_gpu_outcome o = record(run, commands, count, &recorded);
    if (!o.error) o = GPU_TRY(GraphInstantiate, &exec, recorded, 0);
    if (recorded) (void)gpu.GraphDestroy(recorded);
    graph->is_refused = o.error;
    if (o.error) {
        wb_gpu_host->log(WB_LOG_DEBUG, "%s: no graph of %s ...: %s: %s",
                         wb_gpu_vendor_table.backend, commands[0].what, o.call, o.error);
        return;
    }
    graph->exec = exec;
    for (int i = 0; i < count; i++)
        atomic_store(&((wb_gpu_kernel *)commands[i].kernel)->is_in_graph, true);
}

wb_gpu_outcome wb_gpu_graph_run(const wb_gpu_run *run, const wb_command *commands, int count,
                                bool *done) {
    const wb_gpu_outcome launches_do = {.error = NULL};
    wb_gpu_queue *queue = run->queue;
    const size_t words = count < FEWEST_COMMANDS ? 0 : write_key(run, commands, count);
    if (words == 0) return launches_do;
    const uint64_t hash = hash_of(queue->key, words);
    wb_gpu_graph *graph = find(queue, hash, words);
    if (!graph) graph = add(queue, hash, words);
    if (!graph || graph->is_refused) return launches_do;
    if (!graph->exec && graph->runs++ >= RUNS_BEFORE) make(graph, run, commands, count);
    if (!graph->exec) return launches_do;
    const wb_gpu_outcome o = GPU_TRY(GraphLaunch, graph->exec, queue->stream);
    if (o.error && o.is_out_of_memory) { /* a graph needs more memory than the kernels alone */
        graph->is_refused = true;
        return launches_do;
    }
    *done = true;
    return o;
}
