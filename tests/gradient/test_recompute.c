/* What is computed again for the gradient: the same bits, in every kind of function; and memory. */
#include "support/support.h"

static wb_array *apply_layer(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_apply(context, arrays[0]);
}

static wb_array *again_or_not(bool again, wb_layer *layer, wb_array *x) {
    return again ? wb_recompute(apply_layer, layer, 1, &x) : wb_apply(layer, x);
}

/* ---- the bits of gradients with and without it ---- */

static wb_layer *dense_parts(void) {
    return wb_chain(wb_chain(wb_dense(6, 8, wb_tanh), wb_dense(8, 8, wb_gelu)),
                    wb_chain(wb_dense(8, 8, wb_relu), wb_dense(8, 3)));
}

static wb_layer *conv_parts(void) {
    return wb_chain(wb_chain(wb_reshape_layer({3, 2, 1}),
                             wb_conv(.kernel = {2, 2}, .in = 1, .out = 4),
                             wb_batchnorm(4, wb_relu)),
                    wb_chain(wb_flatten(), wb_dense(8, 3)));
}

static wb_layer *dropout_parts(void) {
    return wb_chain(wb_chain(wb_dense(6, 8, wb_tanh), wb_dropout(.p = 0.5), wb_dense(8, 8)),
                    wb_chain(wb_dropout(.p = 0.5), wb_dense(8, 3)));
}

static wb_layer *norm_parts(void) {
    return wb_chain(wb_chain(wb_dense(6, 8), wb_layernorm({8}), wb_dense(8, 8, wb_swish)),
                    wb_chain(wb_layernorm({8}), wb_dense(8, 3)));
}

static wb_layer *recurrent_parts(void) {
    return wb_chain(wb_chain(wb_reshape_layer({2, 3}), wb_lstm(2, 4)),
                    wb_chain(wb_flatten(), wb_dense(12, 3)));
}

static const struct part {
    const char *name;
    wb_layer *(*make)(void);
} parts[] = {
    {"dense layers computed again give the same bits", dense_parts},
    {"a convolution and a batch norm computed again give the same bits", conv_parts},
    {"dropout draws the same again", dropout_parts},
    {"layer norms computed again give the same bits", norm_parts},
    {"an LSTM computed again gives the same bits", recurrent_parts},
};

enum { MOST = 24 };

static int gradients_of(wb_layer *model, wb_array *x, bool again, wb_array **loss,
                        wb_array **gradients) {
    wb_array *parameters[MOST];
    int count = 0;
    wb_seed(11);
    const bool before = wb_training(true);
    for (int64_t i = 1; i <= 2; i++)
        x = again_or_not(again, wb_get_layer(model, i == 1 ? "layers.1" : "layers.2"), x);
    (void)wb_training(before);
    *loss = wb_mean(wb_square(x));
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        if (p.is_trainable) parameters[count++] = p.array;
    assert_int_equal(wb_gradient_of(*loss, count, parameters, gradients), WB_OK);
    return count;
}

/* The same bits where the CPU computes; elsewhere another rounding is right, too. */
static void assert_alike(wb_array *a, wb_array *b, const char *what) {
    char where[128];
    if (is_computed_by_cpu())
        assert_same_bits(a, b, what);
    else if (!wb_approx(a, b, 1e-5, 1e-6, where, sizeof where))
        fail_msg("%s: %s", what, where);
}

static void the_same_bits(void **state) {
    const struct part *p = *state;
    wb_seed(7);
    wb_layer *model = p->make(), *twin = wb_clone(model), *other = wb_clone(model);
    wb_array *x = wb_normal(WB_F32, 6, 16), *losses[3], *gradients[3][MOST];
    wb_eval(x);
    const int count = gradients_of(twin, x, false, &losses[0], gradients[0]);
    assert_int_equal(gradients_of(model, x, true, &losses[1], gradients[1]), count);
    assert_int_equal(gradients_of(other, x, true, &losses[2], gradients[2]), count);
    assert_true(count >= 4);
    assert_alike(losses[0], losses[1], "the loss");
    assert_same_bits(losses[1], losses[2], "the loss of the same call");
    for (int i = 0; i < count; i++) {
        assert_alike(gradients[0][i], gradients[1][i], p->name);
        assert_same_bits(gradients[1][i], gradients[2][i], "a gradient of the same call");
    }
    for (wb_parameter a = {0}; wb_next_parameter(model, &a);) { /* states: written once */
        assert_alike(a.array, wb_get(twin, a.path), a.path);
        assert_same_bits(a.array, wb_get(other, a.path), a.path);
    }
    wb_free(model), wb_free(twin), wb_free(other);
}

/* ---- derivatives, of both orders, with arrays that it was not given ---- */

static wb_array *product(void *context, int count, wb_array *const *arrays) {
    wb_array *const *outside = context;
    wb_array *h = wb_tanh(wb_matmul(outside[0], arrays[0]));
    if (count > 1) h = wb_mul(h, wb_sin(arrays[1]));
    return wb_add(wb_square(h), outside[1]);
}

static wb_array *twice(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    wb_array *pending = wb_mul_number(wb_square(arrays[1]), 0.5); /* made outside */
    wb_array *outside[] = {arrays[0], pending}, *given[] = {arrays[2], arrays[1]};
    wb_array *h = wb_recompute(product, outside, 2, given);
    return wb_recompute(product, outside, 1, &h);
}

static wb_array *nested(void *context, int count, wb_array *const *arrays) {
    return wb_square(wb_recompute(twice, context, count, arrays));
}

static wb_array *recurrent(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_mul(arrays[0], wb_tanh(arrays[1]));
}

static void step(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array *const *w = context;
    wb_array *both[] = {wb_matmul(*w, carries[0]), inputs[0]};
    carries[0] = outputs[0] = wb_recompute(recurrent, NULL, 2, both);
}

/* Products with a slice are hoisted out of a loop, unless they are computed again. */
static wb_array *with_weight(void *context, int count, wb_array *const *arrays) {
    wb_array *const *w = context;
    (void)count;
    return wb_tanh(wb_add(wb_matmul(*w, arrays[0]), arrays[1]));
}

static void step_with_weight(void *context, wb_array **carries, wb_array *const *inputs,
                             wb_array **outputs) {
    wb_array *given[] = {inputs[0], carries[0]};
    carries[0] = outputs[0] = wb_recompute(with_weight, context, 2, given);
}

static wb_array *in_a_scan(void *context, int count, wb_array *const *arrays) {
    wb_array *w = arrays[0], *h = arrays[1], *x = arrays[2], *y;
    wb_scan_fn *body = context ? step_with_weight : step;
    (void)count;
    if (wb_scan(body, &w, 1, &h, 1, &x, 1, &y) != WB_OK) return NULL;
    return y;
}

static char weight_inside;

static const struct derivative {
    const char *name;
    wb_array_fn *fn;
    void *context;
} derivatives[] = {
    {"derivatives of what is computed again, twice", twice, NULL},
    {"derivatives of what is computed again inside of what is", nested, NULL},
    {"derivatives of steps that are computed again", in_a_scan, NULL},
    {"derivatives of steps with a weight that are computed again", in_a_scan, &weight_inside},
};

static void derivatives_agree(void **state) {
    const struct derivative *d = *state;
    if (compiles_kernels() && d != derivatives) return;
    test_random r = {test_seed()};
    const bool scans = d->fn == in_a_scan;
    wb_array *arrays[3] = {
        array_random(&r, WB_F64, -1, 1, 2, (const int64_t[]){3, 3}),
        array_random(&r, WB_F64, -1, 1, 2, (const int64_t[]){3, 1}),
        array_random(&r, WB_F64, -1, 1, scans ? 3 : 2, (const int64_t[]){3, 1, 4})};
    if (wb_gradient_check(d->fn, d->context, 3, arrays, 2, 1e-5) != WB_OK)
        fail_msg("%s: %s", d->name, wb_error_message());
    wb_array *y = d->fn(d->context, 3, arrays), *tangents[3], *pulled[3];
    for (int i = 0; i < 3; i++)
        tangents[i] = array_random(&r, WB_F64, -1, 1, wb_ndim(arrays[i]), wb_sizes(arrays[i]));
    wb_array *u = array_random(&r, WB_F64, -1, 1, wb_ndim(y), wb_sizes(y));
    double reverse = 0;
    assert_int_equal(wb_pullback(y, u, 3, arrays, pulled), WB_OK);
    for (int i = 0; i < 3; i++) reverse += wb_item(wb_sum(wb_mul(pulled[i], tangents[i])));
    const double forward = wb_item(wb_sum(wb_mul(u, wb_jvp(y, 3, arrays, tangents))));
    assert_float_equal(forward, reverse, 1e-9);
}

/* ---- memory: 48 layers in parts of 6 ---- */

enum { LAYERS = 48, PART = 6, WIDE = 64, BATCH = 512 };

static wb_array *several(void *context, int count, wb_array *const *arrays) {
    wb_layer **layers = context;
    wb_array *x = arrays[0];
    (void)count;
    for (int i = 0; i < PART; i++) x = wb_apply(layers[i], x);
    return x;
}

typedef struct tower {
    wb_layer *layers[LAYERS];
    bool again;
} tower;

static wb_array *loss_of(const tower *t, wb_array *x) {
    for (int i = 0; i < LAYERS; i += PART) {
        void *part = (void *)(uintptr_t)&t->layers[i];
        x = t->again ? wb_recompute(several, part, 1, &x) : several(part, 1, &x);
    }
    return wb_mean(wb_square(x));
}

/* Bytes that a plan of all gradients wants beside what there was before. */
static int64_t bytes_of_step(const tower *t, wb_array *x, double *norm) {
    wb_array *weights[LAYERS], *gradients[LAYERS], *sum = NULL;
    wb_scope_open();
    for (int i = 0; i < LAYERS; i++) weights[i] = wb_get(t->layers[i], "weight");
    assert_int_equal(wb_gradient_of(loss_of(t, x), LAYERS, weights, gradients), WB_OK);
    for (int i = LAYERS - 1; i >= 0; i--) {
        wb_array *part = wb_sum(wb_square(gradients[i]));
        sum = sum ? wb_add(sum, part) : part;
    }
    *norm = wb_item(sum);
    const int64_t bytes = wb_memory_status(wb_default_device()).workspace;
    wb_scope_close();
    return bytes;
}

static void a_third_of_the_memory(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) return; /* computes each array by itself, and keeps it */
    if (compiles_kernels()) return;
    tower t;
    wb_seed(1);
    for (int i = 0; i < LAYERS; i++) t.layers[i] = wb_dense(WIDE, WIDE, wb_tanh);
    wb_array *x = wb_normal(WB_F32, WIDE, BATCH);
    wb_eval(x);
    double norms[2];
    t.again = true;
    const int64_t less = bytes_of_step(&t, x, &norms[1]);
    t.again = false;
    const int64_t bytes = bytes_of_step(&t, x, &norms[0]);
    printf("48 layers: workspace %lld bytes, computed again in parts of 6 %lld\n", (long long)bytes,
           (long long)less);
    assert_true(norms[0] == norms[1] && norms[0] > 0);
    assert_true(3 * less <= bytes);
    for (int i = 0; i < LAYERS; i++) wb_free(t.layers[i]);
}

/* ---- mistakes ---- */

static wb_array *nothing(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count, (void)arrays;
    return NULL;
}

static wb_array *its_argument(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return arrays[0];
}

static void mistakes_are_named(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2), *none = NULL;
    assert_null(wb_recompute(NULL, NULL, 1, &x));
    assert_error(WB_ERROR_ARGUMENT, "recompute: the function is NULL");
    assert_null(wb_recompute(nothing, NULL, 1, &x));
    assert_error(WB_ERROR_ARGUMENT, "recompute: the function returned NULL");
    assert_null(wb_recompute(its_argument, NULL, 1, &none));
    assert_error(WB_ERROR_ARGUMENT, "recompute: an array is NULL");
    assert_ptr_equal(wb_recompute(its_argument, NULL, 1, &x), x);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, parts, the_same_bits);
    ADD_ROWS(&tests, derivatives, derivatives_agree);
    const struct CMUnitTest others[] = {TEST(a_third_of_the_memory), TEST(mistakes_are_named)};
    ADD_TESTS(&tests, others);
    return run_test_list("gradient/test_recompute", &tests, NULL, NULL);
}
