/* bench_start: from the start of the process to the first gradient of case a, printed; to be timed
 * as a whole process. */
#include <stdio.h>

#include "cases.h"

int main(void) {
    static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.2.weight",
                                        "layers.2.bias"};
    float x[A_BATCH], y[A_BATCH];
    bench_values(SEQUENCE_INPUT, -1.5f, 1.5f, A_BATCH, x);
    bench_target(A_BATCH, x, y);

    if (!bench_choose_device()) return wb_report("bench_start");
    wb_scope_open();
    wb_layer *model = bench_curve_mlp(false);
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
