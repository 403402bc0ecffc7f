/* src/ops/source.c: arrays from nothing, from C memory and from chance */
#include <pthread.h>

#include "base/memory.h"
#include "support/support.h"

static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8, WB_BOOL};

/* ---- one value, counting ---- */

static void full_of_every_type(void **state) {
    (void)state;
    for (int t = 0; t < 8; t++) {
        assert_int_equal(wb_dtype_of(wb_zeros(types[t], 2)), types[t]);
        assert_values(wb_zeros(types[t], 2, 2), 0, 0, 0, 0, 0);
        assert_values(wb_ones(types[t], 3), 0, 1, 1, 1);
        assert_sizes(wb_full(types[t], 5, 0, 4), 0, 4);
        assert_int_equal(wb_eval(wb_full(types[t], 5, 0, 4)), WB_OK);
    }
    assert_values(wb_full(WB_F32, 0.1, 2), 0, (double)0.1f, (double)0.1f);
    assert_values(wb_full(WB_F64, 0.1, 1), 0, 0.1);
    assert_values(wb_full(WB_F16, 0.1, 1), 0, 0.0999755859375);
    assert_values(wb_full(WB_BF16, 0.1, 1), 0, 0.10009765625);
    assert_values(wb_full(WB_BOOL, 0.5, 1), 0, 1);
    assert_values(wb_full(WB_I64, 1LL << 52, 1), 0, 0x1p52);
    assert_true(isnan(wb_item(wb_full(WB_F16, (double)NAN, 1))));
    assert_true(wb_item(wb_full(WB_F16, 70000, 1)) == (double)INFINITY);
    assert_true(wb_item(wb_full(WB_F32, -(double)INFINITY, 1)) == -(double)INFINITY);
}

static void scalars_have_no_dimensions(void **state) {
    (void)state;
    assert_int_equal(wb_ndim(wb_scalar(WB_I32, 4)), 0);
    assert_int_equal(wb_count(wb_scalar(WB_I32, 4)), 1);
    assert_value(wb_scalar(WB_I32, 4), 4, 0);
    assert_value(wb_number(0.1), 0.1, 0);
    assert_value(wb_late(0.1), 0.1, 0);
    assert_true(signbit(wb_item(wb_number(-0.0))));
}

static void iota_counts_along_one_dimension(void **state) {
    (void)state;
    for (int t = 0; t < 7; t++) {
        assert_int_equal(wb_dtype_of(wb_iota(types[t], 0, 3)), types[t]);
        assert_values(wb_iota(types[t], 0, 3, 2), 0, 0, 1, 2, 0, 1, 2);
        assert_values(wb_iota(types[t], 1, 2, 3), 0, 0, 0, 1, 1, 2, 2);
        assert_values(wb_iota(types[t], -1, 1, 1, 3), 0, 0, 1, 2);
    }
    assert_value(wb_maximum(wb_iota(WB_I32, 0, 100000)), 99999, 0);
    assert_true(wb_at(wb_iota(WB_F32, 0, 100000), 77777) == 77777);
    assert_int_equal(wb_eval(wb_iota(WB_F32, 0, 0)), WB_OK);
}

/* A number that is no element type is one of a list of sizes with the type left out. */
static void distances_between_numbers_are_equal(void **state) {
    (void)state;
    assert_values(wb_linspace(WB_F32, 0, 1, 5), 0, 0, 0.25, 0.5, 0.75, 1);
    assert_values(wb_linspace(WB_F64, 3, -1, 3), 0, 3, 1, -1);
    assert_values(wb_linspace(WB_F16, 0, 1, 3), 0, 0, 0.5, 1);
    assert_values(wb_linspace(WB_F32, 7, 9, 1), 0, 7);
    assert_int_equal(wb_count(wb_linspace(WB_F32, 7, 9, 0)), 0);
    wb_array *x = wb_linspace(WB_F32, 0.1, 0.7, 1000);
    assert_true(wb_at(x, 0) == (double)0.1f && wb_at(x, 999) == (double)0.7f);
    assert_true(fabs(wb_at(x, 499) - (0.1 + 0.6 * 499 / 999)) < 1e-7);
}

static void a_size_in_place_of_a_type_is_refused(void **state) {
    (void)state;
    const float memory[6] = {0};
    const int16_t two = 2;
    int made = 0;
#define REFUSED(call, message)                                                                     \
    do {                                                                                           \
        made += (call) != NULL;                                                                    \
        assert_error(WB_ERROR_DTYPE,                                                               \
                     message " is not an element type: write WB_F32, WB_F64, ...");                \
    } while (0)
    REFUSED(wb_zeros(2, 3), "full: 2");
    REFUSED(wb_ones(0, 3), "full: 0");
    REFUSED(wb_full(7, 1.5, 3), "full: 7");
    REFUSED(wb_full(-3, 1.5, 3), "full: -3");
    REFUSED(wb_zeros(two, 3), "full: 2");
    REFUSED(wb_zeros(100000, 3), "full: 100000");
    REFUSED(wb_scalar(1, 2), "scalar: 1");
    REFUSED(wb_iota(2, 0, 3), "iota: 2");
    REFUSED(wb_uniform(2, 3), "uniform: 2");
    REFUSED(wb_normal(3, 3), "normal: 3");
    REFUSED(wb_from(2, memory, 3), "from: 2");
    REFUSED(wb_borrow(2, memory, NULL, NULL, 3), "borrow: 2");
    REFUSED(wb_cast(wb_vector(1, 2), 1), "cast: 1");
#undef REFUSED
    assert_int_equal(made, 0);
}

/* ---- literals ---- */

static void a_vector_of_every_type(void **state) {
    (void)state;
    assert_int_equal(wb_dtype_of(wb_vector(1, 2)), WB_F32);
    assert_values(wb_vector(0.5, -2), 0, 0.5, -2);
#define VECTOR(type, a, b)                                                                         \
    do {                                                                                           \
        assert_int_equal(wb_dtype_of(wb_vector_of(WB_##type, a, b)), WB_##type);                   \
        assert_sizes(wb_vector_of(WB_##type, a, b, b), 3);                                         \
        assert_values(wb_vector_of(WB_##type, a, b), 0, a, b);                                     \
    } while (0)
    VECTOR(F32, 0.5f, -2);
    VECTOR(F64, 0.1, -2);
    VECTOR(F16, 0.5f, -2);
    VECTOR(BF16, 0.5f, 256);
    VECTOR(I32, INT32_MIN, 5);
    VECTOR(I64, -3, 5);
    VECTOR(U8, 255, 5);
    VECTOR(BOOL, true, false);
#undef VECTOR
    int64_t wide[2];
    wb_array *x = wb_vector_of(WB_I64, INT64_MIN, (INT64_C(1) << 53) + 1);
    assert_int_equal(wb_read(x, wide, sizeof wide), WB_OK);
    assert_true(wide[0] == INT64_MIN && wide[1] == (INT64_C(1) << 53) + 1);
}

static void a_matrix_is_written_as_one_reads_it(void **state) {
    (void)state;
    wb_array *x = wb_matrix(3, {1, 2, 3}, {4, 5, 6});
    assert_sizes(x, 2, 3);
    assert_values(x, 0, 1, 4, 2, 5, 3, 6);
    assert_true(wb_at(x, 1, 0) == 4);
    assert_values(wb_matmul(x, wb_vector(1, 0, -1)), 0, -2, -2);
    assert_values(wb_matrix(2, {1}, {3, 4}), 0, 1, 3, 0, 4);
    assert_values(wb_matrix_of(WB_I64, 2, {1, 2}), 0, 1, 2);
    assert_int_equal(wb_dtype_of(wb_matrix_of(WB_BF16, 1, {1}, {2})), WB_BF16);
    assert_values(wb_matrix_of(WB_F16, 1, {1}, {2}), 0, 1, 2);
    assert_values(wb_matrix_of(WB_BOOL, 2, {true, false}, {false, true}), 0, 1, 0, 0, 1);
}

/* ---- C memory ---- */

typedef struct memory {
    float numbers[6];
    int releases;
} memory;

static void release(void *context, void *data) {
    memory *m = context;
    assert_ptr_equal(data, m->numbers);
    m->releases++;
}

static void a_copy_is_independent(void **state) {
    (void)state;
    memory m = {{1, 2, 3, 4, 5, 6}, 0};
    wb_array *x = wb_from(WB_F32, m.numbers, 2, 3), *y = wb_mul_number(x, 10);
    memset(&m, 0, sizeof m);
    assert_values(x, 0, 1, 2, 3, 4, 5, 6);
    assert_values(y, 0, 10, 20, 30, 40, 50, 60);
    assert_sizes(wb_from(WB_F32, NULL, 0, 3), 0, 3);
}

static void bytes_of_bool_are_whether_they_differ_from_zero(void **state) {
    (void)state;
    const uint8_t bytes[] = {0, 1, 2, 255};
    wb_array *x = wb_from(WB_BOOL, bytes, 4);
    assert_values(x, 0, 0, 1, 1, 1);
    assert_values(wb_not(x), 0, 1, 0, 0, 0);
    assert_value(wb_sum(x), 3, 0);
    assert_values(wb_eq(x, wb_from(WB_BOOL, ((bool[]){false, true, true, true}), 4)), 0, 1, 1, 1,
                  1);
}

static void borrowed_memory_is_released_after_the_last_use(void **state) {
    (void)state;
    memory m = {{1, 2, 3, 4, 5, 6}, 0};
    wb_scope_open();
    wb_array *x = wb_borrow(WB_F32, m.numbers, release, &m, 2, 3);
    assert_ptr_equal(wb_read_begin(x), m.numbers);
    wb_read_end(x);
    wb_array *view = wb_keep(wb_slice(x, 1, 1, 3, 1)), *sum = wb_keep(wb_sum(x));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(m.releases, 0); /* the view still shows it */
    assert_values(view, 0, 3, 4, 5, 6);
    wb_free(view);
    assert_int_equal(m.releases, 1);
    assert_value(sum, 21, 0);
    wb_free(sum);
    assert_int_equal(m.releases, 1);
}

static void a_pending_reader_holds_borrowed_memory(void **state) {
    (void)state;
    memory m = {{1, 2, 3, 4, 5, 6}, 0};
    wb_array *x = wb_borrow(WB_F32, m.numbers, release, &m, 6), *y = wb_mul_number(x, 2);
    wb_free(x);
    assert_int_equal(m.releases, 0);
    assert_values(y, 0, 2, 4, 6, 8, 10, 12);
    wb_free(y);
    assert_int_equal(m.releases, 1);
}

static void a_freed_array_is_released_at_once(void **state) {
    (void)state;
    memory m = {{1, 2, 3, 4, 5, 6}, 0};
    wb_free(wb_borrow(WB_F32, m.numbers, release, &m, 6));
    assert_int_equal(m.releases, 1);
    wb_free(wb_adopt(WB_F32, m.numbers, release, &m, 6));
    assert_int_equal(m.releases, 2);
    wb_free(wb_borrow(WB_F32, m.numbers, NULL, NULL, 6));
    wb_free(wb_borrow(WB_F32, m.numbers, release, &m, 0));
    assert_int_equal(m.releases, 3);
}

/* Who hands memory over has handed it over, also where the call fails. */
static void a_refused_array_is_released_too(void **state) {
    (void)state;
    memory m = {{0}, 0};
    assert_null(wb_borrow(WB_F32, m.numbers, release, &m, -1));
    assert_error(WB_ERROR_SHAPE, "borrow: size -1 of dimension 0 in (-1) is negative");
    assert_int_equal(m.releases, 1);
    assert_null(wb_adopt((wb_dtype)99, m.numbers, release, &m, 3));
    assert_error(WB_ERROR_DTYPE, "adopt: 99 is not an element type: write WB_F32, WB_F64, ...");
    assert_int_equal(m.releases, 2);
    assert_null(wb_adopt(WB_F32, NULL, release, &m, 3)); /* nothing was handed over */
    assert_error(WB_ERROR_ARGUMENT, "adopt: data is NULL");
    assert_int_equal(m.releases, 2);
    for (int64_t n = 1; n < 4; n++) {
        const int before = m.releases;
        (void)wb_fail_allocation(n);
        wb_array *x = wb_adopt(WB_F32, m.numbers, release, &m, 3);
        (void)wb_fail_allocation(0);
        wb_clear_error();
        wb_free(x);
        assert_int_equal(m.releases, before + 1);
    }
}

/* x = f(x) over and over, with kept results: what may be written over is written over, but never
 * what is borrowed. */
static void borrowed_memory_is_never_written(void **state) {
    (void)state;
    enum { N = 1000 };
    float numbers[N], before[N];
    for (int i = 0; i < N; i++) before[i] = numbers[i] = (float)i;
    wb_scope_open();
    wb_array *x = wb_borrow(WB_F32, numbers, NULL, NULL, N), *y = wb_keep(x);
    for (int step = 0; step < 5; step++) {
        wb_scope_open();
        wb_array *next = wb_keep(wb_add_number(wb_mul_number(y, 2), 1));
        wb_free(y), y = next;
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    wb_array *z = wb_scatter_add(x, wb_cpu(wb_from(WB_I32, ((int32_t[]){3, 3}), 2)),
                                 wb_cpu(wb_vector(1, 1)), 0); /* where borrowed memory is */
    assert_true(wb_at(z, 3) == 5 && wb_at(y, 3) == 3 * 32 + 31);
    wb_free(y);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_memory_equal(numbers, before, sizeof numbers);
}

static void adopted_memory_lives_as_long_as_its_views(void **state) {
    (void)state;
    memory m = {{1, 2, 3, 4, 5, 6}, 0};
    wb_scope_open();
    wb_array *y = wb_keep(wb_transpose(wb_adopt(WB_F32, m.numbers, release, &m, 2, 3)));
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_int_equal(m.releases, 0);
    assert_values(y, 0, 1, 3, 5, 2, 4, 6);
    wb_free(y);
    assert_int_equal(m.releases, 1);
}

/* ---- chance ---- */

static wb_array *uniform_of(wb_dtype dtype) { return wb_uniform(dtype, 1000); }
static wb_array *normal_of(wb_dtype dtype) { return wb_normal(dtype, 1000); }
static wb_array *bernoulli_of(wb_dtype dtype) {
    (void)dtype;
    return wb_bernoulli(0.5, 1000);
}
static wb_array *(*const makers[])(wb_dtype) = {uniform_of, normal_of, bernoulli_of};

static void the_same_seed_gives_the_same_numbers(void **state) {
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int t = 0; t < 4; t++) {
            wb_seed(17);
            wb_array *a = makers[m](types[t]), *b = makers[m](types[t]);
            wb_seed(17);
            wb_array *c = makers[m](types[t]), *d = makers[m](types[t]);
            wb_seed(18);
            wb_array *e = makers[m](types[t]);
            assert_same_bits(a, c, "the first call");
            assert_same_bits(b, d, "the second call");
            assert_false(wb_approx(a, b, 0, 0, NULL, 0));
            assert_false(wb_approx(a, e, 0, 0, NULL, 0));
        }
}

/* A call takes numbers that no other call of the sequence takes. */
static void calls_do_not_overlap(void **state) {
    (void)state;
    wb_seed(3);
    static const int64_t counts[] = {1, 1, 2, 3, 5, 17, 4, 0, 64};
    double all[100];
    int64_t n = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_int_equal(wb_read_f64(wb_uniform(WB_F64, counts[i]), all + n, counts[i]), WB_OK);
        n += counts[i];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) assert_true(all[i] != all[j]);
}

static void reading_again_gives_the_same_numbers(void **state) {
    (void)state;
    wb_array *x = wb_normal(WB_F32, 100), *y = wb_sub(x, x);
    assert_value(wb_sum(wb_abs(y)), 0, 0);
    wb_array *sum = wb_sum(wb_mul(x, x));
    const double before = wb_item(sum);
    assert_int_equal(wb_eval(x), WB_OK);
    assert_true(fabs(wb_item(wb_sum(wb_mul(x, x))) - before) < 1e-4);
    assert_same_bits(x, wb_add_number(x, 0), "read again");
}

typedef struct moments_row {
    const char *name;
    wb_array *(*make)(wb_dtype dtype, int ndim, const int64_t *sizes);
    double moments[4], low, high; /* E x, E x^2, E x^3, E x^4 */
} moments_row;

static const moments_row moments_rows[] = {
    {"uniform", wb_uniform_make, {1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5}, 0, 1},
    {"normal", wb_normal_make, {0, 1, 0, 3}, -7, 7},
};

static void moments(void **state) {
    const moments_row *r = *state;
    wb_seed(test_seed());
    const int64_t n = 400000;
    for (int t = 0; t < 4; t++) {
        wb_array *x = wb_cast(r->make(types[t], 1, &n), WB_F64), *power = x;
        assert_true(wb_item(wb_minimum(x)) >= r->low && wb_item(wb_maximum(x)) <= r->high);
        if (r->make == wb_uniform_make && t < 2) assert_true(wb_item(wb_maximum(x)) < 1);
        for (int k = 0; k < 4; k++, power = wb_mul(power, x)) {
            const double deviation = sqrt(wb_item(wb_var(power, false)) / (double)n),
                         coarse = t < 2 ? 0 : 0x1p-7;
            const double mean = wb_item(wb_mean(power));
            if (!(fabs(mean - r->moments[k]) < 5 * deviation + coarse))
                fail_msg("%s: moment %d is %g, not %g", wb_dtype_name(types[t]), k + 1, mean,
                         r->moments[k]);
        }
        wb_array *neighbours = wb_mul(wb_slice(x, 0, 0, n - 1, 1), wb_slice(x, 0, 1, n, 1));
        assert_true(fabs(wb_item(wb_mean(neighbours)) - r->moments[0] * r->moments[0]) <
                    5 * 1.5 / sqrt((double)n));
    }
}

static void uniform_fills_every_bin(void **state) {
    (void)state;
    wb_seed(test_seed());
    enum { BINS = 64, N = 64000 };
    for (int t = 0; t < 2; t++) {
        int bins[BINS] = {0};
        double *x = malloc(N * sizeof *x), chi = 0;
        assert_non_null(x);
        assert_int_equal(wb_read_f64(wb_uniform(types[t], N), x, N), WB_OK);
        for (int i = 0; i < N; i++) bins[(int)(x[i] * BINS)]++;
        for (int b = 0; b < BINS; b++)
            chi += (bins[b] - N / BINS) * (bins[b] - N / BINS) / ((double)N / BINS);
        assert_true(chi < 63 + 5 * sqrt(2 * 63.0));
        free(x);
    }
}

static void uniform_halves_stay_below_one(void **state) {
    (void)state;
    wb_seed(test_seed());
    const int64_t n = 1 << 20;
    assert_true(wb_item(wb_maximum(wb_uniform_make(WB_F16, 1, &n))) < 1);
    assert_true(wb_item(wb_maximum(wb_uniform_make(WB_BF16, 1, &n))) < 1);
}

static void bernoulli_is_bool_with_the_probability(void **state) {
    (void)state;
    wb_seed(test_seed());
    const int64_t n = 100000;
    assert_int_equal(wb_dtype_of(wb_bernoulli(0.3, n)), WB_BOOL);
    assert_true(fabs(wb_item(wb_mean(wb_bernoulli(0.3, n))) - 0.3) < 5 * sqrt(0.21 / (double)n));
    assert_value(wb_sum(wb_bernoulli(0, n)), 0, 0);
    assert_value(wb_sum(wb_bernoulli(1, n)), (double)n, 0);
    assert_sizes(wb_bernoulli(0.5, 2, 3), 2, 3);
}

static void *normal_sum(void *seed) {
    wb_scope_open();
    if (seed) wb_seed(*(const uint64_t *)seed);
    double *sum = malloc(sizeof *sum);
    *sum = wb_item(wb_sum(wb_normal(WB_F64, 1000)));
    wb_scope_close();
    return sum;
}

static void each_thread_has_its_own_sequence(void **state) {
    (void)state;
    uint64_t seed = 99;
    wb_seed(seed);
    pthread_t thread;
    void *there = NULL;
    assert_int_equal(pthread_create(&thread, NULL, normal_sum, &seed), 0);
    assert_int_equal(pthread_join(thread, &there), 0);
    double *here = normal_sum(NULL);
    assert_true(*here == *(double *)there);
    free(here), free(there);
}

/* ---- what a pointer says of its numbers ---- */

/* The type is a variable: a constant one does not compile (scripts/check_headers). */
static void pointers_to_numbers_of_the_type_are_taken(void **state) {
    (void)state;
    const float f32[2][3] = {{1, 2, 3}, {4, 5, 6}};
    struct {
        float x, y;
    } points[2] = {{1, 2}, {3, 4}};
    const char chars[] = {1, 2};
    const bool bools[] = {true, false};
    uint16_t half[] = {0x3c00, 0x4000};
    unsigned whole[] = {1, 2};
    long long wide[] = {1, 2};
    assert_values(wb_from(types[0], f32, 3, 2), 0, 1, 2, 3, 4, 5, 6);
    assert_values(wb_from(types[0], points, 2, 2), 0, 1, 2, 3, 4);
    assert_values(wb_from(types[2], half, 2), 0, 1, 2);
    assert_values(wb_from(types[4], whole, 2), 0, 1, 2);
    assert_values(wb_from(types[5], wide, 2), 0, 1, 2);
    assert_values(wb_from(types[6], chars, 2), 0, 1, 2);
    assert_values(wb_from(types[6], bools, 2), 0, 1, 0);
    assert_values(wb_from(types[7], bools, 2), 0, 1, 0);
    assert_values(wb_from(types[4], (void *)whole, 2), 0, 1, 2);
    assert_int_equal(wb_read(wb_vector_of(WB_I32, 3, 4), whole, sizeof whole), WB_OK);
    assert_int_equal(whole[1], 4);
}

static void arrays_of_arrays_say_their_numbers(void **state) {
    (void)state;
    const double f64[2][2] = {{1, 2}, {3, 4}};
    float f32[2][2];
    assert_null(wb_from(types[0], f64, 2, 2));
    assert_error(
        WB_ERROR_DTYPE,
        "from: the pointer is to double, but elements of type f32 need a pointer to float");
    assert_int_equal(wb_read(wb_ones(WB_I32, 2, 2), f32, sizeof f32), WB_ERROR_DTYPE);
    assert_error(WB_ERROR_DTYPE, "the pointer is to float, but elements of type");
}

static void pointers_to_other_numbers_are_refused(void **state) {
    (void)state;
    const int64_t wide[4] = {0};
    double doubles[4] = {0};
    int whole[4] = {0};
    uint8_t bytes[4] = {0};
    assert_null(wb_from(types[4], wide, 4));
    assert_error(WB_ERROR_DTYPE, "from: the pointer is to int64_t or uint64_t, but elements of "
                                 "type i32 need a pointer to int32_t");
    assert_null(wb_from(types[0], doubles, 4));
    assert_error(WB_ERROR_DTYPE, "to double, but elements of type f32");
    assert_null(wb_from(types[1], (const long double *)(const void *)doubles, 2));
    assert_error(WB_ERROR_DTYPE, "from: the pointer is to long double, complex");
    assert_null(wb_borrow(types[5], whole, NULL, NULL, 4));
    assert_error(WB_ERROR_DTYPE, "borrow: the pointer is to int32_t");
    assert_null(wb_adopt(types[0], bytes, NULL, NULL, 1));
    assert_error(WB_ERROR_DTYPE, "adopt: the pointer is to uint8_t");
    assert_int_equal(wb_read(wb_zeros(WB_F32, 8), doubles, sizeof doubles), WB_ERROR_DTYPE);
    assert_error(WB_ERROR_DTYPE, "read: the pointer is to double");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(full_of_every_type),
        TEST(scalars_have_no_dimensions),
        TEST(iota_counts_along_one_dimension),
        TEST(distances_between_numbers_are_equal),
        TEST(a_size_in_place_of_a_type_is_refused),
        TEST(a_vector_of_every_type),
        TEST(a_matrix_is_written_as_one_reads_it),
        TEST(a_copy_is_independent),
        TEST(bytes_of_bool_are_whether_they_differ_from_zero),
        TEST(borrowed_memory_is_released_after_the_last_use),
        TEST(a_pending_reader_holds_borrowed_memory),
        TEST(a_freed_array_is_released_at_once),
        TEST(a_refused_array_is_released_too),
        TEST(borrowed_memory_is_never_written),
        TEST(adopted_memory_lives_as_long_as_its_views),
        TEST(pointers_to_numbers_of_the_type_are_taken),
        TEST(pointers_to_other_numbers_are_refused),
        TEST(arrays_of_arrays_say_their_numbers),
        TEST(the_same_seed_gives_the_same_numbers),
        TEST(calls_do_not_overlap),
        TEST(reading_again_gives_the_same_numbers),
        TEST_ROW(&moments_rows[0], moments),
        TEST_ROW(&moments_rows[1], moments),
        TEST(uniform_fills_every_bin),
        TEST(uniform_halves_stay_below_one),
        TEST(bernoulli_is_bool_with_the_probability),
        TEST(each_thread_has_its_own_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
