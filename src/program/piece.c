/* What an item takes of a row: pieces of columns side by side, each loaded and stored at once where
 * memory is dense and aligned. They are a batch, or all that the item has of a row, which it then
 * holds in its registers through all phases, so that each element is loaded once.
 *
 * Pieces of neighbouring items lie side by side. Which an item has, and so the order of sums, does
 * not depend on how they are moved. The loops have fixed lengths and are written out, so that
 * arrays become registers, and what two phases compute alike from what is held the compiler
 * computes once. An item whose last piece lies beyond the row loads the row's last piece instead,
 * and neither adds it to sums nor stores it. */
#include <weber/dtype.h>

#include "program/printer.h"

/* Bytes of a piece; 0: it is moved element by element. */
static int piece_bytes(const wb_printer *p, int a) {
    const wb_access *access = &p->layout.program.accesses[a];
    const int bytes = p->layout.piece * (int)wb_dtype_size((wb_dtype)access->dtype);
    const bool is_dense = p->layout.piece > 1 && wb_access_is_dense(&p->layout, a);
    return is_dense && bytes >= 4 ? bytes : 0;
}

void wb_print_wholeness(wb_printer *p) {
    bool is_any = false;
    for (int a = 0; a < p->layout.program.naccesses; a++) {
        const int bytes = piece_bytes(p, a);
        if (bytes == 0) continue;
        wb_print(p, "%sWB_ALIGNED(p%d, %d)", is_any ? " && " : "const wb_i32 are_whole = ", a,
                 bytes);
        is_any = true;
    }
    if (is_any) wb_print(p, ";\n");
}

void wb_print_first_piece(wb_printer *p) {
    if (wb_is_shared(p) && p->layout.piece > 1)
        wb_print(p, "first + %s * %d", wb_lane(p), p->layout.piece);
    else
        wb_print(p, "first + %s", wb_is_shared(p) ? wb_lane(p) : "0");
}

void wb_print_piece_column(wb_printer *p) {
    const int piece = p->layout.piece, step = wb_layout_sharers(&p->layout, p->dialect);
    if (piece == 1)
        wb_print(p, "b + j * %d", step);
    else
        wb_print(p, "b + j / %d * %d + j %% %d", piece, step * piece, piece);
}

/* ---- the columns of an item ---- */

/* From column b on. Of a row that is held, the last piece may be missing. */
typedef struct columns {
    int count;
    bool is_held;
    const bool *needed; /* by instruction: in the phase */
    int from, to;       /* of the columns, those that a loop takes */
    int phase;
} columns;

/* A loop over columns c, or over the first ones of pieces, with positions and places. */
static void open_columns(wb_printer *p, const columns *all, bool by_pieces) {
    const int piece = p->layout.piece, step = by_pieces ? piece : 1;
    const char *type = wb_place_type(p);
    wb_print(p, "WB_UNROLL\nfor (wb_i32 j = %d; j < %d; j += %d) {\nconst %s %s = ", all->from,
             all->to, step, type, all->is_held ? "at" : "c");
    wb_print_piece_column(p);
    wb_print(p, ";\n");
    if (all->is_held)
        wb_print(p,
                 "const wb_i32 is_in = j < %d || at < last;\n"
                 "const %s c = is_in ? at : last - %d;\n",
                 all->count - piece, type, step);
    wb_print_column(p, all->needed);
}

/* ---- loads and stores ---- */

/* True for a load that is done before the others. */
static bool is_load(const wb_printer *p, const columns *all, int i) {
    const wb_instruction *instruction = wb_instruction_at(p, i);
    if (!wb_is_in_body(p, all->needed, i) || instruction->code != WB_CODE_load) return false;
    return wb_access_varies(&p->layout, &p->layout.program.accesses[instruction->index], true);
}

static bool is_store(const wb_printer *p, const columns *all, int i) {
    return wb_is_in_body(p, all->needed, i) && wb_instruction_at(p, i)->code == WB_CODE_store;
}

/* One load's, of all columns: l7[j] = p2[y2]; or WB_MOVE(16, l7 + j, p2 + (y2)); */
static void print_load(wb_printer *p, const columns *all, int i, bool by_pieces) {
    const int a = wb_instruction_at(p, i)->index, bytes = by_pieces ? piece_bytes(p, a) : 0;
    open_columns(p, all, bytes > 0);
    if (bytes)
        wb_print(p, "WB_MOVE(%d, l%d + j, p%d + (", bytes, i, a);
    else
        wb_print(p, "l%d[j] = p%d[", i, a);
    wb_print_place(p, a, false);
    wb_print(p, bytes ? "));\n}\n" : "];\n}\n");
}

static void print_store(wb_printer *p, const columns *all, int i, bool by_pieces) {
    const int a = wb_instruction_at(p, i)->index, bytes = by_pieces ? piece_bytes(p, a) : 0;
    open_columns(p, all, bytes > 0);
    if (all->is_held) wb_print(p, "if (is_in) ");
    if (bytes)
        wb_print(p, "WB_MOVE(%d, p%d + (", bytes, a);
    else
        wb_print(p, "p%d[", a);
    wb_print_place(p, a, false);
    wb_print(p, bytes ? "), r%d + j);\n}\n" : "] = r%d[j];\n}\n", i);
}

typedef struct moves {
    bool loads, stores; /* which instructions are printed */
    bool by_pieces;
} moves;

static void print_moves(wb_printer *p, const columns *all, moves m) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        if (m.loads && is_load(p, all, i) && !p->is_loaded[i])
            print_load(p, all, i, m.by_pieces);
        else if (m.stores && is_store(p, all, i))
            print_store(p, all, i, m.by_pieces);
    }
}

/* The same with and without pieces, if there are any. */
static void print_either(wb_printer *p, const columns *all, bool are_pieces, moves m,
                         void (*print)(wb_printer *p, const columns *all, moves m)) {
    m.by_pieces = are_pieces;
    if (are_pieces) wb_print(p, "if (are_whole) {\n");
    print(p, all, m);
    if (!are_pieces) return;
    m.by_pieces = false;
    wb_print(p, "} else {\n");
    print(p, all, m);
    wb_print(p, "}\n");
}

/* ---- the whole ---- */

/* Finds the loads and stores, and whether any of them moves whole pieces. */
static moves declare_arrays(wb_printer *p, const columns *all) {
    moves m = {.loads = false};
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const bool loads = is_load(p, all, i) && !p->is_loaded[i];
        if (!loads && !is_store(p, all, i)) continue;
        *(loads ? &m.loads : &m.stores) = true;
        m.by_pieces = m.by_pieces || piece_bytes(p, wb_instruction_at(p, i)->index);
        wb_print(p, "WB_ARRAY(wb_%s, %c%d, %d);\n", wb_memory_type(p, (uint16_t)i),
                 loads ? 'l' : 'r', i, all->count);
    }
    return m;
}

static void print_block(wb_printer *p, const columns *all) {
    open_columns(p, all, false);
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_in_body(p, all->needed, i)) continue;
        if (wb_is_reduction(instruction)) {
            if (all->is_held) wb_print(p, "if (is_in) ");
            wb_print_step(p, (uint16_t)i);
        } else if (instruction->code == WB_CODE_store) {
            wb_print(p, "wb_store_%s(r%d, j, ", wb_memory_type(p, (uint16_t)i), i);
            wb_print_value(p, instruction->in[0]);
            wb_print(p, ");\n");
        } else if (is_load(p, all, i)) {
            wb_print_batch_value(p, (uint16_t)i);
        } else {
            wb_print_declaration(p, (uint16_t)i);
        }
    }
    wb_print(p, "}\n");
}

/* Of a row that is held, in blocks of columns whose sums are added to the totals. */
static void print_body(wb_printer *p, const columns *all) {
    columns block = *all;
    if (!all->is_held) print_block(p, all);
    for (; all->is_held && block.from < all->count; block.from = block.to) {
        const int left = all->count - block.from;
        block.to = block.from + (left < WB_BLOCK_COLUMNS ? left : WB_BLOCK_COLUMNS);
        wb_print(p, "{\n");
        wb_print_totals(p, all->phase, WB_TOTALS_CLEAR);
        print_block(p, &block);
        wb_print_totals(p, all->phase, WB_TOTALS_ADD);
        wb_print(p, "}\n");
    }
}

static void print_moves_and_body(wb_printer *p, const columns *all, moves m) {
    print_moves(p, all, (moves){.loads = true, .by_pieces = m.by_pieces});
    print_body(p, all);
    print_moves(p, all, (moves){.stores = true, .by_pieces = m.by_pieces});
}

/* All loads are issued before the first is used. */
static void print_at_once(wb_printer *p, const columns *all) {
    const moves m = declare_arrays(p, all);
    const bool loads = m.by_pieces && m.loads, stores = m.by_pieces && m.stores;
    print_either(p, all, loads, (moves){.loads = true}, print_moves);
    if (m.loads) wb_print(p, "WB_LOADED\n");
    print_body(p, all);
    print_either(p, all, stores, (moves){.stores = true}, print_moves);
}

/* What a later phase loads and stores is used once and mostly the same for all rows: the compiler
 * may put loads, computation and stores into any order, so that it needs fewer registers. */
static void print_later(wb_printer *p, const columns *all) {
    const moves m = declare_arrays(p, all);
    print_either(p, all, m.by_pieces, m, print_moves_and_body);
}

void wb_print_pieces(wb_printer *p, int count, const bool *needed) {
    const columns all = {.count = count, .needed = needed, .to = count};
    print_at_once(p, &all);
}

void wb_walk_held(wb_printer *p, int phase, const bool *needed) {
    const int count = p->layout.held * p->layout.piece;
    const columns all = {count, true, needed, 0, count, phase};
    if (phase == 0)
        print_at_once(p, &all);
    else
        print_later(p, &all);
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        p->is_loaded[i] = p->is_loaded[i] || is_load(p, &all, i);
}
