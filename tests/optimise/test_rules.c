/* src/optimise/rows.c, rules.c: each rule against numbers. */
#include <math.h>
#include <string.h>

#include <weber/layers.h>
#include <weber/optimise.h>

#include "optimise/optimiser.h"
#include "support/scoped.h"

enum { MOST_STEPS = 6 };

/* x after each step along the gradients, from x0. Sources: A: acceptance cases, calculated from the
 * formulas of Optimisers.jl, as the others are. */
typedef struct row {
    const char *name;
    wb_rule rule;
    double x0;
    int steps;
    double g[MOST_STEPS], x[MOST_STEPS];
} row;

/* The gradient of sum(x g) is g. */
static double step(wb_optimiser *o, wb_layer *model, double g) {
    wb_array *x = wb_get(model, "1");
    wb_array *l = wb_sum(wb_mul_number(x, g));
    assert_int_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
    return wb_item(wb_get(model, "1"));
}

static void follow(const row *r, wb_dtype dtype, double tolerance) {
    wb_layer *model = wb_tree(wb_mul_number(wb_ones(dtype, 1), r->x0));
    wb_optimiser *o = wb_setup(r->rule, model);
    for (int t = 0; t < r->steps; t++) {
        const double x = step(o, model, r->g[t]);
        if (!(fabs(x - r->x[t]) <= tolerance))
            fail_msg("%s: step %d gives %.12g, not %.12g", r->name, t + 1, x, r->x[t]);
    }
    wb_free(o), wb_free(model);
}

#define THREE                                                                                      \
    3, { 0.5, -0.3, 0.8 }
#define HALVES                                                                                     \
    3, { 1, -0.5, 0.25 }

static void follow_all(int64_t count, const row *rows) {
    for (int64_t i = 0; i < count; i++) {
        follow(&rows[i], WB_F64, 2e-11);
        follow(&rows[i], WB_F32, 1e-6);
    }
}

#define FOLLOW(rows) follow_all((int64_t)(sizeof rows / sizeof *rows), rows)

static void steps_of_adam_and_its_kin(void **state) {
    (void)state;
    const row rows[] = {
        {"Adam (A7)", wb_adam(), 1, THREE, {0.99900000002, 0.998808501989, 0.998204965637}},
        {"AdamW, coupled (A8)",
         wb_adamw(.lambda = 0.01),
         1,
         THREE,
         {0.99899000002, 0.998788512089, 0.998174987852}},
        {"AdamW, decoupled (A9)",
         wb_adamw(.lambda = 0.01, .decoupled = true),
         1,
         THREE,
         {0.98900000002, 0.978918501989, 0.968525780617}},
        {"Adam", wb_adam(), 2, HALVES, {1.99900000001, 1.998733662974, 1.998393233831}},
        {"AdaMax (A11)", wb_adamax(), 1, THREE, {0.99900000002, 0.998841947234, 0.998410674176}},
        {"AdaMax", wb_adamax(), 2, HALVES, {1.99900000001, 1.998789262959, 1.998563719850}},
        {"AMSGrad (A15)", wb_amsgrad(), 1, THREE, {0.996837786951, 0.996024010446, 0.993036379336}},
        {"AMSGrad", wb_amsgrad(), 2, HALVES, {1.996837738851, 1.995705919794, 1.994020722067}},
        {"RAdam (A18)",
         wb_radam(),
         1,
         6,
         {0.5, -0.3, 0.8, 0.1, 0.4, -0.2},
         {0.9995, 0.999421052632, 0.999076034181, 0.998802262736, 0.998791266505, 0.998779846465}},
        {"OAdam", wb_oadam(), 2, HALVES, {1.99800000002, 1.99900000001, 1.998551033104}},
        {"NAdam", wb_nadam(), 2, HALVES, {1.998525578409, 1.998690524511, 1.998309375342}},
        {"AdaBelief", wb_adabelief(), 2, HALVES, {1.998888888889, 1.998605188096, 1.998239485881}},
        {"Lamb", wb_lamb(.eta = 0.01, .lambda = 0.01), 2, HALVES, {1.98, 1.9602, 1.940598}},
    };
    FOLLOW(rows);
}

static void steps_of_other_rules(void **state) {
    (void)state;
    const row rows[] = {
        {"Descent (A1)", wb_descent(), 1, THREE, {0.95, 0.98, 0.90}},
        {"Momentum (A2)", wb_momentum(), 1, THREE, {0.995, 0.9935, 0.98415}},
        {"RMSProp (A4)", wb_rmsprop(), 1, THREE, {0.99683772254, 0.998528030954, 0.995895511903}},
        {"RMSProp", wb_rmsprop(), 2, HALVES, {1.996837722440, 1.998312141958, 1.997557505590}},
        {"RMSProp, centred",
         wb_rmsprop(.centred = true),
         2,
         HALVES,
         {1.996666666778, 1.998151451411, 1.997383687556}},
        {"Nesterov", wb_nesterov(), 2, HALVES, {1.9981, 1.99824, 1.997441}},
        {"Rprop (A6)", wb_rprop(), 1, THREE, {0.999, 0.999, 0.9985}},
        {"Rprop", wb_rprop(), 2, HALVES, {1.999, 1.999, 1.9985}},
        {"AdaGrad (A13)", wb_adagrad(), 1, THREE, {0.900000004, 0.951449577904, 0.870637375568}},
        {"AdaGrad", wb_adagrad(), 2, HALVES, {1.9000000015, 1.944721360471, 1.922899571721}},
        {"AdaDelta", wb_adadelta(), 2, HALVES, {1.999683772250, 1.999892286650, 1.999776978252}},
        {"Lion", wb_lion(), 2, HALVES, {1.999, 2.0, 1.999}},
        {"Lion, the paper's",
         wb_lion(),
         2,
         4,
         {1, -0.05, -0.05, -0.05},
         {1.999, 1.998, 1.997, 1.996}},
    };
    FOLLOW(rows);
}

static void steps_of_chains_and_their_links(void **state) {
    (void)state;
    const row rows[] = {
        {"WeightDecay", wb_weight_decay(.lambda = 0.1), 10, 1, {2}, {7}},
        {"SignDecay", wb_sign_decay(.lambda = 0.1), 10, 1, {2}, {7.9}},
        {"ClipGrad", wb_clip_grad(.delta = 2), 100, 1, {3}, {98}},
        {"ClipNorm", wb_clip_norm(), 0, 2, {100, 0.1}, {-10, -10.1}},
        {"AccumGrad, then Descent",
         wb_rule_chain(wb_accum_grad(.n = 2), wb_descent(.eta = 1)),
         1,
         5,
         {1, 3, 2, 4, 1},
         {1, -1, -1, -4, -4}},
        {"AccumGrad, then Adam",
         wb_rule_chain(wb_accum_grad(.n = 2), wb_adam()),
         1,
         6,
         {0.5, 0.5, -0.6, 0, 0.8, 0.8},
         {1, 0.99900000002, 0.99900000002, 0.998808501989, 0.998808501989, 0.998204965637}},
        {"a chain of one (A23)", wb_rule_chain(wb_descent()), 2, HALVES, {1.9, 1.95, 1.925}},
        {"a chain of two",
         wb_rule_chain(wb_momentum(.eta = 1, .rho = 0), wb_descent()),
         2,
         HALVES,
         {1.9, 1.95, 1.925}},
    };
    FOLLOW(rows);
}

/* One step of arrays: x, g, and what is left of x. */
typedef struct step_row {
    const char *name;
    wb_rule rule;
    int64_t count;
    double x[3], g[3], wanted[3];
} step_row;

static void steps_of_arrays(void **state) {
    (void)state;
    const wb_rule clip = wb_clip_grad(.delta = 2), decay = wb_weight_decay(.lambda = 0.1);
    const double big = 10 / sqrt(10101.), all = 10. / 111, root = sqrt(.5), cube = cbrt(.5);
    const step_row rows[] = {
        {"A19", decay, 3, {1, 10, 100}, {1, 2, 3}, {-0.1, 7, 87}},
        {"A20", wb_sign_decay(.lambda = 0.1), 3, {1, 10, 100}, {1, 2, 3}, {-0.1, 7.9, 96.9}},
        {"A20, signs",
         wb_sign_decay(.lambda = 0.1),
         3,
         {1, -10, 100},
         {3, 2, -1},
         {-2.1, -11.9, 100.9}},
        {"A21", clip, 3, {1, 10, 100}, {1, 2, 3}, {0, 8, 98}},
        {"A22", wb_rule_chain(clip, decay), 3, {1, 10, 100}, {1, 2, 3}, {-0.1, 7, 88}},
        {"A22, nested",
         wb_rule_chain(wb_rule_chain(clip), wb_rule_chain(decay)),
         3,
         {1, 10, 100},
         {1, 2, 3},
         {-0.1, 7, 88}},
        {"A22, reversed", wb_rule_chain(decay, clip), 3, {1, 10, 100}, {1, 2, 3}, {-0.1, 8, 98}},
        {"A23", wb_rule_chain(wb_descent()), 3, {1, 10, 100}, {1, 2, 3}, {0.9, 9.8, 99.7}},
        {"A24", wb_clip_grad(.delta = 13), 3, {0}, {1, 10, 100}, {-1, -10, -13}},
        {"A25", wb_clip_norm(), 3, {0}, {1, 10, 100}, {-big, -10 * big, -100 * big}},
        {"A25, small", wb_clip_norm(), 1, {0}, {0.1}, {-0.1}},
        {"A25, NaN", wb_clip_norm(), 3, {1, 2, 3}, {1, (double)NAN, 1}, {1, 2, 3}},
        {"1-norm", wb_clip_norm(.p = 1), 3, {0}, {1, -10, 100}, {-all, 10 * all, -100 * all}},
        {"largest", wb_clip_norm(.p = (double)INFINITY), 3, {0}, {1, 10, 100}, {-.1, -1, -10}},
        {"smallest", wb_clip_norm(.p = -(double)INFINITY), 2, {0}, {20, -40}, {-10, 20}},
        {"how many", wb_clip_norm(.omega = 1, .p = 0), 3, {0}, {1, 0, 3}, {-.5, 0, -1.5}},
        {"3-norm", wb_clip_norm(.omega = 1, .p = 3), 2, {0}, {2, 2}, {-cube, -cube}},
        {"squares beyond f32", wb_clip_norm(.omega = 1), 2, {0}, {1e20, 1e20}, {-root, -root}},
        {"cubes beyond f32",
         wb_clip_norm(.omega = 1, .p = 3),
         2,
         {0},
         {1e20, 1e20},
         {-cube, -cube}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const step_row *r = &rows[i];
        double x[3];
        wb_layer *model = wb_tree(wb_from(WB_F64, r->x, r->count));
        wb_optimiser *o = wb_setup(r->rule, model);
        wb_array *l = wb_sum(wb_get(model, "1"));
        wb_gradients *g = wb_gradient(l, model); /* replaced: the loss stays finite */
        assert_int_equal(wb_gradients_set(g, "1", wb_from(WB_F64, r->g, r->count)), WB_OK);
        assert_int_equal(wb_update(o, model, g), WB_OK);
        assert_int_equal(wb_read_f64(wb_get(model, "1"), x, r->count), WB_OK);
        for (int64_t k = 0; k < r->count; k++)
            if (!(fabs(x[k] - r->wanted[k]) <= 1e-9))
                fail_msg("%s: x[%d] is %.12g, not %.12g", r->name, (int)k, x[k], r->wanted[k]);
        wb_free(o), wb_free(model);
    }
}

/* ---- A36: every rule minimises mean(((W - W') X)^2) ---- */

static wb_array *quadratic(wb_layer *model, const wb_batch *batch, void *user) {
    wb_array **at = user;
    (void)batch;
    return wb_mean(wb_square(wb_matmul(wb_sub(wb_get(model, "1"), at[0]), at[1])));
}

static void every_rule_converges(void **state) {
    (void)state;
    const struct {
        wb_rule rule;
        int steps;
    } rows[] = {
        {wb_descent(), 3000},
        {wb_momentum(), 3000},
        {wb_nesterov(), 20000},
        {wb_rmsprop(.eta = 0.01), 3000},
        {wb_rmsprop(.eta = 0.01, .centred = true), 3000},
        {wb_rprop(), 1000},
        {wb_adam(.eta = 0.01), 3000},
        {wb_adamw(.eta = 0.01), 3000},
        {wb_adamax(.eta = 0.01), 3000},
        {wb_nadam(.eta = 0.01), 3000},
        {wb_radam(.eta = 0.01), 3000},
        {wb_amsgrad(.eta = 0.01), 3000},
        {wb_oadam(.eta = 0.01), 3000},
        {wb_adagrad(), 3000},
        {wb_adadelta(.rho = 0.9), 20000},
        {wb_lion(), 5000},
        {wb_adabelief(.eta = 0.01), 3000},
        {wb_lamb(.eta = 0.01), 3000},
        {wb_schedule_free(.eta = 0.05), 5000},
        {wb_muon(.eta = 0.005), 5000},
        {wb_rule_chain(wb_weight_decay(.lambda = 1e-6), wb_clip_norm(), wb_adam(.eta = 0.01)),
         3000},
        {wb_rule_chain(wb_accum_grad(.n = 2), wb_clip_grad(), wb_descent()), 6000},
    };
    if (compiles_kernels() || getenv("WEBER_EAGER") || getenv("WEBER_FUSE")) skip();
    wb_seed(3);
    wb_array *at[] = {wb_normal(WB_F32, 10, 10), wb_normal(WB_F32, 10, 10)};
    assert_int_equal(wb_eval_make(2, at), WB_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = wb_tree(wb_zeros(WB_F32, 10, 10));
        wb_optimiser *o = wb_setup(rows[i].rule, model);
        for (int t = 0; t < rows[i].steps; t++) {
            assert_int_equal(wb_scope_open(), WB_OK);
            assert_non_null(wb_train_step(quadratic, model, &(const wb_batch){.x = NULL}, at, o));
            assert_int_equal(wb_scope_close(), WB_OK);
        }
        const double l = wb_item(quadratic(model, NULL, at));
        if (!(l < 0.01)) fail_msg("%s: the loss is %g", rows[i].rule.links[0]->name, l);
        wb_free(o), wb_free(model);
    }
}

/* ---- mixed precision (A39) ---- */

static void small_steps_add_up_in_f32(void **state) {
    (void)state;
    const wb_dtype types[] = {WB_F16, WB_BF16};
    const wb_rule chain = wb_rule_chain(wb_clip_grad(), wb_momentum(.eta = 1e-5, .rho = 0));
    for (int i = 0; i < 4; i++) {
        wb_layer *model = wb_tree(wb_ones(types[i % 2], 1));
        wb_optimiser *o = wb_setup(i < 2 ? wb_mixed_precision(chain) : chain, model);
        for (int t = 0; t < 1000; t++) (void)step(o, model, 1);
        wb_array *x = wb_get(model, "1");
        assert_int_equal(wb_dtype_of(x), types[i % 2]);
        const double value = wb_item(x);
        if (i >= 2) assert_true(value == 1);
        if (i < 2) {
            wb_array *master = wb_optimiser_get(o, "1", "master");
            assert_int_equal(wb_dtype_of(master), WB_F32);
            assert_true(fabs(wb_item(master) - 0.99) < 1e-4);
            assert_true(wb_item(wb_cast(master, types[i % 2])) == value && value < 1);
            (void)step(o, model, (double)NAN); /* a loss that is NaN changes neither */
            assert_true(wb_item(wb_get(model, "1")) == value);
            assert_true(wb_item(wb_optimiser_get(o, "1", "master")) == wb_item(master));
        }
        wb_free(o), wb_free(model);
    }
    wb_layer *model = wb_tree(wb_ones(WB_F16, 2));
    assert_null(wb_setup(wb_rule_chain(wb_mixed_precision(wb_adam()), wb_ema()), model));
    assert_error(WB_ERROR_ARGUMENT, "wb_rule_chain: MixedPrecision must be around the whole rule");
    assert_null(wb_setup(wb_rule_chain(wb_ema(), wb_adam()), model));
    assert_error(WB_ERROR_ARGUMENT,
                 "wb_rule_chain: EMA must be the last rule of a chain, but Adam follows it");
    assert_null(wb_setup(wb_mixed_precision(wb_mixed_precision(wb_adam())), model));
    assert_error(WB_ERROR_ARGUMENT, "wb_mixed_precision: MixedPrecision must be around the whole");
    wb_free(model);
}

/* ---- averages ---- */

static double averaged(wb_optimiser *o) {
    wb_layer *model = wb_averaged(o);
    const double x = model ? wb_item(wb_get(model, "1")) : (double)NAN;
    wb_free(model);
    return x;
}

static void averages_make_a_model(void **state) {
    (void)state;
    const double g[] = {1, -.5, .25};
    const struct {
        const char *name;
        wb_rule rule;
        double x[3], average[3];
    } rows[] = {
        {"EMA",
         wb_rule_chain(wb_descent(.eta = 1), wb_ema(.decay = .5)),
         {1, 1.5, 1.25},
         {1.5, 1.5, 1.375}},
        {"schedule-free AdamW",
         wb_schedule_free(),
         {1.997500000025, 1.998369753327, 1.998228963},
         {1.997500000025, 1.998290688101, 1.998239167810}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_layer *model = wb_tree(wb_full(WB_F64, 2, 1));
        wb_optimiser *o = wb_setup(rows[i].rule, model);
        for (int t = 0; t < 3; t++) {
            const double x = step(o, model, g[t]), average = averaged(o);
            if (!(fabs(average - rows[i].average[t]) <= 2e-11))
                fail_msg("%s: step %d: %.12g", rows[i].name, t + 1, average);
            if (i == 0 && !(fabs(x - rows[i].x[t]) <= 1e-9))
                fail_msg("%s: step %d: %.12g", rows[i].name, t + 1, x);
        }
        wb_free(o), wb_free(model);
    }
    wb_layer *model = wb_tree(wb_vector(1));
    wb_optimiser *o = wb_setup(wb_adam(), model);
    assert_null(wb_averaged(o));
    assert_error(WB_ERROR_ARGUMENT, "wb_averaged: no rule of the optimiser keeps an average");
    wb_free(o), wb_free(model);
}

/* Rates 1/3, 2/3, 1, 1 and shares 1, 4/5, 9/14, 9/23. */
static void a_warm_up_weighs_the_average(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_zeros(WB_F64, 1));
    wb_optimiser *o = wb_setup(wb_schedule_free(.eta = 1, .warm_up = 3), model);
    double x = 0, z = 0, sum = 0;
    for (int t = 1; t <= 4; t++) {
        const double rate = t < 3 ? t / 3. : 1;
        (void)step(o, model, 1);
        z -= rate, sum += rate * rate;
        x += rate * rate / sum * (z - x);
        assert_true(fabs(averaged(o) - x) <= 1e-6);
    }
    wb_free(o), wb_free(model);
}

/* ---- Muon ---- */

/* Where singular values go in five steps. */
static double brought_near_1(double s) {
    for (int i = 0; i < 5; i++) s = 3.4445 * s - 4.7750 * pow(s, 3) + 2.0315 * pow(s, 5);
    return s;
}

static void muon_brings_singular_values_near_1(void **state) {
    (void)state;
    assert_true(fabs(brought_near_1(.1) - .712120) < 1e-6); /* the catalogue's map */
    const double s = sqrt(.2), l = sqrt(.8);                /* of (1, 2) on the diagonal */
    const struct {
        wb_rule rule;
        int64_t rows, columns;
        double scale;
        bool is_filter; /* (1, rows, columns): in, out */
    } cases[] = {
        {wb_muon(.eta = 1), 2, 3, 1, false},
        {wb_muon(.eta = 1), 4, 2, sqrt(2), false},
        {wb_muon(.eta = 1, .as_adamw = true), 4, 2, .4, false},
        {wb_muon(.eta = 1), 2, 4, sqrt(2), true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t m = cases[i].rows, n = cases[i].columns;
        wb_array *row = wb_iota(WB_F64, 0, m, n), *column = wb_iota(WB_F64, 1, m, n);
        wb_array *on = wb_and(wb_eq(row, column), wb_lt(row, wb_number(2)));
        wb_array *g = wb_select(on, wb_add(row, wb_number(1)), wb_number(0));
        wb_array *start = wb_zeros(WB_F64, m, n);
        wb_layer *model = wb_tree(cases[i].is_filter ? wb_reshape(start, 1, m, n) : start);
        wb_optimiser *o = wb_setup(cases[i].rule, model);
        wb_array *loss = wb_sum(wb_mul(wb_reshape(wb_get(model, "1"), m, n), g));
        assert_int_equal(wb_update(o, model, wb_gradient(loss, model)), WB_OK);
        wb_array *x = wb_reshape(wb_get(model, "1"), m, n);
        assert_true(fabs(wb_at(x, 0, 0) + cases[i].scale * brought_near_1(s)) < 1e-5);
        assert_true(fabs(wb_at(x, 1, 1) + cases[i].scale * brought_near_1(l)) < 1e-5);
        assert_true(fabs(wb_at(x, 1, 0)) < 1e-9);
        wb_free(o), wb_free(model);
    }
    wb_layer *model = wb_tree(wb_vector(1, 2));
    wb_optimiser *o = wb_setup(wb_muon(), model);
    wb_array *loss = wb_sum(wb_get(model, "1"));
    assert_int_not_equal(wb_update(o, model, wb_gradient(loss, model)), WB_OK);
    assert_error(WB_ERROR_SHAPE, "Muon: a parameter must have 2 dimensions or more, got (2): give "
                                 "biases another rule by .paths");
    wb_free(o), wb_free(model);
}

static wb_array *squares(wb_layer *model, const wb_batch *batch, void *user) {
    (void)batch, (void)user;
    return wb_sum(wb_square(wb_get(model, "1")));
}

enum { MOST_PLACES = 1 + WB_RULE_ALL_STATES };

/* Where a parameter and its states lie. */
typedef struct places {
    const void *of[MOST_PLACES];
} places;

static places places_now(const wb_optimiser *o) {
    places now = {{NULL}};
    const wb_tie_group *group = &o->groups[0];
    now.of[0] = (*o->members[group->first].slot)->buffer->handle;
    for (int k = 0; k < WB_RULE_ALL_STATES && group->states[k]; k++)
        now.of[1 + k] = group->states[k]->buffer->handle;
    return now;
}

/* In place means each in its own: then a device that keeps graphs of its work by their addresses
 * makes one for all steps. */
static void steps_of_all_work_in_place(void **state) {
    (void)state;
    const wb_rule rules[] = {
        wb_descent(),
        wb_momentum(),
        wb_nesterov(),
        wb_rmsprop(),
        wb_rmsprop(.centred = true),
        wb_rprop(),
        wb_adam(),
        wb_adamw(),
        wb_adamax(),
        wb_nadam(),
        wb_radam(),
        wb_amsgrad(),
        wb_oadam(),
        wb_adagrad(),
        wb_adadelta(),
        wb_lion(),
        wb_adabelief(),
        wb_clip_norm(),
        wb_clip_norm(.p = 1),
        wb_lamb(),
        wb_lamb(.lambda = 0.1),
        wb_muon(),
        wb_muon(.lambda = 0.1),
        wb_schedule_free(),
        wb_rule_chain(wb_adam(), wb_ema()),
        wb_mixed_precision(wb_adam()),
        wb_rule_chain(wb_clip_grad(), wb_weight_decay(), wb_accum_grad(.n = 2), wb_adam())};
    if (getenv("WEBER_EAGER") || getenv("WEBER_FUSE")) skip();
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        wb_layer *model = wb_tree(wb_uniform(WB_F32, 40, 3));
        wb_optimiser *o = wb_setup(rules[r], model);
        wb_plan_counts before = {0};
        places first = {{NULL}};
        for (int i = 0; i < 8; i++) {
            if (i == 3) before = wb_plan_status(), first = places_now(o);
            wb_scope_open();
            assert_non_null(wb_train_step(squares, model, &(const wb_batch){.x = NULL}, NULL, o));
            const wb_rule_setting *first = &rules[r].links[0]->settings[0];
            if (first->name && first->kind == WB_SETTING_RATE && i != 2)
                (void)wb_adjust_named(o, first->name, 0.001 * i);
            assert_int_equal(wb_scope_close(), WB_OK);
        }
        const wb_plan_counts after = wb_plan_status();
        const char *name = rules[r].links[0]->name;
        if (after.misses != before.misses) fail_msg("%s: a plan was missed", name);
        if (after.missed_donations != before.missed_donations) fail_msg("%s: not in place", name);
        if (after.evaluations - before.evaluations != 5) fail_msg("%s: several plans", name);
        const places last = places_now(o);
        for (int k = 0; k < MOST_PLACES; k++)
            if (last.of[k] != first.of[k]) fail_msg("%s: array %d has moved", name, k);
        wb_free(o), wb_free(model);
    }
}

/* States are written in place by a program that reads them twice: for the norms, and for the
 * step. */
static void lamb_of_many_numbers(void **state) {
    (void)state;
    enum { N = 5000, STEPS = 4 };
    static double x[N], m[N], v[N], u[N], got[N];
    for (int i = 0; i < N; i++) x[i] = 1 + (i % 7) * 0.25, m[i] = v[i] = 0;
    wb_layer *model = wb_tree(wb_from(WB_F64, x, 50, N / 50));
    wb_optimiser *o = wb_setup(wb_lamb(.eta = 0.1, .lambda = 0.1), model);
    for (int t = 1; t <= STEPS; t++) {
        double size = 0, of_step = 0;
        for (int i = 0; i < N; i++) {
            const double g = 2 * x[i];
            m[i] = 0.9 * m[i] + 0.1 * g, v[i] = 0.999 * v[i] + 0.001 * g * g;
            u[i] =
                m[i] / (1 - pow(0.9, t)) / (sqrt(v[i] / (1 - pow(0.999, t))) + 1e-6) + 0.1 * x[i];
            size += x[i] * x[i], of_step += u[i] * u[i];
        }
        for (int i = 0; i < N; i++) x[i] -= 0.1 * sqrt(size / of_step) * u[i];
        assert_non_null(wb_train_step(squares, model, &(const wb_batch){.x = NULL}, NULL, o));
    }
    assert_int_equal(wb_read_f64(wb_get(model, "1"), got, N), WB_OK);
    for (int i = 0; i < N; i++)
        if (!(fabs(got[i] - x[i]) < 1e-9))
            fail_msg("number %d is %.12g, not %.12g", i, got[i], x[i]);
    wb_free(o), wb_free(model);
}

static void a_chain_that_is_too_long_is_refused(void **state) {
    (void)state;
    wb_layer *model = wb_tree(wb_ones(WB_F32, 1));
    const wb_rule d = wb_descent();
    const wb_rule chain = wb_rule_chain(d, d, d, d, d, d, d);
    assert_null(wb_setup(chain, model));
    char text[256];
    assert_int_equal(wb_take_error(text, sizeof text), WB_ERROR_ARGUMENT);
    assert_non_null(strstr(text, "wb_rule_chain: at most 6 rules, 24 settings and 8 states fit;"));
    wb_free(model);
}

/* ---- mistakes in rules of a user's own ---- */

typedef struct own_desc {
    char start_;
    double eta;
} own_desc;

static wb_array *gives_nothing(wb_rule_at *at) {
    (void)at;
    return NULL;
}
static wb_array *gives_more(wb_rule_at *at) { return wb_concat(0, at->g, at->g); }
static wb_array *gives_integers(wb_rule_at *at) { return wb_cast(at->g, WB_I32); }
static wb_array *fails(wb_rule_at *at) { return wb_add(at->g, wb_ones(WB_F32, 7)); }
static wb_array *reads(wb_rule_at *at) { return wb_mul_number(at->g, wb_item(wb_sum(at->g))); }
static wb_array *loses_its_state(wb_rule_at *at) {
    at->state[0] = NULL;
    return at->g;
}
static wb_array *turns_its_state(wb_rule_at *at) {
    at->state[0] = wb_concat(0, at->g, at->g);
    return at->g;
}
static wb_array *invents_a_state(wb_rule_at *at) {
    at->state[1] = at->g;
    return at->g;
}
static wb_array *loses_good(wb_rule_at *at) {
    at->good = NULL;
    return at->g;
}
static wb_array *opens_a_scope(wb_rule_at *at) {
    (void)wb_scope_open();
    return wb_neg(at->g);
}
static wb_array *names_nothing(wb_rule_at *at) {
    at->state[0] = at->g;
    return wb_mul(at->g, wb_setting_unbiased(at, NULL));
}
static wb_array *is_fine(wb_rule_at *at) { return wb_mul(at->g, wb_setting(at, "eta")); }

#define OWN(function)                                                                              \
    {                                                                                              \
        .name = "Own", .settings = {{"eta", WB_SETTING_RATE, 0.1, offsetof(own_desc, eta), NULL}}, \
        .states = {{"s", WB_START_ZERO, NULL}}, .step = function                                   \
    }

static const struct {
    wb_rule_row row;
    const char *message;
} steps_of_own[] = {
    {OWN(gives_nothing), "Own: its step returned NULL for what it returns, without an error"},
    {OWN(gives_more), "Own: what it returns must be (2), but its step left (4)"},
    {OWN(gives_integers), "Own: what it returns must be f32, but its step left i32"},
    {OWN(fails), "add: sizes (2) and (7) do not broadcast"},
    {OWN(reads), "item: cannot be called inside the body of a scan or the step of a rule"},
    {OWN(loses_its_state), "Own: its step returned NULL for s, without an error"},
    {OWN(turns_its_state), "Own: s must be (2), but its step left (4)"},
    {OWN(invents_a_state), "Own: its step set state 1, which the rule does not have"},
    {OWN(loses_good), "Own: its step returned NULL for good, without an error"},
    {OWN(names_nothing), "wb_setting: the name is NULL"},
    {OWN(opens_a_scope), "Own: its step opened a scope and did not close it"},
};

static void mistakes_in_a_step_are_named(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof steps_of_own / sizeof *steps_of_own; i++) {
        wb_layer *model = wb_tree(wb_vector(1, 2));
        const own_desc desc = {.eta = 0.1};
        wb_optimiser *o = wb_setup(wb_rule_make(&steps_of_own[i].row, &desc), model);
        wb_array *l = wb_sum(wb_square(wb_get(model, "1")));
        assert_int_not_equal(wb_update(o, model, wb_gradient(l, model)), WB_OK);
        char text[256];
        (void)wb_take_error(text, sizeof text);
        if (!strstr(text, steps_of_own[i].message))
            fail_msg("\"%s\", not \"%s\"", text, steps_of_own[i].message);
        assert_true(wb_at(wb_get(model, "1"), 1) == 2); /* as it was */
        assert_int_equal(wb_step_count(o), 0);
        wb_free(o), wb_free(model);
    }
}

static void mistakes_in_a_row_are_named(void **state) {
    (void)state;
    static const wb_rule_setting eta = {
        .name = "eta", .kind = WB_SETTING_RATE, .fallback = 0.1, .offset = offsetof(own_desc, eta)};
    const struct {
        wb_rule_row row;
        const char *message;
    } rows[] = {
        {{.settings = {eta}, .step = is_fine}, "a rule's row has no name"},
        {{.name = "Own", .settings = {eta, eta}, .step = is_fine},
         "Own: two settings are called eta"},
        {{.name = "Own",
          .settings = {eta},
          .states = {{"s", WB_START_SETTING, "zeta"}},
          .step = is_fine},
         "Own: state s starts with the setting zeta, which the rule does not have"},
        {{.name = "Own",
          .settings = {eta},
          .states = {{"s", WB_START_SETTING, NULL}},
          .step = is_fine},
         "Own: state s starts with the setting NULL"},
    };
    wb_layer *model = wb_tree(wb_vector(1, 2));
    const own_desc desc = {.eta = 0.1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(wb_setup(wb_rule_make(&rows[i].row, &desc), model));
        assert_error(WB_ERROR_ARGUMENT, rows[i].message);
    }
    assert_null(wb_setup((wb_rule){.late = 0}, model));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: the rule is empty");
    assert_null(wb_setup(wb_adam(), model, .paths = {{.path = "*"}}));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: the rule is empty");
    assert_null(wb_setup(wb_adam(), model, .paths = {{.rule = wb_adam()}}));
    assert_error(WB_ERROR_ARGUMENT, "wb_setup: the path of a rule is NULL");
    wb_free(model);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        TEST(steps_of_adam_and_its_kin),
        TEST(steps_of_other_rules),
        TEST(steps_of_chains_and_their_links),
        TEST(steps_of_arrays),
        TEST(every_rule_converges),
        TEST(small_steps_add_up_in_f32),
        TEST(averages_make_a_model),
        TEST(a_warm_up_weighs_the_average),
        TEST(muon_brings_singular_values_near_1),
        TEST(steps_of_all_work_in_place),
        TEST(lamb_of_many_numbers),
        TEST(a_chain_that_is_too_long_is_refused),
        TEST(mistakes_in_a_step_are_named),
        TEST(mistakes_in_a_row_are_named),
    };
    return cmocka_run_group_tests_name("optimise/test_rules", tests, NULL, NULL);
}
