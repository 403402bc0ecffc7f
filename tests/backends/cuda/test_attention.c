/* Attention of the CUDA plugin by the library that stands for cuDNN, over the fake driver: what it
 * takes, what it leaves to the texts, and that the numbers are the CPU's either way. Each test is a
 * process of its own, since libraries are opened once. */
#include "stand_in.h"

#include <math.h>
#include <sys/mman.h>

#include "array/array.h"
#include "support/support.h"

typedef struct row {
    const char *name;
    wb_dtype dtype;
    int64_t features, values, queries, keys, heads, kv_heads;
    bool is_causal, has_mask, has_bias, is_shifted, is_taken;
    bool leaves_derivative; /* to the text */
    bool is_sliced;         /* q, k and v are parts of one product, which has so many columns */
    int64_t beside;         /* rows beside theirs */
} row;

static const row rows[] = {
    {"a head", WB_BF16, 8, 8, 5, 5, 1, 1, .is_taken = true},
    {"heads, other values, fewer queries", WB_BF16, 8, 16, 3, 7, 2, 2, .is_taken = true},
    {"causal", WB_BF16, 16, 8, 6, 6, 2, 2, .is_causal = true, .is_taken = true},
    {"groups of heads", WB_BF16, 8, 8, 4, 4, 4, 2, .is_causal = true, .is_taken = true},
    {"arrays that are not aligned", WB_BF16, 8, 8, 5, 5, 2, 1, .is_shifted = true,
     .is_taken = true},
    {"one key for one query", WB_BF16, 8, 8, 1, 1, 1, 1, .is_causal = true, .is_taken = true,
     .leaves_derivative = true},
    {"keys in whole tiles", WB_BF16, 8, 8, 4, 128, 2, 1, .is_taken = true},
    {"features of which the derivative has too many", WB_BF16, 136, 8, 3, 3, 1, 1, .is_taken = true,
     .leaves_derivative = true},
    {"parts of a product", WB_BF16, 16, 16, 5, 5, 4, 2, .is_causal = true, .is_taken = true,
     .is_sliced = true, .beside = 32},
    {"parts that begin anywhere", WB_BF16, 8, 8, 5, 5, 2, 1, .is_taken = true, .is_sliced = true,
     .beside = 8},
    {"parts whose columns are not aligned", WB_BF16, 32, 32, 6, 6, 1, 1, .is_taken = true,
     .is_sliced = true, .beside = 4},
    {"causal with more keys than queries", WB_BF16, 8, 8, 3, 5, 1, 1, .is_causal = true},
    {"features that are no multiple of 8", WB_BF16, 12, 8, 5, 5, 1, 1, .is_taken = false},
    {"a mask", WB_BF16, 8, 8, 5, 5, 1, 1, .has_mask = true},
    {"a bias", WB_BF16, 8, 8, 5, 5, 1, 1, .has_bias = true},
    {"f32", WB_F32, 8, 8, 5, 5, 1, 1, .is_taken = false},
    {"f16, which is refused", WB_F16, 8, 8, 5, 5, 1, 1, .is_taken = false},
};

enum { ROWS = sizeof rows / sizeof *rows, BATCH = 2, MOST = 8 * 1024 };

static wb_array *numbers(const row *r, const wb_device *device, int64_t features, int64_t length) {
    const int64_t shift = r->is_shifted ? 3 : 0, count = features * length * BATCH;
    wb_array *x = wb_add_number(wb_mul_number(wb_uniform(WB_F32, count + shift), 4), -2);
    x = wb_to(device, wb_cast(x, r->dtype), .eltype = WB_ELTYPE_PRESERVE);
    double unused[MOST];
    if (wb_read_f64(wb_cast(wb_cpu(x), WB_F64), unused, count + shift) != WB_OK) return NULL;
    return wb_reshape(wb_slice(x, 0, shift, count + shift, 1), features, length, BATCH);
}

/* Stored as it is, since a product makes it. */
static wb_array *through_a_product(wb_array *x) {
    const int64_t size = wb_size(x, 0);
    wb_array *one =
        wb_cast(wb_eq(wb_iota(WB_I32, 0, size, size), wb_iota(WB_I32, 1, size, size)), WB_BF16);
    return wb_matmul(wb_to(wb_device_of(x), one, .eltype = WB_ELTYPE_PRESERVE), x);
}

static void make(const row *r, const wb_device *device, wb_array *x[3]) {
    const int64_t q = r->features * r->heads, k = r->features * r->kv_heads,
                  v = r->values * r->kv_heads;
    if (!r->is_sliced) {
        x[0] = numbers(r, device, q, r->queries);
        x[1] = numbers(r, device, k, r->keys);
        x[2] = numbers(r, device, v, r->keys);
        return;
    }
    wb_array *wide = through_a_product(numbers(r, device, q + k + v + r->beside, r->keys));
    x[0] = wb_slice(wide, 0, 0, q, 1);
    x[1] = wb_slice(wide, 0, q, q + k, 1);
    x[2] = wb_slice(wide, 0, q + k, q + k + v, 1);
}

static wb_array *attend(const row *r, const wb_device *device, wb_array *q, wb_array *k,
                        wb_array *v) {
    wb_array *mask = NULL, *bias = NULL;
    if (r->has_mask) mask = wb_tril(wb_full(WB_BOOL, 1, r->keys, r->queries), 0);
    if (r->has_bias) bias = wb_iota(WB_F32, 0, r->keys, r->queries);
    if (mask) mask = wb_to(device, mask, .eltype = WB_ELTYPE_PRESERVE);
    if (bias) bias = wb_to(device, bias, .eltype = WB_ELTYPE_PRESERVE);
    return wb_attention(q, k, v, .heads = r->heads, .kv_heads = r->kv_heads, .mask = mask,
                        .bias = bias, .causal = r->is_causal);
}

/* The result, then the gradients; how many numbers, or -1 with the error. */
static int64_t compute(const row *r, const wb_device *device, double *results) {
    int64_t count = 0;
    wb_scope_open();
    wb_seed(3);
    wb_array *x[3];
    make(r, device, x);
    wb_array *y = attend(r, device, x[0], x[1], x[2]), *of[3] = {NULL};
    wb_status status = wb_gradient_of(wb_sum(wb_square(wb_cast(y, WB_F32))), 3, x, of);
    wb_array *list[] = {y, of[0], of[1], of[2]};
    if (status == WB_OK) status = wb_eval(y, of[0], of[1], of[2]);
    for (int i = 0; i < 4 && status == WB_OK; i++) {
        const int64_t size = wb_count(list[i]);
        status = wb_read_f64(wb_cast(wb_cpu(list[i]), WB_F64), results + count, size);
        count += size;
    }
    (void)wb_scope_close();
    return status == WB_OK ? count : -1;
}

/* 0 where the device agrees with the CPU, 1 where not, -1 with the library's error. */
static int compare(const row *r) {
    double wanted[MOST], got[MOST];
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    const int64_t count = gpu ? compute(r, wb_cpu_device(), wanted) : 0;
    if (count <= 0) return 1;
    if (compute(r, gpu, got) != count) return -1;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - wanted[i]) <=
              (r->dtype == WB_F32 ? 1e-5 : 0.06) +
                  (r->dtype == WB_F32 ? 1e-5 : 0.03) * fabs(wanted[i]))) {
            print_error("%s: number %lld is %g, not %g\n", r->name, (long long)i, got[i],
                        wanted[i]);
            return 1;
        }
    return 0;
}

/* As above; the library has to run so many graphs of each kind. */
static int compare_counted(const row *r, long forward, long backward) {
    const long *attentions = counter("fake_dnn_attentions"),
               *derivatives = counter("fake_dnn_derivatives");
    const long forward_before = *attentions, backward_before = *derivatives;
    const int fault = compare(r);
    const long forward_now = *attentions - forward_before,
               backward_now = *derivatives - backward_before;
    if (fault < 0) print_error("%s: %s\n", r->name, wb_error_message());
    if (forward_now == forward && backward_now == backward) return fault != 0;
    print_error("%s: %ld and %ld graphs, not %ld and %ld\n", r->name, forward_now, backward_now,
                forward, backward);
    return 1;
}

static int compare_all(void) {
    int faults = 0;
    for (int i = 0; i < ROWS; i++)
        faults += compare_counted(&rows[i], rows[i].is_taken,
                                  rows[i].is_taken && !rows[i].leaves_derivative);
    return faults + (fake_count_now().complaints != 0);
}

static void attention_goes_to_the_library(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_CUDNN_LIBRARY", stand_in, compare_all), 0);
}

/* cuDNN 9.10.0's attention is known to be wrong. */
static int compare_with_a_faulty_one(void) {
    *counter("fake_dnn_version") = 91000;
    return (compare(&rows[0]) != 0) + (*counter("fake_dnn_attentions") != 0);
}

static void a_faulty_version_is_done_without(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_CUDNN_LIBRARY", stand_in, compare_with_a_faulty_one), 0);
}

/* ---- what the derivative may store ---- */

static long bound, runs; /* in KiB; 0 runs: the text's */

static int compare_cut(void) {
    const row r = {"groups of heads", WB_BF16, 8, 8, 4, 4, 4, 2, .is_causal = true},
              odd = {"sums of 5 queries", WB_BF16, 8, 8, 5, 4, 4, 2, .is_taken = true};
    char memory[32];
    (void)snprintf(memory, sizeof memory, "%ld", bound * 1024 * 64);
    (void)setenv("FAKE_CUDA_MEMORY", memory, 1);
    return compare_counted(&r, 1, runs) + compare_counted(&odd, 1, runs == 1) +
           (fake_count_now().complaints != 0);
}

/* A query and a key take 16 KiB, since they stand for tiles of 64 and 128; two heads share keys, of
 * which there are two in each of two entries. */
static void large_derivatives_run_in_parts(void **state) {
    static const long bounds[][2] = {{140, 1}, {80, 2}, {40, 4}, {20, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        bound = bounds[i][0], runs = bounds[i][1];
        assert_int_equal(run_with("WEBER_CUDNN_LIBRARY", stand_in, compare_cut), 0);
    }
}

/* Until 9.15.0 it is wrong for keys that do not fill its tiles. */
static int compare_with_an_older_one(void) {
    *counter("fake_dnn_version") = 91400;
    const row filled = {"keys in whole tiles", WB_BF16, 8, 8, 4, 128, 2, 1, .is_taken = true};
    return compare_counted(&rows[0], 1, 0) + compare_counted(&filled, 1, 1);
}

static void an_older_version_differentiates_whole_tiles_only(void **state) {
    (void)state;
    assert_int_equal(run_with("WEBER_CUDNN_LIBRARY", stand_in, compare_with_an_older_one), 0);
}

/* ---- failing calls ---- */

static long failing;
static bool *is_over; /* shared with the children: there was no such call */

/* What fails before it runs is left to the text; what fails then is an error that names the
 * call. */
static int compare_failing(void) {
    long *left = counter("fake_dnn_fail");
    *left = failing;
    const int fault = compare(&rows[2]);
    *is_over = *left > 0;
    if (fault >= 0 || *is_over) return fault != 0;
    if (strstr(wb_error_message(), "cudnn")) return 0;
    print_error("call %ld: the message \"%s\" names no call\n", failing, wb_error_message());
    return 1;
}

static void any_call_may_fail(void **state) {
    (void)state;
    for (failing = 1; !*is_over; failing += failing < 300 ? 7 : 1)
        assert_int_equal(run_with("WEBER_CUDNN_LIBRARY", stand_in, compare_failing), 0);
    assert_true(failing > 300);
}

int main(void) {
    use_fake_driver();
    use_stand_in("fake_cudnn.so");
    (void)unsetenv("WEBER_DEVICE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    is_over =
        mmap(NULL, sizeof *is_over, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (is_over == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_goes_to_the_library),
        cmocka_unit_test(a_faulty_version_is_done_without),
        cmocka_unit_test(large_derivatives_run_in_parts),
        cmocka_unit_test(an_older_version_differentiates_whole_tiles_only),
        cmocka_unit_test(any_call_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
