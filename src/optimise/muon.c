/* Muon: steps whose singular values are about 1. */
#include <math.h>

#include "base/error.h"
#include "optimise/row.h"

/* A parameter as a matrix of `rows` by `columns`, and its outputs and inputs. */
typedef struct matrix {
    int64_t rows, columns, out, in;
} matrix;

/* Dense (out, in); convolutions (k..., in, out). */
static matrix matrix_of(const wb_array *x) {
    const int64_t last = x->sizes[x->ndim - 1], first = last ? wb_count(x) / last : 0;
    if (x->ndim == 2) return (matrix){first, last, first, last};
    return (matrix){first, last, last, first};
}

/* One step of an iteration that brings singular values near 1: x becomes
 * 3.4445 x - 4.7750 a x + 2.0315 a^2 x with a = x x^T, in the smaller of the two orders. */
static wb_array *nearer(wb_array *x, bool is_wide) {
    wb_array *a = wb_matmul_transposed(x, x, !is_wide, is_wide);
    wb_array *b = ADD(MUL(a, NUM(-4.7750)), MUL(wb_matmul(a, a), NUM(2.0315)));
    wb_array *more = is_wide ? wb_matmul(b, x) : wb_matmul(x, b);
    return ADD(MUL(x, NUM(3.4445)), more);
}

#define DESC wb_muon_desc
static wb_array *muon(wb_rule_at *at) {
    if (X->ndim < 2)
        return wb_fail_null(WB_ERROR_SHAPE,
                            "Muon: a parameter must have 2 dimensions or more, got %s: give biases "
                            "another rule by .paths",
                            wb_text_of(X));
    const matrix m = matrix_of(X);
    wb_array *b = at->state[0] = ADD(MUL(at->state[0], S(rho)), G);
    wb_array *g = wb_reshape(ADD(G, MUL(b, S(rho))), m.rows, m.columns);
    wb_array *u = DIV(g, ADD(SQRT(wb_sum(SQUARE(g))), NUM(1e-7)));
    for (int i = 0; i < 5; i++) u = nearer(u, m.rows <= m.columns);
    const double out = (double)m.out, in = (double)m.in;
    const double scale =
        wb_setting_is(at, "as_adamw") ? 0.2 * sqrt(fmax(out, in)) : sqrt(fmax(1, out / in));
    X = SUB(X, MUL(X, MUL(S(eta), S(lambda))));
    return MUL(wb_reshape_make(u, X->ndim, X->sizes), MUL(S(eta), NUM(scale)));
}

static const wb_rule_row muon_row = {
    .name = "Muon",
    .settings = {RATE(eta), FRACTION(rho), RATE(lambda), FLAG(as_adamw, NULL)},
    .states = {STATE(momentum)},
    .step = muon};

wb_rule wb_muon_make(wb_muon_desc desc) { return wb_rule_of_desc(&muon_row, &desc); }
#undef DESC
