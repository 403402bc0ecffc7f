/* Memory of the fake driver's devices for libraries that stand for a vendor's: fetched, computed
 * with, and put back, at once and in the order of the stream. Without a driver, which
 * WEBER_CUDA_LIBRARY or (WB_HIP) WEBER_HIP_LIBRARY would name, it is the process's own. */
#ifndef WB_TESTS_CUDA_ON_DEVICE_H
#define WB_TESTS_CUDA_ON_DEVICE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/fake.h"
#include "driver.h"

#ifdef WB_HIP
#define DRIVER_VARIABLE        "WEBER_HIP_LIBRARY"
#define DRIVER_NAME(cuda, hip) hip
#else
#define DRIVER_VARIABLE        "WEBER_CUDA_LIBRARY"
#define DRIVER_NAME(cuda, hip) cuda
#endif

static void *driver_function(const char *name) {
    static void *driver;
    const char *path = getenv(DRIVER_VARIABLE);
    if (!driver && path) driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

static inline bool has_driver(void) { return driver_function(DRIVER_NAME("cuInit", "hipInit")); }

/* A copy of device memory in the host's; what is made in it goes back with put_back. False: the
 * driver did not. */
static inline bool fetch(gpu_stream stream, const void *from, size_t bytes, char **copy) {
    union {
        void *symbol;
        gpu_code (*copy)(void *to, gpu_pointer from, size_t bytes, gpu_stream stream);
    } download = {driver_function(DRIVER_NAME("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync"))};
    union {
        void *symbol;
        gpu_code (*wait)(gpu_stream stream);
    } sync = {driver_function(DRIVER_NAME("cuStreamSynchronize", "hipStreamSynchronize"))};
    *copy = malloc(bytes ? bytes : 1);
    if (!*copy) return false;
    if (!download.symbol) return memcpy(*copy, from, bytes);
    return download.copy(*copy, (gpu_pointer)from, bytes, stream) == 0 && sync.wait(stream) == 0;
}

static inline bool put_back(gpu_stream stream, void *to, const char *copy, size_t bytes) {
    union {
        void *symbol;
        gpu_code (*copy)(gpu_pointer to, const void *from, size_t bytes, gpu_stream stream);
    } upload = {driver_function(DRIVER_NAME("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync"))};
    if (!upload.symbol) return memcpy(to, copy, bytes);
    return upload.copy((gpu_pointer)to, copy, bytes, stream) == 0;
}

/* Time passes for what comes next in any stream, where the fake driver's is made up: to be called
 * after fetch, which waits for what came before. */
static inline void spend(long ms) {
    union {
        void *symbol;
        fake_spend_fn *spend;
    } driver = {driver_function("fake_spend")};
    if (driver.symbol) driver.spend((double)ms);
}

#endif
