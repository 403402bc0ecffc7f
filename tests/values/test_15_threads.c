/* Rule 15: the same bits for any number of threads. */
#include <pthread.h>

#include "values/modes.h"

enum { MOST_THREADS = 3, MOST_RESULTS = 12 };

static wb_array *random_of(int ndim, const int64_t *sizes) {
    wb_array *x = wb_normal_make(WB_F32, ndim, sizes);
    assert_int_equal(wb_eval(x), WB_OK);
    return x;
}
#define random_array(...) random_of(WB_INTS(__VA_ARGS__))

typedef int results(wb_array **out); /* fills out, returns how many */

static int products(wb_array **out) {
    int n = 0;
    const int64_t shapes[][3] = {{300, 200, 250}, {1, 700, 900}, {900, 700, 1},
                                 {17, 1000, 19},  {512, 3, 512}, {7, 20000, 5}};
    for (int i = 0; i < 6; i++) {
        const int64_t *s = shapes[i];
        out[n++] = wb_matmul(random_array(s[0], s[1]), random_array(s[1], s[2]));
    }
    out[n++] = wb_matmul_transposed(random_array(200, 300), random_array(250, 200), true, true);
    out[n++] = wb_matmul(random_array(40, 30, 50), random_array(30, 20, 50));
    out[n++] = wb_matmul(random_array(2000, 600), random_array(600));
    out[n++] = wb_relu(
        wb_add(wb_matmul(random_array(300, 200), random_array(200, 250)), random_array(300)));
    return n;
}

static int convolutions(wb_array **out) {
    wb_array *x = random_array(28, 30, 3, 9), *w = random_array(3, 3, 3, 8);
    wb_array *y = wb_conv_op(x, w, .pad = {1, 1}), *g[2];
    wb_array *l = wb_sum(wb_square(wb_relu(y)));
    assert_int_equal(wb_gradient_of(l, 2, (wb_array *[]){x, w}, g), WB_OK);
    out[0] = y, out[1] = l, out[2] = g[0], out[3] = g[1];
    out[4] = wb_maxpool_op(x, .kernel = {2, 2});
    out[5] = wb_meanpool_op(x, .kernel = {3, 3});
    out[6] = wb_unfold(x, .kernel = {3, 3});
    out[7] = wb_conv_op(random_array(40, 6, 70), random_array(5, 3, 4), .groups = 2);
    return 8;
}

static int reductions(wb_array **out) {
    wb_array *x = random_array(301, 517), *long_one = random_array(1000003);
    out[0] = wb_sum(x), out[1] = wb_sum_dims(x, 0), out[2] = wb_sum_dims(x, 1);
    out[3] = wb_mean(long_one), out[4] = wb_var(long_one, true), out[5] = wb_sum(wb_exp(long_one));
    out[6] = wb_softmax(x), out[7] = wb_logsumexp_dims(x, 1);
    out[8] = wb_sum(wb_reshape(x, 301 * 517, 1)), out[9] = wb_normalise(x, 1e-5, 0, 1);
    out[10] = wb_maximum(long_one), out[11] = wb_sum_dims(wb_square(random_array(3, 200000)), 1);
    return 12;
}

static int indexing(wb_array **out) {
    wb_array *table = random_array(64, 1000);
    double places[5000];
    for (int i = 0; i < 5000; i++) places[i] = (double)(i * 7919 % 1000);
    wb_array *index = array_of(WB_I32, places, 1, (const int64_t[]){5000}), *g[1];
    wb_array *taken = wb_gather(table, index, 1);
    assert_int_equal(wb_gradient_of(wb_sum(wb_square(taken)), 1, &table, g), WB_OK);
    out[0] = taken, out[1] = g[0];
    out[2] = wb_scatter_add(table, index, wb_mul_number(taken, 0.1), 1);
    return 3;
}

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_logitcrossentropy(wb_apply(model, batch->x), batch->y);
}

/* Five steps of a network with everything in it; out: its parameters. */
static int training(wb_array **out) {
    wb_layer *model =
        wb_chain(wb_conv({3, 3}, 1, 6, wb_relu), wb_maxpool({2, 2}), wb_flatten(),
                 wb_dropout(.p = 0.3), wb_dense(13 * 13 * 6, 40, wb_gelu), wb_dense(40, 10));
    wb_optimiser *o = wb_setup(wb_adam(.eta = 0.01), model, .clip_total_norm = 1);
    double labels[33];
    for (int i = 0; i < 33; i++) labels[i] = i % 10;
    const wb_batch batch = {.x = random_array(28, 28, 1, 33),
                            .y = array_of(WB_I32, labels, 1, (int64_t[]){33})};
    wb_array *last = NULL;
    for (int i = 0; i < 5; i++) {
        wb_gradients *g;
        last = wb_withgradient(loss, model, &batch, NULL, &g);
        assert_non_null(last);
        assert_int_equal(wb_update(o, model, g), WB_OK);
    }
    const char *const paths[] = {"layers.1.weight", "layers.1.bias",   "layers.5.weight",
                                 "layers.5.bias",   "layers.6.weight", "layers.6.bias"};
    for (int i = 0; i < 6; i++) out[i] = wb_get(model, paths[i]);
    out[6] = last;
    wb_free(o), wb_free(model);
    return 7;
}

static const struct row {
    const char *name;
    results *make;
} rows[] = {
    {"matrix products have the same bits", products},
    {"convolutions and pools have the same bits", convolutions},
    {"reductions have the same bits", reductions},
    {"gathered and scattered have the same bits", indexing},
    {"a network that was trained has the same bits", training},
};

static void any_number_of_threads_gives_the_same_bits(void **state) {
    const struct row *row = *state;
    void *bytes[MOST_RESULTS] = {NULL};
    size_t sizes[MOST_RESULTS];
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        wb_set_threads(threads);
        wb_seed(7);
        wb_scope_open();
        wb_array *out[MOST_RESULTS];
        const int count = row->make(out);
        for (int i = 0; i < count; i++) {
            size_t size;
            void *now = bytes_of(out[i], &size);
            if (threads == 1) {
                bytes[i] = now, sizes[i] = size;
                continue;
            }
            assert_int_equal(size, sizes[i]);
            if (memcmp(now, bytes[i], size) != 0)
                fail_msg("result %d of %s has other bits with %d threads", i,
                         wb_sizes_text(out[i]->ndim, out[i]->sizes), threads);
            free(now);
        }
        assert_int_equal(wb_scope_close(), WB_OK);
    }
    for (int i = 0; i < MOST_RESULTS; i++) free(bytes[i]);
    wb_set_threads(0);
}

/* Twenty times the same under load: no piece goes to whoever is first. */
static void the_same_run_gives_the_same_bits(void **state) {
    (void)state;
    wb_set_threads(MOST_THREADS);
    wb_array *x = random_array(517, 301), *y = random_array(301, 211), *first = NULL;
    for (int i = 0; i < 20; i++) {
        wb_array *z = wb_sum_dims(wb_exp(wb_mul_number(wb_matmul(x, y), 0.01)), 0);
        if (i == 0) first = z;
        assert_same_bits(z, first, "again");
    }
    wb_set_threads(0);
}

/* At i elements after an address with the largest alignment. */
static wb_array *at_alignment(wb_array *x, int i) {
    wb_array *longer = wb_concat(0, wb_zeros(WB_F32, i + 1), wb_reshape(x, -1));
    assert_int_equal(wb_eval(longer), WB_OK);
    return wb_reshape_make(wb_slice(longer, 0, i + 1, i + 1 + wb_count(x), 1), x->ndim, x->sizes);
}

static wb_array *bias;
static wb_array *with_bias(wb_array *x, wb_array *y) {
    return wb_relu(wb_add(wb_matmul(x, y), bias));
}
static wb_array *of_rows(wb_array *x, wb_array *y) {
    return wb_softmax(wb_mul(x, wb_transpose(y)));
}

typedef wb_array *call(wb_array *x, wb_array *y);

/* Nobody can ask for what is inside, so that a product and what follows it may be one call. */
static wb_array *result_of(call *fn, wb_array *x, wb_array *y) {
    assert_int_equal(wb_scope_open(), WB_OK);
    wb_array *result = fn(x, y);
    assert_int_equal(wb_scope_close_leaving(1, &result), WB_OK);
    assert_int_equal(wb_eval(result), WB_OK);
    return result;
}

/* A vendor's library may have another algorithm for another alignment, and for what follows a
 * product: the same call, made again with other memory of the same alignment, gives the same
 * bits. */
static void the_same_call_gives_the_same_bits_elsewhere_in_memory(void **state) {
    (void)state;
    call *const calls[] = {wb_matmul, with_bias, of_rows};
    wb_array *x = random_array(64, 48), *y = random_array(48, 64);
    bias = random_array(64);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int i = 0; i < 5; i++) {
            wb_array *first = result_of(calls[c], at_alignment(x, i), at_alignment(y, i));
            wb_array *again = result_of(calls[c], at_alignment(x, i), at_alignment(y, i));
            assert_same_bits(again, first, "the same call");
        }
}

static void *change_threads(void *stop) {
    for (int n = 0; !__atomic_load_n((bool *)stop, __ATOMIC_RELAXED); n++)
        wb_set_threads(n % 2 ? 1 : 64);
    return NULL;
}

/* New plans, old ones and scratch memory, while another thread changes the number all the time. */
static void the_number_of_threads_may_change_meanwhile(void **state) {
    (void)state;
    bool stop = false;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, change_threads, &stop), 0);
    for (int i = 0; i < 400; i++) {
        wb_scope_open();
        wb_array *x = wb_iota(WB_F32, 0, 200 + i % 50, 300);
        const double sum = wb_item(wb_sum(wb_softmax(wb_mul_number(x, 0.01))));
        (void)wb_scope_close();
        if (!(fabs(sum - 300) < 0.1)) fail_msg("round %d: %g in place of 300", i, sum);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    wb_set_threads(0);
}

static int run(void) {
    static test_list tests;
    const struct CMUnitTest others[] = {
        TEST(the_same_run_gives_the_same_bits),
        TEST(the_same_call_gives_the_same_bits_elsewhere_in_memory),
        TEST(the_number_of_threads_may_change_meanwhile),
    };
    ADD_ROWS(&tests, rows, any_number_of_threads_gives_the_same_bits);
    ADD_TESTS(&tests, others);
    return run_test_list("values 15", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
