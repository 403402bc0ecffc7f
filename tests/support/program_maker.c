#include "support/program_maker.h"

enum { NONE = WB_NO_VALUE };

void program_start(program_maker *m, uint32_t reduced, int ndim, const int64_t *sizes) {
    *m = (program_maker){.low = -3, .high = 3};
    m->program = (wb_program){.ndim = ndim,
                              .reduced = reduced,
                              .phases = 1,
                              .instructions = m->instructions,
                              .accesses = m->accesses};
    for (int d = 0; d < ndim; d++) m->program.sizes[d] = sizes[d];
}

uint16_t program_add(program_maker *m, wb_instruction i) {
    i.phase = (uint8_t)m->phase;
    m->instructions[m->program.ninstructions] = i;
    return (uint16_t)m->program.ninstructions++;
}

int program_argument_new(program_maker *m, wb_dtype dtype, bool is_output) {
    const int a = m->program.narguments++;
    m->dtypes[a] = dtype;
    m->is_output[a] = is_output;
    return a;
}

/* Makes room for all places of the access. */
static void make_room(program_maker *m, const wb_access *a) {
    int64_t last = a->offset;
    for (int d = 0; d < m->program.ndim; d++)
        if (a->strides[d] > 0) last += (m->program.sizes[d] - 1) * a->strides[d];
    if (a->argument != NONE && last + 1 > m->counts[a->argument]) m->counts[a->argument] = last + 1;
}

static int access_new(program_maker *m, int argument, wb_dtype dtype, int64_t offset,
                      const int64_t *strides) {
    wb_access *a = &m->accesses[m->program.naccesses];
    *a = (wb_access){.dtype = (uint8_t)dtype, .argument = (uint16_t)argument, .offset = offset};
    for (int d = 0; d < m->program.ndim; d++) a->strides[d] = strides[d];
    make_room(m, a);
    return m->program.naccesses++;
}

void program_dense(const program_maker *m, uint32_t mask, int64_t *strides) {
    int64_t next = 1;
    for (int d = 0; d < m->program.ndim; d++) {
        strides[d] = mask >> d & 1 ? next : 0;
        if (mask >> d & 1) next *= m->program.sizes[d];
    }
}

static uint32_t all_dims(const program_maker *m) { return (1u << m->program.ndim) - 1; }

uint16_t program_load_at(program_maker *m, int argument, int64_t offset, const int64_t *strides,
                         bool row) {
    const wb_dtype dtype = m->dtypes[argument];
    return program_add(
        m, (wb_instruction){.code = WB_CODE_load,
                            .type = (uint8_t)wb_register_of(dtype),
                            .in = {NONE, NONE, NONE},
                            .row = row,
                            .index = (uint16_t)access_new(m, argument, dtype, offset, strides)});
}

uint16_t program_load_over(program_maker *m, wb_dtype dtype, uint32_t mask, bool row) {
    int64_t strides[8];
    program_dense(m, mask, strides);
    return program_load_at(m, program_argument_new(m, dtype, false), 0, strides, row);
}

uint16_t program_load(program_maker *m, wb_dtype dtype) {
    return program_load_over(m, dtype, all_dims(m), false);
}

void program_store_at(program_maker *m, int argument, uint16_t value, int64_t offset,
                      const int64_t *strides, bool row) {
    const wb_dtype dtype = m->dtypes[argument];
    (void)program_add(
        m, (wb_instruction){.code = WB_CODE_store,
                            .type = (uint8_t)wb_register_of(dtype),
                            .in = {value, NONE, NONE},
                            .row = row,
                            .index = (uint16_t)access_new(m, argument, dtype, offset, strides)});
}

void program_store(program_maker *m, wb_dtype dtype, uint16_t value) {
    int64_t strides[8];
    program_dense(m, all_dims(m), strides);
    program_store_at(m, program_argument_new(m, dtype, true), value, 0, strides, false);
}

void program_store_row(program_maker *m, wb_dtype dtype, uint16_t value) {
    int64_t strides[8];
    program_dense(m, all_dims(m) & ~m->program.reduced, strides);
    program_store_at(m, program_argument_new(m, dtype, true), value, 0, strides, true);
}

uint16_t program_op_as(program_maker *m, wb_code code, wb_register type, wb_register result,
                       uint16_t x, uint16_t y, uint16_t z) {
    const bool row = m->instructions[x].row;
    return program_add(m, (wb_instruction){.code = (uint8_t)code,
                                           .type = (uint8_t)type,
                                           .from = (uint8_t)result,
                                           .row = row,
                                           .in = {x, y, z}});
}

uint16_t program_op(program_maker *m, wb_code code, wb_register type, uint16_t x, uint16_t y) {
    return program_op_as(m, code, type, type, x, y, NONE);
}

uint16_t program_constant(program_maker *m, wb_register type, double number) {
    return program_add(m, (wb_instruction){.code = WB_CODE_constant,
                                           .type = (uint8_t)type,
                                           .in = {NONE, NONE, NONE},
                                           .constant = number});
}

uint16_t program_cast(program_maker *m, wb_register from, wb_register to, uint16_t x) {
    return program_add(m, (wb_instruction){.code = WB_CODE_cast,
                                           .type = (uint8_t)to,
                                           .from = (uint8_t)from,
                                           .row = m->instructions[x].row,
                                           .in = {x, NONE, NONE}});
}

static uint16_t reduce(program_maker *m, wb_code code, wb_register type, uint16_t x) {
    return program_add(m, (wb_instruction){.code = (uint8_t)code,
                                           .type = (uint8_t)type,
                                           .from = (uint8_t)type,
                                           .row = true,
                                           .in = {x, NONE, NONE}});
}

uint16_t program_spread(program_maker *m, uint16_t x) {
    return program_add(m, (wb_instruction){.code = WB_CODE_spread,
                                           .type = (uint8_t)wb_result_register(&m->instructions[x]),
                                           .in = {x, NONE, NONE}});
}

void program_next_phase(program_maker *m) { m->phase = m->program.phases++; }
uint16_t program_sum(program_maker *m, wb_register type, uint16_t x) {
    m->phase++;
    const uint16_t made = reduce(m, WB_CODE_sum, type, x);
    m->phase--;
    return made;
}
uint16_t program_largest(program_maker *m, wb_register type, uint16_t x) {
    m->phase++;
    const uint16_t made = reduce(m, WB_CODE_max_reduce, type, x);
    m->phase--;
    return made;
}

uint16_t program_source(program_maker *m, wb_code code, wb_register type, int64_t offset,
                        const int64_t *strides) {
    return program_add(
        m, (wb_instruction){.code = (uint8_t)code,
                            .type = (uint8_t)type,
                            .in = {NONE, NONE, NONE},
                            .index = (uint16_t)access_new(m, NONE, WB_F32, offset, strides)});
}
