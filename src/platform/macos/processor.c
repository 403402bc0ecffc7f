#include "platform/processor.h"

#include <sys/sysctl.h>

/* Apple, "Determining instruction set characteristics": 1 where it is there, no such name on older
 * systems and on Intel's processors. */
static const char *const names[] = {[WB_ARM_FP16] = "hw.optional.arm.FEAT_FP16",
                                    [WB_ARM_DOTPROD] = "hw.optional.arm.FEAT_DotProd",
                                    [WB_ARM_BF16] = "hw.optional.arm.FEAT_BF16",
                                    [WB_ARM_I8MM] = "hw.optional.arm.FEAT_I8MM"};

bool wb_platform_arm_has(wb_arm_feature feature) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(names[feature], &value, &size, NULL, 0) == 0 && value;
}

void wb_platform_processor_name(char *text, size_t size_bytes) {
    if (sysctlbyname("machdep.cpu.brand_string", text, &size_bytes, NULL, 0) != 0) text[0] = 0;
}
