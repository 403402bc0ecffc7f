/* What AMD's plugin takes from other libraries: hipRTC compiles, hipBLASLt multiplies matrices,
 * MIOpen computes convolutions. A call that none of them takes is computed by a kernel of Weber's
 * own text, as in backends/cuda/nvidia/parts.c. */
#include "../cuda/lt/lt.h"
#include "miopen.h"

static const wb_gpu_part compiler = {.name = "hipRTC", .load = wb_gpu_load};

static const wb_gpu_part products = {.name = LT_LIBRARY,
                                     .load = wb_lt_load,
                                     .lower = wb_lt_lower,
                                     .takes = wb_lt_takes,
                                     .close = wb_lt_device_close};

static const wb_gpu_part convolutions = {.name = "MIOpen",
                                         .load = wb_miopen_load,
                                         .lower = wb_conv_lower,
                                         .close = wb_conv_device_close};

static const wb_gpu_part attention_products = {.name = LT_LIBRARY,
                                               .load = wb_lt_load,
                                               .lower = wb_lt_lower_attention,
                                               .takes_call = wb_lt_takes_attention};

const wb_gpu_part *const wb_gpu_parts[] = {&compiler, &products, &convolutions, &attention_products,
                                           NULL};
