/* Stream capture and graphs. A graph keeps its nodes in the order in which they were captured,
 * which their dependencies allow. */
#include <stdlib.h>
#include <unistd.h>

#include "fake_driver.h"

static fake_capture *running; /* one at a time is enough for who tests */
static _Thread_local int self_number;
static int threads;

static int self(void) {
    if (!self_number) self_number = ++threads;
    return self_number;
}

/* ---- nodes ---- */

void fake_nodes_release(fake_nodes *nodes) {
    if (!nodes || --nodes->references > 0) return;
    while (nodes->first) {
        fake_op *op = nodes->first;
        nodes->first = op->next;
        fake_op_release(op);
    }
    free(nodes);
}

static fake_nodes *nodes_ref(fake_nodes *nodes) {
    nodes->references++;
    return nodes;
}

/* ---- capture ---- */

gpu_code fake_capture_invalidate(fake_capture *capture, gpu_code code) {
    capture->is_invalid = true;
    return code;
}

gpu_code fake_capture_op(fake_stream *stream, fake_op *op) {
    fake_capture *capture = stream->capture;
    if (capture->is_invalid) {
        fake_op_release(op);
        return FAKE_CAPTURE_INVALIDATED;
    }
    fake_nodes *nodes = capture->nodes;
    if (nodes->last)
        nodes->last->next = op;
    else
        nodes->first = op;
    nodes->last = op;
    nodes->length++;
    return GPU_SUCCESS;
}

enum { GLOBAL, THREAD_LOCAL };

gpu_code fake_check_unsafe(void) {
    if (!running) return GPU_SUCCESS;
    if (running->mode == GLOBAL || (running->mode == THREAD_LOCAL && running->thread == self()))
        return fake_capture_invalidate(running, FAKE_CAPTURE_UNSUPPORTED);
    return GPU_SUCCESS;
}

void fake_check_capture(const char *function) {
    if (running) fake_complain("%s while a graph is made", function);
}

gpu_code fake_StreamBeginCapture(gpu_stream handle, int mode) {
    FAKE_ENTER_CONTEXT(FAKE_StreamBeginCapture);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (!handle || stream->capture || running) return FAKE_CAPTURE_UNSUPPORTED;
    fake_capture *capture = fake_object_new(FAKE_CAPTURE, sizeof *capture);
    if (capture) capture->nodes = calloc(1, sizeof *capture->nodes);
    if (!capture || !capture->nodes) return GPU_OUT_OF_MEMORY;
    capture->nodes->references = 1;
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = self();
    stream->capture = running = capture;
    return GPU_SUCCESS;
}

static gpu_code end_of(const fake_capture *capture) {
    if (capture->is_invalid) return FAKE_CAPTURE_INVALIDATED;
    return capture->unjoined ? FAKE_CAPTURE_UNJOINED : GPU_SUCCESS;
}

gpu_code fake_StreamEndCapture(gpu_stream handle, gpu_graph *result) {
    (void)usleep(500); /* so that other threads come in between */
    FAKE_LOCKED(FAKE_StreamEndCapture);
    fake_stream *stream = fake_object_of(FAKE_STREAM, handle);
    fake_capture *capture = stream ? stream->capture : NULL;
    *result = NULL;
    if (!capture || capture->origin != stream) return FAKE_CAPTURE_UNMATCHED;
    gpu_code code = refused ? refused : end_of(capture);
    fake_leave_capture(capture);
    running = NULL;
    gpu_graph graph = code == GPU_SUCCESS ? fake_object_new(FAKE_GRAPH, sizeof *graph) : NULL;
    if (code == GPU_SUCCESS && !graph) code = GPU_OUT_OF_MEMORY;
    if (graph) {
        graph->nodes = nodes_ref(capture->nodes);
        fake_count.graphs++;
        *result = graph;
    }
    fake_nodes_release(capture->nodes);
    capture->nodes = NULL;
    return code;
}

/* ---- graphs ---- */

gpu_code fake_GraphInstantiate(gpu_graph_exec *result, gpu_graph handle, unsigned long long flags) {
    FAKE_ENTER_CONTEXT(FAKE_GraphInstantiate);
    gpu_graph graph = fake_object_of(FAKE_GRAPH, handle);
    if (!graph) return FAKE_INVALID_HANDLE;
    if (flags) return FAKE_INVALID_VALUE;
    gpu_graph_exec executable = fake_object_new(FAKE_EXECUTABLE, sizeof *executable);
    if (!executable) return GPU_OUT_OF_MEMORY;
    executable->object.context = context;
    executable->nodes = nodes_ref(graph->nodes);
    fake_count.executables++;
    *result = executable;
    return GPU_SUCCESS;
}

gpu_code fake_GraphLaunch(gpu_graph_exec handle, gpu_stream where) {
    FAKE_ENTER_CONTEXT(FAKE_GraphLaunch);
    gpu_graph_exec executable = fake_object_of(FAKE_EXECUTABLE, handle);
    fake_stream *stream = fake_stream_of(context, where);
    if (!executable || !stream) return FAKE_INVALID_HANDLE;
    return fake_enqueue(
        stream,
        (fake_op){.kind = FAKE_OP_GRAPH, .what = "graph", .nodes = nodes_ref(executable->nodes)});
}

gpu_code fake_GraphDestroy(gpu_graph handle) {
    FAKE_LOCKED(FAKE_GraphDestroy);
    gpu_graph graph = fake_object_of(FAKE_GRAPH, handle);
    if (!graph) {
        fake_complain("GraphDestroy of what is no graph");
        return FAKE_INVALID_HANDLE;
    }
    fake_nodes_release(graph->nodes);
    graph->nodes = NULL;
    graph->object.kind = FAKE_RELEASED;
    fake_count.graphs--;
    return refused;
}

gpu_code fake_GraphExecDestroy(gpu_graph_exec handle) {
    FAKE_LOCKED(FAKE_GraphExecDestroy);
    gpu_graph_exec executable = fake_object_of(FAKE_EXECUTABLE, handle);
    if (!executable) {
        fake_complain("GraphExecDestroy of what is no executable graph");
        return FAKE_INVALID_HANDLE;
    }
    fake_nodes_release(executable->nodes);
    executable->nodes = NULL;
    executable->object.kind = FAKE_RELEASED;
    fake_count.executables--;
    return refused;
}
