/* The group of processes that train together: private side of weber/distributed.h. It handles host
 * memory, not arrays. */
#ifndef WB_RANKS_RANKS_H
#define WB_RANKS_RANKS_H

#include <weber/distributed.h>
#include <weber/transport.h>

/* Joins the group, unless that was done before. False with an error that names the function. */
bool wb_ranks_join(const char *function);
/* Number of ranks in the group; 1 before joining. */
int wb_ranks_count(void);
int wb_ranks_own(void);

typedef enum wb_collective_kind {
    WB_COLLECTIVE_ALLREDUCE,
    WB_COLLECTIVE_REDUCE,
    WB_COLLECTIVE_BCAST,
    WB_COLLECTIVE_ALLGATHER,
    WB_COLLECTIVE_REDUCE_SCATTER,
    WB_COLLECTIVE_BARRIER, /* this one and the next carry nothing */
    WB_COLLECTIVE_JOIN,
} wb_collective_kind;

/* What the ranks compare before anything is sent. */
typedef struct wb_collective {
    int64_t number; /* of all collectives, in the order in which they were made */
    int64_t count;  /* number of elements that each rank gives */
    int64_t terms;  /* a hash of what else must be the same; 0: nothing */
    int32_t kind, reduction, root, dtype;
    /* by_device: device memory, sent without going through host memory */
    int32_t by_device, unused;
} wb_collective;

/* The number of the next collective of this process. */
int64_t wb_ranks_number(void);

/* Sets a function that finishes the thread of the collectives at exit, while the group still
 * exists. */
void wb_ranks_before_leaving(void (*finish)(void));

/* Makes a collective, after those that were begun, and waits until the other ranks have done their
 * part. from and to must not overlap; both are NULL for a barrier. After a failure the group is
 * given up. */
wb_status wb_ranks_run(const wb_collective *c, const void *from, void *to);

/* The same in two halves. begin returns at once; from and to must not be touched until finish has
 * returned (with or without an error). finish waits until at most `left` of the collectives that
 * were begun are unfinished. */
wb_status wb_ranks_begin(const wb_collective *c, const void *from, void *to);
wb_status wb_ranks_finish(int64_t left);

/* The same for memory of a device with a transport of its own: work that is queued on the device
 * after finish runs after the collectives that finish waited for. */
bool wb_ranks_carry(const wb_device *device);
wb_status wb_ranks_begin_on_device(const wb_collective *c, wb_memory from, wb_memory to);

/* Tells the other ranks that this one has failed, with the pending error's message, so that they
 * need not wait. Does nothing in a group of one, or if the group has failed. */
void wb_ranks_fail(void);
/* The same for an error that all ranks have found, so that no rank waits for this one. */
void wb_ranks_fail_alike(void);
/* True once after the ranks' steps turned out to differ: all ranks are in such a step, and can
 * exchange facts about it (ranks/facts.h). */
bool wb_ranks_may_explain(void);
/* True if the group was given up. */
bool wb_ranks_have_failed(void);

/* ---- between group.c and carrier.c ---- */

wb_status wb_ranks_carry_out(const wb_collective *c, const void *from, void *to);
/* Compares the collective, then queues it (wb_ranks_post). */
wb_status wb_ranks_carry_on_device(const wb_collective *c, wb_memory from, wb_memory to,
                                   void *ready, void **done);
/* Stops all collectives on devices, because of the pending error. has_lost: see
 * wb_ranks_abort_devices. */
void wb_ranks_give_up_devices(bool has_lost);
/* At the end of the process. */
void wb_ranks_end_carrier(void);

/* ---- reduce.c ---- */

/* to[i] = the reduction over ranks r of parts[r][i], in the order of weber/distributed.h. */
void wb_reduce_parts(wb_dtype dtype, wb_reduction reduction, int ranks, const void *const *parts,
                     int64_t count, void *to);
/* The order of sums: the sum over n ranks is the sum over the first wb_power_below(n) ranks plus
 * the sum over the others. */
static inline int wb_power_below(int n) { /* the largest power of two below n > 1 */
    int p = 1;
    while (2 * p < n) p *= 2;
    return p;
}

#endif
