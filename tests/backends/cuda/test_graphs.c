/* Plans that come again are replayed as graphs: on the fake driver, and on a
 * card where WEBER_DEVICE names one. A thousand training steps give the same
 * bits with and without, though learning rate, Adam's step and the numbers of
 * dropout are other ones each time. */
#include "gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <weber.h>

#include "device/buffer.h"
#include "device/device.h"
#include "support/support.h"

enum { STEPS = 1000, POINTS = 96, BATCH = 32 };

typedef struct course {
    double losses[STEPS];
    double weights; /* a sum that tells apart any two sets of them, near enough */
    int told;       /* bad indices */
    long graph_launches;
    int failed;
} course;

/* Written by the children, in this order. */
static course *with_graphs, *without, *current;

/* ---- training ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static wb_loader *make_loader(void) {
    static float points[POINTS][2];
    static int32_t classes[POINTS];
    for (int i = 0; i < POINTS; i++) {
        classes[i] = i % 3;
        points[i][0] = (float)(i * 37 % POINTS) / POINTS;
        points[i][1] = (float)(i % 3) - points[i][0];
    }
    wb_array *x = wb_from(WB_F32, points, 2, POINTS), *labels = wb_from(WB_I32, classes, POINTS);
    return wb_loader_new(.x = x, .y = labels, .batchsize = BATCH, .shuffle = true, .seed = 1);
}

static double weight_sum(wb_layer *model) {
    wb_array *x = wb_iota(WB_F32, 1, 2, 32);
    return wb_item(wb_sum(wb_exp(wb_mul_number(wb_apply(model, x), 1e-2))));
}

static void train(course *c) {
    wb_seed(1);
    wb_layer *model = wb_chain(wb_dense(2, 16, wb_tanh), wb_dropout(.p = 0.25), wb_dense(16, 3));
    wb_move(wb_default_device(), model);
    wb_loader *data = make_loader();
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), model);
    for (int step = 0; step < STEPS && !wb_failed();) {
        wb_batch batch = {0};
        while (step < STEPS && wb_next(data, &batch)) {
            wb_gradients *grads;
            wb_adjust(adam, 0.01 / (1 + 0.01 * step));
            wb_array *l = wb_withgradient(loss, model, &batch, NULL, &grads);
            wb_update(adam, model, grads);
            c->losses[step++] = wb_item(l);
        }
    }
    c->weights = weight_sum(model);
    wb_free(adam), wb_free(data), wb_free(model);
}

enum { BAD_RUNS = 8 };

/* The same plan over the same memory, so that it becomes a graph, with an index
 * that is not there. */
static void look_up_badly(course *c) {
    static const float numbers[4] = {1, 2, 3, 4};
    static const int32_t places[3] = {0, 9, 1};
    wb_array *x = wb_keep(wb_from(WB_F32, numbers, 2, 2)),
             *at = wb_keep(wb_from(WB_I32, places, 3));
    for (int i = 0; i < BAD_RUNS; i++) {
        char message[256];
        wb_scope_open();
        (void)wb_item(wb_sum(wb_matmul(x, wb_gather(x, at, 1))));
        const bool is_bad = wb_take_error(message, sizeof message) == WB_ERROR_ARGUMENT;
        c->told += is_bad && strstr(message, "index 9 at place 1 is not in 0 .. 1");
        (void)wb_scope_close();
    }
    wb_free(x), wb_free(at);
}

static int run_course(void) {
    const bool is_fake = !getenv("WEBER_DEVICE");
    if (is_fake) {
        use_fake_driver();
        (void)setenv("WEBER_DEVICE", BACKEND, 1);
    }
    wb_scope_open();
    const wb_device *device = wb_get_device();
    if (device) wb_set_default_device(device);
    if (device) train(current);
    if (device) look_up_badly(current);
    if (is_fake) current->graph_launches = fake_count_now().graph_launches;
    (void)wb_scope_close();
    return current->failed = wb_report("graphs") || !device;
}

/* ---- a thread that gives memory back meanwhile ---- */

enum { PLANS = 24, RUNS = 6 };

static atomic_bool is_over;

/* A queue of its own, with memory of its own, as a loader has one. */
static void use_a_queue(const wb_device *device, void *handle) {
    static const float numbers[250];
    wb_buffer to = {.device = device, .handle = handle};
    wb_copy_queue queue;
    if (!wb_copy_queue_open(&queue, device)) return;
    (void)wb_copy_queue_follow(&queue);
    (void)wb_copy_queue_upload(&queue, &to, numbers, sizeof numbers);
    (void)wb_copy_queue_sync(&queue);
    wb_copy_queue_close(&queue);
}

static void *take_and_give_back(void *any) {
    const wb_device *device = any;
    while (!atomic_load(&is_over)) {
        void *handle = wb_device_alloc(device, 1000);
        use_a_queue(device, handle);
        wb_device_free(device, handle, 1000);
    }
    return NULL;
}

/* Plans of their own, so that each becomes a graph. */
static void make_graphs(void) {
    for (int64_t n = 2; n < 2 + PLANS; n++) {
        wb_array *x = wb_keep(wb_full(WB_F32, 0.5, n, n));
        for (int i = 0; i < RUNS; i++) {
            wb_scope_open();
            (void)wb_item(wb_sum(wb_matmul(x, x)));
            (void)wb_scope_close();
        }
        wb_free(x);
    }
}

static int run_beside(void) {
    pthread_t thread;
    use_fake_driver();
    (void)setenv("WEBER_DEVICE", BACKEND, 1);
    wb_scope_open();
    const wb_device *device = wb_get_device();
    if (!device) return 1;
    wb_set_default_device(device);
    if (pthread_create(&thread, NULL, take_and_give_back, (void *)(uintptr_t)device) != 0) return 1;
    make_graphs();
    atomic_store(&is_over, true);
    (void)pthread_join(thread, NULL);
    (void)wb_scope_close();
    const fake_counts counts = fake_count_now();
    if (counts.complaints == 0 && counts.graph_launches > 0) return wb_report("beside");
    print_error("%ld complaints, %ld graphs launched\n", counts.complaints, counts.graph_launches);
    return 1;
}

static void memory_and_queues_go_while_no_graph_is_made(void **state) {
    (void)state;
    if (getenv("WEBER_DEVICE")) skip(); /* only the fake driver complains */
    assert_int_equal(run_with("WEBER_GRAPHS", "1", run_beside), 0);
}

/* ---- tests ---- */

static void both_trained(void **state) {
    (void)state;
    assert_int_equal(with_graphs->failed, 0);
    assert_int_equal(without->failed, 0);
    assert_true(with_graphs->losses[STEPS - 1] < 0.5 * with_graphs->losses[0]);
}

static void the_bits_are_the_same(void **state) {
    (void)state;
    for (int i = 0; i < STEPS; i++)
        if (memcmp(&with_graphs->losses[i], &without->losses[i], sizeof(double)) != 0)
            fail_msg("step %d: %.9g with graphs, %.9g without", i, with_graphs->losses[i],
                     without->losses[i]);
    assert_memory_equal(&with_graphs->weights, &without->weights, sizeof(double));
}

static void bad_indices_are_told_each_time(void **state) {
    (void)state;
    assert_int_equal(with_graphs->told, BAD_RUNS);
    assert_int_equal(without->told, BAD_RUNS);
}

static void steps_are_replayed(void **state) {
    (void)state;
    if (getenv("WEBER_DEVICE")) skip(); /* only the fake driver counts */
    assert_true(with_graphs->graph_launches > 9 * STEPS / 10);
    assert_int_equal(without->graph_launches, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_trained), cmocka_unit_test(the_bits_are_the_same),
        cmocka_unit_test(bad_indices_are_told_each_time), cmocka_unit_test(steps_are_replayed),
        cmocka_unit_test(memory_and_queues_go_while_no_graph_is_made)};
    course *courses =
        mmap(NULL, 2 * sizeof *courses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (courses == MAP_FAILED) return 1;
    with_graphs = courses, without = courses + 1;
    current = with_graphs;
    (void)run_with("WEBER_GRAPHS", "1", run_course);
    current = without;
    (void)run_with("WEBER_GRAPHS", "0", run_course);
    return cmocka_run_group_tests_name("backends/cuda/test_graphs", tests, NULL, NULL);
}
