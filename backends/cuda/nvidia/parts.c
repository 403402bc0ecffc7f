/* What NVIDIA's plugin takes from other libraries: NVRTC compiles, cuBLASLt multiplies matrices,
 * cuDNN computes convolutions and attention. A call that none of them takes is computed by a kernel
 * of Weber's own text. */
#include "../lt/lt.h"
#include "cudnn.h"

static const wb_gpu_part compiler = {.name = "NVRTC", .load = wb_gpu_load};

static const wb_gpu_part products = {.name = LT_LIBRARY,
                                     .load = wb_lt_load,
                                     .lower = wb_lt_lower,
                                     .takes = wb_lt_takes,
                                     .close = wb_lt_device_close};

static const wb_gpu_part convolutions = {
    .name = "cuDNN", .load = wb_dnn_load, .lower = wb_conv_lower, .close = wb_conv_device_close};

/* Their plans are kept with those of convolutions. */
static const wb_gpu_part attention = {.name = "cuDNN",
                                      .load = wb_dnn_load,
                                      .lower = wb_dnn_lower_attention,
                                      .takes_call = wb_dnn_takes_attention};

static const wb_gpu_part attention_products = {.name = LT_LIBRARY,
                                               .load = wb_lt_load,
                                               .lower = wb_lt_lower_attention,
                                               .takes_call = wb_lt_takes_attention};

const wb_gpu_part *const wb_gpu_parts[] = {&compiler,  &products,           &convolutions,
                                           &attention, &attention_products, NULL};
