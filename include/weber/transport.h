/* weber/transport.h: what carries bytes between the ranks of a group; a plugin of its own kind.
 *
 * A transport is a shared object transport_NAME.so, which lies where the plugins of devices do and
 * exports one function, WB_TRANSPORT_SYMBOL. "local" (shared memory of one machine) is built in.
 * All ranks call the functions in the same order with the same sizes, which Weber has compared
 * before; all wait. The thread may be another one each time, but never two at once. */
#ifndef WEBER_TRANSPORT_H
#define WEBER_TRANSPORT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WB_TRANSPORT_ABI    1
#define WB_TRANSPORT_SYMBOL "weber_transport"

enum { WB_MOST_RANKS = 1024 };

/* Where a process stands, and who started it. */
typedef struct wb_seat {
    int rank, size, local_rank, local_size;
    const char *starter; /* "weber run", "Open MPI", ...; NULL: nobody */
    const char *run;     /* name of the run, of weber run only */
} wb_seat;

typedef struct wb_transport {
    uint32_t abi, size_bytes;
    const char *name; /* "MPI" */
    /* Joins the other ranks. timeout: seconds after which waiting is an error. NULL with an error
     * recorded. */
    void *(*start)(const wb_seat *seat, double timeout);
    /* Leaves the group: who waits for this rank afterwards fails. is_whole: no message is on its
     * way, so that all can leave together. */
    void (*stop)(void *state, bool is_whole);
    /* The most bytes that a rank can give at once. */
    size_t (*piece_bytes)(const void *state);
    /* own holds a part of part_bytes for each rank; parts[r]: what rank r has given for this one.
     * It is there until the next call but one. */
    wb_status (*scatter)(void *state, const void *own, size_t part_bytes, const void **parts);
    /* all[r]: what rank r gave, until the next call but one; with a root from 0 on, only all[root]
     * is there, and own may be NULL elsewhere. */
    wb_status (*gather)(void *state, int root, const void *own, size_t bytes, const void **all);
    /* Tells the others why this rank gives up. NULL: they see it when its process ends. */
    void (*fail)(void *state, const char *text);
} wb_transport;

typedef const wb_transport *wb_transport_fn(const wb_host *host);

#ifdef __cplusplus
}
#endif
#endif
