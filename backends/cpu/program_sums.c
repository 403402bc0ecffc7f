/* The reductions of a program: their accumulators, from the first tile to the result, and those of
 * side sums. */
#include "tile.h"

void wb_sums_start(const wb_cpu_program *k, wb_accumulator *accumulators) {
    if (k->reductions == 0) return;
    for (int i = 0; i < k->program.ninstructions; i++) {
        const wb_instruction *r = &k->program.instructions[i];
        if (!wb_is_reduction(r)) continue;
        const bool is_float = r->type == WB_R_F32 || r->type == WB_R_F64;
        wb_accumulator start = {.i = 0};
        if (r->code == WB_CODE_max_reduce && is_float)
            start.f = -__builtin_inf();
        else if (r->code == WB_CODE_max_reduce)
            start.i = INT64_MIN;
        else if (is_float)
            start.f = 0;
        for (int64_t v = 0; v < k->row_values; v++)
            accumulators[k->reduction[i] * k->row_values + v] = start;
    }
}

static void sum_products(const wb_tile *t, const wb_step *step, bool is_columns, int64_t inner,
                         int64_t outer, wb_accumulator *sums) {
    const wb_loops *loops = t->job->k->loops;
    wb_dot_loop *const *loop = is_columns ? loops->dot_columns : loops->dot_rows;
    loop[step->instruction->type](inner, outer, t->value[step->in[0]], t->value[step->in[1]], sums);
}

static void sum_moments(const wb_tile *t, const wb_step *step, bool is_columns, int64_t inner,
                        int64_t outer, wb_accumulator *squares) {
    const wb_cpu_program *k = t->job->k;
    wb_moment_loop *const *loop = is_columns ? k->loops->moment_columns : k->loops->moment_rows;
    loop[step->instruction->type](inner, outer, t->value[step->in[0]], t->value[step->in[1]],
                                  t->accumulators + k->reduction[step->twin] * k->row_values,
                                  squares);
}

void wb_sums_reduce(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    const int is_max = i->code == WB_CODE_max_reduce;
    wb_accumulator *sums = t->accumulators + k->reduction[step->number] * k->row_values;
    const void *x = t->value[step->in[0]];
    const int64_t length = k->shape == WB_ROWS ? t->inner : t->inner * t->outer,
                  rows = k->shape == WB_ROWS ? t->outer : 1;
    const bool is_columns = k->shape == WB_COLUMNS;
    if (step->fused)
        (step->fused == WB_MOMENTS ? sum_moments : sum_products)(
            t, step, is_columns, is_columns ? t->inner : length, is_columns ? t->outer : rows,
            sums);
    else if (is_columns)
        k->loops->reduce_columns[is_max][i->type](t->inner, t->outer, x, sums);
    else
        k->loops->reduce_rows[is_max][i->type](length, rows, x, sums);
}

#define FINISH(T, field)                                                                           \
    for (int64_t v = 0; v < n; v++) ((T *)to)[v] = (T)sums[v].field;                               \
    break

/* Accumulators to a register. */
void wb_sums_finish(uint8_t type, int64_t n, const wb_accumulator *sums, void *to) {
    switch ((wb_register)type) {
    case WB_R_F32:
        FINISH(float, f);
    case WB_R_F64:
        FINISH(double, f);
    case WB_R_I64:
        FINISH(int64_t, i);
    default:
        FINISH(int32_t, i);
    }
}

void wb_sums_finish_row(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    wb_sums_finish(step->instruction->type, t->row_values,
                   t->accumulators + k->reduction[step->number] * k->row_values,
                   t->value[step->number]);
}

wb_accumulator wb_sums_merge(const wb_instruction *i, wb_accumulator a, wb_accumulator b) {
    const bool is_float = i->type == WB_R_F32 || i->type == WB_R_F64;
    if (i->code != WB_CODE_max_reduce) {
        if (is_float)
            a.f += b.f;
        else
            a.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
    } else if (is_float)
        a.f = a.f < b.f || b.f != b.f ? b.f : a.f;
    else if (a.i < b.i)
        a.i = b.i;
    return a;
}

/* The whole tile, or its rows, which are whole ones then. */
void wb_sums_add_up(const wb_tile *t, const wb_step *step) {
    const wb_cpu_program *k = t->job->k;
    const wb_instruction *i = step->instruction;
    wb_accumulator *sums = t->sides + k->offset[step->number];
    const bool is_one = wb_side_count(k, i) == 1;
    const int64_t inner = is_one ? t->inner * t->outer : t->inner, outer = is_one ? 1 : t->outer;
    if (step->fused)
        sum_products(t, step, !is_one, inner, outer, sums);
    else
        (is_one ? k->loops->reduce_rows
                : k->loops->reduce_columns)[0][i->type](inner, outer, t->value[step->in[0]], sums);
}
