/* Collectives of devices' memory: a transport of the device's vendor, on a queue of its own. The
 * group's other transport goes with it, for what ranks compare and for who has failed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/device.h"
#include "ranks/told.h"
#include "ranks/transport.h"

static struct {
    const wb_device_transport *transport; /* NULL: nobody has joined */
    void *state;                          /* NULL: it has ended */
    const wb_device *device;
    void *queue;
    int rank;
    double timeout;
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

bool wb_ranks_carry_any(void) { return devices.transport; }

/* ---- the rank's device ---- */

/* Number local_rank of the list, or of the backend's devices. */
static const wb_device *pick(const char *backend, const wb_distributed_desc *desc,
                             const wb_seat *seat) {
    if (desc->no_device) {
        const wb_device *device = wb_default_device();
        if (strcmp(wb_device_backend_name(device), backend) == 0) return device;
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "distributed: .no_device leaves the default device, which must be one "
                            "of %s then, but is %s",
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
    return wb_get_device_at(backend, desc->device_count ? desc->devices[own] : own);
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
    if (!desc->no_device) {
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

/* A rank's place, whose texts end in any case. */
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
    place *all = wb_alloc(sizeof *all * (size_t)size);
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

/* Until what was begun has come to its end. */
static wb_status settle(void) {
    const double begin = wb_clock();
    bool goes_on = true;
    for (;;) {
        wb_status status = devices.transport->poll(devices.state, &goes_on);
        if (status == WB_OK && goes_on) status = wb_ranks_look();
        if (status != WB_OK || !goes_on) return status;
        if (wb_clock() - begin > devices.timeout)
            return wb_fail(WB_ERROR_LOST,
                           "distributed: %s has not come to an end for %g s (WEBER_TIMEOUT)",
                           devices.transport->name, devices.timeout);
        (void)usleep(20);
    }
}

static bool connect(const wb_seat *seat, const void *id) {
    const wb_device *device = devices.device;
    const bool has_queue = device->backend->native_queue(device->context, devices.queue) != NULL;
    devices.state = has_queue ? devices.transport->start(seat, id) : NULL;
    if (devices.state && settle() == WB_OK) return true;
    wb_ranks_tell();
    return false;
}

bool wb_ranks_join_devices(const char *name, const wb_distributed_desc *desc, const wb_seat *seat,
                           double timeout) {
    place own = {.failure = ""};
    devices.rank = seat->rank, devices.timeout = timeout;
    const bool is_ready = prepare(name, desc, seat);
    if (seat->size == 1) return is_ready;
    describe(&own, is_ready && make_id(&own));
    place *all = exchange(&own, seat->size);
    const bool has_joined = all && check_all(all, seat->size) && connect(seat, all[0].id);
    wb_release(all);
    if (!has_joined) {
        if (devices.state) devices.transport->stop(devices.state, false);
        devices.state = NULL, devices.transport = NULL;
    }
    return has_joined;
}

void wb_ranks_leave_devices(void) {
    if (devices.state) devices.transport->stop(devices.state, true);
    devices.state = NULL;
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

static char *address_of(wb_memory m) { return (char *)m.handle + m.offset_bytes; }

/* The root of a reduction has the result, the others what they gave. */
static wb_status keep_own(const wb_collective *c, wb_memory from, wb_memory to) {
    const wb_device *device = devices.device;
    const size_t bytes = (size_t)c->count * wb_dtype_size((wb_dtype)c->dtype);
    if (c->kind != WB_COLLECTIVE_REDUCE || c->root == devices.rank) return WB_OK;
    return device->backend->copy(device->context, devices.queue, WB_COPY_LOCAL, to, from, bytes);
}

static wb_status queue_up(const wb_collective *c, wb_memory from, wb_memory to) {
    static const wb_device_reduction reductions[] = {[WB_REDUCE_SUM] = WB_DEVICE_SUM,
                                                     [WB_REDUCE_MAX] = WB_DEVICE_MAX,
                                                     [WB_REDUCE_MIN] = WB_DEVICE_MIN};
    const wb_device *device = devices.device;
    if (c->count == 0) return WB_OK;
    void *queue = device->backend->native_queue(device->context, devices.queue);
    if (!queue) return wb_error_status();
    const wb_device_collective what = {.kind = (wb_collective_kind)c->kind,
                                       .reduction = reductions[c->reduction],
                                       .dtype = (wb_dtype)c->dtype,
                                       .root = c->root,
                                       .count = c->count,
                                       .from = address_of(from),
                                       .to = address_of(to)};
    wb_status status = keep_own(c, from, to);
    if (status == WB_OK) status = devices.transport->run(devices.state, &what, queue);
    return status == WB_OK ? settle() : status;
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
                         "distributed: a collective of rank %d on %s has not come to its end for "
                         "%g s (WEBER_TIMEOUT)",
                         devices.rank, wb_device_name(device), devices.timeout);
    return status;
}

/* The device is given up first: who waits for it finds that out when the wait ends. */
void wb_ranks_abort_devices(bool has_lost) {
    if (!devices.state) return;
    if (has_lost) (void)wb_device_note(devices.device, WB_ERROR_DEVICE);
    devices.transport->stop(devices.state, false);
    devices.state = NULL;
}
