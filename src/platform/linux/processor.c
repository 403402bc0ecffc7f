/* Linux: what instructions the processor has, by cpuid on x86-64 and by the auxiliary vector on
 * ARM64. AMX also needs the kernel's permission. */
#include "platform/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>

bool wb_platform_processor_has(wb_processor_feature feature) {
    return feature == WB_ARM_BF16 && getauxval(AT_HWCAP2) & HWCAP2_BF16;
}
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux, Documentation/arch/x86/xstate.rst: a process asks for the state of tiles once. */
static bool has_tiles(void) {
    enum { ASK_FOR = 0x1023, TILES = 18, BF16 = 1 << 22 };
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & BF16 &&
           syscall(SYS_arch_prctl, ASK_FOR, TILES) == 0;
}

bool wb_platform_processor_has(wb_processor_feature feature) {
    switch (feature) {
    case WB_X86_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case WB_X86_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    case WB_X86_AVX512_BF16:
        return __builtin_cpu_supports("avx512bf16");
    case WB_X86_AMX_BF16:
        return has_tiles();
    case WB_ARM_BF16:
        break;
    }
    return false;
}
#else
bool wb_platform_processor_has(wb_processor_feature feature) { return (void)feature, false; }
#endif

/* For many ARM processors it has part numbers only. */
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
