/* Which way the CUDA plugin computes a convolution, by the libraries that stand for cuDNN and
 * cuBLASLt over the fake driver, whose time is made up here: what is fastest is taken, and known
 * again. Each test is a process of its own, since libraries are opened once. */
#include "stand_in.h"

#include <dirent.h>
#include <math.h>
#include <sys/mman.h>

#include "array/array.h"
#include "support/files.h"
#include "support/support.h"

/* As in the library that stands for cuDNN. */
enum { GOOD = 4, SECOND, HIDDEN, ENGINES };

enum { MOST = 512 };

/* ---- a convolution ---- */

static wb_array *numbers(const wb_device *device, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    wb_array *x = wb_add_number(wb_mul_number(wb_uniform(WB_F32, count), 2), -1);
    return wb_to(device, wb_reshape_make(x, ndim, sizes));
}

/* How many numbers; -1 with the library's error. prepare is called when the operands are there. */
static int64_t convolve(const wb_device *device, double *result, void (*prepare)(void)) {
    wb_scope_open();
    wb_seed(5);
    wb_array *x = numbers(device, 4, (const int64_t[]){6, 5, 3, 2});
    wb_array *w = numbers(device, 4, (const int64_t[]){3, 3, 3, 4});
    wb_array *b = numbers(device, 4, (const int64_t[]){1, 1, 4, 1});
    double sum[3];
    bool done = wb_read_f64(wb_sum(x), &sum[0], 1) == WB_OK &&
                wb_read_f64(wb_sum(w), &sum[1], 1) == WB_OK &&
                wb_read_f64(wb_sum(b), &sum[2], 1) == WB_OK;
    if (prepare) prepare();
    wb_array *y = done ? wb_relu(wb_add(wb_conv_op(x, w, .pad = {1, 1}), b)) : NULL;
    const int64_t count = y ? wb_count(y) : -1;
    done = done && wb_read_f64(wb_cast(wb_cpu(y), WB_F64), result, count) == WB_OK;
    (void)wb_scope_close();
    return done ? count : -1;
}

/* 0 where the device agrees with the CPU, 1 where not, -1 with the library's error. */
static int compare(void (*prepare)(void)) {
    static double wanted[MOST], got[MOST];
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    const int64_t count = gpu ? convolve(wb_cpu_device(), wanted, NULL) : -1;
    if (count < 0) return 1;
    if (convolve(gpu, got, prepare) != count) return -1;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= 1e-4)) {
            print_error("number %d is %g, not %g\n", (int)i, got[i], wanted[i]);
            return 1;
        }
    return 0;
}

/* ---- costs ---- */

typedef struct costs {
    const char *name;
    long good, second, hidden, launch; /* milliseconds, of engines and of a text's launch */
    int taken;                         /* an engine; 0: the text */
} costs;

static const costs rows[] = {
    {"the first is the fastest", 1, 5, 5, 50, GOOD},
    {"what the second heuristics propose", 5, 1, 2, 50, SECOND},
    {"what no heuristics propose", 5, 2, 1, 50, HIDDEN},
    {"Weber's text", 500, 400, 300, 1, 0},
};

enum { ROWS = sizeof rows / sizeof *rows };

static const costs *costing;

static void set_costs(const costs *c) {
    long *ms = counter("fake_dnn_ms");
    fake_clock_fn *make_up_time;
    *(void **)&make_up_time = find_fake("fake_make_up_time");
    make_up_time((double)c->launch);
    ms[GOOD] = c->good, ms[SECOND] = c->second, ms[HIDDEN] = c->hidden;
    costing = c;
}

/* Runs the convolution once more, by now without timing; faults. */
static int check_taken(int engine) {
    const long *convolutions = counter("fake_dnn_convolutions"), before = *convolutions;
    const int fault = compare(NULL);
    const int ran = *convolutions == before ? 0 : (int)*counter("fake_dnn_engine");
    if (fault < 0) print_error("%s\n", wb_error_message());
    if (fault == 0 && ran == engine && *convolutions - before == (engine != 0)) return 0;
    print_error("%s: engine %d ran, %ld convolutions\n", costing->name, ran,
                *convolutions - before);
    return 1;
}

/* Faults: the row's way is taken, and nothing that was there for the timing is left. */
static int compare_costs(void) {
    if (compare(NULL) != 0) return 1;
    const fake_counts now = fake_count_now();
    const int faults = check_taken(costing->taken);
    const fake_counts then = fake_count_now();
    return faults + (now.events > then.events || now.streams > 3 || now.complaints != 0);
}

static int compare_row(void) {
    set_costs(costing);
    return compare_costs();
}

static void the_fastest_way_is_taken(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        costing = &rows[i];
        (void)setenv("WEBER_CACHE", "", 1);
        assert_int_equal(run_with("WEBER_TUNE", "100000", compare_row), 0);
    }
}

/* ---- without timing ---- */

static int compare_heuristics(void) {
    set_costs(&rows[2]);
    const int fault = compare(NULL);
    return (fault != 0) + (*counter("fake_dnn_convolutions") != 1) + check_taken(GOOD);
}

static void without_timing_the_first_proposal_is_taken(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", folder, 1);
    assert_int_equal(run_with("WEBER_TUNE", "0", compare_heuristics), 0);
}

/* ---- on disk ---- */

static int compare_first(void) {
    set_costs(&rows[1]);
    return (compare(NULL) != 0) + check_taken(SECOND);
}

/* With other costs, which nobody looks at. */
static int compare_kept(void) {
    set_costs(&rows[0]);
    return check_taken(SECOND) + (*counter("fake_dnn_convolutions") != 1);
}

static int compare_again(void) {
    set_costs(&rows[0]);
    return (compare(NULL) != 0) + check_taken(GOOD);
}

/* The last byte of each entry. */
static int damage_entries(void) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/" BACKEND, folder);
    DIR *entries = opendir(path);
    int count = 0;
    for (struct dirent *e; entries && (e = readdir(entries));) {
        size_t size = 0;
        (void)snprintf(path, sizeof path, "%s/" BACKEND "/%s", folder, e->d_name);
        unsigned char *bytes = e->d_name[0] == '.' ? NULL : read_file(path, &size);
        if (!bytes) continue;
        bytes[size - 1] ^= 1;
        write_file(path, bytes, size);
        free(bytes);
        count++;
    }
    if (entries) closedir(entries);
    return count;
}

static void a_choice_is_known_to_other_processes(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", folder, 1);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_first), 0);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_kept), 0);
    assert_true(damage_entries() > 0);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_again), 0);
}

static int compare_text(void) {
    set_costs(&rows[3]);
    return (compare(NULL) != 0) + check_taken(0);
}

static int compare_kept_text(void) {
    set_costs(&rows[0]);
    return check_taken(0) + (*counter("fake_dnn_convolutions") != 0);
}

static void a_text_is_known_to_other_processes(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", path_of("text"), 1);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_text), 0);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_kept_text), 0);
}

/* ---- errors ---- */

static long failing;
static struct shared { /* with the children */
    bool is_over;
    int kept_first;
} * shared;

static void fail_alloc(void) { fake_fail(GPU_NAME("cuMemAlloc_v2", "hipMalloc"), failing, 2); }

/* The result's memory may be what is missing: that is an error. Else the numbers are right, and
 * the first proposal is taken where what was missing is the timing's. */
static int compare_without_memory(void) {
    set_costs(&rows[2]);
    const int fault = compare(fail_alloc);
    shared->is_over = !fake_failed()[0];
    fake_fail(NULL, 0, 0);
    const int engine = (int)*counter("fake_dnn_engine");
    shared->kept_first += fault == 0 && engine == GOOD;
    if (fault != 0) return fault > 0;
    return check_taken(engine) + (engine != GOOD && engine != HIDDEN);
}

static void without_memory_the_first_proposal_is_taken(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", "", 1);
    for (failing = 1; !shared->is_over; failing++)
        assert_int_equal(run_with("WEBER_TUNE", "100000", compare_without_memory), 0);
    assert_int_equal(shared->kept_first, 4); /* x, w, y, a workspace */
}

/* A call of the library that fails while ways are found and timed is no error; one that fails
 * later is, and names the call. */
static int compare_failing(void) {
    long *left = counter("fake_dnn_fail");
    set_costs(&rows[2]);
    *left = failing;
    const int fault = compare(NULL);
    shared->is_over = *left > 0;
    if (fault >= 0 || shared->is_over) return fault != 0;
    if (strstr(wb_error_message(), "cudnn")) return 0;
    print_error("call %ld: the message \"%s\" names no call\n", failing, wb_error_message());
    return 1;
}

static void any_call_may_fail(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", "", 1);
    shared->is_over = false;
    for (failing = 1; !shared->is_over; failing += failing < 60 ? 1 : 37)
        assert_int_equal(run_with("WEBER_TUNE", "100000", compare_failing), 0);
    assert_true(failing > 60);
}

int main(void) {
    use_fake_driver();
    use_stand_in("fake_cudnn.so");
    (void)setenv("WEBER_CUDNN_LIBRARY", stand_in, 1);
    (void)unsetenv("WEBER_DEVICE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_way_is_taken),
        cmocka_unit_test(without_timing_the_first_proposal_is_taken),
        cmocka_unit_test(a_choice_is_known_to_other_processes),
        cmocka_unit_test(a_text_is_known_to_other_processes),
        cmocka_unit_test(without_memory_the_first_proposal_is_taken),
        cmocka_unit_test(any_call_may_fail),
    };
    return cmocka_run_group_tests_name("backends/cuda/test_choose", tests, make_folder,
                                       drop_folder);
}
