/* One phase of a program: the columns are walked once, for the reductions that end with it and the
 * stores. */
#include <string.h>

#include "program/printer.h"

enum {
    MOST_LOADS = 8,  /* loads of an item that are in flight at once */
    MOST_BYTES = 64, /* of them, where loads bring pieces, */
    MOST_COLUMNS = 32,
};

/* ---- what belongs to the phase ---- */

static bool ends_here(const wb_instruction *i, int phase) {
    return wb_is_total(i, phase) || (i->code == WB_CODE_store && !i->row && i->phase == phase);
}

static void mark_needed(const wb_printer *p, int phase, bool *needed) {
    const wb_program *program = &p->layout.program;
    for (int i = program->ninstructions - 1; i >= 0; i--) {
        const wb_instruction *instruction = &program->instructions[i];
        if (ends_here(instruction, phase)) needed[i] = true;
        if (!needed[i] || instruction->code == WB_CODE_spread) continue;
        for (int k = 0; k < 3; k++) {
            const uint16_t in = instruction->in[k];
            if (in != WB_NO_VALUE && !program->instructions[in].row) needed[in] = true;
        }
    }
}

static bool has_blocks_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (wb_is_total(instruction, phase) && wb_has_blocks(instruction)) return true;
    }
    return false;
}

static bool has_reduction_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (wb_is_total(wb_instruction_at(p, i), phase)) return true;
    return false;
}

static bool has_end_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (ends_here(wb_instruction_at(p, i), phase)) return true;
    return false;
}

/* One statement for each reduction of the phase. */
void wb_print_totals(wb_printer *p, int phase, wb_totals what) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_total(instruction, phase)) continue;
        const char *type = what == WB_TOTALS_DECLARE ? wb_total_type(p, instruction)
                                                     : wb_accumulator_type(instruction);
        const char name = what == WB_TOTALS_DECLARE ? 't' : 'a';
        if (what != WB_TOTALS_DECLARE && !wb_has_blocks(instruction)) continue;
        if (what != WB_TOTALS_ADD && wb_is_tiled(p)) wb_print_array(p, type, name, i);
        wb_open_rows(p);
        const char *j = wb_is_tiled(p) ? "[j]" : "";
        if (what == WB_TOTALS_ADD) {
            wb_print(p, "t%d%s += a%d%s;\n", i, j, i, j);
        } else {
            wb_print(p, "%s%s%c%d%s = ", wb_is_tiled(p) ? "" : type, wb_is_tiled(p) ? "" : " ",
                     name, i, j);
            wb_print_start(p, instruction);
            wb_print(p, ";\n");
        }
        wb_close_rows(p);
    }
}

bool wb_is_in_body(const wb_printer *p, const bool *needed, int i) {
    const wb_instruction *instruction = wb_instruction_at(p, i);
    return needed[i] && !p->is_uniform[i] && !wb_is_literal(instruction) &&
           instruction->code != WB_CODE_spread;
}

static bool is_load(const wb_printer *p, const bool *needed, int i) {
    return wb_is_in_body(p, needed, i) && wb_instruction_at(p, i)->code == WB_CODE_load;
}

/* is_batched: loads were done before. */
static void print_body(wb_printer *p, const bool *needed, bool is_batched) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_in_body(p, needed, i)) continue;
        if (wb_is_reduction(instruction))
            wb_print_step(p, (uint16_t)i);
        else if (instruction->code == WB_CODE_store)
            wb_print_store(p, (uint16_t)i);
        else if (is_batched && instruction->code == WB_CODE_load)
            wb_print_batch_value(p, (uint16_t)i);
        else
            wb_print_declaration(p, (uint16_t)i);
    }
}

static const char *loop_mark(const wb_printer *p) {
    return p->layout.has_long_runs ? "WB_INDEPENDENT_LONG" : "WB_INDEPENDENT";
}

static void walk_runs(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const wb_layout *l = &p->layout;
    const char *type = wb_place_type(p);
    wb_print(p, "for (%s c = first; c < last;) {\n", type);
    wb_print_column(p, needed);
    wb_print(p, "%s run = last - c;\n", type);
    if (l->decodes && wb_is_positioned(p, needed))
        wb_print(p, "if (run > n%d - c%d) run = n%d - c%d;\n", l->first_column, l->first_column,
                 l->first_column, l->first_column);
    if (has_blocks) wb_print(p, "if (run > %d) run = %d;\n", WB_BLOCK_COLUMNS, WB_BLOCK_COLUMNS);
    wb_print_totals(p, phase, WB_TOTALS_CLEAR);
    wb_print(p, "%s\nfor (%s j = 0; j < run; j++) {\n", loop_mark(p), type);
    print_body(p, needed, false);
    wb_print(p, "}\n");
    wb_print_totals(p, phase, WB_TOTALS_ADD);
    wb_print(p, "c += run;\n}\n");
}

/* The first block's positions by division, and how far each block is from the last one. */
static void print_first_positions(wb_printer *p) {
    const char *type = wb_place_type(p);
    const int last = p->layout.program.ndim - 1;
    for (int d = 0; d <= last; d++) wb_print(p, "%s d%d[%d];\n", type, d, WB_TILE_ROWS);
    wb_print(p, "%s e_rest = %d;\n", type, WB_TILE_ROWS);
    for (int d = 0; d < last; d++)
        wb_print(p, "const %s e%d = e_rest %% n%d; e_rest /= n%d;\n", type, d, d, d);
    wb_print(p, "for (wb_i32 j = 0; j < %d; j++) {\n", WB_TILE_ROWS);
    wb_print_positions(p, p->layout.column_dims, "first + j", 'c');
    for (int d = 0; d <= last; d++) wb_print(p, "d%d[j] = c%d;\n", d, d);
    wb_print(p, "}\n");
}

/* Adds with a carry from dimension to dimension. */
static void print_next_positions(wb_printer *p) {
    const char *type = wb_place_type(p);
    const int last = p->layout.program.ndim - 1;
    wb_print(p, "%s\nfor (wb_i32 j = 0; j < %d; j++) {\n%s over = 0;\n", loop_mark(p), WB_TILE_ROWS,
             type);
    for (int d = 0; d < last; d++)
        wb_print(p,
                 "const %s c%d = d%d[j] + e%d + over;\nover = c%d >= n%d;\n"
                 "d%d[j] = over ? c%d - n%d : c%d;\n",
                 type, d, d, d, d, d, d, d, d, d);
    wb_print(p, "d%d[j] += e_rest + over;\n}\n", last);
}

static void walk_blocks(wb_printer *p, const bool *needed) {
    const char *type = wb_place_type(p);
    const bool is_walked = wb_is_positioned(p, needed);
    if (is_walked) print_first_positions(p);
    wb_print(p,
             "for (%s c = first; c < last; c += %d) {\n"
             "const wb_i32 m = (wb_i32)(last - c < %d ? last - c : %d);\n"
             "%s\nfor (wb_i32 j = 0; j < m; j++) {\n",
             type, WB_TILE_ROWS, WB_TILE_ROWS, WB_TILE_ROWS, loop_mark(p));
    for (int d = 0; is_walked && d < p->layout.program.ndim; d++)
        wb_print(p, "const %s c%d = d%d[j];\n", type, d, d);
    wb_print_column_bases(p, needed);
    print_body(p, needed, false);
    wb_print(p, "}\n");
    if (is_walked) print_next_positions(p);
    wb_print(p, "}\n");
}

static void walk_tiles(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const char *type = wb_place_type(p);
    wb_print(p, "for (%s c = first; c < last;) {\n", type);
    if (has_blocks)
        wb_print(p, "const %s stop = last - c > %d ? c + %d : last;\n", type, WB_BLOCK_COLUMNS,
                 WB_BLOCK_COLUMNS);
    wb_print_totals(p, phase, WB_TOTALS_CLEAR);
    wb_print(p, "for (; c < %s; c++) {\n", has_blocks ? "stop" : "last");
    wb_print_column(p, needed);
    wb_print(p, "%s\nfor (wb_i32 j = 0; j < m; j++) {\n", loop_mark(p));
    print_body(p, needed, false);
    wb_print(p, "}\n}\n");
    wb_print_totals(p, phase, WB_TOTALS_ADD);
    wb_print(p, "}\n");
}

/* How many elements an item takes at a time: their loads are on the way together, since a store
 * might change what the next load reads, as far as the compiler knows. Pieces bring more bytes with
 * each load. */
static int batch_of(const wb_printer *p, const bool *needed) {
    const wb_layout *l = &p->layout;
    int loads = 0, batch = MOST_LOADS;
    for (int i = 0; i < l->program.ninstructions; i++) loads += is_load(p, needed, i);
    if (loads == 0) return l->piece;
    if (l->piece == 1) {
        while (batch > 1 && batch * loads > MOST_LOADS) batch /= 2;
        return batch;
    }
    batch = l->piece;
    while (batch < MOST_COLUMNS && 2 * batch / l->piece * l->piece_bytes <= MOST_BYTES) batch *= 2;
    while (l->is_map && batch > l->piece && batch * p->dialect->group > l->chunk) batch /= 2;
    return batch;
}

/* What is left of the columns, fewer than a batch. Places beyond them load the last element once
 * more: a condition on each load would hold up the loads after it, and processors have few
 * registers for conditions. */
static void print_rest(wb_printer *p, const bool *needed, int batch, const char *stop) {
    const char *type = wb_place_type(p);
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_load(p, needed, i)) wb_print_batch(p, (uint16_t)i, batch);
    wb_print(p, "WB_UNROLL\nfor (wb_i32 j = 0; j < %d; j++) {\nconst %s at = ", batch, type);
    wb_print_piece_column(p);
    wb_print(p, ", c = at < %s ? at : %s - 1;\n", stop, stop);
    wb_print_column(p, needed);
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_load(p, needed, i)) wb_print_batch_load(p, (uint16_t)i);
    wb_print(p, "}\nWB_LOADED\nWB_UNROLL\nfor (wb_i32 j = 0; j < %d; j++) {\nconst %s c = ", batch,
             type);
    wb_print_piece_column(p);
    wb_print(p, ";\nif (c < %s) {\n", stop);
    wb_print_column(p, needed);
    print_body(p, needed, true);
    wb_print(p, "}\n}\n");
}

static void walk_batches(wb_printer *p, const bool *needed, int batch, int step, const char *stop) {
    const int piece = p->layout.piece;
    wb_print(p, "for (; b + %d < %s; b += %d) {\n", (batch - piece) * step + piece - 1, stop,
             batch * step);
    wb_print_pieces(p, batch, needed);
    wb_print(p, "}\nif (b < %s) {\n", stop);
    print_rest(p, needed, batch, stop);
    wb_print(p, "b += %d;\n}\n", batch * step);
}

static void walk_items(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const char *type = wb_place_type(p), *stop = has_blocks ? "stop" : "last";
    const int step = wb_layout_sharers(&p->layout, p->dialect), batch = batch_of(p, needed);
    const char b = batch > 1 ? 'b' : 'c';
    wb_print(p, "for (%s %c = ", type, b);
    wb_print_first_piece(p);
    wb_print(p, "; %c < last;) {\n", b);
    if (has_blocks)
        wb_print(p, "const %s stop = last - %c > %d ? %c + %d : last;\n", type, b,
                 WB_BLOCK_COLUMNS * step, b, WB_BLOCK_COLUMNS * step);
    wb_print_totals(p, phase, WB_TOTALS_CLEAR);
    if (batch > 1) {
        walk_batches(p, needed, batch, step, stop);
    } else {
        wb_print(p, "for (; c < %s; c += %d) {\n", stop, step);
        wb_print_column(p, needed);
        print_body(p, needed, false);
        wb_print(p, "}\n");
    }
    wb_print_totals(p, phase, WB_TOTALS_ADD);
    wb_print(p, "}\n");
}

/* ---- reductions among chunks ---- */

static void print_partials(wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_total(instruction, phase)) continue;
        if (p->layout.walk == WB_WALK_GROUPS) wb_print(p, "if (WB_LANE == 0) ");
        wb_open_rows(p);
        wb_print(p,
                 wb_is_tiled(p) ? "q%d[k * rows + row + j] = t%d[j];\n"
                                : "q%d[k * rows + row] = t%d;\n",
                 i, i);
        wb_close_rows(p);
    }
}

void wb_print_phase(wb_printer *p, int phase, bool *needed) {
    if (!has_end_in(p, phase)) return;
    const bool has_blocks = has_blocks_in(p, phase);
    memset(needed, 0, (size_t)p->layout.program.ninstructions * sizeof *needed);
    mark_needed(p, phase, needed);
    wb_print_totals(p, phase, WB_TOTALS_DECLARE);
    if (p->layout.walk == WB_WALK_RUNS)
        walk_runs(p, phase, needed, has_blocks);
    else if (p->layout.walk == WB_WALK_BLOCKS)
        walk_blocks(p, needed);
    else if (p->layout.walk == WB_WALK_TILES)
        walk_tiles(p, phase, needed, has_blocks);
    else if (p->layout.held)
        wb_walk_held(p, phase, needed);
    else
        walk_items(p, phase, needed, has_blocks);
    if (wb_is_shared(p) && has_reduction_in(p, phase)) wb_print_shared_totals(p, phase);
    if (p->layout.is_split) print_partials(p, phase);
}
