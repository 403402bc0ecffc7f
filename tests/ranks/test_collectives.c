/* Collectives between processes of this machine: values, bits, derivatives, and what ranks do
 * differently without meeting in another order. N1 to N3 are rows of the acceptance cases. */
#include <math.h>
#include <string.h>
#include <time.h>

#include <weber.h>

#include "support/ranks.h"
#include "support/support.h"

/* ---- values ---- */

static const int64_t counts[] = {0, 1, 3, 512, (1 << 20) + 1};
static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_U8};

/* The same small whole number everywhere, exact in every type. */
static wb_array *filled(wb_dtype dtype, int64_t count, double value) {
    return wb_full_make(dtype, value, 1, &count);
}

static bool is_all(wb_array *x, int64_t count, double value) {
    if (!x || wb_ndim(x) != 1 || wb_size(x, 0) != count) return false;
    wb_array *wide = wb_cast(x, WB_F64);
    if (count == 0) return wb_eval(wide) == WB_OK;
    return wb_item(wb_sum(wb_cast(wb_eq(wide, wb_number(value)), WB_I64))) == (double)count;
}

static void reduces(void) {
    const int n = wb_total_workers(), me = wb_rank();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            wb_scope_open();
            wb_array *x = filled(types[t], counts[c], me + 1);
            const double sum = n * (n + 1) / 2.0;
            CHECK(is_all(wb_allreduce(x, WB_REDUCE_SUM), counts[c], sum)); /* N2 */
            CHECK(is_all(wb_allreduce(x, WB_REDUCE_MAX), counts[c], n));
            CHECK(is_all(wb_allreduce(x, WB_REDUCE_MIN), counts[c], 1));
            if (wb_dtype_is_float(types[t]))
                CHECK(is_all(wb_allreduce(x, WB_REDUCE_MEAN), counts[c], (n + 1) / 2.0)); /* N2 */
            for (int root = 0; root < n; root += n - 1) {                                 /* N3 */
                const double expected = me == root ? sum : me + 1;
                CHECK(is_all(wb_reduce_to(x, WB_REDUCE_SUM, root), counts[c], expected));
                CHECK(is_all(x, counts[c], me + 1));
                CHECK(is_all(wb_bcast(x, root), counts[c], root + 1)); /* N1 */
            }
            (void)wb_scope_close();
        }
}

static void gathers(void) {
    const int n = wb_total_workers(), me = wb_rank();
    for (size_t c = 1; c < sizeof counts / sizeof *counts; c++) {
        wb_scope_open();
        wb_array *all = wb_allgather(filled(WB_I32, counts[c], me + 1));
        CHECK(wb_size(all, 0) == n * counts[c]);
        for (int r = 0; r < n; r++)
            CHECK(
                is_all(wb_slice(all, 0, r * counts[c], (r + 1) * counts[c], 1), counts[c], r + 1));
        wb_array *parts = wb_mul(all, wb_cast(wb_number(me + 1), WB_I32));
        CHECK(is_all(wb_reduce_scatter(parts, WB_REDUCE_SUM), counts[c],
                     (me + 1) * n * (n + 1) / 2.0));
        (void)wb_scope_close();
    }
    wb_array *numbers = wb_allgather(wb_cast(wb_number(me), WB_F32));
    CHECK(wb_ndim(numbers) == 1 && wb_size(numbers, 0) == n &&
          wb_item(wb_sum(numbers)) == n * (n - 1) / 2.0);
}

static void has_values(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) assert_int_equal(ranks_run(n, reduces), 0);
}

static void has_parts(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) assert_int_equal(ranks_run(n, gathers), 0);
}

/* ---- bits ---- */

enum { MIXED = 70001 };

/* Magnitudes over 2^8, so that the order of a sum shows in its last bits. */
static float mixed(int rank, int i) {
    const unsigned h = ((unsigned)i * 2654435761u) ^ ((unsigned)rank * 40503u + 77u) * 2246822519u;
    return ldexpf((float)(h >> 8 & 0xffff) / 65536 - 0.5f, (int)(h & 7));
}

static float canonical(int lo, int hi, int i) {
    if (hi - lo == 1) return mixed(lo, i);
    int p = 1;
    while (2 * p < hi - lo) p *= 2;
    return canonical(lo, lo + p, i) + canonical(lo + p, hi, i);
}

static void adds_in_order(void) {
    static float own[MIXED], sum[MIXED];
    for (int i = 0; i < MIXED; i++) own[i] = mixed(wb_rank(), i);
    for (int layout = 0; layout < 3; layout++) { /* whole, in two, in three */
        wb_scope_open();
        wb_array *x = wb_from(WB_F32, own, MIXED), *pieces[3];
        for (int k = 0; k <= layout; k++)
            pieces[k] = wb_allreduce(wb_slice(x, 0, k * (int64_t)MIXED / (layout + 1),
                                              (k + 1) * (int64_t)MIXED / (layout + 1), 1),
                                     WB_REDUCE_SUM);
        CHECK(wb_read(wb_concat_make(0, layout + 1, pieces), sum, sizeof sum) == WB_OK);
        for (int i = 0; i < MIXED; i++) CHECK(sum[i] == canonical(0, wb_total_workers(), i));
        (void)wb_scope_close();
    }
}

/* bf16 is added in f32 and rounded once, as a cast does it; of infinities and NaN, too. */
static void adds_halves(void) {
    static float own[MIXED];
    const int n = wb_total_workers();
    wb_scope_open();
    for (int i = 0; i < MIXED; i++) own[i] = mixed(wb_rank(), i);
    own[5] = INFINITY, own[6] = wb_rank() ? -INFINITY : INFINITY, own[7] = 3e38f;
    wb_array *x = wb_cast(wb_from(WB_F32, own, MIXED), WB_BF16), *wide = wb_cast(x, WB_F32);
    CHECK(wb_eval(x) == WB_OK); /* rounded, whatever reads it */
    for (wb_reduction r = WB_REDUCE_SUM; r <= WB_REDUCE_MIN; r++) {
        wb_array *expected = wb_cast(wb_allreduce(wide, r), WB_BF16);
        CHECK(wb_approx(wb_allreduce(x, r), expected, 0, 0, NULL, 0));
        CHECK(wb_rank() != n - 1 || wb_approx(wb_reduce_to(x, r, n - 1), expected, 0, 0, NULL, 0));
        if (wb_rank() != n - 1) CHECK(wb_reduce_to(x, r, n - 1));
    }
    wb_array *part = wb_slice(x, 0, 0, MIXED / n * n, 1);
    CHECK(wb_approx(wb_reduce_scatter(part, WB_REDUCE_SUM),
                    wb_cast(wb_reduce_scatter(wb_cast(part, WB_F32), WB_REDUCE_SUM), WB_BF16), 0, 0,
                    NULL, 0));
    (void)wb_scope_close();
}

static void has_bits(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, adds_halves), 0);
    for (int n = 2; n <= 5; n++) assert_int_equal(ranks_run(n, adds_in_order), 0);
}

/* ---- collectives that go on while the plan does ---- */

/* What a collective reads stays until it is done: the other ranks come late, while this one's plan
 * makes more arrays of that size. */
static void goes_on(void) {
    enum { SUMS = 8, COUNT = 5000 };
    const int n = wb_total_workers();
    wb_scope_open();
    wb_array *x = wb_full(WB_F32, wb_rank() + 1, COUNT), *total = wb_number(0), *other = x;
    for (int k = 1; k <= SUMS; k++) {
        wb_array *sum = wb_allreduce(wb_mul(x, wb_number(k)), WB_REDUCE_SUM);
        total = wb_add(total, wb_mul(sum, wb_number(k)));
        other = wb_cumsum(wb_add(other, wb_number(k)), 0); /* a call: memory of its own */
        other = wb_mul(other, wb_number(1e-3));
    }
    if (wb_rank() != 0) (void)usleep(100000);
    CHECK(wb_eval(total, other) == WB_OK);
    const double squares = SUMS * (SUMS + 1) * (2 * SUMS + 1) / 6.0;
    CHECK(is_all(total, COUNT, squares * n * (n + 1) / 2.0));
    CHECK(wb_scope_close() == WB_OK);
}

/* Read by a product and through views, some while others are under way. */
static void is_read_in_between(void) {
    enum { SIDE = 40 };
    wb_scope_open();
    const int n = wb_total_workers();
    wb_array *x = wb_full(WB_F32, 1, SIDE, SIDE);
    wb_array *a = wb_allreduce(x, WB_REDUCE_SUM),
             *b = wb_allreduce(wb_mul(x, wb_number(2)), WB_REDUCE_SUM);
    wb_array *product = wb_matmul(wb_transpose(a), x);
    wb_array *c = wb_allreduce(product, WB_REDUCE_SUM);
    wb_array *part = wb_slice(wb_reshape(b, SIDE * SIDE), 0, 0, SIDE, 1);
    if (wb_rank() != 0) (void)usleep(100000);
    CHECK(wb_eval(c, part, product) == WB_OK);
    CHECK(is_all(wb_reshape(c, SIDE * SIDE), SIDE * SIDE, (double)n * n * SIDE));
    CHECK(is_all(part, SIDE, 2.0 * n));
    CHECK(wb_scope_close() == WB_OK);
}

static void may_go_on(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) {
        assert_int_equal(ranks_run(n, goes_on), 0);
        assert_int_equal(ranks_run(n, is_read_in_between), 0);
    }
}

/* ---- a pace, and what goes on beside collectives ---- */

static void paced_values(void) {
    reduces();
    gathers();
}

/* Seconds of computation of rank 0 so far. */
static double computed(pid_t process) {
    clockid_t clock;
    struct timespec t;
    CHECK(clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &t) == 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { SIDE = 300, PRODUCTS = 60 };

static wb_array *products(wb_array *x) {
    wb_array *y = x;
    for (int i = 0; i < PRODUCTS; i++) y = wb_add(wb_matmul(y, x), x);
    return y;
}

/* Seconds that rank 0 needs for them. */
static double time_of_products(wb_array *x) {
    CHECK(wb_eval(products(x)) == WB_OK);
    const double begin = computed(getpid());
    CHECK(wb_eval(products(x)) == WB_OK);
    return computed(getpid()) - begin;
}

/* Rank 1 comes to a collective only when rank 0 has done most of the work that does not need it. If
 * that work came after the collective, both would wait for ever. */
static void computes_meanwhile(void) {
    const int me = wb_rank();
    wb_scope_open();
    wb_set_threads(1);
    wb_array *x = wb_full(WB_F32, 1e-3, SIDE, SIDE);
    const double about[] = {getpid(), me == 0 ? time_of_products(x) : 0};
    double told[2];
    CHECK(wb_read(wb_bcast(wb_from(WB_F64, about, 2), 0), told, sizeof told) == WB_OK);
    const pid_t other = (pid_t)told[0];
    const double begin = computed(other);
    wb_array *sum = wb_allreduce(wb_mul(x, wb_number(2)), WB_REDUCE_SUM);
    wb_array *y = me == 0 ? products(x) : x;
    if (me == 1)
        for (int i = 0; computed(other) - begin < 0.7 * told[1]; i++) {
            CHECK(i < 6000);
            (void)usleep(10000);
        }
    CHECK(wb_eval(sum, y) == WB_OK && wb_barrier() == WB_OK);
    CHECK(wb_scope_close() == WB_OK);
}

static void has_pace(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, computes_meanwhile), 0);
    (void)setenv("WEBER_PACE", "20us,2GB/s", 1);
    assert_int_equal(ranks_run(3, paced_values), 0);
    (void)unsetenv("WEBER_PACE");
}

/* ---- ranks that differ in what they read ---- */

static void only_one_reads(void) {
    wb_scope_open();
    const int n = wb_total_workers();
    wb_array *x = wb_full(WB_F32, wb_rank() + 1, 4), *last = x;
    for (int k = 0; k < 20; k++) {
        wb_array *sum = wb_allreduce(wb_add(x, wb_number(k)), WB_REDUCE_SUM);
        if (wb_rank() == 0 && k % 3 == 0)
            CHECK(wb_item(wb_sum(sum)) == 4 * (n * (n + 1) / 2.0 + n * k));
        if (wb_rank() == 1 && k % 5 == 0) CHECK(wb_eval(wb_exp(x)) == WB_OK); /* not of the sums */
        last = sum;
    }
    CHECK(wb_item(wb_sum(last)) == 4 * (n * (n + 1) / 2.0 + n * 19));
    CHECK(wb_barrier() == WB_OK);
    (void)wb_scope_close();
}

/* Nobody reads the result on the other ranks. */
static void only_one_wants(void) {
    wb_scope_open();
    wb_array *sum = wb_allreduce(wb_full(WB_F32, 2, 3), WB_REDUCE_SUM);
    if (wb_rank() == 0) CHECK(wb_item(wb_sum(sum)) == 6.0 * wb_total_workers());
    (void)wb_scope_close();
    CHECK(wb_barrier() == WB_OK);
}

static void may_differ(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, only_one_reads), 0);
    assert_int_equal(ranks_run(3, only_one_wants), 0);
}

/* ---- derivatives ---- */

typedef wb_array *collective_fn(wb_array *x);
static wb_array *sum_of(wb_array *x) { return wb_allreduce(x, WB_REDUCE_SUM); }
static wb_array *mean_of(wb_array *x) { return wb_allreduce(x, WB_REDUCE_MEAN); }
static wb_array *max_of(wb_array *x) { return wb_allreduce(x, WB_REDUCE_MAX); }
static wb_array *to_root(wb_array *x) { return wb_reduce_to(x, WB_REDUCE_SUM, 1); }
static wb_array *mean_to_root(wb_array *x) { return wb_reduce_to(x, WB_REDUCE_MEAN, 0); }
static wb_array *from_root(wb_array *x) { return wb_bcast(x, 1); }
static wb_array *gathered(wb_array *x) { return wb_allgather(x); }
static wb_array *scattered(wb_array *x) { return wb_reduce_scatter(x, WB_REDUCE_SUM); }
static wb_array *mean_scattered(wb_array *x) { return wb_reduce_scatter(x, WB_REDUCE_MEAN); }
static wb_array *min_scattered(wb_array *x) { return wb_reduce_scatter(x, WB_REDUCE_MIN); }

/* Two channels of three numbers, over all ranks. */
static wb_array *normed(wb_array *x) {
    wb_layer *norm = wb_batchnorm(2, .sync = true, .dtype = WB_F64);
    CHECK(norm && wb_train_mode(norm) == WB_OK);
    wb_array *shift = wb_mul(wb_vector(2, 1), wb_number(wb_rank()));
    wb_array *y = wb_apply(norm, wb_add(wb_reshape(x, 2, 3), shift));
    wb_free(norm);
    return wb_reshape(y, 6);
}

static collective_fn *const rows[] = {sum_of,         mean_of,       max_of,   to_root,
                                      mean_to_root,   from_root,     gathered, scattered,
                                      mean_scattered, min_scattered, normed};

enum { INPUTS = 6 };

static double input(int rank, int i) { return 0.3 * sin(1.7 * i + 2.3 * rank) + 0.1 * i; }

/* The loss of this rank, not linear in what the collective gives, and different on each. */
static wb_array *loss_of(collective_fn *f, wb_array *x) {
    wb_array *y = f(wb_square(x));
    int64_t count = wb_count(y);
    wb_array *weights =
        wb_add(wb_cast(wb_iota_make(WB_I32, 0, 1, &count), WB_F64), wb_number(1 + wb_rank()));
    return wb_sum(wb_mul(weights, wb_mul(wb_exp(y), y)));
}

/* With `shift` added to input i of rank r: the sum of all ranks' losses, or with order 2 that of a
 * weighted sum of gradients. */
static double value_at(collective_fn *f, int order, int rank, int i, double shift,
                       double *gradient) {
    double own[INPUTS];
    for (int k = 0; k < INPUTS; k++)
        own[k] = input(wb_rank(), k) + (wb_rank() == rank && k == i ? shift : 0);
    wb_scope_open();
    wb_array *x = wb_from(WB_F64, own, INPUTS), *g;
    wb_array *l = loss_of(f, x);
    if (order == 2) {
        CHECK(wb_gradient_of(l, 1, &x, &g) == WB_OK);
        l = wb_sum(wb_mul(g, wb_sin(wb_add(x, wb_number(wb_rank())))));
    }
    if (gradient) {
        CHECK(wb_gradient_of(l, 1, &x, &g) == WB_OK);
        CHECK(wb_read(g, gradient, sizeof own) == WB_OK);
    }
    const double value = wb_item(wb_allreduce(l, WB_REDUCE_SUM));
    (void)wb_scope_close();
    return value;
}

static void differentiates(void) {
    const double h = 1e-5;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int order = 1; order <= 2; order++) {
            double gradient[INPUTS];
            (void)value_at(rows[k], order, -1, 0, 0, gradient);
            for (int r = 0; r < wb_total_workers(); r++)
                for (int i = 0; i < INPUTS; i++) {
                    const double up = value_at(rows[k], order, r, i, h, NULL),
                                 down = value_at(rows[k], order, r, i, -h, NULL);
                    const double expected = (up - down) / (2 * h);
                    if (r == wb_rank())
                        CHECK(fabs(gradient[i] - expected) <= 1e-6 * (1 + fabs(expected)));
                }
        }
}

/* The gradient of a largest one finds the rank that holds it again, after the largest was read. */
static void finds_the_largest_again(void) {
    const int n = wb_total_workers();
    for (int i = 0; i < 20; i++) {
        wb_scope_open();
        wb_seed((uint64_t)(100 * i + wb_rank()));
        wb_array *x = wb_normal(WB_F32, 33, 5 + i), *w = wb_normal(WB_F32, 33, 5 + i), *g;
        wb_array *b = wb_copy(wb_vector(0.3));
        CHECK(wb_eval(x, w, b) == WB_OK);
        wb_array *y = wb_add(wb_mul(wb_softmax_dims(wb_mul(x, w), i % 2), w), b);
        wb_array *loss = wb_sum(wb_allreduce(y, WB_REDUCE_MAX));
        CHECK(isfinite(wb_item(loss)));
        CHECK(wb_gradient_of(loss, 1, &b, &g) == WB_OK);
        const double all = wb_item(wb_allreduce(g, WB_REDUCE_SUM));
        CHECK(fabs(all - (double)n * (double)wb_count(y)) < 1e-2);
        (void)wb_scope_close();
    }
}

static void has_derivatives(void **state) {
    (void)state;
    for (int n = 2; n <= 3; n++) assert_int_equal(ranks_run(n, differentiates), 0);
    assert_int_equal(ranks_run(2, finds_the_largest_again), 0);
}

/* ---- what one rank reads at the very end ---- */

static void read_by_one(void) {
    wb_scope_open();
    wb_array *sum = wb_allreduce(wb_ones(WB_F32, 3), WB_REDUCE_SUM);
    if (wb_rank() == 0) CHECK(wb_item(wb_sum(sum)) == 3 * wb_total_workers());
    CHECK(!wb_failed());
}

static void ends_together(void **state) {
    (void)state;
    assert_int_equal(ranks_run(3, read_by_one), 0);
}

/* ---- which transport ---- */

/* weber run stands for MPI, not for devices that nobody asked for in time. */
static void asked_late(void) {
    CHECK(wb_rank() < 2);
    CHECK(wb_distributed_initialize("MPI") == WB_OK);
    CHECK(strcmp(wb_get_distributed_backend("MPI"), "local") == 0);
    CHECK(wb_barrier() == WB_OK);
    CHECK(wb_distributed_initialize("NCCL", .devices = (const int[]){0, 1}, .device_count = 2) ==
          WB_ERROR_ARGUMENT);
    CHECK(strstr(wb_error_message(), "\"NCCL\" must be asked for before the first collective, but "
                                     "the group has made 1 by \"local\""));
    wb_clear_error();
    CHECK(wb_barrier() == WB_OK && wb_distributed_initialize("local") == WB_OK);
}

static void has_joined_already(void **state) {
    (void)state;
    assert_int_equal(ranks_run(2, asked_late), 0);
}

/* ---- a group of one ---- */

static void alone(void **state) {
    (void)state;
    wb_scope_open();
    wb_array *x = wb_vector(1, 2, 3);
    assert_ptr_equal(wb_allreduce(x, WB_REDUCE_SUM), x);
    assert_ptr_equal(wb_reduce_to(x, WB_REDUCE_MEAN, 0), x);
    assert_ptr_equal(wb_bcast(x, 0), x);
    assert_ptr_equal(wb_allgather(x), x);
    assert_ptr_equal(wb_reduce_scatter(x, WB_REDUCE_MAX), x);
    assert_int_equal(wb_barrier(), WB_OK);
    assert_int_equal(wb_rank() + wb_local_rank(), 0);
    assert_int_equal(wb_total_workers(), 1);
    assert_string_equal(wb_get_distributed_backend(NULL), "none");
    assert_int_equal(wb_scope_close(), WB_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_values),
        cmocka_unit_test(has_parts),
        cmocka_unit_test(has_bits),
        cmocka_unit_test(may_differ),
        cmocka_unit_test(has_derivatives),
        cmocka_unit_test(ends_together),
        cmocka_unit_test(may_go_on),
        cmocka_unit_test(has_pace),
        cmocka_unit_test(has_joined_already),
        cmocka_unit_test(alone), /* the last one: it uses the library in this process */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
