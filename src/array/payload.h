/* What a node of some operations has beside inputs and attributes, and shares with its copies and
 * with the nodes of its derivative: the body of a scan, a derivative of its own, the sizes of a
 * convolution. The first member of those. */
#ifndef WB_ARRAY_PAYLOAD_H
#define WB_ARRAY_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wb_payload {
    _Alignas(8) int32_t refs; /* of one thread */
    int32_t words;            /* so many 64-bit words after this head belong to the key of a plan */
    void (*free)(struct wb_payload *payload);
} wb_payload;

/* A payload of words alone, copied from where they are. NULL when out of memory. */
wb_payload *wb_payload_of_words(const void *words, size_t size_bytes);

static inline const void *wb_payload_words(const wb_payload *payload) { return payload + 1; }

/* Whether two have the same words; NULL has none. */
bool wb_payloads_agree(const wb_payload *a, const wb_payload *b);

static inline wb_payload *wb_payload_ref(wb_payload *payload) {
    if (payload) payload->refs++;
    return payload;
}

static inline void wb_payload_unref(wb_payload *payload) {
    if (payload && --payload->refs == 0) payload->free(payload);
}

#endif
