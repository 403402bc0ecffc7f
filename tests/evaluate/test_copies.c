/* Copies that a plan spares: values that are stored where a concat, or another order, wants
 * them. */
#include <math.h>

#include "evaluate/small.h"

static wb_array *w, *x, *y; /* f32 (64, 64), (64, 32), (64, 32) */
static bool is_apart;       /* parts are computed before: the copies are made */

static wb_array *part(wb_array *a) {
    if (is_apart) assert_int_equal(wb_eval(a), WB_OK);
    return a;
}

static wb_array *f(wb_array *a) { return part(wb_exp(a)); }

static wb_array *two_parts(void) { return wb_concat(0, f(x), f(y)); }
static wb_array *parts_along_the_last(void) { return wb_concat(1, f(y), x, f(x)); }
static wb_array *behind_a_product(void) {
    return wb_concat(0, part(wb_add(wb_matmul(w, x), y)), f(y));
}
static wb_array *inside_a_plan(void) {
    return wb_matmul(wb_concat(1, w, w), wb_concat(0, f(x), f(y)));
}
static wb_array *beside_a_sum(void) {
    wb_array *a = f(x);
    return wb_concat(0, part(wb_mul(a, y)), part(wb_sub(a, wb_sum_dims(a, 0))));
}
static wb_array *twice_the_same(void) {
    wb_array *a = f(x);
    return wb_concat(0, a, a);
}
static wb_array *read_elsewhere(void) {
    wb_array *a = f(x);
    return wb_concat(0, a, wb_matmul(w, a));
}
static wb_array *a_view(void) { return wb_concat(0, wb_flip(f(x), 0), y); }
static wb_array *a_product(void) { return wb_concat(0, part(wb_matmul(w, x)), y); }
static wb_array *short_runs(void) {
    return wb_concat(0, f(wb_slice(x, 0, 0, 8, 1)), f(wb_slice(y, 0, 0, 8, 1)));
}
static wb_array *another_order(void) {
    return wb_matmul(w, wb_reshape(wb_permute(f(wb_reshape(x, 64, 8, 4)), 0, 2, 1), 64, 32));
}
static wb_array *an_order_of_elements(void) {
    return wb_matmul(wb_reshape(wb_permute(f(wb_reshape(x, 64, 8, 4)), 2, 1, 0), 32, 64), w);
}

static const struct {
    const char *name;
    wb_array *(*make)(void);
    const char *spared;
} rows[] = {
    {"the parts of a concat", two_parts, "2"},
    {"parts along the last dimension, beside a leaf", parts_along_the_last, "2"},
    {"a part behind a product", behind_a_product, "2"},
    {"a concat that is no result", inside_a_plan, "2"},
    {"parts of a program that reduces", beside_a_sum, "2"},
    {"not what stands there twice", twice_the_same, "0"},
    {"not what others read, too", read_elsewhere, "0"},
    {"not what is read as a view", a_view, "0"},
    {"not a product, which a program must compute", a_product, "0"},
    {"not what would be scattered", short_runs, "0"},
    {"another order of the last dimensions", another_order, "1"},
    {"not an order of single elements", an_order_of_elements, "0"},
};

static int spared(const wb_graph *graph) {
    int count = 0;
    for (int64_t n = 0; n < graph->count; n++) count += graph->places.of[n].holder >= 0;
    return count;
}

static void what_a_copy_alone_reads_is_stored_there(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        small s;
        is_apart = false;
        small_order(&s, rows[k].make());
        small_place(&s);
        small_say(&s, "%d", spared(&s.graph));
        small_check(&s, rows[k].name, rows[k].spared);
        small_end(&s);
    }
}

static void the_numbers_are_those_of_copies(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        enum { MOST = 64 * 128 };
        static float wanted[MOST], got[MOST];
        is_apart = true;
        wb_array *root = rows[k].make();
        const int64_t count = wb_count(root);
        assert_int_equal(wb_read_f32(root, wanted, count), WB_OK);
        is_apart = false;
        assert_int_equal(wb_read_f32(rows[k].make(), got, count), WB_OK);
        for (int64_t i = 0; i < count; i++)
            if (!(fabsf(got[i] - wanted[i]) <= 1e-5f * fabsf(wanted[i]) + 1e-5f))
                fail_msg("%s: number %d is %g, not %g", rows[k].name, (int)i, (double)got[i],
                         (double)wanted[i]);
    }
}

/* What is put together lives from its first part on: nothing else may lie there. */
static void a_holder_lives_from_its_first_part_on(void **state) {
    (void)state;
    small s;
    is_apart = false;
    wb_array *a = f(x), *others = wb_matmul(w, wb_matmul(w, y));
    small_order(&s, wb_matmul(wb_concat(1, w, w), wb_concat(0, a, wb_exp(others))));
    small_place(&s);
    const wb_graph *graph = &s.graph;
    for (int64_t n = 0; n < graph->count; n++) {
        const wb_placement *place = &graph->places.of[n];
        if (place->holder < 0) continue;
        assert_int_equal(place->memory, graph->places.of[place->holder].memory);
        assert_int_equal(place->offset_bytes, graph->places.of[place->holder].offset_bytes);
        for (int64_t m = 0; m < graph->count; m++) {
            const wb_placement *call = &graph->places.of[m];
            if (graph->values[m].op != WB_OP_matmul || call->output >= 0) continue;
            assert_true(call->offset_bytes != place->offset_bytes);
        }
    }
    small_end(&s);
}

static int setup(void **state) {
    if (open_scope(state) != 0) return -1;
    w = wb_uniform(WB_F32, 64, 64), x = wb_uniform(WB_F32, 64, 32), y = wb_uniform(WB_F32, 64, 32);
    return wb_evaluate_roots(3, (wb_array *[]){w, x, y}) == WB_OK ? 0 : -1;
}

int main(void) {
    (void)unsetenv("WEBER_EAGER"); /* it is about plans */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_copy_alone_reads_is_stored_there, setup,
                                        close_scope),
        cmocka_unit_test_setup_teardown(the_numbers_are_those_of_copies, setup, close_scope),
        cmocka_unit_test_setup_teardown(a_holder_lives_from_its_first_part_on, setup, close_scope)};
    return cmocka_run_group_tests_name("evaluate/test_copies", tests, NULL, NULL);
}
