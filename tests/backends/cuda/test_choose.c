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

enum { MOST = 1024 };

/* ---- convolutions ---- */

typedef struct row {
    const char *name;
    int ndim;
    int64_t x[5], w[5];
    wb_window_desc desc;
} row;

static const row plain = {"3x3, padded", 4, {6, 5, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}};

static wb_array *numbers(const wb_device *device, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    wb_array *x = wb_add_number(wb_mul_number(wb_uniform(WB_F32, count), 2), -1);
    return wb_to(device, wb_reshape_make(x, ndim, sizes));
}

/* The convolution, with a bias and relu, as many numbers of `result` as there are; -1 with the
 * library's error. prepare is called when the operands are there. */
static int64_t convolve(const row *r, const wb_device *device, double *result,
                        void (*prepare)(void)) {
    wb_scope_open();
    wb_seed(5);
    wb_array *x = numbers(device, r->ndim, r->x), *w = numbers(device, r->ndim, r->w);
    wb_array *b = numbers(device, 4, (const int64_t[]){1, 1, r->w[3], 1});
    double sum[3];
    bool done = wb_read_f64(wb_sum(x), &sum[0], 1) == WB_OK &&
                wb_read_f64(wb_sum(w), &sum[1], 1) == WB_OK &&
                wb_read_f64(wb_sum(b), &sum[2], 1) == WB_OK;
    if (prepare) prepare();
    wb_array *y = done ? wb_relu(wb_add(wb_conv_op_make(x, w, r->desc), b)) : NULL;
    const int64_t count = y ? wb_count(y) : -1;
    done = done && wb_read_f64(wb_cpu(y), result, count) == WB_OK;
    (void)wb_scope_close();
    return done ? count : -1;
}

static bool agree(const char *name, int64_t count, const double *got, const double *wanted) {
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= 1e-4)) {
            print_error("%s: number %d is %g, not %g\n", name, (int)i, got[i], wanted[i]);
            return false;
        }
    return true;
}

/* 0 where the device agrees with the CPU, 1 where not, -1 with the library's error. */
static int compare(void (*prepare)(void)) {
    static double wanted[MOST], got[MOST];
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    const int64_t count = gpu ? convolve(&plain, wb_cpu_device(), wanted, NULL) : -1;
    if (count < 0) return 1;
    if (convolve(&plain, gpu, got, prepare) != count) return -1;
    return !agree(plain.name, count, got, wanted);
}

/* ---- costs ---- */

typedef struct costs {
    const char *name;
    long good, second, hidden, launch; /* milliseconds, of engines and of a text's launch */
    int taken;                         /* an engine; 0: the text */
} costs;

static const costs all_costs[] = {
    {"the first is the fastest", 1, 5, 5, 50, GOOD},
    {"what the second heuristics propose", 5, 1, 2, 50, SECOND},
    {"what no heuristics propose", 5, 2, 1, 50, HIDDEN},
    {"Weber's text", 500, 400, 300, 1, 0},
};

enum { COSTS = sizeof all_costs / sizeof *all_costs };

static const costs *costing;

static void set_costs(const costs *c) {
    long *ms = counter("fake_dnn_ms");
    fake_clock_fn *make_up_time;
    *(void **)&make_up_time = find_fake("fake_make_up_time");
    make_up_time("_tile", (double)c->launch);
    *counter_of(LT_STAND_IN, "fake_lt_ms") = *counter_of(LT_STAND_IN, "fake_lt_batch_ms") = 50;
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
    return faults + (now.events > then.events || now.streams > 3 || now.graphs != 0 ||
                     now.executables != 0 || now.complaints != 0);
}

static int compare_row(void) {
    set_costs(costing);
    return compare_costs();
}

static void the_fastest_way_is_taken(void **state) {
    (void)state;
    for (int i = 0; i < COSTS; i++) {
        costing = &all_costs[i];
        (void)setenv("WEBER_CACHE", "", 1);
        assert_int_equal(run_with("WEBER_TUNE", "100000", compare_row), 0);
    }
}

/* ---- without timing ---- */

static int compare_heuristics(void) {
    set_costs(&all_costs[2]);
    const int fault = compare(NULL);
    return (fault != 0) + (*counter("fake_dnn_convolutions") != 1) + check_taken(GOOD);
}

static void without_timing_the_first_proposal_is_taken(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", folder, 1);
    assert_int_equal(run_with("WEBER_TUNE", "0", compare_heuristics), 0);
}

/* It would be another one in the next process. */
static void where_no_choice_is_kept_the_first_proposal_is_taken(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", "", 1);
    assert_int_equal(run_with("WEBER_TUNE", "", compare_heuristics), 0);
}

/* ---- in all ---- */

enum { FEW_SHAPES = 2, MANY_SHAPES = 1000 };

/* The engine that computed a convolution of so many columns, which are a shape of its own; 0: the
 * text did; -1 with the library's error. */
static int engine_of(int64_t columns) {
    static double result[MANY_SHAPES];
    const row r = {"", 4, {columns, 3, 1, 1}, {3, 3, 1, 1}, {.groups = 1}};
    const long *convolutions = counter("fake_dnn_convolutions");
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    if (convolve(&r, gpu, result, NULL) < 0) return -1;
    const long before = *convolutions;
    if (convolve(&r, gpu, result, NULL) < 0) return -1;
    return *convolutions == before ? 0 : (int)*counter("fake_dnn_engine");
}

/* The text where ways are timed, the first proposal where they are no more; faults. */
static int compare_shapes(void) {
    int shapes = 0, engine = 0;
    set_costs(&all_costs[3]);
    while (engine == 0 && shapes < MANY_SHAPES) engine = engine_of(3 + shapes++);
    if (shapes > FEW_SHAPES && engine == GOOD && engine_of(3 + shapes) == GOOD && engine_of(3) == 0)
        return 0;
    print_error("engine %d, %d shapes: %s\n", engine, shapes, wb_error_message());
    return 1;
}

static void sizes_that_always_change_are_not_timed_for_ever(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", "", 1);
    assert_int_equal(run_with("WEBER_TUNE", "3", compare_shapes), 0);
}

/* ---- products ---- */

static const row rows[] = {
    {"3x3, padded", 4, {7, 6, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}},
    {"not flipped", 4, {7, 6, 3, 2}, {3, 2, 3, 4}, {.cross_correlation = true}},
    {"1x1", 4, {5, 4, 3, 2}, {1, 1, 3, 2}, {.groups = 1}},
    {"1x1, one image", 4, {5, 4, 3, 1}, {1, 1, 3, 2}, {.groups = 1}},
    {"1x1 with strides", 4, {6, 5, 3, 2}, {1, 1, 3, 4}, {.stride = {2, 2}}},
    {"1x1, padded", 4, {4, 4, 3, 2}, {1, 1, 3, 4}, {.pad = {1, 1}}},
    {"3x3 with strides, padded", 4, {6, 7, 3, 2}, {3, 3, 3, 4}, {.stride = {2, 2}, .pad = {1, 1}}},
    {"strides that leave a rest", 4, {8, 7, 2, 2}, {3, 3, 2, 2}, {.stride = {2, 3}}},
    {"strides above the kernel", 4, {9, 8, 2, 2}, {2, 1, 2, 2}, {.stride = {3, 3}, .pad = {1, 1}}},
    {"dilated", 4, {9, 8, 2, 1}, {3, 2, 2, 2}, {.dilation = {2, 3}, .pad = {2, 1}}},
    {"more padding than the kernel reaches", 4, {4, 3, 2, 2}, {2, 2, 2, 2}, {.pad = {3, 2}}},
    {"more padding on one side", 4, {6, 6, 2, 1}, {3, 3, 2, 2}, {.pad_more = {1, 0}}},
    {"one position", 4, {3, 3, 2, 2}, {3, 3, 2, 4}, {.groups = 1}},
    {"one dimension", 3, {11, 2, 2}, {4, 2, 3}, {.stride = {2}, .pad = {1}}},
    {"three dimensions", 5, {5, 4, 3, 2, 2}, {3, 2, 2, 2, 2}, {.pad = {1, 1, 1}}},
};

enum { ROWS = sizeof rows / sizeof *rows };

/* The convolution and its two gradients, one after the other; as convolve. */
static int64_t differentiate(const row *r, const wb_device *device, double *result) {
    int64_t count = 0;
    wb_scope_open();
    wb_seed(7);
    wb_array *x = numbers(device, r->ndim, r->x), *w = numbers(device, r->ndim, r->w), *all[3];
    all[0] = wb_conv_op_make(x, w, r->desc);
    wb_array *v = numbers(device, r->ndim, wb_sizes(all[0]));
    bool done = wb_pullback(all[0], v, 2, (wb_array *[]){x, w}, all + 1) == WB_OK;
    for (int i = 0; i < 3 && done; i++) {
        const int64_t more = wb_count(all[i]);
        done = count + more <= MOST && wb_read_f64(wb_cpu(all[i]), result + count, more) == WB_OK;
        count += more;
    }
    (void)wb_scope_close();
    return done ? count : -1;
}

/* Faults: all three go by products, after one run that times the ways. */
static int compare_products(const row *r) {
    static double wanted[MOST], got[MOST];
    const long *convolutions = counter("fake_dnn_convolutions"),
               *products = counter_of(LT_STAND_IN, "fake_lt_products");
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    const int64_t count = differentiate(r, wb_cpu_device(), wanted);
    bool done = count > 0 && differentiate(r, gpu, got) == count;
    const long ran = *convolutions, before = *products;
    done = done && differentiate(r, gpu, got) == count;
    if (!done) print_error("%s: %s\n", r->name, wb_error_message());
    if (!done || !agree(r->name, count, got, wanted)) return 1;
    if (*convolutions == ran && *products == before + 3) return 0;
    print_error("%s: %ld convolutions, %ld products\n", r->name, *convolutions - ran,
                *products - before);
    return 1;
}

static long image_ms, columns_ms;

static int compare_all_products(void) {
    static const costs slow = {"slow", 500, 500, 500, 500, 0};
    int faults = 0;
    set_costs(&slow);
    *counter_of(LT_STAND_IN, "fake_lt_batch_ms") = image_ms;
    *counter_of(LT_STAND_IN, "fake_lt_ms") = columns_ms;
    for (int i = 0; i < ROWS; i++) faults += compare_products(&rows[i]);
    return faults + (fake_count_now().complaints != 0) +
           (*counter_of(LT_STAND_IN, "fake_lt_invalid") != 0);
}

/* A product for each image, where there is one, and then columns for all. */
static void convolutions_are_products_where_these_are_faster(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", path_of("products"), 1);
    image_ms = 1, columns_ms = 2;
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_all_products), 0);
    columns_ms = 700; /* which is known from the disk now */
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_all_products), 0);
    (void)setenv("WEBER_CACHE", "", 1);
    image_ms = 700, columns_ms = 2;
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_all_products), 0);
}

/* ---- on disk ---- */

static int compare_first(void) {
    set_costs(&all_costs[1]);
    return (compare(NULL) != 0) + check_taken(SECOND);
}

/* With other costs, which nobody looks at. */
static int compare_kept(void) {
    set_costs(&all_costs[0]);
    return check_taken(SECOND) + (*counter("fake_dnn_convolutions") != 1);
}

static int compare_again(void) {
    set_costs(&all_costs[0]);
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
    set_costs(&all_costs[3]);
    return (compare(NULL) != 0) + check_taken(0);
}

static int compare_kept_text(void) {
    set_costs(&all_costs[0]);
    return check_taken(0) + (*counter("fake_dnn_convolutions") != 0);
}

/* The choice names a proposal that is another engine's by now. */
static int compare_stale(void) {
    set_costs(&all_costs[2]);
    *counter("fake_dnn_has_one_list") = 1;
    return (compare(NULL) != 0) + check_taken(HIDDEN);
}

/* Then all ways are compared, not the library's alone. */
static int compare_stale_text(void) {
    set_costs(&all_costs[3]);
    *counter("fake_dnn_has_one_list") = 1;
    return (compare(NULL) != 0) + check_taken(0);
}

static void a_choice_by_other_lists_is_made_again(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", path_of("lists"), 1);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_first), 0);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_stale), 0);
    (void)setenv("WEBER_CACHE", path_of("lists-text"), 1);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_first), 0);
    assert_int_equal(run_with("WEBER_TUNE", "100000", compare_stale_text), 0);
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
    set_costs(&all_costs[2]);
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

static void fail_driver(void) { fake_fail(NULL, failing, 999); }

/* A call of the driver that fails while ways are timed is no error; one that fails before or later
 * may be. */
static int compare_failing_driver(void) {
    set_costs(&all_costs[2]);
    const int fault = compare(fail_driver);
    shared->is_over = !fake_failed()[0];
    fake_fail(NULL, 0, 0);
    shared->kept_first += fault == 0;
    const int faults =
        (fault > 0) + (fault == 0 && compare(NULL) != 0) + (fake_count_now().complaints != 0);
    if (faults) print_error("call %ld, %s: %s\n", failing, fake_failed(), wb_error_message());
    return faults;
}

static void any_call_of_the_driver_may_fail(void **state) {
    (void)state;
    (void)setenv("WEBER_CACHE", "", 1);
    shared->is_over = false, shared->kept_first = 0;
    for (failing = 1; !shared->is_over; failing += 7)
        assert_int_equal(run_with("WEBER_TUNE", "100000", compare_failing_driver), 0);
    assert_true(shared->kept_first > failing / 14);
}

/* A call of the library that fails while ways are found and timed is no error; one that fails
 * later is, and names the call. */
static int compare_failing(void) {
    long *left = counter("fake_dnn_fail");
    set_costs(&all_costs[2]);
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
    (void)setenv(LT_VARIABLE, stand_in_beside(LT_STAND_IN), 1);
    (void)unsetenv("WEBER_DEVICE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_way_is_taken),
        cmocka_unit_test(convolutions_are_products_where_these_are_faster),
        cmocka_unit_test(sizes_that_always_change_are_not_timed_for_ever),
        cmocka_unit_test(without_timing_the_first_proposal_is_taken),
        cmocka_unit_test(where_no_choice_is_kept_the_first_proposal_is_taken),
        cmocka_unit_test(a_choice_is_known_to_other_processes),
        cmocka_unit_test(a_choice_by_other_lists_is_made_again),
        cmocka_unit_test(a_text_is_known_to_other_processes),
        cmocka_unit_test(without_memory_the_first_proposal_is_taken),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(any_call_of_the_driver_may_fail),
    };
    return cmocka_run_group_tests_name("backends/cuda/test_choose", tests, make_folder,
                                       drop_folder);
}
