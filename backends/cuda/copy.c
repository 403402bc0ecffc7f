/* A copy as a program of a load and a store over the box. */
#include "copy.h"

#include <string.h>

/* A dimension that continues the one before in both arrays is joined to it. */
void wb_gpu_box_add(wb_gpu_box *c, int64_t size, int64_t from, int64_t to) {
    const int last = c->ndim - 1;
    if (c->ndim > 0 && size == 1) return;
    if (c->ndim > 0 && from == c->from[last] * c->sizes[last] &&
        to == c->to[last] * c->sizes[last]) {
        c->sizes[last] *= size;
        return;
    }
    c->sizes[c->ndim] = size, c->from[c->ndim] = from, c->to[c->ndim++] = to;
}

wb_gpu_kernel *wb_gpu_box_copy(wb_gpu_device *device, wb_dtype dtype, const wb_gpu_box *c) {
    const uint8_t type = (uint8_t)wb_register_of(dtype);
    wb_access accesses[] = {{.dtype = (uint8_t)dtype, .argument = 0, .offset = c->from_offset},
                            {.dtype = (uint8_t)dtype, .argument = 1, .offset = c->to_offset}};
    wb_instruction instructions[] = {
        {.code = WB_CODE_load,
         .type = type,
         .in = {WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE},
         .index = 0},
        {.code = WB_CODE_store, .type = type, .in = {0, WB_NO_VALUE, WB_NO_VALUE}, .index = 1}};
    wb_program program = {.ndim = c->ndim,
                          .phases = 1,
                          .ninstructions = 2,
                          .naccesses = 2,
                          .narguments = 2,
                          .instructions = instructions,
                          .accesses = accesses};
    memcpy(program.sizes, c->sizes, sizeof c->sizes);
    memcpy(accesses[0].strides, c->from, sizeof c->from);
    memcpy(accesses[1].strides, c->to, sizeof c->to);
    return wb_gpu_kernel_new(device, &program);
}

wb_gpu_outcome wb_gpu_box_run(const wb_gpu_kernel *copy, const wb_gpu_run *run,
                              const wb_command *command, wb_argument from, wb_argument to) {
    const wb_argument arguments[] = {from, to, command->arguments[command->narguments - 1]};
    const wb_command alone = {.kernel = (void *)(uintptr_t)copy,
                              .narguments = 3,
                              .arguments = arguments,
                              .what = command->what};
    return copy->run(copy, run, &alone);
}
