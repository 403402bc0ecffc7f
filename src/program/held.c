/* A row that the items which share it hold in their registers: each element is loaded once, in
 * pieces of up to 16 bytes, for all phases.
 *
 * An item holds the pieces that begin at columns lane * piece, and so on, sharers * piece apart.
 * Which of them it holds, and so the order of sums, does not depend on how they are moved. The
 * loops have fixed lengths and are written out, so that arrays become registers, and what two
 * phases compute from them alike the compiler computes once. So items that have no last piece load
 * and compute some other one; they add up and store nothing of it. */
#include <weber/dtype.h>

#include "program/printer.h"

static const wb_access *access_of(const wb_printer *p, int i) {
    return &p->layout.program.accesses[wb_instruction_at(p, i)->index];
}

static int sharers(const wb_printer *p) { return wb_layout_sharers(&p->layout, p->dialect); }

static int held_columns(const wb_printer *p) { return p->layout.held * p->layout.piece; }

/* Bytes of a piece; 0: it is moved element by element. */
static int piece_bytes(const wb_printer *p, const wb_access *access) {
    const int bytes = p->layout.piece * (int)wb_dtype_size((wb_dtype)access->dtype);
    const bool is_dense = p->layout.piece > 1 && wb_access_is_dense(&p->layout, access);
    return is_dense && bytes >= 4 ? bytes : 0;
}

void wb_print_wholeness(wb_printer *p) {
    bool is_any = false;
    for (int a = 0; p->layout.held && a < p->layout.program.naccesses; a++) {
        const int bytes = piece_bytes(p, &p->layout.program.accesses[a]);
        if (bytes == 0) continue;
        wb_print(p, "%sWB_ALIGNED(p%d, %d)", is_any ? " && " : "const wb_i32 are_whole = ", a,
                 bytes);
        is_any = true;
    }
    if (is_any) wb_print(p, ";\n");
}

/* A loop over what an item holds: each column, or each piece's first. All but the last piece are
 * there for every item. */
static void open_columns(wb_printer *p, bool by_pieces) {
    const int piece = p->layout.piece;
    const char *type = wb_place_type(p);
    wb_print(p, "WB_UNROLL\nfor (wb_i32 j = 0; j < %d; j += %d) {\n", held_columns(p),
             by_pieces ? piece : 1);
    if (piece == 1)
        wb_print(p, "const %s at = %s + j * %d;\n", type, wb_lane(p), sharers(p));
    else
        wb_print(p, "const %s at = %s * %d + j / %d * %d + j %% %d;\n", type, wb_lane(p), piece,
                 piece, sharers(p) * piece, piece);
    wb_print(p, "const wb_i32 is_in = j < %d || at < last;\n", held_columns(p) - piece);
}

/* Columns c of what an item holds, with positions and places. */
static void open_places(wb_printer *p, const bool *needed, bool by_pieces) {
    open_columns(p, by_pieces);
    wb_print(p, "const %s c = is_in ? at : last - %d;\n", wb_place_type(p),
             by_pieces ? p->layout.piece : 1);
    wb_print_column(p, needed);
}

/* Bytes that are moved at once, of a piece; else 0. */
static int moved_bytes(const wb_printer *p, int i, bool by_pieces) {
    return by_pieces ? piece_bytes(p, access_of(p, i)) : 0;
}

/* ---- loads ---- */

static bool is_held(const wb_printer *p, const bool *needed, int i) {
    return wb_is_in_body(p, needed, i) && wb_instruction_at(p, i)->code == WB_CODE_load &&
           wb_access_varies(&p->layout, access_of(p, i), true);
}

static void print_load(wb_printer *p, const bool *needed, int i, bool by_pieces) {
    const int a = wb_instruction_at(p, i)->index, bytes = moved_bytes(p, i, by_pieces);
    open_places(p, needed, bytes > 0);
    if (bytes)
        wb_print(p, "WB_MOVE(%d, l%d + j, p%d + (", bytes, i, a);
    else
        wb_print(p, "l%d[j] = p%d[", i, a);
    wb_print_place(p, a, false);
    wb_print(p, bytes ? "));\n}\n" : "];\n}\n");
}

/* Those that no earlier phase has loaded. */
static void print_loads(wb_printer *p, const bool *needed, bool by_pieces) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_held(p, needed, i) && !p->is_loaded[i]) print_load(p, needed, i, by_pieces);
}

/* ---- stores ---- */

static bool is_store(const wb_printer *p, const bool *needed, int i) {
    return wb_is_in_body(p, needed, i) && wb_instruction_at(p, i)->code == WB_CODE_store;
}

static void print_held_store(wb_printer *p, const bool *needed, int i, bool by_pieces) {
    const int a = wb_instruction_at(p, i)->index, bytes = moved_bytes(p, i, by_pieces);
    open_places(p, needed, bytes > 0);
    if (bytes)
        wb_print(p, "if (is_in) WB_MOVE(%d, p%d + (", bytes, a);
    else
        wb_print(p, "if (is_in) p%d[", a);
    wb_print_place(p, a, false);
    wb_print(p, bytes ? "), r%d + j);\n}\n" : "] = r%d[j];\n}\n", i);
}

static void print_held_stores(wb_printer *p, const bool *needed, bool by_pieces) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_store(p, needed, i)) print_held_store(p, needed, i, by_pieces);
}

/* ---- the phase ---- */

/* Of loads and stores of the phase: which there are, whether any goes by pieces. */
typedef struct moves {
    bool are_loads, are_stores, are_pieces;
} moves;

static moves declare_arrays(wb_printer *p, const bool *needed) {
    moves m = {.are_loads = false};
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const bool is_load = is_held(p, needed, i) && !p->is_loaded[i];
        if (!is_load && !is_store(p, needed, i)) continue;
        *(is_load ? &m.are_loads : &m.are_stores) = true;
        m.are_pieces = m.are_pieces || moved_bytes(p, i, true);
        wb_print(p, "WB_ARRAY(wb_%s, %c%d, %d);\n", wb_memory_type(p, (uint16_t)i),
                 is_load ? 'l' : 'r', i, held_columns(p));
    }
    return m;
}

static void print_held_body(wb_printer *p, const bool *needed) {
    open_places(p, needed, false);
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_in_body(p, needed, i)) continue;
        if (wb_is_reduction(instruction)) {
            wb_print(p, "if (is_in) ");
            wb_print_step(p, (uint16_t)i);
        } else if (instruction->code == WB_CODE_store) {
            wb_print(p, "wb_store_%s(r%d, j, ", wb_memory_type(p, (uint16_t)i), i);
            wb_print_value(p, instruction->in[0]);
            wb_print(p, ");\n");
        } else if (is_held(p, needed, i)) {
            wb_print_batch_value(p, (uint16_t)i);
        } else {
            wb_print_declaration(p, (uint16_t)i);
        }
    }
    wb_print(p, "}\n");
}

/* What the first phase loads is all on its way before it is used. What a later one loads is used
 * once, mostly the same for all rows, and needs no registers for all of it at a time. */
static void print_moves_and_body(wb_printer *p, const bool *needed, bool is_first, bool by_pieces) {
    print_loads(p, needed, by_pieces);
    if (is_first) wb_print(p, "WB_LOADED\n");
    print_held_body(p, needed);
    print_held_stores(p, needed, by_pieces);
}

void wb_walk_held(wb_printer *p, int phase, const bool *needed) {
    const moves m = declare_arrays(p, needed);
    wb_print_totals(p, phase, WB_TOTALS_CLEAR);
    if (m.are_pieces && m.are_stores) {
        wb_print(p, "if (are_whole) {\n");
        print_moves_and_body(p, needed, phase == 0, true);
        wb_print(p, "} else {\n");
        print_moves_and_body(p, needed, phase == 0, false);
        wb_print(p, "}\n");
    } else if (m.are_pieces) {
        wb_print(p, "if (are_whole) {\n");
        print_loads(p, needed, true);
        wb_print(p, "} else {\n");
        print_loads(p, needed, false);
        wb_print(p, "}\nWB_LOADED\n");
        print_held_body(p, needed);
    } else {
        print_moves_and_body(p, needed, phase == 0, false);
    }
    wb_print_totals(p, phase, WB_TOTALS_ADD);
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        p->is_loaded[i] = p->is_loaded[i] || is_held(p, needed, i);
}
