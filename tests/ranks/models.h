/* Models and numbers that ranks train on. */
#ifndef WB_TESTS_RANKS_MODELS_H
#define WB_TESTS_RANKS_MODELS_H

#include <weber.h>

static inline wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static inline wb_layer *dense(void) { return wb_chain(wb_dense(3, 16, wb_tanh), wb_dense(16, 2)); }
static inline wb_layer *with_norm(void) {
    return wb_chain(wb_dense(3, 8), wb_batchnorm(8, wb_relu), wb_dropout(0.3), wb_dense(8, 2));
}

static inline wb_array *numbers(int rows, int columns, double step) {
    wb_array *i = wb_iota_make(WB_F32, 1, 2, (int64_t[]){rows, columns});
    wb_array *j = wb_iota_make(WB_F32, 0, 2, (int64_t[]){rows, columns});
    return wb_sin(wb_add(wb_mul(i, wb_number(step)), j));
}

#endif
