/* Compiled texts and kernels. */
#ifndef WB_OPENCL_PROGRAM_H
#define WB_OPENCL_PROGRAM_H

#include <stdatomic.h>

#include "device.h"

/* What a text is compiled to. */
typedef struct wb_cl_program {
    cl_program program;
    bool is_new;          /* compiled from text: its binary is not in the disk cache yet */
    atomic_bool launched; /* since when PoCL's binary holds the machine code for the group's size */
} wb_cl_program;

/* For wb_texts: a wb_cl_program, from its cached binary or compiled. */
void *wb_cl_program_build(void *device, const wb_source *source);
void wb_cl_program_drop(void *device, void *program);

/* Writes the binaries of new programs that were launched to the disk cache. */
void wb_cl_programs_save(wb_cl_device *device);

/* ---- kernels (kernel.c) ---- */

void *wb_cl_kernel(void *device, const wb_program *program);
bool wb_cl_takes(void *device, const char *name, const wb_call *call);
void *wb_cl_lower(void *device, const wb_call *call, const wb_program *epilogue, int split);
size_t wb_cl_scratch_bytes(const void *kernel);
void wb_cl_release(void *kernel);
wb_status wb_cl_run(void *device, void *queue, const wb_command *commands, int count,
                    const wb_memory *memory, const uint64_t *late);

#endif
