/* The CPU backend's own parts: kernels as the table of plugin.h hands them around. */
#ifndef WB_CPU_CPU_H
#define WB_CPU_CPU_H

#include <weber/plugin.h>

#include "gemm.h"
#include "loops.h"

/* A range of the domain of an elementwise program: from[d] .. from[d] + count[d] - 1. */
typedef struct wb_box {
    int64_t from[8], count[8];
} wb_box;

typedef struct wb_cpu_program wb_cpu_program;

/* NULL with an error recorded when out of memory. */
wb_cpu_program *wb_cpu_program_new(const wb_program *program);
void wb_cpu_program_free(wb_cpu_program *program);

/* The domain. */
int wb_cpu_program_ndim(const wb_cpu_program *program);
int64_t wb_cpu_program_size(const wb_cpu_program *program, int dim);

/* Bytes of registers and partial results that a run needs. */
int64_t wb_cpu_program_scratch(const wb_cpu_program *program);

/* Runs the program over its domain; arguments are addresses. */
void wb_cpu_program_run(const wb_cpu_program *program, char *const *arguments, const uint64_t *late,
                        char *scratch);

/* Runs an elementwise program over a part of its domain on this thread, with the registers of
 * `worker`. */
void wb_cpu_program_run_box(const wb_cpu_program *program, char *const *arguments,
                            const uint64_t *late, char *scratch, int worker, const wb_box *box);

#endif
