/* NCCL and, with WB_HIP, RCCL, which has the same functions under the same names and numbers:
 * transport_nccl.so, transport_rccl.so. Own declarations (nccl.h 2.14 and later), so that neither
 * headers nor the library are needed to build.
 *
 * Communicators do not block: poll asks whether a call has finished. Only the end of a whole group
 * waits for other ranks. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <weber/transport.h>

#include "../common/library.h"

/* ---- the library ---- */

enum {
    NCCL_SUCCESS = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_OLDEST = 21400, /* 2.14: communicators that do not block */
};

typedef struct nccl_id {
    char internal[WB_GROUP_ID_BYTES];
} nccl_id; /* given by value */

typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, unused;
} nccl_config; /* of 2.14; later ones are longer, and take this as well */

typedef void *nccl_comm, *nccl_stream;

/* X(result, name, parameters) */
#define NCCL_LIST(X)                                                                               \
    X(int, GetVersion, (int *version))                                                             \
    X(int, GetUniqueId, (nccl_id * id))                                                            \
    X(const char *, GetErrorString, (int code))                                                    \
    X(const char *, GetLastError, (nccl_comm comm))                                                \
    X(int, CommInitRankConfig,                                                                     \
      (nccl_comm * comm, int ranks, nccl_id id, int rank, nccl_config *config))                    \
    X(int, CommFinalize, (nccl_comm comm))                                                         \
    X(int, CommDestroy, (nccl_comm comm))                                                          \
    X(int, CommAbort, (nccl_comm comm))                                                            \
    X(int, CommGetAsyncError, (nccl_comm comm, int *code))                                         \
    X(int, GroupStart, (void))                                                                     \
    X(int, GroupEnd, (void))                                                                       \
    X(int, Send,                                                                                   \
      (const void *from, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream))    \
    X(int, Recv, (void *to, size_t count, int type, int peer, nccl_comm comm, nccl_stream stream)) \
    X(int, Broadcast,                                                                              \
      (const void *from, void *to, size_t count, int type, int root, nccl_comm comm,               \
       nccl_stream stream))                                                                        \
    X(int, AllGather,                                                                              \
      (const void *from, void *to, size_t count, int type, nccl_comm comm, nccl_stream stream))

static struct {
#define X(result, name, parameters) result(*name) parameters;
    NCCL_LIST(X)
#undef X
} nccl;

static const wb_symbol symbols[] = {
#define X(result, name, parameters)                                                                \
    {"nccl" #name, (size_t)((const char *)&nccl.name - (const char *)&nccl)},
    NCCL_LIST(X)
#undef X
};

#ifdef WB_HIP
#define NAME "RCCL"
static const char backend[] = "AMDGPU";
static const char *const files[] = {"librccl.so.1", "librccl.so", NULL};
static const wb_library library = {
    "WEBER_RCCL_LIBRARY", files,
    "there is no librccl.so.1: RCCL is not installed (Debian: librccl1; ROCm: rccl)"};
#else
#define NAME "NCCL"
static const char backend[] = "CUDA";
static const char *const files[] = {"libnccl.so.2", "libnccl.so", NULL};
static const wb_library library = {
    "WEBER_NCCL_LIBRARY", files,
    "there is no libnccl.so.2: NCCL is not installed (Debian: libnccl2, of NVIDIA's archive)"};
#endif

static const wb_host *host;

/* 22809 is 2.28.9. */
static bool check_version(char *reason, size_t reason_bytes) {
    int version = 0;
    const int code = nccl.GetVersion(&version);
    if (code == NCCL_SUCCESS && version >= NCCL_OLDEST) return true;
    if (code != NCCL_SUCCESS)
        (void)snprintf(reason, reason_bytes, "ncclGetVersion failed: %s",
                       nccl.GetErrorString(code));
    else
        (void)snprintf(reason, reason_bytes, "this is " NAME " %d.%d, but 2.14 or later is needed",
                       version / (version < 10000 ? 1000 : 10000),
                       version / 100 % (version < 10000 ? 10 : 100));
    return false;
}

static bool load(char *reason, size_t reason_bytes) {
    static bool is_there;
    const char *missing = NULL;
    if (is_there) return true;
    void *handle = wb_library_open(&library, reason, reason_bytes);
    if (!handle) return false;
    if (!wb_library_find(handle, symbols, sizeof symbols / sizeof *symbols, &nccl, &missing)) {
        (void)snprintf(reason, reason_bytes,
                       "the library has no %s: " NAME " 2.14 or later is needed", missing);
        return false;
    }
    return is_there = check_version(reason, reason_bytes);
}

/* ---- errors ---- */

/* The library's last error message: about the communicator or, with NULL, about the process. */
static wb_status fail(const char *call, int code, nccl_comm comm) {
    const char *text = nccl.GetErrorString(code), *more = nccl.GetLastError(comm);
    const bool has_more = more && *more;
    return host->fail(WB_ERROR_LOST, "distributed: nccl%s failed: %s%s%s", call,
                      text ? text : "unknown error", has_more ? ": " : "", has_more ? more : "");
}

/* ---- a group ---- */

typedef struct state {
    nccl_comm comm;
    int rank, size;
    const char *call; /* the last one, which may go on */
} state;

static wb_status new_id(void *id) {
    nccl_id made;
    const int code = nccl.GetUniqueId(&made);
    if (code != NCCL_SUCCESS) return fail("GetUniqueId", code, NULL);
    memcpy(id, &made, sizeof made);
    return WB_OK;
}

static bool is_begun(int code) { return code == NCCL_SUCCESS || code == NCCL_IN_PROGRESS; }

static void *start(const wb_seat *seat, const void *id) {
    nccl_config config = {.size = sizeof config, .magic = 0xcafebeefu, .version = NCCL_OLDEST};
    state *s = host->alloc(sizeof *s);
    if (!s) return NULL;
    nccl_id given;
    memcpy(&given, id, sizeof given);
    s->rank = seat->rank, s->size = seat->size;
    s->call = "CommInitRankConfig";
    const int code = nccl.CommInitRankConfig(&s->comm, seat->size, given, seat->rank, &config);
    if (is_begun(code) && s->comm) return s;
    (void)fail(s->call, code, NULL);
    host->release(s);
    return NULL;
}

static wb_status poll(void *of, bool *goes_on) {
    const state *s = of;
    int code = NCCL_SUCCESS;
    const int asked = nccl.CommGetAsyncError(s->comm, &code);
    *goes_on = code == NCCL_IN_PROGRESS;
    if (asked != NCCL_SUCCESS) return fail("CommGetAsyncError", asked, s->comm);
    return is_begun(code) ? WB_OK : fail(s->call, code, s->comm);
}

enum { NCCL_BYTES = 1 }; /* the type of bytes */

/* One group, so that all calls are under way at once. */
static int exchange(state *s, const wb_device_move *m, void *queue) {
    const char *from = m->from;
    char *to = m->to;
    s->call = "GroupStart";
    int code = nccl.GroupStart();
    if (code != NCCL_SUCCESS) return code;
    for (int i = 0; is_begun(code) && i < s->size; i++) {
        const size_t r = (size_t)((s->rank + i) % s->size); /* so partners differ */
        s->call = "Send";
        code = nccl.Send(from + r * m->from_stride, m->bytes, NCCL_BYTES, (int)r, s->comm, queue);
        if (!is_begun(code)) break;
        s->call = "Recv";
        code = nccl.Recv(to + r * m->to_stride, m->bytes, NCCL_BYTES, (int)r, s->comm, queue);
    }
    const int end = nccl.GroupEnd(); /* in any case */
    if (!is_begun(code)) return code;
    s->call = "GroupEnd";
    return end;
}

static wb_status move(void *of, const wb_device_move *m, void *queue) {
    state *s = of;
    int code;
    if (m->kind == WB_MOVE_EXCHANGE)
        code = exchange(s, m, queue);
    else if (m->kind == WB_MOVE_GATHER) {
        s->call = "AllGather";
        code = nccl.AllGather(m->from, m->to, m->bytes, NCCL_BYTES, s->comm, queue);
    } else {
        s->call = "Broadcast";
        code = nccl.Broadcast(m->from, m->to, m->bytes, NCCL_BYTES, m->root, s->comm, queue);
    }
    return is_begun(code) ? WB_OK : fail(s->call, code, s->comm);
}

/* All ranks call this; a rank that does not is not waited for long. */
static bool finalize(const state *s) {
    enum { MOST_LOOKS = 5000 };
    int code = nccl.CommFinalize(s->comm);
    for (int i = 0; code == NCCL_IN_PROGRESS && i < MOST_LOOKS; i++) {
        const struct timespec moment = {0, 1000000};
        if (nccl.CommGetAsyncError(s->comm, &code) != NCCL_SUCCESS) return false;
        if (code == NCCL_IN_PROGRESS) (void)nanosleep(&moment, NULL);
    }
    return code == NCCL_SUCCESS;
}

static void stop(void *of, bool is_whole) {
    state *s = of;
    if (is_whole && finalize(s))
        (void)nccl.CommDestroy(s->comm);
    else
        (void)nccl.CommAbort(s->comm);
    host->release(s);
}

/* ---- the table ---- */

static const wb_device_transport table = {.abi = WB_TRANSPORT_ABI,
                                          .size_bytes = sizeof table,
                                          .name = NAME,
                                          .backend = backend,
                                          .load = load,
                                          .new_id = new_id,
                                          .start = start,
                                          .move = move,
                                          .poll = poll,
                                          .stop = stop};

__attribute__((visibility("default"))) wb_device_transport_fn weber_device_transport;
const wb_device_transport *weber_device_transport(const wb_host *of) {
    host = of;
    return of->abi == WB_PLUGIN_ABI ? &table : NULL;
}
