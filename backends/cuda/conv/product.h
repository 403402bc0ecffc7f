/* Convolutions of one group as a product of matrices, with what the vendor has for products. */
#ifndef WB_CONV_PRODUCT_H
#define WB_CONV_PRODUCT_H

#include "conv.h"

/* A kernel of the call by the way, WB_CONV_PRODUCT or WB_CONV_COLUMNS. WB_GPU_PASS: the way is not
 * for the call, or there is no library for products. NULL: an error is recorded. */
wb_gpu_answer wb_conv_product_new(wb_gpu_device *device, const wb_call *call,
                                  const wb_conv_shape *shape, wb_conv_way way,
                                  wb_gpu_kernel **kernel);

#endif
