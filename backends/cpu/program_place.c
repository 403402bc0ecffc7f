/* Where the values of a program are: in registers of a worker's scratch, or in the memory of the
 * arrays. */
#include <string.h>

#include "program_steps.h"

/* ---- registers ---- */

static int64_t register_size(const wb_program *p, uint16_t value, int64_t elements) {
    const int64_t padded = (elements + WB_LANES - 1) / WB_LANES * WB_LANES;
    const int64_t bytes = padded * wb_register_bytes(wb_result_register(&p->instructions[value]));
    return (bytes + WB_ALIGNMENT - 1) / WB_ALIGNMENT * WB_ALIGNMENT + WB_REGISTER_REST;
}

typedef struct free_register {
    int64_t offset, size;
} free_register;

/* Takes the register that was freed last, since it is in the first cache. */
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
static void last_uses(const wb_step_list *lists, int nlists, int *last) {
    int at = 0;
    for (int l = 0; l < nlists; l++)
        for (int64_t s = 0; s < lists[l].count; s++, at++)
            for (int in = 0; in < 3; in++)
                if (lists[l].steps[s].in[in] != WB_NO_VALUE) last[lists[l].steps[s].in[in]] = at;
}

static bool has_result(const wb_step *step) {
    const wb_instruction *i = step->instruction;
    return i->code != WB_CODE_store && i->code != WB_CODE_side_sum && !wb_is_reduction(i);
}

/* Registers of the full values, reused when their last reader is done: a result never shares with
 * an operand of its own step. */
static void assign(wb_cpu_program *k, const wb_step_list *lists, int nlists, const bool *shared) {
    int last[WB_MOST_STEPS];
    free_register pool[WB_MOST_STEPS];
    int free_count = 0, at = 0;
    for (int i = 0; i < k->program.ninstructions; i++) last[i] = -1;
    last_uses(lists, nlists, last);
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
                    wb_is_constant(&k->program.instructions[v]) || k->offset[v] < 0 || shared[v])
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
        const bool row = p->instructions[i].row, fixed = wb_is_constant(&p->instructions[i]);
        k->offset[i] = -1;
        if (p->instructions[i].code == WB_CODE_side_sum) {
            k->offset[i] = k->side_values;
            k->side_values += wb_side_count(k, &p->instructions[i]);
        }
        if (wb_is_reduction(&p->instructions[i])) k->reduction[i] = (uint16_t)k->reductions++;
        if (!row && !fixed) continue;
        k->offset[i] = k->register_bytes;
        k->register_bytes += register_size(p, (uint16_t)i, fixed ? elements : k->row_values);
    }
    k->accumulators_at = k->register_bytes;
    k->register_bytes +=
        (int64_t)sizeof(wb_accumulator) * k->row_values * k->reductions + WB_ALIGNMENT;
    k->register_bytes = (k->register_bytes + WB_ALIGNMENT - 1) / WB_ALIGNMENT * WB_ALIGNMENT;
}

/* Values that are computed in several phases, or once for all tiles of a unit, have registers of
 * their own: each phase assigns the others again. */
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

static int64_t step_of(const wb_step_list *list, uint16_t value) {
    return wb_step_that_makes(list->steps, list->count, value);
}

/* Some step from number `from` of the phase on, or of a later phase, reads the value. */
static bool is_read_from(const wb_cpu_program *k, int phase, int64_t from, uint16_t value) {
    for (; phase < k->program.phases; phase++, from = 0)
        for (int64_t s = from; s < k->full[phase].count; s++)
            for (int in = 0; in < 3; in++)
                if (k->full[phase].steps[s].in[in] == value) return true;
    return false;
}

/* Whether memory that the access overwrites is read after step `made` of the phase. If each phase
 * loads its operands again, all later phases count. */
static bool is_wanted_after(const wb_cpu_program *k, const wb_access *to, int phase, int64_t made) {
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
        count += step_of(&k->full[phase], value) >= 0;
    return count;
}

/* A value goes straight to memory if one phase makes it, and no later step still reads, where it
 * lies, what is written over. */
static bool may_write_straight(const wb_cpu_program *k, int phase, const wb_step *store) {
    const wb_program *p = &k->program;
    const wb_step_list *list = &k->full[phase];
    const wb_access *to = &p->accesses[store->instruction->index];
    const uint16_t value = store->in[0];
    const int64_t made = step_of(list, value);
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
        if (instruction->code == WB_CODE_spread) k->in_rows[i] = wb_has_row_numbers(k);
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

/* True if an earlier phase prefetches it. */
static bool is_noted(const wb_cpu_program *k, int phase, int16_t access) {
    for (int p = 0; p < phase; p++)
        for (int i = 0; i < k->full[p].nstreams; i++)
            if (k->full[p].stream[i] == access) return true;
    return false;
}

/* Only for large programs: the data of small ones stays in the caches near the core. If values live
 * through the phases, all phases together prefetch what the next tile uses in any of them. */
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

void wb_place_values(wb_cpu_program *k) {
    assign_registers(k);
    choose_direct(k);
    for (int phase = 0; phase < k->program.phases; phase++) {
        note_streams(k, phase);
        note_rows(k, &k->full[phase]);
    }
}
