#include "fuzz_safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wb_file file = fuzz_file(data, size);
    if (fuzz_read(&wb_format_gguf, &file) >= 0) {
        (void)fuzz_walk(file.metadata);
        fuzz_forget(file.metadata);
    }
    wb_arena_release(&file.arena);
    wb_clear_error();
    return 0;
}
