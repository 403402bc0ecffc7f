/* Collectives of devices' memory: a transport of the device's vendor, on a queue of its own. The
 * group's other transport is used for comparisons and for reports of failed ranks. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "ranks/device_sums.h"
#include "ranks/told.h"
#include "ranks/transport.h"

static struct {
    const wb_device_transport *transport; /* NULL: not joined */
    void *state;                          /* NULL: it has ended */
    const wb_device *device;
    void *queue;
    int rank, size;
    double timeout;
    wb_device_sums sums;
} devices;

static const struct {
    const char *name, *file, *backend;
} plugins[] = {
    {"NCCL", "transport_nccl.so", "CUDA"},
    {"RCCL", "transport_rccl.so", "AMDGPU"},
};
enum { PLUGINS = sizeof plugins / sizeof *plugins };

static int plugin_of(const char *name) {
    int i = 0;
    while (i < PLUGINS && strcmp(plugins[i].name, name) != 0) i++;
    return i;
}

bool wb_is_device_transport(const char *name) { return name && plugin_of(name) < PLUGINS; }

const char *wb_ranks_device_transport(void) {
    return devices.transport ? devices.transport->name : NULL;
}

bool wb_ranks_carry(const wb_device *device) {
    return devices.transport && device == devices.device;
}

/* ---- the rank's device ---- */

/* Number local_rank of the list, or of the backend's devices. */
static const wb_device *pick(const char *backend, const wb_distributed_desc *desc,
                             const wb_seat *seat) {
    if (!desc->choose_device) {
        const wb_device *device = wb_default_device();
        if (strcmp(wb_device_backend_name(device), backend) == 0) return device;
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "distributed: with .choose_device = false the default device must be "
                            "one of %s, but is %s",
                            backend, wb_device_name(device));
    }
    if (wb_use(backend) != WB_OK) return NULL;
    const int count = wb_device_count(backend), own = seat->local_rank;
    if (desc->device_count && desc->device_count < seat->local_size)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "distributed: .devices must name one for each of the %d ranks of this "
                            "machine, but names %d",
                            seat->local_size, desc->device_count);
    if (count == 0)
        return wb_fail_null(WB_ERROR_DEVICE, "distributed: %s has no device: %s", backend,
                            wb_reason());
    if (!desc->device_count && own >= count)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "distributed: each rank needs a device of %s of its own, but this "
                            "machine has %d for %d ranks",
                            backend, count, seat->local_size);
    return wb_get_device(backend, desc->device_count ? desc->devices[own] : own);
}

/* ---- joining ---- */

/* What a rank tells the others before they join. */
typedef struct place {
    char failure[WB_MESSAGE_BYTES]; /* "": none */
    char host[128], address[32], uuid[40], device[48];
    char id[WB_GROUP_ID_BYTES]; /* rank 0's */
} place;

static bool prepare(const char *name, const wb_distributed_desc *desc, const wb_seat *seat) {
    const int i = plugin_of(name);
    char reason[512] = "";
    devices.device = pick(plugins[i].backend, desc, seat);
    if (!devices.device) return false;
    if (desc->choose_device) {
        wb_set_default_device(devices.device);
        wb_choose_rank_device(devices.device);
    }
    if (seat->size == 1) return true;
    const wb_device_transport *t = wb_device_transport_open(plugins[i].file, reason, sizeof reason);
    if (!t || !t->load(reason, sizeof reason)) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED, "distributed: %s cannot be used: %s", name, reason);
        return false;
    }
    const wb_backend *backend = devices.device->backend;
    if (!backend->native_queue || !backend->is_done || !backend->queue_new) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED, "distributed: %s cannot use devices of %s", name,
                      backend->name);
        return false;
    }
    devices.queue = backend->queue_new(devices.device->context);
    if (!devices.queue) return false;
    devices.transport = t;
    return true;
}

static bool make_id(place *own) {
    return devices.rank != 0 || devices.transport->new_id(own->id) == WB_OK;
}

static void describe(place *own, bool is_ready) {
    if (!is_ready) (void)wb_take_error(own->failure, sizeof own->failure);
    (void)gethostname(own->host, sizeof own->host - 1);
    if (!devices.device) return;
    (void)snprintf(own->address, sizeof own->address, "%s", devices.device->info.address);
    (void)snprintf(own->uuid, sizeof own->uuid, "%s", devices.device->info.uuid);
    (void)snprintf(own->device, sizeof own->device, "%s", wb_device_name(devices.device));
}

/* Containers of one machine have names of their own, and parts of one GPU have its address: only
 * their UUIDs tell whether they are the same. */
static bool is_same_device(const place *a, const place *b) {
    if (a->uuid[0] && b->uuid[0]) return strcmp(a->uuid, b->uuid) == 0;
    return a->address[0] && strcmp(a->address, b->address) == 0 && strcmp(a->host, b->host) == 0;
}

/* A rank's place; its texts are ended by 0, whatever the rank has sent. */
static void copy_place(place *to, const place *from) {
    wb_copy_told(to->failure, sizeof to->failure, from->failure, sizeof from->failure);
    wb_copy_told(to->host, sizeof to->host, from->host, sizeof from->host);
    wb_copy_told(to->address, sizeof to->address, from->address, sizeof from->address);
    wb_copy_told(to->uuid, sizeof to->uuid, from->uuid, sizeof from->uuid);
    wb_copy_told(to->device, sizeof to->device, from->device, sizeof from->device);
    memcpy(to->id, from->id, sizeof to->id);
}

/* NULL with an error recorded. */
static place *exchange(const place *own, int size) {
    static const void *given[WB_MOST_RANKS];
    place *all = wb_alloc_list(size, sizeof *all);
    if (all && wb_ranks_exchange(own, sizeof *own, given) == WB_OK) {
        for (int r = 0; r < size; r++) copy_place(&all[r], given[r]);
        return all;
    }
    wb_release(all);
    return NULL;
}

/* The same answer on all ranks. */
static bool check_all(const place *all, int size) {
    for (int r = 0; r < size; r++) {
        const place *p = &all[r];
        if (!p->failure[0]) continue;
        if (r == devices.rank)
            (void)wb_fail(WB_ERROR_UNSUPPORTED, "%s", p->failure);
        else
            (void)wb_fail(WB_ERROR_UNSUPPORTED, "distributed: rank %d has failed: %s", r,
                          p->failure);
        return false;
    }
    for (int r = 1; r < size; r++)
        for (int k = 0; k < r; k++) {
            const place *a = &all[k], *b = &all[r];
            if (!is_same_device(a, b)) continue;
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "distributed: each rank needs a device of its own, but ranks %d and %d "
                          "of %s both have %s (%s)",
                          k, r, a->host, b->device, b->address);
            return false;
        }
    return true;
}

/* Waits until all collectives that were begun have finished. */
static wb_status settle(void) {
    const double begin = wb_clock();
    bool goes_on = true;
    for (;;) {
        wb_status status = devices.transport->poll(devices.state, &goes_on);
        if (status == WB_OK && goes_on) status = wb_ranks_look();
        if (status != WB_OK || !goes_on) return status;
        if (wb_clock() - begin > devices.timeout)
            return wb_fail(WB_ERROR_LOST,
                           "distributed: %s has not finished within %g s (WEBER_TIMEOUT)",
                           devices.transport->name, devices.timeout);
        (void)usleep(20);
    }
}

static bool connect(const wb_seat *seat, const void *id) {
    const wb_device *device = devices.device;
    const bool is_ready = device->backend->native_queue(device->context, devices.queue) &&
                          wb_device_sums_open(&devices.sums, device, devices.queue, seat->size);
    devices.state = is_ready ? devices.transport->start(seat, id) : NULL;
    if (devices.state && settle() == WB_OK) return true;
    wb_ranks_tell();
    return false;
}

bool wb_ranks_join_devices(const char *name, const wb_distributed_desc *desc, const wb_seat *seat,
                           double timeout) {
    place own = {.failure = ""};
    devices.rank = seat->rank, devices.size = seat->size, devices.timeout = timeout;
    const bool is_ready = prepare(name, desc, seat);
    if (seat->size == 1) return is_ready;
    describe(&own, is_ready && make_id(&own));
    place *all = exchange(&own, seat->size);
    const bool has_joined = all && check_all(all, seat->size) && connect(seat, all[0].id);
    wb_release(all);
    if (!has_joined) {
        if (devices.state) devices.transport->stop(devices.state, false);
        devices.state = NULL, devices.transport = NULL;
        wb_device_sums_close(&devices.sums);
    }
    return has_joined;
}

void wb_ranks_leave_devices(void) {
    if (devices.state) devices.transport->stop(devices.state, true);
    devices.state = NULL;
    wb_device_sums_close(&devices.sums);
}

/* ---- collectives ---- */

void *wb_ranks_mark(void) {
    const wb_device *device = devices.device;
    return device->backend->record(device->context, NULL);
}

void wb_ranks_release_event(void *event) {
    const wb_device *device = devices.device;
    if (event) device->backend->release_event(device->context, event);
}

wb_status wb_ranks_wait_for(void *done) {
    const wb_device *device = devices.device;
    return wb_device_note(device, device->backend->wait(device->context, NULL, done));
}

static wb_status copy(wb_memory to, wb_memory from, size_t bytes) {
    const wb_device *device = devices.device;
    return device->backend->copy(device->context, devices.queue, WB_COPY_LOCAL, to, from, bytes);
}

static wb_memory behind(wb_memory m, size_t bytes) {
    return (wb_memory){m.handle, m.offset_bytes + (int64_t)bytes};
}

/* Queues it, and returns when it is on the queue. */
static wb_status move(wb_device_move m, wb_memory from, wb_memory to) {
    const wb_device *device = devices.device;
    void *queue = device->backend->native_queue(device->context, devices.queue);
    if (!queue) return wb_error_status();
    m.from = (char *)from.handle + from.offset_bytes, m.to = (char *)to.handle + to.offset_bytes;
    const wb_status status = devices.transport->move(devices.state, &m, queue);
    return status == WB_OK ? settle() : status;
}

/* The reduction of `part` elements of each rank: those that lie `stride` bytes further on for each
 * rank that they are for. */
static wb_status reduce_part(const wb_collective *c, wb_memory from, int64_t part, size_t stride,
                             wb_memory *sum) {
    const wb_dtype dtype = (wb_dtype)c->dtype;
    wb_device_move m = {.kind = WB_MOVE_EXCHANGE,
                        .bytes = (size_t)part * wb_dtype_size(dtype),
                        .from_stride = stride};
    const wb_memory slots = wb_device_sums_slots(&devices.sums, dtype, part, &m.to_stride);
    const wb_status status = move(m, from, slots);
    return status == WB_OK
               ? wb_device_sums_add(&devices.sums, dtype, (wb_reduction)c->reduction, part, sum)
               : status;
}

/* For few elements: all ranks get all of them, and each rank adds them up. */
static wb_status allreduce_few(const wb_collective *c, wb_memory from, int64_t n, wb_memory to) {
    wb_memory sum;
    const wb_status status = reduce_part(c, from, n, 0, &sum);
    return status == WB_OK ? copy(to, sum, (size_t)n * wb_dtype_size((wb_dtype)c->dtype)) : status;
}

/* Each rank reduces its part, and then all ranks get all parts. */
static wb_status allreduce_parts(const wb_collective *c, wb_memory from, int64_t part,
                                 wb_memory to) {
    const size_t bytes = (size_t)part * wb_dtype_size((wb_dtype)c->dtype);
    wb_memory sum;
    const wb_status status = reduce_part(c, from, part, bytes, &sum);
    if (status != WB_OK) return status;
    return move((wb_device_move){.kind = WB_MOVE_GATHER, .bytes = bytes}, sum, to);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The remainder has fewer elements than there are ranks. */
static wb_status allreduce(const wb_collective *c, wb_memory from, wb_memory to) {
    enum { FEW = 4 * WB_MOST_RANKS };
    const size_t bytes = wb_dtype_size((wb_dtype)c->dtype);
    const int64_t most = wb_device_sums_most(&devices.sums, (wb_dtype)c->dtype),
                  few = least(most, FEW);
    wb_status status = WB_OK;
    for (int64_t at = 0, n; status == WB_OK && at < c->count; at += n) {
        const size_t offset = (size_t)at * bytes;
        const wb_memory own = behind(from, offset), result = behind(to, offset);
        const int64_t left = c->count - at, part = least(most, left / devices.size);
        n = left <= few ? left : part * devices.size;
        status =
            left <= few ? allreduce_few(c, own, n, result) : allreduce_parts(c, own, part, result);
    }
    return status;
}

/* The other ranks keep their own arrays. */
static wb_status reduce(const wb_collective *c, wb_memory from, wb_memory to) {
    const wb_status status = allreduce(c, from, to);
    if (status != WB_OK || c->root == devices.rank) return status;
    return copy(to, from, (size_t)c->count * wb_dtype_size((wb_dtype)c->dtype));
}

static wb_status reduce_scatter(const wb_collective *c, wb_memory from, wb_memory to) {
    const size_t bytes = wb_dtype_size((wb_dtype)c->dtype);
    const int64_t own = c->count / devices.size,
                  most = wb_device_sums_most(&devices.sums, (wb_dtype)c->dtype);
    wb_status status = WB_OK;
    for (int64_t at = 0; status == WB_OK && at < own; at += most) {
        const int64_t n = least(most, own - at);
        const size_t offset = (size_t)at * bytes;
        wb_memory sum;
        status = reduce_part(c, behind(from, offset), n, (size_t)own * bytes, &sum);
        if (status == WB_OK) status = copy(behind(to, offset), sum, (size_t)n * bytes);
    }
    return status;
}

static wb_status queue_up(const wb_collective *c, wb_memory from, wb_memory to) {
    const size_t bytes = (size_t)c->count * wb_dtype_size((wb_dtype)c->dtype);
    if (c->count == 0) return WB_OK;
    switch ((wb_collective_kind)c->kind) {
    case WB_COLLECTIVE_ALLREDUCE:
        return allreduce(c, from, to);
    case WB_COLLECTIVE_REDUCE:
        return reduce(c, from, to);
    case WB_COLLECTIVE_REDUCE_SCATTER:
        return reduce_scatter(c, from, to);
    case WB_COLLECTIVE_ALLGATHER:
        return move((wb_device_move){.kind = WB_MOVE_GATHER, .bytes = bytes}, from, to);
    default:
        return move((wb_device_move){.kind = WB_MOVE_BCAST, .bytes = bytes, .root = c->root}, from,
                    to);
    }
}

wb_status wb_ranks_post(const wb_collective *c, wb_memory from, wb_memory to, void *ready,
                        void **done) {
    const wb_device *device = devices.device;
    wb_status status = device->backend->wait(device->context, devices.queue, ready);
    if (status == WB_OK) status = queue_up(c, from, to);
    *done = status == WB_OK ? device->backend->record(device->context, devices.queue) : NULL;
    return *done ? WB_OK : wb_error_status();
}

wb_status wb_ranks_look_at(void *done, double since, bool *is_done) {
    const wb_device *device = devices.device;
    bool goes_on;
    wb_status status = device->backend->is_done(device->context, done, is_done);
    if (status != WB_OK || *is_done) return status;
    status = devices.transport->poll(devices.state, &goes_on);
    if (status == WB_OK) status = wb_ranks_look();
    if (status == WB_OK && wb_clock() - since > devices.timeout)
        status = wb_fail(WB_ERROR_LOST,
                         "distributed: a collective of rank %d on %s has not finished within %g s "
                         "(WEBER_TIMEOUT)",
                         devices.rank, wb_device_name(device), devices.timeout);
    return status;
}

/* The device is given up first: a thread that waits for it then finds that out when its wait ends,
 * which is once the transport's collectives are stopped. */
void wb_ranks_abort_devices(bool has_lost) {
    if (!devices.state) return;
    wb_device *device = wb_device_mutable(devices.device);
    if (has_lost) wb_device_give_up(device);
    devices.transport->stop(devices.state, false);
    devices.state = NULL;
    if (has_lost) wb_device_let_go(device);
}
