/* Operations at the edges of what they take, as rows of a table: an operation, its input, the right
 * value, and who says so.
 *
 *     EDGE("a clamp keeps what lies between bounds that u8 does not hold", wb_clamp(x, -5, 300),
 *          X(U8, 200), GIVES(U8, 200), FROM("NumPy: clip"))
 *     EDGE("x^0 has slope 0 at 0", wb_pow_number(x, 0),
 *          X(REAL, 0), GIVES(REAL, 1), DX(0), FROM("torch: pow"))
 *
 * The operation is an expression in x and y, which are vectors. The rest in any order:
 *
 *     X(type, ...)  Y(type, ...)  the input
 *     GIVES(type, ...)            the result, in memory order
 *     DX(...)  DY(...)            the gradients of the result's sum
 *     DDX(...)                    the gradient of the sum of DX
 *     SAYS(text)                  instead of all these: part of the error's message
 *     WITHIN(error)               relative error; else a few steps of the type
 *     FROM(text)                  who says so: a library, a paper, "definition"
 *
 * Types are F32 to BOOL; REAL, both f32 and f64; ANY, the halves, too. Rows stand in files
 * NAME.def, each for a family of edges; test_NAME.c runs one:
 *
 *     #define EDGES "edges/NAME.def"
 *     #include "edges/run.h"
 *     int main(void) { return run_in_all_modes(run_edges); }
 *
 * Each row is planned, eager and unfused, with value and gradients in one plan, and with the value
 * read before there are gradients. docs/edges.md has the same in words. */
#ifndef WB_TESTS_EDGES_H
#define WB_TESTS_EDGES_H

#include "values/modes.h"

enum { EDGE_MOST = 16, EDGE_REAL = WB_DTYPE_COUNT, EDGE_ANY };

typedef struct edge_numbers {
    bool given;
    int type, count;
    double at[EDGE_MOST + 1]; /* from 1 on: a list in C has at least one number */
} edge_numbers;

typedef struct edge {
    const char *name;
    wb_array *(*make)(wb_array *x, wb_array *y);
    edge_numbers x, y, gives, dx, dy, ddx;
    double within;
    const char *says, *source;
} edge;

/* ---- types ---- */

/* Type `number` of those that the row runs in; WB_DTYPE_COUNT: no more. */
static inline wb_dtype edge_type(const edge *e, int number) {
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16};
    int widest = 0;
    const int own[] = {e->x.type, e->y.type, e->gives.type};
    for (int i = 0; i < 3; i++) widest = own[i] > widest ? own[i] : widest;
    const int count = widest == EDGE_ANY ? 4 : widest == EDGE_REAL ? 2 : 1;
    return number < count ? types[number] : WB_DTYPE_COUNT;
}

static inline wb_dtype edge_dtype(const edge_numbers *n, wb_dtype real) {
    return n->type >= EDGE_REAL ? real : (wb_dtype)n->type;
}

static inline double edge_within(const edge *e, wb_dtype dtype) {
    const double steps = dtype == WB_F64    ? 1e-9
                         : dtype == WB_F16  ? 2e-3
                         : dtype == WB_BF16 ? 2e-2
                                            : 4e-6;
    return e->within > 0 && (dtype == WB_F32 || dtype == WB_F64) ? e->within : steps;
}

/* ---- one row ---- */

static inline wb_array *edge_input(const edge_numbers *n, wb_dtype real) {
    const int64_t count = n->count;
    return n->given ? array_of(edge_dtype(n, real), n->at + 1, 1, &count) : NULL;
}

/* With signs of zero as they come; infinities and NaN have to be the same. */
static inline void edge_compare(const edge *e, const char *what, wb_array *x, const edge_numbers *n,
                                wb_dtype dtype) {
    double values[EDGE_MOST];
    if (!n->given) return;
    if (!x) fail_msg("%s: no array: %s", what, wb_error_message());
    if (wb_dtype_of(x) != dtype)
        fail_msg("%s: %s, not %s", what, wb_dtype_name(wb_dtype_of(x)), wb_dtype_name(dtype));
    assert_int_equal(wb_count(x), n->count);
    assert_int_equal(wb_read_f64(x, values, n->count), WB_OK);
    for (int i = 0; i < n->count; i++) {
        const double wanted = n->at[i + 1], slack = edge_within(e, dtype) * fabs(wanted);
        const bool fits = isnan(wanted) ? isnan(values[i]) != 0
                                        : values[i] == wanted || fabs(values[i] - wanted) <= slack;
        if (!fits)
            fail_msg("%s in %s: number %d is %.9g, not %.9g", what, wb_dtype_name(dtype), i,
                     values[i], wanted);
    }
}

typedef struct edge_results {
    wb_array *value, *dx, *dy, *ddx;
} edge_results;

static inline void edge_gradients(const edge *e, wb_array *x, wb_array *y, edge_results *r) {
    wb_array *inputs[2] = {x, y ? y : x}, *gradients[2] = {NULL};
    if (!e->dx.given && !e->dy.given) return;
    const int count = y ? 2 : 1;
    assert_int_equal(wb_gradient_of(wb_sum(r->value), count, inputs, gradients), WB_OK);
    r->dx = gradients[0], r->dy = gradients[1];
    if (!e->ddx.given) return;
    assert_int_equal(wb_gradient_of(wb_sum(r->dx), 1, inputs, &r->ddx), WB_OK);
}

static inline void edge_run(const edge *e, wb_dtype real, bool reads_first) {
    wb_seed(1);
    wb_array *x = edge_input(&e->x, real), *y = edge_input(&e->y, real);
    edge_results r = {.value = e->make(x, y)};
    const wb_dtype of_x = edge_dtype(&e->x, real), of_y = edge_dtype(&e->y, real);
    if (reads_first) edge_compare(e, "value", r.value, &e->gives, edge_dtype(&e->gives, real));
    if (!r.value) fail_msg("no result: %s", wb_error_message());
    edge_gradients(e, x, y, &r);
    wb_array *all[] = {r.value, r.dx, r.dy, r.ddx}, *roots[4];
    int count = 0;
    for (int i = 0; i < 4; i++)
        if (all[i]) roots[count++] = all[i];
    assert_int_equal(wb_eval_make(count, roots), WB_OK);
    edge_compare(e, "value", r.value, &e->gives, edge_dtype(&e->gives, real));
    edge_compare(e, "dx", r.dx, &e->dx, of_x);
    edge_compare(e, "dy", r.dy, &e->dy, of_y);
    edge_compare(e, "ddx", r.ddx, &e->ddx, of_x);
}

static inline void edge_fails(const edge *e) {
    char message[1024];
    assert_null(e->make(edge_input(&e->x, WB_F32), edge_input(&e->y, WB_F32)));
    assert_int_not_equal(wb_take_error(message, sizeof message), WB_OK);
    if (!strstr(message, e->says)) fail_msg("message \"%s\" does not say \"%s\"", message, e->says);
}

static inline void an_edge_is_right(void **state) {
    const edge *e = *state;
    assert_non_null(e->source);
    assert_true(e->says || e->gives.given);
    if (e->says) {
        edge_fails(e);
        return;
    }
    for (int i = 0; edge_type(e, i) != WB_DTYPE_COUNT; i++) {
        const wb_dtype real = edge_type(e, i);
        if (real == WB_F64 && widest() != WB_F64) continue;
        edge_run(e, real, false);
        if (!compiles_kernels()) edge_run(e, real, true);
    }
}

#endif
