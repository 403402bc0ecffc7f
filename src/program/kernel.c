/* One kernel of a program: it takes its units (rows, and chunks of their columns), computes row values, walks the columns once for
 * each phase, and stores. */
#include <stdio.h>
#include <string.h>

#include "program/printer.h"

enum {
    BLOCK =
        64, /* elements added up in f32, one after another where the compiler makes no vectors: the error stays below 1e-6 */
    MOST_LOADS = 8, /* of an item on their way at once */
};

/* The part of the program that a launch does. */
typedef struct part {
    int first, last;   /* its phases */
    bool stores_rows;  /* at the end */
    bool is_rows_only; /* rows without columns */
} part;

static part part_of(const wb_layout *l, int launch) {
    const int phases = l->program.phases;
    if (!l->is_split) return (part){.last = phases, .stores_rows = true};
    const bool is_last = launch == phases;
    return (part){.first = launch,
                  .last = is_last ? launch : launch + 1,
                  .stores_rows = is_last,
                  .is_rows_only = is_last};
}

static bool is_tiled(const wb_printer *p) { return p->layout.walk == WB_WALK_TILES; }

/* Items share out the columns of a row. */
static bool is_shared(const wb_printer *p) {
    return p->layout.walk == WB_WALK_GROUPS || p->layout.walk == WB_WALK_WARPS;
}

/* An item's number among those that share, and where they wait for each other. */
static const char *lane(const wb_printer *p) {
    return p->layout.walk == WB_WALK_WARPS ? "lane" : "(wb_i32)WB_LANE";
}

static const char *barrier(const wb_printer *p) {
    return p->layout.walk == WB_WALK_WARPS ? "WB_WARP_BARRIER" : "WB_BARRIER";
}

static bool ends_here(const wb_instruction *i, int phase) {
    if (wb_is_reduction(i)) return i->phase == phase + 1;
    return i->code == WB_CODE_store && !i->row && i->phase == phase;
}

/* ---- in front ---- */

static void print_head(wb_printer *p, int launch) {
    wb_print(p, "WB_KERNEL(" WB_NAME_BLANK "_%d, %d)(", launch, p->dialect->group);
    for (int b = 0; b < p->buffers; b++) wb_print(p, "WB_BUFFER(%d, b%d), ", b, b);
    wb_print(p, "WB_BLOCK(%d, " WB_NAME_BLANK "_words, w)) {\n", p->buffers);
}

static void print_shared(wb_printer *p) {
    if (p->layout.walk != WB_WALK_GROUPS) return;
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (wb_is_reduction(wb_instruction_at(p, i)))
            wb_print(p, "WB_SHARED(%s, g%d, %d);\n", wb_total_type(p, wb_instruction_at(p, i)), i,
                     wb_shared_totals(p->dialect));
}

static void print_numbers(wb_printer *p) {
    const int first = p->buffers + (int)p->late_count;
    for (int k = 0; k < p->number_count; k++) {
        const wb_number_word *number = &p->numbers[k];
        const char *type = number->is_place ? wb_place_type(p) : "wb_i64";
        const uint64_t bits = (uint64_t)number->value;
        wb_print(p, "const %s %s = (%s)", type, number->name, type);
        if (p->are_literals)
            wb_print(p, "WB_I64(0x%xu, 0x%xu);\n", (unsigned)(bits >> 32), (unsigned)bits);
        else
            wb_print(p, "w.v[%d];\n", first + k);
    }
}

static void print_pointers(wb_printer *p) {
    static const char *const types[WB_DTYPE_COUNT] = {
#define X(NAME, name, bytes, type) [WB_##NAME] = #name,
        WB_DTYPE_LIST(X)
#undef X
    };
    for (int a = 0; a < p->layout.program.naccesses; a++) {
        const wb_access *access = &p->layout.program.accesses[a];
        if (access->argument == WB_NO_VALUE) continue;
        const char *type = types[access->dtype];
        wb_print(p, "WB_GLOBAL wb_%s *const p%d = WB_POINTER(%s, b%d, w.v[%d] + o%d);\n", type, a,
                 type, access->argument, access->argument, a);
    }
    if (!p->layout.is_split) return;
    int slot = 0;
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        if (!wb_is_reduction(wb_instruction_at(p, i))) continue;
        const char *type = wb_total_type(p, wb_instruction_at(p, i)); /* wb_f64 */
        wb_print(p, "WB_GLOBAL %s *const q%d = WB_POINTER(%s, b%d, w.v[%d] + %d * part);\n", type,
                 i, type + 3, p->buffers - 1, p->buffers - 1, slot++);
    }
}

/* Of a loop whose places lie `stride` apart LLVM makes vector code for stride 1, and plain code for all others, unless it does not see
 * that they lie so. No buffer is 2^62 bytes long. */
static void print_none(wb_printer *p) {
    const char *type = wb_place_type(p);
    if (p->dialect->is_serial) wb_print(p, "const %s none = (%s)(w.v[0] >> 62);\n", type, type);
}

static void print_declaration(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    wb_print(p, "const %s v%d = ", wb_value_type(wb_result_register(i)), number);
    wb_print_expression(p, number);
    wb_print(p, ";\n");
}

static void print_uniform(wb_printer *p) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (p->is_uniform[i] && !wb_is_literal(wb_instruction_at(p, i)))
            print_declaration(p, (uint16_t)i);
}

/* ---- positions and places ---- */

/* Positions in the given dimensions from a number that counts them together. */
static void print_positions(wb_printer *p, uint32_t dims, const char *from, char name) {
    const char *type = wb_place_type(p);
    const bool several = (dims & (dims - 1)) != 0;
    if (several) wb_print(p, "%s %c_rest = %s;\n", type, name, from);
    for (int d = 0; d < p->layout.program.ndim; d++) {
        if (!(dims >> d & 1)) continue;
        if (!several)
            wb_print(p, "const %s %c%d = %s;\n", type, name, d, from);
        else if (dims >> d == 1)
            wb_print(p, "const %s %c%d = %c_rest;\n", type, name, d, name);
        else
            wb_print(p, "const %s %c%d = %c_rest %% n%d; %c_rest /= n%d;\n", type, name, d, name, d,
                     name, d);
    }
}

/* x3 = i0 + i2 * s3_2; y3 = x3 + c1 * s3_1; */
static void print_base(wb_printer *p, int a, bool along_columns) {
    const wb_access *access = &p->layout.program.accesses[a];
    const char *plus = "";
    wb_print(p, "const %s %c%d = ", wb_place_type(p), along_columns ? 'y' : 'x', a);
    if (along_columns && wb_access_moves(&p->layout, access, false)) {
        wb_print(p, "x%d", a);
        plus = " + ";
    }
    for (int d = 0; d < p->layout.program.ndim; d++) {
        if (wb_is_column(&p->layout, d) != along_columns || access->strides[d] == 0) continue;
        wb_print(p, "%s%c%d", plus, along_columns ? 'c' : 'i', d);
        if (access->strides[d] != 1) wb_print(p, " * s%d_%d", a, d);
        plus = " + ";
    }
    wb_print(p, ";\n");
}

static void print_row_bases(wb_printer *p) {
    const wb_layout *l = &p->layout;
    for (int a = 0; a < l->program.naccesses; a++)
        if (wb_access_moves(l, &l->program.accesses[a], false)) print_base(p, a, false);
}

static bool has_access(const wb_instruction *i) {
    return i->code == WB_CODE_load || i->code == WB_CODE_store || i->code == WB_CODE_iota ||
           i->code == WB_CODE_uniform || i->code == WB_CODE_normal;
}

/* Access number a is needed in the phase, and moves along the columns by positions. */
static bool is_walked(const wb_printer *p, const bool *needed, int i) {
    const wb_layout *l = &p->layout;
    const wb_instruction *instruction = wb_instruction_at(p, i);
    if (!needed[i] || p->is_uniform[i] || !has_access(instruction)) return false;
    const int a = instruction->index;
    return !l->is_linear[a] && wb_access_moves(l, &l->program.accesses[a], true);
}

static bool is_positioned(const wb_printer *p, const bool *needed) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_walked(p, needed, i)) return true;
    return false;
}

/* Places at the positions. */
static void print_column_bases(wb_printer *p, const bool *needed) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_walked(p, needed, i)) print_base(p, wb_instruction_at(p, i)->index, true);
}

/* Positions and places at column c. */
static void print_column(wb_printer *p, const bool *needed) {
    if (is_positioned(p, needed)) print_positions(p, p->layout.column_dims, "c", 'c');
    print_column_bases(p, needed);
}

/* ---- units ---- */

/* Number u of the unit, and what of it is to be done, behind an open brace. */
static void print_units(wb_printer *p, const part *todo) {
    const wb_layout *l = &p->layout;
    const char *type = wb_place_type(p);
    const char *units = todo->is_rows_only ? "row_units" : "units";
    if (!p->dialect->is_serial)
        wb_print(p, "{\nconst %s u = (%s)WB_GROUP;\n", type, type);
    else if (l->is_map)
        wb_print(p, "{\nconst %s u = (%s)WB_GROUP * %d + (%s)WB_LANE;\n", type, type,
                 p->dialect->group, type);
    else
        wb_print(p,
                 "%s u = ((%s)WB_GROUP * %d + (%s)WB_LANE) * per;\n"
                 "const %s u_end = u + per < %s ? u + per : %s;\nfor (; u < u_end; u++) {\n",
                 type, type, p->dialect->group, type, type, units, units);
    if (l->is_split && !todo->is_rows_only)
        wb_print(p, "const %s k = u / row_units, unit = u - k * row_units;\n", type);
    else if (!l->is_map)
        wb_print(p, "const %s unit = u;\n", type);
    if (l->is_map || (l->is_split && !todo->is_rows_only))
        wb_print(p,
                 "const %s first = %s * chunk, last = first + chunk < columns ? first + chunk : "
                 "columns;\n",
                 type, l->is_map ? "u" : "k");
    else if (!todo->is_rows_only)
        wb_print(p, "const %s first = 0, last = columns;\n", type);
}

static void print_row(wb_printer *p) {
    const wb_layout *l = &p->layout;
    const char *type = wb_place_type(p);
    uint32_t dims = ((1u << l->program.ndim) - 1) & ~l->column_dims;
    if (l->is_map) return;
    switch (l->walk) {
    case WB_WALK_TILES:
        wb_print(p,
                 "const %s outer = unit / tiles, i0 = (unit - outer * tiles) * %d, row = outer * "
                 "n0 + i0;\n"
                 "const wb_i32 m = (wb_i32)(n0 - i0 < %d ? n0 - i0 : %d);\n",
                 type, WB_TILE_ROWS, WB_TILE_ROWS, WB_TILE_ROWS);
        dims &= ~1u;
        break;
    case WB_WALK_ITEMS:
        wb_print(p, "const %s row = unit * %d + (%s)WB_LANE;\nif (row < rows) {\n", type,
                 p->dialect->group, type);
        break;
    case WB_WALK_WARPS:
        wb_print(p,
                 "const %s row = unit * %d + (%s)(WB_LANE / %d);\n"
                 "const wb_i32 lane = (wb_i32)(WB_LANE %% %d);\nif (row < rows) {\n",
                 type, p->dialect->group / p->dialect->warp, type, p->dialect->warp,
                 p->dialect->warp);
        break;
    default:
        wb_print(p, "const %s row = unit;\n", type);
        break;
    }
    print_positions(p, dims, is_tiled(p) ? "outer" : "row", 'i');
    print_row_bases(p);
}

static void close_units(wb_printer *p) {
    wb_print(p, wb_is_guarded(&p->layout) ? "}\n}\n" : "}\n");
}

/* ---- row values ---- */

static void open_rows(wb_printer *p) {
    if (is_tiled(p)) wb_print(p, "for (wb_i32 j = 0; j < m; j++) {\n");
}

static void close_rows(wb_printer *p) {
    if (is_tiled(p)) wb_print(p, "}\n");
}

/* Declares an array of rows, or opens the declaration of one value. */
static void print_array(wb_printer *p, const char *type, char name, int number) {
    wb_print(p, "%s %c%d[%d];\n", type, name, number, WB_TILE_ROWS);
}

static bool is_of_stage(const wb_instruction *i, int stage) {
    return i->row && i->phase == stage && i->code != WB_CODE_store && !wb_is_number(i);
}

/* The total of all chunks, in their order. */
static void print_gathering(wb_printer *p, int number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    char to[32], from[64];
    (void)snprintf(to, sizeof to, "t%d%s", number, is_tiled(p) ? "[j]" : "");
    (void)snprintf(from, sizeof from, "q%d[h * rows + row%s]", number, is_tiled(p) ? " + j" : "");
    wb_print(p, "%s%s%s = ", is_tiled(p) ? "" : wb_total_type(p, i), is_tiled(p) ? "" : " ", to);
    wb_print_start(p, i);
    wb_print(p, ";\nfor (%s h = 0; h < chunks; h++) ", wb_place_type(p));
    wb_print_merge(p, i, to, from);
}

/* Row values that can be computed before phase number `stage`. */
static void print_stage(wb_printer *p, int stage) {
    const wb_program *program = &p->layout.program;
    bool is_any = false;
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!is_of_stage(instruction, stage)) continue;
        is_any = true;
        if (!is_tiled(p)) continue;
        print_array(p, wb_value_type(wb_result_register(instruction)), 'v', i);
        if (wb_is_reduction(instruction) && p->layout.is_split)
            print_array(p, wb_total_type(p, instruction), 't', i);
    }
    if (!is_any) return;
    open_rows(p);
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!is_of_stage(instruction, stage)) continue;
        if (wb_is_reduction(instruction) && p->layout.is_split) print_gathering(p, i);
        if (!is_tiled(p)) {
            print_declaration(p, (uint16_t)i);
            continue;
        }
        wb_print(p, "v%d[j] = ", i);
        wb_print_expression(p, (uint16_t)i);
        wb_print(p, ";\n");
    }
    close_rows(p);
}

static void print_row_stores(wb_printer *p) {
    const wb_program *program = &p->layout.program;
    bool is_any = false;
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!instruction->row || instruction->code != WB_CODE_store) continue;
        if (!is_any) {
            if (is_shared(p))
                wb_print(p, "%s();\nif (%s == 0) {\n", barrier(p), lane(p)); /* all have loaded */
            open_rows(p);
        }
        is_any = true;
        wb_print_store(p, (uint16_t)i);
    }
    if (!is_any) return;
    close_rows(p);
    if (is_shared(p)) wb_print(p, "}\n");
}

/* ---- phases ---- */

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

typedef enum totals { DECLARE, CLEAR_BLOCK, ADD_BLOCK } totals;

/* One statement for each reduction of the phase. */
static void print_totals(wb_printer *p, int phase, totals what) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_reduction(instruction) || instruction->phase != phase + 1) continue;
        const char *type =
            what == DECLARE ? wb_total_type(p, instruction) : wb_accumulator_type(instruction);
        const char name = what == DECLARE ? 't' : 'a';
        if (what != DECLARE && !wb_has_blocks(instruction)) continue;
        if (what != ADD_BLOCK && is_tiled(p)) print_array(p, type, name, i);
        open_rows(p);
        const char *j = is_tiled(p) ? "[j]" : "";
        if (what == ADD_BLOCK) {
            wb_print(p, "t%d%s += a%d%s;\n", i, j, i, j);
        } else {
            wb_print(p, "%s%s%c%d%s = ", is_tiled(p) ? "" : type, is_tiled(p) ? "" : " ", name, i,
                     j);
            wb_print_start(p, instruction);
            wb_print(p, ";\n");
        }
        close_rows(p);
    }
}

static bool is_in_body(const wb_printer *p, const bool *needed, int i) {
    const wb_instruction *instruction = wb_instruction_at(p, i);
    return needed[i] && !p->is_uniform[i] && !wb_is_literal(instruction) &&
           instruction->code != WB_CODE_spread;
}

static bool is_load(const wb_printer *p, const bool *needed, int i) {
    return is_in_body(p, needed, i) && wb_instruction_at(p, i)->code == WB_CODE_load;
}

/* is_batched: loads were done before (print_loads). */
static void print_body(wb_printer *p, const bool *needed, bool is_batched) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!is_in_body(p, needed, i)) continue;
        if (wb_is_reduction(instruction))
            wb_print_step(p, (uint16_t)i);
        else if (instruction->code == WB_CODE_store)
            wb_print_store(p, (uint16_t)i);
        else if (is_batched && instruction->code == WB_CODE_load)
            wb_print(p, "const %s v%d = l%d[j];\n", wb_value_type(wb_result_register(instruction)),
                     i, i);
        else
            print_declaration(p, (uint16_t)i);
    }
}

static const char *loop_mark(const wb_printer *p) {
    return p->layout.has_long_runs ? "WB_INDEPENDENT_LONG" : "WB_INDEPENDENT";
}

static void walk_runs(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const wb_layout *l = &p->layout;
    const char *type = wb_place_type(p);
    wb_print(p, "for (%s c = first; c < last;) {\n", type);
    print_column(p, needed);
    wb_print(p, "%s run = last - c;\n", type);
    if (l->decodes && is_positioned(p, needed))
        wb_print(p, "if (run > n%d - c%d) run = n%d - c%d;\n", l->first_column, l->first_column,
                 l->first_column, l->first_column);
    if (has_blocks) wb_print(p, "if (run > %d) run = %d;\n", BLOCK, BLOCK);
    print_totals(p, phase, CLEAR_BLOCK);
    wb_print(p, "%s\nfor (%s j = 0; j < run; j++) {\n", loop_mark(p), type);
    print_body(p, needed, false);
    wb_print(p, "}\n");
    print_totals(p, phase, ADD_BLOCK);
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
    print_positions(p, p->layout.column_dims, "first + j", 'c');
    for (int d = 0; d <= last; d++) wb_print(p, "d%d[j] = c%d;\n", d, d);
    wb_print(p, "}\n");
}

/* A carry runs through the dimensions. */
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
    const bool is_walked = is_positioned(p, needed);
    if (is_walked) print_first_positions(p);
    wb_print(p,
             "for (%s c = first; c < last; c += %d) {\n"
             "const wb_i32 m = (wb_i32)(last - c < %d ? last - c : %d);\n"
             "%s\nfor (wb_i32 j = 0; j < m; j++) {\n",
             type, WB_TILE_ROWS, WB_TILE_ROWS, WB_TILE_ROWS, loop_mark(p));
    for (int d = 0; is_walked && d < p->layout.program.ndim; d++)
        wb_print(p, "const %s c%d = d%d[j];\n", type, d, d);
    print_column_bases(p, needed);
    print_body(p, needed, false);
    wb_print(p, "}\n");
    if (is_walked) print_next_positions(p);
    wb_print(p, "}\n");
}

static void walk_tiles(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const char *type = wb_place_type(p);
    wb_print(p, "for (%s c = first; c < last;) {\n", type);
    if (has_blocks)
        wb_print(p, "const %s stop = last - c > %d ? c + %d : last;\n", type, BLOCK, BLOCK);
    print_totals(p, phase, CLEAR_BLOCK);
    wb_print(p, "for (; c < %s; c++) {\n", has_blocks ? "stop" : "last");
    print_column(p, needed);
    wb_print(p, "%s\nfor (wb_i32 j = 0; j < m; j++) {\n", loop_mark(p));
    print_body(p, needed, false);
    wb_print(p, "}\n}\n");
    print_totals(p, phase, ADD_BLOCK);
    wb_print(p, "}\n");
}

/* How many elements an item takes at a time: their loads are on the way together, since a store might change what the next load reads, as far
 * as the compiler knows. */
static int batch_of(const wb_printer *p, const bool *needed) {
    int loads = 0, batch = MOST_LOADS;
    for (int i = 0; i < p->layout.program.ninstructions; i++) loads += is_load(p, needed, i);
    if (loads == 0) return 1;
    while (batch > 1 && batch * loads > MOST_LOADS) batch /= 2;
    return batch;
}

static void print_loads(wb_printer *p, const bool *needed) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        if (!is_load(p, needed, i)) continue;
        wb_print(p, "l%d[j] = ", i);
        wb_print_expression(p, (uint16_t)i);
        wb_print(p, ";\n");
    }
}

/* A loop over the batch's columns c, open. */
static void open_batch(wb_printer *p, const bool *needed, int batch, int step, const char *stop) {
    wb_print(p,
             "WB_UNROLL\nfor (wb_i32 j = 0; j < %d; j++) {\nconst %s c = b + j * %d;\n"
             "if (c < %s) {\n",
             batch, wb_place_type(p), step, stop);
    print_column(p, needed);
}

static void walk_batches(wb_printer *p, const bool *needed, int batch, int step, const char *stop) {
    wb_print(p, "for (; b < %s; b += %d) {\n", stop, batch * step);
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (is_load(p, needed, i))
            wb_print(p, "%s l%d[%d];\n", wb_value_type(wb_result_register(wb_instruction_at(p, i))),
                     i, batch);
    open_batch(p, needed, batch, step, stop);
    print_loads(p, needed);
    wb_print(p, "}\n}\n");
    open_batch(p, needed, batch, step, stop);
    print_body(p, needed, true);
    wb_print(p, "}\n}\n}\n");
}

static void walk_items(wb_printer *p, int phase, const bool *needed, bool has_blocks) {
    const char *type = wb_place_type(p), *stop = has_blocks ? "stop" : "last";
    const int step = p->layout.walk == WB_WALK_GROUPS  ? p->dialect->group
                     : p->layout.walk == WB_WALK_WARPS ? p->dialect->warp
                                                       : 1;
    const int batch = batch_of(p, needed);
    const char b = batch > 1 ? 'b' : 'c';
    wb_print(p, "for (%s %c = first + %s; %c < last;) {\n", type, b, is_shared(p) ? lane(p) : "0",
             b);
    if (has_blocks)
        wb_print(p, "const %s stop = last - %c > %d ? %c + %d : last;\n", type, b, BLOCK * step, b,
                 BLOCK * step);
    print_totals(p, phase, CLEAR_BLOCK);
    if (batch > 1) {
        walk_batches(p, needed, batch, step, stop);
    } else {
        wb_print(p, "for (; c < %s; c += %d) {\n", stop, step);
        print_column(p, needed);
        print_body(p, needed, false);
        wb_print(p, "}\n");
    }
    print_totals(p, phase, ADD_BLOCK);
    wb_print(p, "}\n");
}

/* ---- reductions among chunks ---- */

static void print_partials(wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (!wb_is_reduction(instruction) || instruction->phase != phase + 1) continue;
        if (p->layout.walk == WB_WALK_GROUPS) wb_print(p, "if (WB_LANE == 0) ");
        open_rows(p);
        wb_print(
            p, is_tiled(p) ? "q%d[k * rows + row + j] = t%d[j];\n" : "q%d[k * rows + row] = t%d;\n",
            i, i);
        close_rows(p);
    }
}

static bool has_blocks_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        const wb_instruction *instruction = wb_instruction_at(p, i);
        if (wb_is_reduction(instruction) && instruction->phase == phase + 1 &&
            wb_has_blocks(instruction))
            return true;
    }
    return false;
}

static bool has_reduction_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (wb_is_reduction(wb_instruction_at(p, i)) && wb_instruction_at(p, i)->phase == phase + 1)
            return true;
    return false;
}

static bool has_end_in(const wb_printer *p, int phase) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (ends_here(wb_instruction_at(p, i), phase)) return true;
    return false;
}

static void print_phase(wb_printer *p, int phase, bool *needed) {
    if (!has_end_in(p, phase)) return;
    const bool has_blocks = has_blocks_in(p, phase);
    memset(needed, 0, (size_t)p->layout.program.ninstructions * sizeof *needed);
    mark_needed(p, phase, needed);
    print_totals(p, phase, DECLARE);
    if (p->layout.walk == WB_WALK_RUNS)
        walk_runs(p, phase, needed, has_blocks);
    else if (p->layout.walk == WB_WALK_BLOCKS)
        walk_blocks(p, needed);
    else if (p->layout.walk == WB_WALK_TILES)
        walk_tiles(p, phase, needed, has_blocks);
    else
        walk_items(p, phase, needed, has_blocks);
    if (is_shared(p) && has_reduction_in(p, phase)) wb_print_shared_totals(p, phase);
    if (p->layout.is_split) print_partials(p, phase);
}

void wb_print_kernel(wb_printer *p, int launch, bool *needed) {
    const part todo = part_of(&p->layout, launch);
    print_head(p, launch);
    print_shared(p);
    print_numbers(p);
    print_pointers(p);
    print_none(p);
    print_uniform(p);
    print_units(p, &todo);
    print_row(p);
    for (int stage = 0; stage <= todo.first; stage++) print_stage(p, stage);
    for (int phase = todo.first; phase < todo.last; phase++) {
        print_phase(p, phase, needed);
        if (!p->layout.is_split) print_stage(p, phase + 1);
    }
    if (todo.stores_rows) print_row_stores(p);
    close_units(p);
    wb_print(p, "}\n");
}
