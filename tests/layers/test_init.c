/* src/layers/init.c */
#include <math.h>
#include <string.h>

#include <weber/layers.h>

#include "support/numbers.h"
#include "support/scoped.h"

typedef struct row {
    const char *name;
    wb_init *init;
    int ndim;
    int64_t sizes[4];
    double bound; /* 0: normal */
    double deviation;
} row;

static void spread_follows_the_fans(void **state) { /* K5, K6 */
    (void)state;
    const row rows[] = {
        {"glorot uniform", wb_glorot_uniform, 2, {100, 200}, sqrt(6.0 / 300), sqrt(2.0 / 300)},
        {"glorot normal", wb_glorot_normal, 2, {100, 200}, 0, sqrt(2.0 / 300)},
        {"kaiming uniform", wb_kaiming_uniform, 2, {100, 200}, sqrt(6.0 / 200), sqrt(2.0 / 200)},
        {"kaiming normal", wb_kaiming_normal, 2, {100, 200}, 0, sqrt(2.0 / 200)},
        {"a convolution", wb_glorot_uniform, 4, {2, 3, 40, 50}, sqrt(6.0 / 540), sqrt(2.0 / 540)},
        {"a vector", wb_kaiming_normal, 1, {10000}, 0, sqrt(2.0)},
    };
    wb_seed(3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        wb_array *w = r->init(r->ndim, r->sizes, WB_F32);
        if (!w) fail_msg("%s: %s", r->name, wb_error_message());
        assert_int_equal(wb_dtype_of(w), WB_F32);
        const double deviation = sqrt(wb_item(wb_var(w, false)));
        if (!(fabs(deviation / r->deviation - 1) < 0.05))
            fail_msg("%s: deviation %g, not %g", r->name, deviation, r->deviation);
        if (r->bound > 0) assert_true(wb_item(wb_maximum(wb_abs(w))) <= r->bound * 1.00001);
        assert_true(fabs(wb_item(wb_mean(w))) < 0.05 * r->deviation);
    }
}

static void constants(void **state) {
    (void)state;
    const int64_t sizes[9] = {2};
    assert_values(wb_zeros_init(1, sizes, WB_F64), 0, 0, 0);
    assert_values(wb_ones_init(1, sizes, WB_BF16), 0, 1, 1);
    assert_null(wb_glorot_uniform(9, sizes, WB_F32));
    wb_clear_error();
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {TEST(spread_follows_the_fans), TEST(constants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
