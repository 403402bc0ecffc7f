/* tests/backends/cuda/test_training.c for AMD's plugin. */
#define TEST_AMDGPU
#include "backends/cuda/test_training.c"
