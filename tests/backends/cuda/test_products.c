/* Matrix products of the CUDA plugin (and AMD's) by the library that stands for cuBLASLt
 * (hipBLASLt), over the fake driver: what it takes, what it leaves to the texts, and that the
 * numbers are the CPU's either way. Each test is a process of its own, since libraries are opened
 * once. */
#include "backends/cuda/behind.h"
#include "backends/cuda/mlp.h"
#include "stand_in.h"

#include <sys/mman.h>

#include "array/array.h"
#include "support/support.h"

/* ---- products ---- */

static wb_array *nothing(wb_array *x, wb_array *b) {
    (void)b;
    return x;
}

enum { M = 8, K = 3, N = 4, BATCH = 2 };

typedef struct row {
    const char *name;
    wb_dtype dtype;
    expression *behind;
    bool is_batch, is_taken, is_fused;
} row;

static const row rows[] = {
    {"f32", WB_F32, nothing, false, true, false},
    {"f64", WB_F64, nothing, false, true, false},
    {"bf16", WB_BF16, nothing, false, true, false},
    {"f16, which is refused", WB_F16, nothing, false, false, false},
    {"a batch", WB_F32, nothing, true, true, false},
    {"a bias", WB_F32, bias, false, true, true},
    {"a bias in bf16", WB_BF16, bias, false, true, true},
    {"a bias behind a batch", WB_F32, bias, true, true, true},
    {"relu", WB_F32, relu, false, true, true},
    {"relu of a bias", WB_F32, relu_bias, false, true, true},
    {"gelu", WB_F32, gelu, false, true, true},
    {"gelu of a bias in f64", WB_F64, gelu_bias, false, true, true},
    {"gelu by erf: not theirs", WB_F32, gelu_by_erf, false, true, false},
    {"gelu of a refused one", WB_F16, gelu_bias, false, false, false},
};

enum { ROWS = sizeof rows / sizeof *rows, MOST = M * N * BATCH };

static wb_array *numbers(const row *r, const wb_device *device, int64_t high, int64_t wide) {
    wb_seed(7);
    wb_array *x = wide == 0     ? wb_uniform(WB_F32, high)
                  : r->is_batch ? wb_uniform(WB_F32, high, wide, BATCH)
                                : wb_uniform(WB_F32, high, wide);
    x = wb_cast(wb_add_number(wb_mul_number(x, 4), -2), r->dtype);
    return wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE);
}

/* False with the library's error. */
static bool compute(const row *r, const wb_device *device, double *result) {
    const int64_t count = M * N * (r->is_batch ? BATCH : 1);
    wb_scope_open();
    wb_array *a = numbers(r, device, M, K), *b = numbers(r, device, K, N);
    wb_array *c = numbers(r, device, M, 0);
    bool done = wb_read_f64(wb_sum(a), result, 1) == WB_OK; /* operands are there first */
    done = done && wb_read_f64(wb_sum(b), result, 1) == WB_OK;
    done = done && wb_read_f64(wb_sum(c), result, 1) == WB_OK;
    wb_scope_open(); /* so that nobody can read the product itself afterwards */
    wb_array *y = r->behind(wb_matmul(a, b), c);
    done = wb_scope_close_leaving(1, &y) == WB_OK && done;
    done = done && wb_read_f64(wb_cast(wb_cpu(y), WB_F64), result, count) == WB_OK;
    (void)wb_scope_close();
    return done;
}

static bool agree(const row *r, const double *got, const double *wanted) {
    static const double error[WB_DTYPE_COUNT] = {
        [WB_F32] = 1e-5, [WB_F64] = 1e-7, [WB_F16] = 1e-2, [WB_BF16] = 1e-1};
    for (int i = 0; i < M * N * (r->is_batch ? BATCH : 1); i++)
        if (!(fabs(got[i] - wanted[i]) <= error[r->dtype])) {
            print_error("%s: element %d is %g, not %g\n", r->name, i, got[i], wanted[i]);
            return false;
        }
    return true;
}

/* The row on the device and on the CPU: 0 where both agree, 1 where not, -1 with the library's
 * error. */
static int compare(const row *r) {
    double wanted[MOST], got[MOST];
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    if (!gpu || !compute(r, wb_cpu_device(), wanted)) return 1;
    if (!compute(r, gpu, got)) return -1;
    return !agree(r, got, wanted);
}

static int compare_all(void) {
    const long *products = counter("fake_lt_products"), *fused = counter("fake_lt_fused");
    int faults = 0;
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        const long products_before = *products, fused_before = *fused;
        const int fault = compare(r);
        if (fault < 0) print_error("%s: %s\n", r->name, wb_error_message());
        const bool is_right =
            *products - products_before == r->is_taken && *fused - fused_before == r->is_fused;
        if (!is_right)
            print_error("%s: taken %ld, fused %ld\n", r->name, *products - products_before,
                        *fused - fused_before);
        faults += fault != 0 || !is_right;
    }
    if (!wb_functional_part(BACKEND, LT_PART)) faults++, print_error("%s\n", wb_reason());
    return faults + (fake_count_now().complaints != 0);
}

static void products_go_to_the_library(void **state) {
    (void)state;
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_all), 0);
}

/* ---- columns that are not aligned ---- */

static const struct padded {
    const char *name;
    wb_dtype dtype;
    int64_t m, n, k;
    bool transpose_a, transpose_b, is_biased, is_aligned;
} padded_rows[] = {
    {"A and C", WB_BF16, 15, 880, 880, false, false, false, .is_aligned = true},
    {"A and C with a bias", WB_BF16, 15, 880, 880, false, false, true, .is_aligned = false},
    {"A and B", WB_BF16, 1168, 1168, 11, false, false, false, .is_aligned = true},
    {"A and B transposed", WB_BF16, 1168, 1168, 11, true, true, false, .is_aligned = true},
    {"B and C", WB_BF16, 1200, 11, 1200, false, true, false, .is_aligned = true},
    {"not worth it", WB_BF16, 11, 64, 64, false, false, false, .is_aligned = false},
    {"f32, which has no such kernels", WB_F32, 11, 816, 816, false, false, false,
     .is_aligned = false},
};

static wb_array *random_matrix(const struct padded *r, const wb_device *device, int64_t high,
                               int64_t wide, bool is_transposed) {
    wb_array *x = is_transposed ? wb_uniform(WB_F32, wide, high) : wb_uniform(WB_F32, high, wide);
    x = wb_to(device, wb_cast(wb_add_number(x, -0.5), r->dtype), .eltype = WB_ELTYPE_PRESERVE);
    return wb_eval(x) == WB_OK && is_transposed ? wb_transpose(x) : x;
}

static wb_array *multiply_padded(const struct padded *r, const wb_device *device) {
    wb_seed(7);
    wb_array *a = random_matrix(r, device, r->m, r->k, r->transpose_a);
    wb_array *b = random_matrix(r, device, r->k, r->n, r->transpose_b);
    wb_array *c = random_matrix(r, device, r->m, 1, false), *y = NULL;
    wb_scope_open(); /* so that nobody can read the product itself afterwards */
    y = wb_matmul(a, b);
    if (r->is_biased) y = wb_relu(wb_add(y, wb_reshape(c, r->m)));
    (void)wb_scope_close_leaving(1, &y);
    return wb_cast(wb_cpu(y), WB_F32);
}

static int compare_padded(const struct padded *r) {
    const long *products = counter("fake_lt_products"), *aligned = counter("fake_lt_columns");
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    double apart = (double)NAN;
    wb_scope_open();
    wb_array *wanted = multiply_padded(r, wb_cpu_device());
    const long products_before = *products, aligned_before = *aligned;
    wb_array *got = gpu ? multiply_padded(r, gpu) : NULL;
    (void)wb_read_f64(wb_maximum(wb_abs(wb_sub(got, wanted))), &apart, 1);
    (void)wb_scope_close();
    const bool is_right = apart <= 0.1 && *products == products_before + 1 &&
                          (*aligned > aligned_before) == r->is_aligned;
    if (!is_right)
        print_error("%s: %g apart, %ld products, %ld aligned; %s\n", r->name, apart,
                    *products - products_before, *aligned - aligned_before, wb_error_message());
    return !is_right;
}

static int compare_all_padded(void) {
    int faults = 0;
    for (size_t i = 0; i < sizeof padded_rows / sizeof *padded_rows; i++)
        faults += compare_padded(&padded_rows[i]);
    return faults + (fake_count_now().complaints != 0) + (*counter("fake_lt_invalid") != 0);
}

static void large_products_have_columns_that_are_aligned(void **state) {
    (void)state;
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_all_padded), 0);
}

/* ---- training ---- */

/* A training step stores gelu's slope beside its result, which no epilogue of the library does. */
static const struct step {
    mlp mlp;
    long fused; /* products with an epilogue */
} steps[] = {
    {{"gelu", WB_F32, wb_gelu, 16, false}, 0},
    {{"relu", WB_F32, wb_relu, 16, false}, 1},
    {{"relu in f64, of another width", WB_F64, wb_relu, 7, false}, 1},
    {{"relu in bf16", WB_BF16, wb_relu, 12, false}, 1},
    {{"relu in f16, which is refused", WB_F16, wb_relu, 16, false}, 0},
    {{"relu of a batch", WB_F32, wb_relu, 16, true}, 1},
};

/* As compare. */
static int compare_step(const mlp *m) {
    static const double error[WB_DTYPE_COUNT] = {
        [WB_F32] = 1e-4, [WB_F64] = 1e-7, [WB_F16] = 0.1, [WB_BF16] = 0.5};
    double wanted[MLP_MOST], got[MLP_MOST];
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    const int64_t count = gpu ? mlp_train(m, wb_cpu_device(), wanted) : 0;
    if (count <= 0) return 1;
    if (mlp_train(m, gpu, got) != count) return -1;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <= error[m->dtype])) {
            print_error("%s: number %lld is %g, not %g\n", m->name, (long long)i, got[i],
                        wanted[i]);
            return 1;
        }
    return 0;
}

static int compare_steps(void) {
    const long *fused = counter("fake_lt_fused");
    int faults = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct step *s = &steps[i];
        const long before = *fused;
        const int fault = compare_step(&s->mlp);
        if (fault < 0) print_error("%s: %s\n", s->mlp.name, wb_error_message());
        if (*fused - before != s->fused)
            print_error("%s: fused %ld, not %ld\n", s->mlp.name, *fused - before, s->fused);
        faults += fault != 0 || *fused - before != s->fused;
    }
    return faults + (fake_count_now().complaints != 0) + (*counter("fake_lt_invalid") != 0);
}

static void a_training_step_goes_to_the_library(void **state) {
    (void)state;
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_steps), 0);
}

/* ---- errors ---- */

static long failing;
static bool *is_over; /* shared with the children: there was no such call */

/* A product whose n-th call of the library fails: what comes before it runs is left to the text,
 * what comes later is an error that names the call. */
static int compare_failing(void) {
    long *left = counter("fake_lt_fail");
    *left = failing;
    const int fault = compare(&rows[9]);
    *is_over = *left > 0;
    if (fault >= 0 || *is_over) return fault != 0;
    if (strstr(wb_error_message(), GPU_NAME("cublasLtMat", "hipblasLtMat"))) return 0;
    print_error("call %ld: the message \"%s\" names no call\n", failing, wb_error_message());
    return 1;
}

static int train_failing(void) {
    long *left = counter("fake_lt_fail");
    *left = failing;
    const int fault = compare_step(&steps[1].mlp);
    *is_over = *left > 0;
    if (fault >= 0 || *is_over) return fault != 0;
    if (strstr(wb_error_message(), GPU_NAME("cublasLtMat", "hipblasLtMat"))) return 0;
    print_error("call %ld: the message \"%s\" names no call\n", failing, wb_error_message());
    return 1;
}

static void any_call_of_a_training_step_may_fail(void **state) {
    (void)state;
    for (failing = 1; !*is_over; failing++)
        assert_int_equal(run_with(LT_VARIABLE, stand_in, train_failing), 0);
    assert_true(failing > 40);
    *is_over = false;
}

static void any_call_may_fail(void **state) {
    (void)state;
    for (failing = 1; !*is_over; failing++)
        assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_failing), 0);
    assert_true(failing > 15);
}

/* ---- libraries that will not do ---- */

static const char *reason;

static int compare_without(void) {
    int faults = compare(&rows[0]) != 0;
    if (wb_functional_part(BACKEND, LT_PART) || !strstr(wb_reason(), reason)) faults++;
    if (faults) print_error("\"%s\", not \"%s\"\n", wb_reason(), reason);
    return faults;
}

static void a_library_that_is_not_there_is_done_without(void **state) {
    (void)state;
    reason = LT_VARIABLE "=/no/such.so cannot be opened: /no/such.so: cannot open";
    assert_int_equal(run_with(LT_VARIABLE, "/no/such.so", compare_without), 0);
}

static void a_library_without_the_functions_is_done_without(void **state) {
    (void)state;
    reason = GPU_NAME("cuBLASLt has no cublasLtGetVersion: CUDA 11.4 or later is needed",
                      "hipBLASLt has no hipblasLtGetVersion: ROCm 6.1 or later is needed");
    assert_int_equal(run_with(LT_VARIABLE, "libz.so.1", compare_without), 0);
}

#ifdef TEST_AMDGPU
static int compare_with_old(void) {
    *counter("fake_lt_version") = 600;
    return compare_without() + (*counter("fake_lt_products") != 0) +
           (*counter("fake_lt_live") != 0);
}

static void a_library_with_other_numbers_is_done_without(void **state) {
    (void)state;
    reason = "hipBLASLt 0.6.0: ROCm 6.1 or later is needed";
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_with_old), 0);
}
#endif

int main(void) {
    use_fake_driver();
    use_stand_in(LT_STAND_IN);
    (void)unsetenv("WEBER_DEVICE");
    (void)unsetenv("WEBER_EAGER"), (void)unsetenv("WEBER_FUSE"); /* epilogues are found in plans */
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    is_over =
        mmap(NULL, sizeof *is_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (is_over == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_go_to_the_library),
        cmocka_unit_test(large_products_have_columns_that_are_aligned),
        cmocka_unit_test(a_training_step_goes_to_the_library),
        cmocka_unit_test(any_call_of_a_training_step_may_fail),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(a_library_that_is_not_there_is_done_without),
        cmocka_unit_test(a_library_without_the_functions_is_done_without),
#ifdef TEST_AMDGPU
        cmocka_unit_test(a_library_with_other_numbers_is_done_without),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
