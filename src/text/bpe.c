/* Byte-pair encoding (Sennrich et al. 2016): of all neighbours that may be merged, the pair that
 * was learnt first is merged, the leftmost one of several, until none is left. The pairs wait in a
 * heap, so that a long piece takes n log n. */
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

typedef struct symbol {
    int32_t id;
    int64_t before, after; /* -1: none */
    bool is_gone;          /* part of the symbol before it */
} symbol;

typedef struct candidate {
    int32_t rank, id;
    int64_t place;
} candidate;

typedef struct word {
    const wb_token_model *model;
    symbol *symbols;
    int64_t count, capacity;
    candidate *heap;
    int64_t waiting, heap_capacity;
} word;

/* ---- pairs ---- */

static const wb_merge *find_merge(const wb_token_model *model, int32_t left, int32_t right) {
    int64_t begin = 0, end = model->merge_count;
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const wb_merge *merge = &model->merges[middle];
        if (merge->left == left && merge->right == right) return merge;
        if (merge->left < left || (merge->left == left && merge->right < right))
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

static bool is_before(const candidate *a, const candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->place < b->place;
}

static bool push(word *w, candidate added) {
    if (!WB_GROW(w->heap, w->waiting, w->heap_capacity)) return false;
    int64_t i = w->waiting++;
    for (; i > 0 && is_before(&added, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = added;
    return true;
}

static candidate pop(word *w) {
    const candidate first = w->heap[0], last = w->heap[--w->waiting];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= w->waiting) break;
        if (child + 1 < w->waiting && is_before(&w->heap[child + 1], &w->heap[child])) child++;
        if (!is_before(&w->heap[child], &last)) break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}

/* The symbol and the one after it. */
static bool push_pair(word *w, int64_t place) {
    if (place < 0 || w->symbols[place].after < 0) return true;
    const symbol *left = &w->symbols[place];
    const wb_merge *merge = find_merge(w->model, left->id, w->symbols[left->after].id);
    return !merge || push(w, (candidate){merge->rank, merge->id, place});
}

/* ---- symbols ---- */

static bool add_symbol(word *w, int32_t id) {
    if (!WB_GROW(w->symbols, w->count, w->capacity)) return false;
    w->symbols[w->count] = (symbol){id, w->count - 1, -1, false};
    if (w->count) w->symbols[w->count - 1].after = w->count;
    w->count++;
    return true;
}

static bool add_unknown(word *w, const char *text, size_t bytes, bool *was_unknown) {
    const wb_token_model *model = w->model;
    if (model->has_byte_fallback && wb_has_byte_ids(model, text, bytes)) {
        *was_unknown = false;
        for (size_t i = 0; i < bytes; i++)
            if (!add_symbol(w, model->byte_ids[(unsigned char)text[i]])) return false;
        return true;
    }
    if (model->unknown < 0) return true;
    if (*was_unknown && model->fuses_unknown) return true;
    *was_unknown = true;
    return add_symbol(w, model->unknown);
}

/* A character's id, with what marks pieces that go on and that end a word. */
static int32_t id_of(const wb_token_model *model, const char *text, size_t bytes, bool is_first,
                     bool is_last) {
    const char *prefix = is_first || !model->prefix ? "" : model->prefix;
    const char *suffix = is_last && model->suffix ? model->suffix : "";
    if (!*prefix && !*suffix) return wb_vocabulary_id(&model->vocabulary, text, bytes);
    char all[256];
    const size_t before = strlen(prefix), after = strlen(suffix);
    if (before + bytes + after > sizeof all) return -1;
    memcpy(all, prefix, before);
    memcpy(all + before, text, bytes);
    memcpy(all + before + bytes, suffix, after);
    return wb_vocabulary_id(&model->vocabulary, all, before + bytes + after);
}

static bool add_characters(word *w, const char *text, size_t bytes) {
    bool was_unknown = false;
    size_t length;
    for (size_t i = 0; i < bytes; i += length) {
        (void)wb_utf8_code(text + i, &length);
        const int32_t id = id_of(w->model, text + i, length, i == 0, i + length == bytes);
        if (id >= 0) was_unknown = false;
        if (!(id >= 0 ? add_symbol(w, id) : add_unknown(w, text + i, length, &was_unknown)))
            return false;
    }
    return true;
}

static bool merge(word *w) {
    for (int64_t i = 0; i < w->count; i++)
        if (!push_pair(w, i)) return false;
    while (w->waiting) {
        const candidate best = pop(w);
        symbol *left = &w->symbols[best.place];
        if (left->is_gone || left->after < 0) continue;
        symbol *right = &w->symbols[left->after];
        const wb_merge *pair = find_merge(w->model, left->id, right->id);
        if (!pair || pair->id != best.id) continue; /* one of them has changed */
        left->id = best.id;
        left->after = right->after;
        right->is_gone = true;
        if (left->after >= 0) w->symbols[left->after].before = best.place;
        if (!push_pair(w, left->before) || !push_pair(w, best.place)) return false;
    }
    return true;
}

bool wb_bpe_encode(const wb_token_model *model, const char *text, size_t bytes, wb_ids *out) {
    if (model->ignores_merges) {
        const int32_t id = wb_vocabulary_id(&model->vocabulary, text, bytes);
        if (id >= 0) return wb_ids_add(out, id);
    }
    word w = {.model = model};
    bool is_fine = add_characters(&w, text, bytes) && merge(&w);
    for (int64_t i = 0; is_fine && i < w.count; i++)
        if (!w.symbols[i].is_gone) is_fine = wb_ids_add(out, w.symbols[i].id);
    wb_release(w.symbols);
    wb_release(w.heap);
    return is_fine;
}
