/* A program's text in the making.
 *
 * Names in the text: v value of an instruction; p pointer of an access, o its offset (of a pointer
 * in bytes), s its strides; n sizes; i and c positions in the dimensions of rows and of columns, d
 * those kept for a block, e how far apart blocks are; x place at the row, y place at the row and
 * column; b the column at which a batch begins, l what it loads; t total of a reduction, a its
 * accumulator, q partial totals in scratch memory, g totals that a group shares; u constants as
 * words. */
#ifndef WB_PROGRAM_PRINTER_H
#define WB_PROGRAM_PRINTER_H

#include "program/layout.h"
#include "program/text.h"

/* A number that is a word of the block, or part of the text where there are too many. */
typedef struct wb_number_word {
    char name[24];
    int64_t value;
    bool is_place; /* as wide as places are; else 64 bits */
} wb_number_word;

typedef struct wb_printer {
    const wb_dialect *dialect;
    wb_layout layout;
    wb_text text;
    int32_t buffers; /* scratch included */
    wb_number_word *numbers;
    int64_t number_count, number_capacity;
    bool are_literals; /* the numbers stand in the text */
    int32_t most_jobs; /* of a launch; 0: there is but one thing to do */
    uint16_t *late;    /* late words in use */
    int64_t late_count, late_capacity;
    bool *is_uniform; /* by instruction: the same everywhere; computed once in front */
    bool failed;
} wb_printer;

#define wb_print(printer, ...) wb_text_add(&(printer)->text, __VA_ARGS__)

static inline const wb_instruction *wb_instruction_at(const wb_printer *p, int i) {
    return &p->layout.program.instructions[i];
}

/* A constant that is part of the text: what compilers do better with. The others are words of the
 * block, so that a mean over another number of elements, or another scale, is no other text. */
bool wb_is_literal(const wb_instruction *i);

/* The word of the block that late value number `late` is. */
int wb_late_word(const wb_printer *p, int late);

static inline bool wb_is_tiled(const wb_printer *p) { return p->layout.walk == WB_WALK_TILES; }

/* Items share out the columns of a row. */
static inline bool wb_is_shared(const wb_printer *p) {
    return p->layout.walk == WB_WALK_GROUPS || p->layout.walk == WB_WALK_WARPS;
}

/* A reduction whose total is complete when the phase ends. */
static inline bool wb_is_total(const wb_instruction *i, int phase) {
    return wb_is_reduction(i) && i->phase == phase + 1;
}

/* An item's number among those that share. */
static inline const char *wb_lane(const wb_printer *p) {
    return p->layout.walk == WB_WALK_WARPS ? "lane" : "(wb_i32)WB_LANE";
}

/* ---- expression.c ---- */

/* wb_i32 or wb_i64: the type of places */
const char *wb_place_type(const wb_printer *p);
/* How a value of the register is declared. */
const char *wb_value_type(wb_register type);

/* An instruction's value, as operands name it. */
void wb_print_value(wb_printer *p, uint16_t number);
/* What an instruction computes; of a reduction: its result, from the total. */
void wb_print_expression(wb_printer *p, uint16_t number);
/* A load of several elements as they are in memory, l7: declared; number j of it loaded; its
 * value. */
void wb_print_batch(wb_printer *p, uint16_t load, int count);
void wb_print_batch_load(wb_printer *p, uint16_t load);
void wb_print_batch_value(wb_printer *p, uint16_t load);
/* A store, as a statement. */
void wb_print_store(wb_printer *p, uint16_t number);

/* ---- place.c ---- */

/* Positions in the given dimensions, as name0, name1, ..., from a number that counts them
 * together. */
void wb_print_positions(wb_printer *p, uint32_t dims, const char *from, char name);
/* Places at the positions: of the row; of the column, for what is needed. */
void wb_print_row_bases(wb_printer *p);
void wb_print_column_bases(wb_printer *p, const bool *needed);
/* Some access that is needed goes by positions in the columns' dimensions. */
bool wb_is_positioned(const wb_printer *p, const bool *needed);
/* Positions and places at column c. */
void wb_print_column(wb_printer *p, const bool *needed);

/* ---- reduction.c ---- */

/* Sums of floats have totals in f64 where there are such. Those of f32 are added up in f32 for each
 * block of elements first: a loop with f64 in it works on half as many elements at a time. */
bool wb_has_blocks(const wb_instruction *reduction);
const char *wb_total_type(const wb_printer *p, const wb_instruction *reduction);
const char *wb_accumulator_type(const wb_instruction *reduction);
/* The total of nothing. */
void wb_print_start(wb_printer *p, const wb_instruction *reduction);
/* The result, of the type of values, from the total; the value's step to the accumulator. */
void wb_print_result(wb_printer *p, uint16_t number);
void wb_print_step(wb_printer *p, uint16_t number);
/* Statement: `to`, a total, takes in `from`. */
void wb_print_merge(wb_printer *p, const wb_instruction *reduction, const char *to,
                    const char *from);

/* Statements: what the items that share a row have as totals of the phase becomes the row's total
 * in each of them. */
void wb_print_shared_totals(wb_printer *p, int phase);

/* f32, f64, i32 or i64: what functions are named by */
const char *wb_register_suffix(int type);

/* ---- walk.c ---- */

/* The walk over the columns for one phase. needed: as for wb_print_kernel. */
void wb_print_phase(wb_printer *p, int phase, bool *needed);

/* ---- kernel.c ---- */

/* A loop over the rows of a tile, number j; nothing for one row. */
void wb_open_rows(wb_printer *p);
void wb_close_rows(wb_printer *p);
/* Declares an array with an element for each row of a tile. */
void wb_print_array(wb_printer *p, const char *type, char name, int number);
void wb_print_declaration(wb_printer *p, uint16_t number);

/* needed: room for a flag of each instruction. */
void wb_print_kernel(wb_printer *p, int launch, bool *needed);

/* Stands for the text's hash in the names of its kernels, until it is known. */
#define WB_NAME_BLANK "k@@@@@@@@@@@@@@@@"

#endif
