/* bench/transformer.c: the model that case e and GPT-2 are measured with computes what torch's
 * does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "support/support.h"
#include "transformer_values.h"

enum { PARAMETERS = sizeof gradients_of_torch / sizeof *gradients_of_torch };

static bench_case *open_case(const char *type) {
    char name[64];
    (void)snprintf(name, sizeof name, "e:%s,%s", SIZES, type);
    bench_case *c = bench_case_open(name);
    if (!c) fail_msg("%s", wb_error_message());
    return c;
}

/* ---- against torch ---- */

/* The sum of x times the numbers of a sequence, which are in torch's memory order: for a weight the
 * transposed one. */
static double projected(const char *path, wb_array *x, uint32_t sequence) {
    const int64_t count = wb_count(x);
    const bool turned = strstr(path, ".weight") != NULL;
    double *values = malloc((size_t)count * sizeof *values), sum = 0;
    float *numbers = malloc((size_t)count * sizeof *numbers);
    assert_non_null(values);
    assert_non_null(numbers);
    assert_int_equal(wb_read_f64(x, values, count), WB_OK);
    bench_matrix(sequence, 1, turned ? wb_size(x, 0) : 1, turned ? wb_size(x, 1) : count, numbers);
    for (int64_t i = 0; i < count; i++) sum += values[i] * (double)numbers[i];
    free(values), free(numbers);
    return sum;
}

static wb_gradients *gradients_of(bench_case *c, wb_array **loss) {
    wb_batch batch;
    wb_gradients *gradients;
    bench_case_batch(c, 0, &batch);
    *loss = wb_withgradient(bench_case_loss(c), bench_case_model(c), &batch, NULL, &gradients);
    if (!*loss) fail_msg("%s", wb_error_message());
    return gradients;
}

typedef struct row {
    const char *name, *type;
    double loss,
        gradient; /* relative distance from torch's, absolute of projections, which are near 0.1 */
} row;

static const row rows[] = {
    {"in f64 losses and gradients are torch's", "f64", 1e-12, 1e-12},
    {"in f32 they are, but for rounding", "f32", 1e-6, 2e-6},
    {"with products of bf16 they are near", "bf16", 2e-3, 1e-2},
    {"with products of f16 they are nearer", "f16", 2e-4, 2e-3},
};

static void losses_and_gradients(void **state) {
    const row *r = *state;
    wb_array *loss;
    bench_case *c = open_case(r->type);
    const wb_gradients *gradients = gradients_of(c, &loss);
    assert_true(fabs(wb_item(loss) / losses[0] - 1) <= r->loss);
    for (uint32_t k = 0; k < PARAMETERS; k++) {
        const char *path = gradients_of_torch[k].path;
        const double wanted = gradients_of_torch[k].projection;
        wb_array *g = wb_gradients_get(gradients, path);
        if (!g) fail_msg("%s: %s", path, wb_error_message());
        const double got = projected(path, g, PROJECTION + k);
        if (!(fabs(got - wanted) <= r->gradient))
            fail_msg("%s: projection %.17g, torch's is %.17g", path, got, wanted);
    }
    bench_case_close(c);
}

static void steps(void **state) {
    const row *r = *state;
    bench_case *c = open_case(r->type);
    for (int i = 0; i < STEPS; i++) {
        bench_case_step(c);
        const double loss = bench_case_result(c).loss;
        if (!(fabs(loss / losses[i] - 1) <= 2 * r->loss))
            fail_msg("step %d: loss %.17g, torch's is %.17g", i + 1, loss, losses[i]);
    }
    bench_case_close(c);
}

/* ---- against differences ---- */

static double loss_at(bench_case *c, const char *path, const double *values, int64_t count,
                      const int64_t *sizes, int ndim) {
    wb_batch batch;
    (void)count;
    wb_scope_open();
    bench_case_batch(c, 0, &batch);
    wb_set(bench_case_model(c), path, wb_from_make(WB_F64, values, ndim, sizes));
    const double loss = wb_item(bench_case_loss(c)(bench_case_model(c), &batch, NULL));
    wb_scope_close();
    return loss;
}

/* Some elements of each gradient. */
static void gradients_are_differences(void **state) {
    enum { ELEMENTS = 3, MOST = 4096 };
    const double h = 1e-5;
    static double values[MOST], gradient[MOST];
    (void)state;
    test_random random = {test_seed()};
    wb_array *loss;
    bench_case *c = open_case("f64");
    const wb_gradients *gradients = gradients_of(c, &loss);
    for (int k = 0; k < PARAMETERS; k++) {
        const char *path = gradients_of_torch[k].path;
        wb_array *p = wb_get(bench_case_model(c), path), *g = wb_gradients_get(gradients, path);
        const int64_t count = wb_count(p);
        assert_true(count <= MOST);
        assert_int_equal(wb_read_f64(p, values, count), WB_OK);
        assert_int_equal(wb_read_f64(g, gradient, count), WB_OK);
        for (int e = 0; e < ELEMENTS; e++) {
            const int64_t i = random_below(&random, count);
            const double middle = values[i];
            values[i] = middle + h;
            const double above = loss_at(c, path, values, count, wb_sizes(p), wb_ndim(p));
            values[i] = middle - h;
            const double below = loss_at(c, path, values, count, wb_sizes(p), wb_ndim(p));
            values[i] = middle;
            const double wanted = (above - below) / (2 * h);
            if (!(fabs(gradient[i] - wanted) <= 1e-8))
                fail_msg("%s, element %lld: %.12g, by differences %.12g", path, (long long)i,
                         gradient[i], wanted);
        }
        (void)loss_at(c, path, values, count, wb_sizes(p), wb_ndim(p));
    }
    bench_case_close(c);
}

/* ---- what holds of the model ---- */

/* Logits at a place depend on no later symbol. */
static void nothing_later_is_seen(void **state) {
    enum { LAYERS = 2, T = 8, SYMBOLS = 11 };
    (void)state;
    bench_case *c = open_case("f32");
    int32_t x[2 * T];
    static float before[SYMBOLS * T * 2], after[SYMBOLS * T * 2];
    bench_labels(SEQUENCE_INPUT, SYMBOLS, (int64_t)2 * T, x);
    wb_layer *model = bench_case_model(c);
    assert_int_equal(
        wb_read_f32(wb_apply(model, wb_from(WB_I32, x, T, 2)), before, SYMBOLS * T * 2), WB_OK);
    x[5] = (x[5] + 1) % SYMBOLS;
    assert_int_equal(wb_read_f32(wb_apply(model, wb_from(WB_I32, x, T, 2)), after, SYMBOLS * T * 2),
                     WB_OK);
    assert_memory_equal(before, after, sizeof(float) * 5 * SYMBOLS);
    for (int t = 5; t < T; t++)
        assert_memory_not_equal(before + t * SYMBOLS, after + t * SYMBOLS, sizeof(float) * SYMBOLS);
    assert_memory_equal(before + T * SYMBOLS, after + T * SYMBOLS, sizeof(float) * T * SYMBOLS);
    bench_case_close(c);
}

static void sizes_are_read(void **state) {
    (void)state;
    bench_transformer s;
    assert_true(bench_transformer_parse("12,768,12,1024,50257,8,bf16", &s));
    assert_int_equal(s.layers, 12);
    assert_int_equal(s.width, 768);
    assert_int_equal(s.heads, 12);
    assert_int_equal(s.context, 1024);
    assert_int_equal(s.symbols, 50257);
    assert_int_equal(s.batch, 8);
    assert_int_equal(s.compute, WB_BF16);
    assert_int_equal(s.stream, WB_F32);
    assert_false(bench_transformer_parse("12,768,12,1024,50257,8", &s));
    assert_false(bench_transformer_parse("12,768,12,1024,50257,8,i32", &s));
    assert_false(bench_transformer_parse("12,768,7,1024,50257,8,f32", &s));
    assert_false(bench_transformer_parse("0,768,12,1024,50257,8,f32", &s));
}

int main(void) {
    struct CMUnitTest tests[16] = {
        TEST(gradients_are_differences),
        TEST(nothing_later_is_seen),
        TEST(sizes_are_read),
    };
    size_t count = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tests[count++] = TEST_ROW(&rows[i], losses_and_gradients);
        tests[count++] = TEST_ROW(&rows[i], steps);
    }
    return _cmocka_run_group_tests("transformer", tests, count, NULL, NULL);
}
