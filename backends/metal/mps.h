/* Products by MetalPerformanceShaders, where it is there. */
#ifndef WB_METAL_MPS_H
#define WB_METAL_MPS_H

#include "device.h"

typedef struct wb_metal_product wb_metal_product;

/* For wb_backend.part: whether "MPS" works. */
bool wb_metal_part(const char *part, char *reason, size_t reason_bytes);

/* A large product of f32 or f16 without a batch. NULL without an error: our own text serves it. */
wb_metal_product *wb_metal_product_new(wb_metal_device *device, const wb_call *call);
void wb_metal_product_release(wb_metal_product *product);

/* The queue's lock is held. */
wb_status wb_metal_product_encode(const wb_metal_product *product, wb_metal_queue *queue,
                                  const wb_command *command, const wb_memory *memory, int64_t cost);

#endif
