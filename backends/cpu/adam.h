/* Adam's step as one loop. */
#ifndef WB_CPU_ADAM_H
#define WB_CPU_ADAM_H

#include <weber/plugin.h>

#include "isa.h"

typedef struct wb_adam_numbers {
    float beta1, rest1, beta2, rest2, rate, correction, epsilon;
    float decay; /* 0: none */
} wb_adam_numbers;

/* m = beta1 m + rest1 g;  v = beta2 v + rest2 g^2;  p -= decay p + rate m / (sqrt(correction v) +
 *                         epsilon)
 *
 * for n elements; a new value may lie where an old one does, element on element. */
typedef void wb_adam_loop(int64_t n, const wb_adam_numbers *a, const float *g, const float *p,
                          const float *m, const float *v, float *new_p, float *new_m, float *new_v);

#define WB_ADAM_DECLARE(isa, suffix) extern wb_adam_loop wb_adam_##suffix;
WB_ISA_LIST(WB_ADAM_DECLARE)
#undef WB_ADAM_DECLARE

/* Adam's step: where its arrays are (accesses), and its late numbers. */
typedef struct wb_cpu_adam {
    wb_adam_loop *loop; /* NULL: the program is not Adam's step */
    int16_t guard, g, p, m, v, new_p, new_m, new_v;
    uint16_t g_value; /* g is what this instruction gives; WB_NO_VALUE: it is an array */
    wb_operand rate, correction, decay; /* decay: may be none */
    wb_adam_numbers numbers;            /* the others */
} wb_cpu_adam;

/* True for the callables that may be the loop. */
bool wb_cpu_is_adam(const char *name);
/* True if the whole program is one of them, in f32, but for how g is made. */
bool wb_cpu_find_adam(const wb_program *program, wb_cpu_adam *adam);

#endif
