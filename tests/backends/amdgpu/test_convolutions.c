/* Convolutions of AMD's plugin by the library that stands for MIOpen, over the fake driver: what it
 * takes, what it leaves to the texts, and that the numbers are the CPU's either way. Each test is a
 * process of its own, since libraries are opened once. */
#define TEST_AMDGPU
#include "backends/cuda/stand_in.h"

#include <sys/mman.h>

#include "array/array.h"
#include "support/support.h"

/* ---- convolutions ---- */

typedef struct row {
    const char *name;
    wb_dtype dtype;
    int ndim;
    int64_t x[5], w[5];
    wb_window_desc desc;
    bool is_taken;
} row;

static const row rows[] = {
    {"3x3, padded", WB_F32, 4, {7, 6, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}, true},
    {"not flipped", WB_F32, 4, {7, 6, 3, 2}, {3, 2, 3, 4}, {.cross_correlation = true}, true},
    {"1x1", WB_F32, 4, {5, 4, 3, 2}, {1, 1, 3, 2}, {.groups = 1}, true},
    {"strides that leave a rest", WB_F32, 4, {8, 7, 2, 2}, {3, 3, 2, 2}, {.stride = {2, 3}}, true},
    {"dilated", WB_F32, 4, {9, 8, 2, 1}, {3, 2, 2, 2}, {.dilation = {2, 3}, .pad = {2, 1}}, true},
    {"two groups", WB_F32, 4, {6, 5, 4, 2}, {3, 3, 2, 6}, {.groups = 2, .pad = {1, 1}}, true},
    {"depthwise", WB_F32, 4, {6, 5, 3, 2}, {3, 3, 1, 3}, {.groups = 3}, true},
    {"one dimension", WB_F32, 3, {11, 2, 2}, {4, 2, 3}, {.stride = {2}, .pad = {1}}, true},
    {"three dimensions", WB_F32, 5, {5, 4, 3, 2, 1}, {3, 2, 2, 2, 2}, {.pad = {1, 0, 1}}, true},
    {"more padding behind, which no window meets",
     WB_F32,
     4,
     {6, 6, 2, 1},
     {3, 3, 2, 2},
     {.stride = {2, 2}, .pad = {1, 1}, .pad_more = {0, -1}},
     true},
    {"more padding behind, for one more output",
     WB_F32,
     4,
     {6, 6, 2, 1},
     {3, 3, 2, 2},
     {.pad_more = {1, 0}},
     false},
    {"one output, most of it padding behind",
     WB_F32,
     4,
     {1, 6, 2, 1},
     {3, 3, 2, 2},
     {.stride = {3, 1}, .pad_more = {2, 0}},
     false},
    {"less padding behind",
     WB_F32,
     4,
     {6, 6, 2, 1},
     {3, 3, 2, 2},
     {.pad = {1, 1}, .pad_more = {-1, 0}},
     false},
    {"dilated groups",
     WB_F32,
     4,
     {7, 7, 4, 1},
     {2, 2, 2, 2},
     {.groups = 2, .dilation = {2, 1}},
     false},
    {"f64, which is not asked for", WB_F64, 4, {7, 6, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}, false},
    {"f16, which is refused", WB_F16, 4, {7, 6, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}, false},
    {"bf16, which is refused", WB_BF16, 4, {7, 6, 3, 2}, {3, 3, 3, 4}, {.pad = {1, 1}}, false},
};

enum { ROWS = sizeof rows / sizeof *rows, CALLS = 3, MOST = 1024 };

static wb_array *numbers(const row *r, const wb_device *device, int ndim, const int64_t *sizes,
                         int64_t count) {
    wb_array *x = wb_add_number(wb_mul_number(wb_uniform(WB_F32, count), 2), -1);
    x = wb_cast(wb_reshape_make(x, ndim, sizes), r->dtype);
    return wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE);
}

static wb_array *like(const row *r, const wb_device *device, int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return numbers(r, device, ndim, sizes, count);
}

/* The convolution and its two gradients, one after the other; -1 with the library's error, else how
 * many numbers. */
static int64_t compute(const row *r, const wb_device *device, double *result) {
    int64_t count = 0;
    wb_scope_open();
    wb_seed(7);
    wb_array *x = like(r, device, r->ndim, r->x), *w = like(r, device, r->ndim, r->w), *all[CALLS];
    all[0] = wb_conv_op_make(x, w, r->desc);
    bool done = all[0] != NULL;
    wb_array *v = done ? like(r, device, r->ndim, wb_sizes(all[0])) : NULL;
    done = done && wb_pullback(all[0], v, 2, (wb_array *[]){x, w}, all + 1) == WB_OK;
    for (int i = 0; i < CALLS && done; i++) {
        const int64_t more = wb_count(all[i]);
        done = count + more <= MOST &&
               wb_read_f64(wb_cast(wb_cpu(all[i]), WB_F64), result + count, more) == WB_OK;
        count += more;
    }
    (void)wb_scope_close();
    return done ? count : -1;
}

static bool agree(const row *r, int64_t count, const double *got, const double *wanted) {
    static const double error[WB_DTYPE_COUNT] = {
        [WB_F32] = 1e-4, [WB_F64] = 1e-10, [WB_F16] = 5e-2, [WB_BF16] = 4e-1};
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= error[r->dtype])) {
            print_error("%s: element %d is %g, not %g\n", r->name, (int)i, got[i], wanted[i]);
            return false;
        }
    return true;
}

/* The row on the device and on the CPU: 0 where both agree, 1 where not, -1 with the library's
 * error. */
static int compare(const row *r) {
    static double wanted[MOST], got[MOST];
    const wb_device *gpu = wb_get_device("AMDGPU", 0);
    const int64_t count = gpu ? compute(r, wb_cpu_device(), wanted) : -1;
    if (count < 0) return 1;
    if (compute(r, gpu, got) < 0) return -1;
    return !agree(r, count, got, wanted);
}

/* The row with as many of its calls taken; faults. */
static int compare_taken(const row *r, long taken) {
    const long *convolutions = counter("fake_mi_convolutions"), before = *convolutions;
    const int fault = compare(r);
    if (fault < 0) print_error("%s: %s\n", r->name, wb_error_message());
    if (*convolutions - before == taken) return fault != 0;
    print_error("%s: %ld taken, not %ld\n", r->name, *convolutions - before, taken);
    return 1;
}

static int compare_all(void) {
    int faults = 0;
    for (int i = 0; i < ROWS; i++) faults += compare_taken(&rows[i], rows[i].is_taken ? CALLS : 0);
    if (!wb_functional_part("AMDGPU", "MIOpen")) faults++, print_error("%s\n", wb_reason());
    if (*counter("fake_mi_wrong") != 0) faults++, print_error("what it does not allow is asked\n");
    if (*counter("fake_mi_halves") != 2 * CALLS) faults++, print_error("halves are not asked\n");
    if (*counter("fake_mi_streams") != 1) faults++, print_error("the stream is set again\n");
    return faults + (fake_count_now().complaints != 0);
}

static void convolutions_go_to_the_library(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_all), 0);
}

static int compare_twice(void) {
    const long *asked = counter("fake_mi_asked");
    int faults = compare_taken(&rows[0], CALLS);
    const long before = *asked;
    faults += compare_taken(&rows[0], CALLS);
    return faults + (*asked != before || before != CALLS);
}

static void a_shape_is_asked_for_once(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_twice), 0);
}

/* ---- graphs ---- */

enum { RUNS = 8, LAYERS = 8 };

/* True where the same convolutions, one after the other, come to be launched as a graph. */
static bool becomes_a_graph(void) {
    static const row layer = {"", WB_F32, 4, {6, 5, 3, 2}, {3, 3, 3, 3}, {.pad = {1, 1}}, true};
    const wb_device *gpu = wb_get_device("AMDGPU", 0);
    double sum;
    wb_scope_open();
    wb_array *x = like(&layer, gpu, 4, layer.x), *w = like(&layer, gpu, 4, layer.w);
    bool done =
        wb_read_f64(wb_sum(x), &sum, 1) == WB_OK && wb_read_f64(wb_sum(w), &sum, 1) == WB_OK;
    for (int i = 0; i < RUNS && done; i++) {
        wb_scope_open();
        wb_array *y = x;
        for (int k = 0; k < LAYERS; k++) y = wb_conv_op_make(y, w, layer.desc);
        done = wb_read_f64(wb_sum(y), &sum, 1) == WB_OK;
        (void)wb_scope_close();
    }
    (void)wb_scope_close();
    if (!done) print_error("%s\n", wb_error_message());
    return fake_count_now().graph_launches > 0;
}

static int run_texts(void) { return !becomes_a_graph(); }
static int run_library(void) {
    return becomes_a_graph() +
           (*counter("fake_mi_convolutions") != RUNS * LAYERS); /* none is tried */
}

static void plans_with_it_are_no_graphs(void **state) {
    (void)state;
    (void)setenv("WEBER_GRAPHS", "1", 1);
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", "/no/such.so", run_texts), 0);
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, run_library), 0);
    (void)unsetenv("WEBER_GRAPHS");
}

/* ---- errors ---- */

static long failing;
static bool *is_over; /* shared with the children: there was no such call */

/* A convolution whose n-th call of the library fails: what comes before it runs is left to the
 * text, what comes later is an error that names the call. */
static int compare_failing(void) {
    enum { PLAN_OBJECTS = 4 }; /* beside the handle */
    long *left = counter("fake_mi_fail");
    *left = failing;
    const int fault = compare(&rows[0]);
    *is_over = *left > 0;
    if (*counter("fake_mi_live") % PLAN_OBJECTS > 1) {
        print_error("call %ld: what a plan was to be made of is left behind\n", failing);
        return 1;
    }
    if (fault >= 0 || *is_over) return fault != 0;
    if (strstr(wb_error_message(), "miopenConvolution") ||
        strstr(wb_error_message(), "miopenSetStream"))
        return 0;
    print_error("call %ld: the message \"%s\" names no call\n", failing, wb_error_message());
    return 1;
}

static void any_call_may_fail(void **state) {
    (void)state;
    for (failing = 1; !*is_over; failing++)
        assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_failing), 0);
    assert_true(failing > 40);
}

/* ---- libraries that will not do ---- */

static const char *reason;

static int compare_without(void) {
    int faults = compare(&rows[0]) != 0;
    if (wb_functional_part("AMDGPU", "MIOpen") || !strstr(wb_reason(), reason)) faults++;
    if (faults) print_error("\"%s\", not \"%s\"\n", wb_reason(), reason);
    return faults;
}

static void a_library_that_is_not_there_is_done_without(void **state) {
    (void)state;
    reason = "WEBER_MIOPEN_LIBRARY=/no/such.so cannot be opened: /no/such.so: cannot open";
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", "/no/such.so", compare_without), 0);
}

static void a_library_without_the_functions_is_done_without(void **state) {
    (void)state;
    reason = "MIOpen has no miopenGetVersion: ROCm 6.0 or later is needed";
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", "libz.so.1", compare_without), 0);
}

static int compare_with_old(void) {
    *counter("fake_mi_version") = 29;
    return compare_without() + (*counter("fake_mi_live") != 0);
}

static void an_old_library_is_done_without(void **state) {
    (void)state;
    reason = "MIOpen 2.9.0: ROCm 6.0 or later is needed";
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_with_old), 0);
}

static int compare_before_repeating(void) {
    *counter("fake_mi_version") = 34;
    return compare_taken(&rows[0], CALLS - 1);
}

static void filters_that_change_from_run_to_run_are_left_to_the_text(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_before_repeating), 0);
}

static void a_library_of_another_runtime_is_done_without(void **state) {
    (void)state;
    reason = "MIOpen 3.5.0 uses the runtime of another ROCm";
    use_stand_in("fake_other_miopen.so");
    assert_int_equal(run_with("WEBER_MIOPEN_LIBRARY", stand_in, compare_without), 0);
    use_stand_in("fake_miopen.so");
}

int main(void) {
    use_fake_driver();
    use_stand_in("fake_miopen.so");
    (void)unsetenv("WEBER_DEVICE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    is_over =
        mmap(NULL, sizeof *is_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (is_over == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_go_to_the_library),
        cmocka_unit_test(a_shape_is_asked_for_once),
        cmocka_unit_test(plans_with_it_are_no_graphs),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(a_library_that_is_not_there_is_done_without),
        cmocka_unit_test(a_library_without_the_functions_is_done_without),
        cmocka_unit_test(an_old_library_is_done_without),
        cmocka_unit_test(filters_that_change_from_run_to_run_are_left_to_the_text),
        cmocka_unit_test(a_library_of_another_runtime_is_done_without),
    };
    return cmocka_run_group_tests_name("backends/amdgpu/test_convolutions", tests, NULL, NULL);
}
