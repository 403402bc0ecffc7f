/* Kernels: rendered texts that the vendor's compiler translates, and calls that a library of the
 * vendor takes. */
#ifndef WB_CUDA_KERNEL_H
#define WB_CUDA_KERNEL_H

#include "device.h"

/* ---- running ---- */

/* What a command is run with, on a queue whose lock is held and a device that is the thread's. */
typedef struct wb_gpu_run {
    wb_gpu_device *device;
    wb_gpu_queue *queue;
    gpu_stream stream; /* where to: the queue's, or that on which a graph is made */
    const wb_memory *memory;
    gpu_pointer late; /* device memory: late value i lies at late + 8 i */
    /* commands that the kernel is to run, from the one that it is given on (wb_gpu_joined) */
    int joined;
} wb_gpu_run;

/* The device address of an argument, or of the command's argument i; 0 where it has no memory. */
static inline gpu_pointer wb_gpu_address_of(const wb_gpu_run *run, wb_argument a) {
    const wb_memory *m = &run->memory[a.memory];
    return m->handle ? (gpu_pointer)m->handle + (gpu_pointer)(m->offset_bytes + a.offset_bytes) : 0;
}
static inline gpu_pointer wb_gpu_address(const wb_gpu_run *run, const wb_command *command, int i) {
    return wb_gpu_address_of(run, command->arguments[i]);
}

/* A part of the command's scratch memory, which is its last argument. */
static inline wb_argument wb_gpu_scratch(const wb_command *command, int64_t offset_bytes) {
    wb_argument a = command->arguments[command->narguments - 1];
    a.offset_bytes += offset_bytes;
    return a;
}
/* Where the next part may begin. */
static inline int64_t wb_gpu_scratch_rounded(int64_t bytes) {
    return (bytes + WB_SCRATCH_ALIGNMENT - 1) / WB_SCRATCH_ALIGNMENT * WB_SCRATCH_ALIGNMENT;
}

/* Of an element of a floating type. */
static inline int64_t wb_gpu_element_bytes(int32_t dtype) {
    return dtype == WB_F64 ? 8 : dtype == WB_F32 ? 4 : 2;
}

/* ---- kernels ---- */

/* What all kernels have in common: the first member of each. Zeroed memory; wb_gpu_kernel_init
 * fills in device and number. */
typedef struct wb_gpu_kernel {
    wb_gpu_device *device;
    uint64_t number; /* of all kernels of the process: never used again */
    /* wanted as the command's last argument, from the plan's workspace: libraries' workspaces
     * too */
    size_t scratch_bytes;
    int32_t late_count; /* reads late values below this number */
    bool uses_status;
    bool cannot_be_captured; /* plans with it run without a graph */
    atomic_bool is_in_graph;
    /* Queues the command on run->stream; allocates nothing, waits for nothing and records no error:
     * the caller does that. */
    wb_gpu_outcome (*run)(const struct wb_gpu_kernel *kernel, const wb_gpu_run *run,
                          const wb_command *command);
    void (*release)(struct wb_gpu_kernel *kernel); /* what it is made of, and itself */
} wb_gpu_kernel;

void wb_gpu_kernel_init(wb_gpu_kernel *kernel, wb_gpu_device *device);

/* How many of the commands, from the first on, are jobs of one launch. */
int wb_gpu_joined(const wb_command *commands, int count);

/* ---- libraries ---- */

typedef enum wb_gpu_answer {
    WB_GPU_PASS,  /* not taken: the next library is asked, or the text used */
    WB_GPU_TAKEN, /* *kernel; NULL with an error recorded */
    WB_GPU_APART, /* taken without this epilogue, which becomes a kernel of its own */
} wb_gpu_answer;

/* A part of the backend that may be missing. */
typedef struct wb_gpu_part {
    const char *name; /* "cuBLASLt", as wb_functional_part asks */
    /* True where it works; opens its library when first asked, from any thread. */
    bool (*load)(char *reason, size_t reason_bytes);
    /* Optional: calls that it takes, as wb_backend.lower. The epilogue may be NULL. */
    wb_gpu_answer (*lower)(wb_gpu_device *device, const wb_call *call, const wb_program *epilogue,
                           int split, wb_gpu_kernel **kernel);
    /* Optional: whether it has this operation in epilogues of calls, as wb_backend.takes. */
    bool (*takes)(const char *name);
    /* Optional: whether it takes this call, which is only offered. */
    bool (*takes_call)(wb_gpu_device *device, const wb_call *call);
    /* Optional: releases what it keeps for a device. */
    void (*close)(wb_gpu_device *device);
} wb_gpu_part;

/* In the order in which they are asked; the vendor's file parts.c has the list. Ended by NULL. */
extern const wb_gpu_part *const wb_gpu_parts[];

/* The call's text as a kernel, as if there were no libraries. NULL in the cases of
 * wb_backend.lower. */
wb_gpu_kernel *wb_gpu_text_of_call(wb_gpu_device *device, const wb_call *call);

/* What a call may take at once for intermediate results that need not be stored: 1/64 of the
 * device's memory, at most 1 GiB. */
int64_t wb_gpu_most_scratch_bytes(const wb_gpu_device *device);

bool wb_gpu_part_works(const char *part, char *reason, size_t reason_bytes);

/* What a part keeps for each device. */
typedef struct wb_gpu_keeping {
    size_t size_bytes;
    wb_gpu_outcome (*init)(void *kept); /* fills in zeroed memory; owns nothing where it fails */
    bool (*load)(char *reason, size_t reason_bytes); /* the part's: what is there goes to the log */
} wb_gpu_keeping;

/* *kept, one of the device's; made when first asked for. The device is the thread's then. NULL with
 * the outcome. */
void *wb_gpu_kept(wb_gpu_device *device, void **kept, const wb_gpu_keeping *keeping,
                  wb_gpu_outcome *outcome);

/* ---- modules (module.c) ---- */

/* A gpu_module for the text: the binary of the disk cache, or what the compiler makes. For
 * wb_texts. */
void *wb_gpu_module_build(void *device, const wb_source *source);
void wb_gpu_module_drop(void *device, void *module);

/* ---- the table's entries (kernel.c, run.c) ---- */

void *wb_gpu_kernel_new(void *device, const wb_program *program);
bool wb_gpu_takes(void *device, const char *name, const wb_call *call);
void *wb_gpu_lower(void *device, const wb_call *call, const wb_program *epilogue, int split);
size_t wb_gpu_scratch_bytes(const void *kernel);
void wb_gpu_release(void *kernel);
wb_status wb_gpu_run_commands(void *device, void *queue, const wb_command *commands, int count,
                              const wb_memory *memory, const uint64_t *late);

/* ---- graphs (graph.c), with the lock of the device's own queue held ---- */

/* Runs the commands as a graph where they have one, or are due to get one; *done says whether they
 * were queued. */
wb_gpu_outcome wb_gpu_graph_run(const wb_gpu_run *run, const wb_command *commands, int count,
                                bool *done);
/* Drops the graphs that hold the kernel; all of them: NULL. */
void wb_gpu_graphs_drop(wb_gpu_queue *queue, const wb_gpu_kernel *kernel);
/* The commands one by one; the first error ends it, and *at is its command (run.c). */
wb_gpu_outcome wb_gpu_launch_all(const wb_gpu_run *run, const wb_command *commands, int count,
                                 int *at);

#endif
