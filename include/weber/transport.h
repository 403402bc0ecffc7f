/* weber/transport.h: the interface of transports, which carry bytes between the ranks of a group.
 *
 * A transport is a plugin: a shared object transport_NAME.so, in the same folders as the plugins of
 * devices, that exports one function, WB_TRANSPORT_SYMBOL. "local" (shared memory of one machine)
 * is built in. All ranks call the functions in the same order with the same sizes, which Weber has
 * compared before; the functions wait for the other ranks. Calls may come from different threads,
 * but never from two at once. */
#ifndef WEBER_TRANSPORT_H
#define WEBER_TRANSPORT_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WB_TRANSPORT_ABI    3
#define WB_TRANSPORT_SYMBOL "weber_transport"

enum { WB_MOST_RANKS = 1024 };

/* A process's ranks in its group and on its machine, and what started it. */
typedef struct wb_seat {
    int rank, size, local_rank, local_size;
    const char *starter; /* "weber run", "Open MPI", ...; NULL: none */
    const char *run;     /* name of the run; only for weber run */
} wb_seat;

typedef struct wb_transport {
    uint32_t abi, size_bytes;
    const char *name; /* "MPI" */
    /* Joins the other ranks. timeout: seconds after which waiting is an error. NULL with an error
     * recorded. */
    void *(*start)(const wb_seat *seat, double timeout);
    /* Leaves the group: a rank that waits for this one afterwards fails. is_whole: no message is on
     * its way, so all ranks can leave together. */
    void (*stop)(void *state, bool is_whole);
    /* The most bytes that a rank can give at once. */
    size_t (*piece_bytes)(const void *state);
    /* own has a part of part_bytes for each rank. parts[r] is the part that rank r has for this
     * rank; for r = this rank it may point into own. Valid until the call after the next one. */
    wb_status (*scatter)(void *state, const void *own, size_t part_bytes, const void **parts);
    /* all[r] is own of rank r, valid until the call after the next one. With root >= 0 only
     * all[root] is set, and own may be NULL on other ranks. */
    wb_status (*gather)(void *state, int root, const void *own, size_t bytes, const void **all);
    /* Optional: memory into which this rank can write its next `own`, so that gather need not copy
     * it. */
    void *(*next)(void *state);
    /* Tells the other ranks why this one fails. NULL: they notice when its process ends. */
    void (*fail)(void *state, const char *text);
    /* An error if another rank has failed, died or stopped; used while ranks work together without
     * the functions above. One thread may call it at the same time as these. NULL: unknown. */
    wb_status (*look)(void *state);
} wb_transport;

typedef const wb_transport *wb_transport_fn(const wb_host *host);

/* ---- memory of devices ----
 *
 * A transport that carries the memory of devices directly, on the devices' queues: NCCL, RCCL. It
 * is a plugin of its own, which exports WB_DEVICE_TRANSPORT_SYMBOL. It is used together with a
 * transport of the kind above, by which ranks compare what they are about to do, and notice which
 * rank has failed. */

#define WB_DEVICE_TRANSPORT_SYMBOL "weber_device_transport"

typedef enum wb_move_kind {
    WB_MOVE_EXCHANGE, /* each rank sends a part to each rank, itself included */
    WB_MOVE_GATHER,   /* each rank sends the same part to all */
    WB_MOVE_BCAST,    /* the root sends to all */
} wb_move_kind;

/* The bytes that ranks send to each other; sums are computed by Weber itself. */
typedef struct wb_device_move {
    wb_move_kind kind;
    int root;
    size_t bytes;     /* of a part, at least 1 */
    const void *from; /* from and to are the driver's addresses and do not overlap */
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
    /* The identifier of a new group: one rank makes it, and all get it. */
    wb_status (*new_id)(void *id);
    /* Starts joining the others with the calling thread's device; poll says when that is done. NULL
     * with an error recorded. */
    void *(*start)(const wb_seat *seat, const void *id);
    /* Queues a move. It is on the queue once poll sets *goes_on to false. */
    wb_status (*move)(void *state, const wb_device_move *m, void *queue);
    /* Whether the work that start or move began still goes on, or the error that ended it. Never
     * waits. */
    wb_status (*poll)(void *state, bool *goes_on);
    /* Leaves the group, or cancels its work on the queues, so that waiting for the queues ends. */
    void (*stop)(void *state, bool is_whole);
} wb_device_transport;

typedef const wb_device_transport *wb_device_transport_fn(const wb_host *host);

#ifdef __cplusplus
}
#endif
#endif
