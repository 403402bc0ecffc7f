/* WB_INDEPENDENT is put before a loop whose iterations touch one place each: the compiler may then
 * take a result that lies where an operand does without testing for overlap at run time. WB_ROLLED
 * before a short one with a choice in it: unrolled first, it would become jumps. WB_APART is a
 * function whose arrays are known not to overlap only as long as it is not inlined. */
#ifndef WB_CPU_VECTORISE_H
#define WB_CPU_VECTORISE_H

#if defined(__clang__)
#pragma clang diagnostic ignored                                                                   \
    "-Wpass-failed" /* sanitized builds, and those without optimisation, stay scalar */
#define WB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#define WB_ROLLED
#elif defined(__GNUC__)
#define WB_INDEPENDENT _Pragma("GCC ivdep")
#define WB_ROLLED      _Pragma("GCC unroll 1")
#else
#define WB_INDEPENDENT
#define WB_ROLLED
#endif

#if defined(__GNUC__)
#define WB_APART __attribute__((noinline))
#else
#define WB_APART
#endif

#endif
