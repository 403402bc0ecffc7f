/* macOS: what instructions the processor has, by the names that sysctl(3) gives them. */
#include "platform/processor.h"

#include <sys/sysctl.h>

/* Apple, "Determining instruction set characteristics": the value is 1 if the feature is there;
 * older systems and other processors do not have the name. The processor itself reports AVX-512
 * only after its first use. */
enum { MOST_NAMES = 4 };
static const char *const names[][MOST_NAMES] = {
    [WB_X86_AVX2] = {"hw.optional.avx2_0", "hw.optional.fma"},
    [WB_X86_AVX512] = {"hw.optional.avx512f", "hw.optional.avx512dq", "hw.optional.avx512bw",
                       "hw.optional.avx512vl"},
    [WB_X86_AVX512_BF16] = {"hw.optional.avx512bf16"}, /* no Mac has it */
    [WB_X86_AMX_BF16] = {"hw.optional.amx_bf16"},      /* nor this */
    [WB_ARM_BF16] = {"hw.optional.arm.FEAT_BF16"}};

bool wb_platform_processor_has(wb_processor_feature feature) {
    for (int i = 0; i < MOST_NAMES && names[feature][i]; i++) {
        int value = 0;
        size_t size = sizeof value;
        if (sysctlbyname(names[feature][i], &value, &size, NULL, 0) != 0 || !value) return false;
    }
    return true;
}

void wb_platform_processor_name(char *text, size_t size_bytes) {
    if (sysctlbyname("machdep.cpu.brand_string", text, &size_bytes, NULL, 0) != 0) text[0] = 0;
}
