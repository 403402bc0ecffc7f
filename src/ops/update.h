/* One step of an optimiser rule as a macro operation: a map with several outputs, planned as one
 * pass in place.
 *
 * p parameter, g gradient, p' the new parameter; guard (bool, one element, may be NULL): where it
 * is false everything keeps its value. Rates are wb_late numbers, made once per step and shared by
 * all parameters. State is f32 for f16 and bf16 parameters. The results belong to the scope. */
#ifndef WB_OPS_UPDATE_H
#define WB_OPS_UPDATE_H

#include "array/array.h"

/* The rule that the node is a step of, which is its name as a callable too; NULL: it is none. */
const char *wb_step_name(const wb_array *node);

/* p' = p - eta g */
wb_status wb_step_descent(wb_array *p, wb_array *g, wb_array *eta, wb_array *guard,
                          wb_array **new_p);

/* v' = rho v + eta g,  p' = p - v' */
/* p', v' */
wb_status wb_step_momentum(wb_array *p, wb_array *g, wb_array *v, double rho, wb_array *eta,
                           wb_array *guard, wb_array *out[2]);

typedef struct wb_adam_step {
    wb_array *p, *g, *m, *v;
    double beta1, beta2, epsilon; /* constants */
    wb_array *rate;               /* late: eta / (1 - beta1^t) */
    wb_array *correction;         /* late: 1 / (1 - beta2^t) */
    wb_array *decay;              /* late: part of p that is taken off; NULL: none */
    wb_array *guard;
} wb_adam_step;
/* m' = beta1 m + (1 - beta1) g,  v' = beta2 v + (1 - beta2) g^2,
 * p' = p - rate m' / (sqrt(correction v') + epsilon) - decay p
 *     (Kingma and Ba 2015; Loshchilov and Hutter 2019) */
wb_status wb_step_adam(const wb_adam_step *step, wb_array *out[3]); /* p', m', v' */

#endif
