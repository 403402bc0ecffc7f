/* What other people's libraries keep to their end is not ours to free. */
#ifndef WB_TESTS_LEAKS_H
#define WB_TESTS_LEAKS_H

/* At file scope: LEAKS_OF_OTHERS("leak:libpocl\n"); asked for by the leak sanitizer, which may be a
 * shared library. */
#define LEAKS_OF_OTHERS(suppressions)                                                              \
    __attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);          \
    const char *__lsan_default_suppressions(void) { return suppressions; }                         \
    extern int leaks_of_others_

#define LEAKS_OF_VENDORS "leak:libcublasLt.so\nleak:libhipblaslt\nleak:libcudnn\nleak:libnvrtc\n"

#endif
