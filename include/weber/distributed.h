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
 * Every rank runs the same program on its share of the data. The environment says how many ranks
 * there are, so the program need not start anything; with one process every call works, and nothing
 * is sent. The functions are those of Flux's and Lux's DistributedUtils.
 *
 * A collective is an operation with an effect. It is computed in the thread's next evaluation,
 * whatever arrays that evaluates. Collectives run in the order in which they were made. So ranks
 * may differ in what they read, print and save, but must make the same collectives in the same
 * order. If kinds, sizes, types, reductions or roots differ, all ranks fail with a message that
 * names the ranks, and no parameter changes. After a failure the group is closed: later collectives
 * fail with the same message.
 *
 * Sums are added in a fixed order: the sum of ranks lo to hi - 1 is T(lo, hi) = T(lo, lo + p) +
 * T(lo + p, hi), with p the largest power of two below hi - lo. So all ranks get the same bits, in
 * every run with as many ranks. f16 and bf16 are added in f32 and rounded once; bf16 is sent as
 * bf16, f16 as f32.
 *
 * All collectives must be made by the thread that makes the first one. */
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
    const int *devices;    /* "NCCL", "RCCL": device numbers, by rank on the machine */
    int device_count;      /* at least the ranks on a machine; 0: local rank r uses device r */
    bool choose_device WB_DEFAULT(true); /* false: the program sets the device itself */
} wb_distributed_desc;

/* Joins the group of processes that the environment describes, with the given transport:
 * wb_distributed_initialize(transport, ...).
 *
 * NULL     the transport that WEBER_TRANSPORT names, else any that works
 * "local"  the shared memory of this machine (weber run)
 * "MPI"    Open MPI or MPICH (mpiexec)
 * "NCCL"   in addition to one of these: each rank has one CUDA device, and collectives of arrays
 *          on it go from device to device, on the devices' queues; other arrays go as before. The
 *          device becomes the default device, also for wb_gpu_device without a number. Sums equal
 *          those of the other transports bit by bit.
 * "RCCL"   the same for AMDGPU
 *
 *     wb_distributed_initialize("NCCL", .devices = (const int[]){2, 3}, .device_count = 2);
 *
 * Without this call the first function that needs the group joins it. Calling it again changes
 * nothing; "NCCL" and "RCCL" must be requested before the first collective. Under weber run
 * "MPI" is accepted, too, and means "local", so that a program need not know what starts it. If
 * the environment describes no group, this process is a group of one.
 * Errors: a transport that is not available; "local" under mpiexec; "NCCL" or "RCCL" after a
 * collective; ranks of different versions of Weber; ranks that do not all arrive within
 * WEBER_TIMEOUT seconds (600); two ranks with one device. */
#define wb_distributed_initialize(...)                                                             \
    WB_MAKE(wb_distributed_initialize_make, distributed, .transport = __VA_ARGS__)
WB_API wb_status wb_distributed_initialize_make(wb_distributed_desc desc);
WB_API bool wb_distributed_initialized(void);

/* The transport of the group: "local", "MPI", "NCCL", "RCCL", or "none" for a group of one. The
 * argument is NULL, or the name that was passed to wb_distributed_initialize; with another name
 * the result is NULL, with an error. */
WB_API const char *wb_get_distributed_backend(const char *transport);

WB_API int wb_rank(void);          /* of this process: 0 .. wb_total_workers() - 1 */
WB_API int wb_total_workers(void); /* how many ranks there are */
WB_API int wb_local_rank(void);    /* among the ranks of this machine */
WB_API int wb_local_workers(void); /* how many ranks are on this machine */

/* ---- collectives ---- */

typedef enum wb_reduction {
    WB_REDUCE_SUM,
    WB_REDUCE_MEAN, /* the sum over wb_total_workers(); floating types only */
    WB_REDUCE_MAX,  /* NaN wins */
    WB_REDUCE_MIN,
} wb_reduction;

/* Each function returns a new array, of the same sizes on all ranks: x = wb_allreduce(x,
 * WB_REDUCE_MEAN). With one rank wb_allreduce, wb_reduce_scatter and wb_allgather return x's
 * values. All have derivatives of any order, for a loss that is the sum of the ranks' losses.
 * Errors: a collective in the body of a scan; a sum or mean of bool; a mean of integers. */

/* x1 + x2 + ..., on every rank. Derivative: the cotangents reduced in the same way; for max and
 * min, divided equally among the ranks that have the value. */
WB_API wb_array *wb_allreduce(wb_array *x, wb_reduction reduction);
/* The result of wb_allreduce on rank `root`; on other ranks, x. */
WB_API wb_array *wb_reduce_to(wb_array *x, wb_reduction reduction, int root);
/* The array x of rank `root`, on every rank. */
WB_API wb_array *wb_bcast(wb_array *x, int root);
/* The ranks' arrays one after another along the last dimension: (3, 4) on 2 ranks becomes (3, 8). A
 * number becomes a vector (ranks). */
WB_API wb_array *wb_allgather(wb_array *x);
/* This rank's part, along the last dimension, of wb_allreduce's result. The size of that dimension
 * must be a multiple of the number of ranks. */
WB_API wb_array *wb_reduce_scatter(wb_array *x, wb_reduction reduction);

/* Returns when all ranks have called it. Collectives that are not computed yet are computed
 * first. */
WB_API wb_status wb_barrier(void);

/* ---- models, optimisers ---- */

/* Copies to all ranks what the object has on rank 0:
 *
 *   a model or tree   arrays; numbers of layers: settings such as Dropout's p, modes, WB_SETTING,
 *                     and WB_VALUE_FIELD of a number (C11; not of pointers, arrays, structs)
 *   an optimiser      its model, states, loss scale and steps; settings of rules, also of those in
 *                     .paths, clip_total_norm, micro_batches, frozen paths; with .zero no states
 *
 * The ranks' objects must have the same structure: layers, sizes and types of arrays, functions,
 * kinds of rules; a difference is an error that names it. object cannot be an array, whose numbers
 * cannot be replaced (use wb_bcast), or a rule, which is a plain value. wb_setup with .distributed
 * = true sends only the model's arrays: settings that differ are then an error at the first
 * step. */
WB_API wb_status wb_synchronize(void *object);

#ifdef __cplusplus
}
#endif
#endif
