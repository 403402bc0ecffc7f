/* Sentencepiece's table of replacements ("Precompiled"): a double-array trie of byte strings
 * (Aoe 1989, in the form of Darts-clone), and the texts that they become.
 *
 *     bytes of the trie, u32 | the trie, u32 each | texts, each ended by a zero byte */
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer.h"

enum { MOST_TOGETHER = 6 /* bytes of several characters that are looked up as one */ };

/* ---- base 64 ---- */

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The number of bytes, or -1. */
static int64_t decode(const char *text, size_t length, unsigned char *out) {
    uint32_t bits = 0;
    int64_t count = 0;
    if (length % 4) return -1;
    while (length && text[length - 1] == '=') length--;
    for (size_t i = 0; i < length; i++) {
        const int digit = digit_of(text[i]);
        if (digit < 0) return -1;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4) out[count++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    return count;
}

/* ---- looking up ---- */

static uint32_t unit_at(const wb_text_step *step, size_t place) {
    uint32_t unit = 0;
    if (place < step->text_bytes / 4) memcpy(&unit, step->text + place * 4, 4);
    return unit;
}

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1 << 9) >> 6); }

/* What the shortest beginning of the text that the trie has becomes; NULL: it has none. */
static const char *find(const wb_text_step *step, const char *text, size_t bytes) {
    const uint32_t leaf = 1u << 8, label = 1u << 31 | 0xFF, value = 0x7FFFFFFF;
    size_t place = offset_of(unit_at(step, 0));
    for (size_t i = 0; i < bytes && text[i]; i++) {
        const unsigned char c = (unsigned char)text[i];
        place ^= c;
        const uint32_t unit = unit_at(step, place);
        if ((unit & label) != c) return NULL;
        place ^= offset_of(unit);
        if (!(unit & leaf)) continue;
        const size_t at = unit_at(step, place) & value;
        /* within a character there is no text */
        if (at >= step->content_bytes || ((unsigned char)step->content[at] & 0xC0) == 0x80)
            return NULL;
        return step->content + at;
    }
    return NULL;
}

/* ---- the step ---- */

/* The bytes of the characters that are seen as one. */
static size_t cluster(const wb_unicode *unicode, const char *text, size_t bytes) {
    int32_t state = 0;
    size_t at, length;
    uint32_t code = wb_utf8_code(text, &at);
    while (at < bytes) {
        const uint32_t next = wb_utf8_code(text + at, &length);
        if (unicode->is_break((int32_t)code, (int32_t)next, &state)) break;
        code = next, at += length;
    }
    return at;
}

static void put_characters(const wb_text_step *step, const char *text, size_t bytes, wb_text *out) {
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        (void)wb_utf8_code(text + i, &length);
        const char *found = find(step, text + i, length);
        if (found)
            wb_text_put(out, found);
        else
            wb_text_bytes(out, text + i, length);
    }
}

bool wb_charsmap_run(const wb_text_step *step, const char *text, size_t bytes, wb_text *out) {
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        length = cluster(&step->tokenizer->unicode, text + i, bytes - i);
        const char *found = length < MOST_TOGETHER ? find(step, text + i, length) : NULL;
        if (found)
            wb_text_put(out, found);
        else
            put_characters(step, text + i, length, out);
    }
    return wb_text_status(out) == WB_OK;
}

wb_status wb_charsmap_read(wb_tokenizer *t, const wb_json *json, wb_text_step *step) {
    const wb_json *map = wb_json_get(json, "precompiled_charsmap");
    uint32_t trie_bytes = 0;
    if (!map || map->kind != WB_JSON_TEXT)
        return wb_json_fault(t->file, map ? map : json, "precompiled_charsmap must be a text");
    unsigned char *bytes = wb_arena_take(&t->arena, (size_t)map->count + 1);
    if (!bytes) return WB_ERROR_MEMORY;
    const int64_t count = decode(map->text, (size_t)map->count, bytes);
    if (count < 0) return wb_json_fault(t->file, map, "precompiled_charsmap is not base 64");
    if (count >= 4) memcpy(&trie_bytes, bytes, 4);
    if (count < 4 || trie_bytes > count - 4 || trie_bytes % 4)
        return wb_json_fault(t->file, map, "precompiled_charsmap is cut short");
    bytes[count] = 0;
    step->text = (const char *)bytes + 4, step->text_bytes = trie_bytes;
    step->content = step->text + trie_bytes, step->content_bytes = (size_t)count - 4 - trie_bytes;
    if (wb_utf8_fault(step->content, step->content_bytes) >= 0)
        return wb_json_fault(t->file, map, "precompiled_charsmap has texts that are not UTF-8");
    return wb_unicode_open(&t->unicode);
}
