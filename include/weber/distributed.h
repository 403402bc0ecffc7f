/* weber/distributed.h: one program in several processes, which train one model together.
 *
 *     weber run -n 3 ./program          three processes of this machine: ranks 0, 1 and 2
 *     mpiexec -n 3 ./program            the same by MPI
 *
 *     wb_loader *data = wb_loader_new(.x = x, .y = y, .batchsize = 16, .shard = true);
 *     wb_layer *model = wb_chain(wb_dense(1, 256, wb_tanh), wb_dense(256, 1));
 *     wb_optimiser *adam = wb_setup(wb_adam(.eta = 1e-3), model, .distributed = true);
 *     while (wb_next(data, &batch)) wb_train_step(loss, model, &batch, NULL, adam);
 *
 * Every rank runs the same program on its share of the data. The environment says how many there
 * are, so nothing needs to be started by hand; with one process every call works, and nothing is
 * sent. The functions are as in Flux's and Lux's DistributedUtils.
 *
 * A collective is an operation with an effect. It is computed with the thread's next evaluation,
 * whatever that asks for, in the order in which collectives were made. So ranks may differ in what
 * they read, print and save, but must make the same collectives in the same order. Where kinds,
 * sizes, types, reductions or roots differ, all ranks fail alike with a message that names the
 * ranks, and no parameter changes. After a failure the group is given up: later collectives fail
 * with the same message.
 *
 * Sums are added in one order, T(lo, hi) = T(lo, lo + p) + T(lo + p, hi) with p the largest power
 * of two below hi - lo, over the numbers of the ranks; so all ranks get the same bits, and so does
 * every run with as many ranks. Halves are added in f32 and rounded once; bf16 is sent as it is,
 * f16 as f32.
 *
 * Collectives belong to the thread that makes the first one. */
#ifndef WEBER_DISTRIBUTED_H
#define WEBER_DISTRIBUTED_H

#include "array.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the group ---- */

typedef struct wb_distributed_desc {
    WB_START_MEMBER;
    const char *transport; /* see below */
    const int *devices;    /* "NCCL", "RCCL": number of the device of each rank of a machine */
    int device_count;      /* at least as many as ranks on a machine; 0: device number local rank */
    bool choose_device WB_DEFAULT(true); /* false: the program has (wb_set_default_device) */
} wb_distributed_desc;

/* Joins the group of processes that the environment describes, and says which transport has to
 * carry it: wb_distributed_initialize(transport, ...).
 *
 * NULL     the transport that WEBER_TRANSPORT names, else any
 * "local"  the shared memory of this machine (weber run)
 * "MPI"    Open MPI or MPICH (mpiexec)
 * "NCCL"   beside either of these: collectives of the memory of one device of CUDA for each rank
 *          go from device to device, on its queues; arrays elsewhere go as before. The device
 *          becomes the default device, also for wb_gpu_device where no number is given. Sums
 *          equal those of the other transports bit by bit.
 * "RCCL"   the same for AMDGPU
 *
 *     wb_distributed_initialize("NCCL", .devices = (const int[]){2, 3}, .device_count = 2);
 *
 * Without this call the first function that needs the group joins it. Calling it again changes
 * nothing; "NCCL" and "RCCL" must be asked for before the first collective. Under weber run
 * "MPI" is taken, too, so that a program need not know who starts it: the group is "local". Where
 * the environment describes no group this is a group of one.
 * Errors: a transport that is not there; "local" under mpiexec; "NCCL" or "RCCL" after a
 * collective; ranks of different versions of Weber; ranks that do not all arrive within
 * WEBER_TIMEOUT seconds (600); two ranks with one device. */
#define wb_distributed_initialize(...)                                                             \
    WB_MAKE(wb_distributed_initialize_make, distributed, .transport = __VA_ARGS__)
WB_API wb_status wb_distributed_initialize_make(wb_distributed_desc desc);
WB_API bool wb_distributed_initialized(void);

/* The transport of the group: "local", "MPI", "NCCL", "RCCL", or "none" for a group of one.
 * transport: NULL, or the name that wb_distributed_initialize was given; NULL with an error if it
 * was not. */
WB_API const char *wb_get_distributed_backend(const char *transport);

WB_API int wb_rank(void);          /* of this process: 0 .. wb_total_workers() - 1 */
WB_API int wb_total_workers(void); /* how many ranks there are */
WB_API int wb_local_rank(void);    /* among the ranks of this machine */
WB_API int wb_local_workers(void); /* how many of them are on this machine */

/* ---- collectives ---- */

typedef enum wb_reduction {
    WB_REDUCE_SUM,
    WB_REDUCE_MEAN, /* the sum over wb_total_workers(); floating types only */
    WB_REDUCE_MAX,  /* NaN wins */
    WB_REDUCE_MIN,
} wb_reduction;

/* Each gives a new array, of the same sizes on all ranks: x = wb_allreduce(x, WB_REDUCE_MEAN). With
 * one rank wb_allreduce gives x, and wb_reduce_scatter and wb_allgather change nothing either.
 * All have derivatives of any order, for a loss that is the sum of the ranks' losses.
 * Errors: not in the body of a scan; a sum or mean of bool, a mean of integers. */

/* x1 + x2 + ..., on every rank. Derivative: the cotangents reduced in the same way; of max and min,
 * in equal shares to the ranks that hold the value. */
WB_API wb_array *wb_allreduce(wb_array *x, wb_reduction reduction);
/* The same on rank `root`; on the others, x. */
WB_API wb_array *wb_reduce_to(wb_array *x, wb_reduction reduction, int root);
/* x of rank `root`. */
WB_API wb_array *wb_bcast(wb_array *x, int root);
/* The ranks' arrays one after another along the last dimension: (3, 4) of 2 ranks is (3, 8). A
 * number becomes (ranks). */
WB_API wb_array *wb_allgather(wb_array *x);
/* This rank's part, along the last dimension, of what wb_allreduce gives. Its size must be a
 * multiple of the number of ranks. */
WB_API wb_array *wb_reduce_scatter(wb_array *x, wb_reduction reduction);

/* Returns when all ranks have called it. Collectives that are not computed yet are computed
 * first. */
WB_API wb_status wb_barrier(void);

/* ---- models, optimisers ---- */

/* Gives the object on all ranks what it holds on rank 0:
 *
 *   a model or tree   arrays; numbers of layers: settings as Dropout's p, modes, WB_SETTING, and
 *                     WB_VALUE_FIELD of a number (C11; not of pointers, arrays, structs)
 *   an optimiser      its model, states, scale and steps; settings of rules, by path, too,
 *                     clip_total_norm, micro_batches, what is frozen; with .zero no states
 *
 * The ranks' objects must have the same structure: layers, sizes and types of arrays, functions,
 * kinds of rules; a difference is an error that names it. An array's numbers cannot be replaced, so
 * an array is an error that names wb_bcast; a rule is a plain value until an optimiser has it.
 * wb_setup with .distributed = true sends the model's arrays alone: settings that differ then are
 * an error at the first step. */
WB_API wb_status wb_synchronize(void *object);

#ifdef __cplusplus
}
#endif
#endif
