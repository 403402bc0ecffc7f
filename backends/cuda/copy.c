/* Copies of matrices whose elements or columns lie at other distances than where they are copied
 * to: a program of a load and a store. */
#include "kernel.h"

static wb_access access_of(wb_dtype dtype, uint16_t argument, const wb_gpu_strides *s) {
    return (wb_access){.dtype = (uint8_t)dtype,
                       .argument = argument,
                       .offset = s->offset,
                       .strides = {s->row, s->column}};
}

wb_gpu_kernel *wb_gpu_copy_new(wb_gpu_device *device, wb_dtype dtype, int64_t rows, int64_t columns,
                               const wb_gpu_strides *from, const wb_gpu_strides *to) {
    const uint8_t type = dtype == WB_F64 ? WB_R_F64 : WB_R_F32;
    wb_access accesses[] = {access_of(dtype, 0, from), access_of(dtype, 1, to)};
    wb_instruction instructions[] = {
        {.code = WB_CODE_load,
         .type = type,
         .in = {WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE},
         .index = 0},
        {.code = WB_CODE_store, .type = type, .in = {0, WB_NO_VALUE, WB_NO_VALUE}, .index = 1}};
    const wb_program program = {.ndim = 2,
                                .sizes = {rows, columns},
                                .phases = 1,
                                .ninstructions = 2,
                                .naccesses = 2,
                                .narguments = 2,
                                .instructions = instructions,
                                .accesses = accesses};
    return wb_gpu_kernel_new(device, &program);
}

wb_gpu_outcome wb_gpu_copy_run(const wb_gpu_kernel *copy, const wb_gpu_run *run,
                               const wb_command *command, wb_argument from, wb_argument to) {
    const wb_argument arguments[] = {from, to, command->arguments[command->narguments - 1]};
    const wb_command alone = {.kernel = (void *)(uintptr_t)copy,
                              .narguments = 3,
                              .arguments = arguments,
                              .what = command->what};
    return copy->run(copy, run, &alone);
}
