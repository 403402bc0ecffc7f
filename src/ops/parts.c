/* Named parts of the formulas in ops.def. */
#include "ops/build.h"

/* ---- pow ---- */

/* y x^(y - 1), where y = 0 as 0 x^0: x^-1 may be infinite. */
wb_array *wb_pow_slope(wb_array *x, wb_array *y) {
    double c;
    if (wb_constant_value(y, &c)) return MUL(NUM(c), POW(x, NUM(c == 0 ? 0 : c - 1)));
    return MUL(y, POW(x, SUB(SELECT(EQ(y, NUM(0)), NUM(1), y), NUM(1))));
}

/* o log x for positive x, 0 where o is; else 0. */
wb_array *wb_pow_rise(wb_array *x, wb_array *o) {
    wb_array *rises = GT(x, NUM(0));
    return SELECT(rises, MUL_NO_NAN(LOG(SELECT(rises, x, NUM(1))), o), NUM(0));
}

/* ---- gelu ---- */

static const double root_2_over_pi = 0.7978845608028654;

wb_array *wb_gelu_inner(wb_array *x, double a) {
    return MUL(MUL(NUM(root_2_over_pi), x), ADD(NUM(1), MUL(NUM(a), SQUARE(x))));
}

wb_array *wb_gelu_slope(wb_array *x, double a) {
    wb_array *t = TANH(wb_gelu_inner(x, a));
    wb_array *slope = MUL(NUM(root_2_over_pi), ADD(NUM(1), MUL(NUM(3 * a), SQUARE(x))));
    return ADD(MUL(NUM(0.5), ADD(NUM(1), t)),
               MUL_NO_NAN(MUL(MUL(NUM(0.5), x), slope), SUB(NUM(1), SQUARE(t))));
}
