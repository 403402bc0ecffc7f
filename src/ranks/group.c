/* The group: joining it, once for the process; collectives over the transport; and failures of
 * ranks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "platform/locks.h"
#include "ranks/compare.h"
#include "ranks/greeting.h"
#include "ranks/transport.h"

enum { TEXT_BYTES = WB_MESSAGE_BYTES };

static struct {
    bool is_joined;
    bool cannot_join; /* joining has failed, and is not tried a second time */
    wb_seat seat;
    const wb_transport *transport; /* NULL: a group of one */
    void *state;
    pid_t process;
    pthread_t thread; /* the thread that made the first collective */
    bool has_thread;
    int64_t made;            /* collectives */
    char asked[16];          /* the transport that wb_distributed_initialize was given */
    _Atomic bool has_failed; /* for ever */
    bool has_agreed;         /* all ranks have seen the same failure, and no message is under way */
    bool differs_in_terms;   /* that failure is that steps differ; the message does not say how */
    char failure[TEXT_BYTES]; /* why */
    void (*finish)(void);     /* before it leaves; or NULL */
    const void *all[WB_MOST_RANKS];
} group = {.seat = {.size = 1, .local_size = 1}};

/* ---- joining ---- */

static const char *known[] = {"local", "MPI", "NCCL", "RCCL"};

/* The name as it is known, whatever its case; NULL stays. False with an error. */
static bool find_name(const char **asked) {
    for (size_t i = 0; *asked && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(*asked, known[i]) == 0) return *asked = known[i], true;
    if (*asked)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_distributed_initialize: there is no transport \"%s\"; it can be "
                      "\"local\", \"MPI\", \"NCCL\", \"RCCL\" or NULL",
                      *asked);
    return !*asked;
}

/* The plugin for a starter, and what brings it. */
static const struct {
    const char *starter, *file, *package;
} plugins[] = {
    {"Open MPI", "transport_openmpi.so", "libopenmpi3"},
    {"MPICH", "transport_mpich.so", "libmpich12"},
};

/* The MPI that the program is linked with; else the MPI of the launcher that started it. */
static const char *implementation(const wb_seat *seat) {
    union {
        void *symbol;
        int (*function)(char *, int *);
    } version = {.symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version")};
    char text[8192] = ""; /* MPICH's, the longest */
    int length;
    if (!version.symbol || version.function(text, &length) != 0) return seat->starter;
    return strncmp(text, "Open MPI", 8) == 0 ? "Open MPI" : "MPICH";
}

/* Under weber run any transport may be asked for: its own is used. */
static const wb_transport *choose(const wb_seat *seat, const char *asked) {
    if (seat->run) return &wb_transport_local;
    char reason[512] = "";
    const char *name = implementation(seat);
    size_t i = 0;
    while (i + 1 < sizeof plugins / sizeof *plugins && strcmp(plugins[i].starter, name) != 0) i++;
    const wb_transport *transport = asked && strcmp(asked, "local") == 0
                                        ? NULL
                                        : wb_transport_open(plugins[i].file, reason, sizeof reason);
    if (transport) return transport;
    if (!reason[0]) (void)snprintf(reason, sizeof reason, "\"local\" needs weber run");
    (void)wb_fail(WB_ERROR_UNSUPPORTED,
                  "distributed: %s started rank %d of %d, but its transport cannot be used: %s "
                  "(Debian: %s); weber run -n %d starts the program without MPI",
                  seat->starter, seat->rank, seat->size, reason, plugins[i].package, seat->size);
    return NULL;
}

static bool is_own_thread(void) {
    return group.has_thread && pthread_equal(group.thread, pthread_self());
}

static void leave(void) {
    if (group.transport && group.process == getpid()) {
        if (group.finish && is_own_thread() && !atomic_load(&group.has_failed)) group.finish();
        wb_ranks_end_carrier();
        wb_ranks_leave_devices();
        group.transport->stop(group.state, !atomic_load(&group.has_failed) || group.has_agreed);
    }
    group.transport = NULL;
}

wb_status wb_ranks_exchange(const void *own, size_t bytes, const void **all) {
    return group.transport->gather(group.state, -1, own, bytes, all);
}

size_t wb_ranks_piece_bytes(void) { return group.transport->piece_bytes(group.state); }

wb_status wb_ranks_look(void) {
    return group.transport->look ? group.transport->look(group.state) : WB_OK;
}

static wb_status compare(const wb_collective *c);

void wb_ranks_tell(void) {
    if (group.transport->fail) group.transport->fail(group.state, wb_error_text());
}

/* All ranks have asked for it, or all fail. */
static bool join_devices(const char *name, const wb_distributed_desc *desc, double timeout) {
    const wb_collective joining = {.number = -1, .kind = WB_COLLECTIVE_JOIN};
    if (!wb_is_device_transport(name)) return true;
    return (group.seat.size == 1 || compare(&joining) == WB_OK) &&
           wb_ranks_join_devices(name, desc, &group.seat, timeout);
}

static bool give_up_joining(void) {
    group.cannot_join = true;
    (void)snprintf(group.failure, TEXT_BYTES, "%s", wb_error_text());
    return false;
}

static bool start(const char *asked, const wb_distributed_desc *desc) {
    wb_seat seat;
    double timeout;
    wb_secret secret;
    if (group.cannot_join)
        return wb_fail(WB_ERROR_LOST, "distributed: the group was not joined: %s", group.failure) ==
               WB_OK;
    if (!wb_seat_read(&seat) || !wb_timeout_read(&timeout) || !wb_secret_read(&secret))
        return false;
    if (seat.size > WB_MOST_RANKS) {
        (void)wb_fail(WB_ERROR_UNSUPPORTED, "distributed: at most %d ranks, got %d", WB_MOST_RANKS,
                      seat.size);
        return false;
    }
    const wb_transport *transport = seat.size > 1 ? choose(&seat, asked) : NULL;
    if (seat.size > 1 && !transport) return false;
    void *state = transport ? transport->start(&seat, timeout) : NULL;
    if (transport && !state) return give_up_joining();
    group.transport = transport, group.state = state;
    group.seat = seat;
    group.process = getpid();
    if ((transport && wb_ranks_greet(&secret, seat.rank, seat.size) != WB_OK) ||
        !join_devices(asked, desc, timeout)) {
        if (transport) transport->stop(state, false);
        group.transport = NULL;
        return transport ? give_up_joining() : false;
    }
    if (transport) wb_ranks_share_cores(&seat), wb_seat_mark();
    group.is_joined = true;
    if (asked) (void)snprintf(group.asked, sizeof group.asked, "%s", asked);
    if (transport) (void)atexit(leave);
    return true;
}

/* A child of fork is not a rank of its own. */
static bool check_process(const char *function) {
    if (!group.transport || group.process == getpid()) return true;
    (void)wb_fail(WB_ERROR_UNSUPPORTED,
                  "%s: this process is a child of rank %d, made by fork; only the rank itself "
                  "takes part in the group",
                  function, group.seat.rank);
    return false;
}

static bool join(const char *function, const char *asked, const wb_distributed_desc *desc) {
    wb_lock_take(WB_LOCK_GROUP);
    const bool is_in = (group.is_joined || start(asked, desc)) && check_process(function);
    wb_lock_give(WB_LOCK_GROUP);
    return is_in;
}

/* WEBER_TRANSPORT counts if the program asks for no transport. */
static bool join_any(const char *function, const char *asked, const wb_distributed_desc *desc) {
    const char *variable = getenv("WEBER_TRANSPORT");
    if (!asked && variable && *variable) asked = variable;
    return find_name(&asked) && join(function, asked, desc);
}

bool wb_ranks_join(const char *function) {
    const wb_distributed_desc desc = WB_DESC(distributed, NULL);
    return join_any(function, NULL, &desc);
}
int wb_ranks_count(void) { return group.seat.size; }
int wb_ranks_own(void) { return group.seat.rank; }

static const char *backend_name(void) {
    const char *devices = wb_ranks_device_transport();
    return devices ? devices : group.transport ? group.transport->name : "none";
}

static bool have_devices_joined(const char *asked) {
    const char *by = wb_ranks_device_transport();
    if (!by && group.seat.size == 1) by = group.asked; /* which carries nothing */
    return by && strcmp(by, asked) == 0;
}

/* An earlier call, as wb_rank, may have joined the group without devices, which then join it before
 * anything has been carried. */
static bool join_devices_late(const char *asked, const wb_distributed_desc *desc) {
    double timeout;
    if (!wb_is_device_transport(asked) || have_devices_joined(asked)) return true;
    if (wb_ranks_device_transport() || group.made > 0) {
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "wb_distributed_initialize: \"%s\" must be asked for before the first "
                      "collective, but the group has made %lld by \"%s\"",
                      asked, (long long)group.made, backend_name());
        return false;
    }
    wb_lock_take(WB_LOCK_GROUP);
    const bool joined = wb_timeout_read(&timeout) && join_devices(asked, desc, timeout);
    wb_lock_give(WB_LOCK_GROUP);
    if (!joined) wb_ranks_fail();
    return joined;
}

wb_status wb_distributed_initialize_make(wb_distributed_desc desc) {
    static const char function[] = "wb_distributed_initialize";
    if (!wb_check_start(function, desc.start_)) return WB_ERROR_ARGUMENT;
    if (desc.device_count < 0 || (desc.device_count > 0 && !desc.devices))
        return wb_fail(WB_ERROR_ARGUMENT,
                       "wb_distributed_initialize: .devices must have .device_count numbers, got "
                       "%d%s",
                       desc.device_count, desc.devices ? "" : " and NULL");
    if (!find_name(&desc.transport)) return WB_ERROR_ARGUMENT;
    if (!join_any(function, desc.transport, &desc) || !join_devices_late(desc.transport, &desc))
        return wb_error_status();
    if (desc.transport) (void)snprintf(group.asked, sizeof group.asked, "%s", desc.transport);
    return WB_OK;
}

bool wb_distributed_initialized(void) { return group.is_joined; }

const char *wb_get_distributed_backend(const char *transport) {
    if (transport && strcasecmp(transport, group.asked) != 0)
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "Backend `%s` is not initialized. Call "
                            "`wb_distributed_initialize(\"%s\")` first.",
                            transport, transport);
    return wb_ranks_join("wb_get_distributed_backend") ? backend_name() : NULL;
}

static int told(const char *function, const int *number, int otherwise) {
    return wb_ranks_join(function) ? *number : otherwise;
}
int wb_rank(void) { return told("wb_rank", &group.seat.rank, 0); }
int wb_total_workers(void) { return told("wb_total_workers", &group.seat.size, 1); }
int wb_local_rank(void) { return told("wb_local_rank", &group.seat.local_rank, 0); }
int wb_local_workers(void) { return told("wb_local_workers", &group.seat.local_size, 1); }

/* ---- failures ---- */

/* The group is given up, with the pending error as its reason; the first one stays. True if this is
 * the first. Both the carrier's thread and the program's may come here. */
static bool give_up(void) {
    wb_lock_take(WB_LOCK_GROUP);
    const bool is_first = !atomic_load(&group.has_failed);
    if (is_first) (void)snprintf(group.failure, TEXT_BYTES, "%s", wb_error_text());
    atomic_store(&group.has_failed, true);
    wb_lock_give(WB_LOCK_GROUP);
    return is_first;
}

void wb_ranks_fail(void) {
    if (!group.transport || group.process != getpid() || !give_up()) return;
    if (group.transport->fail) group.transport->fail(group.state, group.failure);
}

void wb_ranks_fail_alike(void) {
    group.has_agreed = true;
    (void)give_up();
}

bool wb_ranks_may_explain(void) {
    const bool may = group.differs_in_terms && group.transport && group.process == getpid();
    group.differs_in_terms = false;
    return may;
}

bool wb_ranks_have_failed(void) { return atomic_load(&group.has_failed); }

static wb_status refuse_failed(void) {
    return wb_fail(WB_ERROR_LOST, "distributed: the group of ranks was given up: %s",
                   group.failure);
}

/* ---- what the ranks compare ---- */

/* All ranks see the same list, so all fail alike. */
static wb_status compare(const wb_collective *c) {
    wb_status status = group.transport->gather(group.state, -1, c, sizeof *c, group.all);
    if (status != WB_OK) return status;
    status = wb_collectives_check(group.all, group.seat.size);
    group.has_agreed = group.has_agreed || status != WB_OK;
    group.differs_in_terms =
        status != WB_OK && wb_collectives_have_terms(group.all, group.seat.size);
    return status;
}

/* ---- collectives ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t element_bytes(const wb_collective *c) { return wb_dtype_size((wb_dtype)c->dtype); }
static int64_t most_elements(const wb_collective *c) {
    return (int64_t)(group.transport->piece_bytes(group.state) / element_bytes(c));
}

/* Each rank reduces its part of a piece; `part` elements each, the last ones perhaps beyond the
 * end. */
static wb_status reduce_part(const wb_collective *c, const char *own, int64_t part, void *to) {
    const wb_status status =
        group.transport->scatter(group.state, own, (size_t)part * element_bytes(c), group.all);
    if (status == WB_OK)
        wb_reduce_parts((wb_dtype)c->dtype, (wb_reduction)c->reduction, group.seat.size, group.all,
                        part, to);
    return status;
}

/* A piece of n elements: each rank reduces its part, and then all ranks get all parts. room is for
 * the piece, filled up to whole parts, and one part. */
static wb_status allreduce_piece(const wb_collective *c, const char *own, int64_t n, char *room,
                                 char *to) {
    const int size = group.seat.size;
    const size_t bytes = element_bytes(c);
    const int64_t part = (n + size - 1) / size;
    char *reduced = room + (size_t)(part * size) * bytes;
    if (part * size > n) own = memcpy(room, own, (size_t)n * bytes);
    wb_status status = group.transport->scatter(group.state, own, (size_t)part * bytes, group.all);
    if (status != WB_OK) return status;
    if (group.transport->next) reduced = group.transport->next(group.state);
    wb_reduce_parts((wb_dtype)c->dtype, (wb_reduction)c->reduction, size, group.all, part, reduced);
    status = group.transport->gather(group.state, -1, reduced, (size_t)part * bytes, group.all);
    for (int r = 0; status == WB_OK && r < size && r * part < n; r++)
        memcpy(to + (size_t)(r * part) * bytes, group.all[r],
               (size_t)least(part, n - r * part) * bytes);
    return status;
}

/* Pieces with room for a whole number of parts. */
static wb_status allreduce(const wb_collective *c, const char *from, char *to) {
    const int size = group.seat.size;
    const size_t bytes = element_bytes(c);
    const int64_t most = most_elements(c) / size;
    const int64_t piece = least(most, (c->count + size - 1) / size) * size;
    char *room = wb_alloc_aligned((size_t)(piece + piece / size) * bytes);
    wb_status status = room ? WB_OK : WB_ERROR_MEMORY;
    for (int64_t at = 0; status == WB_OK && at < c->count; at += piece)
        status = allreduce_piece(c, from + (size_t)at * bytes, least(piece, c->count - at), room,
                                 to + (size_t)at * bytes);
    wb_release_aligned(room);
    return status;
}

/* Every rank takes part; only the root's result differs from what was given. */
static wb_status reduce(const wb_collective *c, const char *from, char *to) {
    const wb_status status = allreduce(c, from, to);
    if (status == WB_OK && c->root != group.seat.rank)
        memcpy(to, from, (size_t)c->count * element_bytes(c));
    return status;
}

/* Gives all ranks the root's elements or, with root -1, those of every rank, one after another. */
static wb_status share(const wb_collective *c, int root, const char *from, char *to) {
    const size_t bytes = element_bytes(c);
    const int64_t piece = most_elements(c);
    const int first = root < 0 ? 0 : root, end = root < 0 ? group.seat.size : root + 1;
    wb_status status = WB_OK;
    for (int64_t at = 0; status == WB_OK && at < c->count; at += piece) {
        const size_t n = (size_t)least(piece, c->count - at) * bytes;
        status =
            group.transport->gather(group.state, root, from + (size_t)at * bytes, n, group.all);
        for (int r = first; status == WB_OK && r < end; r++)
            memcpy(to + (size_t)((r - first) * c->count + at) * bytes, group.all[r], n);
    }
    return status;
}

static wb_status bcast(const wb_collective *c, const char *from, char *to) {
    return share(c, c->root, from, to);
}

static wb_status allgather(const wb_collective *c, const char *from, char *to) {
    return share(c, -1, from, to);
}

/* The parts of the ranks are far apart: a piece takes a stretch of each part. */
static wb_status reduce_scatter(const wb_collective *c, const char *from, char *to) {
    const int size = group.seat.size;
    const size_t bytes = element_bytes(c);
    const int64_t own = c->count / size, stretch = least(most_elements(c) / size, own);
    char *room = wb_alloc((size_t)(stretch * size) * bytes + 1);
    wb_status status = room ? WB_OK : WB_ERROR_MEMORY;
    for (int64_t at = 0; status == WB_OK && at < own; at += stretch) {
        const int64_t n = least(stretch, own - at);
        for (int r = 0; r < size; r++)
            memcpy(room + (size_t)(r * n) * bytes, from + (size_t)(r * own + at) * bytes,
                   (size_t)n * bytes);
        status = reduce_part(c, room, n, to + (size_t)at * bytes);
    }
    wb_release(room);
    return status;
}

static wb_status carry_out(const wb_collective *c, const void *from, void *to) {
    static wb_status (*const functions[])(const wb_collective *, const char *, char *) = {
        allreduce, reduce, bcast, allgather, reduce_scatter};
    if (c->kind == WB_COLLECTIVE_BARRIER) return WB_OK; /* the comparison was one */
    return functions[c->kind](c, from, to);
}

int64_t wb_ranks_number(void) {
    wb_lock_take(WB_LOCK_GROUP);
    if (!group.has_thread) group.thread = pthread_self(), group.has_thread = true;
    const int64_t number = is_own_thread() ? group.made++ : -1;
    wb_lock_give(WB_LOCK_GROUP);
    if (number < 0)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "distributed: collectives must be made by one thread, the one that made the "
                      "first");
    return number;
}

void wb_ranks_before_leaving(void (*finish)(void)) { group.finish = finish; }

static wb_status check_group(void) {
    if (!check_process("distributed")) return WB_ERROR_UNSUPPORTED;
    if (atomic_load(&group.has_failed)) return refuse_failed();
    if (!group.transport)
        return wb_fail(WB_ERROR_LOST, "distributed: rank %d is ending and has left the group",
                       group.seat.rank);
    return WB_OK;
}

wb_status wb_ranks_carry_out(const wb_collective *c, const void *from, void *to) {
    if (check_group() != WB_OK) return wb_error_status();
    wb_status status = compare(c);
    if (status == WB_OK) status = carry_out(c, from, to);
    if (status == WB_ERROR_MEMORY) wb_ranks_fail();
    if (status != WB_OK) (void)give_up();
    return status;
}

wb_status wb_ranks_carry_on_device(const wb_collective *c, wb_memory from, wb_memory to,
                                   void *ready, void **done) {
    if (check_group() != WB_OK) return wb_error_status();
    const wb_status status = compare(c);
    return status == WB_OK ? wb_ranks_post(c, from, to, ready, done) : status;
}

/* If all ranks have found the same failure, no collective is half done. */
void wb_ranks_give_up_devices(bool has_lost) {
    if (group.has_agreed && !has_lost) {
        (void)give_up();
        return;
    }
    wb_ranks_fail();
    (void)give_up();
    wb_ranks_abort_devices(has_lost);
}
