/* Transfer: a network that was trained and saved learns another task with a new head, from few
 * examples. The body comes from the file, the head is new, and the body learns more slowly.
 *
 * | the first task, 12 classes: 90% or more
 * | 60 examples of another task, 3 classes
 * | from the file: 4 of 6 arrays
 * | with the body of the first task: 85% or more
 * | that is better than from the start: yes
 * | with the body frozen, that stays as it was: yes
 */
#include <stdio.h>
#include <string.h>

#include <weber.h>

enum { SIDE = 12, PIXELS = SIDE * SIDE, MANY = 1200, FEW = 60, TEST = 600 };

/* A square of 4 x 4, a plus or a cross of 5 x 5, in noise; its shape and which quarter it is in. */
static void draw(float *picture, int shape, int quarter) {
    float noise[PIXELS];
    wb_read_f32(wb_mul_number(wb_normal(WB_F32, PIXELS), 0.5), noise, PIXELS);
    memcpy(picture, noise, sizeof noise);
    const int row = quarter / 2 * 6, column = quarter % 2 * 6;
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 5; x++) {
            const bool lit[] = {y < 4 && x < 4, y == 2 || x == 2, y == x || y == 4 - x};
            if (lit[shape]) picture[(row + y) * SIDE + column + x] += 1;
        }
}

/* The first task is shape and quarter, 12 classes; the second one the shape alone. */
static wb_loader *task(int count, bool is_second, bool shuffle) {
    static float pictures[MANY][PIXELS];
    static int32_t labels[MANY];
    for (int i = 0; i < count; i++) {
        const int shape = i % 3, quarter = i / 3 % 4;
        wb_scope_open();
        draw(pictures[i], shape, quarter);
        wb_scope_close();
        labels[i] = is_second ? shape : 4 * shape + quarter;
    }
    return wb_loader_new(.x = wb_from(WB_F32, pictures, PIXELS, count),
                         .y = wb_from(WB_I32, labels, count), .batchsize = 30, .shuffle = shuffle,
                         .seed = 1);
}

static wb_layer *network(int64_t classes) {
    return wb_chain_named(
        {"body", wb_chain(wb_dense(PIXELS, 64, wb_relu), wb_dense(64, 32, wb_relu))},
        {"head", wb_dense(32, classes)});
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* Which arrays come from the file. */
static bool is_of_body(void *user, const char *path) {
    const bool is = strstr(path, "body") != NULL;
    *(int *)user += is;
    return is;
}

typedef enum kind { FRESH, SLOW_BODY, FROZEN_BODY } kind;

/* The accuracy of the second task; *stayed: whether the body is as it was. */
static double learn(kind k, wb_loader *few, wb_loader *test, bool *stayed) {
    int taken = 0;
    wb_layer *model = network(3);
    if (k != FRESH)
        wb_load("transfer.bson", model, .partial = true, .filter = is_of_body, .user = &taken);
    if (k == SLOW_BODY) printf("from the file: %d of 6 arrays\n", taken);
    wb_optimiser *adam = k == SLOW_BODY ? wb_setup(wb_adam(.eta = 5e-3), model,
                                                   .paths = {{"layers.body", wb_adam(.eta = 3e-4)}})
                                        : wb_setup(wb_adam(.eta = 5e-3), model);
    if (k == FROZEN_BODY) wb_freeze(adam, "layers.body");
    wb_array *before = wb_get(model, "layers.body.layers.1.weight");
    wb_train(loss, model, few, adam, .epochs = 40);
    *stayed = wb_get(model, "layers.body.layers.1.weight") == before;
    const double accuracy = wb_evaluate(model, test).accuracy;
    wb_free(adam), wb_free(model);
    return accuracy;
}

int main(void) {
    bool stayed;
    wb_scope_open();
    wb_seed(1);
    wb_loader *many = task(MANY, false, true), *few = task(FEW, true, true);
    wb_loader *test = task(TEST, true, false);
    wb_layer *first = network(12);
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 2e-3), first);
    wb_train(loss, first, many, adam, .epochs = 30);
    printf("the first task, 12 classes: %s\n",
           wb_evaluate(first, many).accuracy >= 0.9 ? "90% or more" : "less");
    wb_save("transfer.bson", first);

    printf("%d examples of another task, 3 classes\n", FEW);
    const double slow = learn(SLOW_BODY, few, test, &stayed);
    printf("with the body of the first task: %s\n", slow >= 0.85 ? "85% or more" : "less");
    const double fresh = learn(FRESH, few, test, &stayed);
    printf("that is better than from the start: %s\n", slow > fresh + 0.05 ? "yes" : "no");
    const double frozen = learn(FROZEN_BODY, few, test, &stayed);
    printf("with the body frozen, that stays as it was: %s\n",
           stayed && frozen > fresh ? "yes" : "no");

    wb_free(adam), wb_free(first), wb_free(many), wb_free(few), wb_free(test);
    wb_scope_close();
    return wb_report("22_transfer");
}
