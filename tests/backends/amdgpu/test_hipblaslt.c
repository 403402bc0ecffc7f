/* tests/backends/cuda/test_cublaslt.c for hipBLASLt: this is compiled with WB_HIP. */
#include "backends/cuda/test_cublaslt.c"
