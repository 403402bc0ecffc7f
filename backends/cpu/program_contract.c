/* Fewer passes through the first cache: two steps as one, and numbers as operands. */
#include <string.h>

#include "program_steps.h"

/* Constants, and row values where the tile is one row. */
static bool is_number(const wb_cpu_program *k, uint16_t value) {
    if (value == WB_NO_VALUE) return false;
    const wb_instruction *i = &k->program.instructions[value];
    const bool is_one_row = k->shape == WB_WHOLE || (k->shape == WB_ROWS && k->outer == 1);
    return wb_is_constant(i) || (i->code == WB_CODE_spread && is_one_row);
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

void wb_contract_steps(wb_cpu_program *k) {
    for (int phase = 0; phase < k->program.phases; phase++) {
        contract(k, &k->full[phase]);
        use_numbers(k, &k->full[phase]);
    }
    for (int stage = 0; stage <= k->program.phases; stage++) use_numbers(k, &k->rows[stage]);
}
