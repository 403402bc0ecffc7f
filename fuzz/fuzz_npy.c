#include "fuzz_safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_one(&wb_format_npy, data, size);
}
