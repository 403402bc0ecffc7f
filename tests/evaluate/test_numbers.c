/* src/evaluate/numbers.c: WEBER_DEBUG=nan. */
#include "support/support.h"

typedef struct row {
    const char *name;
    void (*compute)(void);
    const char *said; /* NULL: there is no error */
} row;

static wb_array *of_three(double a, double b, double c) {
    const float numbers[] = {(float)a, (float)b, (float)c};
    return wb_from(WB_F32, numbers, 3);
}

static void read_all(wb_array *x) {
    double numbers[64];
    assert_true(wb_count(x) <= 64);
    (void)wb_read_f64(x, numbers, wb_count(x));
}

/* ---- forward ---- */

static void log_of_zero(void) {
    wb_layer *model = wb_chain(wb_fn(wb_relu), wb_fn(wb_log), wb_fn(wb_identity));
    read_all(wb_mul(wb_apply(model, of_three(1, 2, -3)), wb_number(2)));
    wb_free(model);
}

static void too_large_for_a_half(void) {
    wb_array *x = wb_cast(of_three(1, 300, 2), WB_F16);
    read_all(wb_add(wb_mul(x, x), wb_number(1)));
}

static void zero_by_zero(void) {
    wb_array *x = of_three(0, 1, 2);
    read_all(wb_sum(wb_relu(wb_div(x, x))));
}

/* What does not reach the result does not matter. */
static void a_guarded_log(void) {
    wb_array *x = of_three(0, 1, 2);
    read_all(wb_select(wb_gt(x, wb_number(0)), wb_log(x), wb_number(0)));
}

static void a_slice_beside(void) { read_all(wb_slice(wb_log(of_three(0, 1, 2)), 0, 1, 3, 1)); }

/* ---- from the input ---- */

static void an_infinite_input(void) {
    wb_layer *model = wb_chain(wb_fn(wb_relu), wb_fn(wb_tanh), wb_fn(wb_log));
    read_all(wb_mul(wb_apply(model, wb_add(of_three(1, HUGE_VAL, 2), wb_number(1))), wb_number(3)));
    wb_free(model);
    read_all(wb_mul(of_three(1, HUGE_VAL, 2), wb_number(3)));
}

static void infinity_less_infinity(void) {
    wb_array *x = wb_mul(of_three(1, 2, -HUGE_VAL), wb_number(3));
    read_all(wb_relu(wb_sub(x, x)));
}

static void a_late_number(void) { read_all(wb_mul(of_three(1, 2, 3), wb_late((double)NAN))); }

static void a_mask_over_some(void) {
    read_all(wb_softmax(wb_add(of_three(1, 2, 3), of_three(0, -HUGE_VAL, 0))));
}

/* ---- backward and updates ---- */

static void root_at_zero(void) {
    wb_layer *model = wb_chain(wb_scale({3}), wb_fn(wb_identity), wb_fn(wb_sqrt));
    wb_array *x = of_three(1, 0, 4), *weight = wb_get(model, "layers.1.scale"), *g;
    wb_array *loss = wb_sum(wb_apply(model, x));
    assert_true(wb_item(loss) == 3);
    assert_int_equal(wb_gradient_of(loss, 1, &weight, &g), WB_OK);
    read_all(g);
    wb_free(model);
}

static wb_array *loss_of(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_sum(wb_mul(wb_apply(model, batch->x), wb_number(1e3)));
}

static void a_rate_too_large(void) {
    wb_layer *model = wb_chain(wb_dense(3, 2), wb_fn(wb_identity));
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1e38), model);
    const wb_batch batch = {.x = wb_ones(WB_F32, 3, 4), .y = wb_ones(WB_F32, 2, 4), .size = 4};
    wb_array *before = wb_copy(wb_get(model, "layers.1.weight"));
    assert_null(wb_train_step(loss_of, model, &batch, NULL, o));
    assert_same_bits(wb_get(model, "layers.1.weight"), before, "the step is taken back");
    wb_free(o), wb_free(model);
}

/* The layer of an update is that of its gradient. */
static const row rows[] = {
    {"log of 0 in layer 2", log_of_zero,
     "nan: forward, function, layer 2 of Chain: log gives an infinity at (2) of (3), and its "
     "operands are finite"},
    {"a product in f16", too_large_for_a_half, "nan: forward, mul gives an infinity at (1) of (3)"},
    {"0 / 0", zero_by_zero, "nan: forward, div gives NaN at (0) of (3)"},
    {"an infinity that is not taken", a_guarded_log, NULL},
    {"an infinity beside what is read", a_slice_beside, NULL},
    {"infinite input", an_infinite_input,
     "nan: forward, mul gives an infinity: the input (3) already has an infinity at (1)"},
    {"infinity less infinity", infinity_less_infinity,
     "nan: forward, sub gives NaN: the input (3) already has an infinity at (2)"},
    {"a late number", a_late_number,
     "nan: forward, mul gives NaN: the input () already has NaN at ()"},
    {"a mask over some", a_mask_over_some, NULL},
    {"sqrt at 0", root_at_zero,
     "nan: backward, function, layer 3 of Chain: div gives an infinity at (1)"},
    {"a rate of 1e38", a_rate_too_large,
     "nan: update, Dense(3 => 2), layer 1 of Chain: step gives "},
};

static void the_first_is_named(void **state) {
    const row *r = *state;
    r->compute();
    if (!r->said)
        assert_int_equal(wb_error_status(), WB_OK);
    else
        assert_error(WB_ERROR_NUMBER, r->said);
}

static void what_was_named_can_be_read(void **state) {
    (void)state;
    wb_array *y = wb_log(of_three(0, 1, 2));
    (void)wb_at(y, 0);
    assert_error(WB_ERROR_NUMBER, "log gives");
    assert_true(isinf(wb_at(y, 0)));
    assert_int_equal(wb_error_status(), WB_OK);
}

static int run(void) {
    static test_list tests;
    ADD_ROWS(&tests, rows, the_first_is_named);
    const struct CMUnitTest more[] = {TEST(what_was_named_can_be_read)};
    ADD_TESTS(&tests, more);
    return run_test_list("evaluate/test_numbers", &tests, NULL, NULL);
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    return run_with("WEBER_DEBUG", "nan", run);
}
