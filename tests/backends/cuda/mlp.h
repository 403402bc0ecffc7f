/* A step of training through one hidden layer, for tests of epilogues: gradients of sum((w2 f(w1 x
 * + b) - t)^2). */
#ifndef WB_TESTS_CUDA_MLP_H
#define WB_TESTS_CUDA_MLP_H

#include "evaluate/evaluate.h"

#include <weber.h>

typedef wb_array *mlp_activation(wb_array *x);

typedef struct mlp {
    const char *name;
    wb_dtype dtype;
    mlp_activation *f;
    int64_t width; /* of the hidden layer */
    bool is_batch; /* x has two matrices */
} mlp;

enum {
    MLP_INPUTS = 3,
    MLP_OUTPUTS = 2,
    MLP_SAMPLES = 5,
    MLP_BATCH = 2,
    MLP_WIDEST = 16,
    MLP_ARRAYS = 5,
    MLP_MOST = MLP_WIDEST * (MLP_INPUTS + MLP_OUTPUTS + 1)
};

static wb_array *mlp_numbers(const mlp *m, const wb_device *device, int64_t rows, int64_t columns,
                             bool is_batch) {
    wb_array *x = columns == 0 ? wb_uniform(WB_F32, rows)
                  : is_batch   ? wb_uniform(WB_F32, rows, columns, MLP_BATCH)
                               : wb_uniform(WB_F32, rows, columns);
    x = wb_to(device, wb_cast(wb_add_number(wb_mul_number(x, 2), -1), m->dtype),
              .eltype = WB_ELTYPE_PRESERVE);
    return wb_eval(x) == WB_OK ? x : NULL;
}

/* The gradients of w1, w2 and b: one plan. -1 with the library's error, or how many numbers. */
static int64_t mlp_train(const mlp *m, const wb_device *device, double results[MLP_MOST]) {
    int64_t size = 0;
    wb_scope_open();
    wb_seed(3);
    wb_array *w1 = mlp_numbers(m, device, m->width, MLP_INPUTS, false);
    wb_array *w2 = mlp_numbers(m, device, MLP_OUTPUTS, m->width, false);
    wb_array *b = mlp_numbers(m, device, m->width, 0, false);
    wb_array *x = mlp_numbers(m, device, MLP_INPUTS, MLP_SAMPLES, m->is_batch);
    wb_array *t = mlp_numbers(m, device, MLP_OUTPUTS, MLP_SAMPLES, m->is_batch);
    wb_scope_open(); /* so that nobody can read the products themselves afterwards */
    wb_array *const trained[] = {w1, w2, b};
    wb_array *left[3] = {NULL};
    wb_array *y = m->f(wb_add(wb_matmul(w1, x), b));
    wb_array *loss = wb_sum(wb_square(wb_sub(wb_matmul(w2, y), t)));
    const int count = 3;
    bool done = wb_gradient_of(loss, count, trained, left) == WB_OK;
    done = wb_scope_close_leaving(count, left) == WB_OK && done;
    done = done && wb_evaluate_roots(count, left) == WB_OK;
    for (int i = 0; i < count && done; i++) {
        done = wb_read_f64(wb_cast(wb_cpu(left[i]), WB_F64), results + size, wb_count(left[i])) ==
               WB_OK;
        size += wb_count(left[i]);
    }
    return wb_scope_close() == WB_OK && done ? size : -1;
}

#endif
