/* NCCL and, with WB_HIP, RCCL, which has the same functions under the same names and numbers:
 * transport_nccl.so, transport_rccl.so. Own declarations (nccl.h 2.14 and later), so that neither
 * headers nor the library are needed to build.
 *
 * Communicators do not block: a call that is not finished is asked after by poll. Nothing here ever
 * waits for another rank but the end of a whole group. */
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
    X(int, AllReduce,                                                                              \
      (const void *from, void *to, size_t count, int type, int op, nccl_comm comm,                 \
       nccl_stream stream))                                                                        \
    X(int, Reduce,                                                                                 \
      (const void *from, void *to, size_t count, int type, int op, int root, nccl_comm comm,       \
       nccl_stream stream))                                                                        \
    X(int, Broadcast,                                                                              \
      (const void *from, void *to, size_t count, int type, int root, nccl_comm comm,               \
       nccl_stream stream))                                                                        \
    X(int, AllGather,                                                                              \
      (const void *from, void *to, size_t count, int type, nccl_comm comm, nccl_stream stream))    \
    X(int, ReduceScatter,                                                                          \
      (const void *from, void *to, size_t count, int type, int op, nccl_comm comm,                 \
       nccl_stream stream))

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

/* The library's last words are about the communicator, or with NULL about the process. */
static wb_status fail(const char *call, int code, nccl_comm comm) {
    const char *text = nccl.GetErrorString(code), *more = nccl.GetLastError(comm);
    const bool has_more = more && *more;
    return host->fail(WB_ERROR_LOST, "distributed: nccl%s failed: %s%s%s", call,
                      text ? text : "unknown error", has_more ? ": " : "", has_more ? more : "");
}

/* ---- a group ---- */

typedef struct state {
    nccl_comm comm;
    int size;
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
    s->size = seat->size;
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

/* What is not added up goes as bytes. */
static int type_of(wb_dtype dtype) {
    enum { I8, U8, I32, U32, I64, U64, F16, F32, F64 };
    switch (dtype) {
    case WB_F32:
        return F32;
    case WB_F64:
        return F64;
    case WB_I32:
        return I32;
    case WB_I64:
        return I64;
    default:
        return U8; /* bool, too: max and min */
    }
}

enum { NCCL_BYTES = 1 }; /* the type of bytes */

static size_t bytes_of(wb_dtype dtype) {
    static const size_t bytes[] = {
#define X(NAME, name, bytes, type) bytes,
        WB_DTYPE_LIST(X)
#undef X
    };
    return bytes[dtype];
}

static wb_status run(void *of, const wb_device_collective *c, void *queue) {
    static const int ops[] = {[WB_DEVICE_SUM] = 0, [WB_DEVICE_MAX] = 2, [WB_DEVICE_MIN] = 3};
    state *s = of;
    const size_t count = (size_t)c->count, bytes = count * bytes_of(c->dtype);
    const int type = type_of(c->dtype), op = ops[c->reduction];
    int code;
    switch (c->kind) {
    case WB_COLLECTIVE_ALLREDUCE:
        s->call = "AllReduce";
        code = nccl.AllReduce(c->from, c->to, count, type, op, s->comm, queue);
        break;
    case WB_COLLECTIVE_REDUCE:
        s->call = "Reduce";
        code = nccl.Reduce(c->from, c->to, count, type, op, c->root, s->comm, queue);
        break;
    case WB_COLLECTIVE_BCAST:
        s->call = "Broadcast";
        code = nccl.Broadcast(c->from, c->to, bytes, NCCL_BYTES, c->root, s->comm, queue);
        break;
    case WB_COLLECTIVE_ALLGATHER:
        s->call = "AllGather";
        code = nccl.AllGather(c->from, c->to, bytes, NCCL_BYTES, s->comm, queue);
        break;
    default:
        s->call = "ReduceScatter";
        code =
            nccl.ReduceScatter(c->from, c->to, count / (size_t)s->size, type, op, s->comm, queue);
        break;
    }
    return is_begun(code) ? WB_OK : fail(s->call, code, s->comm);
}

/* All ranks come here, or one that does not is not waited for long. */
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
                                          .run = run,
                                          .poll = poll,
                                          .stop = stop};

__attribute__((visibility("default"))) wb_device_transport_fn weber_device_transport;
const wb_device_transport *weber_device_transport(const wb_host *of) {
    host = of;
    return of->abi == WB_PLUGIN_ABI ? &table : NULL;
}
