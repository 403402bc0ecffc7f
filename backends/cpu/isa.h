/* The instruction sets of the CPU kernels.
 *
 * A file under backends/cpu/kernels/ is compiled once per instruction set, with WB_ISA defined to
 * its name and the matching compiler flags (cmake/library.cmake); its external names are written
 * WB_ISA_NAME(gemm) and become gemm_avx512 and so on. Callers go through a table indexed by wb_isa
 * (no ifunc: it breaks under the thread sanitizer).
 *
 * | set       | processor | is                                                     |
 * |-----------|-----------|--------------------------------------------------------|
 * | baseline  | any       | what the compiler makes of plain C: SSE2 on x86-64     |
 * | avx2      | x86-64    | AVX2 and FMA                                           |
 * | avx512    | x86-64    | AVX-512 F, DQ, BW, VL                                  |
 * | neon      | ARM64     | NEON, which every one has: multiply-adds by lane       |
 * | neon_bf16 | ARM64     | the same with products and conversion of bfloat16      |
 *
 * On avx512, products of bf16 take tiles where the processor has them (AMX); WEBER_ISA=avx512 is
 * without them.
 *
 * WEBER_ISA=avx2 and so on forces one; a set that the machine lacks is not taken. */
#ifndef WB_CPU_ISA_H
#define WB_CPU_ISA_H

#include <stdbool.h>
#include <stddef.h>

typedef enum wb_isa {
    WB_ISA_BASELINE,
    WB_ISA_AVX2,
    WB_ISA_AVX512,
    WB_ISA_NEON,
    WB_ISA_NEON_BF16,
    WB_ISA_COUNT
} wb_isa;

/* X(what, enumerator, suffix) for every instruction set that this build has kernels for, best
 * last. */
#if defined(__x86_64__)
#define WB_ISA_LIST_OF(X, what)                                                                    \
    X(what, WB_ISA_BASELINE, baseline)                                                             \
    X(what, WB_ISA_AVX2, avx2)                                                                     \
    X(what, WB_ISA_AVX512, avx512)
#elif defined(__aarch64__)
#define WB_ISA_LIST_OF(X, what)                                                                    \
    X(what, WB_ISA_BASELINE, baseline)                                                             \
    X(what, WB_ISA_NEON, neon)                                                                     \
    X(what, WB_ISA_NEON_BF16, neon_bf16)
#else
#define WB_ISA_LIST_OF(X, what) X(what, WB_ISA_BASELINE, baseline)
#endif

/* X(enumerator, suffix) for each. */
#define WB_ISA_LIST(X)                      WB_ISA_LIST_OF(WB_ISA_CALL_, X)
#define WB_ISA_CALL_(X, enumerator, suffix) X(enumerator, suffix)

/* The functions wb_NAME_f32_SUFFIX and wb_NAME_f64_SUFFIX: a table [WB_ISA_COUNT][2]. */
#define WB_ISA_PAIRS(name)                                                                         \
    { WB_ISA_LIST_OF(WB_ISA_PAIR_, name) }
#define WB_ISA_PAIR_(name, enumerator, suffix)                                                     \
    [enumerator] = {wb_##name##_f32_##suffix, wb_##name##_f64_##suffix},

/* X(enumerator, suffix, feature): those with products of bf16, where the processor has the
 * feature. */
#if defined(__x86_64__)
#define WB_ISA_BF16_LIST(X) X(WB_ISA_AVX512, avx512, WB_X86_AVX512_BF16)
#elif defined(__aarch64__)
#define WB_ISA_BF16_LIST(X) X(WB_ISA_NEON_BF16, neon_bf16, WB_ARM_BF16)
#else
#define WB_ISA_BF16_LIST(X)
#endif

/* The set in use: the best that machine and build have, or what WEBER_ISA asks for. Chosen once. */
wb_isa wb_cpu_isa(void);

/* True where the set in use has products of bf16: AVX-512 on a processor with AVX512_BF16, and
 * neon_bf16. */
bool wb_cpu_multiplies_bf16(void);

/* True where they may take the tiles of AMX. */
bool wb_cpu_has_tiles(void);

/* "avx2"; NULL for a set that this build has no kernels for. */
const char *wb_cpu_isa_name(wb_isa isa);

/* True where build and machine have it. */
bool wb_cpu_has_isa(wb_isa isa);

/* "Intel(R) Xeon(R) Processor", as the processor calls itself; "CPU" where it does not. */
void wb_cpu_model(char *text, size_t size_bytes);

#define WB_ISA_JOIN_(name, isa) wb_##name##_##isa
#define WB_ISA_JOIN(name, isa)  WB_ISA_JOIN_(name, isa)
#define WB_ISA_NAME(name)       WB_ISA_JOIN(name, WB_ISA)

#endif
