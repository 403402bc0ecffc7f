#include "fuzz_safetensors.h"

#include <weber.h>

/* The model that the file says, if it says one. */
static void build(const uint8_t *data, size_t size) {
    wb_scope_open();
    wb_file *file = wb_open_memory("fuzz.gguf", data, size, NULL, NULL);
    wb_layer *model = file ? wb_file_model(file, NULL, NULL) : NULL;
    if (file && !model && !wb_failed()) abort();
    wb_free(model), wb_free(file);
    wb_clear_error();
    (void)wb_scope_close();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wb_file file = fuzz_file(data, size);
    const int64_t count = fuzz_read(&wb_format_gguf, &file);
    if (count >= 0) {
        (void)fuzz_walk(file.metadata);
        fuzz_forget(file.metadata);
        fuzz_again(&wb_format_gguf, &file, count);
    }
    wb_arena_release(&file.arena);
    wb_clear_error();
    if (count >= 0) build(data, size);
    return 0;
}
