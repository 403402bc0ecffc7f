/* WordPiece: the longest piece that a word begins with, then the longest that its rest begins with,
 * and so on; a word that cannot be made of pieces is unknown as a whole. */
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

static int64_t characters_in(const char *text, size_t bytes) {
    int64_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

bool wb_wordpiece_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out) {
    const int64_t count = out->count;
    const bool is_short = characters_in(text, bytes) <= model->most_characters;
    size_t at = 0;
    while (is_short && at < bytes) {
        int32_t id = -1;
        const char *prefix = at && model->prefix ? model->prefix : "";
        const size_t length =
            wb_vocabulary_longest(&model->vocabulary, prefix, text + at, bytes - at, &id);
        if (!length) break;
        if (!wb_ids_add(out, id)) return false;
        at += length;
    }
    if (at == bytes && is_short) return true;
    out->count = count;
    return model->unknown < 0 || wb_ids_add(out, model->unknown);
}
