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

/* The longest entry that the text begins with: its bytes of the text, or 0. */
static size_t longest(const wb_token_model *model, const char *prefix, const char *text,
                      size_t bytes, int32_t *id) {
    const wb_vocabulary *vocabulary = &model->vocabulary;
    const size_t before = strlen(prefix);
    int64_t begin = 0, end = vocabulary->count;
    size_t found = 0;
    for (size_t i = 0; i < before + bytes; i++) {
        const char c = i < before ? prefix[i] : text[i - before];
        wb_vocabulary_narrow(vocabulary, &begin, &end, i, (unsigned char)c);
        if (begin == end) break;
        if (i < before || vocabulary->entries[begin].bytes != i + 1) continue;
        found = i + 1 - before;
        *id = vocabulary->entries[begin].id;
    }
    return found;
}

bool wb_wordpiece_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out) {
    const int64_t count = out->count;
    const bool is_short = characters_in(text, bytes) <= model->most_characters;
    size_t at = 0;
    while (is_short && at < bytes) {
        int32_t id = -1;
        const char *prefix = at && model->prefix ? model->prefix : "";
        const size_t length = longest(model, prefix, text + at, bytes - at, &id);
        if (!length) break;
        if (!wb_ids_add(out, id)) return false;
        at += length;
    }
    if (at == bytes && is_short) return true;
    out->count = count;
    return model->unknown < 0 || wb_ids_add(out, model->unknown);
}
