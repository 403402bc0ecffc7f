/* The gradient of a batch that several ranks share is that of one process, layer by layer. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/ranks.h"
#include "support/support.h"

/* ---- models, of f32 or f64 ---- */

typedef struct row {
    const char *name;
    wb_layer *(*model)(wb_dtype dtype);
    int ndim;
    int64_t sizes[WB_MAX_DIMS]; /* of x, with its observations */
    double tolerance;           /* of f32, beside gradients of about 0.1 */
} row;

static wb_layer *mlp(wb_dtype t) {
    return wb_chain(wb_dense(784, 256, wb_tanh, .dtype = t), wb_dense(256, 10, .dtype = t));
}
static wb_layer *conv(wb_dtype t) {
    return wb_chain(wb_conv({3, 3}, 2, 4, wb_tanh, .dtype = t), wb_meanpool({2, 2}),
                    wb_conv({2, 2}, 4, 3, .dtype = t));
}
static wb_layer *norm(wb_dtype t) {
    return wb_chain(wb_conv({3, 3}, 2, 4, .dtype = t),
                    wb_batchnorm(4, wb_tanh, .sync = true, .dtype = t),
                    wb_conv({2, 2}, 4, 3, .dtype = t));
}
static wb_layer *lstm(wb_dtype t) {
    return wb_chain(wb_lstm(4, 6, .dtype = t), wb_dense(6, 2, .dtype = t));
}
static wb_layer *gru(wb_dtype t) {
    return wb_chain(wb_gru(4, 6, .dtype = t), wb_dense(6, 2, .dtype = t));
}
static wb_layer *attention(wb_dtype t) {
    return wb_chain(wb_transformer_encoder(8, .heads = 2, .dtype = t), wb_dense(8, 2, .dtype = t));
}

static const row rows[] = {
    {"784-256-10", mlp, 2, {784, 64}, 1e-7},
    {"convolutions", conv, 4, {9, 9, 2, 23}, 1e-6},
    {"BatchNorm", norm, 4, {9, 9, 2, 23}, 1e-6},
    {"LSTM", lstm, 3, {4, 7, 23}, 1e-6},
    {"GRU", gru, 3, {4, 7, 23}, 1e-6},
    {"attention", attention, 3, {8, 7, 23}, 1e-6},
    {"few", mlp, 2, {784, 2}, 1e-6}, /* a rank without observations */
};

/* ---- gradients ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *y = wb_apply(model, batch->x);
    return wb_mean(wb_square(wb_sub(y, wb_number(0.3))));
}

static wb_array *input_of(const row *r, wb_dtype dtype) {
    int64_t count = 1;
    for (int d = 0; d < r->ndim; d++) count *= r->sizes[d];
    wb_array *i = wb_cast(wb_iota_make(WB_I32, 0, 1, &count), WB_F64);
    return wb_reshape_make(wb_cast(wb_sin(wb_mul_number(i, 1.7)), dtype), r->ndim, r->sizes);
}

static double largest_difference(wb_array *a, wb_array *b) {
    return wb_item(wb_maximum(wb_abs(wb_sub(wb_cast(a, WB_F64), wb_cast(b, WB_F64)))));
}

static void check_row(const row *r, wb_dtype dtype) {
    wb_scope_open();
    wb_seed(3);
    wb_layer *model = r->model(dtype);
    wb_optimiser *o = wb_setup(wb_descent(), model, .distributed = true);
    wb_array *x = input_of(r, dtype);
    CHECK(o && wb_eval(x) == WB_OK);
    const int64_t n = wb_numobs(x), ranks = wb_total_workers();
    wb_loader *data = wb_loader_new(.x = x, .batchsize = (n + ranks - 1) / ranks, .shard = true);
    const wb_batch all = {.x = x};
    wb_batch own = {0};
    CHECK(wb_next(data, &own));
    wb_gradients *part, *whole;
    CHECK(wb_withgradient_for(o, loss, model, &own, NULL, &part));
    CHECK(wb_withgradient(loss, model, &all, NULL, &whole));
    const double tolerance = dtype == WB_F64 ? 1e-14 : r->tolerance;
    wb_parameter p = {0}, q = {0};
    while (wb_next_gradient(part, &p)) {
        CHECK(wb_next_gradient(whole, &q));
        if (!q.gradient) continue;
        wb_array *sum = wb_allreduce(p.gradient, WB_REDUCE_SUM);
        const double difference = largest_difference(sum, q.gradient);
        if (difference <= tolerance) continue;
        (void)fprintf(stderr, "%s: %s differs by %g\n", r->name, p.path, difference);
        exit(1);
    }
    CHECK(wb_batch_end(&own) == WB_OK);
    wb_free(o), wb_free(model), wb_free(data);
    CHECK(wb_scope_close() == WB_OK);
}

static void checks(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i], WB_F64), check_row(&rows[i], WB_F32);
}

static void gradients_are_those_of_one_process(void **state) {
    (void)state;
    for (int n = 2; n <= 4; n++) assert_int_equal(ranks_run(n, checks), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_those_of_one_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
