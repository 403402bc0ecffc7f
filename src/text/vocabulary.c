/* Tokens in the order of their bytes: no choice of tokens makes a search slow, as it would with a
 * hash table. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "text/tokenizer.h"

static int compare(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    const size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
    const int order = common ? memcmp(a, b, common) : 0;
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* Of equal tokens, which Unigram's list may have, the last one counts: it comes first here. */
static int by_text(const void *a, const void *b) {
    const wb_entry *left = a, *right = b;
    const int order = compare(left->text, left->bytes, right->text, right->bytes);
    return order ? order : (left->id < right->id) - (left->id > right->id);
}

/* An id in the upper half, its place in the lower one. */
static int by_number(const void *a, const void *b) {
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

bool wb_vocabulary_sort(wb_vocabulary *vocabulary) {
    const int64_t count = vocabulary->count;
    if (count) qsort(vocabulary->entries, (size_t)count, sizeof *vocabulary->entries, by_text);
    uint64_t *numbers = wb_alloc_list(count + 1, sizeof *numbers);
    vocabulary->by_id = wb_alloc_list(count + 1, sizeof *vocabulary->by_id);
    if (numbers && vocabulary->by_id) {
        for (int64_t i = 0; i < count; i++)
            numbers[i] = (uint64_t)(uint32_t)vocabulary->entries[i].id << 32 | (uint64_t)i;
        qsort(numbers, (size_t)count, sizeof *numbers, by_number);
        for (int64_t i = 0; i < count; i++)
            vocabulary->by_id[i] = (int32_t)(numbers[i] & 0x7FFFFFFF);
    }
    wb_release(numbers);
    return numbers && vocabulary->by_id;
}

int32_t wb_vocabulary_id(const wb_vocabulary *vocabulary, const char *text, size_t bytes) {
    int64_t begin = 0, end = vocabulary->count;
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const wb_entry *entry = &vocabulary->entries[middle];
        if (compare(entry->text, entry->bytes, text, bytes) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == vocabulary->count) return -1;
    const wb_entry *found = &vocabulary->entries[begin];
    return compare(found->text, found->bytes, text, bytes) == 0 ? found->id : -1;
}

const wb_entry *wb_vocabulary_entry(const wb_vocabulary *vocabulary, int32_t id) {
    int64_t begin = 0, end = vocabulary->count;
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const wb_entry *entry = &vocabulary->entries[vocabulary->by_id[middle]];
        if (entry->id == id) return entry;
        if (entry->id < id)
            begin = middle + 1;
        else
            end = middle;
    }
    return NULL;
}

/* The first entry of the range whose byte at this place is at least `least`. */
static int64_t first_from(const wb_vocabulary *vocabulary, int64_t begin, int64_t end, size_t at,
                          int least) {
    while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        const wb_entry *entry = &vocabulary->entries[middle];
        const int byte = entry->bytes > at ? (unsigned char)entry->text[at] : -1;
        if (byte < least)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

void wb_vocabulary_narrow(const wb_vocabulary *vocabulary, int64_t *begin, int64_t *end, size_t at,
                          unsigned char c) {
    *begin = first_from(vocabulary, *begin, *end, at, c);
    *end = first_from(vocabulary, *begin, *end, at, c + 1);
}

size_t wb_vocabulary_longest(const wb_vocabulary *vocabulary, const char *prefix, const char *text,
                             size_t bytes, int32_t *id) {
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

void wb_vocabulary_release(wb_vocabulary *vocabulary) {
    wb_release(vocabulary->entries);
    wb_release(vocabulary->by_id);
    *vocabulary = (wb_vocabulary){.count = 0};
}
