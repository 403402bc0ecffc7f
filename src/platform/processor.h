/* What the system says of the processor. */
#ifndef WB_PLATFORM_PROCESSOR_H
#define WB_PLATFORM_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

/* Instructions beyond those that every 64-bit ARM has. */
typedef enum wb_arm_feature {
    WB_ARM_FP16,    /* arithmetic on 16-bit floats (FEAT_FP16) */
    WB_ARM_DOTPROD, /* dot products of four bytes (FEAT_DotProd) */
    WB_ARM_BF16,    /* dot products and conversion of bfloat16 (FEAT_BF16) */
    WB_ARM_I8MM,    /* 2x2 products of bytes (FEAT_I8MM) */
} wb_arm_feature;

/* False on other processors. */
bool wb_platform_arm_has(wb_arm_feature feature);

/* The name of the processor; "" where the system does not tell. */
void wb_platform_processor_name(char *text, size_t size_bytes);

#endif
