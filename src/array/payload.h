/* More than the attributes of a node can hold: the body of a scan, a custom derivative, the sizes
 * of a convolution. Copies of the node and the nodes of its derivative share it. wb_payload is the
 * first member of each such struct. */
#ifndef WB_ARRAY_PAYLOAD_H
#define WB_ARRAY_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wb_payload {
    _Alignas(8) int32_t refs; /* not atomic: one thread uses it */
    int32_t words;            /* number of 64-bit words after this head that are in a plan's key */
    void (*free)(struct wb_payload *payload);
} wb_payload;

/* A payload that is a copy of these words. NULL when out of memory. */
wb_payload *wb_payload_of_words(const void *words, size_t size_bytes);

static inline const void *wb_payload_words(const wb_payload *payload) { return payload + 1; }

/* Whether two payloads have the same words; NULL has none. */
bool wb_payloads_agree(const wb_payload *a, const wb_payload *b);

static inline wb_payload *wb_payload_ref(wb_payload *payload) {
    if (payload) payload->refs++;
    return payload;
}

static inline void wb_payload_unref(wb_payload *payload) {
    if (payload && --payload->refs == 0) payload->free(payload);
}

#endif
