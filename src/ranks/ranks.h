/* The group of processes that train together: private side of weber/distributed.h. It knows memory
 * of the host and no arrays. */
#ifndef WB_RANKS_RANKS_H
#define WB_RANKS_RANKS_H

#include <weber/distributed.h>
#include <weber/transport.h>

/* Joins the group if that has not been done. False with an error that names the function. */
bool wb_ranks_join(const char *function);
/* Of the group that was joined; 1 before. */
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
    int64_t count;  /* elements of what a rank gives */
    int64_t terms;  /* a hash of what else has to be the same; 0: nothing */
    int32_t kind, reduction, root, dtype;
    int32_t by_device, unused; /* memory of a device, carried without the host's */
} wb_collective;

/* The number of the next one that this process makes. */
int64_t wb_ranks_number(void);

/* What the thread of the collectives does when the process ends by exit, while the group is still
 * there. */
void wb_ranks_before_leaving(void (*finish)(void));

/* Makes the collective after those that were begun, and waits until the other ranks have done their
 * part. from and to do not overlap; a barrier has neither. After a failure the group is given
 * up. */
wb_status wb_ranks_run(const wb_collective *c, const void *from, void *to);

/* The same in two halves: begin returns at once, and both memories belong to the collective until
 * finish has returned, with or without an error, with so many of those begun left to carry. */
wb_status wb_ranks_begin(const wb_collective *c, const void *from, void *to);
wb_status wb_ranks_finish(int64_t left);

/* The same for memory of the device whose collectives go by its own transport: what the device is
 * given after finish runs after the collectives that finish waited for. */
bool wb_ranks_carry(const wb_device *device);
wb_status wb_ranks_begin_on_device(const wb_collective *c, wb_memory from, wb_memory to);

/* Tells the other ranks that this one has failed, with the pending error's message, so that they
 * need not wait. Nothing happens in a group of one, and if the group has failed. */
void wb_ranks_fail(void);
/* The same where all ranks have found the same, so that nobody waits for this one. */
void wb_ranks_fail_alike(void);
/* Once after ranks turned out to make steps that differ: each is in such a step, and can tell the
 * others of its own (ranks/facts.h). */
bool wb_ranks_may_explain(void);
/* The group was given up. */
bool wb_ranks_have_failed(void);

/* ---- between group.c and carrier.c ---- */

wb_status wb_ranks_carry_out(const wb_collective *c, const void *from, void *to);
/* Compares, and queues it: see wb_ranks_post. */
wb_status wb_ranks_carry_on_device(const wb_collective *c, wb_memory from, wb_memory to,
                                   void *ready, void **done);
/* Nothing more is carried: the pending error is why. has_lost: as of wb_ranks_abort_devices. */
void wb_ranks_give_up_devices(bool has_lost);
/* At the end of the process. */
void wb_ranks_end_carrier(void);

/* ---- reduce.c ---- */

/* to[i] = the reduction over r of parts[r][i], in the order of weber/distributed.h. */
void wb_reduce_parts(wb_dtype dtype, wb_reduction reduction, int ranks, const void *const *parts,
                     int64_t count, void *to);
/* The order: the sum over n ranks is the sum over the first so many plus the sum over the
 * others. */
static inline int wb_power_below(int n) { /* the largest power of two below n > 1 */
    int p = 1;
    while (2 * p < n) p *= 2;
    return p;
}

#endif
