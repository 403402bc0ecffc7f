/* Chooses the instruction set of the kernels once per process: the best that the processor has, or
 * the one that WEBER_ISA names, if the processor has it. */
#include "isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "platform/processor.h"

static bool has_baseline(void) { return true; }
#if defined(__x86_64__)
static bool has_avx2(void) { return wb_platform_processor_has(WB_X86_AVX2); }
static bool has_avx512(void) { return wb_platform_processor_has(WB_X86_AVX512); }
#elif defined(__aarch64__)
static bool has_neon(void) { return true; }
static bool has_neon_bf16(void) { return wb_platform_processor_has(WB_ARM_BF16); }
#endif

static const struct {
    const char *name;
    bool (*is_there)(void);
} sets[WB_ISA_COUNT] = {
#define X(ISA, suffix) [ISA] = {#suffix, has_##suffix},
    WB_ISA_LIST(X)
#undef X
};

const char *wb_cpu_isa_name(wb_isa isa) { return sets[isa].name; }

bool wb_cpu_has_isa(wb_isa isa) { return sets[isa].name && sets[isa].is_there(); }

static wb_isa choose(void) {
    const char *asked = getenv("WEBER_ISA");
    wb_isa best = WB_ISA_BASELINE;
    for (int isa = 0; isa < WB_ISA_COUNT; isa++) {
        if (!wb_cpu_has_isa((wb_isa)isa)) continue;
        best = (wb_isa)isa;
        if (asked && strcmp(asked, sets[isa].name) == 0) break;
    }
    return best;
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

bool wb_cpu_multiplies_bf16(void) {
#define X(ISA, suffix, feature)                                                                    \
    if (wb_cpu_isa() == ISA) return wb_platform_processor_has(feature);
    WB_ISA_BF16_LIST(X)
#undef X
    return false;
}

static bool ask_for_tiles(void) {
#if defined(__x86_64__)
    return wb_cpu_isa() == WB_ISA_AVX512 && !getenv("WEBER_ISA") &&
           wb_platform_processor_has(WB_X86_AMX_BF16);
#else
    return false;
#endif
}

bool wb_cpu_has_tiles(void) {
    static int known; /* 0: not yet; as in wb_cpu_isa */
    int has = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (has == 0) {
        has = 1 + ask_for_tiles();
        __atomic_store_n(&known, has, __ATOMIC_RELAXED);
    }
    return has == 2;
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
#else
static void read_model(char *text, size_t size_bytes) {
    wb_platform_processor_name(text, size_bytes);
}
#endif

void wb_cpu_model(char *text, size_t size_bytes) {
    char model[128] = "";
    read_model(model, sizeof model);
    const char *from = model + strspn(model, " ");
    size_t length = strlen(from);
    while (length > 0 && from[length - 1] == ' ') length--;
    (void)snprintf(text, size_bytes, "%.*s", length ? (int)length : 3, length ? from : "CPU");
}
