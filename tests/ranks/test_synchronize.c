/* src/optimise/synchronize.c: what rank 0 holds becomes what all hold, numbers, too. */
#include <math.h>
#include <string.h>

#include <weber.h>

#include "support/ranks.h"
#include "support/support.h"

/* ---- a model ---- */

/* y = scale x + shift, with numbers of every kind. */
typedef struct Numbers {
    wb_layer layer;
    wb_array *shift;
    double scale; /* a setting */
    int64_t width;
    bool is_open;
    double decay; /* values */
    float slope;
    int steps;
    bool is_done;
    uint16_t port;
    const char *name; /* no number */
} Numbers;

static wb_array *scaled(wb_layer *layer, wb_array *x) {
    const Numbers *n = (const Numbers *)(const void *)layer;
    return wb_add(wb_mul_number(x, n->scale), n->shift);
}

WB_FUNCTOR(Numbers, scaled, WB_ARRAY_FIELD(Numbers, shift),
           WB_SETTING(Numbers, scale, WB_FIELD_REAL, .high = 10),
           WB_SETTING(Numbers, width, WB_FIELD_INTEGER, .low = 1),
           WB_SETTING(Numbers, is_open, WB_FIELD_BOOL), WB_VALUE_FIELD(Numbers, decay),
           WB_VALUE_FIELD(Numbers, slope), WB_VALUE_FIELD(Numbers, steps),
           WB_VALUE_FIELD(Numbers, is_done), WB_VALUE_FIELD(Numbers, port),
           WB_VALUE_FIELD(Numbers, name));

static Numbers *numbers_of(int r) {
    static const char *const names[] = {"zero", "one", "two", "three"};
    Numbers *n = wb_new(Numbers);
    n->shift = wb_keep(wb_full(WB_F32, r, 4));
    n->scale = 2 + r, n->width = 3 + r, n->is_open = r == 0;
    n->decay = 0.1 + r, n->slope = 0.5f + (float)r, n->steps = 7 - r, n->is_done = r == 0;
    n->port = (uint16_t)(60000 + r), n->name = names[r];
    return n;
}

static void sends_numbers(void) {
    wb_scope_open();
    Numbers *n = numbers_of(wb_rank());
    const char *own = n->name;
    wb_layer *model = wb_chain(wb_dropout(wb_rank() == 0 ? 0.25 : 0.5), &n->layer,
                               wb_layernorm({4}, .eps = wb_rank() == 0 ? 1e-3 : 1e-5),
                               wb_conv({3, 3}, 1, 1, .pad = WB_EACH(1, 0)));
    if (wb_rank() == 0) wb_test_mode(model);
    CHECK(wb_synchronize(model) == WB_OK);
    CHECK(n->scale == 2 && n->width == 3 && n->is_open && n->decay == 0.1 && n->slope == 0.5f);
    CHECK(n->steps == 7 && n->is_done && n->port == 60000 && n->name == own);
    CHECK(wb_item(wb_sum(n->shift)) == 0);
    wb_training(true); /* but the model is in test mode, where dropout gives x */
    CHECK(wb_item(wb_sum(wb_apply(wb_chain_at(model, 1), wb_ones(WB_F32, 4, 2)))) == 8);
    wb_training(false);
    char text[400];
    CHECK(wb_show_text(model, text, sizeof text) == WB_OK && strstr(text, "Dropout(0.25"));
    CHECK(strstr(text, "0.001"));
    wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void a_model_has_the_numbers_of_rank_0(void **state) {
    (void)state;
    for (int n = 1; n <= 3; n++) assert_int_equal(ranks_run(n, sends_numbers), 0);
}

/* ---- an optimiser ---- */

static wb_array *loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mse(wb_apply(model, batch->x), batch->y);
}

static bool is_equal(wb_array *a, wb_array *b) {
    char where[100];
    return wb_approx(a, b, 0, 0, where, sizeof where);
}

static double setting(wb_optimiser *o, const char *path, const char *name) {
    return wb_optimiser_setting(o, path, name);
}

static void sends_settings(void) {
    wb_scope_open();
    wb_seed(3);
    const int r = wb_rank();
    wb_layer *model = wb_chain(wb_dense(3, 4, wb_tanh), wb_dense(4, 4), wb_dense(4, 2));
    wb_optimiser *o =
        wb_setup(wb_rule_chain(wb_clip_grad(.delta = 1 + r), wb_adam(.eta = 0.1 * (r + 1))), model,
                 .clip_total_norm = 1 + r);
    const wb_batch batch = {.x = wb_uniform(WB_F32, 3, 8), .y = wb_uniform(WB_F32, 2, 8)};
    if (r == 0) CHECK(wb_freeze(o, "layers.3") == WB_OK);
    for (int i = 0; i <= r; i++) CHECK(wb_train_step(loss, model, &batch, NULL, o));
    /* rank 0 has three rules, of which one has fewer steps */
    if (r == 0) CHECK(wb_thaw(o, "layers.3.bias") == WB_OK);
    if (r == 0) CHECK(wb_adjust_path(o, "layers.1", "eta", 0.03125) == WB_OK);
    if (r == 0) CHECK(wb_adjust_named(o, "beta2", 0.5) == WB_OK);
    CHECK(wb_synchronize(o) == WB_OK && wb_step_count(o) == 1);
    CHECK(setting(o, NULL, "eta") == 0.1 && setting(o, "layers.1.weight", "eta") == 0.03125);
    CHECK(setting(o, "layers.2.weight", "eta") == 0.1);
    CHECK(setting(o, "layers.2.bias", "beta2") == 0.5);
    /* what follows is one training, and what is frozen is frozen everywhere */
    wb_array *frozen = wb_get(model, "layers.3.weight"), *thawed = wb_get(model, "layers.3.bias");
    const wb_batch same = {.x = wb_ones(WB_F32, 3, 8), .y = wb_ones(WB_F32, 2, 8)};
    for (int i = 0; i < 2; i++) CHECK(wb_train_step(loss, model, &same, NULL, o));
    CHECK(is_equal(frozen, wb_get(model, "layers.3.weight")));
    CHECK(!is_equal(thawed, wb_get(model, "layers.3.bias")));
    for (wb_parameter p = {0}; wb_next_parameter(model, &p);)
        CHECK(is_equal(p.array, wb_bcast(p.array, 0)));
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void an_optimiser_has_the_settings_of_rank_0(void **state) {
    (void)state;
    for (int n = 1; n <= 3; n++) assert_int_equal(ranks_run(n, sends_settings), 0);
}

/* ---- what is no model ---- */

static void takes_trees(void) {
    wb_scope_open();
    wb_array *x = wb_full(WB_F32, wb_rank() + 3, 2);
    wb_layer *tree = wb_tree(x, wb_scalar(WB_I64, wb_rank()));
    CHECK(wb_synchronize(tree) == WB_OK);
    CHECK(wb_item(wb_sum(wb_get(tree, "1"))) == 6 && wb_item(wb_get(tree, "2")) == 0);
    CHECK(wb_item(wb_sum(x)) == 2 * (wb_rank() + 3)); /* who holds it has what it was */
    CHECK(wb_synchronize(x) == WB_ERROR_ARGUMENT);
    CHECK(strstr(wb_error_message(), "use x = wb_bcast(x, 0)"));
    wb_clear_error();
    CHECK(wb_synchronize(NULL) == WB_ERROR_ARGUMENT);
    wb_clear_error();
    CHECK(wb_barrier() == WB_OK); /* a refused call sends nothing */
    wb_free(tree);
    CHECK(wb_scope_close() == WB_OK);
}

static void trees_are_taken_and_arrays_named(void **state) {
    (void)state;
    for (int n = 1; n <= 3; n++) assert_int_equal(ranks_run(n, takes_trees), 0);
}

/* ---- what does not fit ---- */

static int row;

static wb_layer *unlike(int r) {
    if (row == 0) return wb_chain(wb_dense(3, 4, r ? wb_relu : wb_tanh));
    if (row == 1) return wb_chain(wb_dense(3, r ? 5 : 4));
    if (row == 2) return r ? wb_chain(wb_dense(3, 4), wb_dropout(0.5)) : wb_chain(wb_dense(3, 4));
    return wb_chain(wb_dense(3, 4));
}

static wb_rule unlike_rule(int r) {
    if (row == 4) return r ? wb_clip_norm(.p = 1) : wb_clip_norm();
    return r ? wb_descent() : wb_adam();
}

static void refuses(void) {
    static const char *const says[] = {
        "layers.1.activation is tanh on rank 0, relu on rank 1",
        "layers.1.weight is f32 (4, 3) on rank 0, f32 (5, 3) on rank 1",
        "layers.2 is missing on rank 0, Dropout on rank 1",
        "the rule is Adam on rank 0, Descent on rank 1",
        "the list of settings of the rule is omega on rank 0, omega, p on rank 1"};
    wb_scope_open();
    wb_layer *model = unlike(wb_rank());
    wb_optimiser *o = wb_setup(unlike_rule(wb_rank()), model);
    CHECK(wb_synchronize(row >= 3 ? (void *)o : (void *)model) == WB_ERROR_ARGUMENT);
    CHECK(strstr(wb_error_message(), says[row]));
    wb_clear_error();
    wb_free(o), wb_free(model);
    CHECK(wb_scope_close() == WB_OK);
}

static void structures_that_differ_are_named(void **state) {
    (void)state;
    for (row = 0; row < 5; row++) assert_int_equal(ranks_run(2, refuses), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_has_the_numbers_of_rank_0),
        cmocka_unit_test(an_optimiser_has_the_settings_of_rank_0),
        cmocka_unit_test(trees_are_taken_and_arrays_named),
        cmocka_unit_test(structures_that_differ_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
