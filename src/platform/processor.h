/* Properties of the processor, from the operating system. */
#ifndef WB_PLATFORM_PROCESSOR_H
#define WB_PLATFORM_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

/* Instructions beyond those that every x86-64 and every 64-bit ARM has. */
typedef enum wb_processor_feature {
    WB_X86_AVX2,        /* AVX2 and FMA */
    WB_X86_AVX512,      /* AVX-512 F, DQ, BW, VL */
    WB_X86_AVX512_BF16, /* products of bfloat16 */
    WB_X86_AMX_BF16,    /* the same by tiles (AMX) */
    WB_ARM_BF16,        /* products and conversion of bfloat16 (FEAT_BF16) */
} wb_processor_feature;

/* True if processor and system have the feature and this process may use it (for AMX tiles it asks
 * for permission). False for features of other architectures. */
bool wb_platform_processor_has(wb_processor_feature feature);

/* The name of the processor; "" if unknown. */
void wb_platform_processor_name(char *text, size_t size_bytes);

#endif
