/* Weber on the CUDA plugin (and AMD's) over the fake driver: training with and without graphs,
 * loaders, and a process that loses its GPU. Each training is a process of its own, since devices
 * are opened once. */
#include "gpu.h"

#include <sys/mman.h>

#include "support/sanitized.h"
#include "support/support.h"

/* What a child tells. */
static struct {
    uint64_t hash;
    long calls, graph_launches, complaints;
    bool was_reached;
} * told;

static const wb_device *gpu_device(void) {
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    if (gpu) wb_set_default_device(gpu);
    return gpu;
}

/* ---- a training ---- */

enum {
    STEPS = 1000,
    INPUTS = 6,
    CLASSES = 3,
    SAMPLES = 40,
    BATCH = 8,
    EPOCHS = STEPS * BATCH / SAMPLES
};

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

static bool lower_rate(const wb_train_event *event) {
    const int64_t step = wb_step_count(event->optimiser);
    if (step % 100 == 0) (void)wb_adjust(event->optimiser, 0.01 / (1 + (double)step / 100));
    return true;
}

/* The bits of a parameter, read back. */
static wb_status hash_of(wb_array *x, uint64_t *hash) {
    float numbers[INPUTS * 8];
    const size_t size = x ? (size_t)wb_count(x) * sizeof *numbers : 0;
    const wb_status status = wb_read(x, numbers, size);
    for (size_t i = 0; i < size && status == WB_OK; i++)
        *hash = (*hash ^ ((unsigned char *)numbers)[i]) * 0x100000001B3u;
    return status;
}

/* Adam's step, its learning rate and the masks of dropout change with each step. */
static wb_status train(int64_t epochs, const wb_device *device, uint64_t *hash) {
    wb_seed(5);
    wb_array *x = wb_normal(WB_F32, INPUTS, SAMPLES);
    wb_array *y = wb_softmax(wb_normal(WB_F32, CLASSES, SAMPLES));
    wb_layer *model =
        wb_chain(wb_dense(INPUTS, 8, wb_tanh), wb_dropout(.p = 0.2), wb_dense(8, CLASSES));
    wb_loader *data = wb_loader_new(.x = wb_cpu(x), .y = wb_cpu(y), .batchsize = BATCH,
                                    .shuffle = true, .device = device);
    wb_optimiser *adam = wb_setup(wb_adam(.eta = 0.01), model);
    wb_status status = wb_train(loss, model, data, adam, .epochs = epochs, .on_step = lower_rate);
    *hash = 1;
    if (status == WB_OK) status = hash_of(wb_get(model, "layers.1.weight"), hash);
    if (status == WB_OK) status = hash_of(wb_get(model, "layers.3.bias"), hash);
    wb_free(adam), wb_free(data), wb_free(model);
    return status;
}

static void tell(void) {
    const fake_counts c = fake_count_now();
    told->calls = c.calls;
    told->graph_launches = c.graph_launches;
    told->complaints = c.complaints;
}

static int train_on_gpu(void) {
    const wb_device *gpu = gpu_device();
    wb_scope_open();
    const wb_status status = gpu ? train(EPOCHS, gpu, &told->hash) : WB_ERROR_DEVICE;
    if (status != WB_OK) print_error("%s\n", wb_error_message());
    (void)wb_scope_close();
    tell();
    return status != WB_OK;
}

static void graphs_change_no_bit(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_GRAPHS", "1", train_on_gpu), 0);
    const uint64_t with_graphs = told->hash;
    assert_true(told->graph_launches > STEPS / 2);
    assert_int_equal(told->complaints, 0);
    assert_int_equal(run_with("WEBER_GRAPHS", "0", train_on_gpu), 0);
    assert_int_equal(told->graph_launches, 0);
    assert_int_equal(told->complaints, 0);
    assert_true(told->hash == with_graphs);
    assert_int_equal(run_with("FAKE_CUDA_EAGER", "1", train_on_gpu), 0);
    assert_true(told->hash == with_graphs);
}

/* ---- the loader's queue ---- */

static int compute_stream, uploads_beside, uploads, launches;

static void watch(int stream, const char *what) {
    if (strncmp(what, "launch", 6) == 0) launches++, compute_stream = stream;
    if (strcmp(what, "upload") == 0) uploads++, uploads_beside += stream != compute_stream;
}

/* Batches go up by a stream of their own, and come to be before who reads them: work is put off, so
 * that a missing event would show. */
static int load_beside(void) {
    const wb_device *gpu = gpu_device();
    if (!gpu) return 1;
    int faults = 0;
    wb_scope_open();
    fake_set_witness(watch);
    float *numbers = malloc(64 * 1000 * sizeof *numbers);
    for (int i = 0; i < 64 * 1000; i++) numbers[i] = (float)i;
    wb_loader *data =
        wb_loader_new(.x = wb_cpu(wb_from_make(WB_F32, numbers, 2, (int64_t[]){1000, 64})),
                      .batchsize = 4, .device = gpu);
    double sum = 0, wanted = 0;
    for (int i = 0; i < 64 * 1000; i++) wanted += numbers[i];
    for (wb_batch b = {0}; wb_next(data, &b);) sum += wb_item(wb_sum(wb_cast(b.x, WB_F64)));
    faults += sum != wanted;
    faults += uploads_beside < 14; /* 16 batches; the first may come before anything was launched */
    if (faults)
        print_error("sum %g, not %g; %d of %d uploads beside\n", sum, wanted, uploads_beside,
                    uploads);
    fake_set_witness(NULL);
    free(numbers);
    wb_free(data);
    (void)wb_scope_close();
    tell();
    return faults;
}

static void batches_go_up_beside_the_computation(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, load_beside), 0);
    assert_int_equal(told->complaints, 0);
}

/* ---- memory between ---- */

enum { PIECES = 48, LARGEST = 300000 };

static double number_at(int piece, int64_t i) { return (double)((piece * 7919 + i * 31) % 65521); }

/* Some 18 MiB up and down, in pieces of 4 bytes to 1.2 MiB, with no wait in between: what goes
 * round in the plugin's pinned memory is written again only when it was read. */
static int go_round(void) {
    const wb_device *gpu = gpu_device();
    wb_array *on_gpu[PIECES];
    int faults = !gpu;
    wb_set_default_device(NULL);
    wb_scope_open();
    for (int p = 0; p < PIECES && !faults; p++) {
        const int64_t count = p % 3 == 0 ? 1 + p : LARGEST / (1 + p % 5) + p;
        float *numbers = malloc((size_t)count * sizeof *numbers);
        for (int64_t i = 0; i < count; i++) numbers[i] = (float)number_at(p, i);
        on_gpu[p] = wb_to(gpu, wb_from(WB_F32, numbers, count));
        faults += wb_eval(on_gpu[p]) != WB_OK;
        free(numbers);
    }
    for (int p = 0; p < PIECES && !faults; p++) {
        const float *numbers = wb_read_begin(on_gpu[p]);
        for (int64_t i = 0; numbers && i < wb_count(on_gpu[p]); i++)
            faults += numbers[i] != (float)number_at(p, i);
        faults += !numbers;
        wb_read_end(on_gpu[p]);
        if (faults) print_error("piece %d: %s\n", p, wb_error_message());
    }
    (void)wb_scope_close();
    tell();
    return faults != 0;
}

static void pieces_go_round_and_come_back_whole(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, go_round), 0);
    assert_int_equal(told->complaints, 0);
}

/* ---- errors ---- */

enum { OUT_OF_MEMORY = 2, LAUNCH_FAILED = 719 };

static long failing_call;
static int failing_code;

/* The GPU first, whatever comes of it, then the CPU, which has to go on. */
static int lose_the_gpu(void) {
    uint64_t hash = 0, cpu_hash = 0;
    char message[1024];
    fake_fail(NULL, failing_call, failing_code);
    const wb_device *gpu = gpu_device();
    wb_scope_open();
    const wb_status status = gpu ? train(1, gpu, &hash) : WB_ERROR_DEVICE;
    const wb_status closed = wb_scope_close();
    const bool failed = status != WB_OK || closed != WB_OK || wb_failed();
    (void)wb_take_error(message, sizeof message);
    const char *call = fake_failed();
    told->was_reached = call[0];
    const char *code = GPU_NAME("CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure");
    const bool is_named = strstr(message, call) && (strstr(message, code) || strstr(call, "rtc"));
    if (failed && failing_code != OUT_OF_MEMORY && !is_named)
        print_error("call %ld, %s: \"%s\"\n", failing_call, call, message);
    wb_set_default_device(NULL);
    wb_scope_open();
    const bool goes_on = train(1, wb_cpu_device(), &cpu_hash) == WB_OK;
    if (!goes_on)
        print_error("call %ld, %s: the CPU: %s\n", failing_call, call, wb_error_message());
    (void)wb_scope_close();
    tell();
    return !goes_on || told->complaints || (failed && failing_code != OUT_OF_MEMORY && !is_named);
}

typedef struct failures {
    int code, step; /* every so manieth call is tried; test_driver.c does not leave one out */
} failures;

static void a_process_outlives_any_error(void **state) {
    const failures *f = *state;
    int faults = 0;
    failing_code = f->code;
    told->was_reached = true;
    for (failing_call = 1; told->was_reached && faults < 5; failing_call += f->step)
        faults += run_with(NULL, NULL, lose_the_gpu) != 0;
    print_message("%ld calls\n", failing_call - 2 * f->step);
    assert_true(failing_call > 100);
    assert_int_equal(faults, 0);
}

/* A kernel that faults. */
static int lose_the_gpu_in_a_kernel(void) {
    uint64_t hash;
    const wb_device *gpu = gpu_device();
    fake_fault(20);
    wb_scope_open();
    const wb_status status = train(1, gpu, &hash);
    const char *text = wb_error_message();
    const bool is_told =
        status == WB_ERROR_DEVICE &&
        strstr(text, GPU_NAME("CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress"));
    if (!is_told) print_error("%d: %s\n", status, text);
    wb_clear_error();
    (void)wb_scope_close();
    wb_clear_error();
    wb_array *lost = wb_to(gpu, wb_vector(1, 2));
    const bool is_given_up = !lost || wb_eval(lost) != WB_OK;
    if (!strstr(wb_error_message(), "failed earlier")) print_error("%s\n", wb_error_message());
    wb_clear_error();
    wb_set_default_device(NULL);
    wb_scope_open();
    const bool goes_on = train(1, wb_cpu_device(), &hash) == WB_OK;
    (void)wb_scope_close();
    tell();
    return !is_told || !is_given_up || !goes_on;
}

static void a_process_outlives_a_fault(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, lose_the_gpu_in_a_kernel), 0);
    assert_int_equal(told->complaints, 0);
}

/* ---- which devices there are ---- */

static int one_is_visible(void) { return wb_device_count(BACKEND) != 1; }
static int none_is_visible(void) {
    if (wb_functional(BACKEND) || wb_device_count(BACKEND) != 0) return 1;
    if (strstr(wb_reason(), "hidden by " HIDING)) return 0;
    print_error("%s\n", wb_reason());
    return 2;
}
static int both_are_visible(void) { return wb_device_count(BACKEND) != 2; }

static void variables_hide_devices(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, both_are_visible), 0);
    assert_int_equal(run_with(HIDING, "1", one_is_visible), 0);
    assert_int_equal(run_with(HIDING, "0,-1,1", one_is_visible), 0);
    assert_int_equal(run_with(HIDING, "1,0", both_are_visible), 0);
    assert_int_equal(run_with(HIDING, "-1", none_is_visible), 0);
    assert_int_equal(run_with(HIDING, "7", none_is_visible), 0);
}

/* ---- two devices ---- */

static int move_between(void) {
    const wb_device *first = wb_get_device(BACKEND, 0), *second = wb_get_device(BACKEND, 1);
    if (!first || !second) return 1;
    wb_scope_open();
    wb_array *x = wb_to(first, wb_vector(1, 2, 3));
    wb_array *y = wb_to(second, wb_mul_number(x, 2));
    wb_array *z = wb_to(first, wb_add_number(y, 1));
    float numbers[3];
    int faults = wb_read_f32(z, numbers, 3) != WB_OK;
    for (int i = 0; i < 3 && !faults; i++) faults += numbers[i] != (float)(2 * (i + 1) + 1);
    if (faults) print_error("%s\n", wb_error_message());
    (void)wb_scope_close();
    tell();
    return faults;
}

static void values_move_between_devices(void **state) {
    (void)state;
    assert_int_equal(run_with(NULL, NULL, move_between), 0);
    assert_int_equal(told->complaints, 0);
    assert_int_equal(run_with("FAKE_CUDA_PEERS", "0", move_between), 0);
    assert_int_equal(told->complaints, 0);
}

int main(void) {
    static failures broken = {LAUNCH_FAILED, SANITIZED ? 7 : 1},
                    full = {OUT_OF_MEMORY, SANITIZED ? 11 : 5};
    use_fake_driver();
    (void)unsetenv("WEBER_DEVICE");
    (void)unsetenv("WEBER_EAGER"),
        (void)unsetenv("WEBER_FUSE"); /* graphs are made of whole plans */
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    (void)setenv("WEBER_CACHE", "", 1); /* so that each process compiles */
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_change_no_bit),
        cmocka_unit_test(batches_go_up_beside_the_computation),
        cmocka_unit_test(pieces_go_round_and_come_back_whole),
        cmocka_unit_test(variables_hide_devices),
        cmocka_unit_test(values_move_between_devices),
        cmocka_unit_test(a_process_outlives_a_fault),
        {"a process outlives any error", a_process_outlives_any_error, NULL, NULL, &broken},
        {"a process outlives memory that runs out", a_process_outlives_any_error, NULL, NULL,
         &full},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
