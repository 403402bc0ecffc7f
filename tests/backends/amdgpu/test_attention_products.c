/* tests/backends/cuda/test_attention_products.c for AMD's plugin. */
#define TEST_AMDGPU
#include "backends/cuda/test_attention_products.c"
