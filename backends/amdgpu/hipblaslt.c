/* AMD's library for backends/cuda/lt: hipBLASLt. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../cuda/lt/lt.h"
#include "platform/library.h"

/* ROCm 6.1's. ROCm 6.0's has other numbers for types, those before also for attributes. */
enum { OLDEST_VERSION = 700 };

/* 1.2.3 is 100203; 0: no handle was asked yet */
static atomic_int version;

/* ---- the library ---- */

static const char *const names[] = {"libhipblaslt.so.1", "libhipblaslt.so", NULL};
static const char *const names_of_6[] = {"libhipblaslt.so.0", "libhipblaslt.so", NULL};

static wb_gpu_library library = {
    .library = {.variable = "WEBER_HIPBLASLT_LIBRARY",
                .missing = "there is no libhipblaslt.so: Weber's own matrix products are used "
                           "(it comes with ROCm 6.1 and later; Debian 12 has none)"},
    .name = LT_LIBRARY,
    .oldest = "ROCm 6.1",
    .symbols = wb_lt_symbols,
    .symbol_count = WB_LT_FUNCTIONS,
    .table = &lt};

/* A library of another ROCm would load a second runtime, which knows nothing of the objects of the
 * first. */
static void choose_names(void) {
    const bool is_older =
        wb_platform_is_loaded("libamdhip64.so.6") || wb_platform_is_loaded("libamdhip64.so.5");
    library.library.names = is_older ? names_of_6 : names;
}

static bool is_old(int v) { return v != 0 && v < OLDEST_VERSION; }

bool wb_lt_load(char *reason, size_t reason_bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, choose_names);
    if (!wb_gpu_library_open(&library, reason, reason_bytes)) return false;
    const int v = atomic_load(&version);
    if (v)
        (void)snprintf(reason, reason_bytes, "hipBLASLt %d.%d.%d%s", v / 100000, v / 100 % 1000,
                       v % 100, is_old(v) ? ": ROCm 6.1 or later is needed" : "");
    else
        (void)snprintf(reason, reason_bytes, "hipBLASLt");
    return !is_old(v);
}

wb_gpu_outcome wb_lt_accept(lt_handle handle) {
    int v = 0;
    wb_gpu_outcome o = LT_TRY(GetVersion, handle, &v);
    atomic_store(&version, v);
    if (!o.error && is_old(v)) o.error = "ROCm 6.1 or later is needed";
    return o;
}

/* ---- errors ---- */

const char *wb_lt_error_name(lt_code code) {
    static const char *const texts[] = {
        "HIPBLAS_STATUS_SUCCESS",        "HIPBLAS_STATUS_NOT_INITIALIZED",
        "HIPBLAS_STATUS_ALLOC_FAILED",   "HIPBLAS_STATUS_INVALID_VALUE",
        "HIPBLAS_STATUS_MAPPING_ERROR",  "HIPBLAS_STATUS_EXECUTION_FAILED",
        "HIPBLAS_STATUS_INTERNAL_ERROR", "HIPBLAS_STATUS_NOT_SUPPORTED",
        "HIPBLAS_STATUS_ARCH_MISMATCH",  "HIPBLAS_STATUS_HANDLE_IS_NULLPTR",
        "HIPBLAS_STATUS_INVALID_ENUM",   "HIPBLAS_STATUS_UNKNOWN"};
    const int count = sizeof texts / sizeof *texts;
    return code >= 0 && code < count ? texts[code] : "an unknown status";
}
