/* The transport "MPI". One source, compiled once for each implementation, whose constants differ
 * (mpi.h of Open MPI and of MPICH): transport_openmpi.so, transport_mpich.so.
 *
 * A rank that fails, or leaves, tells the others by a message of its own, which they look for while
 * they wait. MPI tells nobody that a rank has died or stopped: its launcher may end the others, and
 * watch.h sees those of this machine. A rank that does not enter a collective is an error after the
 * timeout: ranks that wait for long tell each other so, and the rank that has not told is the
 * missing one. Waiting tests, then yields, then sleeps: blocking calls of MPICH keep a core busy
 * that other ranks may need. */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <weber/transport.h>

#include "watch.h"

enum {
    PIECE_BYTES = 1 << 22,
    SPINS = 200,
    NAP_NS = 50000,
    TEXT_BYTES = 1024,
    LOOKS = 16, /* how often the request is tested before news is */
    ASKING_SECONDS = 10,
    WARNING_SECONDS = ASKING_SECONDS + 1, /* when the others have answered */
    MOST_NAMED = 4,
};

enum { FAILED, LEFT, WAITS }; /* tags of news */

#define GRACE_SECONDS 0.2
/* Not a number of yields, nor of tests, in which MPI may yield: on a busy machine each of them
 * takes long. */
#define YIELD_SECONDS 2e-3

static const wb_host *host;

typedef struct state {
    wb_seat seat;
    MPI_Comm group; /* a duplicate, so that messages do not mix with the program's */
    int rank, size;
    int failed; /* the rank that has told so; -1: none */
    double timeout;
    bool is_ours;          /* MPI was started here */
    unsigned calls;        /* of scatter and gather */
    char *received[2];     /* in turn */
    pthread_mutex_t mutex; /* one thread at a time calls MPI */
    MPI_Comm news;         /* another duplicate: why a rank gives up */
    MPI_Request told;      /* of any rank */
    char text[TEXT_BYTES + 1];
    MPI_Request *telling; /* to each rank */
    char own_text[TEXT_BYTES];
    int lefts;  /* ranks that have left */
    int missed; /* one of them, which has not entered `missed_call` */
    unsigned missed_call, own_calls;
    struct peer *peers;
    watch watch;
} state;

/* What each rank knows of another one. */
typedef struct peer {
    char host[sizeof((watched *)0)->machine];
    unsigned waits;      /* the call in which it said that it waits; 0: none */
    unsigned own_waits;  /* what this rank has told it */
    MPI_Request telling; /* that */
} peer;

/* ---- errors, waiting ---- */

static wb_status fail(const char *what, int code) {
    char text[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    text[length] = 0;
    return host->fail(WB_ERROR_LOST, "distributed: MPI: %s failed: %s", what, text);
}

/* After s->failed was read with the mutex: the text does not change any more. */
static wb_status fail_as_told(const state *s, int failed) {
    return host->fail(WB_ERROR_LOST, "distributed: rank %d has failed: %s", failed, s->text);
}

/* Hears which ranks have left, and after how many calls. */
static void hear_who_left(state *s) {
    int has_come = 0;
    MPI_Status about;
    while (MPI_Iprobe(MPI_ANY_SOURCE, LEFT, s->news, &has_come, &about) == MPI_SUCCESS &&
           has_come) {
        unsigned calls = 0;
        const int from = about.MPI_SOURCE;
        if (MPI_Recv(&calls, 1, MPI_UNSIGNED, from, LEFT, s->news, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            return;
        if (s->lefts++ == 0 || calls < s->missed_call) s->missed = from, s->missed_call = calls;
    }
}

static void hear_who_waits(state *s) {
    int has_come = 0;
    MPI_Status about;
    while (MPI_Iprobe(MPI_ANY_SOURCE, WAITS, s->news, &has_come, &about) == MPI_SUCCESS &&
           has_come) {
        unsigned call = 0;
        const int from = about.MPI_SOURCE;
        if (MPI_Recv(&call, 1, MPI_UNSIGNED, from, WAITS, s->news, MPI_STATUS_IGNORE) !=
            MPI_SUCCESS)
            return;
        if (call > s->peers[from].waits) s->peers[from].waits = call;
    }
}

/* Signs that a terminal would obey become "?". The text ends with 0 whatever was sent. */
static void make_plain(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\n' && *text != '\t') *text = '?';
}

/* Another rank's failure, once it has told of it. */
static void hear(state *s) {
    int has_come = 0;
    MPI_Status about;
    hear_who_left(s);
    hear_who_waits(s);
    if (s->told == MPI_REQUEST_NULL) return;
    if (MPI_Test(&s->told, &has_come, &about) != MPI_SUCCESS || !has_come) return;
    make_plain(s->text);
    s->failed = about.MPI_SOURCE;
}

/* What a waiting rank knows about the others. */
typedef struct news {
    int failed; /* the rank that has told so; -1: none */
    int missed; /* the one that has left and will not come; -1: none */
    double since;
    bool has_warned, has_told;
} news;

static int look(state *s, MPI_Request *request, int *done, bool hears, news *of) {
    pthread_mutex_lock(&s->mutex);
    const int code = MPI_Test(request, done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && !*done && hears) hear(s);
    of->failed = s->failed;
    of->missed = s->lefts && s->missed_call < s->calls ? s->missed : -1;
    pthread_mutex_unlock(&s->mutex);
    return code;
}

/* What a rank sent before it failed may arrive after the news of its failure. */
static bool is_lost(int failed, double *since) {
    if (failed < 0) return false;
    if (*since == 0) *since = watch_now();
    return watch_now() - *since > GRACE_SECONDS;
}

/* True if the program has called MPI_Finalize: no other function of MPI may be called then. */
static bool is_over(void) {
    int flag = 0;
    return MPI_Finalized(&flag) == MPI_SUCCESS && flag;
}

static wb_status fail_over(void) {
    return host->fail(WB_ERROR_LOST,
                      "distributed: the program has called MPI_Finalize, but the ranks still "
                      "communicate through MPI; call it after the last collective");
}

static void tell(void *of, const char *text);

/* The rank may have told of a failure before it ended. Ranks of other machines do not see its end
 * by themselves. */
static wb_status fail_lost(state *s, const char *who) {
    char text[WATCH_TEXT_BYTES + 16];
    int failed = -1;
    for (const double begin = watch_now(); failed < 0 && watch_now() - begin < GRACE_SECONDS;) {
        pthread_mutex_lock(&s->mutex);
        hear(s);
        failed = s->failed;
        pthread_mutex_unlock(&s->mutex);
        (void)nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    if (failed >= 0) return fail_as_told(s, failed);
    (void)snprintf(text, sizeof text, "distributed: %s", who);
    tell(s, text);
    return host->fail(WB_ERROR_LOST, "%s", text);
}

/* ---- ranks that do not come ---- */

static bool has_come(const state *s, int rank) {
    return rank == s->rank || s->peers[rank].waits >= s->calls;
}

/* Tells the others, once in a call, that this rank waits: after a while, or when one of them has
 * told so. A rank that computes does not answer. If an earlier message was not received yet, no
 * second one is sent. */
static void tell_of_waiting(state *s, news *n, double waited) {
    const double patience =
        s->timeout / 2 < (double)ASKING_SECONDS ? s->timeout / 2 : (double)ASKING_SECONDS;
    bool is_asked = waited > patience;
    pthread_mutex_lock(&s->mutex);
    for (int r = 0; r < s->size && !is_asked; r++) is_asked = r != s->rank && has_come(s, r);
    for (int r = 0; r < s->size && is_asked; r++) {
        peer *p = &s->peers[r];
        int is_sent = 1;
        if (p->telling != MPI_REQUEST_NULL)
            (void)MPI_Test(&p->telling, &is_sent, MPI_STATUS_IGNORE);
        if (r == s->rank || !is_sent) continue;
        p->own_waits = s->calls;
        (void)MPI_Isend(&p->own_waits, 1, MPI_UNSIGNED, r, WAITS, s->news, &p->telling);
    }
    pthread_mutex_unlock(&s->mutex);
    n->has_told = is_asked;
}

/* "rank 1 (host a) has", "ranks 1 (host a), 2 (host b) and 3 more have"; how many. */
static int name_late(state *s, char *text, size_t size) {
    int count = 0;
    size_t used = 0;
    pthread_mutex_lock(&s->mutex);
    for (int r = 0; r < s->size; r++) count += !has_come(s, r);
    used += (size_t)snprintf(text, size, "%s", count == 1 ? "rank" : "ranks");
    for (int r = 0, named = 0; r < s->size && named < MOST_NAMED; r++) {
        if (has_come(s, r)) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%d (host %s)", named ? ", " : " ", r,
                                 s->peers[r].host);
        named++;
    }
    pthread_mutex_unlock(&s->mutex);
    if (count > MOST_NAMED)
        used += (size_t)snprintf(text + used, size - used, " and %d more", count - MOST_NAMED);
    (void)snprintf(text + used, size - used, " %s", count == 1 ? "has" : "have");
    return count;
}

enum { LATE_BYTES = MOST_NAMED * (WATCH_TEXT_BYTES + 32) };

static wb_status fail_late(state *s) {
    char who[LATE_BYTES];
    if (name_late(s, who, sizeof who) == 0)
        return host->fail(WB_ERROR_LOST,
                          "distributed: rank %d has waited for %g s (WEBER_TIMEOUT) in a "
                          "collective that all ranks have entered",
                          s->rank, s->timeout);
    return host->fail(WB_ERROR_LOST,
                      "distributed: %s not entered the collective in which rank %d has waited for "
                      "%g s (WEBER_TIMEOUT)",
                      who, s->rank, s->timeout);
}

static void warn_of_late(state *s, double waited) {
    char who[LATE_BYTES];
    if (name_late(s, who, sizeof who) > 0)
        host->log(WB_LOG_WARN, "rank %d: %s not entered a collective for %d s so far", s->rank, who,
                  (int)waited);
}

/* Fails if waiting would not end. */
static wb_status look_round_while_waiting(state *s, news *n, double waited) {
    char text[WATCH_TEXT_BYTES];
    if (is_lost(n->failed, &n->since)) return fail_as_told(s, n->failed);
    if (n->missed >= 0)
        return host->fail(WB_ERROR_LOST,
                          "distributed: rank %d has ended, but rank %d waits for it in a "
                          "collective",
                          n->missed, s->rank);
    if (watch_finds_lost(&s->watch, text)) return fail_lost(s, text);
    if (!n->has_told) tell_of_waiting(s, n, waited);
    if (waited > s->timeout) return fail_late(s);
    if (!n->has_warned && waited > WARNING_SECONDS) {
        n->has_warned = true;
        warn_of_late(s, waited);
    }
    return WB_OK;
}

static wb_status finish(state *s, const char *what, int code, MPI_Request *request) {
    int done = 0;
    news n = {.failed = -1, .missed = -1};
    const double begin = watch_now();
    for (int i = 0; code == MPI_SUCCESS && !done; i++) {
        code = look(s, request, &done, i % LOOKS == 0, &n);
        const double waited = watch_now() - begin;
        if (code != MPI_SUCCESS || done) continue;
        if (waited < YIELD_SECONDS) {
            if (i >= SPINS) (void)sched_yield();
            continue;
        }
        const wb_status status = look_round_while_waiting(s, &n, waited);
        if (status != WB_OK) return status;
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
    if (is_over()) return fail_over();
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
    if (is_over()) return fail_over();
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

/* Requests are small, but make progress only while they are tested. */
static void tell(void *of, const char *text) {
    state *s = of;
    if (is_over()) return;
    (void)snprintf(s->own_text, sizeof s->own_text, "%s", text);
    pthread_mutex_lock(&s->mutex);
    for (int r = 0; r < s->size; r++)
        if (r != s->rank && s->telling[r] == MPI_REQUEST_NULL)
            (void)MPI_Isend(s->own_text, TEXT_BYTES, MPI_BYTE, r, FAILED, s->news, &s->telling[r]);
    int are_sent = 0;
    for (const double begin = watch_now(); !are_sent && watch_now() - begin < GRACE_SECONDS;) {
        are_sent = 1;
        for (int r = 0; r < s->size; r++) {
            int is_sent = 0;
            (void)MPI_Test(&s->telling[r], &is_sent, MPI_STATUS_IGNORE);
            are_sent = are_sent && is_sent;
        }
        (void)sched_yield();
    }
    pthread_mutex_unlock(&s->mutex);
}

static wb_status look_round(void *of) {
    state *s = of;
    if (is_over()) return fail_over();
    pthread_mutex_lock(&s->mutex);
    hear(s);
    const int failed = s->failed;
    pthread_mutex_unlock(&s->mutex);
    char text[WATCH_TEXT_BYTES];
    if (failed >= 0) return fail_as_told(s, failed);
    return watch_finds_lost(&s->watch, text) ? fail_lost(s, text) : WB_OK;
}

static bool open_news(state *s) {
    for (int r = 0; r < s->size; r++) s->telling[r] = MPI_REQUEST_NULL;
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &s->news);
    if (code == MPI_SUCCESS) (void)MPI_Comm_set_errhandler(s->news, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Irecv(s->text, TEXT_BYTES, MPI_BYTE, MPI_ANY_SOURCE, FAILED, s->news, &s->told);
    return code == MPI_SUCCESS || fail("MPI_Irecv", code) == WB_OK;
}

/* Tells the others that this rank makes no more calls, and waits until all have told so. False:
 * some rank never will. */
static bool leave_together(state *s) {
    char text[WATCH_TEXT_BYTES];
    s->own_calls = s->calls;
    for (int r = 0; r < s->size; r++)
        if (r != s->rank && MPI_Isend(&s->own_calls, 1, MPI_UNSIGNED, r, LEFT, s->news,
                                      &s->telling[r]) != MPI_SUCCESS)
            return false;
    for (const double begin = watch_now();;) {
        const bool is_in_vain =
            watch_now() - begin > s->timeout || watch_finds_lost(&s->watch, text);
        hear(s);
        if (s->lefts == s->size - 1) break;
        if (is_in_vain || s->failed >= 0) return false;
        (void)nanosleep(&(struct timespec){0, NAP_NS}, NULL);
    }
    hear_who_waits(s); /* told before they left */
    for (int r = 0; r < s->size; r++) {
        (void)MPI_Wait(&s->telling[r], MPI_STATUS_IGNORE);
        (void)MPI_Wait(&s->peers[r].telling, MPI_STATUS_IGNORE);
    }
    return true;
}

/* No rank has told anything else. */
static void close_news(state *s) {
    if (s->told != MPI_REQUEST_NULL) {
        (void)MPI_Cancel(&s->told);
        (void)MPI_Wait(&s->told, MPI_STATUS_IGNORE);
    }
    (void)MPI_Comm_free(&s->news);
}

static bool start_mpi(state *s) {
    int is_there = 0, level = 0;
    if (is_over()) return fail_over() == WB_OK;
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
    for (char *c = strchr(version, '\t'); c; c = strchr(c, '\t')) *c = ' '; /* MPICH has one */
    (void)host->fail(WB_ERROR_UNSUPPORTED,
                     "distributed: %s started this process as rank %d of %d, but in %s it is rank "
                     "%d of %d; start the program with the mpiexec of that MPI",
                     seat->starter, seat->rank, seat->size, version, s->rank, s->size);
    return false;
}

static void release(state *s) {
    watch_close(&s->watch);
    host->release_aligned(s->received[0]);
    host->release_aligned(s->received[1]);
    host->release(s->telling);
    host->release(s->peers);
    host->release(s);
}

static bool join(state *s) {
    if (!start_mpi(s)) return false;
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &s->group);
    if (code != MPI_SUCCESS) return fail("MPI_Comm_dup", code) == WB_OK;
    (void)MPI_Comm_set_errhandler(s->group, MPI_ERRORS_RETURN);
    (void)MPI_Comm_rank(s->group, &s->rank);
    (void)MPI_Comm_size(s->group, &s->size);
    return check_seat(s, &s->seat) && open_news(s);
}

/* The processes of the ranks, for ranks that can see them. */
static bool introduce(state *s) {
    const watched own = watch_own();
    watched *all = host->alloc(sizeof *all * (size_t)s->size);
    const int bytes = (int)sizeof own;
    if (!all) return false;
    const int code = MPI_Allgather(&own, bytes, MPI_BYTE, all, bytes, MPI_BYTE, s->group);
    if (code == MPI_SUCCESS) watch_joined(&s->watch, all);
    for (int r = 0; r < s->size; r++) {
        (void)snprintf(s->peers[r].host, sizeof s->peers[r].host, "%.*s",
                       (int)sizeof s->peers[r].host - 1, all[r].machine);
        make_plain(s->peers[r].host);
    }
    host->release(all);
    return code == MPI_SUCCESS || fail("MPI_Allgather", code) == WB_OK;
}

static bool make_room(state *s) {
    s->telling = host->alloc(sizeof *s->telling * (size_t)s->seat.size);
    s->peers = host->alloc(sizeof *s->peers * (size_t)s->seat.size);
    for (int r = 0; s->peers && r < s->seat.size; r++) s->peers[r].telling = MPI_REQUEST_NULL;
    for (int i = 0; i < 2; i++)
        s->received[i] = host->alloc_aligned((size_t)PIECE_BYTES * (size_t)s->seat.size);
    return s->telling && s->peers && s->received[0] && s->received[1];
}

static void *start(const wb_seat *seat, double timeout) {
    state *s = host->alloc(sizeof *s);
    if (!s) return NULL;
    s->seat = *seat, s->timeout = timeout;
    s->told = MPI_REQUEST_NULL, s->failed = -1;
    (void)pthread_mutex_init(&s->mutex, NULL);
    if (watch_open(&s->watch, host, &s->seat, timeout) && make_room(s) &&
        watch_begin_guard(&s->watch)) {
        const bool has_joined = join(s) && introduce(s);
        watch_end_guard(&s->watch);
        if (has_joined) return s;
    }
    release(s);
    return NULL;
}

/* The program started MPI, this rank has left the group, and nothing went wrong. */
static bool program_has_it;

/* At the end of the process, after all that the program has given to atexit. Open MPI's launcher
 * takes it for a failure, MPICH's says nothing. */
__attribute__((destructor)) static void look_for_end(void) {
    if (program_has_it && !is_over())
        (void)fprintf(stderr, "distributed: the program has started MPI, but ends without "
                              "MPI_Finalize\n");
}

/* After a failure the other ranks may never enter MPI_Finalize, which would not return. */
static void stop(void *of, bool is_whole) {
    state *s = of;
    const bool is_there = !is_over();
    if (is_there && is_whole && !leave_together(s)) is_whole = false; /* the launcher ends others */
    if (is_there && is_whole) {
        close_news(s);
        (void)MPI_Comm_free(&s->group);
        if (s->is_ours) (void)MPI_Finalize();
        program_has_it = !s->is_ours;
    }
    if (is_whole) release(s); /* else messages may be under way, and the process ends */
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
