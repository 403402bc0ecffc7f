/* Stands for NCCL, and with WB_HIP for RCCL: the functions that backends/nccl uses, over memory
 * that the processes share and the fake driver's streams. It complains (a line, and status 3 at the
 * process's end) about what the library's manual forbids: collectives that differ between ranks, a
 * call while another one goes on, memory that overlaps, a communicator that is left behind or used
 * after its end; and about a group that is not one message of one size to and from each rank, which
 * is all that it knows.
 *
 * Variables: FAKE_NCCL_FAIL=function:n:code, the n-th call of the function (AllGather, ...) fails
 * with that code, of CommGetAsyncError for ever after; FAKE_NCCL_VERSION (22809). */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"
#include "on_device.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, UNHANDLED, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };
enum { MOST_RANKS = 8, WINDOW_BYTES = 1 << 20, ID_BYTES = 128 };
enum { BYTES = 1 }; /* the type */

typedef enum kind { EXCHANGE, BROADCAST, ALLGATHER } kind;

typedef struct id {
    char internal[ID_BYTES];
} id;

typedef struct config {
    size_t size;
    unsigned magic, version;
    int blocking, unused;
} config;

/* ---- complaints, errors on demand ---- */

static bool has_complained;

static void complain(const char *text) {
    has_complained = true;
    (void)fprintf(stderr, "fake NCCL: %s\n", text);
}

static int communicators;

__attribute__((destructor)) static void at_the_end(void) {
    if (communicators) complain("a communicator was left behind");
    if (has_complained) _exit(3);
}

/* What the call has to fail with. */
static int failure_of(const char *function) {
    static char name[64];
    static long left;
    static int code = -1;
    const char *text = getenv("FAKE_NCCL_FAIL");
    if (code < 0 && (!text || sscanf(text, "%63[^:]:%ld:%d", name, &left, &code) != 3)) code = 0;
    if (code == 0 || strcmp(name, function) != 0) return SUCCESS;
    if (left > 0) left--;
    const bool for_ever = strcmp(name, "CommGetAsyncError") == 0;
    if (left > 0) return SUCCESS;
    const int result = code;
    if (!for_ever) code = 0;
    return result;
}

/* ---- communicators ---- */

typedef struct slot {
    _Alignas(64) _Atomic uint32_t step;
    uint64_t what; /* a hash of the collective that it takes part in */
} slot;

typedef struct shared {
    _Atomic uint32_t joined, gone;
    slot slots[MOST_RANKS];
    char windows[MOST_RANKS][WINDOW_BYTES];
} shared;

typedef struct communicator {
    int rank, size;
    char name[64];
    shared *shared;
    uint32_t step;
    _Atomic bool is_aborted;
    _Atomic int error;
    bool has_joined, is_finalized, is_gone;
    struct work *begun; /* it goes on the stream when it is asked for */
    pthread_mutex_t mutex;
    struct communicator *older; /* of all there ever were: one that is used too long is known */
} communicator;

static communicator *newest;

typedef struct work {
    communicator *c;
    kind kind;
    int root;
    size_t count, at, n;          /* bytes: for each rank; before this piece; of this piece */
    const char *from[MOST_RANKS]; /* for each rank; of a collective the first */
    char *to[MOST_RANKS];
    void *stream;
    bool is_given; /* this piece */
    bool is_taken;
} work;

/* ---- one collective, piece by piece ---- */

static uint64_t hash_of(const work *w) {
    const uint64_t parts[] = {(uint64_t)w->kind, (uint64_t)w->root, w->count};
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) h = (h ^ parts[i]) * 1099511628211u;
    return h;
}

static char *window(const work *w, int rank) { return w->c->shared->windows[rank]; }

static void give(work *w) {
    const communicator *c = w->c;
    const int parts = w->kind == EXCHANGE ? c->size : 1;
    const size_t most = WINDOW_BYTES / (size_t)parts, left = w->count - w->at;
    w->n = left < most ? left : most;
    for (int r = 0; r < parts; r++)
        if (w->kind != BROADCAST || w->root == c->rank)
            memcpy(window(w, c->rank) + (size_t)r * w->n, w->from[r] + w->at, w->n);
    c->shared->slots[c->rank].what = hash_of(w);
    atomic_store(&c->shared->slots[c->rank].step, c->step + 1);
    w->is_given = true;
}

static void take(work *w) {
    const communicator *c = w->c;
    if (w->kind == BROADCAST) memcpy(w->to[0] + w->at, window(w, w->root), w->n);
    for (int r = 0; w->kind == ALLGATHER && r < c->size; r++)
        memcpy(w->to[0] + (size_t)r * w->count + w->at, window(w, r), w->n);
    for (int r = 0; w->kind == EXCHANGE && r < c->size; r++)
        memcpy(w->to[r] + w->at, window(w, r) + (size_t)c->rank * w->n, w->n);
    atomic_store(&c->shared->slots[c->rank].step, c->step + 2);
    w->is_taken = true;
}

static bool have_all_come(const communicator *c, uint32_t step) {
    for (int r = 0; r < c->size; r++)
        if ((int32_t)(atomic_load(&c->shared->slots[r].step) - step) < 0) return false;
    return true;
}

static bool is_alike(const communicator *c) {
    for (int r = 0; r < c->size; r++)
        if (c->shared->slots[r].what != c->shared->slots[c->rank].what) return false;
    return true;
}

/* On the stream; true: it has come to its end. */
static bool step(void *argument) {
    work *w = argument;
    communicator *c = w->c;
    for (;;) {
        if (atomic_load(&c->is_aborted)) return true;
        if (!w->is_given) give(w);
        if (!w->is_taken) {
            if (!have_all_come(c, c->step + 1)) return false;
            if (!is_alike(c)) {
                complain("the ranks' collectives differ");
                atomic_store(&c->error, INVALID_USAGE);
            }
            take(w);
        }
        if (!have_all_come(c, c->step + 2)) return false;
        c->step += 2, w->at += w->n;
        w->is_given = w->is_taken = false;
        if (w->at == w->count) return true;
    }
}

static void release(void *argument) { free(argument); }

static int queue_up(work *w) {
    static fake_host_fn *call;
    if (!call) *(void **)&call = driver_function("fake_host_call");
    return call && call(w->stream, step, release, w) == 0 ? SUCCESS : UNHANDLED;
}

/* ---- life ---- */

EXPORT int ncclGetVersion(int *version) {
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text ? atoi(text) : 22809;
    return failure_of("GetVersion");
}

EXPORT const char *ncclGetErrorString(int code) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return (unsigned)code < 8 ? texts[code] : "unknown result code";
}

EXPORT const char *ncclGetLastError(communicator *c) { return c ? "of a fake communicator" : ""; }

EXPORT int ncclGetUniqueId(id *made) {
    static int count;
    memset(made, 0, sizeof *made);
    (void)snprintf(made->internal, sizeof made->internal, "/fake-nccl-%d-%d", (int)getpid(),
                   count++);
    return failure_of("GetUniqueId");
}

static shared *share(const char *name) {
    const int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, sizeof(shared)) != 0) return NULL;
    void *memory = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

EXPORT int ncclCommInitRankConfig(communicator **made, int size, id name, int rank, config *how) {
    const int refused = failure_of("CommInitRankConfig");
    if (refused) return refused;
    if (how->size != sizeof *how || how->magic != 0xcafebeefu || how->version != 21400 ||
        how->blocking != 0 || size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
        return INVALID_ARGUMENT;
    communicator *c = calloc(1, sizeof *c);
    if (!c) return SYSTEM;
    c->rank = rank, c->size = size;
    (void)snprintf(c->name, sizeof c->name, "%.60s", name.internal);
    c->shared = share(c->name);
    (void)pthread_mutex_init(&c->mutex, NULL);
    if (!c->shared) return SYSTEM;
    (void)atomic_fetch_add(&c->shared->joined, 1);
    communicators++;
    c->older = newest;
    *made = newest = c;
    return IN_PROGRESS;
}

/* One thread at a time. */
static void enter(communicator *c) {
    if (c->is_gone) complain("a communicator is used after its end");
    if (pthread_mutex_trylock(&c->mutex) == 0) return;
    complain("two threads use a communicator at a time");
    (void)pthread_mutex_lock(&c->mutex);
}

static void leave(communicator *c) { (void)pthread_mutex_unlock(&c->mutex); }

/* What was begun goes on the stream now. */
static int go_on(communicator *c) {
    if (!c->has_joined) {
        if (atomic_load(&c->shared->joined) < (uint32_t)c->size) return IN_PROGRESS;
        c->has_joined = true;
        if (c->rank == 0) (void)shm_unlink(c->name);
    }
    work *w = c->begun;
    c->begun = NULL;
    if (w && queue_up(w) != SUCCESS) atomic_store(&c->error, UNHANDLED);
    return atomic_load(&c->error);
}

EXPORT int ncclCommGetAsyncError(communicator *c, int *code) {
    enter(c);
    const int failed = failure_of("CommGetAsyncError");
    *code = failed ? failed : go_on(c);
    leave(c);
    return SUCCESS;
}

EXPORT int ncclCommFinalize(communicator *c) {
    enter(c);
    const int refused = failure_of("CommFinalize");
    c->is_finalized = !refused;
    leave(c);
    return refused ? refused : IN_PROGRESS;
}

static int end(communicator *c) {
    c->is_gone = true;
    communicators--;
    return SUCCESS;
}

EXPORT int ncclCommDestroy(communicator *c) {
    enter(c);
    if (!c->is_finalized || c->begun) complain("a communicator is destroyed that is not finalized");
    leave(c);
    return end(c);
}

EXPORT int ncclCommAbort(communicator *c) {
    atomic_store(&c->is_aborted, true);
    enter(c);
    free(c->begun);
    c->begun = NULL;
    if (!c->has_joined) (void)shm_unlink(c->name);
    leave(c);
    return end(c);
}

/* ---- collectives ---- */

static bool overlaps(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return a && b && a < b + b_bytes && b < a + a_bytes;
}

/* In place only where the manual says so. */
static void check_memory(const work *w) {
    const size_t own = w->count, taken = w->kind == ALLGATHER ? own * (size_t)w->c->size : own;
    const char *in_place = w->to[0] + (w->kind == ALLGATHER ? own * (size_t)w->c->rank : 0);
    if (w->kind != EXCHANGE && w->from[0] == in_place) return;
    for (int a = 0; a < MOST_RANKS; a++)
        for (int b = 0; b < MOST_RANKS; b++) {
            const bool meets = overlaps(w->from[a], own, w->to[b], taken) ||
                               (a != b && overlaps(w->to[a], own, w->to[b], own));
            if (meets) complain("memory overlaps");
        }
}

/* With the communicator entered. */
static int begin(const work *w) {
    communicator *c = w->c;
    if (c->begun || !c->has_joined) complain("a call while another one goes on");
    if (c->is_finalized) complain("a collective behind the end");
    check_memory(w);
    c->begun = malloc(sizeof *w);
    if (c->begun) *c->begun = *w;
    return IN_PROGRESS;
}

/* ---- messages ---- */

static _Thread_local struct {
    int depth;
    bool has_failed;
    work work;
} group;

EXPORT int ncclGroupStart(void) {
    const int refused = failure_of("GroupStart");
    if (!refused && group.depth++ == 0) group.has_failed = false, group.work.c = NULL;
    return refused;
}

/* A message of the open group. */
static int add(const char *function, communicator *c, size_t count, int type, int peer,
               void *stream) {
    const int refused = failure_of(function);
    if (group.depth == 0 || type != BYTES || peer < 0 || peer >= c->size || c->is_gone) {
        complain("a message that is none");
        return INVALID_USAGE;
    }
    if (!group.work.c)
        group.work = (work){.c = c, .kind = EXCHANGE, .count = count, .stream = stream};
    if (group.work.c != c || group.work.count != count || group.work.stream != stream)
        complain("messages of a group differ");
    group.has_failed = group.has_failed || refused;
    return refused;
}

EXPORT int ncclSend(const void *from, size_t count, int type, int peer, communicator *c,
                    void *stream) {
    const int refused = add("Send", c, count, type, peer, stream);
    if (refused) return refused;
    if (group.work.from[peer]) complain("two messages to one rank");
    group.work.from[peer] = from;
    return SUCCESS;
}

EXPORT int ncclRecv(void *to, size_t count, int type, int peer, communicator *c, void *stream) {
    const int refused = add("Recv", c, count, type, peer, stream);
    if (refused) return refused;
    if (group.work.to[peer]) complain("two messages from one rank");
    group.work.to[peer] = to;
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void) {
    const int refused = failure_of("GroupEnd");
    if (group.depth-- != 1) complain("the end of a group that is none");
    communicator *c = group.work.c;
    if (refused || group.has_failed || !c) return refused;
    for (int r = 0; r < c->size; r++)
        if (!group.work.from[r] || !group.work.to[r]) complain("a rank has no message");
    enter(c);
    const int code = begin(&group.work);
    leave(c);
    return code;
}

/* ---- the others ---- */

static int begin_alone(const char *function, int type, work w) {
    if (group.depth || type != BYTES) complain("a collective in a group, or not of bytes");
    enter(w.c);
    const int refused = failure_of(function), code = refused ? refused : begin(&w);
    leave(w.c);
    return code;
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                         communicator *c, void *stream) {
    return begin_alone("Broadcast", type,
                       (work){.c = c,
                              .kind = BROADCAST,
                              .root = root,
                              .count = count,
                              .from = {from},
                              .to = {to},
                              .stream = stream});
}

EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, communicator *c,
                         void *stream) {
    return begin_alone("AllGather", type,
                       (work){.c = c,
                              .kind = ALLGATHER,
                              .count = count,
                              .from = {from},
                              .to = {to},
                              .stream = stream});
}
