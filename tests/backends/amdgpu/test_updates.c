/* tests/backends/cuda/test_updates.c for AMD's plugin. */
#define TEST_AMDGPU
#include "backends/cuda/test_updates.c"
