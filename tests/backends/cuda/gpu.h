/* The plugin that is tested, CUDA's or (TEST_AMDGPU) AMD's, and the driver that stands for its
 * vendor's. */
#ifndef WB_TESTS_CUDA_GPU_H
#define WB_TESTS_CUDA_GPU_H

#ifdef TEST_AMDGPU
#define BACKEND           "AMDGPU"
#define PLUGIN            "amdgpu"
#define DRIVER_VARIABLE   "WEBER_HIP_LIBRARY"
#define OTHER_VARIABLE    "WEBER_HIPRTC_LIBRARY"
#define HIDING            "HIP_VISIBLE_DEVICES"
#define LT_PART           "hipBLASLt"
#define LT_VARIABLE       "WEBER_HIPBLASLT_LIBRARY"
#define LT_STAND_IN       "fake_hipblaslt.so"
#define GPU_NAME(cu, hip) hip
#else
#define BACKEND           "CUDA"
#define PLUGIN            "cuda"
#define DRIVER_VARIABLE   "WEBER_CUDA_LIBRARY"
#define OTHER_VARIABLE    "WEBER_NVRTC_LIBRARY"
#define HIDING            "CUDA_VISIBLE_DEVICES"
#define LT_PART           "cuBLASLt"
#define LT_VARIABLE       "WEBER_CUBLASLT_LIBRARY"
#define LT_STAND_IN       "fake_cublaslt.so"
#define GPU_NAME(cu, hip) cu
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/fake.h"
#include "platform/process.h"

static fake_count_fn *fake_count_now;
static fake_fail_fn *fake_fail;
static fake_failed_fn *fake_failed;
static fake_fault_fn *fake_fault;
static fake_witness_fn *fake_set_witness;

static inline void *find_fake(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv(DRIVER_VARIABLE), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (symbol) return symbol;
    (void)fprintf(stderr, "%s\n", dlerror());
    exit(1);
}

/* Puts the fake driver, of <build>/tests/backends/cuda, in the place of the vendor's, for this
 * process and its children; before anything of Weber. Libraries that want a card are not there. */
static inline void use_fake_driver(void) {
    char path[512], fake[1024];
    if (!wb_platform_program(path, sizeof path)) path[0] = 0;
    for (int up = 0; up < 2 && strrchr(path, '/'); up++) *strrchr(path, '/') = 0;
    (void)snprintf(fake, sizeof fake, "%s/cuda/fake_%s.so", path, PLUGIN);
    (void)setenv(DRIVER_VARIABLE, fake, 1);
    (void)setenv(OTHER_VARIABLE, fake, 1);
    (void)setenv("WEBER_CUBLASLT_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("WEBER_HIPBLASLT_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("WEBER_CUDNN_LIBRARY", "/no/such/library.so", 1);
    (void)setenv("WEBER_MIOPEN_LIBRARY", "/no/such/library.so", 1);
    (void)unsetenv(HIDING);
#ifdef TEST_AMDGPU
    (void)snprintf(fake, sizeof fake, "%s/cuda/libamd_comgr.so.3", path);
    if (!dlopen(fake, RTLD_NOW | RTLD_GLOBAL)) (void)fprintf(stderr, "%s\n", dlerror());
#endif
    *(void **)&fake_count_now = find_fake("fake_count_now");
    *(void **)&fake_fail = find_fake("fake_fail");
    *(void **)&fake_failed = find_fake("fake_failed");
    *(void **)&fake_fault = find_fake("fake_fault");
    *(void **)&fake_set_witness = find_fake("fake_set_witness");
}

#endif
