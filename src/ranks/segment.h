/* The memory that the ranks of "local" share: who may map it, where everything lies in it, and how
 * it is read with checks, since other ranks may have another version, or write damaged or forged
 * data. */
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
    _Atomic uint32_t sleepers;                       /* how many wait for it */
    _Atomic uint32_t beats, has_left;
    _Atomic int core; /* from 1: where it was when it came to its step */
    double leaves[2]; /* with a pace: from when its port sends what it gives at a step */
} wb_rank_line;

typedef struct wb_shared {
    _Atomic uint32_t layout, ranks; /* what the first one says */
    _Atomic uint32_t failure, failed_rank;
    char text[WB_SEGMENT_TEXT_BYTES];
    wb_rank_line lines[];
} wb_shared;

typedef struct wb_segment {
    wb_shared *shared; /* NULL: not mapped */
    size_t bytes;
    int file, ranks, rank;
} wb_segment;

/* Maps it and takes the place of the rank in it, by a lock on the byte of its number, which the
 * system gives back when the process ends. False with an error recorded; close it all the same. */
bool wb_segment_open(wb_segment *s, const char *name, int rank, int ranks);
void wb_segment_close(wb_segment *s);

/* A rank of this run holds its place. */
bool wb_segment_is_held(const wb_segment *s, int rank);

/* What the rank gives at a step, WB_WINDOW_BYTES: two in turn. */
char *wb_segment_window(const wb_segment *s, int rank, uint32_t step);

/* The first failure that a rank tells of stays. */
void wb_segment_tell(const wb_segment *s, const char *text);
bool wb_segment_is_told(const wb_segment *s);
/* The error of it. */
wb_status wb_segment_fail_as_told(const wb_segment *s);

#endif
