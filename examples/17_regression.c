/* A regression with what a training usually has: a validation set, a schedule with warm-up, decay
 * of weights but not of biases, clipping, gradients of two batches taken together, early stopping,
 * and the best model at the end.
 *
 * | 480 points to learn, 120 to test, 15 batches
 * | it ended before epoch 200: yes
 * | the model is that of the best epoch: yes
 * | R2 on what was held out: 0.9 or more
 * | the rate rose to 0.02 and fell: yes
 */
#include <math.h>
#include <stdio.h>

#include <weber.h>

enum { POINTS = 600, EPOCHS = 200, BATCH = 32 };

typedef struct history {
    double best, rate;
    int64_t epochs, best_epoch;
} history;

/* x (2, POINTS) over a square in an order that leaps, y (1, POINTS): a wave with noise of its own
 * making */
static void waves(float x[POINTS][2], float y[POINTS]) {
    for (int i = 0; i < POINTS; i++) {
        const double a = i * 173 % POINTS / (double)POINTS, b = i * 89 % POINTS / (double)POINTS;
        x[i][0] = (float)(2 * a - 1);
        x[i][1] = (float)(2 * b - 1);
        y[i] = (float)(sin(3 * x[i][0]) * cos(2 * x[i][1]) + 0.1 * sin(1000.0 * i));
    }
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_huber_loss(wb_apply(model, batch->x), batch->y);
}

static bool note(const wb_train_event *event) {
    history *h = event->user;
    h->epochs = event->epoch, h->best_epoch = event->best_epoch;
    if (event->epoch == event->best_epoch) h->best = event->validation->loss;
    return true;
}

static wb_loader *part_of(wb_array *x, wb_array *y, bool shuffle) {
    return wb_loader_new(.x = x, .y = y, .batchsize = BATCH, .shuffle = shuffle, .seed = 1);
}

int main(void) {
    static float points[POINTS][2], values[POINTS];
    waves(points, values);
    wb_scope_open();
    wb_seed(1);
    wb_array *x[2], *y[2];
    wb_splitobs(wb_from(WB_F32, points, 2, POINTS), x, 0.8);
    wb_splitobs(wb_from(WB_F32, values, 1, POINTS), y, 0.8);
    wb_loader *data = part_of(x[0], y[0], true), *held_out = part_of(x[1], y[1], false);
    printf("%lld points to learn, %lld to test, %lld batches\n", (long long)wb_numobs(x[0]),
           (long long)wb_numobs(x[1]), (long long)wb_loader_length(data));

    wb_layer *model =
        wb_chain(wb_dense(2, 32, wb_tanh), wb_dense(32, 32, wb_tanh), wb_dense(32, 1));
    /* each second step, with the mean of two gradients, of a length of at most 1 */
    const wb_rule decaying = wb_rule_chain(wb_accum_grad(.n = 2), wb_clip_norm(.omega = 1),
                                           wb_adamw(.lambda = 1e-3)),
                  plain = wb_rule_chain(wb_accum_grad(.n = 2), wb_clip_norm(.omega = 1), wb_adam());
    wb_optimiser *optimiser = wb_setup(decaying, model, .paths = {{"*.bias", plain}});
    wb_schedule *rate = wb_schedule_sequence({wb_schedule_warm_up(1e-3, 0.02, 60), 60},
                                             {wb_schedule_cosine(0.02, 1e-4, 2940), 2940});
    history h = {.best = 0};
    wb_train(loss, model, data, optimiser, .epochs = EPOCHS, .validation = held_out,
             .schedules = {{"eta", rate, NULL}},
             .early_stopping = {.patience = 10, .min_delta = 1e-4}, .keep_best = true,
             .on_epoch = note, .user = &h);

    const wb_evaluation e = wb_evaluate(model, held_out, .loss = loss);
    const double last = wb_schedule_at(rate, h.epochs * wb_loader_length(data));
    printf("it ended before epoch %d: %s\n", EPOCHS, h.epochs < EPOCHS ? "yes" : "no");
    printf("the model is that of the best epoch: %s\n",
           h.best_epoch > 0 && fabs(e.loss - h.best) <= 1e-6 ? "yes" : "no");
    printf("R2 on what was held out: %s\n", e.r2 >= 0.9 ? "0.9 or more" : "less");
    printf("the rate rose to 0.02 and fell: %s\n",
           wb_schedule_at(rate, 61) > 0.0199 && last < 0.02 ? "yes" : "no");

    wb_free(rate), wb_free(optimiser), wb_free(data), wb_free(held_out), wb_free(model);
    wb_scope_close();
    return wb_report("17_regression");
}
