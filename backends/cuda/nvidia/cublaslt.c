/* NVIDIA's library for backends/cuda/lt: cuBLASLt. */
#include <stdio.h>

#include "../lt/lt.h"

static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
                                    "libcublasLt.so", NULL};

static wb_gpu_library library = {
    .library = {.variable = "WEBER_CUBLASLT_LIBRARY",
                .names = names,
                .missing = "there is no libcublasLt.so: Weber's own matrix products are used "
                           "(Debian: libcublaslt11; section non-free)"},
    .name = LT_LIBRARY,
    .oldest = "CUDA 11.4",
    .symbols = wb_lt_symbols,
    .symbol_count = WB_LT_FUNCTIONS,
    .table = &lt};

/* 130100 is 13.1.0 */
bool wb_lt_load(char *reason, size_t reason_bytes) {
    if (!wb_gpu_library_open(&library, reason, reason_bytes)) return false;
    const unsigned long version = lt.GetVersion();
    (void)snprintf(reason, reason_bytes, "cuBLASLt %lu.%lu.%lu", version / 10000,
                   version / 100 % 100, version % 100);
    return true;
}

wb_gpu_outcome wb_lt_accept(lt_handle handle) {
    (void)handle;
    return (wb_gpu_outcome){.error = NULL};
}

const char *wb_lt_error_name(lt_code code) { return lt.GetStatusName(code); }
