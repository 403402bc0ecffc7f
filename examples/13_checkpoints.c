/* Training that may be killed at any instant, and ends as if nothing had happened.
 *
 *     @save "model-$(now()).bson" model opt      .checkpoint = "run/": model, optimiser, place in
 *                                                the data, random numbers; numbered, whole files,
 *                                                of which the newest ones stay
 *     trainer.fit(ckpt_path = "last")            the same call again
 *
 * | without a break: 80 steps
 * | with one: stopped after step 33, in epoch 5
 * | the same call again, another model: goes on with step 34, ends after step 80
 * | the same bits: yes
 * | and once more: 0 steps, it was done
 * | a loop by hand, saved in the middle of epoch 2: the same bits: yes
 * */
#include <stdio.h>

#include <weber.h>

enum { POINTS = 256, EPOCHS = 10 };

typedef struct learner {
    wb_layer *model;
    wb_loader *data;
    wb_optimiser *adam;
    int64_t first, last, stop_at; /* steps */
} learner;

/* Dropout and a shuffled loader: both draw random numbers all the time. */
static learner begin(wb_array *x, wb_array *y, uint64_t seed) {
    wb_seed(seed);
    learner l = {.model =
                     wb_chain(wb_dense(1, 16, wb_tanh), wb_dropout(.p = 0.1), wb_dense(16, 1))};
    l.data = wb_loader_new(.x = x, .y = y, .batchsize = 32, .shuffle = true, .seed = seed);
    l.adam = wb_setup(wb_adam(.eta = 0.01), l.model);
    return l;
}

static void end(learner *l) { wb_free(l->adam), wb_free(l->data), wb_free(l->model); }

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

/* Returning false ends the training: a power cut, or a time limit, may be less polite. */
static bool note_step(const wb_train_event *event) {
    learner *l = event->user;
    l->last = wb_step_count(event->optimiser);
    if (!l->first) l->first = l->last;
    if (l->last == l->stop_at)
        printf("with one: stopped after step %lld, in epoch %lld\n", (long long)l->last,
               (long long)event->epoch);
    return l->last != l->stop_at;
}

static void train(learner *l, const char *checkpoint) {
    wb_train(loss, l->model, l->data, l->adam, .epochs = EPOCHS, .on_step = note_step, .user = l,
             .checkpoint = checkpoint, .every = 10, .keep = 2);
}

static const char *same_bits(wb_layer *a, wb_layer *b) {
    static const char *const paths[] = {"layers.1.weight", "layers.1.bias", "layers.3.weight"};
    bool same = true;
    for (int i = 0; i < 3; i++)
        same = same && wb_approx(wb_get(a, paths[i]), wb_get(b, paths[i]), 0, 0, NULL, 0);
    return same ? "yes" : "no";
}

/* What wb_train does, by hand: `steps` of them, from wherever the loader is. */
static void loop(learner *l, int64_t steps) {
    for (int64_t epoch = wb_loader_epoch(l->data); epoch < EPOCHS; epoch++) {
        wb_batch batch = {0};
        while (wb_next(l->data, &batch)) {
            wb_gradients *grads;
            wb_withgradient(loss, l->model, &batch, NULL, &grads);
            wb_update(l->adam, l->model, grads);
            if (wb_step_count(l->adam) < steps) continue;
            wb_save_named("13.bson", {"model", l->model}, {"adam", l->adam}, {"data", l->data},
                          {"random", wb_random_state()});
            wb_batch_end(&batch);
            return;
        }
    }
}

int main(void) {
    wb_scope_open();
    wb_seed(1);
    wb_array *x = wb_sub(wb_mul_number(wb_uniform(WB_F32, 1, POINTS), 2), wb_number(1));
    wb_array *y = wb_mul(x, wb_square(x));

    learner whole = begin(x, y, 1);
    train(&whole, NULL);
    printf("without a break: %lld steps\n", (long long)whole.last);

    learner broken = begin(x, y, 1);
    broken.stop_at = 33;
    train(&broken, "13_run/");
    end(&broken);

    learner resumed = begin(x, y, 99); /* other weights, another order: all comes from the file */
    train(&resumed, "13_run/");
    printf("the same call again, another model: goes on with step %lld, ends after step %lld\n",
           (long long)resumed.first, (long long)resumed.last);
    printf("the same bits: %s\n", same_bits(whole.model, resumed.model));
    resumed.first = resumed.last = 0;
    train(&resumed, "13_run/");
    printf("and once more: %lld steps, it was done\n", (long long)resumed.last);
    end(&resumed);

    learner first = begin(x, y, 1);
    loop(&first, 12);
    learner second = begin(x, y, 99);
    wb_load_named("13.bson", {"model", second.model}, {"adam", second.adam}, {"data", second.data},
                  {"random", wb_random_state()});
    loop(&second, INT64_MAX);
    printf("a loop by hand, saved in the middle of epoch 2: the same bits: %s\n",
           same_bits(whole.model, second.model));
    end(&first), end(&second), end(&whole);

    remove("13.bson"); /* so that the next run of this example starts anew */
    remove("13_run/checkpoint-000000000070.npz"), remove("13_run/checkpoint-000000000080.npz");
    remove("13_run");
    wb_scope_close();
    return wb_report("13_checkpoints");
}
