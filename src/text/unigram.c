/* Unigram (Kudo 2018): of all ways to cut a text into pieces the one whose scores have the largest
 * sum, by Viterbi's algorithm. */
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

/* The best way to reach a place. */
typedef struct way {
    double score;
    int64_t begin; /* of its last piece; -1: there is no way */
    int32_t id;
} way;

static void offer(way *place, double score, int64_t begin, int32_t id) {
    if (place->begin < 0 || score > place->score) *place = (way){score, begin, id};
}

static void walk(const wb_token_model *model, const char *text, size_t bytes, way *ways) {
    const wb_vocabulary *vocabulary = &model->vocabulary;
    size_t length;
    for (size_t at = 0; at < bytes; at += length) {
        const double score = ways[at].score;
        bool has_character = false;
        int64_t begin = 0, end = vocabulary->count;
        (void)wb_utf8_code(text + at, &length);
        for (size_t i = 0; at + i < bytes; i++) {
            wb_vocabulary_narrow(vocabulary, &begin, &end, i, (unsigned char)text[at + i]);
            if (begin == end) break;
            const wb_entry *entry = &vocabulary->entries[begin];
            if (entry->bytes != i + 1) continue;
            offer(&ways[at + i + 1], score + entry->score, (int64_t)at, entry->id);
            has_character = has_character || i + 1 == length;
        }
        if (!has_character)
            offer(&ways[at + length], score + model->unknown_score, (int64_t)at, model->unknown);
    }
}

static bool add_piece(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out) {
    const int32_t id = wb_vocabulary_id(&model->vocabulary, text, bytes);
    if (id >= 0) return wb_ids_add(out, id);
    if (model->has_byte_fallback && wb_has_byte_ids(model, text, bytes)) {
        for (size_t i = 0; i < bytes; i++)
            if (!wb_ids_add(out, model->byte_ids[(unsigned char)text[i]])) return false;
        return true;
    }
    return model->unknown < 0 || wb_ids_add(out, model->unknown);
}

/* The pieces from the end to the beginning are turned around in place: a way's `score` is not
 * needed any more, and `begin` of the places on the path gets the end of the piece. */
static bool add_path(const wb_token_model *model, const char *text, size_t bytes, way *ways,
                     wb_ids *out) {
    int64_t end = (int64_t)bytes, after = -1;
    while (end > 0) {
        const int64_t begin = ways[end].begin;
        ways[end].begin = after;
        after = end;
        end = begin;
    }
    int64_t begin = 0;
    for (int64_t at = after; at > 0; at = after) {
        after = ways[at].begin;
        const bool goes_on = ways[at].id == model->unknown && after > 0 &&
                             ways[after].id == model->unknown; /* unknown ones are one */
        if (goes_on) continue;
        if (!add_piece(model, text + begin, (size_t)(at - begin), out)) return false;
        begin = at;
    }
    return true;
}

bool wb_unigram_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out) {
    way *ways = wb_alloc_list((int64_t)bytes + 1, sizeof *ways);
    if (!ways) return false;
    for (size_t i = 1; i <= bytes; i++) ways[i].begin = -1;
    walk(model, text, bytes, ways);
    const bool is_fine = add_path(model, text, bytes, ways, out);
    wb_release(ways);
    return is_fine;
}
