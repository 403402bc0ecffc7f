/* Adam's step as one loop, for a program that computes only this step and its gradient. The loop
 * reads and writes each array once; the separate instructions would go through the first cache
 * fourteen times. */
#include <string.h>

#include "fade.h"
#include "tile.h"

/* The operands of the callables Adam and AdamW: x, g, the states, what adam and adamw in
 * src/optimise/rows.c tell, whether the step is good. */
enum { P, G, M, V, RATE, CORRECTION, DECAY };
enum { BETA1, BETA2, EPSILON };

static wb_adam_loop *loop_of(wb_isa isa) {
    static wb_adam_loop *const loops[WB_ISA_COUNT] = {
#define X(isa_, suffix) [isa_] = wb_adam_##suffix,
        WB_ISA_LIST(X)
#undef X
    };
    return loops[isa];
}

/* The access of an array of that type; -1: it is something else. */
static int16_t array_of(const wb_program *p, wb_operand operand, int dtype) {
    const bool is_so =
        operand.kind == WB_OPERAND_ARRAY && p->accesses[operand.index].dtype == dtype;
    return is_so ? (int16_t)operand.index : (int16_t)-1;
}

/* The one element that the access always gives. */
static bool is_number_access(const wb_program *p, int16_t access) {
    for (int d = 0; d < p->ndim; d++)
        if (p->accesses[access].strides[d] != 0 && p->sizes[d] != 1) return false;
    return true;
}

/* A constant, a late number, or one in memory. */
static bool is_number(const wb_program *p, wb_operand operand) {
    if (operand.kind == WB_OPERAND_NUMBER) return true;
    const int16_t access = array_of(p, operand, WB_F32);
    return access >= 0 && is_number_access(p, access);
}

static bool is_decayed(const char *name) { return strcmp(name, "AdamW") == 0; }

bool wb_cpu_is_adam(const char *name) { return strcmp(name, "Adam") == 0 || is_decayed(name); }

static void take_arrays(const wb_program *p, const wb_callable *c, wb_cpu_adam *a) {
    a->p = array_of(p, c->in[P], WB_F32), a->new_p = array_of(p, c->out[0], WB_F32);
    a->m = array_of(p, c->in[M], WB_F32), a->new_m = array_of(p, c->out[1], WB_F32);
    a->v = array_of(p, c->in[V], WB_F32), a->new_v = array_of(p, c->out[2], WB_F32);
    a->g = array_of(p, c->in[G], WB_F32);
    a->g_value = c->in[G].kind == WB_OPERAND_VALUE ? c->in[G].index : WB_NO_VALUE;
}

static bool has_gradient(const wb_program *p, const wb_cpu_adam *a) {
    if (a->g_value == WB_NO_VALUE) return a->g >= 0;
    return wb_result_register(&p->instructions[a->g_value]) == WB_R_F32;
}

static bool has_arrays(const wb_cpu_adam *a) {
    return a->p >= 0 && a->m >= 0 && a->v >= 0 && a->guard >= 0 && a->new_p >= 0 && a->new_m >= 0 &&
           a->new_v >= 0;
}

bool wb_cpu_find_adam(const wb_program *p, wb_cpu_adam *a) {
    const wb_callable *c = &p->callables[0];
    *a = (wb_cpu_adam){.loop = NULL};
    if (!p->is_fed || p->ncallables != 1 || !wb_cpu_is_adam(c->name)) return false;
    const bool decays = is_decayed(c->name);
    take_arrays(p, c, a);
    const int guard = decays ? DECAY + 1 : DECAY; /* the last */
    a->guard = array_of(p, c->in[guard], WB_BOOL);
    if (!has_arrays(a) || !has_gradient(p, a) || !is_number_access(p, a->guard)) return false;
    a->rate = c->in[RATE], a->correction = c->in[CORRECTION];
    if (decays) a->decay = c->in[DECAY];
    if (!is_number(p, a->rate) || !is_number(p, a->correction)) return false;
    if (decays && !is_number(p, a->decay)) return false;
    a->numbers = (wb_adam_numbers){.beta1 = (float)c->numbers[BETA1],
                                   .rest1 = (float)(1 - c->numbers[BETA1]),
                                   .beta2 = (float)c->numbers[BETA2],
                                   .rest2 = (float)(1 - c->numbers[BETA2]),
                                   .epsilon = (float)c->numbers[EPSILON]};
    a->loop = loop_of(wb_cpu_isa());
    return true;
}

/* ---- running ---- */

static float number_of(const wb_tile *t, wb_operand operand) {
    if (operand.kind == WB_OPERAND_NONE) return 0;
    const wb_program *p = &t->job->k->program;
    if (operand.kind == WB_OPERAND_NUMBER)
        return (float)wb_number_of(t->job, &p->instructions[operand.index]);
    const wb_access *a = &p->accesses[operand.index]; /* the same for all elements */
    return ((const float *)(const void *)t->job->arguments[a->argument])[a->offset];
}

/* What the loop reads and writes, in its order: the first row of each, and elements from one row to
 * the next. */
enum { ADAM_ARRAYS = 7 };
typedef struct adam_arrays {
    float *at[ADAM_ARRAYS];
    int64_t step[ADAM_ARRAYS];
    bool are_flat, have_rows;
} adam_arrays;

static adam_arrays arrays_of(const wb_tile *t) {
    const wb_cpu_adam *a = &t->job->k->adam;
    const int16_t order[ADAM_ARRAYS] = {a->g, a->p, a->m, a->v, a->new_p, a->new_m, a->new_v};
    adam_arrays arrays = {.are_flat = true, .have_rows = true};
    for (int i = 0; i < ADAM_ARRAYS; i++) {
        if (i == 0 && a->g_value != WB_NO_VALUE) {
            arrays.at[i] = t->value[a->g_value], arrays.step[i] = t->inner;
            continue;
        }
        const wb_access *access = &t->job->k->program.accesses[order[i]];
        arrays.at[i] = (void *)wb_address(t, access), arrays.step[i] = access->strides[1];
        arrays.are_flat = arrays.are_flat && wb_lies_flat(t, access);
        arrays.have_rows = arrays.have_rows && access->strides[0] == 1;
    }
    return arrays;
}

/* Parameter and moments as they are. A new value may lie where another's old one does. */
static void keep_rows(int64_t length, float *const *from, float *const *to) {
    for (int64_t i = 0; i < length; i++) {
        const float p = from[0][i], m = from[1][i], v = from[2][i];
        to[0][i] = p, to[1][i] = m, to[2][i] = v;
    }
}

/* Prefetches, of the parameter and the moments, a row some way ahead: rows of a weight's tile lie
 * pages apart, which the processor does not prefetch. */
static void ask_for_row(const adam_arrays *arrays, int64_t length) {
    enum { AHEAD = 6, LINE = 16 /* numbers of the caches' */ };
    for (int i = 1; i < 4; i++) {
        const float *row = arrays->at[i] + AHEAD * arrays->step[i];
        for (int64_t x = 0; x < length; x += LINE) __builtin_prefetch(row + x, 1);
    }
}

static void adam_rows(const wb_tile *t, adam_arrays arrays, int64_t rows, int64_t length) {
    const wb_cpu_program *k = t->job->k;
    wb_adam_numbers numbers = k->adam.numbers;
    numbers.rate = number_of(t, k->adam.rate);
    numbers.correction = number_of(t, k->adam.correction);
    numbers.decay = number_of(t, k->adam.decay);
    const bool good = *wb_address(t, &k->program.accesses[k->adam.guard]) != 0;
    float **at = arrays.at;
    const unsigned saved = wb_fade_begin();
    for (int64_t r = 0; r < rows; r++) {
        if (rows > 1) ask_for_row(&arrays, length);
        if (good)
            k->adam.loop(length, &numbers, at[0], at[1], at[2], at[3], at[4], at[5], at[6]);
        else
            keep_rows(length, at + 1, at + 4);
        for (int i = 0; i < ADAM_ARRAYS; i++) at[i] += arrays.step[i];
    }
    wb_fade_end(saved);
}

bool wb_cpu_adam_tile(const wb_tile *t) {
    enum { SHORT_ROW = 16 };
    const adam_arrays arrays = arrays_of(t);
    const bool has_rows = arrays.have_rows && t->inner >= SHORT_ROW;
    if (arrays.are_flat)
        adam_rows(t, arrays, 1, t->inner * t->outer);
    else if (has_rows)
        adam_rows(t, arrays, t->outer, t->inner);
    return arrays.are_flat || has_rows;
}
