/* One kernel of a program: it takes its units (rows, and chunks of their columns), computes row
 * values, walks the columns once for each phase, and stores. */
#include <stdio.h>
#include <string.h>

#include "program/printer.h"

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

/* Where the items that share a row wait for each other. */
static const char *barrier(const wb_printer *p) {
    return p->layout.walk == WB_WALK_WARPS ? "WB_WARP_BARRIER" : "WB_BARRIER";
}

/* ---- in front ---- */

/* The group's job is the last that begins no later; the code after this sees the job's parameters
 * as if it were the only one. */
static void print_job(wb_printer *p) {
    wb_print(
        p, "wb_i32 job = 0;\n"
           "for (wb_i32 to = (wb_i32)jobs.count; to - job > 1;) {\n"
           "const wb_i32 middle = (job + to) / 2;\n"
           "if (jobs.job[middle].first <= (wb_i64)WB_GROUP) job = middle; else to = middle;\n}\n");
    for (int b = 0; b < p->buffers; b++)
        wb_print(p, "WB_BUFFER(%d, b%d) = jobs.job[job].b[%d];\n", b, b, b);
    wb_print(p,
             "WB_BLOCK(%d, " WB_NAME_BLANK "_words, w) = jobs.job[job].w;\n"
             "const wb_u32 group = WB_GROUP - (wb_u32)jobs.job[job].first;\n",
             p->buffers);
}

static void print_head(wb_printer *p, int launch) {
    wb_print(p, "WB_KERNEL(" WB_NAME_BLANK "_%d, %d)(", launch, p->layout.group);
    if (p->most_jobs) {
        wb_print(p, "WB_BLOCK(0, " WB_NAME_BLANK "_jobs, jobs)) {\n");
        print_job(p);
        return;
    }
    for (int b = 0; b < p->buffers; b++) wb_print(p, "WB_BUFFER(%d, b%d), ", b, b);
    wb_print(p, "WB_BLOCK(%d, " WB_NAME_BLANK "_words, w)) {\n", p->buffers);
}

static void print_shared(wb_printer *p) {
    if (p->layout.walk != WB_WALK_GROUPS) return;
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (wb_is_reduction(wb_instruction_at(p, i)))
            wb_print(p, "WB_SHARED(%s, g%d, %d);\n", wb_total_type(p, wb_instruction_at(p, i)), i,
                     wb_shared_totals(&p->layout, p->dialect));
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

/* For a loop with a stride LLVM makes vector code for stride 1 and plain code for all others,
 * unless the stride is hidden from it. So the text combines it with a number that is always 0,
 * because no buffer has 2^62 bytes. */
static void print_none(wb_printer *p) {
    const char *type = wb_place_type(p);
    if (p->dialect->is_serial) wb_print(p, "const %s none = (%s)(w.v[0] >> 62);\n", type, type);
}

void wb_print_declaration(wb_printer *p, uint16_t number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    wb_print(p, "const %s v%d = ", wb_value_type(wb_result_register(i)), number);
    wb_print_expression(p, number);
    wb_print(p, ";\n");
}

static void print_uniform(wb_printer *p) {
    for (int i = 0; i < p->layout.program.ninstructions; i++)
        if (p->is_uniform[i] && !wb_is_literal(wb_instruction_at(p, i)))
            wb_print_declaration(p, (uint16_t)i);
}

/* ---- units ---- */

/* Opens a brace and declares u, the number of the unit, and the part of it to be done. */
static void print_units(wb_printer *p, const part *todo) {
    const wb_layout *l = &p->layout;
    const char *type = wb_place_type(p);
    const char *units = todo->is_rows_only ? "row_units" : "units";
    if (!p->dialect->is_serial)
        wb_print(p, "{\nconst %s u = (%s)%s;\n", type, type, p->most_jobs ? "group" : "WB_GROUP");
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
    wb_print_positions(p, dims, wb_is_tiled(p) ? "outer" : "row", 'i');
    wb_print_row_bases(p);
    if (!l->held) return;
    wb_print(p, "const %s b = ", type);
    wb_print_first_piece(p);
    wb_print(p, ";\n");
}

static void close_units(wb_printer *p) {
    wb_print(p, wb_is_guarded(&p->layout) ? "}\n}\n" : "}\n");
}

/* ---- row values ---- */

void wb_open_rows(wb_printer *p) {
    if (wb_is_tiled(p)) wb_print(p, "for (wb_i32 j = 0; j < m; j++) {\n");
}

void wb_close_rows(wb_printer *p) {
    if (wb_is_tiled(p)) wb_print(p, "}\n");
}

void wb_print_array(wb_printer *p, const char *type, char name, int number) {
    wb_print(p, "%s %c%d[%d];\n", type, name, number, WB_TILE_ROWS);
}

static bool is_of_stage(const wb_instruction *i, int stage) {
    return i->row && i->phase == stage && i->code != WB_CODE_store && !wb_is_number(i);
}

/* The total of an item's chunks: all chunks in order, or, if items share a row, the item's part of
 * them. */
static void print_gathering(wb_printer *p, int number) {
    const wb_instruction *i = wb_instruction_at(p, number);
    const bool is_shared = wb_is_shared(p);
    char to[32], from[64];
    (void)snprintf(to, sizeof to, "t%d%s", number, wb_is_tiled(p) ? "[j]" : "");
    (void)snprintf(from, sizeof from, "q%d[h * rows + row%s]", number,
                   wb_is_tiled(p) ? " + j" : "");
    wb_print(p, "%s%s%s = ", wb_is_tiled(p) ? "" : wb_total_type(p, i), wb_is_tiled(p) ? "" : " ",
             to);
    wb_print_start(p, i);
    wb_print(p, ";\nfor (%s h = %s; h < chunks; h += %d) ", wb_place_type(p),
             is_shared ? wb_lane(p) : "0",
             is_shared ? (int)wb_layout_sharers(&p->layout, p->dialect) : 1);
    wb_print_merge(p, i, to, from);
}

/* Before the row values of the stage are computed. */
static void gather_together(wb_printer *p, int stage) {
    if (!p->layout.is_split || !wb_is_shared(p) || stage == 0) return;
    bool is_any = false;
    for (int i = 0; i < p->layout.program.ninstructions; i++) {
        if (!wb_is_total(wb_instruction_at(p, i), stage - 1)) continue;
        print_gathering(p, i);
        is_any = true;
    }
    if (is_any) wb_print_shared_totals(p, stage - 1);
}

/* Row values that can be computed before phase number `stage`. */
static void print_stage(wb_printer *p, int stage) {
    const wb_program *program = &p->layout.program;
    bool is_any = false;
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!is_of_stage(instruction, stage)) continue;
        is_any = true;
        if (!wb_is_tiled(p)) continue;
        wb_print_array(p, wb_value_type(wb_result_register(instruction)), 'v', i);
        if (wb_is_reduction(instruction) && p->layout.is_split)
            wb_print_array(p, wb_total_type(p, instruction), 't', i);
    }
    if (!is_any) return;
    gather_together(p, stage);
    wb_open_rows(p);
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!is_of_stage(instruction, stage)) continue;
        if (wb_is_reduction(instruction) && p->layout.is_split && !wb_is_shared(p))
            print_gathering(p, i);
        if (!wb_is_tiled(p)) {
            wb_print_declaration(p, (uint16_t)i);
            continue;
        }
        wb_print(p, "v%d[j] = ", i);
        wb_print_expression(p, (uint16_t)i);
        wb_print(p, ";\n");
    }
    wb_close_rows(p);
}

static void print_row_stores(wb_printer *p) {
    const wb_program *program = &p->layout.program;
    bool is_any = false;
    for (int i = 0; i < program->ninstructions; i++) {
        const wb_instruction *instruction = &program->instructions[i];
        if (!instruction->row || instruction->code != WB_CODE_store) continue;
        if (!is_any) {
            if (wb_is_shared(p))
                wb_print(p, "%s();\nif (%s == 0) {\n", barrier(p),
                         wb_lane(p)); /* all have loaded */
            wb_open_rows(p);
        }
        is_any = true;
        wb_print_store(p, (uint16_t)i);
    }
    if (!is_any) return;
    wb_close_rows(p);
    if (wb_is_shared(p)) wb_print(p, "}\n");
}

void wb_print_kernel(wb_printer *p, int launch, bool *needed) {
    const part todo = part_of(&p->layout, launch);
    print_head(p, launch);
    print_shared(p);
    print_numbers(p);
    print_pointers(p);
    wb_print_wholeness(p);
    print_none(p);
    print_uniform(p);
    print_units(p, &todo);
    print_row(p);
    for (int stage = 0; stage <= todo.first; stage++) print_stage(p, stage);
    for (int phase = todo.first; phase < todo.last; phase++) {
        wb_print_phase(p, phase, needed);
        if (!p->layout.is_split) print_stage(p, phase + 1);
    }
    if (todo.stores_rows) print_row_stores(p);
    close_units(p);
    wb_print(p, "}\n");
}
