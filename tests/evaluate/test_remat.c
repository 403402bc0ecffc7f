/* Which values programs compute again instead of loading them, and that the numbers stay equal. */
#include "evaluate/small.h"
#include "support/numbers.h"

enum { COLUMNS = 64, ROWS = 48 };

static wb_array *f, *g, *h, *w; /* f32 and bf16 (COLUMNS, ROWS); f32 (COLUMNS, COLUMNS) */

/* What stands for a part of the expression: itself, or computed at once. */
typedef wb_array *part_fn(wb_array *x);
static wb_array *pending(wb_array *x) { return x; }
static wb_array *computed(wb_array *x) { return wb_eval(x) == WB_OK ? x : NULL; }

/* Two programs read v: one has rows, the other one columns. */
static wb_array *two_readers(wb_array *v, part_fn *part) {
    return part(wb_mul(part(wb_sum_dims(wb_square(v), 0)), part(wb_sum_dims(v, 1))));
}

static wb_array *widened(part_fn *part) { return two_readers(part(wb_cast(h, WB_F32)), part); }

static wb_array *widened_beside_its_half(part_fn *part) {
    return two_readers(part(wb_cast(part(wb_cast(wb_exp(f), WB_BF16)), WB_F32)), part);
}

/* The sum is 1.0029 before it is rounded. */
static wb_array *a_half_with_more_digits(part_fn *part) {
    wb_array *one = wb_ones(WB_BF16, COLUMNS, ROWS);
    wb_array *little = wb_cast(wb_mul(wb_ones(WB_F32, COLUMNS, ROWS), wb_number(0.0029)), WB_BF16);
    wb_array *v = wb_cast(wb_add(computed(one), computed(little)), WB_F32);
    return part(wb_sum_dims(wb_sub(v, wb_mean_dims(v, 1)), 0));
}

static wb_array *without_its_mean(part_fn *part) {
    return two_readers(part(wb_sub(f, part(wb_mean_dims(f, 0)))), part);
}

static wb_array *some_operations(part_fn *part) {
    return two_readers(part(wb_square(wb_add(wb_mul(f, wb_number(2)), wb_number(1)))), part);
}

static wb_array *many_operations(part_fn *part) {
    wb_array *v = f;
    for (int i = 0; i < 6; i++) v = wb_square(wb_add(v, wb_number(i)));
    return two_readers(part(v), part);
}

static wb_array *of_two_arrays(part_fn *part) { return two_readers(part(wb_add(f, g)), part); }
static wb_array *expensive(part_fn *part) { return two_readers(part(wb_exp(f)), part); }

static wb_array *for_a_product(part_fn *part) {
    wb_array *v = part(wb_add(f, wb_number(1)));
    return part(wb_add(two_readers(v, part), part(wb_sum_dims(wb_matmul(w, v), 1))));
}

static wb_array *behind_a_product(part_fn *part) {
    return two_readers(part(wb_add(part(wb_matmul(w, f)), wb_number(1))), part);
}

static wb_array *rows_and_an_epilogue(part_fn *part) {
    wb_array *v = part(wb_add(part(wb_matmul(w, f)), wb_number(1)));
    return part(wb_add(part(wb_matmul(w, part(wb_exp(v)))), part(wb_sum_dims(v, 1))));
}

static wb_array *gradient_of_a_norm(part_fn *part) {
    wb_array *x = wb_exp(f), *dx = NULL;
    wb_array *y = wb_normalise(part(x), 1e-5, 0);
    wb_array *loss = wb_sum(wb_mul(wb_square(y), wb_matmul(w, y)));
    return wb_gradient_of(loss, 1, &x, &dx) == WB_OK ? part(dx) : NULL;
}

/* Values of all sizes that lie in the workspace, but for those of rows. */
static const struct {
    const char *name;
    wb_array *(*make)(part_fn *part);
    const char *stored;
} rows[] = {
    {"a half that is widened", widened, ""},
    {"a wide one, whose half is stored in its place", widened_beside_its_half, "cast bf16 "},
    {"a half that has more digits before it is stored", a_half_with_more_digits, "cast f32 "},
    {"an array without its mean", without_its_mean, ""},
    {"a few operations", some_operations, ""},
    {"many operations", many_operations, "square f32 "},
    {"a sum of two arrays", of_two_arrays, "add f32 "},
    {"an exponential", expensive, "exp f32 "},
    {"what a product reads is loaded by others, too", for_a_product, "add f32 matmul f32 "},
    {"a product that rows read", behind_a_product, "matmul f32 "},
    {"a product that rows and an epilogue read", rows_and_an_epilogue,
     "matmul f32 exp f32 matmul f32 "},
    {"the gradient of a norm reads its input", gradient_of_a_norm,
     "exp f32 mul f32 square f32 matmul f32 matmul f32 "},
};

static void say(small *s) {
    const wb_graph *graph = &s->graph;
    for (int32_t n = 0; n < graph->count; n++) {
        const wb_value *v = &graph->values[n];
        const wb_placement *place = &graph->places.of[n];
        const bool is_full = wb_value_count(v) == (int64_t)COLUMNS * ROWS;
        if (place->stored && v->base == n && place->output < 0 && is_full &&
            v->kind != WB_VALUE_LEAF)
            small_say(s, "%s %s ", wb_op_name((wb_op)v->op), wb_dtype_name((wb_dtype)v->dtype));
    }
}

static void cheap_values_are_not_stored(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        small_order(&s, rows[k].make(pending));
        small_suppose_plain_device(&s); /* whose programs have no sums beside their rows */
        small_place(&s);
        assert_true(wb_graph_check(&s.graph));
        say(&s);
        small_check(&s, rows[k].name, rows[k].stored);
        small_end(&s);
    }
}

static void the_numbers_are_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        wb_array *want = computed(rows[k].make(computed)), *have = computed(rows[k].make(pending));
        char difference[256];
        if (!wb_approx(have, want, 1e-4, 1e-4, difference, sizeof difference))
            fail_msg("%s: %s", rows[k].name, difference);
    }
}

static int make_arrays(void **state) {
    if (open_scope(state) != 0) return 1;
    wb_seed(1);
    f = computed(wb_normal(WB_F32, COLUMNS, ROWS)), g = computed(wb_normal(WB_F32, COLUMNS, ROWS));
    h = computed(wb_cast(f, WB_BF16)), w = computed(wb_normal(WB_F32, COLUMNS, COLUMNS));
    return !f || !g || !h || !w;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cheap_values_are_not_stored, make_arrays, close_scope),
        cmocka_unit_test_setup_teardown(the_numbers_are_the_same, make_arrays, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_remat", tests, NULL, NULL);
}
