/* What a node of some operations has beside inputs and attributes, and shares with its copies: the
 * body of a scan, a derivative of its own. The first member of those. */
#ifndef WB_ARRAY_PAYLOAD_H
#define WB_ARRAY_PAYLOAD_H

#include <stdint.h>

typedef struct wb_payload {
    int32_t refs; /* of one thread */
    void (*free)(struct wb_payload *payload);
} wb_payload;

static inline void wb_payload_unref(wb_payload *payload) {
    if (payload && --payload->refs == 0) payload->free(payload);
}

#endif
