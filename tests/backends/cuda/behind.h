/* What follows products in tests of epilogues. */
#ifndef WB_TESTS_CUDA_BEHIND_H
#define WB_TESTS_CUDA_BEHIND_H

#include <weber/ops.h>

typedef wb_array *expression(wb_array *product, wb_array *bias);

static wb_array *bias(wb_array *x, wb_array *b) { return wb_add(x, b); }
static wb_array *relu(wb_array *x, wb_array *b) {
    (void)b;
    return wb_relu(x);
}
static wb_array *relu_bias(wb_array *x, wb_array *b) { return wb_relu(wb_add(x, b)); }
static wb_array *gelu(wb_array *x, wb_array *b) {
    (void)b;
    return wb_gelu(x);
}
static wb_array *gelu_bias(wb_array *x, wb_array *b) { return wb_gelu(wb_add(x, b)); }
static wb_array *gelu_by_erf(wb_array *x, wb_array *b) { return wb_gelu_erf(wb_add(x, b)); }

#endif
