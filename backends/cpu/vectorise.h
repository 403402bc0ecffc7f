/* Before a loop whose iterations touch one place each: the compiler may then take a result that
 * lies where an operand does without testing for overlap at run time. */
#ifndef WB_CPU_VECTORISE_H
#define WB_CPU_VECTORISE_H

#if defined(__clang__)
#pragma clang diagnostic ignored                                                                   \
    "-Wpass-failed" /* sanitized builds, and calls such as pow's, stay scalar */
#define WB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define WB_INDEPENDENT _Pragma("GCC ivdep")
#else
#define WB_INDEPENDENT
#endif

#endif
