#include "isa.h"

#include <stdlib.h>
#include <string.h>

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
