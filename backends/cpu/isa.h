/* The instruction sets of the CPU kernels.
 *
 * A file under backends/cpu/kernels/ is compiled once per instruction set, with WB_ISA defined to
 * avx512, avx2 or baseline and the matching compiler flags; its external names are written
 * WB_ISA_NAME(gemm) and become gemm_avx512 and so on. Callers go through a table indexed by wb_isa
 * (no ifunc: it breaks under the thread sanitizer). On machines other than x86-64 only baseline is
 * built. WEBER_ISA=baseline|avx2|avx512 forces one; a set that the machine lacks is not taken. */
#ifndef WB_CPU_ISA_H
#define WB_CPU_ISA_H

#include <stddef.h>

typedef enum wb_isa { WB_ISA_BASELINE, WB_ISA_AVX2, WB_ISA_AVX512, WB_ISA_COUNT } wb_isa;

/* X(enumerator, suffix) for every instruction set that this build has kernels for. */
#if defined(__x86_64__)
#define WB_ISA_LIST(X)                                                                             \
    X(WB_ISA_BASELINE, baseline)                                                                   \
    X(WB_ISA_AVX2, avx2)                                                                           \
    X(WB_ISA_AVX512, avx512)
#else
#define WB_ISA_LIST(X) X(WB_ISA_BASELINE, baseline)
#endif

/* The set in use: the best that machine and build have, or what WEBER_ISA asks for. Chosen once. */
wb_isa wb_cpu_isa(void);

/* "baseline", "avx2", "avx512". */
const char *wb_cpu_isa_name(wb_isa isa);

/* "Intel(R) Xeon(R) Processor", as the processor calls itself; "CPU" where it does not. */
void wb_cpu_model(char *text, size_t size_bytes);

#define WB_ISA_JOIN_(name, isa) wb_##name##_##isa
#define WB_ISA_JOIN(name, isa)  WB_ISA_JOIN_(name, isa)
#define WB_ISA_NAME(name)       WB_ISA_JOIN(name, WB_ISA)

#endif
