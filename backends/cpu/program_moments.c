/* The moments of a row in one pass: the sum of x - m and that of its squares, which norms want
 * together, read x and the row value m once, and no difference is stored. */
#include <string.h>

#include "program_steps.h"

/* Operands of the phase's steps that are the value; where values live through the phases, of
 * all. */
static int uses_of(const wb_cpu_program *k, const wb_step_list *list, uint16_t value) {
    const bool keeps = k->steps_per_unit == 1;
    const wb_step_list *lists = keeps ? k->full : list;
    int uses = 0;
    for (int l = 0; l < (keeps ? k->program.phases : 1); l++)
        for (int64_t s = 0; s < lists[l].count; s++)
            for (int in = 0; in < 3; in++) uses += lists[l].steps[s].in[in] == value;
    return uses;
}

static void remove_step(wb_step_list *list, int64_t at) {
    memmove(&list->steps[at], &list->steps[at + 1],
            sizeof *list->steps * (size_t)(--list->count - at));
    if (at < list->fixed) list->fixed--;
}

/* A step of the list that sums the value alone, or -1. */
static int64_t sum_of(const wb_step_list *list, uint16_t value) {
    for (int64_t s = 0; s < list->count; s++) {
        const wb_step *step = &list->steps[s];
        if (step->instruction->code == WB_CODE_sum && !step->fused && step->in[0] == value)
            return s;
    }
    return -1;
}

/* True for a step that only computes x - m, of a whole x and a row value. */
static bool is_difference(const wb_cpu_program *k, const wb_step *step) {
    const wb_instruction *i = step->instruction;
    if (i->code != WB_CODE_sub || step->fused || i->type > WB_R_F64) return false;
    return k->program.instructions[step->in[1]].code == WB_CODE_spread &&
           k->program.instructions[step->in[0]].code != WB_CODE_spread &&
           !wb_is_constant(&k->program.instructions[step->in[0]]);
}

/* Makes the sum of squares at `at` one with the sum and the difference that belong to it, if there
 * are such; true if it did. */
static bool pair(const wb_cpu_program *k, wb_step_list *list, int64_t at) {
    wb_step *squares = &list->steps[at];
    const uint16_t c = squares->in[0];
    if (squares->instruction->code != WB_CODE_sum || squares->fused != WB_PRODUCT_SUMMED ||
        squares->in[1] != c || uses_of(k, list, c) != 3)
        return false;
    const int64_t sum = sum_of(list, c), difference = wb_step_that_makes(list->steps, at, c);
    if (sum < 0 || difference < 0 || !is_difference(k, &list->steps[difference])) return false;
    const uint16_t x = list->steps[difference].in[0], spread = list->steps[difference].in[1];
    squares->fused = WB_MOMENTS;
    squares->twin = list->steps[sum].number;
    squares->in[0] = x, squares->in[1] = k->program.instructions[spread].in[0];
    remove_step(list, sum > difference ? sum : difference);
    remove_step(list, sum > difference ? difference : sum);
    const int64_t spreads = wb_step_that_makes(list->steps, list->count, spread);
    if (spreads >= 0 && uses_of(k, list, spread) == 0) remove_step(list, spreads);
    return true;
}

void wb_pair_moments(wb_cpu_program *k) {
    for (int phase = 0; phase < k->program.phases; phase++)
        for (int64_t s = 0; s < k->full[phase].count; s++)
            if (pair(k, &k->full[phase], s)) s = -1;
}
