#include "platform/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>

bool wb_platform_arm_has(wb_arm_feature feature) {
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    switch (feature) {
    case WB_ARM_FP16:
        return (first & HWCAP_FPHP) && (first & HWCAP_ASIMDHP);
    case WB_ARM_DOTPROD:
        return first & HWCAP_ASIMDDP;
    case WB_ARM_BF16:
        return second & HWCAP2_BF16;
    case WB_ARM_I8MM:
        return second & HWCAP2_I8MM;
    }
    return false;
}
#else
bool wb_platform_arm_has(wb_arm_feature feature) { return (void)feature, false; }
#endif

/* Of many ARM processors it tells numbers of parts only. */
void wb_platform_processor_name(char *text, size_t size_bytes) {
    static const char begin[] = "model name\t: ";
    const size_t length = sizeof begin - 1;
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "re");
    text[0] = 0;
    while (file && !text[0] && fgets(line, sizeof line, file))
        if (strncmp(line, begin, length) == 0)
            (void)snprintf(text, size_bytes, "%.*s", (int)strcspn(line + length, "\n"),
                           line + length);
    if (file) (void)fclose(file);
}
