/* Mixed precision: the same network learns in f32, in bf16 and in f16. Parameters, their averages
 * in Adam and statistics stay f32; what the loss function sees of them are halves. With f16 the
 * loss is scaled, so that small gradients do not vanish; a step in which one overflows is skipped.
 *
 * | f32:  learnt
 * | bf16: as accurate as f32; parameters are f32
 * | f16:  as accurate as f32; parameters are f32
 * | the scale of the loss has doubled: yes
 * | a step with a gradient of infinity: skipped, the scale is halved
 */
#include <math.h>
#include <stdio.h>

#include <weber.h>

enum { SIDE = 8, N = 256, EPOCHS = 12, INTERVAL = 50 };

typedef struct result {
    double accuracy;
    wb_dtype parameters;
} result;

static wb_layer *network(void) {
    return wb_chain(wb_conv({3, 3}, 1, 8, .pad = {1, 1}), wb_batchnorm(8, wb_relu),
                    wb_maxpool({2, 2}), wb_flatten(), wb_dense(SIDE / 2 * SIDE / 2 * 8, 2));
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array *l = wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
    return user ? wb_mul_number(l, *(double *)user) : l;
}

/* Class 0 grows along the first dimension, class 1 along the second, under noise. */
static wb_loader *slopes(void) {
    static int32_t labels[N];
    for (int i = 0; i < N; i++) labels[i] = i % 2;
    wb_array *y = wb_from(WB_I32, labels, N);
    wb_array *is_one = wb_eq(wb_reshape(y, 1, 1, 1, N), wb_number(1));
    wb_array *x = wb_select(is_one, wb_iota(WB_F32, 1, SIDE, SIDE), wb_iota(WB_F32, 0, SIDE, SIDE));
    x = wb_add(wb_mul_number(x, 0.125), wb_mul_number(wb_normal(WB_F32, SIDE, SIDE, 1, N), 0.25));
    return wb_loader_new(.x = x, .y = y, .batchsize = 32, .shuffle = true, .seed = 1);
}

/* A step whose loss is finite, and its gradient not. */
static void overflow(wb_layer *model, wb_loader *data, wb_optimiser *o) {
    double factor = 1e38;
    wb_batch batch;
    wb_scope_open();
    const double before = wb_item(wb_loss_scale(o));
    if (wb_first(data, &batch)) wb_train_step(loss, model, &batch, &factor, o);
    const double after = wb_item(wb_loss_scale(o));
    printf("a step with a gradient of infinity: %s, the scale is %s\n",
           wb_skipped(o) > 0 ? "skipped" : "taken", after == before / 2 ? "halved" : "as it was");
    wb_scope_close();
}

static result train(wb_loader *data, wb_dtype compute) {
    const double first = 1024;
    wb_seed(3);
    wb_layer *model = network();
    wb_optimiser *o = compute == WB_F16
                          ? wb_setup(wb_adam(.eta = 0.01), model, .compute = WB_F16,
                                     .loss_scale = first, .loss_scale_interval = INTERVAL)
                          : wb_setup(wb_adam(.eta = 0.01), model, .compute = compute);
    wb_train(loss, model, data, o, .epochs = EPOCHS);
    const result r = {.accuracy = wb_evaluate(model, data).accuracy,
                      .parameters = wb_dtype_of(wb_get(model, "layers.1.weight"))};
    if (compute == WB_F16) {
        printf("f16:  %s f32; parameters are %s\n",
               r.accuracy > 0.9 ? "as accurate as" : "less accurate than",
               wb_dtype_name(r.parameters));
        printf("the scale of the loss has doubled: %s\n",
               wb_item(wb_loss_scale(o)) > first ? "yes" : "no");
        overflow(model, data, o);
    }
    wb_free(o), wb_free(model);
    return r;
}

int main(void) {
    wb_scope_open();
    wb_seed(2);
    wb_loader *data = slopes();
    const result f32 = train(data, WB_F32);
    printf("f32:  %s\n", f32.accuracy > 0.95 ? "learnt" : "not learnt");
    const result bf16 = train(data, WB_BF16);
    printf("bf16: %s f32; parameters are %s\n",
           fabs(bf16.accuracy - f32.accuracy) < 0.04 ? "as accurate as" : "less accurate than",
           wb_dtype_name(bf16.parameters));
    train(data, WB_F16);
    wb_free(data);
    wb_scope_close();
    return wb_report("23_mixed_precision");
}
