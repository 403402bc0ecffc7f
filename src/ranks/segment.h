/* The memory that the ranks of transport "local" share: who may map it, its layout, and how it is
 * read with checks, since other ranks may have another version, or write damaged or forged data. */
#ifndef WB_RANKS_SEGMENT_H
#define WB_RANKS_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weber/error.h>

enum { WB_WINDOW_BYTES = 1 << 20, WB_SEGMENT_LINE = 64, WB_SEGMENT_TEXT_BYTES = 1024 };

/* Of each rank. */
typedef struct wb_rank_line {
    _Alignas(WB_SEGMENT_LINE) _Atomic uint32_t step; /* others sleep on it */
    _Atomic uint32_t sleepers;                       /* how many ranks wait for it */
    _Atomic uint32_t beats, has_left;
    _Atomic int core; /* 1 + the core on which it ran when it came to its step */
    double leaves[2]; /* with a pace: from when on its port sends the data of a step */
} wb_rank_line;

typedef struct wb_shared {
    _Atomic uint32_t layout, ranks; /* set by the first rank */
    _Atomic uint32_t failure, failed_rank;
    char text[WB_SEGMENT_TEXT_BYTES];
    wb_rank_line lines[];
} wb_shared;

typedef struct wb_segment {
    wb_shared *shared; /* NULL: not mapped */
    size_t bytes;
    int file, ranks, rank;
} wb_segment;

/* Maps the segment and takes the rank's place in it by a lock on the byte of its number; the system
 * releases the lock when the process ends. False with an error recorded; close it even then. */
bool wb_segment_open(wb_segment *s, const char *name, int rank, int ranks);
void wb_segment_close(wb_segment *s);

/* True if a process of this run holds the place of the rank. */
bool wb_segment_is_held(const wb_segment *s, int rank);

/* The window, of WB_WINDOW_BYTES, with the rank's data of a step; two windows are used in turn. */
char *wb_segment_window(const wb_segment *s, int rank, uint32_t step);

/* Reports a failure to the other ranks; the first report stays. */
void wb_segment_tell(const wb_segment *s, const char *text);
bool wb_segment_is_told(const wb_segment *s);
/* Fails with the reported failure. */
wb_status wb_segment_fail_as_told(const wb_segment *s);

#endif
