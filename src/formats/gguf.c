/* GGUF: the format. */
#include "formats/gguf.h"

#include <string.h>

static bool recognises(const wb_mapping *map) {
    return map->size_bytes >= WB_GGUF_MAGIC_BYTES &&
           memcmp(map->bytes, WB_GGUF_MAGIC, WB_GGUF_MAGIC_BYTES) == 0;
}

const wb_format wb_format_gguf = {.name = "GGUF",
                                  .extension = ".gguf",
                                  .recognises = recognises,
                                  .read = wb_gguf_read,
                                  .write = wb_gguf_write,
                                  .refuses = wb_gguf_refuses,
                                  .has_metadata = true};
