/* What carries bytes between ranks: a table of functions. All ranks call them in the same order
 * with the same sizes, which the group has compared before; all wait. */
#ifndef WB_RANKS_TRANSPORT_H
#define WB_RANKS_TRANSPORT_H

#include "ranks/ranks.h"

enum { WB_MOST_RANKS = 1024 };

typedef struct wb_transport {
    const char *name;
    /* NULL with an error recorded. */
    void *(*start)(const wb_seat *seat, double timeout);
    /* Leaves the group: who waits for this rank afterwards fails. */
    void (*stop)(void *state);
    /* The most bytes that a rank can give at once. */
    size_t (*piece_bytes)(const void *state);
    /* own holds a part of part_bytes for each rank; parts[r]: what rank r has given for this one.
     * It is there until the next call but one. */
    wb_status (*scatter)(void *state, const void *own, size_t part_bytes, const void **parts);
    /* all[r]: what rank r gave; with a root, only all[root] is there, and own may be NULL
     * elsewhere. */
    wb_status (*gather)(void *state, int root, const void *own, size_t bytes, const void **all);
    /* Tells the others why this rank gives up. */
    void (*fail)(void *state, const char *text);
} wb_transport;

extern const wb_transport wb_transport_local;

#endif
