#include "base/lookup3.h"
#include "fuzz_safetensors.h"

/* In place of the library's: every checksum, which stands behind its bytes, is right. */
uint32_t wb_lookup3(const unsigned char *bytes, size_t size_bytes) {
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) sum |= (uint32_t)bytes[size_bytes + (size_t)i] << 8 * i;
    return sum;
}

/* Such files are only read. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wb_file file = fuzz_file(data, size);
    (void)fuzz_read(&wb_format_jld2, &file);
    wb_arena_release(&file.arena);
    wb_clear_error();
    return 0;
}
