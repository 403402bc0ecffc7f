/* The vendor's libraries, opened at run time, and what their errors are called. */
#ifndef WB_CUDA_LIBRARY_H
#define WB_CUDA_LIBRARY_H

#include "vendor.h"

/* A library that the backend can do without. It is looked for once. */
typedef struct wb_gpu_library {
    wb_library library;
    const char *name,
        *oldest; /* "cuBLASLt"; the first version that has all functions, for messages */
    const wb_symbol *symbols;
    size_t symbol_count;
    void *table; /* of functions */
    enum { WB_GPU_UNASKED, WB_GPU_OPEN, WB_GPU_MISSING } state;
    char reason[256]; /* why it is missing */
} wb_gpu_library;

/* From any thread. False with the reason. */
bool wb_gpu_library_open(wb_gpu_library *library, char *reason, size_t reason_bytes);

/* Opens driver and compiler; once, from any thread. False with the reason. */
bool wb_gpu_load(char *reason, size_t reason_bytes);

#endif
