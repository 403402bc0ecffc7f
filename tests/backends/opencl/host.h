/* The OpenCL plugin for backends/host.h. */
#ifndef WB_TESTS_OPENCL_HOST_H
#define WB_TESTS_OPENCL_HOST_H

#define BACKEND "OpenCL"
#define PLUGIN  "opencl"
#include "backends/host.h"

/* For the leak checker: what PoCL and LLVM keep. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libpocl\nleak:libLLVM\nleak:libOpenCL\n";
}

#endif
