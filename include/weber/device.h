/* weber/device.h: where arrays live. */
#ifndef WEBER_DEVICE_H
#define WEBER_DEVICE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU, always there. */
WB_API const wb_device *wb_cpu_device(void);

/* Where arrays from C memory are put, and recipes of numbers alone (wb_zeros, wb_uniform) when they are computed or kept: the CPU, unless
 * wb_set_default_device said otherwise; NULL goes back to the CPU. Borrowed and adopted memory stays the host's. One for the process. */
WB_API const wb_device *wb_default_device(void);
WB_API void wb_set_default_device(const wb_device *device);

/* Waits until everything queued on the device is done, and gives the errors that came late. Reading a value waits by itself. */
WB_API wb_status wb_device_sync(const wb_device *device);

/* "CPU". */
WB_API const char *wb_device_name(const wb_device *device);

/* Threads that the CPU computes with: WEBER_NUM_THREADS, else the cores this process may use; results do not depend on it.
 * wb_set_threads(0) returns to the default. */
WB_API int wb_threads(void);
WB_API void wb_set_threads(int threads);

/* ---- movement ---- */

/* What becomes of floating types on the way; integers and bool keep theirs. */
typedef enum wb_eltype {
    WB_ELTYPE_DEFAULT, /* f64 becomes f32 on the way to another device than the CPU, else preserved */
    WB_ELTYPE_PRESERVE, /* as it is */
    WB_ELTYPE_F32,      /* this one, also of what is already there */
    WB_ELTYPE_F64,
    WB_ELTYPE_F16,
    WB_ELTYPE_BF16
} wb_eltype;

typedef struct wb_to_desc {
    char start_;
    const wb_device *device;
    void *x; /* an array, a model or struct of layers, a tree, an optimiser */
    wb_eltype eltype;
} wb_to_desc;

/* x on the device, as a new reference: wb_to(device, x), wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE). The given one stays where it is;
 * what is there already is returned itself (a model or tree: one more reference, to be freed as any other). Arrays belong to the
 * scope, and gradients flow back through the move to the input's device; models are new ones, whose ties are kept. For an optimiser use
 * wb_move. NULL on failure, NULL for NULL. */
#define wb_to(...) wb_to_make((wb_to_desc){.start_ = 0, __VA_ARGS__})
WB_API void *wb_to_make(wb_to_desc desc);

/* wb_to(wb_gpu_device(), x), where there is one, else x as wb_cpu gives it; and wb_to(wb_cpu_device(), x). */
WB_API void *wb_gpu(void *x);
WB_API void *wb_cpu(void *x);

/* The same in place: the arrays in a model's slots, an optimiser's state (then the model that it belongs to comes along), are replaced by
 * those on the device; all of them, or on failure none. */
#define wb_move(...) wb_move_make((wb_to_desc){.start_ = 0, __VA_ARGS__})
WB_API wb_status wb_move_make(wb_to_desc desc);

/* Where an array, or everything in a model, tree or optimiser is. NULL for NULL and for what holds no arrays; NULL with an error that
 * names both where it is on two devices. */
WB_API const wb_device *wb_device_of(const void *x);

/* Reading single elements of an array elsewhere (wb_at) waits for the device each time. The thousandth warns; after
 * wb_allow_scalar(false) it is an error. wb_item of a single number always works. Per process. */
WB_API void wb_allow_scalar(bool allowed);

/* ---- memory ---- */

/* Memory of a device, in bytes. */
typedef struct wb_memory_info {
    int64_t live;   /* in arrays */
    int64_t cached; /* free, kept for the next array */
    int64_t peak;   /* largest live + workspace so far */
    int64_t workspace;
    int64_t limit; /* 0: none */
} wb_memory_info;
WB_API wb_memory_info wb_memory_status(const wb_device *device);

/* Live memory by what made it, largest first: an operation ("matmul", "adam"), "data" for what came from C memory or files. Fills at
 * most capacity entries and returns how many kinds there are. */
typedef struct wb_memory_holder {
    const char *tag;
    int64_t arrays, bytes;
} wb_memory_holder;
WB_API int wb_memory_holders(const wb_device *device, int capacity, wb_memory_holder *holders);

/* From now on live, cached and workspace memory together stay within so many bytes: what does not fit is out of memory, after the cache was
 * given back. 0: no limit but the device's own. */
WB_API wb_status wb_memory_limit(const wb_device *device, int64_t bytes);

/* Gives cached memory back to the system. */
WB_API void wb_memory_reclaim(const wb_device *device);

/* What evaluation did so far on this thread; differences over a step are what benchmarks and tests look at. */
typedef struct wb_plan_counts {
    int64_t evaluations;      /* plans run */
    int64_t misses;           /* plans made because none was in the cache */
    int64_t kernels;          /* commands run */
    int64_t missed_donations; /* updates that could not work in place */
    int64_t allocations;      /* pieces of memory asked of the system, on all threads */
    int64_t cache_bytes;      /* size of the plan cache */
} wb_plan_counts;
WB_API wb_plan_counts wb_plan_status(void);

#ifdef __cplusplus
}
#endif
#endif
