/* Which programs behind a product are found to be an epilogue of cuBLASLt: asked of the programs
 * that plans really have, by a backend that is the CPU and looks at what it is given. */
#include "backends/cuda/behind.h"
#include "backends/cuda/mlp.h"
#include "backends/cuda/no_vendor.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "lt/epilogue.h"
#include "ops/build.h"
#include "support/scoped.h"

#include <math.h>
#include <pthread.h>

static wb_backend spy;
static const wb_device *spied;
static wb_epilogue found;
static wb_call seen;
static int products, kinds; /* asked for; all that were found */
static int refused;         /* kinds */

static wb_status info(int index, wb_device_info *i) {
    const wb_status status = wb_cpu_backend.info(index, i);
    i->fuses_backward = true;
    return status;
}

static bool has_one_store_each(const wb_program *p) {
    uint64_t written = 0;
    for (int32_t i = 0; i < p->ninstructions; i++) {
        if (p->instructions[i].code != WB_CODE_store) continue;
        const uint64_t argument = (uint64_t)1 << p->accesses[p->instructions[i].index].argument;
        if (written & argument) return false;
        written |= argument;
    }
    return true;
}

/* Takes what the libraries take, as far as the CPU can; what it leaves is planned apart. */
static void *lower(void *context, const wb_call *call, const wb_program *epilogue, int split) {
    const bool is_product = call->kind == WB_CALL_matmul;
    if (is_product && epilogue) {
        assert_true(has_one_store_each(epilogue));
        if (!wb_epilogue_find(call, epilogue, split, &found)) return NULL;
        const bool is_left = found.kind & WB_EPILOGUE_AUX && found.aux == call->result_argument;
        assert_true(call->is_result_private || is_left); /* else the library does not write it */
        if (found.kind & refused) return NULL;
        kinds |= found.kind;
        if (epilogue->reduced) return NULL;
    }
    if (is_product) products++, seen = *call;
    return wb_cpu_backend.lower(context, call, epilogue, split);
}

static wb_array *numbers(wb_dtype dtype, int64_t rows, int64_t columns) {
    wb_array *x = columns ? wb_uniform(dtype, rows, columns) : wb_uniform(dtype, rows);
    wb_array *there = wb_to(spied, x, .eltype = WB_ELTYPE_PRESERVE);
    wb_array *const roots[] = {there};
    assert_int_equal(wb_evaluate(1, roots), WB_OK);
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
/* A leaf, which may begin anywhere. */
static wb_array *times_slope(wb_array *x, wb_array *b) {
    (void)b;
    return wb_mul(x, wb_gelu_slope(numbers(WB_F32, wb_size(x, 0), wb_size(x, 1)), 0.044715));
}
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
    {"gelu's slope of a leaf", WB_F32, times_slope, WB_EPILOGUE_NONE},
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
        assert_int_equal(wb_evaluate(1, &y), WB_OK);
        assert_int_equal(products, 1);
        if (found.kind != rows[i].kind)
            fail_msg("%s: kind %d, not %d", rows[i].name, (int)found.kind, (int)rows[i].kind);
    }
}

/* ---- training ---- */

static wb_array *masked_gelu(wb_array *x) {
    return wb_mul(wb_gelu(x), wb_gt(wb_sin(x), wb_number(0)));
}
static wb_array *twice_relu(wb_array *x) { return wb_mul_number(wb_relu(x), 2); }
static wb_array *above_half(wb_array *x) { return wb_max(x, wb_number(0.5)); }
static wb_array *normalised_gelu(wb_array *x) { return wb_softmax(wb_gelu(x)); }
static wb_array *other_gelu(wb_array *x) { /* by another number */
    return wb_mul(wb_mul_number(x, 0.5), wb_add_number(wb_tanh(wb_mul_number(x, 0.8)), 1));
}

typedef struct step {
    mlp mlp;
    int kinds; /* all that are found */
} step;

enum {
    FORWARD = WB_EPILOGUE_GELU_AUX_BIAS,
    BACKWARD = WB_EPILOGUE_DGELU_BGRAD,
};

/* type, activation, width; a bias, trained; a batch; what the activation is of is read, as a whole
 * or a slice of it */
static const step steps[] = {
    {{"gelu", WB_F32, wb_gelu, 16, 1, 1, 0, 0, 0}, FORWARD | BACKWARD},
    {{"gelu in f64", WB_F64, wb_gelu, 16, 1, 1, 0, 0, 0}, FORWARD | BACKWARD},
    {{"gelu, the bias fixed", WB_F32, wb_gelu, 16, 1, 0, 0, 0, 0}, FORWARD | WB_EPILOGUE_DGELU},
    {{"gelu of a batch", WB_F32, wb_gelu, 16, 1, 1, 1, 0, 0}, FORWARD | BACKWARD},
    {{"gelu of what is read", WB_F32, wb_gelu, 16, 1, 1, 0, 1, 0}, FORWARD | BACKWARD},
    {{"gelu of what is read in part", WB_F32, wb_gelu, 16, 1, 1, 0, 0, 1}, WB_EPILOGUE_NONE},
    {{"gelu without a bias", WB_F32, wb_gelu, 16, 0, 0, 0, 0, 0},
     WB_EPILOGUE_GELU_AUX | WB_EPILOGUE_DGELU},
    {{"gelu of a product that is read", WB_F32, wb_gelu, 16, 0, 0, 0, 1, 0},
     WB_EPILOGUE_GELU_AUX | WB_EPILOGUE_DGELU},
    {{"gelu of one read in part", WB_F32, wb_gelu, 16, 0, 0, 0, 0, 1}, WB_EPILOGUE_NONE},
    {{"relu", WB_F32, wb_relu, 16, 1, 1, 0, 0, 0},
     WB_EPILOGUE_RELU_AUX_BIAS | WB_EPILOGUE_DRELU_BGRAD},
    {{"relu in f64 of another width", WB_F64, wb_relu, 7, 1, 1, 0, 0, 0},
     WB_EPILOGUE_RELU_AUX_BIAS | WB_EPILOGUE_DRELU_BGRAD},
    {{"relu, the bias fixed", WB_F32, wb_relu, 16, 1, 0, 0, 0, 0},
     WB_EPILOGUE_RELU_AUX_BIAS | WB_EPILOGUE_DRELU},
    {{"relu without a bias", WB_F32, wb_relu, 16, 0, 0, 0, 0, 0},
     WB_EPILOGUE_RELU_AUX | WB_EPILOGUE_DRELU},
    {{"relu of a batch", WB_F32, wb_relu, 16, 1, 1, 1, 0, 0}, WB_EPILOGUE_RELU_BIAS},
    {{"relu of what is read", WB_F32, wb_relu, 16, 1, 1, 0, 1, 0}, WB_EPILOGUE_NONE},
    {{"relu twice", WB_F32, twice_relu, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"relu above another bound", WB_F32, above_half, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"gelu by erf", WB_F32, wb_gelu_erf, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"swish", WB_F32, wb_swish, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"tanh", WB_F32, wb_tanh, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"leakyrelu", WB_F32, wb_leakyrelu, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"gelu and a mask", WB_F32, masked_gelu, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
    {{"gelu, then a program of rows", WB_F32, normalised_gelu, 16, 1, 1, 0, 0, 0},
     WB_EPILOGUE_NONE},
    {{"much like gelu", WB_F32, other_gelu, 16, 1, 1, 0, 0, 0}, WB_EPILOGUE_NONE},
};

static void check_step(const step *s, int wanted) {
    double expected[MLP_MOST], got[MLP_MOST];
    const int64_t count = mlp_train(&s->mlp, wb_cpu_device(), expected);
    assert_true(count > 0);
    kinds = 0;
    assert_int_equal(mlp_train(&s->mlp, spied, got), count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) < 1e-4))
            fail_msg("%s: number %lld is %g, not %g", s->mlp.name, (long long)i, got[i],
                     expected[i]);
    if (kinds != wanted) fail_msg("%s: kinds %d, not %d", s->mlp.name, kinds, wanted);
}

static void epilogues_of_a_training_step_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) check_step(&steps[i], steps[i].kinds);
}

/* Where only the backward one is, the slope is made again behind the product. Other widths are
 * other plans. */
static void a_refused_epilogue_changes_no_number(void **state) {
    (void)state;
    static const struct {
        mlp_activation *f;
        int64_t width;
        int refused, kinds;
    } rows_of_it[] = {
        {wb_gelu, 15, WB_EPILOGUE_AUX | WB_EPILOGUE_DGELU, WB_EPILOGUE_NONE},
        {wb_gelu, 14, WB_EPILOGUE_AUX, WB_EPILOGUE_NONE},
        {wb_gelu, 13, WB_EPILOGUE_DGELU, FORWARD},
        {wb_relu, 15, WB_EPILOGUE_AUX | WB_EPILOGUE_DRELU, WB_EPILOGUE_RELU_BIAS},
        {wb_relu, 14, WB_EPILOGUE_AUX, WB_EPILOGUE_RELU_BIAS},
        {wb_relu, 13, WB_EPILOGUE_DRELU, WB_EPILOGUE_RELU_AUX_BIAS},
    };
    for (size_t i = 0; i < sizeof rows_of_it / sizeof *rows_of_it; i++) {
        step s = steps[0];
        s.mlp.f = rows_of_it[i].f;
        s.mlp.width = rows_of_it[i].width;
        refused = rows_of_it[i].refused;
        check_step(&s, rows_of_it[i].kinds);
    }
    refused = 0;
}

/* ---- networks ---- */

enum { LAYERS = 4, WEIGHTS = 3 * LAYERS, ARRAYS = WEIGHTS + LAYERS, COLUMNS = 6 };

static uint32_t dice;

static bool toss(uint32_t of) {
    dice = dice * 1664525u + 1013904223u;
    return (dice >> 16) % of == 0;
}

static wb_array *draw(const wb_device *device, int64_t rows, int64_t columns) {
    wb_array *x = wb_mul_number(wb_add_number(wb_uniform(WB_F64, rows, columns), -0.5), 2);
    x = wb_to(device, x, .eltype = WB_ELTYPE_PRESERVE);
    assert_int_equal(wb_eval(x), WB_OK);
    return x;
}

static wb_array *some_activation(wb_array *x) {
    if (!toss(3)) return toss(3) ? wb_relu(x) : wb_gelu(x);
    return toss(3) ? wb_relu(x) : toss(2) ? wb_swish(x) : wb_tanh(x);
}

/* Layers with and without biases, gates, residuals, norms; what is between them is read here and
 * there, and its gradients. Its numbers, and how many. */
static int64_t run_network(uint32_t seed, const wb_device *device, double *results) {
    static const int64_t widths[] = {5, 8, 16};
    wb_array *arrays[ARRAYS], *left[ARRAYS + LAYERS];
    int count = 0, read = 0;
    wb_scope_open();
    wb_seed(seed);
    dice = seed;
    const int64_t width = widths[seed % 3];
    for (int i = 0; i < WEIGHTS; i++) arrays[i] = draw(device, width, i % 3 == 1 ? 1 : width);
    wb_array *x = draw(device, width, COLUMNS), *target = draw(device, width, COLUMNS);
    wb_array *others[LAYERS];
    wb_scope_open();
    for (int i = 0; i < LAYERS; i++) {
        wb_array *before = x;
        x = wb_matmul(arrays[3 * i], x);
        if (!toss(4)) x = wb_add(x, arrays[3 * i + 1]);
        if (toss(4)) others[read++] = x;
        wb_array *gate = toss(8) ? wb_matmul(arrays[3 * i + 2], before) : NULL;
        if (!toss(5)) x = some_activation(x);
        arrays[WEIGHTS + i] = x;
        if (gate) x = wb_mul(x, gate);
        if (toss(6)) x = wb_add(x, before);
        if (toss(8)) x = wb_normalise(x, 1e-3, 0);
        if (toss(12)) x = wb_add(x, wb_flip(x, 0));
    }
    wb_array *loss = wb_sum(wb_square(wb_sub(x, target)));
    assert_int_equal(wb_gradient_of(loss, ARRAYS, arrays, left), WB_OK);
    for (int i = 0; i < ARRAYS; i++)
        if (left[i] && (i < WEIGHTS ? !toss(5) : toss(4))) left[count++] = left[i];
    for (int i = 0; i < read; i++) left[count++] = others[i];
    assert_int_equal(wb_scope_close_leaving(count, left), WB_OK);
    assert_int_equal(wb_evaluate(count, left), WB_OK);
    int64_t size = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(wb_read_f64(wb_cpu(left[i]), results + size, wb_count(left[i])), WB_OK);
        size += wb_count(left[i]);
    }
    assert_int_equal(wb_scope_close(), WB_OK);
    return size;
}

enum { MOST_NUMBERS = (ARRAYS + LAYERS) * 256 };

static void networks_come_out_the_same(void **state) {
    (void)state;
    static double expected[MOST_NUMBERS], got[MOST_NUMBERS];
    long fused = 0, masked = 0;
    for (uint32_t seed = 1; seed <= 400; seed++) {
        const int64_t count = run_network(seed, wb_cpu_device(), expected);
        kinds = 0;
        refused = seed % 5 == 0   ? WB_EPILOGUE_DGELU | WB_EPILOGUE_DRELU
                  : seed % 7 == 0 ? WB_EPILOGUE_AUX
                                  : 0;
        assert_int_equal(run_network(seed, spied, got), count);
        fused += (kinds & WB_EPILOGUE_DGELU) != 0;
        masked += (kinds & WB_EPILOGUE_DRELU) != 0;
        for (int64_t i = 0; i < count; i++)
            if (!(fabs(got[i] - expected[i]) <= 1e-9 * (1 + fabs(expected[i]))))
                fail_msg("seed %u: number %lld is %g, not %g", seed, (long long)i, got[i],
                         expected[i]);
    }
    refused = 0;
    print_message("%ld networks with a slope of gelu, %ld with a mask of relu\n", fused, masked);
    assert_true(fused > 60 && masked > 30);
}

static mlp small; /* is trained */

/* On a thread of its own, which has no plan yet. NULL: nothing wrong. */
static void *train_short_of_memory(void *at) {
    int64_t *n = at;
    double first[MLP_MOST], then[MLP_MOST];
    (void)wb_fail_allocation(*n);
    const int64_t count = mlp_train(&small, spied, first);
    (void)wb_fail_allocation(0);
    const wb_status status = wb_error_status();
    wb_clear_error();
    if (count < 0 && status != WB_ERROR_MEMORY) return "another error";
    const int64_t again = mlp_train(&small, spied, then);
    if (again < 0) return "the same step failed afterwards";
    if (count < 0) return NULL;
    *n = 0; /* there are fewer than n */
    return memcmp(first, then, sizeof *first * (size_t)count) == 0 ? NULL : "other numbers";
}

static void run_out_of_memory(mlp_activation *f) {
    int64_t tried = 0;
    small = steps[0].mlp;
    small.f = f;
    for (int64_t n = 1; n != 0; tried++) {
        int64_t at = n;
        pthread_t thread;
        void *wrong;
        assert_int_equal(pthread_create(&thread, NULL, train_short_of_memory, &at), 0);
        assert_int_equal(pthread_join(thread, &wrong), 0);
        if (wrong) fail_msg("allocation %lld: %s", (long long)n, (const char *)wrong);
        n = at ? n + 1 : 0;
    }
    assert_true(tried > 100);
}

static void memory_may_run_out_at_any_time(void **state) {
    (void)state;
    run_out_of_memory(wb_gelu);
    run_out_of_memory(wb_relu);
}

static void a_product_that_others_read_has_none(void **state) {
    (void)state;
    found.kind = WB_EPILOGUE_NONE;
    wb_array *x = product_of(WB_F32);
    wb_array *const both[] = {wb_relu(x), x};
    assert_int_equal(wb_evaluate(2, both), WB_OK);
    assert_int_equal(found.kind, WB_EPILOGUE_NONE);
    x = product_of(WB_F32);
    wb_array *const views[] = {wb_relu(x), wb_add(wb_slice(x, 1, 1, 2, 1), wb_number(1))};
    assert_int_equal(wb_evaluate(2, views), WB_OK);
    assert_int_equal(found.kind, WB_EPILOGUE_NONE);
}

/* What gelu is of lies beside the result anyway. */
static void gelu_may_leave_the_product_to_others(void **state) {
    (void)state;
    wb_array *x = product_of(WB_F32);
    wb_array *const both[] = {wb_gelu(x), x};
    assert_int_equal(wb_evaluate(2, both), WB_OK);
    assert_int_equal(found.kind, WB_EPILOGUE_GELU_AUX);
    assert_int_equal(found.aux, seen.result_argument);
    assert_false(seen.is_result_private);
}

static void alignment_goes_with_the_product(void **state) {
    (void)state;
    wb_array *a = numbers(WB_F32, 4, 4), *b = numbers(WB_F32, 4, 4);
    wb_array *const of_leaves[] = {wb_matmul(a, b)};
    assert_int_equal(wb_evaluate(1, of_leaves), WB_OK);
    assert_false(seen.is_aligned);
    wb_array *sum = wb_add(a, b), *twice = wb_mul_number(b, 2);
    wb_array *const of_results[] = {wb_matmul(sum, twice)};
    assert_int_equal(wb_evaluate(1, of_results), WB_OK);
    assert_true(seen.is_aligned);
    sum = wb_add(a, b), twice = wb_mul_number(wb_transpose(b), 3);
    wb_array *const of_a_slice[] = {
        wb_matmul(wb_slice(sum, 1, 1, 4, 1), wb_slice(twice, 0, 0, 3, 1))};
    assert_int_equal(wb_evaluate(1, of_a_slice), WB_OK);
    assert_false(seen.is_aligned); /* it begins 16 bytes in */
}

static void precision_goes_with_the_product(void **state) {
    (void)state;
    static const struct {
        const char *word;
        bool is_fast;
    } words[] = {{"high", true}, {"medium", true}, {"highest", false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        products = 0;
        assert_int_equal(wb_matmul_precision(words[i].word), WB_OK);
        wb_array *const roots[] = {product_of(WB_F32)};
        assert_int_equal(wb_evaluate(1, roots),
                         WB_OK); /* the same sizes: another plan all the same */
        assert_int_equal(seen.is_fast, words[i].is_fast);
        assert_int_equal(products, i < 2 ? i == 0 : 1);
    }
    (void)wb_matmul_precision("high");
    wb_array *const roots[] = {product_of(WB_F64)};
    assert_int_equal(wb_evaluate(1, roots), WB_OK);
    assert_false(seen.is_fast);
    (void)wb_matmul_precision("highest");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    spy = wb_cpu_backend;
    spy.name = "Spy";
    spy.lower = lower;
    spy.info = info;
    spied = wb_device_new(&spy, 0);
    if (!spied) return 1;
    const struct CMUnitTest tests[] = {
        TEST(epilogues_of_plans_are_found),         TEST(epilogues_of_a_training_step_are_found),
        TEST(a_refused_epilogue_changes_no_number), TEST(networks_come_out_the_same),
        TEST(memory_may_run_out_at_any_time),       TEST(a_product_that_others_read_has_none),
        TEST(gelu_may_leave_the_product_to_others), TEST(alignment_goes_with_the_product),
        TEST(precision_goes_with_the_product)};
    return cmocka_run_group_tests_name("backends/cuda/test_epilogue", tests, NULL, NULL);
}
