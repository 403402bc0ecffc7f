/* Programs: products that become one step with what follows them. */
#include "support/support.h"

typedef wb_array *formula(wb_array *x, wb_array *y, wb_array *z);

static wb_array *three(void) { return wb_number(3); }

static wb_array *plus(wb_array *x, wb_array *y, wb_array *z) { return wb_add(wb_mul(x, y), z); }
static wb_array *after(wb_array *x, wb_array *y, wb_array *z) { return wb_add(z, wb_mul(x, y)); }
static wb_array *less(wb_array *x, wb_array *y, wb_array *z) { return wb_sub(z, wb_mul(x, y)); }
static wb_array *minus(wb_array *x, wb_array *y, wb_array *z) { return wb_sub(wb_mul(x, y), z); }
static wb_array *both(wb_array *x, wb_array *y, wb_array *z) {
    return wb_sub(wb_mul(x, y), wb_mul(y, z));
}
static wb_array *negated(wb_array *x, wb_array *y, wb_array *z) {
    return wb_add(wb_neg(wb_mul(x, y)), z);
}
static wb_array *square(wb_array *x, wb_array *y, wb_array *z) {
    return wb_mul(y, wb_sub(z, wb_square(x)));
}
static wb_array *negated_square(wb_array *x, wb_array *y, wb_array *z) {
    return wb_mul(wb_neg(wb_square(x)), wb_max(y, z));
}
static wb_array *times_number(wb_array *x, wb_array *y, wb_array *z) {
    return wb_mul(y, wb_sub(z, wb_mul(three(), x)));
}
static wb_array *from_number(wb_array *x, wb_array *y, wb_array *z) {
    return wb_mul(z, wb_sub(three(), wb_mul(x, y)));
}
static wb_array *all_numbers(wb_array *x, wb_array *y, wb_array *z) {
    return wb_mul(wb_sub(three(), wb_mul(x, wb_number(2))), wb_sub(y, z));
}
static wb_array *negated_number(wb_array *x, wb_array *y, wb_array *z) {
    return wb_sub(wb_neg(wb_mul(x, three())), wb_mul(y, z));
}
static wb_array *used_twice(wb_array *x, wb_array *y, wb_array *z) {
    wb_array *product = wb_mul(x, y);
    return wb_mul(wb_sub(z, product), wb_neg(product));
}

/* At x = i, y = 2 - i, z = 5 i. */
static const struct product_row {
    const char *name;
    formula *formula;
    double wanted[4]; /* for i = 0, 1, 2, 3 */
} rows[] = {
    {"x y + z", plus, {0, 6, 10, 12}},
    {"z + x y", after, {0, 6, 10, 12}},
    {"z - x y", less, {0, 4, 10, 18}},
    {"x y - z", minus, {0, -4, -10, -18}},
    {"x y - y z", both, {0, -4, 0, 12}},
    {"-(x y) + z", negated, {0, 4, 10, 18}},
    {"y (z - x^2)", square, {0, 4, 0, -6}},
    {"-(x^2) max(y, z)", negated_square, {0, -5, -40, -135}},
    {"y (z - 3 x)", times_number, {0, 2, 0, -6}},
    {"z (3 - x y)", from_number, {0, 10, 30, 90}},
    {"(3 - 2 x) (y - z)", all_numbers, {6, -4, 10, 48}},
    {"-(3 x) - y z", negated_number, {0, -8, -6, 6}},
    {"(z - x y) times -xy", used_twice, {0, -4, 0, 54}},
};

static wb_array *line(wb_dtype dtype, double first, double step) {
    double numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = first + step * (i % 4);
    return array_of(dtype, numbers, 1, (const int64_t[]){100});
}

static void gives_what_it_says(void **state) {
    const struct product_row *row = *state;
    const wb_dtype types[] = {WB_F32, WB_F64, WB_I32, WB_I64};
    double wanted[100];
    for (int i = 0; i < 100; i++) wanted[i] = row->wanted[i % 4];
    for (int t = 0; t < 4; t++) {
        const wb_dtype dtype = types[t];
        wb_array *x = line(dtype, 0, 1), *y = line(dtype, 2, -1), *z = line(dtype, 0, 5);
        assert_numbers(row->formula(x, y, z), 100, wanted, 0);
    }
}

int main(void) {
    enum { ROWS = sizeof rows / sizeof *rows };
    struct CMUnitTest tests[ROWS];
    for (int i = 0; i < ROWS; i++) tests[i] = TEST_ROW(&rows[i], gives_what_it_says);
    return cmocka_run_group_tests_name("programs", tests, NULL, NULL);
}
