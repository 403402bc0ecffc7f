/* Compiled texts and kernels. */
#ifndef WB_OPENCL_PROGRAM_H
#define WB_OPENCL_PROGRAM_H

#include <stdatomic.h>

#include "device.h"

/* A text that is compiled; kernels with the same text share it. */
typedef struct wb_cl_program {
    struct wb_cl_program *next;
    uint64_t key;
    char *text;
    cl_program program;
    int references;
    bool is_new;          /* compiled from text: its binary is not in the disk cache yet */
    atomic_bool launched; /* since when PoCL's binary holds the machine code for the group's size */
} wb_cl_program;

/* The text's program: the one at hand, or from its cached binary, or compiled. NULL with an error recorded. */
wb_cl_program *wb_cl_program_get(wb_cl_device *device, const wb_source *source);
void wb_cl_program_put(wb_cl_device *device, wb_cl_program *program);

/* Writes the binaries of new programs that were launched to the disk cache. */
void wb_cl_programs_save(wb_cl_device *device);
void wb_cl_programs_release(wb_cl_device *device);

/* ---- kernels (kernel.c) ---- */

void *wb_cl_kernel(void *device, const wb_program *program);
void *wb_cl_lower(void *device, const wb_call *call, const wb_program *epilogue, int split);
size_t wb_cl_scratch_bytes(const void *kernel);
void wb_cl_release(void *kernel);
wb_status wb_cl_run(void *device, void *queue, const wb_command *commands, int count,
                    const wb_memory *memory, const uint64_t *late);

#endif
