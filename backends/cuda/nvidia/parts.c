#include "../kernel.h"

static const wb_gpu_part compiler = {.name = "NVRTC", .load = wb_gpu_load};

const wb_gpu_part *const wb_gpu_parts[] = {&compiler, NULL};
