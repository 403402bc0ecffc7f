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

#define WB_TRANSPORT_ABI    3
#define WB_TRANSPORT_SYMBOL "weber_transport"

enum { WB_MOST_RANKS = 1024 };

/* Where a process stands in its group, and what started it. */
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
    /* Leaves the group: a rank that waits for this one afterwards fails. is_whole: no message is on
     * its way, so that all can leave together. */
    void (*stop)(void *state, bool is_whole);
    /* The most bytes that a rank can give at once. */
    size_t (*piece_bytes)(const void *state);
    /* own holds a part of part_bytes for each rank; parts[r]: what rank r has given for this one.
     * It is there until the next call but one; of this rank, where own has it. */
    wb_status (*scatter)(void *state, const void *own, size_t part_bytes, const void **parts);
    /* all[r]: what rank r gave, until the next call but one; with a root from 0 on, only all[root]
     * is there, and own may be NULL elsewhere. */
    wb_status (*gather)(void *state, int root, const void *own, size_t bytes, const void **all);
    /* Optional: where what this rank gives next can be written, so that gather need not copy it. */
    void *(*next)(void *state);
    /* Tells the others why this rank gives up. NULL: they see it when its process ends. */
    void (*fail)(void *state, const char *text);
    /* An error where another rank has failed, died or stopped; for what they do together without
     * the functions above. It may be called beside them, by one thread. NULL: nobody knows. */
    wb_status (*look)(void *state);
} wb_transport;

typedef const wb_transport *wb_transport_fn(const wb_host *host);

/* ---- memory of devices ----
 *
 * A transport that carries it without the host's memory, on the devices' queues: NCCL, RCCL. It is
 * a file of its own, which exports WB_DEVICE_TRANSPORT_SYMBOL. A transport of the kind above goes
 * with it: by that, ranks compare what they are about to do, and see which rank has failed. */

#define WB_DEVICE_TRANSPORT_SYMBOL "weber_device_transport"

typedef enum wb_move_kind {
    WB_MOVE_EXCHANGE, /* each rank gives each one a part, itself too */
    WB_MOVE_GATHER,   /* each rank gives the same to all */
    WB_MOVE_BCAST,    /* the root gives it */
} wb_move_kind;

/* The bytes that a rank gives another one; sums are Weber's own. */
typedef struct wb_device_move {
    wb_move_kind kind;
    int root;
    size_t bytes;     /* of a part, at least 1 */
    const void *from; /* the driver's addresses; they do not overlap */
    void *to;         /* gather: the ranks' parts, one after the other */
    /* exchange: from one rank's part to the next rank's part */
    size_t from_stride, to_stride;
} wb_device_move;

enum { WB_GROUP_ID_BYTES = 128 };

typedef struct wb_device_transport {
    uint32_t abi, size_bytes;
    const char *name;    /* "NCCL" */
    const char *backend; /* whose memory it carries: "CUDA" */
    /* Opens the vendor's library, once. False: the reason says what is missing and which package
     * brings it. */
    bool (*load)(char *reason, size_t reason_bytes);
    /* The name of a new group, which one rank makes and all are given. */
    wb_status (*new_id)(void *id);
    /* Begins to join the others with the calling thread's device; poll says when that is done. NULL
     * with an error recorded. */
    void *(*start)(const wb_seat *seat, const void *id);
    /* Queues it. It is on the queue once poll says that nothing goes on. */
    wb_status (*move)(void *state, const wb_device_move *m, void *queue);
    /* Whether the work that start or run began still goes on, or the error that ended it. Never
     * waits. */
    wb_status (*poll)(void *state, bool *goes_on);
    /* Leaves the group, or ends whatever is on a queue, so that it can be waited for. */
    void (*stop)(void *state, bool is_whole);
} wb_device_transport;

typedef const wb_device_transport *wb_device_transport_fn(const wb_host *host);

#ifdef __cplusplus
}
#endif
#endif
