/* Payloads of words alone. */
#include "array/payload.h"

#include <string.h>

#include "base/memory.h"

static void free_words(wb_payload *payload) { wb_release(payload); }

wb_payload *wb_payload_of_words(const void *words, size_t size_bytes) {
    wb_payload *payload = wb_alloc(sizeof *payload + size_bytes);
    if (!payload) return NULL;
    *payload = (wb_payload){
        .refs = 1, .words = (int32_t)(size_bytes / sizeof(int64_t)), .free = free_words};
    memcpy(payload + 1, words, size_bytes);
    return payload;
}

bool wb_payloads_agree(const wb_payload *a, const wb_payload *b) {
    if (a == b) return true;
    const int32_t words = a ? a->words : 0;
    if (words != (b ? b->words : 0)) return false;
    return words == 0 ||
           memcmp(wb_payload_words(a), wb_payload_words(b), sizeof(int64_t) * (size_t)words) == 0;
}
