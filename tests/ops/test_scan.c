/* Loops as one operation: each body against the same C function called in a loop, forward and
 * backward; plans are shared among lengths; random numbers. */
#include "support/support.h"

enum { MOST = 4 };

/* ---- bodies ---- */

typedef struct body {
    const char *name;
    wb_scan_fn *step;
    int ncarries, ninputs, noutputs;
    struct {
        int ndim;
        int64_t sizes[3];
    } carries[MOST], inputs[MOST], weights[MOST]; /* inputs of one step */
    bool is_exact; /* the same bits as the loop, whatever is fused, where the CPU computes */
} body;

typedef struct weights {
    wb_array *w[MOST];
} weights;

static wb_array *affine(wb_array *w, wb_array *x, wb_array *u, wb_array *h, wb_array *b) {
    return wb_add(wb_add(wb_matmul(w, x), wb_matmul(u, h)), b);
}

static void add_up(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context;
    outputs[0] = carries[0] = wb_add(carries[0], inputs[0]);
}

static void rnn(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array **w = ((weights *)context)->w;
    outputs[0] = carries[0] = wb_tanh(affine(w[0], inputs[0], w[1], carries[0], w[2]));
}

/* Weights that are read in another order, on either side of a product. */
static void transposed(void *context, wb_array **carries, wb_array *const *inputs,
                       wb_array **outputs) {
    wb_array **w = ((weights *)context)->w, *h = carries[0];
    wb_array *z = wb_matmul(wb_transpose(w[0]), inputs[0]);
    z = wb_add(z, wb_matmul(wb_transpose(w[1]), h));
    wb_array *right = wb_matmul(wb_transpose(h), w[2]);
    outputs[0] = carries[0] = wb_tanh(wb_add(z, wb_transpose(right)));
}

static void shifted(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    wb_array **w = ((weights *)context)->w;
    wb_array *shift = wb_reshape(wb_transpose(w[0]), 4, 3, 1);
    outputs[0] = carries[0] = wb_tanh(wb_add(wb_mul(carries[0], inputs[0]), shift));
}

static void last_only(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    wb_array **w = ((weights *)context)->w;
    (void)outputs;
    carries[0] = wb_tanh(affine(w[0], inputs[0], w[1], carries[0], w[2]));
}

static void lstm(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array **w = ((weights *)context)->w;
    wb_array *g = affine(w[0], inputs[0], w[1], carries[0], w[2]);
    const int64_t n = wb_size(carries[0], 0);
    wb_array *i = wb_sigmoid(wb_slice(g, 0, 0, n, 1)), *f = wb_sigmoid(wb_slice(g, 0, n, 2 * n, 1)),
             *c = wb_tanh(wb_slice(g, 0, 2 * n, 3 * n, 1)),
             *o = wb_sigmoid(wb_slice(g, 0, 3 * n, 4 * n, 1));
    carries[1] = wb_add(wb_mul(f, carries[1]), wb_mul(i, c));
    outputs[0] = carries[0] = wb_mul(o, wb_tanh(carries[1]));
}

static void fibonacci(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)context, (void)inputs;
    wb_array *sum = wb_add(carries[0], carries[1]);
    outputs[0] = carries[0];
    carries[0] = carries[1];
    carries[1] = sum;
}

/* What needs a copy: an input as it is, a captured array, a constant, equal values, a view. */
static void passing(void *context, wb_array **carries, wb_array *const *inputs,
                    wb_array **outputs) {
    wb_array **w = ((weights *)context)->w;
    outputs[0] = inputs[0];
    outputs[1] = w[0];
    outputs[2] = wb_transpose(wb_mul(inputs[0], carries[0]));
    outputs[3] = wb_mul(inputs[0], carries[0]);
    carries[0] = wb_add_number(wb_mul(carries[0], wb_number(2)), 1);
}

static void noisy(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context;
    wb_array *mask = wb_bernoulli_make(0.5, wb_ndim(inputs[0]), wb_sizes(inputs[0]));
    wb_array *kept = wb_select(mask, inputs[0], wb_number(0));
    carries[0] = wb_add(wb_mul_number(carries[0], 0.5),
                        wb_mul(kept, wb_normal_make(WB_F32, wb_ndim(kept), wb_sizes(kept))));
    outputs[0] = wb_exp(carries[0]);
}

/* A scan in a scan: powers of the carry are summed, with noise of their own. */
static void inner(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    wb_array **w = context;
    (void)outputs;
    carries[0] = wb_add(wb_mul(carries[0], w[0]),
                        wb_mul(inputs[0], wb_uniform_make(WB_F32, 1, wb_sizes(carries[0]))));
}

static void nested(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context;
    wb_array *start[1] = {wb_mul_number(carries[0], 0.5)};
    wb_array *w[1] = {wb_sigmoid(carries[0])};
    wb_scan(inner, w, 1, start, 1, inputs, 0, NULL);
    outputs[0] = carries[0] = wb_tanh(start[0]);
}

static const body bodies[] = {
    {"a running sum", add_up, 1, 1, 1, {{1, {3}}}, {{1, {3}}}, {{0}}, true},
    {"a scalar carry", add_up, 1, 1, 1, {{0}}, {{0}}, {{0}}, true},
    {"a tanh network",
     rnn,
     1,
     1,
     1,
     {{2, {4, 3}}},
     {{2, {2, 3}}},
     {{2, {4, 2}}, {2, {4, 4}}, {1, {4}}},
     false},
    {"a network whose weights are transposed",
     transposed,
     1,
     1,
     1,
     {{2, {4, 3}}},
     {{2, {2, 3}}},
     {{2, {2, 4}}, {2, {4, 4}}, {2, {4, 4}}},
     false},
    {"a shift that is transposed",
     shifted,
     1,
     1,
     1,
     {{3, {4, 3, 2}}},
     {{3, {4, 3, 2}}},
     {{2, {3, 4}}},
     false},
    {"a network whose last state alone is wanted",
     last_only,
     1,
     1,
     0,
     {{2, {4, 3}}},
     {{2, {2, 3}}},
     {{2, {4, 2}}, {2, {4, 4}}, {1, {4}}},
     false},
    {"an LSTM",
     lstm,
     2,
     1,
     1,
     {{2, {4, 3}}, {2, {4, 3}}},
     {{2, {2, 3}}},
     {{2, {16, 2}}, {2, {16, 4}}, {1, {16}}},
     false},
    {"carries that change places",
     fibonacci,
     2,
     1,
     1,
     {{1, {2}}, {1, {2}}},
     {{1, {1}}},
     {{0}},
     true},
    {"outputs that have to be copied",
     passing,
     1,
     1,
     4,
     {{2, {2, 3}}},
     {{2, {2, 3}}},
     {{1, {3}}},
     true},
    {"random numbers drawn in each step", noisy, 1, 1, 1, {{1, {5}}}, {{1, {5}}}, {{0}}, true},
    {"a scan in a scan", nested, 1, 1, 1, {{1, {4}}}, {{2, {4, 3}}}, {{0}}, false},
};

/* ---- the same as a loop ---- */

typedef struct problem {
    const body *body;
    wb_array *carries[MOST], *inputs[MOST];
    weights w;
    int64_t steps;
    bool reverse;
} problem;

static wb_array *some(test_random *r, wb_dtype dtype, int ndim, const int64_t *sizes,
                      int64_t steps) {
    int64_t all[4];
    for (int d = 0; d < ndim; d++) all[d] = sizes[d];
    if (steps >= 0) all[ndim++] = steps;
    return array_random(r, dtype, -1, 1, ndim, all);
}

/* Weights are recipes, so that a body's views of them are part of the body. */
static problem make(const body *b, wb_dtype dtype, int64_t steps, bool reverse) {
    test_random r = {7};
    problem p = {.body = b, .steps = steps, .reverse = reverse};
    for (int i = 0; i < b->ncarries; i++)
        p.carries[i] = some(&r, dtype, b->carries[i].ndim, b->carries[i].sizes, -1);
    for (int k = 0; k < b->ninputs; k++)
        p.inputs[k] = some(&r, dtype, b->inputs[k].ndim, b->inputs[k].sizes, steps);
    for (int i = 0; i < MOST; i++)
        p.w.w[i] = wb_neg(some(&r, dtype, b->weights[i].ndim, b->weights[i].sizes, -1));
    return p;
}

static void as_loop(problem *p, wb_array **carries, wb_array **outputs) {
    const body *b = p->body;
    wb_array *all[MOST][64];
    for (int i = 0; i < b->ncarries; i++) carries[i] = p->carries[i];
    for (int64_t s = 0; s < p->steps; s++) {
        const int64_t t = p->reverse ? p->steps - 1 - s : s;
        wb_array *slices[MOST], *step[MOST] = {NULL};
        for (int k = 0; k < b->ninputs; k++) {
            const int dim = wb_ndim(p->inputs[k]) - 1;
            slices[k] = wb_squeeze(wb_slice(p->inputs[k], dim, t, t + 1, 1), dim);
        }
        b->step(&p->w, carries, slices, step);
        for (int j = 0; j < b->noutputs; j++) all[j][t] = step[j];
    }
    for (int j = 0; j < b->noutputs; j++)
        outputs[j] = wb_stack_make(wb_ndim(all[j][0]), (int)p->steps, all[j]);
}

static void as_scan(problem *p, wb_array **carries, wb_array **outputs) {
    const body *b = p->body;
    for (int i = 0; i < b->ncarries; i++) carries[i] = p->carries[i];
    assert_int_equal(wb_scan(b->step, &p->w, b->ncarries, carries, b->ninputs, p->inputs,
                             b->noutputs, outputs, .reverse = p->reverse),
                     WB_OK);
}

static void assert_alike(wb_array *x, wb_array *y, bool exact, const char *what) {
    char where[128];
    if (exact)
        assert_same_bits(x, y, what);
    else if (!wb_approx(x, y, 1e-5, 1e-6, where, sizeof where))
        fail_msg("%s: %s", what, where);
}

static void a_scan_is_a_loop(void **state) {
    const body *b = *state;
    const bool is_exact = b->is_exact && is_computed_by_cpu();
    for (int reverse = 0; reverse < 2; reverse++) {
        for (int64_t steps = 1; steps < 8; steps = 2 * steps + 1) {
            problem p = make(b, WB_F32, steps, reverse);
            wb_array *carries[3][MOST], *outputs[3][MOST];
            wb_seed(3);
            as_loop(&p, carries[0], outputs[0]);
            wb_seed(3);
            as_scan(&p, carries[2], outputs[2]);
            wb_seed(3);
            as_scan(&p, carries[1], outputs[1]);
            wb_array *next = wb_uniform(WB_F32, 2);
            for (int i = 0; i < b->ncarries; i++) {
                assert_alike(carries[1][i], carries[0][i], is_exact, "a carry");
                assert_same_bits(carries[1][i], carries[2][i], "a carry of the same call");
            }
            for (int j = 0; j < b->noutputs; j++) {
                assert_alike(outputs[1][j], outputs[0][j], is_exact, "an output");
                assert_same_bits(outputs[1][j], outputs[2][j], "an output of the same call");
            }
            wb_seed(3);
            as_loop(&p, carries[0], outputs[0]);
            assert_same_bits(next, wb_uniform(WB_F32, 2), "what is drawn next");
        }
    }
}

/* ---- derivatives ---- */

/* A number made of everything that the scan gives. */
static wb_array *loss_of(const body *b, wb_array **carries, wb_array **outputs) {
    wb_array *loss = wb_number(0);
    for (int i = 0; i < b->ncarries; i++)
        loss = wb_add(loss, wb_sum(wb_mul_number(wb_square(carries[i]), 0.5 + i)));
    for (int j = 0; j < b->noutputs; j++)
        loss = wb_add(loss, wb_sum(wb_sin(wb_mul_number(outputs[j], 1 + j))));
    return loss;
}

/* The arrays that gradients are taken of: carries, inputs, weights. */
static int list_all(problem *p, wb_array **all) {
    int count = 0;
    for (int i = 0; i < p->body->ncarries; i++) all[count++] = p->carries[i];
    for (int k = 0; k < p->body->ninputs; k++) all[count++] = p->inputs[k];
    for (int i = 0; i < MOST; i++) all[count++] = p->w.w[i];
    return count;
}

static void a_gradient_is_the_loops(void **state) {
    const body *b = *state;
    for (int reverse = 0; reverse < 2; reverse++) {
        for (int64_t steps = 1; steps < 6; steps += 2) {
            problem p = make(b, WB_F32, steps, reverse);
            wb_array *carries[MOST], *outputs[MOST], *all[3 * MOST], *g[2][3 * MOST];
            const int count = list_all(&p, all);
            wb_seed(3);
            as_loop(&p, carries, outputs);
            assert_int_equal(wb_gradient_of(loss_of(b, carries, outputs), count, all, g[0]), WB_OK);
            for (int read = 0; read < 2; read++) { /* also after the loss was computed */
                wb_seed(3);
                as_scan(&p, carries, outputs);
                wb_array *loss = loss_of(b, carries, outputs);
                if (read) assert_true(isfinite(wb_item(loss)));
                if (wb_gradient_of(loss, count, all, g[1]) != WB_OK)
                    fail_msg("%s", wb_error_message());
                for (int i = 0; i < count; i++) {
                    if (!g[0][i] && g[1][i]) assert_true(wb_item(wb_sum(wb_abs(g[1][i]))) == 0);
                    if (!g[0][i]) continue;
                    assert_non_null(g[1][i]);
                    assert_alike(g[1][i], g[0][i], false, "a gradient");
                }
            }
        }
    }
}

static wb_array *scan_loss(void *context, int count, wb_array *const *arrays) {
    problem p = *(problem *)context;
    wb_array *carries[MOST], *outputs[MOST];
    int at = 0;
    for (int i = 0; i < p.body->ncarries; i++) p.carries[i] = arrays[at++];
    for (int k = 0; k < p.body->ninputs; k++) p.inputs[k] = arrays[at++];
    for (int i = 0; at < count; i++) p.w.w[i] = arrays[at++];
    wb_seed(3);
    as_scan(&p, carries, outputs);
    return loss_of(p.body, carries, outputs);
}

static void derivatives_agree_with_differences(void **state) {
    const body *b = *state;
    for (int reverse = 0; reverse < 2; reverse++) {
        problem p = make(b, WB_F64, 3, reverse);
        wb_array *all[3 * MOST];
        const int count = list_all(&p, all);
        for (int order = 1; order <= 2; order++)
            if (wb_gradient_check(scan_loss, &p, count, all, order, 2e-6) != WB_OK)
                fail_msg("order %d: %s", order, wb_error_message());
    }
}

/* ---- plans ---- */

static void lengths_share_the_plan_of_the_body(void **state) {
    (void)state;
    if (getenv("WEBER_EAGER")) skip(); /* it is about plans */
    const body *b = &bodies[6];
    /* on other devices the plan of each length has texts to compile, which takes long */
    const int64_t least = 50, most = wb_default_device() == wb_cpu_device() ? 400 : 59;
    int64_t misses = 0;
    for (int64_t steps = least; steps <= most; steps++) {
        if (steps == least + 1) misses = wb_plan_status().misses; /* the body is planned */
        problem p = make(b, WB_F32, steps, false);
        wb_array *carries[MOST], *outputs[MOST];
        as_scan(&p, carries, outputs);
        assert_true(isfinite(wb_item(loss_of(b, carries, outputs))));
    }
    assert_int_equal(wb_plan_status().misses - misses, most - least); /* the plans around it */
}

static void the_same_scan_again_is_no_new_plan(void **state) {
    (void)state;
    const body *b = &bodies[6];
    int64_t misses = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wb_scope_open(), WB_OK);
        problem p = make(b, WB_F32, 9, false);
        wb_array *carries[MOST], *outputs[MOST], *all[3 * MOST], *g[3 * MOST];
        const int count = list_all(&p, all);
        as_scan(&p, carries, outputs);
        assert_int_equal(wb_gradient_of(loss_of(b, carries, outputs), count - 1, all, g), WB_OK);
        assert_int_equal(wb_eval_make(count - 1, g), WB_OK);
        assert_int_equal(wb_scope_close(), WB_OK);
        if (i == 1) misses = wb_plan_status().misses;
    }
    assert_int_equal(wb_plan_status().misses, misses);
}

/* Bodies that differ only in what they do with what. */
static void a_sum(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)context, (void)outputs;
    carries[0] = wb_sub(carries[0], inputs[0]);
}
static void other_sum(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)context, (void)outputs;
    carries[0] = wb_sub(inputs[0], carries[0]);
}

static void bodies_that_differ_in_their_operands_differ(void **state) {
    (void)state;
    wb_array *x = wb_vector(1, 2, 4), *a = wb_scalar(WB_F32, 10), *b = a;
    wb_scan(a_sum, NULL, 1, &a, 1, &x, 0, NULL);
    wb_scan(other_sum, NULL, 1, &b, 1, &x, 0, NULL);
    assert_true(wb_item(a) == 3 && wb_item(b) == 4 - (2 - (1 - 10)));
}

/* ---- settings ---- */

static void steps_may_be_any_dimension(void **state) {
    (void)state;
    wb_array *x = wb_reshape(wb_vector(1, 2, 3, 4, 5, 6), 2, 3);
    wb_array *h = wb_zeros(WB_F32, 2), *y;
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, &x, 1, &y), WB_OK);
    assert_sizes(y, 2, 3);
    assert_values(y, 0, 1, 2, 4, 6, 9, 12);
    h = wb_zeros(WB_F32, 3);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, &x, 1, &y, .dim = 0), WB_OK);
    assert_sizes(y, 2, 3);
    assert_values(y, 0, 1, 3, 3, 7, 5, 11);
    assert_values(h, 0, 3, 7, 11);
    h = wb_zeros(WB_F32, 3);
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, &x, 1, &y, .dim = -2, .reverse = true), WB_OK);
    assert_values(y, 0, 3, 2, 7, 4, 11, 6);
}

static void count_up(void *context, wb_array **carries, wb_array *const *inputs,
                     wb_array **outputs) {
    (void)context, (void)inputs;
    outputs[0] = carries[0];
    carries[0] = wb_add_number(carries[0], 1);
}

static void steps_without_inputs(void **state) {
    (void)state;
    wb_array *n = wb_scalar(WB_I32, 5), *y;
    assert_int_equal(wb_scan(count_up, NULL, 1, &n, 0, NULL, 1, &y, .steps = 4), WB_OK);
    assert_values(y, 0, 5, 6, 7, 8);
    assert_true(wb_item(n) == 9);
    wb_array *w = wb_number(2); /* a weak number is f32 */
    assert_int_equal(wb_scan(count_up, NULL, 1, &w, 0, NULL, 1, &y, .steps = 2), WB_OK);
    assert_true(wb_dtype_of(w) == WB_F32 && wb_item(w) == 4);
}

static void no_steps_change_nothing(void **state) {
    (void)state;
    wb_array *x = wb_zeros(WB_F32, 2, 0), *h = wb_vector(1, 2), *y;
    assert_int_equal(wb_scan(add_up, NULL, 1, &h, 1, &x, 1, &y), WB_OK);
    assert_values(h, 0, 1, 2);
    assert_sizes(y, 2, 0);
}

/* Of a = 0.5, c' = a c + x from 1 over 1, 2, 3 (catalogue of the definitions). */
static void decay(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    outputs[0] = carries[0] = wb_add(wb_mul(context, carries[0]), inputs[0]);
}

static void a_known_example(void **state) {
    (void)state;
    wb_array *a = wb_scalar(WB_F32, 0.5), *x = wb_vector(1, 2, 3), *c = wb_scalar(WB_F32, 1), *y;
    wb_array *first = c, *g[3];
    assert_int_equal(wb_scan(decay, a, 1, &c, 1, &x, 1, &y), WB_OK);
    assert_values(y, 0, 1.5, 2.75, 4.375);
    assert_int_equal(wb_gradient_of(c, 3, (wb_array *[]){a, x, first}, g), WB_OK);
    assert_true(wb_item(g[0]) == 3.75 && wb_item(g[2]) == 0.125);
    assert_values(g[1], 0, 0.25, 0.5, 1);
}

/* Newton's way to a root of x^3 = a: the body takes a gradient itself. */
static void newton(void *context, wb_array **carries, wb_array *const *inputs, wb_array **outputs) {
    (void)inputs, (void)outputs;
    wb_array *x = carries[0], *y = wb_sub(wb_pow_number(x, 3), context), *g;
    if (wb_gradient_of(y, 1, &x, &g) == WB_OK) carries[0] = wb_sub(x, wb_div(y, g));
}

static void a_body_may_take_gradients(void **state) {
    (void)state;
    wb_array *a = wb_scalar(WB_F32, 27), *x = wb_scalar(WB_F32, 2), *g;
    assert_int_equal(wb_scan(newton, a, 1, &x, 0, NULL, 0, NULL, .steps = 8), WB_OK);
    assert_true(fabs(wb_item(x) - 3) < 1e-5);
    assert_int_equal(wb_gradient_of(x, 1, &a, &g), WB_OK);
    assert_true(fabs(wb_item(g) - 1.0 / 27) < 1e-6); /* of a^(1/3) at 27 */
}

enum { LONG = 30000 };

static void long_step(void *context, wb_array **carries, wb_array *const *inputs,
                      wb_array **outputs) {
    (void)context, (void)outputs;
    for (int i = 0; i < LONG; i++)
        carries[0] = i % 2 ? wb_sub(carries[0], inputs[0]) : wb_add(carries[0], inputs[0]);
}

static void a_long_body_needs_no_deep_stack(void **state) {
    (void)state;
    wb_array *x = wb_vector(0.25, 0.5), *h = wb_scalar(WB_F32, 1), *first = h, *g;
    assert_int_equal(wb_scan(long_step, NULL, 1, &h, 1, &x, 0, NULL), WB_OK);
    assert_int_equal(wb_gradient_of(wb_square(h), 1, &first, &g), WB_OK);
    assert_true(wb_item(g) == 2);
}

int main(void) {
    static test_list tests;
    ADD_ROWS(&tests, bodies, a_scan_is_a_loop);
    ADD_ROWS(&tests, bodies, a_gradient_is_the_loops);
    ADD_ROWS(&tests, bodies, derivatives_agree_with_differences);
    const struct CMUnitTest others[] = {TEST(lengths_share_the_plan_of_the_body),
                                        TEST(the_same_scan_again_is_no_new_plan),
                                        TEST(bodies_that_differ_in_their_operands_differ),
                                        TEST(steps_may_be_any_dimension),
                                        TEST(steps_without_inputs),
                                        TEST(no_steps_change_nothing),
                                        TEST(a_known_example),
                                        TEST(a_body_may_take_gradients),
                                        TEST(a_long_body_needs_no_deep_stack)};
    ADD_TESTS(&tests, others);
    return run_test_list("ops/test_scan", &tests, NULL, NULL);
}
