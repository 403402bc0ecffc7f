/* The transport "MPI". One source, compiled once for each implementation, whose constants differ
 * (mpi.h of Open MPI and of MPICH): transport_openmpi.so, transport_mpich.so.
 *
 * MPI tells nobody that a rank has died: that is its launcher's part, which ends the others. A rank
 * that fails tells the others by a message of its own, which they look for while they wait. One
 * that does not come is an error after the timeout. Waiting tests, then yields, then sleeps:
 * blocking calls of MPICH keep a core busy that other ranks may want. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <weber/transport.h>

enum {
    PIECE_BYTES = 1 << 22,
    SPINS = 200,
    YIELDS = 2000,
    NAP_NS = 50000,
    TEXT_BYTES = 1024,
    LOOKS = 16, /* at the request, for one at what others may tell */
};

#define GRACE_SECONDS 0.2

static const wb_host *host;

typedef struct state {
    MPI_Comm group; /* a duplicate, so that messages do not mix with the program's */
    int rank, size;
    int failed; /* the rank that has told so; -1: none */
    double timeout;
    bool is_ours; /* MPI was started here */
    unsigned calls;
    char *received[2];     /* in turn */
    pthread_mutex_t mutex; /* one thread at a time calls MPI */
    MPI_Comm news;         /* another duplicate: why a rank gives up */
    MPI_Request told;      /* of any rank */
    char text[TEXT_BYTES + 1];
    MPI_Request *telling; /* to each rank */
    char own_text[TEXT_BYTES];
} state;

/* ---- errors, waiting ---- */

static wb_status fail(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    text[length] = 0;
    return host->fail(WB_ERROR_LOST, "distributed: MPI: %s failed: %s", what, text);
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* After s->failed was read with the mutex: the text does not change any more. */
static wb_status fail_as_told(const state *s, int failed) {
    return host->fail(WB_ERROR_LOST, "distributed: rank %d has failed: %s", failed, s->text);
}

/* Another rank's failure, once it has told of it. */
static void hear(state *s) {
    int has_come = 0;
    MPI_Status about;
    if (s->told == MPI_REQUEST_NULL) return;
    if (MPI_Test(&s->told, &has_come, &about) == MPI_SUCCESS && has_come)
        s->failed = about.MPI_SOURCE;
}

static int look(state *s, MPI_Request *request, int *done, bool hears, int *failed) {
    pthread_mutex_lock(&s->mutex);
    const int code = MPI_Test(request, done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && !*done && hears) hear(s);
    *failed = s->failed;
    pthread_mutex_unlock(&s->mutex);
    return code;
}

/* What a rank gave before it failed may come behind the news. */
static bool is_lost(int failed, double *since) {
    if (failed < 0) return false;
    if (*since == 0) *since = now();
    return now() - *since > GRACE_SECONDS;
}

static wb_status finish(state *s, const char *what, int code, MPI_Request *request) {
    int done = 0, failed = -1;
    double since = 0;
    const double begin = now();
    for (int i = 0; code == MPI_SUCCESS && !done; i++) {
        code = look(s, request, &done, i % LOOKS == 0, &failed);
        if (done || i < SPINS) continue;
        if (is_lost(failed, &since)) return fail_as_told(s, failed);
        if (i < SPINS + YIELDS) {
            (void)sched_yield();
            continue;
        }
        if (now() - begin > s->timeout)
            return host->fail(WB_ERROR_LOST,
                              "distributed: rank %d has waited for %g s for another rank in a "
                              "collective (WEBER_TIMEOUT)",
                              s->rank, s->timeout);
        (void)nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    return code == MPI_SUCCESS ? WB_OK : fail(what, code);
}

/* ---- the table ---- */

static size_t piece_bytes(const void *of) {
    (void)of;
    return PIECE_BYTES;
}

static char *room(state *s) { return s->received[s->calls++ & 1]; }

static wb_status scatter(void *of, const void *own, size_t part_bytes, const void **parts) {
    state *s = of;
    char *to = room(s);
    MPI_Request request;
    const int bytes = (int)part_bytes;
    pthread_mutex_lock(&s->mutex);
    const int code = MPI_Ialltoall(own, bytes, MPI_BYTE, to, bytes, MPI_BYTE, s->group, &request);
    pthread_mutex_unlock(&s->mutex);
    for (int r = 0; r < s->size; r++) parts[r] = to + part_bytes * (size_t)r;
    return finish(s, "MPI_Ialltoall", code, &request);
}

static wb_status gather(void *of, int root, const void *own, size_t bytes, const void **all) {
    state *s = of;
    char *to = room(s);
    MPI_Request request;
    int code;
    if (root >= 0) {
        if (root == s->rank) memcpy(to, own, bytes);
        pthread_mutex_lock(&s->mutex);
        code = MPI_Ibcast(to, (int)bytes, MPI_BYTE, root, s->group, &request);
        pthread_mutex_unlock(&s->mutex);
        all[root] = to;
        return finish(s, "MPI_Ibcast", code, &request);
    }
    pthread_mutex_lock(&s->mutex);
    code = MPI_Iallgather(own, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, s->group, &request);
    pthread_mutex_unlock(&s->mutex);
    for (int r = 0; r < s->size; r++) all[r] = to + bytes * (size_t)r;
    return finish(s, "MPI_Iallgather", code, &request);
}

/* They are small, so that they are on their way without anybody's waiting for them. */
static void tell(void *of, const char *text) {
    state *s = of;
    (void)snprintf(s->own_text, sizeof s->own_text, "%s", text);
    pthread_mutex_lock(&s->mutex);
    for (int r = 0; r < s->size; r++)
        if (r != s->rank && s->telling[r] == MPI_REQUEST_NULL)
            (void)MPI_Isend(s->own_text, TEXT_BYTES, MPI_BYTE, r, 0, s->news, &s->telling[r]);
    pthread_mutex_unlock(&s->mutex);
}

static wb_status look_round(void *of) {
    state *s = of;
    pthread_mutex_lock(&s->mutex);
    hear(s);
    const int failed = s->failed;
    pthread_mutex_unlock(&s->mutex);
    return failed < 0 ? WB_OK : fail_as_told(s, failed);
}

static bool open_news(state *s) {
    for (int r = 0; r < s->size; r++) s->telling[r] = MPI_REQUEST_NULL;
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &s->news);
    if (code == MPI_SUCCESS) (void)MPI_Comm_set_errhandler(s->news, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Irecv(s->text, TEXT_BYTES, MPI_BYTE, MPI_ANY_SOURCE, 0, s->news, &s->told);
    return code == MPI_SUCCESS || fail("MPI_Irecv", code) == WB_OK;
}

/* All ranks leave, and nobody has told anything. */
static void close_news(state *s) {
    if (s->told != MPI_REQUEST_NULL) {
        (void)MPI_Cancel(&s->told);
        (void)MPI_Wait(&s->told, MPI_STATUS_IGNORE);
    }
    (void)MPI_Comm_free(&s->news);
}

static bool start_mpi(state *s) {
    int is_there = 0, level = 0;
    (void)MPI_Initialized(&is_there);
    s->is_ours = !is_there;
    const int code = is_there ? MPI_Query_thread(&level)
                              : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS) return fail("MPI_Init_thread", code) == WB_OK;
    if (level >= MPI_THREAD_SERIALIZED) return true;
    (void)host->fail(WB_ERROR_UNSUPPORTED,
                     "distributed: the program has started MPI without threads; it must ask for "
                     "MPI_THREAD_SERIALIZED at least (MPI_Init_thread)");
    return false;
}

/* Under a launcher of another implementation each process is alone. */
static bool check_seat(const state *s, const wb_seat *seat) {
    if (s->size == seat->size && s->rank == seat->rank) return true;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    (void)MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    (void)host->fail(WB_ERROR_UNSUPPORTED,
                     "distributed: %s started rank %d of %d, but to %s this is rank %d of %d; "
                     "start the program by the mpiexec that belongs to it",
                     seat->starter, seat->rank, seat->size, version, s->rank, s->size);
    return false;
}

static void release(state *s) {
    host->release_aligned(s->received[0]);
    host->release_aligned(s->received[1]);
    host->release(s->telling);
    host->release(s);
}

static void *start(const wb_seat *seat, double timeout) {
    state *s = host->alloc(sizeof *s);
    if (!s) return NULL;
    s->timeout = timeout;
    s->told = MPI_REQUEST_NULL, s->failed = -1;
    (void)pthread_mutex_init(&s->mutex, NULL);
    s->telling = host->alloc(sizeof(MPI_Request) * (size_t)seat->size);
    if (!s->telling) goto failed;
    for (int i = 0; i < 2; i++) {
        s->received[i] = host->alloc_aligned((size_t)PIECE_BYTES * (size_t)seat->size);
        if (!s->received[i]) goto failed;
    }
    if (!start_mpi(s)) goto failed;
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &s->group);
    if (code != MPI_SUCCESS) {
        (void)fail("MPI_Comm_dup", code);
        goto failed;
    }
    (void)MPI_Comm_set_errhandler(s->group, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(s->group, &s->rank);
    (void)MPI_Comm_size(s->group, &s->size);
    if (check_seat(s, seat) && open_news(s)) return s;
failed:
    release(s);
    return NULL;
}

/* After a failure the others may not come to the end of a finalisation. */
static void stop(void *of, bool is_whole) {
    state *s = of;
    int is_over = 0;
    (void)MPI_Finalized(&is_over);
    if (!is_over && is_whole) {
        close_news(s);
        (void)MPI_Comm_free(&s->group);
        if (s->is_ours) (void)MPI_Finalize();
    }
    if (is_whole) release(s); /* else messages may be on their way, and the process ends */
}

static const wb_transport table = {.abi = WB_TRANSPORT_ABI,
                                   .size_bytes = sizeof table,
                                   .name = "MPI",
                                   .start = start,
                                   .stop = stop,
                                   .piece_bytes = piece_bytes,
                                   .scatter = scatter,
                                   .gather = gather,
                                   .fail = tell,
                                   .look = look_round};

__attribute__((visibility("default"))) wb_transport_fn weber_transport;
const wb_transport *weber_transport(const wb_host *of) {
    host = of;
    return of->abi == WB_PLUGIN_ABI ? &table : NULL;
}
