/* How a program is made ready: program_new.c lists its steps, program_pairs.c and
 * program_moments.c make fewer of them, program_place.c says where their values are. */
#ifndef WB_CPU_PROGRAM_STEPS_H
#define WB_CPU_PROGRAM_STEPS_H

#include "program.h"

enum { WB_ALIGNMENT = 64 /* of registers */ };

/* Its place among this many steps, or -1. */
static inline int64_t wb_step_that_makes(const wb_step *steps, int64_t count, uint16_t value) {
    for (int64_t s = 0; s < count; s++)
        if (steps[s].number == value) return s;
    return -1;
}

/* Chooses loops that do two steps at once, and loops that read one number as an operand. */
void wb_pair_steps(wb_cpu_program *k);

/* Makes the sums of x - m and of (x - m)^2 one step each, with the difference. */
void wb_pair_moments(wb_cpu_program *k);

/* Gives each value its register, or its place in memory, and notes what tiles prefetch. */
void wb_place_values(wb_cpu_program *k);

#endif
