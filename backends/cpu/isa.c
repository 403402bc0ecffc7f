#include "isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

const char *wb_cpu_isa_name(wb_isa isa) {
    static const char *const names[WB_ISA_COUNT] = {
        [WB_ISA_BASELINE] = "baseline", [WB_ISA_AVX2] = "avx2", [WB_ISA_AVX512] = "avx512"};
    return names[isa];
}

static wb_isa best(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return WB_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return WB_ISA_AVX2;
#endif
    return WB_ISA_BASELINE;
}

static wb_isa choose(void) {
    const wb_isa limit = best();
    const char *asked = getenv("WEBER_ISA");
    for (int isa = 0; asked && isa <= (int)limit; isa++)
        if (strcmp(asked, wb_cpu_isa_name((wb_isa)isa)) == 0) return (wb_isa)isa;
    return limit;
}

wb_isa wb_cpu_isa(void) {
    static int chosen; /* 0: not yet; every thread that races here writes the same value */
    int isa = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (isa == 0) {
        isa = 1 + (int)choose();
        __atomic_store_n(&chosen, isa, __ATOMIC_RELAXED);
    }
    return (wb_isa)(isa - 1);
}

/* ---- the processor's name ---- */

#if defined(__x86_64__)
/* Functions 0x80000002 to 4: 48 letters, padded with spaces (AMD64 Architecture Programmer's
 * Manual, volume 3, appendix E.4.2). */
static void read_model(char *text, size_t size_bytes) {
    unsigned words[13] = {0}, *w = words;
    for (unsigned f = 0x80000002u; f <= 0x80000004u; f++, w += 4)
        if (!__get_cpuid(f, &w[0], &w[1], &w[2], &w[3])) return;
    (void)snprintf(text, size_bytes, "%s", (const char *)words);
}
#elif defined(__APPLE__)
static void read_model(char *text, size_t size_bytes) {
    (void)sysctlbyname("machdep.cpu.brand_string", text, &size_bytes, NULL, 0);
}
#else
/* ARM's Linux tells numbers of parts only. */
static void read_model(char *text, size_t size_bytes) { (void)text, (void)size_bytes; }
#endif

void wb_cpu_model(char *text, size_t size_bytes) {
    char model[128] = "";
    read_model(model, sizeof model);
    const char *from = model + strspn(model, " ");
    size_t length = strlen(from);
    while (length > 0 && from[length - 1] == ' ') length--;
    (void)snprintf(text, size_bytes, "%.*s", length ? (int)length : 3, length ? from : "CPU");
}
