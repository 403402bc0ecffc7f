/* Rules 2 and 19: what leaves a loss function is numbers, in whatever way a state is carried from
 * step to step: nothing of a step outlives it, and no plan is made twice. */
#include <weber/gradient.h>
#include <weber/optimise.h>

#include "array/array.h"
#include "base/memory.h"
#include "values/modes.h"

enum { STEPS = 1000, SETTLED = 10, UNROLLED = 4 };

/* h' = tanh(w h + x), c' = c / 2 + h' */
typedef struct Cell {
    wb_layer layer;
    wb_array *w, *h, *c;
} Cell;

static wb_array *next_h(const Cell *m, wb_array *h, wb_array *x) {
    return wb_tanh(wb_add(wb_mul(m->w, h), x));
}

static wb_array *forward(wb_layer *layer, wb_array *x) {
    Cell *m = (Cell *)(void *)layer;
    wb_array *h = next_h(m, m->h, x);
    return wb_set(layer, "h", h) == WB_OK ? m->h : NULL; /* which is h now */
}

WB_FUNCTOR(Cell, forward, WB_ARRAY_FIELD(Cell, w), WB_STATE_FIELD(Cell, h),
           WB_STATE_FIELD(Cell, c));

static Cell *cell_of(wb_layer *model) { return (Cell *)(void *)model; }

static wb_array *loss_of(wb_array *h) { return wb_mean(wb_square(h)); }

static wb_array *by_forward(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return loss_of(wb_apply(model, batch->x));
}

static wb_array *by_loss(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *h = next_h(cell_of(model), cell_of(model)->h, batch->x);
    return wb_set(model, "h", h) == WB_OK ? loss_of(h) : NULL;
}

static wb_array *without_its_gradient(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *h = next_h(cell_of(model), cell_of(model)->h, batch->x);
    return wb_set(model, "h", wb_stop_gradient(h)) == WB_OK ? loss_of(h) : NULL;
}

static wb_array *two_states(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    Cell *m = cell_of(model);
    wb_array *h = next_h(m, m->h, batch->x);
    const bool set = wb_set(model, "h", h) == WB_OK &&
                     wb_set(model, "c", wb_add(wb_mul_number(m->c, 0.5), m->h)) == WB_OK;
    return set ? wb_add(loss_of(h), loss_of(m->c)) : NULL;
}

static wb_array *unrolled(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *sum = NULL;
    for (int i = 0; i < UNROLLED; i++) {
        wb_array *l = loss_of(wb_apply(model, batch->x));
        sum = sum ? wb_add(sum, l) : l;
    }
    return sum;
}

static wb_array *kept;

static wb_array *by_a_kept_array(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    wb_array *h = next_h(cell_of(model), kept, batch->x);
    wb_free(kept);
    kept = wb_keep(h);
    return loss_of(h);
}

static wb_array *by_reading(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return loss_of(next_h(cell_of(model), cell_of(model)->h, batch->x));
}

/* After the step: what a callback would do. */
static void set_afterwards(wb_layer *model, wb_array *x) {
    assert_int_equal(wb_set(model, "h", next_h(cell_of(model), cell_of(model)->h, x)), WB_OK);
}

static const struct row {
    const char *name;
    wb_loss_fn *loss;
    int per_step;
    void (*after)(wb_layer *model, wb_array *x);
} rows[] = {
    {"a state set by the forward function", by_forward, 1, NULL},
    {"a state set by the loss function", by_loss, 1, NULL},
    {"a state set without its gradient", without_its_gradient, 1, NULL},
    {"two states, the second made of the first", two_states, 1, NULL},
    {"several steps in one loss", unrolled, UNROLLED, NULL},
    {"a kept array", by_a_kept_array, 1, NULL},
    {"a state set after the step", by_reading, 1, set_afterwards},
};

static wb_layer *new_cell(void) {
    Cell *m = wb_new(Cell);
    assert_non_null(m);
    m->w = wb_keep(wb_copy(wb_full(WB_F32, 0.5, 3)));
    m->h = wb_keep(wb_copy(wb_zeros(WB_F32, 3)));
    m->c = wb_keep(wb_copy(wb_zeros(WB_F32, 3)));
    kept = wb_keep(wb_copy(wb_zeros(WB_F32, 3)));
    assert_int_equal(wb_eval(m->w, m->h, m->c, kept), WB_OK);
    return &m->layer;
}

static void one_step(const struct row *row, wb_layer *model, wb_optimiser *o, bool whole) {
    assert_int_equal(wb_scope_open(), WB_OK);
    const wb_batch batch = {.x = wb_copy(wb_full(WB_F32, 1, 3))};
    wb_gradients *g = NULL;
    if (whole) {
        assert_non_null(wb_train_step(row->loss, model, &batch, NULL, o));
    } else {
        assert_non_null(wb_withgradient(row->loss, model, &batch, NULL, &g));
        assert_int_equal(wb_update(o, model, g), WB_OK);
    }
    if (row->after) row->after(model, batch.x);
    assert_int_equal(wb_scope_close(), WB_OK);
}

/* w hardly moves, so that the states can be computed here. */
static void carry(const struct row *row, bool whole) {
    wb_layer *model = new_cell();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1e-30), model);
    wb_live_counts settled = {0};
    wb_plan_counts warm = {0};
    double h = 0, c = 0;
    const int steps = is_planned() ? STEPS : 2 * SETTLED;
    for (int i = 0; i < steps; i++) {
        one_step(row, model, o, whole);
        for (int k = 0; k < row->per_step; k++) h = tanh(0.5 * h + 1);
        c = 0.5 * c + h;
        if (i == SETTLED - 1) settled = live_now(), warm = wb_plan_status();
        if (i == 3 || i == steps - 1) {
            assert_int_equal(wb_scope_open(), WB_OK);
            wb_array *state = row->loss == by_a_kept_array ? kept : wb_get(model, "h");
            assert_value(wb_maximum(state), h, 1e-5);
            if (row->loss == two_states) assert_value(wb_maximum(wb_get(model, "c")), c, 1e-4);
            assert_int_equal(wb_scope_close(), WB_OK);
        }
    }
    const int64_t done = steps - SETTLED;
    assert_int_equal(live_now().arrays, settled.arrays);
    assert_int_equal(live_now().buffers, settled.buffers);
    if (is_planned()) {
        const wb_plan_counts now = wb_plan_status();
        assert_in_range(now.misses - warm.misses, 0, 3);
        assert_in_range(now.kernels - warm.kernels, 0, 14 * done * row->per_step);
    }
    wb_free(kept), wb_free(o), wb_free(model);
}

static void by_one_step(void **state) { carry(*state, true); }
static void by_gradient_and_update(void **state) { carry(*state, false); }

/* ---- what a struct's own field says ---- */

static wb_array *sets_and_fails(wb_layer *layer, wb_array *x) {
    Cell *m = (Cell *)(void *)layer;
    if (wb_set(layer, "h", wb_add(m->h, x)) != WB_OK) return NULL;
    assert_value(wb_maximum(m->h), 1, 0);  /* at once */
    return wb_add(x, wb_zeros(WB_F32, 7)); /* sizes that do not fit */
}

typedef struct Failing {
    Cell cell;
} Failing;
WB_FUNCTOR(Failing, sets_and_fails, WB_ARRAY_FIELD(Failing, cell.w),
           WB_STATE_FIELD(Failing, cell.h));

static wb_array *loss_of_failing(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    return wb_mean(wb_apply(model, batch->x));
}

static wb_array *sets_then_fails(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    Cell *m = cell_of(model);
    assert_int_equal(wb_set(model, "h", wb_add(m->h, batch->x)), WB_OK);
    assert_value(wb_maximum(m->h), 1, 0);
    return wb_add(batch->x, wb_zeros(WB_F32, 7));
}

static void after_a_failure_the_field_has_its_old_value(void **state) {
    (void)state;
    wb_layer *model = new_cell();
    wb_optimiser *o = wb_setup(wb_descent(.eta = 1e-30), model);
    Failing *failing = wb_new(Failing);
    failing->cell.w = wb_keep(wb_copy(wb_full(WB_F32, 0.5, 3)));
    failing->cell.h = wb_keep(wb_copy(wb_zeros(WB_F32, 3)));
    const wb_batch batch = {.x = wb_copy(wb_full(WB_F32, 1, 3))};
    wb_gradients *g;
    assert_null(wb_train_step(sets_then_fails, model, &batch, NULL, o));
    wb_clear_error();
    assert_value(wb_maximum(cell_of(model)->h), 0, 0);
    assert_null(wb_withgradient(sets_then_fails, model, &batch, NULL, &g));
    wb_clear_error();
    assert_value(wb_maximum(cell_of(model)->h), 0, 0);
    assert_null(wb_apply(&failing->cell.layer, batch.x));
    wb_clear_error();
    assert_value(wb_maximum(failing->cell.h), 0, 0);
    assert_null(wb_withgradient(loss_of_failing, &failing->cell.layer, &batch, NULL, &g));
    wb_clear_error();
    assert_value(wb_maximum(failing->cell.h), 0, 0);
    wb_free(&failing->cell.layer), wb_free(kept), wb_free(o), wb_free(model);
}

static wb_array *apply_in_f64(void *context, int count, wb_array *const *arrays) {
    (void)count;
    return wb_apply(context, arrays[0]);
}

static void after_the_gradient_checker_the_field_has_its_old_value(void **state) {
    (void)state;
    Cell *m = wb_new(Cell);
    m->w = wb_keep(wb_copy(wb_full(WB_F64, 0.5, 3)));
    m->h = wb_keep(wb_copy(wb_zeros(WB_F64, 3)));
    m->c = wb_keep(wb_copy(wb_zeros(WB_F64, 3)));
    wb_array *x = wb_copy(wb_full(WB_F64, 1, 3)), *h = m->h;
    assert_int_equal(wb_gradient_check(apply_in_f64, m, 1, &x, 2, 0), WB_OK);
    assert_ptr_equal(m->h, h);
    assert_value(wb_maximum(m->h), 0, 0);
    wb_free(&m->layer);
}

/* What a state held at first may be a recipe that nobody has computed: it comes back too. */
static void a_state_that_was_never_computed_comes_back_after_a_failure(void **state) {
    (void)state;
    int returns = 0;
    bool done = false;
    for (int n = 1; !done; n++) {
        wb_layer *model = new_cell();
        Cell *m = cell_of(model);
        wb_free(m->h);
        assert_int_equal(wb_scope_open(), WB_OK);
        m->h = wb_keep(wb_mul_number(wb_copy(wb_full(WB_F32, 1, 3)), 0.25));
        const wb_array *before = m->h;
        assert_non_null(wb_apply(model, wb_full(WB_F32, 1, 3)));
        (void)wb_fail_allocation(n);
        done = wb_scope_close() == WB_OK;
        (void)wb_fail_allocation(0);
        wb_clear_error();
        const bool is_back = m->h == before;
        assert_true(is_back || wb_is_evaluated(m->h)); /* no recipe is left */
        assert_false(is_back && done);
        assert_value(wb_maximum(m->h), is_back ? 0.25 : tanh(0.5 * 0.25 + 1), 1e-6);
        wb_free(kept), wb_free(model);
        returns += is_back;
    }
    if (is_planned()) assert_in_range(returns, 1, 10000);
}

/* A scope of the loss's own computes what was written in it; a failure takes it back anyway. */
static wb_array *closes_a_scope_and_fails(wb_layer *model, const wb_batch *batch, void *user) {
    (void)user;
    assert_int_equal(wb_scope_open(), WB_OK);
    assert_int_equal(wb_set(model, "h", wb_add(cell_of(model)->h, batch->x)), WB_OK);
    assert_int_equal(wb_scope_close(), WB_OK);
    assert_value(wb_maximum(cell_of(model)->h), 1, 0);
    return wb_add(batch->x, wb_zeros(WB_F32, 7));
}

static void a_scope_in_between_changes_nothing(void **state) {
    (void)state;
    wb_layer *model = new_cell();
    const wb_batch batch = {.x = wb_copy(wb_full(WB_F32, 1, 3))};
    wb_gradients *g;
    assert_null(wb_withgradient(closes_a_scope_and_fails, model, &batch, NULL, &g));
    wb_clear_error();
    assert_value(wb_maximum(cell_of(model)->h), 0, 0);
    wb_free(kept), wb_free(model);
}

static int run(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    const struct CMUnitTest fields[] = {
        TEST(after_a_failure_the_field_has_its_old_value),
        TEST(a_state_that_was_never_computed_comes_back_after_a_failure),
        TEST(after_the_gradient_checker_the_field_has_its_old_value),
        TEST(a_scope_in_between_changes_nothing),
    };
    struct CMUnitTest tests[2 * ROWS];
    for (int i = 0; i < ROWS; i++) {
        tests[2 * i] = TEST_ROW(&rows[i], by_one_step);
        tests[2 * i + 1] = TEST_ROW(&rows[i], by_gradient_and_update);
    }
    return cmocka_run_group_tests_name("values 19, fields", fields, NULL, NULL) +
           cmocka_run_group_tests_name("values 2 and 19, carried", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
