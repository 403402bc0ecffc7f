/* A program made ready for the CPU: a schedule of steps over tiles that stay in the first-level
 * cache. */
#ifndef WB_CPU_PROGRAM_H
#define WB_CPU_PROGRAM_H

#include "adam.h"
#include "cpu.h"

enum { WB_MOST_STEPS = 1024, WB_MOST_STREAMS = 8 };

/* Elements of a row that is used where it lies: shorter ones are copied, as one array. */
enum { WB_LEAST_ROW = 64 };

/* How a tile of `outer` rows of `inner` elements is reduced. */
typedef enum wb_shape {
    WB_MAP,     /* nothing is reduced */
    WB_ROWS,    /* each row of the tile to one value; a row is whole, or a part */
    WB_WHOLE,   /* the tile to one value */
    WB_COLUMNS, /* the rows of the tile to one row */
} wb_shape;

/* A loop over one dimension in steps of a tile. */
typedef struct wb_loop {
    int dim;
    int64_t size, step, count; /* of the dimension, of a tile, number of tiles */
} wb_loop;

typedef struct wb_step {
    const wb_instruction *instruction;
    uint16_t number;       /* of the instruction: its value */
    wb_element_loop *loop; /* elementwise */
    wb_fused fused;        /* with the product in[0] in[1]; in[2] is the other operand */
    uint16_t in[3];
    uint16_t twin;       /* of WB_MOMENTS: the sum of the differences; the step's is of squares */
    bool may_be_in_rows; /* an operand or the result, of wb_cpu_program.in_rows */
} wb_step;

typedef struct wb_step_list {
    wb_step *steps;
    int64_t count, capacity;
    int64_t fixed;                   /* the first steps, done once for all tiles of a unit */
    int16_t stream[WB_MOST_STREAMS]; /* accesses read or written where they lie */
    int nstreams;
    int64_t asks; /* steps that ask for a part of each stream's next tile */
} wb_step_list;

struct wb_cpu_program {
    wb_program program; /* a copy of its own */
    const wb_loops *loops;
    wb_shape shape;
    int64_t inner, outer; /* largest tile */
    bool second_in_tile;  /* its rows lie along dimension 1; otherwise outer is 1 */
    int64_t row_values;   /* values of a row register */
    wb_loop kept[8], reduced[8];
    int nkept, nreduced;
    bool is_large;                 /* its arrays do not stay in the caches near the core */
    int64_t units, steps_per_unit; /* tiles of row values; tiles reduced for each */
    wb_step_list full[WB_MOST_PHASES];
    wb_step_list rows[WB_MOST_PHASES + 1]; /* rows[p] before phase p */
    wb_step_list constants;
    wb_cpu_adam adam;
    wb_step_list gradient;  /* steps that make Adam's gradient, where it is not an array */
    int reductions;         /* REDUCE instructions */
    int64_t side_values;    /* numbers that all side sums have together; each piece has its own */
    int64_t *offset;        /* of each value's register in the scratch of a worker, or -1; of a side
                               sum its first number */
    uint16_t *reduction;    /* number of each REDUCE */
    int16_t *direct_store;  /* access that the value is computed straight into, or -1 */
    bool *is_direct_load;   /* the value may be read where it lies in memory */
    bool *is_wide;          /* some step reads the value as a whole register */
    bool *in_rows;          /* elementwise steps may read or write it in memory, row by row */
    int64_t register_bytes; /* of all of a worker's registers and accumulators */
    int64_t accumulators_at;
    int64_t pieces, units_per_piece,
        steps_per_piece; /* of a parallel run; steps < steps_per_unit: split reductions */
};

static inline bool wb_is_reduction(const wb_instruction *i) {
    return i->code == WB_CODE_sum || i->code == WB_CODE_max_reduce;
}

/* A row value is read as a number of each row: the rows are whole vectors, and long. */
static inline bool wb_has_row_numbers(const wb_cpu_program *k) {
    return k->shape == WB_ROWS && k->outer > 1 && k->inner % WB_LANES == 0 &&
           k->inner >= WB_LEAST_ROW;
}

static inline bool wb_is_constant(const wb_instruction *i) {
    return i->code == WB_CODE_constant || i->code == WB_CODE_late;
}

/* Bytes of an element of a register. */
static inline int64_t wb_register_bytes(wb_register type) {
    return type == WB_R_F64 || type == WB_R_I64 ? 8 : 4;
}

/* A side sum has one number, or one for each element of a row. */
static inline int64_t wb_side_count(const wb_cpu_program *p, const wb_instruction *side_sum) {
    return p->program.accesses[side_sum->index].strides[0] ? p->program.sizes[0] : 1;
}

static inline bool wb_is_split(const wb_cpu_program *p) {
    return p->steps_per_piece < p->steps_per_unit;
}

#endif
