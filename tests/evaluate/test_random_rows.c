/* Random graphs of what makes programs with phases: products, sums and maxima along the rows and
 * columns of a matrix, each beside plain C. Few operations and one size, so that values meet whose
 * programs may be merged; several are asked for at once. */
#include <math.h>

#include "support/support.h"

enum { FEATURES = 5, ROWS = 4, MOST_VALUES = 24, MOST_NODES = 16, MOST_ROOTS = 4, GRAPHS = 20000 };

/* A matrix, or what a reduction left of it: 1 along a dimension. */
typedef struct value {
    wb_array *x;
    int64_t sizes[2]; /* (FEATURES or 1, ROWS or 1) */
    double right[FEATURES * ROWS];
} value;

typedef struct graph {
    test_random r;
    value values[MOST_VALUES];
    int count;
} graph;

static int64_t below(graph *g, int64_t n) { return random_below(&g->r, n); }

static double at(const value *v, int64_t i, int64_t k) {
    return v->right[(v->sizes[0] == 1 ? 0 : i) + (v->sizes[1] == 1 ? 0 : k) * v->sizes[0]];
}

static value *new_value(graph *g, int64_t first, int64_t second) {
    value *v = &g->values[g->count++];
    v->sizes[0] = first, v->sizes[1] = second;
    return v;
}

static void add_leaf(graph *g) {
    value *v = new_value(g, FEATURES, ROWS);
    for (int i = 0; i < FEATURES * ROWS; i++) v->right[i] = random_between(&g->r, -1, 1);
    v->x = array_of(WB_F64, v->right, 2, v->sizes);
}

static void add_pair(graph *g, const value *a, const value *b) {
    value *v = new_value(g, a->sizes[0] > b->sizes[0] ? a->sizes[0] : b->sizes[0],
                         a->sizes[1] > b->sizes[1] ? a->sizes[1] : b->sizes[1]);
    const int64_t op = below(g, 3);
    v->x = op == 0 ? wb_add(a->x, b->x) : op == 1 ? wb_sub(a->x, b->x) : wb_mul(a->x, b->x);
    for (int64_t k = 0; k < v->sizes[1]; k++)
        for (int64_t i = 0; i < v->sizes[0]; i++) {
            const double p = at(a, i, k), q = at(b, i, k);
            v->right[i + k * v->sizes[0]] = op == 0 ? p + q : op == 1 ? p - q : p * q;
        }
}

static void add_one(graph *g, const value *a) {
    value *v = new_value(g, a->sizes[0], a->sizes[1]);
    const bool is_square = below(g, 2);
    v->x = is_square ? wb_square(wb_tanh(a->x)) : wb_tanh(a->x);
    for (int64_t i = 0; i < v->sizes[0] * v->sizes[1]; i++)
        v->right[i] = pow(tanh(a->right[i]), is_square ? 2 : 1);
}

static void add_reduction(graph *g, const value *a) {
    const int dim = (int)below(g, 2);
    const bool is_sum = below(g, 4) > 0;
    value *v = new_value(g, dim == 0 ? 1 : a->sizes[0], dim == 1 ? 1 : a->sizes[1]);
    v->x = is_sum ? wb_sum_dims(a->x, dim) : wb_maximum_dims(a->x, dim);
    for (int64_t k = 0; k < v->sizes[1]; k++)
        for (int64_t i = 0; i < v->sizes[0]; i++) {
            double whole = is_sum ? 0 : -INFINITY;
            for (int64_t j = 0; j < a->sizes[dim]; j++) {
                const double x = dim == 0 ? at(a, j, k) : at(a, i, j);
                whole = is_sum ? whole + x : fmax(whole, x);
            }
            v->right[i + k * v->sizes[0]] = whole;
        }
}

static void check(const value *v, uint64_t seed) {
    double got[FEATURES * ROWS];
    const int64_t count = v->sizes[0] * v->sizes[1];
    assert_int_equal(wb_read_f64(v->x, got, count), WB_OK);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - v->right[i]) <= 1e-9 * (1 + fabs(v->right[i]))))
            fail_msg("graph %llu: element %lld is %.17g instead of %.17g", (unsigned long long)seed,
                     (long long)i, got[i], v->right[i]);
}

static void run(uint64_t seed) {
    graph *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->r = (test_random){seed};
    wb_scope_open();
    const int leaves = 1 + (int)below(g, 3), nodes = 3 + (int)below(g, MOST_NODES - 3);
    for (int i = 0; i < leaves; i++) add_leaf(g);
    for (int i = 0; i < nodes; i++) {
        const value *a = &g->values[below(g, g->count)], *b = &g->values[below(g, g->count)];
        const int64_t kind = below(g, 8);
        if (kind < 4)
            add_pair(g, a, b);
        else if (kind < 5)
            add_one(g, a);
        else
            add_reduction(g, a);
    }
    const value *roots[MOST_ROOTS];
    wb_array *arrays[MOST_ROOTS];
    const int count = 1 + (int)below(g, MOST_ROOTS);
    for (int i = 0; i < count; i++) {
        roots[i] = &g->values[leaves + below(g, nodes)];
        arrays[i] = roots[i]->x;
    }
    if (wb_eval_make(count, arrays) != WB_OK)
        fail_msg("graph %llu: %s", (unsigned long long)seed, wb_error_message());
    for (int i = 0; i < count; i++) check(roots[i], seed);
    assert_int_equal(wb_scope_close(), WB_OK);
    free(g);
}

static void values_of_a_plan_are_right(void **state) {
    (void)state;
    const char *graphs = getenv("WEBER_TEST_ROWS");
    const int64_t count = graphs ? atoll(graphs) : is_brief() ? GRAPHS / 20 : GRAPHS;
    for (int64_t i = 0; i < count; i++) run(7001 + (uint64_t)i * 977);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(values_of_a_plan_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
