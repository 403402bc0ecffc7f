/* From a program to its schedule: the tile, the steps of each phase, registers, pieces. */
#include <string.h>

#include "host.h"
#include "pool.h"
#include "program.h"

enum {
    PIECE = 1 << 19, /* elements times instructions worth a thread's while: some 30 us */
    LARGE = 1 << 16, /* elements of an array */
    ALIGNMENT = 64,
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
static bool is_reduction(const wb_instruction *i) {
    return i->code == WB_CODE_sum || i->code == WB_CODE_max_reduce;
}
static bool is_constant(const wb_instruction *i) {
    return i->code == WB_CODE_constant || i->code == WB_CODE_late;
}
static int64_t size_of(const wb_program *p, int d) { return d < p->ndim ? p->sizes[d] : 1; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- the tile ---- */

/* Elements of a tile: many registers want smaller ones, to stay in the first cache together. A row
 * that is reduced is whole where it can be: then registers live through the phases, which otherwise
 * compute what they need anew. */
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
    const bool second_in_tile = k->outer > 1 || (k->shape == WB_ROWS && k->program.ndim > 1);
    for (int d = 0; d < k->program.ndim; d++) {
        const int64_t step = d == 0 ? k->inner : d == 1 && second_in_tile ? k->outer : 1;
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
        step.loop = k->loops->cast[i->from][i->type];
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
    if (is_reduction(i)) return i->phase == phase + 1;
    const bool leaves = (i->code == WB_CODE_store && !i->row) || i->code == WB_CODE_side_sum;
    return leaves && i->phase == phase;
}

/* The full steps of a phase: everything that its ends need, unless the registers still hold it from
 * an earlier phase. */
static bool schedule_phase(wb_cpu_program *k, int phase, bool *computed) {
    const wb_program *p = &k->program;
    const bool keeps = k->steps_per_unit == 1;
    bool needed[WB_MOST_STEPS] = {false};
    for (int i = 0; i < p->ninstructions; i++)
        if (ends_phase(&p->instructions[i], phase)) mark(p, needed, (uint16_t)i, false);
    for (int i = 0; i < p->ninstructions; i++) {
        const wb_instruction *instruction = &p->instructions[i];
        if (!needed[i] || is_constant(instruction) || (keeps && computed[i])) continue;
        if (instruction->row && !is_reduction(instruction)) continue;
        computed[i] = true;
        if (!add_step(k, &k->full[phase], (uint16_t)i)) return false;
    }
    return true;
}

static bool schedule_rows(wb_cpu_program *k) {
    const wb_program *p = &k->program;
    for (int i = 0; i < p->ninstructions; i++) {
        const wb_instruction *instruction = &p->instructions[i];
        if (is_constant(instruction) && !add_step(k, &k->constants, (uint16_t)i)) return false;
        if (!instruction->row || is_constant(instruction)) continue;
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

/* Constants, and row values where the tile is one row. */
static bool is_number(const wb_cpu_program *k, uint16_t value) {
    if (value == WB_NO_VALUE) return false;
    const wb_instruction *i = &k->program.instructions[value];
    const bool is_one_row = k->shape == WB_WHOLE || (k->shape == WB_ROWS && k->outer == 1);
    return is_constant(i) || (i->code == WB_CODE_spread && is_one_row);
}

/* ---- a product and what follows it in one step ---- */

static int uses_of(const wb_program *p, uint16_t value) {
    int uses = 0;
    for (int i = 0; i < p->ninstructions; i++)
        for (int k = 0; k < 3; k++) uses += p->instructions[i].in[k] == value;
    return uses;
}

/* What is done to operand number `side`, if that is a product. */
static wb_fused follows(const wb_instruction *i, int side) {
    if (i->type > WB_R_F64) return WB_NOT_FUSED;
    if (i->code == WB_CODE_add) return WB_PRODUCT_ADDED;
    if (i->code == WB_CODE_sub && side == 1) return WB_PRODUCT_SUBTRACTED;
    if ((i->code == WB_CODE_sum || i->code == WB_CODE_side_sum) && side == 0)
        return WB_PRODUCT_SUMMED;
    return i->code == WB_CODE_neg && side == 0 ? WB_PRODUCT_NEGATED : WB_NOT_FUSED;
}

/* Place among the first `count` steps of one that gives what a single other step wants, or -1. */
static int64_t lone_step(const wb_cpu_program *k, const wb_step *steps, int64_t count,
                         uint16_t value) {
    for (int64_t s = 0; s < count; s++)
        if (steps[s].number == value) return uses_of(&k->program, value) == 1 ? s : -1;
    return -1;
}

/* Products are summed of whole registers. */
static bool may_be_summed(const wb_cpu_program *k, const wb_step *product) {
    return !is_number(k, product->in[0]) &&
           !is_number(k, product->in[product->instruction->code == WB_CODE_mul]);
}

static int64_t lone_product(const wb_cpu_program *k, const wb_step *steps, int64_t count,
                            const wb_step *step, int side) {
    const wb_fused how = follows(step->instruction, side);
    if (!how) return -1;
    const int64_t at = lone_step(k, steps, count, step->instruction->in[side]);
    if (at < 0) return -1;
    const int code = steps[at].instruction->code;
    const bool is_product = code == WB_CODE_mul || code == WB_CODE_square;
    return is_product && (how != WB_PRODUCT_SUMMED || may_be_summed(k, &steps[at])) ? at : -1;
}

static void fuse(wb_step *step, int side, const wb_step *product) {
    const wb_instruction *i = step->instruction;
    step->fused = follows(i, side);
    step->in[0] = product->in[0];
    step->in[1] = product->in[product->instruction->code == WB_CODE_mul];
    step->in[2] = i->code == WB_CODE_neg ? WB_NO_VALUE : i->in[1 - side];
}

static int64_t without(wb_step *steps, int64_t count, int64_t at) {
    memmove(&steps[at], &steps[at + 1], sizeof *steps * (size_t)(count - 1 - at));
    return count - 1;
}

/* The product's step goes, the other does both. */
static void contract(wb_cpu_program *k, wb_step_list *list) {
    int64_t kept = 0;
    for (int64_t s = 0; s < list->count; s++) {
        wb_step step = list->steps[s];
        for (int side = 0; side < 2 && !step.fused; side++) {
            const int64_t at = lone_product(k, list->steps, kept, &step, side);
            if (at < 0) continue;
            fuse(&step, side, &list->steps[at]);
            kept = without(list->steps, kept, at);
        }
        list->steps[kept++] = step;
    }
    list->count = kept;
}

/* ---- numbers as operands ---- */

/* Takes, where a constant is an operand, the loop that reads it as one number; taken[] says
 * which. */
static void take_number_loop(wb_cpu_program *k, wb_step *step, bool *taken) {
    const wb_instruction *i = step->instruction;
    const int last = i->code == WB_CODE_select ? 2 : 1;
    if (i->code > WB_CODE_select) return;
    if (step->fused) {
        if (is_number(k, step->in[0]) && !is_number(k, step->in[1])) {
            const uint16_t x = step->in[0];
            step->in[0] = step->in[1], step->in[1] = x;
        }
        taken[1] = is_number(k, step->in[1]), taken[2] = is_number(k, step->in[2]);
        step->loop = k->loops->fused[step->fused][taken[1] + 2 * taken[2]][i->type];
        return;
    }
    if (is_number(k, step->in[last]) && k->loops->by_number[i->code][i->type]) {
        step->loop = k->loops->by_number[i->code][i->type];
        taken[last] = true;
    } else if (is_number(k, step->in[last - 1]) && k->loops->of_number[i->code][i->type]) {
        step->loop = k->loops->of_number[i->code][i->type];
        taken[last - 1] = true;
    }
}

/* Values that are wanted as whole registers are noted: other numbers need one element only. */
static void use_numbers(wb_cpu_program *k, wb_step_list *list) {
    for (int64_t s = 0; s < list->count; s++) {
        wb_step *step = &list->steps[s];
        bool taken[3] = {false};
        take_number_loop(k, step, taken);
        for (int in = 0; in < 3; in++)
            if (step->in[in] != WB_NO_VALUE && !taken[in]) k->is_wide[step->in[in]] = true;
    }
}

/* ---- registers ---- */

static int64_t register_size(const wb_program *p, uint16_t value, int64_t elements) {
    static const int sizes[WB_R_COUNT] = {4, 8, 4, 8, 4};
    const int64_t padded = (elements + WB_LANES - 1) / WB_LANES * WB_LANES;
    return (padded * sizes[wb_result_register(&p->instructions[value])] + ALIGNMENT - 1) /
               ALIGNMENT * ALIGNMENT +
           WB_REGISTER_REST;
}

typedef struct free_register {
    int64_t offset, size;
} free_register;

/* The one that was free last: it is in the first cache. */
static int64_t take(wb_cpu_program *k, free_register *pool, int *count, int64_t size) {
    for (int i = *count - 1; i >= 0; i--) {
        if (pool[i].size != size) continue;
        const int64_t offset = pool[i].offset;
        memmove(&pool[i], &pool[i + 1], sizeof *pool * (size_t)(--*count - i));
        return offset;
    }
    const int64_t offset = k->register_bytes;
    k->register_bytes += size;
    return offset;
}

/* Last step, counted through the given lists, that reads each value. */
static void last_uses(const wb_cpu_program *k, const wb_step_list *lists, int nlists, int *last) {
    int at = 0;
    for (int l = 0; l < nlists; l++)
        for (int64_t s = 0; s < lists[l].count; s++, at++)
            for (int in = 0; in < 3; in++)
                if (lists[l].steps[s].in[in] != WB_NO_VALUE) last[lists[l].steps[s].in[in]] = at;
    (void)k;
}

static bool has_result(const wb_step *step) {
    const wb_instruction *i = step->instruction;
    return i->code != WB_CODE_store && i->code != WB_CODE_side_sum && !is_reduction(i);
}

/* Registers of the full values, reused when their last reader is done. A result never shares with
 * an operand of its own step of another width; of the same width it may, element on element. */
static void assign(wb_cpu_program *k, const wb_step_list *lists, int nlists, const bool *shared) {
    int last[WB_MOST_STEPS];
    free_register pool[WB_MOST_STEPS];
    int free_count = 0, at = 0;
    for (int i = 0; i < k->program.ninstructions; i++) last[i] = -1;
    last_uses(k, lists, nlists, last);
    const int64_t elements = k->inner * k->outer;
    for (int l = 0; l < nlists; l++) {
        for (int64_t s = 0; s < lists[l].count; s++, at++) {
            const wb_step *step = &lists[l].steps[s];
            if (has_result(step) && !shared[step->number])
                k->offset[step->number] =
                    take(k, pool, &free_count, register_size(&k->program, step->number, elements));
            for (int in = 0; in < 3; in++) {
                const uint16_t v = step->in[in];
                const bool again = (in > 0 && v == step->in[0]) || (in > 1 && v == step->in[1]);
                if (v == WB_NO_VALUE || again || last[v] != at || k->program.instructions[v].row ||
                    is_constant(&k->program.instructions[v]) || k->offset[v] < 0 || shared[v])
                    continue;
                pool[free_count++] =
                    (free_register){k->offset[v], register_size(&k->program, v, elements)};
            }
        }
    }
}

static void assign_fixed(wb_cpu_program *k) {
    const wb_program *p = &k->program;
    const int64_t elements =
        k->inner * k->outer > k->row_values ? k->inner * k->outer : k->row_values;
    for (int i = 0; i < p->ninstructions; i++) {
        const bool row = p->instructions[i].row, fixed = is_constant(&p->instructions[i]);
        k->offset[i] = -1;
        if (p->instructions[i].code == WB_CODE_side_sum) {
            k->offset[i] = k->side_values;
            k->side_values += wb_side_count(k, &p->instructions[i]);
        }
        if (is_reduction(&p->instructions[i])) k->reduction[i] = (uint16_t)k->reductions++;
        if (!row && !fixed) continue;
        k->offset[i] = k->register_bytes;
        k->register_bytes += register_size(p, (uint16_t)i, fixed ? elements : k->row_values);
    }
    k->accumulators_at = k->register_bytes;
    k->register_bytes +=
        (int64_t)sizeof(wb_accumulator) * k->row_values * k->reductions + ALIGNMENT;
    k->register_bytes = (k->register_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Values that are computed in several phases, or once for all tiles of a unit, have registers of
 * their own: each phase shares out the others anew. */
static void assign_shared(wb_cpu_program *k, bool *shared) {
    bool seen[WB_MOST_STEPS] = {false};
    for (int phase = 0; phase < k->program.phases; phase++)
        for (int64_t s = 0; s < k->full[phase].count; s++) {
            const wb_step *step = &k->full[phase].steps[s];
            if (!has_result(step)) continue;
            if ((seen[step->number] || s < k->full[phase].fixed) && !shared[step->number]) {
                shared[step->number] = true;
                k->offset[step->number] = k->register_bytes;
                k->register_bytes += register_size(&k->program, step->number, k->inner * k->outer);
            }
            seen[step->number] = true;
        }
}

static void assign_registers(wb_cpu_program *k) {
    bool shared[WB_MOST_STEPS] = {false};
    assign_fixed(k);
    if (k->steps_per_unit == 1) {
        assign(k, k->full, k->program.phases, shared); /* values live through the phases */
        return;
    }
    assign_shared(k, shared);
    for (int phase = 0; phase < k->program.phases; phase++) assign(k, &k->full[phase], 1, shared);
}

/* ---- memory as registers ---- */

static bool same_storage(int dtype, wb_register type) {
    return (dtype == WB_F32 && type == WB_R_F32) || (dtype == WB_F64 && type == WB_R_F64) ||
           (dtype == WB_I32 && type == WB_R_I32) || (dtype == WB_I64 && type == WB_R_I64);
}

/* All that read the value are elementwise steps, or store it there. */
static bool is_read_by_elements(const wb_cpu_program *k, uint16_t value) {
    for (int phase = 0; phase < k->program.phases; phase++)
        for (int64_t s = 0; s < k->full[phase].count; s++) {
            const wb_step *step = &k->full[phase].steps[s];
            const bool stores = step->instruction->code == WB_CODE_store &&
                                k->direct_store[value] == (int16_t)step->instruction->index;
            for (int in = 0; in < 3; in++)
                if (step->in[in] == value && !step->loop && !stores) return false;
        }
    return true;
}

/* The elements of each row of a tile lie one after another. */
static bool has_rows(const wb_cpu_program *k, const wb_access *a) {
    return a->strides[0] == 1 && k->inner >= WB_LEAST_ROW;
}

/* The elements of a tile lie one after another. */
static bool is_contiguous(const wb_cpu_program *k, const wb_access *a) {
    return (a->strides[0] == 1 || k->inner == 1) && (k->outer == 1 || a->strides[1] == k->inner);
}

static int place_of(const wb_step_list *list, uint16_t number) {
    for (int64_t s = 0; s < list->count; s++)
        if (list->steps[s].number == number) return (int)s;
    return -1;
}

/* Some step from number `from` of the phase on, or of a later phase, reads the value. */
static bool is_read_from(const wb_cpu_program *k, int phase, int64_t from, uint16_t value) {
    for (; phase < k->program.phases; phase++, from = 0)
        for (int64_t s = from; s < k->full[phase].count; s++)
            for (int in = 0; in < 3; in++)
                if (k->full[phase].steps[s].in[in] == value) return true;
    return false;
}

/* Whether some load of what the access writes over is read after step `made` of the phase: where
 * the phases load anew, each after it does. */
static bool is_wanted_after(const wb_cpu_program *k, const wb_access *to, int phase, int made) {
    const wb_program *p = &k->program;
    for (int i = 0; i < p->ninstructions; i++)
        if (p->instructions[i].code == WB_CODE_load &&
            p->accesses[p->instructions[i].index].argument == to->argument &&
            is_read_from(k, phase, made + 1, (uint16_t)i))
            return true;
    return false;
}

static int phases_that_make(const wb_cpu_program *k, uint16_t value) {
    int count = 0;
    for (int phase = 0; phase < k->program.phases; phase++)
        count += place_of(&k->full[phase], value) >= 0;
    return count;
}

/* A value goes straight to memory if one phase makes it, and no later step still reads, where it
 * lies, what is written over. */
static bool may_write_straight(const wb_cpu_program *k, int phase, const wb_step *store) {
    const wb_program *p = &k->program;
    const wb_step_list *list = &k->full[phase];
    const wb_access *to = &p->accesses[store->instruction->index];
    const uint16_t value = store->in[0];
    const int made = place_of(list, value);
    return made >= 0 && list->steps[made].loop && k->direct_store[value] < 0 &&
           phases_that_make(k, value) == 1 &&
           same_storage(to->dtype, wb_result_register(&p->instructions[value])) &&
           (is_contiguous(k, to) || has_rows(k, to)) && !is_wanted_after(k, to, phase, made);
}

static void store_straight(wb_cpu_program *k, const wb_step *store) {
    const uint16_t value = store->in[0];
    k->direct_store[value] = (int16_t)store->instruction->index;
    k->in_rows[value] = has_rows(k, &k->program.accesses[store->instruction->index]) &&
                        is_read_by_elements(k, value);
}

static void choose_direct(wb_cpu_program *k) {
    const wb_program *p = &k->program;
    for (int i = 0; i < p->ninstructions; i++) {
        const wb_instruction *instruction = &p->instructions[i];
        k->direct_store[i] = -1;
        k->is_direct_load[i] = false;
        if (instruction->code != WB_CODE_load || instruction->row) continue;
        const wb_access *a = &p->accesses[instruction->index];
        k->is_direct_load[i] =
            same_storage(a->dtype, (wb_register)instruction->type) && is_contiguous(k, a);
        k->in_rows[i] = same_storage(a->dtype, (wb_register)instruction->type) && has_rows(k, a) &&
                        is_read_by_elements(k, (uint16_t)i);
    }
    for (int phase = 0; phase < p->phases; phase++) {
        const wb_step_list *list = &k->full[phase];
        for (int64_t s = 0; s < list->count; s++)
            if (list->steps[s].instruction->code == WB_CODE_store &&
                may_write_straight(k, phase, &list->steps[s]))
                store_straight(k, &list->steps[s]);
    }
}

static void note_rows(wb_cpu_program *k, wb_step_list *list) {
    for (int64_t s = 0; s < list->count; s++) {
        wb_step *step = &list->steps[s];
        step->may_be_in_rows = k->in_rows[step->number];
        for (int in = 0; in < 3; in++)
            if (step->in[in] != WB_NO_VALUE && k->in_rows[step->in[in]])
                step->may_be_in_rows = true;
    }
}

static void note_stream(wb_step_list *to, int16_t access) {
    if (to->nstreams < WB_MOST_STREAMS) to->stream[to->nstreams++] = access;
}

/* An earlier phase asks for it. */
static bool is_noted(const wb_cpu_program *k, int phase, int16_t access) {
    for (int p = 0; p < phase; p++)
        for (int i = 0; i < k->full[p].nstreams; i++)
            if (k->full[p].stream[i] == access) return true;
    return false;
}

/* Of large programs: what small ones use is in the caches near the core. Where values live through
 * the phases, all phases together ask for what the next tile uses in any of them. */
static void note_streams(wb_cpu_program *k, int phase) {
    const wb_step_list *list = &k->full[phase];
    wb_step_list *to = &k->full[k->steps_per_unit == 1 ? 0 : phase];
    to->asks += list->count;
    for (int64_t s = 0; k->is_large && s < list->count; s++) {
        const wb_step *step = &list->steps[s];
        if (k->is_direct_load[step->number] &&
            !is_noted(k, phase, (int16_t)step->instruction->index))
            note_stream(to, (int16_t)step->instruction->index);
        else if (step->loop && k->direct_store[step->number] >= 0)
            note_stream(to, k->direct_store[step->number]);
    }
}

/* Adam's gradient goes through the registers as in the whole program. */
static bool list_gradient(wb_cpu_program *k) {
    bool needed[WB_MOST_STEPS] = {false};
    if (k->adam.g_value == WB_NO_VALUE) return true;
    mark(&k->program, needed, k->adam.g_value, false);
    bool is_made = false; /* not if its step became part of another */
    for (int64_t s = 0; s < k->full[0].count; s++) {
        const wb_step *step = &k->full[0].steps[s];
        if (!needed[step->number]) continue;
        if (!add_step(k, &k->gradient, step->number)) return false;
        k->gradient.steps[k->gradient.count - 1] = *step;
        is_made = is_made || step->number == k->adam.g_value;
    }
    if (!is_made) k->adam.loop = NULL;
    return true;
}

/* ---- pieces ---- */

/* Side sums of a piece go through memory once: of long ones there are not to be many. */
static void choose_pieces(wb_cpu_program *k) {
    enum { MOST_SIDES = 64 };
    const int64_t tile = (k->inner * k->outer + 32) * (k->program.ninstructions + 1);
    const int64_t per_unit = tile * (k->steps_per_unit ? k->steps_per_unit : 1);
    k->steps_per_piece = k->steps_per_unit;
    k->units_per_piece = PIECE / (per_unit > 0 ? per_unit : 1) + 1;
    const int64_t fewest = (k->units + MOST_SIDES - 1) / MOST_SIDES;
    if (k->side_values && k->units_per_piece < fewest) k->units_per_piece = fewest;
    k->pieces = (k->units + k->units_per_piece - 1) / k->units_per_piece;
    const bool few_units = k->units <= 8 && k->units * k->row_values <= 4096;
    if (!few_units || k->program.phases != 1 || per_unit < 2 * PIECE) return;
    k->units_per_piece = 1;
    k->steps_per_piece = PIECE / tile + 1;
    const int64_t most = 64; /* partial results per unit */
    if ((k->steps_per_unit + k->steps_per_piece - 1) / k->steps_per_piece > most)
        k->steps_per_piece = (k->steps_per_unit + most - 1) / most;
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
    if (program->ninstructions >= WB_MOST_STEPS) {
        (void)wb_host_fail(WB_ERROR_UNSUPPORTED, "CPU: a program of %d instructions",
                           (int)program->ninstructions);
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
    for (int phase = 0; phase < k->program.phases; phase++) {
        contract(k, &k->full[phase]);
        use_numbers(k, &k->full[phase]);
    }
    for (int stage = 0; stage <= k->program.phases; stage++) use_numbers(k, &k->rows[stage]);
    assign_registers(k);
    choose_direct(k);
    for (int phase = 0; phase < k->program.phases; phase++) {
        note_streams(k, phase);
        note_rows(k, &k->full[phase]);
    }
    choose_pieces(k);
    if (wb_cpu_find_adam(&k->program, &k->adam) && !list_gradient(k)) {
        wb_cpu_program_free(k);
        return NULL;
    }
    return k;
}

void wb_cpu_program_free(wb_cpu_program *k) {
    if (!k) return;
    for (int i = 0; i < 4; i++) wb_host_release(k->full[i].steps);
    for (int i = 0; i < 5; i++) wb_host_release(k->rows[i].steps);
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

size_t wb_cpu_program_scratch(const wb_cpu_program *k) {
    const size_t partial = wb_is_split(k) ? sizeof(wb_accumulator) *
                                                (size_t)(k->pieces * k->row_values * k->reductions)
                                          : 0;
    const size_t sides = sizeof(wb_accumulator) * (size_t)((k->pieces + 2) * k->side_values);
    return (size_t)k->register_bytes * (size_t)wb_cpu_threads() + partial + sides + ALIGNMENT;
}

int wb_cpu_program_ndim(const wb_cpu_program *k) { return k->program.ndim; }
int64_t wb_cpu_program_size(const wb_cpu_program *k, int dim) { return k->program.sizes[dim]; }
