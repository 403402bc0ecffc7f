/* Fewer passes through the first cache: two steps in one loop, and numbers as operands. Each step
 * is rounded as it would be alone, but for the products of a sum, which has no order of its own. */
#include <string.h>

#include "program_steps.h"

/* Constants, and what is the same at all elements of a tile; tiles of programs that reduce nothing
 * may be of other shapes than k says (wb_cpu_program_run_box). */
static bool is_number(const wb_cpu_program *k, uint16_t value) {
    if (value == WB_NO_VALUE) return false;
    const wb_instruction *i = &k->program.instructions[value];
    const bool is_one_row =
        k->shape == WB_WHOLE || (k->shape == WB_ROWS && k->outer == 1) || wb_has_row_numbers(k);
    if (i->code != WB_CODE_load)
        return wb_is_constant(i) || (i->code == WB_CODE_spread && is_one_row);
    const int64_t *strides = k->program.accesses[i->index].strides;
    return !i->row && strides[0] == 0 && (strides[1] == 0 || (k->shape != WB_MAP && k->outer == 1));
}

/* ---- two steps in one ---- */

/* The loop that does a step and the instruction of which it is operand number `side`; NULL: there
 * is none. */
typedef wb_fused pair_fn(const wb_cpu_program *k, const wb_step *first, const wb_instruction *i,
                         int side);

/* Products are summed of whole registers. */
static bool may_be_summed(const wb_cpu_program *k, const wb_step *product) {
    return !is_number(k, product->in[0]) &&
           !is_number(k, product->in[product->instruction->code == WB_CODE_mul]);
}

static wb_fused pair_with_product(const wb_cpu_program *k, const wb_step *first,
                                  const wb_instruction *i, int side) {
    const int code = first->instruction->code;
    if (code != WB_CODE_mul && code != WB_CODE_square) return WB_NOT_FUSED;
    if (i->code == WB_CODE_add) return WB_PRODUCT_ADDED;
    if (i->code == WB_CODE_sub && side == 1) return WB_PRODUCT_SUBTRACTED;
    if ((i->code == WB_CODE_sum || i->code == WB_CODE_side_sum) && may_be_summed(k, first))
        return WB_PRODUCT_SUMMED;
    return i->code == WB_CODE_neg ? WB_PRODUCT_NEGATED : WB_NOT_FUSED;
}

static wb_fused pair_with_difference(const wb_cpu_program *k, const wb_step *first,
                                     const wb_instruction *i, int side) {
    const int code = first->instruction->code;
    (void)k, (void)side;
    if (code == WB_CODE_sub && i->code == WB_CODE_mul) return WB_DIFFERENCE_TIMES;
    return code == WB_CODE_excess && i->code == WB_CODE_exp ? WB_EXP_OF_EXCESS : WB_NOT_FUSED;
}

static void count_in(const wb_step_list *lists, int nlists, int *uses) {
    for (int l = 0; l < nlists; l++)
        for (int64_t s = 0; s < lists[l].count; s++)
            for (int in = 0; in < 3; in++)
                if (lists[l].steps[s].in[in] != WB_NO_VALUE) uses[lists[l].steps[s].in[in]]++;
}

/* Steps that read each value: of the list, or of all where values live through the phases, as row
 * values do. */
static void count_uses(const wb_cpu_program *k, const wb_step_list *list, bool are_rows,
                       int *uses) {
    const bool live_on = are_rows || k->steps_per_unit == 1;
    count_in(live_on ? k->full : list, live_on ? k->program.phases : 1, uses);
    if (are_rows) count_in(k->rows, k->program.phases + 1, uses);
}

/* Makes the step and the one before it that gives operand number `side` one, if they are a pair and
 * nothing else reads that operand; returns the place of that step, or -1. Both must treat denormals
 * in the same way (fade.h). */
static int64_t fuse(const wb_cpu_program *k, const wb_step_list *list, int64_t count,
                    const int *uses, wb_step *step, int side, pair_fn *pair) {
    const wb_instruction *i = step->instruction;
    if (step->fused || i->type > WB_R_F64 || i->in[side] == WB_NO_VALUE) return -1;
    const int64_t at =
        uses[i->in[side]] == 1 ? wb_step_that_makes(list->steps, count, i->in[side]) : -1;
    const wb_step *first = at < 0 ? NULL : &list->steps[at];
    if (!first || first->fused || first->instruction->is_step != i->is_step) return -1;
    step->fused = pair(k, first, i, side);
    if (!step->fused) return -1;
    step->in[0] = first->in[0];
    step->in[1] = first->in[first->in[1] != WB_NO_VALUE];
    step->in[2] = i->in[1 - side];
    return at;
}

/* Removes the first step of each pair; the other does both. */
static void pair_steps(wb_cpu_program *k, wb_step_list *list, bool are_rows, pair_fn *pair) {
    int uses[WB_MOST_STEPS] = {0};
    int64_t kept = 0;
    count_uses(k, list, are_rows, uses);
    for (int64_t s = 0; s < list->count; s++) {
        wb_step step = list->steps[s];
        for (int side = 0; side < 2; side++) {
            const int64_t at = fuse(k, list, kept, uses, &step, side, pair);
            if (at < 0) continue;
            memmove(&list->steps[at], &list->steps[at + 1], sizeof step * (size_t)(--kept - at));
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
        const bool is_product = step->fused < WB_DIFFERENCE_TIMES;
        if (is_product && is_number(k, step->in[0]) && !is_number(k, step->in[1])) {
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

void wb_pair_steps(wb_cpu_program *k) {
    for (int phase = 0; phase < k->program.phases; phase++) {
        pair_steps(k, &k->full[phase], false, pair_with_product);
        pair_steps(k, &k->full[phase], false, pair_with_difference);
        use_numbers(k, &k->full[phase]);
    }
    for (int stage = 0; stage <= k->program.phases; stage++) {
        pair_steps(k, &k->rows[stage], true, pair_with_product);
        use_numbers(k, &k->rows[stage]);
    }
}
