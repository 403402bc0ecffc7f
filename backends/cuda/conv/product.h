/* Convolutions of one group as a product of matrices, with what the vendor has for products. */
#ifndef WB_CONV_PRODUCT_H
#define WB_CONV_PRODUCT_H

#include "conv.h"

/* A kernel of the call by the way, WB_CONV_PRODUCT or WB_CONV_COLUMNS. NULL: the way is not for the
 * call, or there is no library for products; or with an error recorded. */
wb_gpu_kernel *wb_conv_product_new(wb_gpu_device *device, const wb_call *call,
                                   const wb_conv_shape *shape, wb_conv_way way);

#endif
