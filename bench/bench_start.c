/* bench_start: from the start of the process to the first gradient of case a, printed; to be timed
 * as a whole process. */
#include <stdio.h>

#include "cases.h"

int main(void) {
    static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.2.weight",
                                        "layers.2.bias"};
    float w1[A_HIDDEN], w2[A_HIDDEN], x[A_BATCH], y[A_BATCH];
    bench_weight(SEQUENCE_WEIGHT + 1, A_HIDDEN, 1, w1);
    bench_weight(SEQUENCE_WEIGHT + 2, 1, A_HIDDEN, w2);
    bench_values(SEQUENCE_INPUT, -1.5f, 1.5f, A_BATCH, x);
    bench_target(A_BATCH, x, y);

    if (!bench_choose_device()) return wb_report("bench_start");
    wb_scope_open();
    wb_layer *model =
        wb_chain(wb_dense(1, A_HIDDEN, wb_tanh, .weight = wb_from(WB_F32, w1, A_HIDDEN, 1)),
                 wb_dense(A_HIDDEN, 1, .weight = wb_from(WB_F32, w2, 1, A_HIDDEN)));
    wb_array *p = wb_apply(model, wb_from(WB_F32, x, 1, A_BATCH));
    wb_array *loss = wb_mse(p, wb_from(WB_F32, y, 1, A_BATCH));
    wb_gradients *gradients = wb_gradient(loss, model);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += bench_sum_of_magnitudes(wb_gradients_get(gradients, paths[i]));
    printf("%.9g %.9g\n", wb_item(loss), sum);
    wb_free(model);
    wb_scope_close();
    return wb_report("bench_start");
}
