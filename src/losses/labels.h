/* Integer labels: recognising and checking them. */
#ifndef WB_LOSSES_LABELS_H
#define WB_LOSSES_LABELS_H

#include "array/array.h"

bool wb_is_integer(const wb_array *y);

/* True if y has integers, and the sizes of p without dimension dim. */
bool wb_are_labels(const wb_array *p, const wb_array *y, int dim);

/* True if all readable labels are 0 .. classes - 1, or `ignore` (INT64_MIN: none); else the error
 * names the first one that is not. */
bool wb_check_labels(const char *name, const wb_array *y, int64_t classes, int64_t ignore);

/* Zeros of the sizes of labels that cannot be read yet. When the zeros are computed, a label
 * outside 0 .. classes - 1 is an error of the loss `name`, as a bad index of a gather. */
wb_array *wb_labels_guard(const char *name, wb_array *labels, int64_t classes);

/* (1, ...) bool: which columns of scores p (K, ...) are an answer: those without a NaN. */
wb_array *wb_is_answer(wb_array *p);

/* True if p is floating and not empty, and y there; else the error. */
bool wb_check_prediction(const char *name, const wb_array *p, const wb_array *y);

#endif
