/* A training loop by hand: two interleaved half moons, a small network, a loader, Adam.
 *
 * | 300 points to learn, 100 to test, 10 batches
 * | 1000 steps, loss smaller than at first: ten times
 * | accuracy: 100% learnt, 100% tested
 */
#include <math.h>
#include <stdio.h>

#include <weber.h>

enum { POINTS = 400 };

/* x (2, POINTS), labels (POINTS): class 0 on the upper half moon, class 1 on the lower one,
 * shifted; along them in leaps, so that any part of the points covers both */
static void half_moons(float x[POINTS][2], int32_t labels[POINTS]) {
    for (int i = 0; i < POINTS; i++) {
        const int lower = labels[i] = i % 2;
        const double t = 3.14159265 * (i / 2 * 37 % 200) / 200, wobble = 0.05 * sin(40.0 * i);
        x[i][0] = (float)(lower ? 1 - cos(t) : cos(t) + wobble);
        x[i][1] = (float)(lower ? 0.5 - sin(t) + wobble : sin(t));
    }
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static double accuracy(wb_layer *model, wb_array *x, wb_array *labels) {
    wb_scope_open();
    const double share = wb_item(wb_accuracy(wb_apply(model, x), labels));
    wb_scope_close();
    return share;
}

int main(void) {
    static float points[POINTS][2];
    static int32_t classes[POINTS];
    half_moons(points, classes);
    wb_scope_open();
    wb_seed(1);
    wb_array *x = wb_from(WB_F32, points, 2, POINTS), *labels = wb_from(WB_I32, classes, POINTS);
    wb_array *x_parts[2], *label_parts[2]; /* views: nothing is copied */
    wb_splitobs(x, x_parts, 0.75);
    wb_splitobs(labels, label_parts, 0.75);

    wb_layer *model = wb_chain(wb_dense(2, 32, wb_tanh), wb_dense(32, 2));
    wb_loader *data = wb_loader_new(.x = x_parts[0], .y = label_parts[0], .batchsize = 32,
                                    .shuffle = true, .seed = 1);
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), model);
    printf("%lld points to learn, %lld to test, %lld batches\n", (long long)wb_numobs(x_parts[0]),
           (long long)wb_numobs(x_parts[1]), (long long)wb_loader_length(data));

    double first = 0, last = 0;
    for (int epoch = 1; epoch <= 100; epoch++) {
        if (epoch == 81) wb_adjust(adam, 0.001);
        wb_batch batch = {0};           /* {0} starts an epoch */
        while (wb_next(data, &batch)) { /* each turn is a scope, opened and closed here */
            wb_gradients *grads;
            wb_array *l = wb_withgradient(loss, model, &batch, NULL, &grads);
            wb_update(adam, model, grads);
            last = wb_item(l);
            if (wb_step_count(adam) == 1) first = last;
        }
    }
    printf("%lld steps, loss smaller than at first: %s\n", (long long)wb_step_count(adam),
           last < first / 10 ? "ten times" : "no");
    printf("accuracy: %.0f%% learnt, %.0f%% tested\n",
           100 * accuracy(model, x_parts[0], label_parts[0]),
           100 * accuracy(model, x_parts[1], label_parts[1]));

    wb_free(adam), wb_free(data), wb_free(model);
    wb_scope_close();
    /* an error anywhere above would have ended the loop, and is told here */
    return wb_report("04_training_loop");
}
