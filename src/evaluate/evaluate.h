/* Evaluation: from nodes to numbers. src/evaluate/README.md lists the stages. */
#ifndef WB_EVALUATE_EVALUATE_H
#define WB_EVALUATE_EVALUATE_H

#include "array/array.h"

/* Computes the roots in one plan, found by key or made; NULL entries and evaluated arrays are
 * skipped. */
wb_status wb_evaluate_roots(int count, wb_array *const *roots);

#endif
