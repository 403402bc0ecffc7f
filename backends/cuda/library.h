/* The vendor's libraries, opened at run time, and what their errors are called. */
#ifndef WB_CUDA_LIBRARY_H
#define WB_CUDA_LIBRARY_H

#include "vendor.h"

/* Opens driver and compiler; once, from any thread. False with the reason. */
bool wb_gpu_load(char *reason, size_t reason_bytes);

#endif
