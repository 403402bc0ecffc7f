/* Adam's step against its formula: the CPU runs the program as one loop of its own. */
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "ops/step.h"
#include "support/scoped.h"

enum { MOST = 4096, STEP = 4 };

typedef struct row {
    const char *name;
    int64_t rows, columns;
    double decay; /* 0: none */
    bool good;    /* the guard */
} row;

static const row rows[] = {
    {"one element", 1, 1, 0, true},
    {"fewer elements than a vector has lanes", 5, 1, 0, true},
    {"rows that do not fill vectors", 37, 5, 0, true},
    {"several tiles", 512, 7, 0, true},
    {"decay is taken off", 37, 5, 0.01, true},
    {"decay over several tiles", 640, 3, 0.1, true},
    {"a false guard keeps everything", 37, 5, 0.01, false},
    {"a false guard keeps several tiles", 1000, 2, 0, false},
};

static float p[MOST], g[MOST], m[MOST], v[MOST], got[3][MOST];

static void fill(int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        p[i] = (float)sin((double)i), g[i] = (float)cos(1.7 * (double)i);
        m[i] = 0.1f * (float)sin(0.3 * (double)i), v[i] = 0.01f + 0.001f * (float)(i % 13);
    }
    g[0] = 0;
}

static wb_array *array(const float *from, const row *r) {
    return wb_from(WB_F32, from, r->rows, r->columns);
}

static void step(const row *r) {
    const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, eta = 0.002;
    const int64_t n = r->rows * r->columns;
    const double rate = eta / (1 - pow(beta1, STEP)), correction = 1 / (1 - pow(beta2, STEP));
    const wb_rule rule = r->decay > 0 ? wb_adamw(.eta = eta, .lambda = r->decay, .decoupled = true)
                                      : wb_adam(.eta = eta);
    wb_array *loss = wb_scalar(WB_F32, r->good ? 1 : (double)NAN);
    wb_array *states[2] = {array(m, r), array(v, r)}, *out[1 + WB_RULE_ALL_STATES];
    wb_array *numbers = wb_step_numbers(&rule, loss, wb_scalar(WB_I32, STEP - 1));
    assert_int_equal(wb_step_make(numbers, array(p, r), array(g, r), 2, states, out), WB_OK);
    assert_int_equal(wb_eval_make(3, out), WB_OK);
    for (int k = 0; k < 3; k++) assert_int_equal(wb_read_f32(out[k], got[k], n), WB_OK);
    for (int64_t i = 0; i < n; i++) {
        const double mi = beta1 * (double)m[i] + (1 - beta1) * (double)g[i];
        const double vi = beta2 * (double)v[i] + (1 - beta2) * (double)g[i] * (double)g[i];
        const double pi =
            (double)p[i] - r->decay * (double)p[i] - rate * mi / (sqrt(correction * vi) + epsilon);
        const double want[3] = {r->good ? pi : (double)p[i], r->good ? mi : (double)m[i],
                                r->good ? vi : (double)v[i]};
        for (int k = 0; k < 3; k++)
            if (!(fabs((double)got[k][i] - want[k]) <= 1e-6 * (fabs(want[k]) + 0.01)))
                fail_msg("%s: element %d of result %d: %.9g, not %.9g", r->name, (int)i, k,
                         (double)got[k][i], want[k]);
    }
}

static void a_step_is_its_formula(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill(rows[i].rows * rows[i].columns);
        step(&rows[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_is_its_formula, open_scope, close_scope)};
    return cmocka_run_group_tests_name("adam", tests, NULL, NULL);
}
