/* A recurrent network of Dense layers, by wb_scan: its output is to be the input of two steps
 * before.
 *
 * | step 0: loss 0.8
 * | step 200: loss 0.0
 * | step 400: loss 0.0
 * | plans made after step 10: 0
 */
#include <stdio.h>

#include <weber.h>

enum { CELLS = 24, BATCH = 16, STEPS = 400 };

typedef struct network {
    wb_layer *in, *hidden, *out;
} network;

/* One step: what wb_scan calls once. */
static void step(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    const network *n = context;
    carries[0] = wb_tanh(wb_add(wb_apply(n->in, inputs[0]), wb_apply(n->hidden, carries[0])));
    outputs[0] = wb_apply(n->out, carries[0]);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)model;
    wb_array *state = wb_zeros(WB_F32, CELLS, BATCH), *y, *x = batch->x;
    if (wb_scan(step, user, 1, &state, 1, &x, 1, &y) != WB_OK) return NULL;
    return wb_mean(wb_square(wb_sub(y, batch->y)));
}

int main(void) {
    wb_seed(1);
    network n = {wb_dense(1, CELLS), wb_dense(CELLS, CELLS), wb_dense(CELLS, 1)};
    wb_layer *model = wb_chain(n.in, n.hidden, n.out); /* so that one object has them all */
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), model);
    int64_t plans = 0;
    for (int i = 0; i <= STEPS && !wb_failed(); i++) {
        wb_scope_open();
        const int64_t length = 20 + i % 5; /* the body is planned once */
        wb_array *x = wb_normal(WB_F32, 1, BATCH, length);
        wb_array *before =
            wb_concat(2, wb_zeros(WB_F32, 1, BATCH, 2), wb_slice(x, 2, 0, length - 2, 1));
        wb_batch batch = {.x = x, .y = before};
        wb_array *l = wb_train_step(loss, model, &batch, &n, adam);
        if (i % 200 == 0) printf("step %d: loss %.1f\n", i, wb_item(l));
        wb_scope_close();
        if (i == 10) plans = wb_plan_status().misses;
    }
    printf("plans made after step 10: %lld\n", (long long)(wb_plan_status().misses - plans));
    wb_free(adam);
    wb_free(model);
    return wb_report("15_sequences");
}
