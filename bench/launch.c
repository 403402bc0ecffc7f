#include "launch.h"

enum { ELEMENT_BYTES = 64 };

static void *tiny_kernel(const wb_device *device) {
    wb_instruction instructions[] = {{.code = WB_CODE_load,
                                      .type = WB_R_F32,
                                      .from = WB_R_F32,
                                      .in = {WB_NO_VALUE, WB_NO_VALUE, WB_NO_VALUE}},
                                     {.code = WB_CODE_store,
                                      .type = WB_R_F32,
                                      .from = WB_R_F32,
                                      .in = {0, WB_NO_VALUE, WB_NO_VALUE},
                                      .index = 1}};
    wb_access accesses[] = {{.dtype = WB_F32, .argument = 0, .strides = {1}},
                            {.dtype = WB_F32, .argument = 1, .strides = {1}}};
    const wb_program program = {.ndim = 1,
                                .sizes = {1},
                                .phases = 1,
                                .ninstructions = 2,
                                .naccesses = 2,
                                .narguments = 2,
                                .instructions = instructions,
                                .accesses = accesses};
    return device->backend->kernel(device->context, &program);
}

bool bench_launch_open(const wb_device *device, bench_launch *l) {
    *l = (bench_launch){.device = device, .kernel = tiny_kernel(device)};
    if (!l->kernel) return false;
    l->scratch_bytes = device->backend->scratch_bytes(l->kernel) + ELEMENT_BYTES;
    for (int i = 0; i < 3; i++) {
        const size_t size = i < 2 ? ELEMENT_BYTES : l->scratch_bytes;
        l->memory[i].handle = device->backend->alloc(device->context, size);
        if (!l->memory[i].handle) return false;
    }
    return true;
}

bool bench_launch_queue(const bench_launch *l) {
    const wb_argument arguments[] = {{0, 0}, {1, 0}, {2, 0}};
    const wb_command command = {
        .kernel = l->kernel, .narguments = 3, .arguments = arguments, .what = "copy"};
    return l->device->backend->run(l->device->context, NULL, &command, 1, l->memory, NULL) == WB_OK;
}

void bench_launch_close(bench_launch *l) {
    const wb_backend *backend = l->device->backend;
    for (int i = 0; i < 3; i++)
        if (l->memory[i].handle)
            backend->free(l->device->context, l->memory[i].handle,
                          i < 2 ? ELEMENT_BYTES : l->scratch_bytes);
    if (l->kernel) backend->release(l->kernel);
}
