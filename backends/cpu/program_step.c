/* What one step of a program does with a tile: from memory, into registers, straight to memory. */
#include <string.h>

#include "tile.h"

static int64_t register_width(const wb_instruction *i) {
    return wb_register_bytes(wb_result_register(i));
}

/* A row value into a register of the tile; where all that read it take one number, or one for each
 * row, it stays. */
static void spread_value(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const char *from = t->value[step->in[0]];
    const bool is_wide = k->is_wide[step->number];
    const int64_t width = wb_register_bytes((wb_register)step->instruction->type);
    t->is_in_rows[step->number] = k->in_rows[step->number];
    t->row_bytes[step->number] = is_wide ? t->inner * width : width;
    if (!is_wide) {
        t->value[step->number] = t->value[step->in[0]];
        return;
    }
    wb_to_register(t, step->number);
    char *to = t->value[step->number];
    if (k->shape == WB_COLUMNS) {
        for (int64_t o = 0; o < t->outer; o++)
            memcpy(to + o * t->inner * width, from, (size_t)(t->inner * width));
        return;
    }
    if (k->shape == WB_ROWS)
        k->loops->repeat_rows[width == 8](t->inner, t->outer, from, to);
    else
        k->loops->repeat[width == 8](t->inner * t->outer, from, to);
}

/* Bytes from one row of a value to the next; 0 for a number, which all rows share. */
static int64_t row_bytes_of(const wb_tile *t, uint16_t value) {
    const wb_instruction *i = &t->job->k->program.instructions[value];
    const bool is_number = wb_is_constant(i) || !t->job->k->is_wide[value];
    if (t->is_in_rows[value]) return t->row_bytes[value];
    return is_number ? 0 : t->inner * register_width(i);
}

static bool is_any_in_rows(const wb_tile *t, const wb_step *step) {
    bool any = t->is_in_rows[step->number];
    for (int in = 0; in < 3; in++)
        any = any || (step->in[in] != WB_NO_VALUE && t->is_in_rows[step->in[in]]);
    return any;
}

static void step_in_rows(const wb_tile *t, const wb_step *step) {
    char *to = t->value[step->number];
    const char *in[3];
    int64_t bytes[3];
    for (int i = 0; i < 3; i++) {
        const uint16_t value = step->in[step->in[i] == WB_NO_VALUE ? 0 : i];
        in[i] = t->value[value], bytes[i] = row_bytes_of(t, value);
    }
    const int64_t to_bytes = row_bytes_of(t, step->number);
    for (int64_t o = 0; o < t->outer; o++, to += to_bytes) {
        step->loop(t->inner, to, in[0], in[1], in[2]);
        for (int i = 0; i < 3; i++) in[i] += bytes[i];
    }
}

static void element_step(const wb_tile *t, const wb_step *step, int64_t n) {
    const void *x = t->value[step->in[0]],
               *y = step->in[1] == WB_NO_VALUE ? x : t->value[step->in[1]];
    const void *z = step->in[2] == WB_NO_VALUE ? x : t->value[step->in[2]];
    step->loop(n, t->value[step->number], x, y, z);
}

/* The value is where the access says, a row at a time. */
static void to_rows(wb_tile *t, uint16_t value, const wb_access *a) {
    t->value[value] = wb_address(t, a);
    t->row_bytes[value] = a->strides[1] * (int64_t)wb_storage_size(a->dtype);
    t->is_in_rows[value] = true;
}

/* Loops run over whole lanes: what no element fills is 0, so that no loop reads what was never
 * written. */
static void clear_rest(const wb_tile *t, const wb_step *step, int64_t used, int64_t all) {
    const int64_t size = register_width(step->instruction);
    if (used < all)
        memset((char *)t->value[step->number] + used * size, 0, (size_t)((all - used) * size));
}

/* From memory into a register, or where it lies. */
static void load_step(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_access *a = &k->program.accesses[step->instruction->index];
    t->is_in_rows[step->number] = false;
    if (t->is_even && k->is_direct_load[step->number] && wb_lies_flat(t, a)) {
        t->value[step->number] = wb_address(t, a);
    } else if (t->has_even_rows && k->in_rows[step->number]) {
        to_rows(t, step->number, a);
    } else if (!k->is_wide[step->number]) {
        wb_to_register(t, step->number);
        wb_load_row(t, a, 1, 1, wb_address(t, a), t->value[step->number]);
    } else {
        wb_to_register(t, step->number);
        wb_load_tile(t, a, t->value[step->number]);
        clear_rest(t, step, t->inner * t->outer, t->n);
    }
}

/* To memory, unless the value was computed there. */
static void store_step(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    const wb_access *a = &k->program.accesses[i->index];
    const bool is_direct = k->direct_store[step->in[0]] == (int16_t)i->index;
    const bool is_flat = t->is_even && wb_lies_flat(t, a);
    if (!is_direct || (!is_flat && !t->is_in_rows[step->in[0]]))
        wb_store_tile(t, a, t->value[step->in[0]]);
}

/* An elementwise operation, into a register or straight to memory. */
static void compute_step(wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const int16_t direct = k->direct_store[step->number];
    const wb_access *a = direct >= 0 ? &k->program.accesses[direct] : NULL;
    const bool straight = a && t->is_even && wb_lies_flat(t, a);
    t->is_in_rows[step->number] = false;
    if (a && !straight && t->has_even_rows && k->in_rows[step->number])
        to_rows(t, step->number, a);
    else
        t->value[step->number] = straight ? wb_address(t, a) : wb_own_register(t, step->number);
    if (step->may_be_in_rows && is_any_in_rows(t, step))
        step_in_rows(t, step);
    else
        element_step(t, step, t->n);
}

void wb_step_full(wb_tile *t, const wb_step *step) {
    const wb_instruction *i = step->instruction;
    const wb_access *accesses = t->job->k->program.accesses;
    switch (i->code) {
    case WB_CODE_load:
        load_step(t, step);
        return;
    case WB_CODE_store:
        store_step(t, step);
        return;
    case WB_CODE_iota:
    case WB_CODE_uniform:
    case WB_CODE_normal:
        wb_to_register(t, step->number);
        wb_source_tile(t, i, t->inner, t->outer, accesses[i->index].strides[0],
                       accesses[i->index].strides[1], t->value[step->number]);
        clear_rest(t, step, t->inner * t->outer, t->n);
        return;
    case WB_CODE_sum:
    case WB_CODE_max_reduce:
        wb_sums_reduce(t, step);
        return;
    case WB_CODE_side_sum:
        wb_sums_add_up(t, step);
        return;
    case WB_CODE_spread:
        spread_value(t, step);
        return;
    default:
        compute_step(t, step);
        return;
    }
}

void wb_step_row(wb_tile *t, const wb_step *step) {
    const wb_access *accesses = t->job->k->program.accesses;
    const wb_instruction *i = step->instruction;
    const int64_t n = t->row_values;
    if (i->code != WB_CODE_store) wb_to_register(t, step->number);
    switch (i->code) {
    case WB_CODE_load:
        wb_load_row(t, &accesses[i->index], n, wb_row_stride(t, &accesses[i->index]),
                    wb_address(t, &accesses[i->index]), t->value[step->number]);
        clear_rest(t, step, n, t->row_n);
        return;
    case WB_CODE_store:
        wb_store_row(t, &accesses[i->index], n, n == 1 ? 1 : wb_row_stride(t, &accesses[i->index]),
                     t->value[step->in[0]], wb_address(t, &accesses[i->index]));
        return;
    case WB_CODE_iota:
    case WB_CODE_uniform:
    case WB_CODE_normal:
        wb_source_tile(t, i, n, 1, wb_row_stride(t, &accesses[i->index]), 0,
                       t->value[step->number]);
        clear_rest(t, step, n, t->row_n);
        return;
    case WB_CODE_sum:
    case WB_CODE_max_reduce:
        wb_sums_finish_row(t, step);
        return;
    default:
        element_step(t, step, t->row_n);
        return;
    }
}
