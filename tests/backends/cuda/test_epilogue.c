/* Which programs after a product are recognised as an epilogue of cuBLASLt: asked of the programs
 * that plans really have, by a backend that is the CPU and looks at what it is given. */
#include "backends/cuda/behind.h"
#include "backends/cuda/no_vendor.h"
#include "evaluate/evaluate.h"
#include "lt/epilogue.h"
#include "support/scoped.h"

static wb_backend spy;
static const wb_device *spied;
static wb_epilogue found;
static wb_call seen;
static int products; /* asked for */

/* Takes what the libraries take, as far as the CPU can; what it leaves is planned apart. */
static void *lower(void *context, const wb_call *call, const wb_program *epilogue, int split) {
    const bool is_product = call->kind == WB_CALL_matmul;
    if (is_product && epilogue) {
        if (!wb_epilogue_find(call, epilogue, split, &found)) return NULL;
        assert_true(call->is_result_private); /* else the library does not write it */
    }
    if (is_product) products++, seen = *call;
    return wb_cpu_backend.lower(context, call, epilogue, split);
}

static bool takes(void *context, const char *name, const wb_call *call) {
    return call ? wb_cpu_backend.takes(context, name, call) : wb_epilogue_takes(name);
}

static wb_array *numbers(wb_dtype dtype, int64_t rows, int64_t columns) {
    wb_array *x = columns ? wb_uniform(dtype, rows, columns) : wb_uniform(dtype, rows);
    wb_array *there = wb_to(spied, x, .eltype = WB_ELTYPE_PRESERVE);
    wb_array *const roots[] = {there};
    assert_int_equal(wb_evaluate_roots(1, roots), WB_OK);
    return there;
}

static wb_array *bias_first(wb_array *x, wb_array *b) { return wb_add(b, x); }
static wb_array *leaky(wb_array *x, wb_array *b) { return wb_leakyrelu(wb_add(x, b)); }
static wb_array *above_one(wb_array *x, wb_array *b) {
    (void)b;
    return wb_max(x, wb_number(1));
}
static wb_array *doubled(wb_array *x, wb_array *b) {
    (void)b;
    return wb_add(x, x);
}
static wb_array *along_columns(wb_array *x, wb_array *b) {
    return wb_add(x, wb_reshape(wb_slice(b, 0, 0, wb_size(x, 1), 1), 1, wb_size(x, 1)));
}
static wb_array *bias_behind_relu(wb_array *x, wb_array *b) { return wb_add(wb_relu(x), b); }
static wb_array *relu_of_gelu(wb_array *x, wb_array *b) {
    (void)b;
    return wb_relu(wb_gelu(x));
}
static wb_array *gelu_and_more(wb_array *x, wb_array *b) { return wb_neg(gelu_bias(x, b)); }
static wb_array *cast(wb_array *x, wb_array *b) { return wb_cast(wb_add(x, b), WB_F64); }

typedef struct row {
    const char *name;
    wb_dtype dtype;
    expression *behind;
    int kind; /* wb_epilogue_kind */
} row;

static const row rows[] = {
    {"a bias", WB_F32, bias, WB_EPILOGUE_BIAS},
    {"a bias on the left", WB_F32, bias_first, WB_EPILOGUE_BIAS},
    {"relu", WB_F32, relu, WB_EPILOGUE_RELU},
    {"relu of a bias", WB_F32, relu_bias, WB_EPILOGUE_RELU_BIAS},
    {"gelu", WB_F32, gelu, WB_EPILOGUE_GELU},
    {"gelu of a bias", WB_F32, gelu_bias, WB_EPILOGUE_GELU_BIAS},
    {"gelu of a bias in f64", WB_F64, gelu_bias, WB_EPILOGUE_GELU_BIAS},
    {"gelu by erf is another function", WB_F32, gelu_by_erf, WB_EPILOGUE_NONE},
    {"leakyrelu", WB_F32, leaky, WB_EPILOGUE_NONE},
    {"another bound", WB_F32, above_one, WB_EPILOGUE_NONE},
    {"the product twice", WB_F32, doubled, WB_EPILOGUE_NONE},
    {"a bias for each column", WB_F32, along_columns, WB_EPILOGUE_NONE},
    {"a bias behind relu", WB_F32, bias_behind_relu, WB_EPILOGUE_NONE},
    {"relu of gelu", WB_F32, relu_of_gelu, WB_EPILOGUE_NONE},
    {"more behind gelu", WB_F32, gelu_and_more, WB_EPILOGUE_NONE},
    {"a result of another type", WB_F32, cast, WB_EPILOGUE_NONE},
};

static wb_array *product_of(wb_dtype dtype) {
    return wb_matmul(numbers(dtype, 5, 3), numbers(dtype, 3, 4));
}

static void epilogues_of_plans_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        products = 0;
        found.kind = WB_EPILOGUE_NONE;
        wb_scope_open(); /* so that nobody can read the product itself afterwards */
        wb_array *y = rows[i].behind(product_of(rows[i].dtype), numbers(rows[i].dtype, 5, 0));
        assert_int_equal(wb_scope_close_leaving(1, &y), WB_OK);
        assert_int_equal(wb_evaluate_roots(1, &y), WB_OK);
        assert_int_equal(products, 1);
        if (found.kind != rows[i].kind)
            fail_msg("%s: kind %d, not %d", rows[i].name, (int)found.kind, (int)rows[i].kind);
    }
}

static void a_product_that_others_read_has_none(void **state) {
    (void)state;
    found.kind = WB_EPILOGUE_NONE;
    wb_array *x = product_of(WB_F32);
    wb_array *const both[] = {wb_relu(x), x};
    assert_int_equal(wb_evaluate_roots(2, both), WB_OK);
    assert_int_equal(found.kind, WB_EPILOGUE_NONE);
    x = product_of(WB_F32);
    wb_array *const views[] = {wb_relu(x), wb_add(wb_slice(x, 1, 1, 2, 1), wb_number(1))};
    assert_int_equal(wb_evaluate_roots(2, views), WB_OK);
    assert_int_equal(found.kind, WB_EPILOGUE_NONE);
}

static void alignment_goes_with_the_product(void **state) {
    (void)state;
    wb_array *a = numbers(WB_F32, 4, 4), *b = numbers(WB_F32, 4, 4);
    wb_array *const of_leaves[] = {wb_matmul(a, b)};
    assert_int_equal(wb_evaluate_roots(1, of_leaves), WB_OK);
    assert_false(seen.is_aligned);
    wb_array *sum = wb_add(a, b), *twice = wb_mul_number(b, 2);
    wb_array *const of_results[] = {wb_matmul(sum, twice)};
    assert_int_equal(wb_evaluate_roots(1, of_results), WB_OK);
    assert_true(seen.is_aligned);
    sum = wb_add(a, b), twice = wb_mul_number(wb_transpose(b), 3);
    wb_array *const of_a_slice[] = {
        wb_matmul(wb_slice(sum, 1, 1, 4, 1), wb_slice(twice, 0, 0, 3, 1))};
    assert_int_equal(wb_evaluate_roots(1, of_a_slice), WB_OK);
    assert_false(seen.is_aligned); /* it begins 16 bytes in */
}

static void precision_goes_with_the_product(void **state) {
    (void)state;
    static const struct {
        const char *word;
        bool is_fast, may_round_to_bf16;
    } words[] = {{"high", true, false}, {"medium", true, true}, {"highest", false, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        products = 0;
        assert_int_equal(wb_matmul_precision(words[i].word), WB_OK);
        wb_array *const roots[] = {product_of(WB_F32)};
        assert_int_equal(wb_evaluate_roots(1, roots),
                         WB_OK); /* the same sizes: another plan all the same */
        assert_int_equal(seen.is_fast, words[i].is_fast);
        assert_int_equal(seen.may_round_to_bf16, words[i].may_round_to_bf16);
        assert_int_equal(products, 1);
    }
    (void)wb_matmul_precision("high");
    wb_array *const roots[] = {product_of(WB_F64)};
    assert_int_equal(wb_evaluate_roots(1, roots), WB_OK);
    assert_false(seen.is_fast);
    (void)wb_matmul_precision("highest");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    spy = wb_cpu_backend;
    spy.name = "Spy";
    spy.lower = lower, spy.takes = takes;
    spied = wb_device_new(&spy, 0);
    if (!spied) return 1;
    const struct CMUnitTest tests[] = {
        TEST(epilogues_of_plans_are_found), TEST(a_product_that_others_read_has_none),
        TEST(alignment_goes_with_the_product), TEST(precision_goes_with_the_product)};
    return cmocka_run_group_tests_name("backends/cuda/test_epilogue", tests, NULL, NULL);
}
