/* A tile of a program's domain, as one thread works on it: where its elements are in memory and in
 * registers. */
#ifndef WB_CPU_TILE_H
#define WB_CPU_TILE_H

#include <string.h>

#include "program.h"

/* One run, as all threads see it. */
typedef struct wb_job {
    const wb_cpu_program *k;
    char *const *arguments;
    const uint64_t *late;
    char *scratch;
    wb_accumulator *partial; /* of split reductions, by piece */
    wb_accumulator *sides;   /* of side sums, by piece; then their totals, and these as numbers */
} wb_job;

/* Memory that the next tile will most likely use, prefetched a part at each step of this tile: all
 * at once, the requests would wait for each other. The hardware does not do it, because it sees too
 * little of each array at a time. If rows are reduced, the tile after the next one is brought into
 * the second cache, which allows more requests at a time than the first. */
typedef struct wb_ahead {
    const char *at[WB_MOST_STREAMS];
    int64_t part[WB_MOST_STREAMS];  /* bytes at each step */
    int64_t again[WB_MOST_STREAMS]; /* bytes to the tile after the next, or 0 */
    int count;
} wb_ahead;

/* One thread's view of one tile. */
typedef struct wb_tile {
    const wb_job *job;
    char *registers;
    int64_t position[8];  /* of the tile's first element in the domain */
    int64_t inner, outer; /* elements of this tile */
    int64_t n;            /* inner * outer, rounded up to whole lanes */
    bool is_even;         /* inner * outer fills whole lanes: memory may serve as register */
    bool has_even_rows;   /* so does inner, a few times */
    int64_t row_values, row_n;
    wb_accumulator *accumulators, *sides;
    void *value[WB_MOST_STEPS];     /* where each value is */
    bool is_in_rows[WB_MOST_STEPS]; /* not one row after the other, but row_bytes apart */
    int64_t row_bytes[WB_MOST_STEPS];
    wb_ahead next;
} wb_tile;

static inline int64_t wb_whole_lanes(int64_t n) { return (n + WB_LANES - 1) / WB_LANES * WB_LANES; }

static inline int64_t wb_first_element(const wb_tile *t, const wb_access *a) {
    int64_t place = a->offset;
    for (int d = 0; d < t->job->k->program.ndim; d++) place += t->position[d] * a->strides[d];
    return place;
}

static inline size_t wb_storage_size(int dtype) {
    static const uint8_t sizes[WB_DTYPE_COUNT] = {
        [WB_F32] = 4, [WB_F64] = 8, [WB_F16] = 2, [WB_BF16] = 2,
        [WB_I32] = 4, [WB_I64] = 8, [WB_U8] = 1,  [WB_BOOL] = 1};
    return sizes[dtype];
}

static inline char *wb_address(const wb_tile *t, const wb_access *a) {
    const int64_t size = (int64_t)wb_storage_size(a->dtype);
    return t->job->arguments[a->argument] + wb_first_element(t, a) * size;
}

static inline void *wb_own_register(const wb_tile *t, uint16_t value) {
    return t->registers + t->job->k->offset[value];
}

static inline void wb_to_register(wb_tile *t, uint16_t value) {
    t->value[value] = wb_own_register(t, value);
}

/* A constant, or a late number of this run. */
static inline double wb_number_of(const wb_job *j, const wb_instruction *i) {
    double number = i->constant;
    if (i->code == WB_CODE_late) memcpy(&number, &j->late[i->index], sizeof number);
    return number;
}

/* The elements of the tile lie one after another in memory. */
static inline bool wb_lies_flat(const wb_tile *t, const wb_access *a) {
    return (a->strides[0] == 1 || t->inner == 1) && (t->outer == 1 || a->strides[1] == t->inner);
}

/* Elements of an access into a register, and back: n of a row, `stride` apart; all of the tile. */
void wb_load_row(const wb_tile *t, const wb_access *a, int64_t n, int64_t stride, const char *from,
                 char *to);
void wb_store_row(const wb_tile *t, const wb_access *a, int64_t n, int64_t stride, const char *from,
                  char *to);
void wb_load_tile(const wb_tile *t, const wb_access *a, char *to);
void wb_store_tile(const wb_tile *t, const wb_access *a, const char *from);
/* Stride along the values of a row register. */
int64_t wb_row_stride(const wb_tile *t, const wb_access *a);

/* iota and random numbers: inner x outer elements, `across` and `down` apart in number. */
void wb_source_tile(const wb_tile *t, const wb_instruction *i, int64_t inner, int64_t outer,
                    int64_t across, int64_t down, char *to);
void wb_fill_constant(const wb_loops *loops, const wb_instruction *i, double number, int64_t n,
                      void *to);

/* ---- program_sums.c ---- */

/* Accumulators of all reductions as they begin. */
void wb_sums_start(const wb_cpu_program *k, wb_accumulator *accumulators);
/* The tile's part of a reduction; of a side sum. */
void wb_sums_reduce(const wb_tile *t, const wb_step *step);
void wb_sums_add_up(const wb_tile *t, const wb_step *step);
/* Two parts of a reduction as one, a before b. */
wb_accumulator wb_sums_merge(const wb_instruction *i, wb_accumulator a, wb_accumulator b);
/* n accumulators to a register of this type; those of a reduction to its own. */
void wb_sums_finish(uint8_t type, int64_t n, const wb_accumulator *sums, void *to);
void wb_sums_finish_row(const wb_tile *t, const wb_step *step);

/* ---- program_step.c ---- */

/* A step on all elements of the tile, and one on its row values. */
void wb_step_full(wb_tile *t, const wb_step *step);
void wb_step_row(wb_tile *t, const wb_step *step);

/* Runs the tile of a program that is Adam's step; false if its arrays do not lie in rows
 * (program_adam.c). */
bool wb_cpu_adam_tile(const wb_tile *t);

#endif
