/* What a step of training asks of the driver once it is under way, over the fake driver: one launch
 * of a graph, and few copies and waits. The training is that of examples/demo.c in small: bytes
 * that a map makes numbers of, convolutions, dropout, a rate that changes with each step,
 * validation, the best model kept. */
#include "gpu.h"

#include "support/support.h"

static fake_calls_fn *fake_calls_of;

/* ---- the training ---- */

/* COUNTED: from an epoch's first step to its last. */
enum { SIDE = 8, IMAGES = 330, BATCH = 10, CLASSES = 10, EPOCHS = 8 };
enum { STEPS = IMAGES / BATCH, COUNTED = STEPS - 1 };

static uint8_t pixels[IMAGES][SIDE * SIDE];
static int32_t answers[IMAGES];

static void make_images(void) {
    for (int i = 0; i < IMAGES; i++) {
        answers[i] = i % CLASSES;
        for (int k = 0; k < SIDE * SIDE; k++)
            pixels[i][k] = (uint8_t)((i * 7 + k * (answers[i] + 1)) % 256);
    }
}

static wb_layer *small_network(void) {
    return wb_chain(wb_conv({3, 3}, 1, 4, wb_relu, .pad = {1, 1}), wb_maxpool({2, 2}),
                    wb_conv({3, 3}, 4, 8, wb_relu, .pad = {1, 1}), wb_maxpool({2, 2}), wb_flatten(),
                    wb_dense(2 * 2 * 8, 16, wb_relu), wb_dropout(.p = 0.3), wb_dense(16, CLASSES));
}

static void to_numbers(wb_batch *batch, void *user) {
    (void)user;
    batch->x = wb_mul_number(wb_cast(batch->x, WB_F32), 1.0 / 255);
}

static wb_loader *make_loader(const wb_device *gpu, int batch, bool trains) {
    return wb_loader_new(.x = wb_from(WB_U8, pixels, SIDE, SIDE, 1, IMAGES),
                         .y = wb_from(WB_I32, answers, IMAGES), .map = to_numbers, .device = gpu,
                         .shuffle = trains, .batchsize = batch);
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* ---- counting ---- */

/* Calls of a function, how often each step makes them. */
static const struct row {
    const char *function;
    int a_step;
} rows[] = {
    {"cuGraphLaunch", 1},
    {"cuLaunchKernel", 0},
    {"cuMemcpyHtoDAsync_v2", 3}, /* images, labels, late values */
    {"cuMemcpyDtoHAsync_v2", 2}, /* the loss; whether a label was none */
    {"cuMemcpyDtoDAsync_v2", 0},
    {"cuMemsetD8Async", 0},
    {"cuStreamSynchronize", 2}, /* for the loss; for the next batch, by the loader's thread */
    {"cuEventSynchronize", 0},
    {"cuStreamWaitEvent", 1}, /* a batch is copied after the last reader of the memory */
    {"cuEventRecord", 1},
    {"cuEventCreate", 0},
    {"cuEventDestroy_v2", 0},
    {"cuStreamBeginCapture_v2", 0},
    {"cuGraphInstantiateWithFlags", 0},
    {"cuGraphExecDestroy", 0},
    {"cuMemAlloc_v2", 0},
    {"cuMemFree_v2", 0},
    {"cuMemHostAlloc", 0},
    {"cuModuleLoadData", 0},
    {"nvrtcCompileProgram", 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

static long before[ROWS], counted[ROWS];

/* Of the last epoch, when all plans have their graphs. */
static bool count(const wb_train_event *event) {
    for (int i = 0; i < ROWS && event->epoch == EPOCHS; i++) {
        const long now = fake_calls_of(rows[i].function);
        if (event->step == 1) before[i] = now;
        if (event->step == STEPS) counted[i] = now - before[i];
    }
    return true;
}

/* The loader's thread may be some batches ahead, or behind; the ring has an event now and then. */
static bool is_right(int i) {
    const long wanted = (long)rows[i].a_step * COUNTED;
    print_message("%6.2f a step: %s\n", (double)counted[i] / COUNTED, rows[i].function);
    const bool is_near = labs(counted[i] - wanted) <= (rows[i].a_step ? 8 : 0);
    if (!is_near)
        print_error("%s: %ld calls in %d steps, not %ld\n", rows[i].function, counted[i], COUNTED,
                    wanted);
    return is_near;
}

static int train(void) {
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    if (!gpu) return 1;
    make_images();
    wb_seed(1);
    wb_scope_open();
    wb_layer *model = small_network();
    wb_move(gpu, model);
    wb_loader *data = make_loader(gpu, BATCH, true), *others = make_loader(gpu, 100, false);
    wb_optimiser *adam = wb_setup(wb_adam(), model);
    wb_schedule *rate = wb_schedule_cosine(2e-3, 1e-5, STEPS * EPOCHS + 1);
    (void)wb_train(loss, model, data, adam, .epochs = EPOCHS, .validation = others,
                   .schedules = {{"eta", rate, NULL}}, .keep_best = true, .on_step = count);
    wb_free(rate), wb_free(adam), wb_free(data), wb_free(others), wb_free(model);
    (void)wb_scope_close();
    int faults = wb_report("steps");
    for (int i = 0; i < ROWS; i++) faults += !is_right(i);
    return faults;
}

static void a_step_is_one_graph_and_few_calls(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, train), 0);
}

int main(void) {
    use_fake_driver();
    *(void **)&fake_calls_of = find_fake("fake_calls_of");
    (void)unsetenv("WEBER_DEVICE");
    (void)unsetenv("WEBER_EAGER"), (void)unsetenv("WEBER_FUSE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_is_one_graph_and_few_calls)};
    return cmocka_run_group_tests_name("backends/cuda/test_steps", tests, NULL, NULL);
}
