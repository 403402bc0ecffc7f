/* Printing a program as text.
 *
 * Names in the text: v value of an instruction; p pointer of an access, o its offset (of a pointer
 * in bytes), s its strides; n sizes; i and c positions in the dimensions of rows and of columns, d
 * those kept for a block, e how far apart blocks are; x place at the row, y place at the row and
 * column; b the column at which a batch begins, l what it or a held row loads, r what is stored of
 * it; t total of a reduction, a its
 * accumulator, q partial totals in scratch memory, g totals that a group shares; u constants as
 * words. */
#ifndef WB_PROGRAM_PRINTER_H
#define WB_PROGRAM_PRINTER_H

#include "program/layout.h"
#include "program/text.h"

/* A number that is a word of the block; if there are too many words, part of the text. */
typedef struct wb_number_word {
    char name[24];
    int64_t value;
    bool is_place; /* of the type of places (offsets); else 64 bits */
} wb_number_word;

typedef struct wb_printer {
    const wb_dialect *dialect;
    wb_layout layout;
    wb_text text;
    int32_t buffers; /* scratch included */
    wb_number_word *numbers;
    int64_t number_count, number_capacity;
    bool are_literals; /* the numbers are literals in the text */
    int32_t most_jobs; /* most jobs of a launch; 0: no jobs, a launch does one thing */
    uint16_t *late;    /* late words in use */
    int64_t late_count, late_capacity;
    bool *is_uniform; /* by instruction: the same everywhere; computed once in front */
    bool *is_loaded;  /* by instruction: a load that an earlier phase has done for a held row */
    bool failed;
} wb_printer;

#define wb_print(printer, ...) wb_text_add(&(printer)->text, __VA_ARGS__)

static inline const wb_instruction *wb_instruction_at(const wb_printer *p, int i) {
    return &p->layout.program.instructions[i];
}

/* True for a constant that is part of the text, since compilers can optimise with it. Others are
 * words of the block, so that a mean over another number of elements, or another scale, has the
 * same text. */
bool wb_is_literal(const wb_instruction *i);

/* The index, in the block, of late value number `late`. */
int wb_late_word(const wb_printer *p, int late);

static inline bool wb_is_tiled(const wb_printer *p) { return p->layout.walk == WB_WALK_TILES; }

/* True if several items share the columns of a row. */
static inline bool wb_is_shared(const wb_printer *p) {
    return p->layout.walk == WB_WALK_GROUPS || p->layout.walk == WB_WALK_WARPS;
}

/* True for a reduction whose total is complete when the phase ends. */
static inline bool wb_is_total(const wb_instruction *i, int phase) {
    return wb_is_reduction(i) && i->phase == phase + 1;
}

/* The expression for an item's number among those that share a row. */
static inline const char *wb_lane(const wb_printer *p) {
    return p->layout.walk == WB_WALK_WARPS ? "lane" : "(wb_i32)WB_LANE";
}

/* ---- expression.c ---- */

/* wb_i32 or wb_i64: the type of places */
const char *wb_place_type(const wb_printer *p);
/* The type with which a value of this register type is declared. */
const char *wb_value_type(wb_register type);

/* Prints the name of an instruction's value. */
void wb_print_value(wb_printer *p, uint16_t number);
/* Prints what an instruction computes; for a reduction, its result from the total. */
void wb_print_expression(wb_printer *p, uint16_t number);
/* Three parts of a load of several elements, as they are in memory, to an array such as l7: its
 * declaration, the load of element j, the value of an element. */
void wb_print_batch(wb_printer *p, uint16_t load, int count);
void wb_print_batch_load(wb_printer *p, uint16_t load);
void wb_print_batch_value(wb_printer *p, uint16_t load);
/* Prints a store, as a statement. */
void wb_print_store(wb_printer *p, uint16_t number);
/* The type in memory of what a load or store moves, without wb_. */
const char *wb_memory_type(const wb_printer *p, uint16_t number);
/* Prints the place of access a, for instructions of rows or of columns. */
void wb_print_place(wb_printer *p, int a, bool is_row);

/* ---- place.c ---- */

/* Declares positions in the given dimensions, as name0, name1, ..., computed from one number that
 * counts all of them. */
void wb_print_positions(wb_printer *p, uint32_t dims, const char *from, char name);
/* Declares the places (offsets) of accesses at the row's positions; the next function, at the
 * column's positions for what is needed. */
void wb_print_row_bases(wb_printer *p);
void wb_print_column_bases(wb_printer *p, const bool *needed);
/* True if a needed access uses positions in the columns' dimensions. */
bool wb_is_positioned(const wb_printer *p, const bool *needed);
/* Declares positions and places at column c. */
void wb_print_column(wb_printer *p, const bool *needed);

/* ---- reduction.c ---- */

/* True if a reduction adds up blocks of elements first. Sums of floats have totals in f64, if the
 * device has it; f32 is added up in f32 within a block, since a loop with f64 works on half as many
 * elements at a time. */
bool wb_has_blocks(const wb_instruction *reduction);
const char *wb_total_type(const wb_printer *p, const wb_instruction *reduction);
const char *wb_accumulator_type(const wb_instruction *reduction);
/* Prints the start value of a total. */
void wb_print_start(wb_printer *p, const wb_instruction *reduction);
/* Prints the result, in the type of values, from the total; the next function, how a value is added
 * to the accumulator. */
void wb_print_result(wb_printer *p, uint16_t number);
void wb_print_step(wb_printer *p, uint16_t number);
/* Prints a statement that merges `from` into the total `to`. */
void wb_print_merge(wb_printer *p, const wb_instruction *reduction, const char *to,
                    const char *from);

/* Prints statements that combine the phase's totals of all items that share a row, so that each
 * item has the row's total. */
void wb_print_shared_totals(wb_printer *p, int phase);

/* f32, f64, i32 or i64: the suffix in names of functions */
const char *wb_register_suffix(int type);

/* Elements that are added up in f32, one after another where the compiler makes no vectors: the
 * error stays below 1e-6. */
enum { WB_BLOCK_COLUMNS = 64 };

/* ---- walk.c ---- */

/* Prints the loop over the columns for one phase. needed: as for wb_print_kernel. */
void wb_print_phase(wb_printer *p, int phase, bool *needed);

/* True for what is computed for each column: not for numbers, and what is the same everywhere. */
bool wb_is_in_body(const wb_printer *p, const bool *needed, int i);

/* One statement for each reduction that ends with the phase: its total is declared, its accumulator
 * for a block of elements is declared, that is added to the total. */
typedef enum wb_totals { WB_TOTALS_DECLARE, WB_TOTALS_CLEAR, WB_TOTALS_ADD } wb_totals;
void wb_print_totals(wb_printer *p, int phase, wb_totals what);

/* ---- piece.c ---- */

/* Declares whether pieces of all rows can be moved at once. */
void wb_print_wholeness(wb_printer *p);
/* The column at which an item's first piece begins; column number j of those from b on. */
void wb_print_first_piece(wb_printer *p);
void wb_print_piece_column(wb_printer *p);
/* Loads `count` columns of an item from b on, computes, stores. */
void wb_print_pieces(wb_printer *p, int count, const bool *needed);
/* The same for all columns of a row that is held; loads what no earlier phase has loaded. */
void wb_walk_held(wb_printer *p, int phase, const bool *needed);

/* ---- kernel.c ---- */

/* Opens a loop over the rows j of a tile; prints nothing for one row. */
void wb_open_rows(wb_printer *p);
void wb_close_rows(wb_printer *p);
/* Declares an array with an element for each row of a tile. */
void wb_print_array(wb_printer *p, const char *type, char name, int number);
void wb_print_declaration(wb_printer *p, uint16_t number);

/* Prints the kernel of a launch. needed: scratch, a flag for each instruction. */
void wb_print_kernel(wb_printer *p, int launch, bool *needed);

/* A placeholder for the text's hash in the names of its kernels, until the hash is known. */
#define WB_NAME_BLANK "k@@@@@@@@@@@@@@@@"

#endif
