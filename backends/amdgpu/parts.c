#include "../cuda/kernel.h"

static const wb_gpu_part compiler = {.name = "hipRTC", .load = wb_gpu_load};

const wb_gpu_part *const wb_gpu_parts[] = {&compiler, NULL};
