/* Compiled texts and kernels. */
#ifndef WB_METAL_PROGRAM_H
#define WB_METAL_PROGRAM_H

#include "device.h"

enum { WB_METAL_MOST_ENTRIES = 4 };

/* What a text is compiled to: a pipeline for each of its kernels, in the order of its launches. */
typedef struct wb_metal_program {
    mtl_id pipelines[WB_METAL_MOST_ENTRIES];
} wb_metal_program;

/* For wb_texts: a wb_metal_program. */
void *wb_metal_program_build(void *device, const wb_source *source);
void wb_metal_program_drop(void *device, void *program);

/* ---- kernels (kernel.c) ---- */

void *wb_metal_kernel(void *device, const wb_program *program);
bool wb_metal_takes(void *device, const char *name, const wb_call *call);
void *wb_metal_lower(void *device, const wb_call *call, const wb_program *epilogue, int split);
size_t wb_metal_scratch_bytes(const void *kernel);
void wb_metal_release(void *kernel);
wb_status wb_metal_run(void *device, void *queue, const wb_command *commands, int count,
                       const wb_memory *memory, const uint64_t *late);

#endif
