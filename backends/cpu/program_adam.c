/* Adam's step found among a program's instructions (see wb_expand_adam): one loop reads and writes
 * each array once, where the instructions one by one go through the first cache fourteen times.
 *
 *     mean    = m beta1 + g rest1         square = v beta2 + g^2 rest2
 *     fresh   = kept - mean rate / (sqrt(square correction) + epsilon)
 *     kept    = p, or p - p decay
 *     stores    select(guard, fresh, p), select(guard, mean, m), select(guard, square, v) */
#include "program.h"

typedef struct matcher {
    const wb_program *program;
    wb_cpu_adam *adam;
} matcher;

static const wb_instruction *at(const matcher *m, uint16_t value) {
    return &m->program->instructions[value];
}

static bool is_code(const matcher *m, uint16_t value, int code) {
    return value != WB_NO_VALUE && at(m, value)->code == code && at(m, value)->type == WB_R_F32 &&
           !at(m, value)->row;
}

static bool is_number(const matcher *m, uint16_t value) {
    return value != WB_NO_VALUE &&
           (at(m, value)->code == WB_CODE_constant || at(m, value)->code == WB_CODE_late);
}

/* value = x times, or plus, a number */
static bool is_by_number(const matcher *m, uint16_t value, int code, uint16_t *x,
                         uint16_t *number) {
    if (!is_code(m, value, code)) return false;
    const uint16_t *in = at(m, value)->in;
    const int side = is_number(m, in[1]) ? 1 : 0;
    *x = in[1 - side], *number = in[side];
    return is_number(m, *number) && !is_number(m, *x);
}

/* The access of a value that is read from memory with steps of one element. */
static bool is_memory(const matcher *m, uint16_t value, int16_t *access) {
    if (!is_code(m, value, WB_CODE_load)) return false;
    const wb_access *a = &m->program->accesses[at(m, value)->index];
    *access = (int16_t)at(m, value)->index;
    return a->dtype == WB_F32;
}

/* value = old b + x c, with old in memory; x is told */
static bool is_average(const matcher *m, uint16_t value, int16_t *old, uint16_t *b, uint16_t *x,
                       uint16_t *c) {
    if (!is_code(m, value, WB_CODE_add)) return false;
    for (int side = 0; side < 2; side++) {
        uint16_t from;
        if (is_by_number(m, at(m, value)->in[side], WB_CODE_mul, &from, b) &&
            is_memory(m, from, old) &&
            is_by_number(m, at(m, value)->in[1 - side], WB_CODE_mul, x, c))
            return true;
    }
    return false;
}

/* Store number `index` of select(guard, fresh, old). */
static bool is_guarded_store(const matcher *m, int index, uint16_t *fresh, uint16_t *old,
                             int16_t *access) {
    const wb_instruction *store = &m->program->instructions[index];
    if (store->code != WB_CODE_store || store->row ||
        m->program->accesses[store->index].dtype != WB_F32 ||
        !is_code(m, store->in[0], WB_CODE_select))
        return false;
    const uint16_t *in = at(m, store->in[0])->in;
    const wb_instruction *guard = at(m, in[0]);
    if (guard->code != WB_CODE_load || m->program->accesses[guard->index].dtype != WB_BOOL)
        return false;
    const wb_access *a = &m->program->accesses[guard->index];
    for (int d = 0; d < m->program->ndim; d++)
        if (a->strides[d] != 0 && m->program->sizes[d] != 1) return false;
    if (m->adam->guard >= 0 && m->adam->guard != (int16_t)guard->index) return false;
    m->adam->guard = (int16_t)guard->index;
    *fresh = in[1], *old = in[2], *access = (int16_t)store->index;
    return true;
}

/* value = p, or p - p decay */
static bool is_kept(const matcher *m, uint16_t value, uint16_t p) {
    uint16_t *decay = &m->adam->numbers[WB_ADAM_DECAY], from;
    *decay = WB_NO_VALUE;
    if (value == p) return true;
    return is_code(m, value, WB_CODE_sub) && at(m, value)->in[0] == p &&
           is_by_number(m, at(m, value)->in[1], WB_CODE_mul, &from, decay) && from == p;
}

/* fresh = p - mean rate / (sqrt(square correction) + epsilon); tells mean and
 * square. */
static bool is_step(const matcher *m, uint16_t fresh, uint16_t old, uint16_t *mean,
                    uint16_t *square) {
    wb_cpu_adam *a = m->adam;
    uint16_t root;
    if (!is_code(m, fresh, WB_CODE_sub) || !is_memory(m, old, &a->p) ||
        !is_kept(m, at(m, fresh)->in[0], old))
        return false;
    const uint16_t quotient = at(m, fresh)->in[1];
    return is_code(m, quotient, WB_CODE_div) &&
           is_by_number(m, at(m, quotient)->in[0], WB_CODE_mul, mean, &a->numbers[WB_ADAM_RATE]) &&
           is_by_number(m, at(m, quotient)->in[1], WB_CODE_add, &root,
                        &a->numbers[WB_ADAM_EPSILON]) &&
           is_code(m, root, WB_CODE_sqrt) &&
           is_by_number(m, at(m, root)->in[0], WB_CODE_mul, square,
                        &a->numbers[WB_ADAM_CORRECTION]);
}

static bool is_same_load(const matcher *m, uint16_t value, int16_t access) {
    int16_t index;
    return is_memory(m, value, &index) && index == access;
}

static bool match(const matcher *m) {
    wb_cpu_adam *a = m->adam;
    uint16_t fresh[3], old[3], mean = 0, square = 0, squared, g;
    int16_t access[3];
    int stores = 0, step = -1;
    for (int i = 0; i < m->program->ninstructions; i++) {
        if (m->program->instructions[i].code != WB_CODE_store) continue;
        if (stores == 3 || !is_guarded_store(m, i, &fresh[stores], &old[stores], &access[stores]))
            return false;
        if (is_step(m, fresh[stores], old[stores], &mean, &square)) step = stores;
        stores++;
    }
    if (stores != 3 || step < 0) return false;
    if (!is_average(m, mean, &a->m, &a->numbers[WB_ADAM_BETA1], &g, &a->numbers[WB_ADAM_REST1]) ||
        !is_average(m, square, &a->v, &a->numbers[WB_ADAM_BETA2], &squared,
                    &a->numbers[WB_ADAM_REST2]) ||
        !is_code(m, squared, WB_CODE_square) || at(m, squared)->in[0] != g ||
        !is_memory(m, g, &a->g))
        return false;
    for (int s = 0; s < 3; s++) {
        if (s == step)
            a->new_p = access[s];
        else if (fresh[s] == mean && is_same_load(m, old[s], a->m))
            a->new_m = access[s];
        else if (fresh[s] == square && is_same_load(m, old[s], a->v))
            a->new_v = access[s];
        else
            return false;
    }
    return a->new_m >= 0 && a->new_v >= 0;
}

static wb_adam_loop *loop_of(wb_isa isa) {
    static wb_adam_loop *const loops[WB_ISA_COUNT] = {
#define X(isa_, suffix) [isa_] = wb_adam_##suffix,
        WB_ISA_LIST(X)
#undef X
    };
    return loops[isa];
}

bool wb_cpu_find_adam(const wb_program *program, wb_cpu_adam *adam) {
    const matcher m = {program, adam};
    *adam = (wb_cpu_adam){.guard = -1, .new_p = -1, .new_m = -1, .new_v = -1};
    if (program->reduced || program->phases != 1 || !match(&m)) return false;
    adam->loop = loop_of(wb_cpu_isa());
    return true;
}
