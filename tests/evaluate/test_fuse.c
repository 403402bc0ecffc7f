/* How many kernels an expression takes, and that it gives what its parts give when they are
 * computed one by one. */
#include <weber.h>

#include "support/numbers.h"
#include "support/scoped.h"

enum { CLASSES = 7, ITEMS = 12 };

/* What stands for a part of the expression: itself, or computed at once. */
typedef wb_array *part_fn(wb_array *x);
static wb_array *pending(wb_array *x) { return x; }
static wb_array *computed(wb_array *x) { return wb_eval(x) == WB_OK ? x : NULL; }

static wb_array *labels_of(void) {
    int32_t labels[ITEMS];
    for (int i = 0; i < ITEMS; i++) labels[i] = i % CLASSES;
    return computed(wb_from(WB_I32, labels, ITEMS));
}

/* ---- expressions of x  (CLASSES, ITEMS) ---- */

static wb_array *softmax(wb_array *x, part_fn *part) { return part(wb_softmax(x)); }

static wb_array *loss_and_gradient(wb_array *x, part_fn *part) {
    wb_array *g = NULL, *l = part(wb_logitcrossentropy(x, labels_of()));
    if (wb_gradient_of(l, 1, &x, &g) != WB_OK) return NULL;
    return wb_add(part(g), l);
}

static wb_array *whole_number(wb_array *x, part_fn *part) {
    return part(wb_add(part(wb_cast(x, WB_I32)), wb_number(3)));
}

/* Two programs over the same rows that a value brings together. */
static wb_array *two_of_rows(wb_array *x, part_fn *part) {
    wb_array *shares = part(wb_div(wb_square(x), part(wb_sum_dims(wb_square(x), 0))));
    wb_array *behind = part(wb_sub(x, part(wb_maximum_dims(x, 0))));
    return part(wb_mul(shares, behind));
}

/* The second program was a map when it read the first one's rows, and has rows of its own now: they
 * wait for the first one's. */
static wb_array *rows_that_wait(wb_array *x, part_fn *part) {
    wb_array *squares = wb_square(x), *total = part(wb_sum_dims(squares, 0));
    wb_array *scaled = part(wb_mul(wb_exp(wb_sub(x, wb_number(1))), total));
    return part(wb_mul(wb_div(squares, total), part(wb_sum_dims(scaled, 0))));
}

static wb_array *other_dimensions(wb_array *x, part_fn *part) {
    return part(wb_mul(part(wb_sum_dims(x, 0)), part(wb_sum_dims(x, 1))));
}

/* Rows of rows: more phases than a program has. The last sum brings both programs together, but
 * they do not fit into one. */
static wb_array *many_phases(wb_array *x, part_fn *part) {
    wb_array *s = part(wb_softmax(x));
    wb_array *t = part(wb_softmax(wb_mul(s, part(wb_sum_dims(wb_square(s), 0)))));
    return part(wb_add(part(wb_sum_dims(wb_mul(t, s), 0)), s));
}

/* ---- tests ---- */

typedef struct row {
    const char *name;
    wb_array *(*make)(wb_array *x, part_fn *part);
    int64_t kernels;
} row;

static void expressions_take_few_kernels(void **state) {
    (void)state;
    static const row rows[] = {
        {"softmax", softmax, 1},
        {"a whole number beside integers", whole_number, 1},
        {"two programs of the same rows", two_of_rows, 1},
        {"rows that wait for others", rows_that_wait, 1},
        {"crossentropy and its gradient", loss_and_gradient,
         /* the mean, and what is added here */
         3},
        {"sums along other dimensions", other_dimensions, 2},
        {"more phases than a program has", many_phases, 2},
    };
    wb_seed(1);
    wb_array *x = computed(wb_normal(WB_F32, CLASSES, ITEMS));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wb_array *want = computed(rows[i].make(x, computed)), *have = rows[i].make(x, pending);
        const int64_t before = wb_plan_status().kernels;
        assert_non_null(computed(have));
        const int64_t kernels = wb_plan_status().kernels - before;
        /* labels that cannot be read are looked at where they lie: zeros, a gather, a sum */
        const int64_t checks = rows[i].make == loss_and_gradient && !is_on_host() ? 3 : 0;
        if (kernels != rows[i].kernels + checks)
            fail_msg("%s: %lld kernels, not %lld", rows[i].name, (long long)kernels,
                     (long long)(rows[i].kernels + checks));
        char difference[256];
        if (!wb_approx(have, want, 1e-5, 1e-6, difference, sizeof difference))
            fail_msg("%s: %s", rows[i].name, difference);
    }
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    (void)unsetenv("WEBER_FUSE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(expressions_take_few_kernels, open_scope, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_fuse", tests, NULL, NULL);
}
