/* Streams, events, and the work that waits in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_driver.h"
#include "support/cuda_cpp.h"

enum { MOST_OPS = 4096 };

static fake_stream *streams[4096]; /* that are there, or have something to do */
static int stream_count, streams_made;
static fake_witness *witness;

FAKE_EXPORT fake_witness_fn fake_set_witness;
void fake_set_witness(fake_witness *who) { witness = who; }

/* ---- marks ---- */

static fake_mark *mark_new(fake_stream *stream) {
    fake_mark *mark = calloc(1, sizeof *mark);
    if (mark) *mark = (fake_mark){.references = 1, .stream = stream, .capture = stream->capture};
    return mark;
}

static fake_mark *mark_ref(fake_mark *mark) {
    mark->references++;
    return mark;
}

static void mark_unref(fake_mark *mark) {
    if (mark && --mark->references == 0) free(mark);
}

static struct {
    const char *entry; /* NULL: time is not made up */
    double ms, launch_ms;
} made_up;

FAKE_EXPORT fake_clock_fn fake_make_up_time;
void fake_make_up_time(const char *entry, double launch_ms) {
    made_up.entry = entry;
    made_up.launch_ms = launch_ms;
}

FAKE_EXPORT fake_spend_fn fake_spend;
void fake_spend(double ms) { made_up.ms += ms; }

static void mark_done(fake_mark *mark) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    mark->time = made_up.entry ? made_up.ms : (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    mark->is_done = true;
}

/* ---- one piece of work ---- */

void fake_op_release(fake_op *op) {
    if (op->kind == FAKE_OP_RECORD && !op->mark->is_done) mark_done(op->mark);
    free(op->staged);
    mark_unref(op->mark);
    fake_launch_release(op->launch);
    fake_nodes_release(op->nodes);
    if (op->release) op->release(op->argument);
    free(op);
}

static void tell(const fake_stream *stream, const fake_op *op) {
    char text[96];
    if (!witness) return;
    (void)snprintf(text, sizeof text, "%s%s%s", op->what, op->launch ? " " : "",
                   op->launch ? op->launch->function->entry->name : "");
    witness(stream->number, text);
}

/* Memory that was released since the copy was queued. */
static bool is_gone(const void *memory, size_t bytes) {
    return fake_memory_is_devices(memory) && fake_memory_device((gpu_pointer)memory, bytes) < 0;
}

static void run_copy(fake_context *context, const fake_op *op) {
    if (is_gone(op->to, op->bytes) || is_gone(op->from, op->bytes)) {
        fake_complain("%s of %zu bytes, whose memory was released", op->what, op->bytes);
        context->fault = FAKE_ILLEGAL_ADDRESS;
        return;
    }
    fake_memory_open();
    if (op->kind == FAKE_OP_FILL)
        memset(op->to, op->value, op->bytes);
    else
        memmove(op->to, op->from, op->bytes);
    fake_memory_close();
    fake_count.copies++;
}

static void run_op(fake_stream *stream, const fake_op *op);

static void run_nodes(fake_stream *stream, const fake_nodes *nodes) {
    fake_count.graph_launches++;
    for (const fake_op *op = nodes->first; op; op = op->next) run_op(stream, op);
}

static bool run_next(fake_stream *stream);

static bool host_step(const fake_op *op) {
    fake_memory_open();
    const bool is_done = op->step(op->argument);
    fake_memory_close();
    return is_done;
}

static void run_op(fake_stream *stream, const fake_op *op) {
    fake_context *context = stream->object.context;
    if (context->fault && op->kind != FAKE_OP_RECORD) return;
    switch (op->kind) {
    case FAKE_OP_COPY:
    case FAKE_OP_FILL:
        run_copy(context, op);
        break;
    case FAKE_OP_LAUNCH:
        fake_run_launch(context, op->launch);
        if (made_up.entry && strstr(op->launch->function->entry->name, made_up.entry))
            made_up.ms += made_up.launch_ms;
        break;
    case FAKE_OP_GRAPH:
        run_nodes(stream, op->nodes);
        break;
    case FAKE_OP_RECORD:
        mark_done(op->mark);
        return;
    case FAKE_OP_WAIT:
        while (!op->mark->is_done && run_next(op->mark->stream)) {
        }
        return;
    case FAKE_OP_HOST:
        while (!host_step(op)) fake_pause();
        break;
    }
    tell(stream, op);
}

static void forget_stream(fake_stream *stream) {
    for (int i = 0; i < stream_count; i++)
        if (streams[i] == stream) streams[i] = streams[--stream_count];
}

static void drop_first(fake_stream *stream) {
    fake_op *op = stream->first;
    stream->first = op->next;
    if (!stream->first) stream->last = NULL;
    stream->length--;
    fake_op_release(op);
    if (stream->is_gone && !stream->first) forget_stream(stream);
}

/* False: there is nothing left. */
static bool run_next(fake_stream *stream) {
    if (stream->is_busy) {
        fake_pause();
        return true;
    }
    if (!stream->first) return false;
    stream->is_busy = true;
    run_op(stream, stream->first);
    stream->is_busy = false;
    drop_first(stream);
    return true;
}

/* The same without waiting for anybody: false where that would be. */
static bool try_next(fake_stream *stream) {
    const fake_op *op = stream->first;
    if (!op || stream->is_busy) return false;
    const bool has_faulted = stream->object.context->fault;
    if (op->kind == FAKE_OP_WAIT && !has_faulted && !op->mark->is_done)
        return try_next(op->mark->stream);
    if (op->kind != FAKE_OP_HOST || has_faulted) return run_next(stream);
    if (!host_step(op)) return false;
    drop_first(stream);
    return true;
}

/* ---- many ---- */

gpu_code fake_drain(fake_stream *stream) {
    while (run_next(stream)) {
    }
    return stream->object.context->fault;
}

void fake_drain_context(const fake_context *context) {
    for (int i = stream_count - 1; i >= 0; i--) {
        if (i >= stream_count) continue; /* some were left by others' work */
        if (!context || streams[i]->object.context == context) (void)fake_drain(streams[i]);
    }
}

static bool uses(const fake_op *first, bool (*is_used_by)(const fake_op *, const void *, size_t),
                 const void *what, size_t bytes) {
    for (const fake_op *op = first; op; op = op->next)
        if (is_used_by(op, what, bytes) ||
            (op->kind == FAKE_OP_GRAPH && uses(op->nodes->first, is_used_by, what, bytes)))
            return true;
    return false;
}

static bool any_uses(bool (*is_used_by)(const fake_op *, const void *, size_t), const void *what,
                     size_t bytes) {
    for (int i = 0; i < stream_count; i++)
        if (uses(streams[i]->first, is_used_by, what, bytes)) return true;
    return false;
}

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static bool is_memory_used(const fake_op *op, const void *memory, size_t bytes) {
    return op->kind == FAKE_OP_COPY && (overlaps(op->to, op->bytes, memory, bytes) ||
                                        overlaps(op->from, op->bytes, memory, bytes));
}

bool fake_is_in_use(const void *memory, size_t bytes) {
    return any_uses(is_memory_used, memory, bytes);
}

static bool is_module_used(const fake_op *op, const void *module, size_t bytes) {
    (void)bytes;
    return op->launch && op->launch->function->module == module;
}

bool fake_is_module_in_use(const struct gpu_module_object *module) {
    return any_uses(is_module_used, module, 0);
}

/* ---- putting work in ---- */

static void append(fake_stream *stream, fake_op *op) {
    if (stream->last)
        stream->last->next = op;
    else
        stream->first = op;
    stream->last = op;
    stream->length++;
}

/* The legacy stream waits for all that do not say otherwise, and those for it: its work is done at
 * once. */
static void respect_legacy(fake_stream *stream) {
    fake_context *context = stream->object.context;
    if (stream != &context->legacy) return;
    for (int i = stream_count - 1; i >= 0; i--)
        if (i < stream_count && streams[i]->is_blocking && streams[i]->object.context == context)
            (void)fake_drain(streams[i]);
}

gpu_code fake_enqueue(fake_stream *stream, fake_op op) {
    fake_op *copy = malloc(sizeof *copy);
    if (!copy) return GPU_OUT_OF_MEMORY;
    *copy = op;
    copy->next = NULL;
    if (stream->capture) return fake_capture_op(stream, copy);
    respect_legacy(stream);
    append(stream, copy);
    const bool at_once =
        stream == &stream->object.context->legacy || fake_number("FAKE_CUDA_EAGER", 0);
    if (at_once) return fake_drain(stream);
    if (stream->length > MOST_OPS) (void)run_next(stream);
    return GPU_SUCCESS;
}

/* ---- streams ---- */

fake_stream *fake_stream_of(fake_context *context, gpu_stream handle) {
    if (!handle) {
        context->legacy.object = (fake_object){FAKE_STREAM, context, NULL};
        return &context->legacy;
    }
    fake_stream *stream = fake_object_of(FAKE_STREAM, handle);
    return stream && !stream->is_gone && stream->object.context == context ? stream : NULL;
}

gpu_code fake_StreamCreate(gpu_stream *handle, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_StreamCreate);
    if (stream_count == (int)(sizeof streams / sizeof *streams)) return GPU_OUT_OF_MEMORY;
    fake_stream *stream = fake_object_new(FAKE_STREAM, sizeof *stream);
    if (!stream) return GPU_OUT_OF_MEMORY;
    stream->object.context = context;
    stream->number = ++streams_made;
    stream->is_blocking = !(flags & GPU_STREAM_NON_BLOCKING);
    streams[stream_count++] = stream;
    fake_count.streams++;
    *handle = stream;
    return GPU_SUCCESS;
}

/* What it has to do is still done. */
gpu_code fake_StreamDestroy(gpu_stream handle) {
    FAKE_LOCKED(FAKE_StreamDestroy);
    fake_stream *stream = fake_object_of(FAKE_STREAM, handle);
    if (!stream || stream->is_gone) {
        fake_complain("StreamDestroy of what is no stream");
        return FAKE_INVALID_HANDLE;
    }
    if (stream->capture) (void)fake_capture_invalidate(stream->capture, GPU_SUCCESS);
    stream->is_gone = true;
    if (!stream->first) forget_stream(stream);
    fake_count.streams--;
    return refused ? refused : stream->object.context->fault;
}

gpu_code fake_StreamSynchronize(gpu_stream handle) {
    FAKE_ENTER_CONTEXT(FAKE_StreamSynchronize);
    fake_stream *stream = fake_stream_of(context, handle);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (stream->capture) return fake_capture_invalidate(stream->capture, FAKE_CAPTURE_UNSUPPORTED);
    respect_legacy(stream);
    return fake_drain(stream);
}

gpu_code fake_CtxSynchronize(void) {
    FAKE_ENTER_CONTEXT(FAKE_CtxSynchronize);
    const gpu_code unsafe = fake_check_unsafe();
    if (unsafe) return unsafe;
    fake_check_capture("CtxSynchronize");
    fake_drain_context(context);
    return context->fault;
}

void fake_leave_capture(const fake_capture *capture) {
    for (int i = 0; i < stream_count; i++)
        if (streams[i]->capture == capture) {
            streams[i]->capture = NULL;
            streams[i]->is_unjoined = false;
        }
}

/* ---- events ---- */

gpu_code fake_EventCreate(gpu_event *handle, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_EventCreate);
    gpu_event event = fake_object_new(FAKE_EVENT, sizeof *event);
    if (!event) return GPU_OUT_OF_MEMORY;
    event->object.context = context;
    event->has_time = !(flags & GPU_EVENT_NO_TIMING);
    fake_count.events++;
    *handle = event;
    return GPU_SUCCESS;
}

gpu_code fake_EventDestroy(gpu_event handle) {
    FAKE_LOCKED(FAKE_EventDestroy);
    gpu_event event = fake_object_of(FAKE_EVENT, handle);
    if (!event) {
        fake_complain("EventDestroy of what is no event");
        return FAKE_INVALID_HANDLE;
    }
    mark_unref(event->mark);
    event->mark = NULL;
    event->object.kind = FAKE_RELEASED;
    fake_count.events--;
    return refused ? refused : event->object.context->fault;
}

gpu_code fake_EventRecord(gpu_event handle, gpu_stream where) {
    FAKE_ENTER_CONTEXT(FAKE_EventRecord);
    gpu_event event = fake_object_of(FAKE_EVENT, handle);
    fake_stream *stream = fake_stream_of(context, where);
    if (!event || !stream || event->object.context != context) return FAKE_INVALID_HANDLE;
    fake_mark *mark = mark_new(stream);
    if (!mark) return GPU_OUT_OF_MEMORY;
    mark_unref(event->mark);
    event->mark = mark;
    if (stream->capture) return GPU_SUCCESS; /* it means a place in the graph */
    return fake_enqueue(
        stream, (fake_op){.kind = FAKE_OP_RECORD, .what = "record", .mark = mark_ref(mark)});
}

/* Within a capture: the stream takes part in it from now on, or the capture's own stream goes on
 * after those that took part. */
static gpu_code wait_captured(fake_stream *stream, const fake_mark *mark) {
    if (!mark->capture) return fake_capture_invalidate(stream->capture, FAKE_CAPTURE_ISOLATION);
    if (stream->capture && stream->capture != mark->capture)
        return fake_capture_invalidate(stream->capture, FAKE_CAPTURE_ISOLATION);
    if (mark->stream->is_unjoined && stream != mark->stream) {
        mark->stream->is_unjoined = false;
        mark->capture->unjoined--;
    }
    stream->capture = mark->capture;
    if (stream != mark->capture->origin && !stream->is_unjoined) {
        stream->is_unjoined = true;
        mark->capture->unjoined++;
    }
    return GPU_SUCCESS;
}

gpu_code fake_StreamWaitEvent(gpu_stream where, gpu_event handle, unsigned flags) {
    FAKE_ENTER_CONTEXT(FAKE_StreamWaitEvent);
    gpu_event event = fake_object_of(FAKE_EVENT, handle);
    fake_stream *stream = fake_stream_of(context, where);
    if (!event || !stream || flags) return FAKE_INVALID_HANDLE;
    if (!event->mark) return GPU_SUCCESS;
    if (stream->capture || event->mark->capture) return wait_captured(stream, event->mark);
    return fake_enqueue(
        stream, (fake_op){.kind = FAKE_OP_WAIT, .what = "wait", .mark = mark_ref(event->mark)});
}

/* What it says is so by the time that it is asked again, if nobody has to be waited for. */
gpu_code fake_EventQuery(gpu_event handle) {
    FAKE_ENTER_CONTEXT(FAKE_EventQuery);
    gpu_event event = fake_object_of(FAKE_EVENT, handle);
    if (!event) return FAKE_INVALID_HANDLE;
    if (!event->mark) return GPU_SUCCESS;
    if (event->mark->capture) return FAKE_CAPTURED_EVENT;
    while (!event->mark->is_done && try_next(event->mark->stream)) {
    }
    if (!event->mark->is_done) return GPU_NOT_READY;
    return context->fault;
}

gpu_code fake_EventSynchronize(gpu_event handle) {
    FAKE_ENTER_CONTEXT(FAKE_EventSynchronize);
    gpu_event event = fake_object_of(FAKE_EVENT, handle);
    if (!event) return FAKE_INVALID_HANDLE;
    if (!event->mark) return GPU_SUCCESS;
    if (event->mark->capture) return FAKE_CAPTURED_EVENT;
    while (!event->mark->is_done && run_next(event->mark->stream)) {
    }
    return event->mark->stream->object.context->fault ? event->mark->stream->object.context->fault
                                                      : context->fault;
}

gpu_code fake_EventElapsedTime(float *milliseconds, gpu_event from, gpu_event to) {
    FAKE_ENTER_CONTEXT(FAKE_EventElapsedTime);
    const gpu_event events[] = {from, to};
    for (int i = 0; i < 2; i++) {
        const struct gpu_event_object *e = fake_object_of(FAKE_EVENT, events[i]);
        if (!e || !e->has_time || !e->mark || e->mark->capture) return FAKE_INVALID_HANDLE;
        if (!e->mark->is_done) return GPU_NOT_READY;
    }
    *milliseconds = (float)(to->mark->time - from->mark->time);
    return context->fault;
}

/* ---- work of other libraries ---- */

FAKE_EXPORT fake_host_fn fake_host_call;
int fake_host_call(void *where, fake_host_step *step, fake_host_release *release, void *argument) {
    fake_enter_unnamed();
    __attribute__((cleanup(fake_leave), unused)) const int entered = 1;
    gpu_code wrong;
    fake_context *context = fake_current(&wrong);
    fake_stream *stream = context ? fake_stream_of(context, where) : NULL;
    const gpu_code refused = !context          ? wrong
                             : !stream         ? FAKE_INVALID_HANDLE
                             : stream->capture ? FAKE_CAPTURE_UNSUPPORTED
                                               : GPU_SUCCESS;
    if (refused) {
        release(argument);
        return refused;
    }
    return fake_enqueue(stream, (fake_op){.kind = FAKE_OP_HOST,
                                          .what = "collective",
                                          .step = step,
                                          .release = release,
                                          .argument = argument});
}
