/* The OpenCL plugin for backends/host.h. */
#ifndef WB_TESTS_OPENCL_HOST_H
#define WB_TESTS_OPENCL_HOST_H

#define BACKEND "OpenCL"
#define PLUGIN  "opencl"
#include "backends/host.h"
#include "support/leaks.h"

LEAKS_OF_OTHERS("leak:libpocl\nleak:libLLVM\nleak:libOpenCL\n");

#endif
