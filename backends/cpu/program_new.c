/* From a program to its schedule: the tile, the steps of each phase, pieces. */
#include <string.h>

#include "host.h"
#include "pool.h"
#include "program_steps.h"

enum {
    PIECE = 1 << 19, /* elements times instructions worth a thread's while: some 30 us */
    LARGE = 1 << 16, /* elements of an array */
};

static const wb_loops *loops_of(wb_isa isa) {
    static const wb_loops *const tables[WB_ISA_COUNT] = {
#define X(isa_, suffix) [isa_] = &wb_loops_##suffix,
        WB_ISA_LIST(X)
#undef X
    };
    return tables[isa];
}

static bool is_reduced(const wb_program *p, int d) { return p->reduced >> d & 1; }
static int64_t size_of(const wb_program *p, int d) { return d < p->ndim ? p->sizes[d] : 1; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the tile ---- */

/* Elements of a tile: many registers want smaller ones, to stay in the first cache together. A row
 * that is reduced is whole where it can be: then registers live through the phases, which otherwise
 * compute what they need again. */
static int64_t tile_of(const wb_program *p) {
    enum { FEW_INSTRUCTIONS = 12 };
    if (p->reduced == 1 && p->sizes[0] <= WB_WHOLE_ROW)
        return p->sizes[0] > WB_TILE ? p->sizes[0] : WB_TILE;
    return p->ninstructions <= FEW_INSTRUCTIONS ? WB_TILE : WB_TILE / 2;
}

/* Rows that fit into a tile beside an inner size. */
static int64_t outer_of(int64_t tile, int64_t inner, int64_t rows) {
    const int64_t fit = inner > 0 ? tile / inner : tile;
    return fit < 1 ? 1 : least(fit, rows);
}

/* Rows of a tile where each is a part of what is reduced to its value, as planes of a channel are:
 * where rows are short, as many as leave the threads enough tiles to share. */
static int64_t parts_of(const wb_program *p, int64_t tile) {
    int64_t elements = 1;
    for (int d = 0; d < p->ndim; d++) elements *= p->sizes[d];
    const int64_t second = size_of(p, 1), shares = elements * p->ninstructions / PIECE + 1;
    return least(outer_of(tile, size_of(p, 0), second), (second + shares - 1) / shares);
}

static void choose_tile(wb_cpu_program *k) {
    const wb_program *p = &k->program;
    const int64_t first = size_of(p, 0), second = size_of(p, 1), tile = tile_of(p);
    const bool has_second = p->ndim > 1, second_reduced = is_reduced(p, 1);
    const bool only_first = p->reduced == 1;
    k->inner = least(first, tile);
    k->outer = 1;
    if (!p->reduced) {
        k->shape = WB_MAP;
        if (has_second && first <= tile) k->outer = outer_of(tile, first, second);
        k->row_values = 1;
    } else if (is_reduced(p, 0)) {
        const bool is_short = has_second && !only_first && !second_reduced && first <= tile;
        const int64_t parts = is_short ? parts_of(p, tile) : 1;
        const bool in_rows = (only_first && first <= tile) || parts > 1;
        k->shape = in_rows ? WB_ROWS : WB_WHOLE;
        if (parts > 1)
            k->outer = parts;
        else if (has_second && first <= tile && (in_rows || second_reduced))
            k->outer = outer_of(tile, first, second);
        k->row_values = in_rows ? k->outer : 1;
    } else {
        k->shape = WB_COLUMNS;
        if (has_second && second_reduced) k->outer = outer_of(tile, k->inner, second);
        k->row_values = k->inner;
    }
}

static void add_loop(wb_cpu_program *k, int d, int64_t step) {
    const int64_t size = k->program.sizes[d];
    const wb_loop loop = {
        .dim = d, .size = size, .step = step, .count = size ? (size + step - 1) / step : 0};
    if (is_reduced(&k->program, d))
        k->reduced[k->nreduced++] = loop;
    else
        k->kept[k->nkept++] = loop;
}

static void make_loops(wb_cpu_program *k) {
    k->second_in_tile = k->outer > 1 || (k->shape == WB_ROWS && k->program.ndim > 1);
    for (int d = 0; d < k->program.ndim; d++) {
        const int64_t step = d == 0 ? k->inner : d == 1 && k->second_in_tile ? k->outer : 1;
        add_loop(k, d, step > 0 ? step : 1);
    }
    k->units = k->steps_per_unit = 1;
    int64_t elements = 1;
    for (int d = 0; d < k->program.ndim; d++) elements *= k->program.sizes[d];
    k->is_large = elements >= LARGE;
    for (int i = 0; i < k->nkept; i++) k->units *= k->kept[i].count;
    for (int i = 0; i < k->nreduced; i++) k->steps_per_unit *= k->reduced[i].count;
}

/* ---- steps ---- */

static bool add_step(wb_cpu_program *k, wb_step_list *list, uint16_t number) {
    if (list->count == list->capacity) {
        const int64_t capacity = list->capacity ? list->capacity * 2 : 16;
        wb_step *grown = wb_host_alloc(sizeof *grown * (size_t)capacity);
        if (!grown) return false;
        if (list->count) memcpy(grown, list->steps, sizeof *grown * (size_t)list->count);
        wb_host_release(list->steps);
        list->steps = grown, list->capacity = capacity;
    }
    const wb_instruction *i = &k->program.instructions[number];
    wb_step step = {.instruction = i, .number = number, .in = {i->in[0], i->in[1], i->in[2]}};
    if (i->code <= WB_CODE_select)
        step.loop = k->loops->element[i->code][i->type];
    else if (i->code == WB_CODE_cast)
        step.loop = i->index == WB_F16    ? k->loops->round_f16
                    : i->index == WB_BF16 ? k->loops->round_bf16
                                          : k->loops->cast[i->from][i->type];
    list->steps[list->count++] = step;
    return true;
}

static void mark(const wb_program *p, bool *needed, uint16_t number, bool row) {
    needed[number] = true;
    for (int i = number; i >= 0; i--) {
        if (!needed[i]) continue;
        for (int k = 0; k < 3; k++) {
            const uint16_t in = p->instructions[i].in[k];
            if (in != WB_NO_VALUE && p->instructions[in].row == row &&
                p->instructions[i].code != WB_CODE_spread)
                needed[in] = true;
        }
    }
}

/* What ends a phase: its stores and reductions. A full store belongs to the phase of its value. */
static bool ends_phase(const wb_instruction *i, int phase) {
    if (wb_is_reduction(i)) return i->phase == phase + 1;
    const bool leaves = (i->code == WB_CODE_store && !i->row) || i->code == WB_CODE_side_sum;
    return leaves && i->phase == phase;
}

/* The full steps of a phase: everything that its ends need, unless the registers still hold it from
 * an earlier phase. Stores come last: no later step reads what they overwrite. */
static bool schedule_phase(wb_cpu_program *k, int phase, bool *computed) {
    const wb_program *p = &k->program;
    const bool keeps = k->steps_per_unit == 1;
    bool needed[WB_MOST_STEPS] = {false};
    for (int i = 0; i < p->ninstructions; i++)
        if (ends_phase(&p->instructions[i], phase)) mark(p, needed, (uint16_t)i, false);
    for (int stores = 0; stores < 2; stores++)
        for (int i = 0; i < p->ninstructions; i++) {
            const wb_instruction *instruction = &p->instructions[i];
            if (!needed[i] || wb_is_constant(instruction) || (keeps && computed[i])) continue;
            if (instruction->row && !wb_is_reduction(instruction)) continue;
            if ((instruction->code == WB_CODE_store) != stores) continue;
            computed[i] = true;
            if (!add_step(k, &k->full[phase], (uint16_t)i)) return false;
        }
    return true;
}

static bool schedule_rows(wb_cpu_program *k) {
    const wb_program *p = &k->program;
    for (int i = 0; i < p->ninstructions; i++) {
        const wb_instruction *instruction = &p->instructions[i];
        if (wb_is_constant(instruction) && !add_step(k, &k->constants, (uint16_t)i)) return false;
        if (!instruction->row || wb_is_constant(instruction)) continue;
        int stage = instruction->phase;
        if (instruction->code == WB_CODE_store)
            stage = p->phases; /* all row values are ready at the end */
        if (!add_step(k, &k->rows[stage], (uint16_t)i)) return false;
    }
    return true;
}

/* The step gives the same for all tiles of a unit: a row value, or what lies along kept dimensions
 * only. */
static bool is_fixed(const wb_program *p, const wb_step *step) {
    const wb_instruction *i = step->instruction;
    if (i->code != WB_CODE_load) return i->code == WB_CODE_spread;
    for (int d = 0; d < p->ndim; d++)
        if (is_reduced(p, d) && p->accesses[i->index].strides[d] != 0) return false;
    return true;
}

/* Steps that are done once for all tiles of a unit come first. */
static void put_fixed_first(const wb_cpu_program *k, wb_step_list *list) {
    for (int64_t s = 0; k->steps_per_unit > 1 && s < list->count; s++) {
        const wb_step step = list->steps[s];
        if (!is_fixed(&k->program, &step)) continue;
        memmove(&list->steps[list->fixed + 1], &list->steps[list->fixed],
                sizeof step * (size_t)(s - list->fixed));
        list->steps[list->fixed++] = step;
    }
}

static bool schedule(wb_cpu_program *k) {
    bool computed[WB_MOST_STEPS] = {false};
    for (int phase = 0; phase < k->program.phases; phase++) {
        if (!schedule_phase(k, phase, computed)) return false;
        put_fixed_first(k, &k->full[phase]);
    }
    return schedule_rows(k);
}
/* Adam's gradient goes through the registers as in the whole program. */
static bool list_gradient(wb_cpu_program *k) {
    bool needed[WB_MOST_STEPS] = {false};
    if (k->adam.g_value == WB_NO_VALUE) return true;
    mark(&k->program, needed, k->adam.g_value, false);
    /* not if its step became part of another; and it is to lie in a register */
    bool is_made = false, is_apart = k->direct_store[k->adam.g_value] < 0;
    for (int64_t s = 0; s < k->full[0].count; s++) {
        const wb_step *step = &k->full[0].steps[s];
        if (!needed[step->number]) continue;
        if (!add_step(k, &k->gradient, step->number)) return false;
        k->gradient.steps[k->gradient.count - 1] = *step;
        is_made = is_made || step->number == k->adam.g_value;
    }
    if (!is_made || !is_apart) k->adam.loop = NULL;
    return true;
}

/* ---- pieces ---- */

/* Side sums of a piece go through memory once: so there must not be many long ones. */
static void choose_pieces(wb_cpu_program *k) {
    enum {
        STEP_COST = 32, /* of a step beside its elements, as this many of them */
        MOST_SIDES = 64,
        MOST_PARTS = 64, /* of a unit whose reduction is split */
        FEW_UNITS = 8,   /* that are split, of this many row values together */
        FEW_VALUES = 4096,
    };
    const int64_t tile = (k->inner * k->outer + STEP_COST) * (k->program.ninstructions + 1);
    const int64_t per_unit = tile * (k->steps_per_unit ? k->steps_per_unit : 1);
    k->steps_per_piece = k->steps_per_unit;
    k->units_per_piece = PIECE / (per_unit > 0 ? per_unit : 1) + 1;
    const int64_t fewest = (k->units + MOST_SIDES - 1) / MOST_SIDES;
    if (k->side_values && k->units_per_piece < fewest) k->units_per_piece = fewest;
    k->pieces = (k->units + k->units_per_piece - 1) / k->units_per_piece;
    const bool few_units = k->units <= FEW_UNITS && k->units * k->row_values <= FEW_VALUES;
    if (!few_units || k->program.phases != 1 || per_unit < 2 * PIECE) return;
    k->units_per_piece = 1;
    k->steps_per_piece = PIECE / tile + 1;
    if ((k->steps_per_unit + k->steps_per_piece - 1) / k->steps_per_piece > MOST_PARTS)
        k->steps_per_piece = (k->steps_per_unit + MOST_PARTS - 1) / MOST_PARTS;
    k->pieces = k->units * ((k->steps_per_unit + k->steps_per_piece - 1) / k->steps_per_piece);
}

/* ---- the whole ---- */

static bool copy_program(wb_cpu_program *k, const wb_program *from) {
    wb_program *p = &k->program;
    *p = *from;
    p->instructions = wb_host_alloc(sizeof *p->instructions * (size_t)(from->ninstructions + 1));
    p->accesses = wb_host_alloc(sizeof *p->accesses * (size_t)(from->naccesses + 1));
    const size_t count = (size_t)from->ninstructions + 1;
    k->offset = wb_host_alloc(sizeof *k->offset * count);
    k->reduction = wb_host_alloc(sizeof *k->reduction * count);
    k->direct_store = wb_host_alloc(sizeof *k->direct_store * count);
    k->is_direct_load = wb_host_alloc(sizeof *k->is_direct_load * count);
    k->is_wide = wb_host_alloc(sizeof *k->is_wide * count);
    k->in_rows = wb_host_alloc(sizeof *k->in_rows * count);
    if (!p->instructions || !p->accesses || !k->offset || !k->reduction || !k->direct_store ||
        !k->is_direct_load || !k->is_wide || !k->in_rows)
        return false;
    memcpy(p->instructions, from->instructions,
           sizeof *p->instructions * (size_t)from->ninstructions);
    if (from->naccesses)
        memcpy(p->accesses, from->accesses, sizeof *p->accesses * (size_t)from->naccesses);
    return true;
}

wb_cpu_program *wb_cpu_program_new(const wb_program *program) {
    if (program->ninstructions >= WB_MOST_STEPS || program->phases > WB_MOST_PHASES) {
        (void)wb_host_fail(WB_ERROR_UNSUPPORTED, "CPU: a program of %d instructions in %d phases",
                           (int)program->ninstructions, (int)program->phases);
        return NULL;
    }
    wb_cpu_program *k = wb_host_alloc(sizeof *k);
    if (!k) return NULL;
    k->loops = loops_of(wb_cpu_isa());
    bool made = copy_program(k, program);
    if (made) {
        choose_tile(k);
        make_loops(k);
        made = schedule(k);
    }
    if (!made) {
        wb_cpu_program_free(k);
        return NULL;
    }
    wb_pair_steps(k);
    wb_pair_moments(k);
    wb_place_values(k);
    choose_pieces(k);
    if (wb_cpu_find_adam(&k->program, &k->adam) && !list_gradient(k)) {
        wb_cpu_program_free(k);
        return NULL;
    }
    return k;
}

void wb_cpu_program_free(wb_cpu_program *k) {
    if (!k) return;
    for (int i = 0; i < WB_MOST_PHASES; i++) wb_host_release(k->full[i].steps);
    for (int i = 0; i <= WB_MOST_PHASES; i++) wb_host_release(k->rows[i].steps);
    wb_host_release(k->constants.steps);
    wb_host_release(k->gradient.steps);
    wb_host_release(k->program.instructions);
    wb_host_release(k->program.accesses);
    wb_host_release(k->offset);
    wb_host_release(k->reduction);
    wb_host_release(k->direct_store);
    wb_host_release(k->is_direct_load);
    wb_host_release(k->is_wide);
    wb_host_release(k->in_rows);
    wb_host_release(k);
}

int64_t wb_cpu_program_scratch(const wb_cpu_program *k) {
    const int64_t each = (int64_t)sizeof(wb_accumulator);
    const int64_t partial = wb_is_split(k) ? each * k->pieces * k->row_values * k->reductions : 0;
    const int64_t sides = each * (k->pieces + 2) * k->side_values;
    return k->register_bytes * wb_cpu_threads() + partial + sides + WB_ALIGNMENT;
}

int wb_cpu_program_ndim(const wb_cpu_program *k) { return k->program.ndim; }
int64_t wb_cpu_program_size(const wb_cpu_program *k, int dim) { return k->program.sizes[dim]; }
