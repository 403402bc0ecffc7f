/* What a kernel keeps of its rendered source: the numbers that each launch gets (words), not the
 * text, which kernels share once it is compiled. Before each launch the offsets of the arguments
 * are filled in. */
#include "source.h"

#include <string.h>

static void *copy_of(const wb_host *host, const void *data, size_t size_bytes) {
    void *copy = host->alloc(size_bytes ? size_bytes : 1);
    if (copy && size_bytes) memcpy(copy, data, size_bytes);
    return copy;
}

bool wb_source_keep(const wb_host *host, const wb_source *source, wb_source *kept) {
    *kept = *source;
    kept->text = NULL;
    kept->words = copy_of(host, source->words, (size_t)source->word_count * sizeof *source->words);
    kept->late = copy_of(host, source->late, (size_t)source->late_count * sizeof *source->late);
    return kept->words && kept->late;
}

void wb_source_drop(const wb_host *host, wb_source *kept) {
    host->release(kept->words);
    host->release(kept->late);
    kept->words = NULL, kept->late = NULL;
}

void wb_source_fill(const wb_source *source, const wb_command *command, const wb_memory *memory,
                    int64_t *words) {
    if (words != source->words)
        memcpy(words, source->words, (size_t)source->word_count * sizeof *words);
    for (int32_t i = 0; i < source->buffer_count; i++) {
        const wb_argument *a = &command->arguments[i];
        words[source->first_offset + i] = memory[a->memory].offset_bytes + a->offset_bytes;
    }
}
