/* Attention of the CUDA plugin (and AMD's) by products of the library that stands for cuBLASLt
 * (hipBLASLt), over the fake driver: what is large enough goes there, and the numbers are the
 * CPU's. Each test is a process of its own, since libraries are opened once. */
#include "stand_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

typedef struct row {
    const char *name;
    wb_dtype dtype;
    int64_t features, values, queries, keys, heads, kv_heads, batch;
    bool is_causal, has_mask, has_bias, is_sliced;
    int products; /* 7 for each entry of the batch, two of them forward; 0: a text */
} row;

static const row rows[] = {
    {"causal heads", WB_F32, 32, 16, 512, 512, 8, 8, 2, .is_causal = true, .products = 14},
    {"a mask and a bias", WB_F32, 64, 64, 512, 521, 4, 4, 2, .has_mask = true, .has_bias = true,
     .products = 14},
    {"a head, whose entries are taken together", WB_F32, 32, 32, 512, 516, 1, 1, 8, .products = 7},
    {"rows that a group shares", WB_F32, 64, 8, 1030, 1035, 1, 1, 1, .is_causal = true,
     .products = 7},
    {"slices", WB_F32, 32, 32, 512, 512, 8, 8, 1, .is_causal = true, .is_sliced = true,
     .products = 7},
    {"f64", WB_F64, 32, 32, 512, 512, 8, 8, 1, .is_causal = true, .products = 7},
    {"bf16", WB_BF16, 32, 32, 512, 512, 8, 8, 1, .is_causal = true, .products = 7},
    {"bf16 with a mask", WB_BF16, 64, 64, 500, 600, 4, 4, 1, .has_mask = true, .products = 7},
    {"few operations", WB_F32, 32, 32, 64, 64, 8, 8, 1, .products = 0},
    {"heads that share keys", WB_F32, 32, 32, 512, 512, 8, 4, 1, .products = 0},
};

/* Where there is room for the scores of half of the heads: 5 products for each half, backward. */
static const row cut_rows[] = {
    {"blocks of heads", WB_F32, 64, 64, 512, 512, 8, 8, 2, .has_mask = true, .has_bias = true,
     .products = 2 * 12},
    {"blocks of entries", WB_F32, 64, 64, 512, 512, 1, 1, 8, .has_mask = true, .has_bias = true,
     .products = 12},
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    CUT_ROWS = sizeof cut_rows / sizeof *cut_rows,
    RESULTS = 4
};

static wb_array *numbers(const row *r, const wb_device *device, int64_t features, int64_t length) {
    wb_array *x =
        wb_add_number(wb_mul_number(wb_uniform(WB_F32, features, length, r->batch), 4), -2);
    return wb_to(device, wb_cast(x, r->dtype), .eltype = WB_ELTYPE_PRESERVE);
}

/* Some keys are hidden from every query; the query 3 sees none. */
static wb_array *mask_of(const row *r, const wb_device *device) {
    wb_array *key = wb_iota(WB_I32, 0, r->keys, r->queries, r->heads),
             *query = wb_iota(WB_I32, 1, r->keys, r->queries, r->heads);
    wb_array *seen = wb_and(wb_gt(key, wb_number(5)), wb_ne(query, wb_number(3)));
    return wb_to(device, seen, .eltype = WB_ELTYPE_PRESERVE);
}

static bool compute(const row *r, const wb_device *device, wb_array *results[RESULTS]) {
    const int64_t dk = r->features * r->heads;
    wb_seed(3);
    wb_array *x[3] = {numbers(r, device, dk, r->queries),
                      numbers(r, device, r->features * r->kv_heads, r->keys),
                      numbers(r, device, r->values * r->kv_heads, r->keys)};
    wb_array *of[3] = {x[0], x[1], x[2]}, *mask = r->has_mask ? mask_of(r, device) : NULL,
             *bias = NULL;
    if (r->is_sliced) {
        wb_array *all = wb_concat(0, x[0], x[1], x[2]);
        for (int i = 0; i < 3; i++) of[i] = wb_slice(all, 0, i * dk, (i + 1) * dk, 1);
    }
    if (r->has_bias)
        bias = wb_to(device, wb_uniform(WB_F32, r->keys, r->queries, 1, r->batch),
                     .eltype = WB_ELTYPE_PRESERVE);
    results[0] = wb_attention(of[0], of[1], of[2], .heads = r->heads, .kv_heads = r->kv_heads,
                              .mask = mask, .bias = bias, .causal = r->is_causal);
    wb_status status =
        wb_gradient_of(wb_sum(wb_square(wb_cast(results[0], WB_F32))), 3, x, results + 1);
    if (status == WB_OK) status = wb_eval(results[0], results[1], results[2], results[3]);
    for (int i = 0; i < RESULTS && status == WB_OK; i++)
        results[i] = wb_cpu(wb_cast(results[i], WB_F64));
    return status == WB_OK && wb_eval(results[0], results[1], results[2], results[3]) == WB_OK;
}

/* The largest difference in parts of the largest number. */
static double difference(wb_array *a, wb_array *b) {
    double apart = (double)NAN, most = (double)NAN;
    (void)wb_read_f64(wb_maximum(wb_abs(wb_sub(a, b))), &apart, 1);
    (void)wb_read_f64(wb_maximum(wb_abs(b)), &most, 1);
    return apart / most;
}

static int compare(const row *r) {
    const long *products = counter("fake_lt_products");
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    wb_array *wanted[RESULTS], *got[RESULTS];
    const double most = r->dtype == WB_BF16 ? 0.03 : r->dtype == WB_F64 ? 1e-12 : 2e-5;
    int faults = 0;
    wb_scope_open();
    const long before = *products;
    if (!gpu || !compute(r, wb_cpu_device(), wanted) || !compute(r, gpu, got)) {
        print_error("%s: %s\n", r->name, wb_error_message());
        faults++;
    }
    for (int i = 0; i < RESULTS && faults == 0; i++)
        if (!(difference(got[i], wanted[i]) <= most)) {
            print_error("%s: result %d is %g apart\n", r->name, i, difference(got[i], wanted[i]));
            faults++;
        }
    if (*products - before != r->products) {
        print_error("%s: %ld products, not %d\n", r->name, *products - before, r->products);
        faults++;
    }
    (void)wb_scope_close();
    return faults;
}

static int compare_all(void) {
    int faults = 0;
    for (int i = 0; i < ROWS; i++) faults += compare(&rows[i]);
    return faults + (fake_count_now().complaints != 0) + (*counter("fake_lt_invalid") != 0);
}

static int compare_cut(void) {
    int faults = 0;
    for (int i = 0; i < CUT_ROWS; i++) faults += compare(&cut_rows[i]);
    return faults + (fake_count_now().complaints != 0) + (*counter("fake_lt_invalid") != 0);
}

static void scores_for_which_there_is_no_room_are_cut(void **state) {
    (void)state;
    (void)setenv("FAKE_CUDA_MEMORY", "800000000", 1); /* of which 1/64 may be scores */
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_cut), 0);
}

static long failing;

/* What fails before it runs is left to the text; what fails then is an error that names the
 * call. */
static int compare_failing(void) {
    *counter("fake_lt_fail") = failing;
    const row *r = &rows[failing % 2 ? 4 : 6]; /* slices; bf16 */
    const wb_device *gpu = wb_get_device(BACKEND, 0);
    wb_array *wanted[RESULTS], *got[RESULTS];
    int faults = 0;
    wb_scope_open();
    if (!gpu || !compute(r, wb_cpu_device(), wanted)) return 1;
    if (!compute(r, gpu, got)) {
        faults += !strstr(wb_error_message(), GPU_NAME("cublasLt", "hipblasLt"));
        if (faults) print_error("call %ld: \"%s\" names no call\n", failing, wb_error_message());
    } else {
        for (int i = 0; i < RESULTS; i++) faults += !(difference(got[i], wanted[i]) <= 0.03);
    }
    (void)wb_scope_close();
    return faults;
}

static void any_call_may_fail(void **state) {
    (void)state;
    for (failing = 1; failing < 60; failing += 4)
        assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_failing), 0);
}

static void large_attention_is_computed_by_products(void **state) {
    (void)state;
    (void)setenv("FAKE_CUDA_MEMORY", "4000000000", 1);
    assert_int_equal(run_with(LT_VARIABLE, stand_in, compare_all), 0);
}

int main(void) {
    use_fake_driver();
    use_stand_in(LT_STAND_IN);
    (void)unsetenv("WEBER_DEVICE");
    (void)setenv("WEBER_BACKENDS", BACKEND, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_attention_is_computed_by_products),
                                       cmocka_unit_test(scores_for_which_there_is_no_room_are_cut),
                                       cmocka_unit_test(any_call_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
