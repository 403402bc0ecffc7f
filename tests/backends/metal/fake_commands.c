/* Queues, command buffers and encoders: what is written down, to be run later (fake_run.c). */
#include <stdlib.h>
#include <string.h>

#include "fake_metal.h"

enum { MOST_BYTES = 4095, MOST_INDEX = 30 };

/* ---- queues ---- */

mtl_id send_new_queue(mtl_id self, mtl_selector selector, mtl_uint most) {
    FAKE_ENTER();
    if (fake_fails(selector, NULL) || fake_is_removed()) return NULL;
    fake_queue *q = fake_new(FAKE_MTLCommandQueue);
    if (!q) abort();
    q->device = (fake_device *)(void *)self, q->most = (long)most;
    fake_queue_add(q);
    return &q->object;
}

/* ---- command buffers ---- */

/* Metal holds the thread up until one of so many is done. */
static void wait_for_room(fake_queue *q) {
    while (q->unfinished >= q->most) {
        if (!q->first)
            fake_abort("commandBuffer: all %ld of the queue are there and none is committed",
                       q->most);
        fake_run_until_done(q->first);
    }
}

mtl_id send_command_buffer(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_queue *q = (void *)self;
    if (fake_fails(selector, NULL)) return NULL;
    wait_for_room(q);
    fake_commands *c = fake_new(FAKE_MTLCommandBuffer);
    if (!c) abort();
    c->queue = fake_keep(q);
    q->unfinished++;
    return (mtl_id)fake_autorelease(c);
}

void fake_op_release(fake_op *op) {
    if (op->launch) {
        fake_drop(op->launch->pipeline);
        for (int i = 0; i <= MOST_INDEX; i++) {
            fake_drop(op->launch->bound[i].buffer);
            free(op->launch->bound[i].bytes);
        }
        free(op->launch);
    }
    fake_drop(op->multiply.product);
    fake_drop(op->multiply.left), fake_drop(op->multiply.right), fake_drop(op->multiply.result);
    fake_drop(op->event);
    free(op);
}

void fake_end_commands(void *object) {
    fake_commands *c = object;
    while (c->first) {
        fake_op *op = c->first;
        c->first = op->next;
        fake_op_release(op);
    }
    if (c->status < FAKE_COMMITTED) c->queue->unfinished--;
    fake_drop(c->error);
    fake_drop(c->queue);
}

static void check_recording(const fake_commands *c, mtl_selector selector) {
    if (c->status >= FAKE_COMMITTED)
        fake_abort("%s to a command buffer that is committed", fake_selector_name(selector));
    if (c->open)
        fake_abort("%s while an encoder of the command buffer is open",
                   fake_selector_name(selector));
}

static void add_op(fake_commands *c, fake_op op) {
    fake_op *copy = malloc(sizeof *copy);
    if (!copy) abort();
    *copy = op;
    if (c->last)
        c->last->next = copy;
    else
        c->first = copy;
    c->last = copy;
}

void send_signal_event(mtl_id self, mtl_selector selector, mtl_id event, uint64_t value) {
    FAKE_ENTER();
    check_recording((void *)self, selector);
    event = fake_argument(event, FAKE_MTLSharedEvent, selector, false);
    add_op((void *)self, (fake_op){.kind = FAKE_SIGNAL, .event = fake_keep(event), .value = value});
}

void send_wait_for_event(mtl_id self, mtl_selector selector, mtl_id event, uint64_t value) {
    FAKE_ENTER();
    check_recording((void *)self, selector);
    event = fake_argument(event, FAKE_MTLSharedEvent, selector, false);
    add_op((void *)self, (fake_op){.kind = FAKE_WAIT, .event = fake_keep(event), .value = value});
}

void send_commit(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_commands *c = (void *)self;
    check_recording(c, selector);
    if (fake_has_to_fail(fake_selector_name(selector), &c->failure) && c->failure == 0)
        c->failure = FAKE_INTERNAL;
    fake_count.commits++;
    fake_queue_commit(c);
}

void send_wait_completed(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_commands *c = (void *)self;
    (void)selector;
    if (c->status < FAKE_COMMITTED) fake_abort("waitUntilCompleted without a commit");
    fake_keep(c); /* another thread may release it meanwhile */
    fake_run_until_done(c);
    fake_drop(c);
}

/* Who asks again and again gets on, as beside a real GPU. */
mtl_uint send_status(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_commands *c = (void *)self;
    (void)selector;
    if (c->status >= FAKE_COMMITTED && ++c->asked % FAKE_PATIENCE == 0)
        (void)fake_run_some(c->queue);
    return c->status;
}

mtl_id send_error(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    (void)selector;
    return ((fake_commands *)(void *)self)->error;
}

/* ---- encoders ---- */

mtl_id send_compute_encoder(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_commands *c = (void *)self;
    check_recording(c, selector);
    if (fake_fails(selector, NULL)) return NULL;
    fake_encoder *e = fake_new(FAKE_MTLComputeCommandEncoder);
    if (!e) abort();
    e->commands = fake_keep(c);
    c->open = e;
    return (mtl_id)fake_autorelease(e);
}

static fake_encoder *open_encoder(mtl_id self, mtl_selector selector) {
    fake_encoder *e = (void *)self;
    if (!e->commands) fake_abort("%s to an encoder that has ended", fake_selector_name(selector));
    return e;
}

static void unbind(fake_bound *bound) {
    fake_drop(bound->buffer);
    free(bound->bytes);
    *bound = (fake_bound){NULL, 0, NULL, 0};
}

void send_end_encoding(mtl_id self, mtl_selector selector) {
    FAKE_ENTER();
    fake_encoder *e = open_encoder(self, selector);
    fake_commands *c = e->commands;
    c->open = NULL, e->commands = NULL;
    for (int i = 0; i <= MOST_INDEX; i++) unbind(&e->bound[i]);
    fake_drop(e->pipeline);
    fake_drop(c);
}

void fake_end_encoder(void *object) {
    if (((fake_encoder *)object)->commands)
        fake_abort("an encoder is released without endEncoding");
}

void send_set_pipeline(mtl_id self, mtl_selector selector, mtl_id pipeline) {
    FAKE_ENTER();
    fake_encoder *e = open_encoder(self, selector);
    fake_pipeline *p = fake_argument(pipeline, FAKE_MTLComputePipelineState, selector, false);
    fake_pipeline *old = e->pipeline;
    e->pipeline = fake_keep(p);
    fake_drop(old);
}

static fake_bound *place_of(fake_encoder *e, mtl_uint index, mtl_selector selector) {
    if (index > MOST_INDEX)
        fake_abort("%s: index %lu is above 30", fake_selector_name(selector), index);
    return &e->bound[index];
}

void send_set_buffer(mtl_id self, mtl_selector selector, mtl_id buffer, mtl_uint offset,
                     mtl_uint index) {
    FAKE_ENTER();
    fake_bound *bound = place_of(open_encoder(self, selector), index, selector);
    fake_buffer *b = fake_argument(buffer, FAKE_MTLBuffer, selector, true);
    if (b && offset >= b->bytes)
        fake_abort("setBuffer: offset %lu in a buffer of %zu bytes", offset, b->bytes);
    fake_keep(b);
    unbind(bound);
    bound->buffer = b, bound->offset = offset;
}

void send_set_bytes(mtl_id self, mtl_selector selector, mtl_bytes bytes, mtl_uint length,
                    mtl_uint index) {
    FAKE_ENTER();
    fake_bound *bound = place_of(open_encoder(self, selector), index, selector);
    if (length == 0 || length > MOST_BYTES)
        fake_abort("setBytes: %lu bytes; 1 to %d are allowed", length, MOST_BYTES);
    unbind(bound);
    bound->bytes = aligned_alloc(64, (length + 63) / 64 * 64);
    if (!bound->bytes) abort();
    memcpy(bound->bytes, bytes, length);
    bound->length = length;
}

/* ---- launches ---- */

static void check_bound(const fake_encoder *e, const metal_cpp_entry *entry) {
    for (int i = 0; i < entry->count; i++) {
        const fake_bound *bound = &e->bound[entry->buffers[i]];
        if (!bound->buffer && !bound->bytes)
            fake_abort("%s: buffer %d is not bound", entry->name, entry->buffers[i]);
    }
}

static void check_sizes(const metal_cpp_entry *entry, mtl_size groups, mtl_size threads) {
    const mtl_uint count = threads.width * threads.height * threads.depth;
    const mtl_uint most = (mtl_uint)fake_number("FAKE_METAL_THREADS", METAL_CPP_THREADS);
    if (groups.width * groups.height * groups.depth == 0 || count == 0)
        fake_abort("%s: a launch without threads", entry->name);
    if (groups.width > UINT32_MAX || groups.height > UINT32_MAX || groups.depth > UINT32_MAX)
        fake_abort("%s: a launch of %lu groups", entry->name, groups.width);
    if (count > (mtl_uint)entry->threads || count > most)
        fake_abort("%s: %lu threads in a group, which may have %lu", entry->name, count,
                   most < (mtl_uint)entry->threads ? most : (mtl_uint)entry->threads);
}

static fake_bound copy_bound(const fake_bound *bound) {
    fake_bound copy = *bound;
    fake_keep(copy.buffer);
    if (!copy.bytes) return copy;
    const size_t bytes = (copy.length + 63) / 64 * 64;
    copy.bytes = aligned_alloc(64, bytes);
    if (!copy.bytes) abort();
    memcpy(copy.bytes, bound->bytes, copy.length);
    memset((char *)copy.bytes + copy.length, 0xff, bytes - copy.length);
    return copy;
}

void send_dispatch(mtl_id self, mtl_selector selector, mtl_size groups, mtl_size threads) {
    FAKE_ENTER();
    fake_encoder *e = open_encoder(self, selector);
    if (!e->pipeline) fake_abort("%s without a pipeline", fake_selector_name(selector));
    const metal_cpp_entry *entry = e->pipeline->function->entry;
    check_bound(e, entry);
    check_sizes(entry, groups, threads);
    fake_launch *launch = calloc(1, sizeof *launch);
    if (!launch) abort();
    launch->pipeline = fake_keep(e->pipeline);
    for (int i = 0; i < entry->count; i++)
        launch->bound[entry->buffers[i]] = copy_bound(&e->bound[entry->buffers[i]]);
    const mtl_size sizes[2] = {groups, threads};
    for (int i = 0; i < 2; i++) {
        uint32_t *to = i ? launch->threads : launch->groups;
        to[0] = (uint32_t)sizes[i].width, to[1] = (uint32_t)sizes[i].height;
        to[2] = (uint32_t)sizes[i].depth;
    }
    add_op(e->commands, (fake_op){.kind = FAKE_LAUNCH, .launch = launch});
}

/* ---- products ---- */

void send_encode_product(mtl_id self, mtl_selector selector, mtl_id commands, mtl_id left,
                         mtl_id right, mtl_id result) {
    FAKE_ENTER();
    fake_commands *c = fake_argument(commands, FAKE_MTLCommandBuffer, selector, false);
    check_recording(c, selector);
    const fake_multiply m = {fake_keep(self),
                             fake_keep(fake_argument(left, FAKE_MPSMatrix, selector, false)),
                             fake_keep(fake_argument(right, FAKE_MPSMatrix, selector, false)),
                             fake_keep(fake_argument(result, FAKE_MPSMatrix, selector, false))};
    fake_check_product(&m);
    add_op(c, (fake_op){.kind = FAKE_PRODUCT, .multiply = m});
}
