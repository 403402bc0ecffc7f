/* The functions and macros with which rows write derivatives and expansions. They make nodes, which
 * the scope owns. */
#ifndef WB_OPS_BUILD_H
#define WB_OPS_BUILD_H

#include "ops/ops.h"

#define NONE             NULL
#define NUM(c)           wb_constant(c)
#define NEG(x)           wb_neg(x)
#define ABS(x)           wb_abs(x)
#define SIGN(x)          wb_sign(x)
#define EXP(x)           wb_exp(x)
#define EXPM1(x)         wb_expm1(x)
#define LOG(x)           wb_log(x)
#define SQRT(x)          wb_sqrt(x)
#define SIN(x)           wb_sin(x)
#define COS(x)           wb_cos(x)
#define TANH(x)          wb_tanh(x)
#define ERF(x)           wb_erf(x)
#define SIGMOID(x)       wb_sigmoid(x)
#define SOFTPLUS(x)      wb_softplus(x)
#define FLOOR(x)         wb_floor(x)
#define SQUARE(x)        wb_square(x)
#define ADD(x, y)        (wb_add)(x, y)
#define SUB(x, y)        (wb_sub)(x, y)
#define EXCESS(x, y)     (wb_excess)(x, y)
#define MUL(x, y)        (wb_mul)(x, y)
#define MUL_NO_NAN(x, y) (wb_mul_no_nan)(x, y)
#define DIV(x, y)        (wb_div)(x, y)
#define POW(x, y)        (wb_pow)(x, y)
#define MAX(x, y)        (wb_max)(x, y)
#define MIN(x, y)        (wb_min)(x, y)
#define MOD(x, y)        (wb_mod)(x, y)
#define EQ(x, y)         (wb_eq)(x, y)
#define NE(x, y)         (wb_ne)(x, y)
#define LT(x, y)         (wb_lt)(x, y)
#define LE(x, y)         (wb_le)(x, y)
#define GT(x, y)         (wb_gt)(x, y)
#define GE(x, y)         (wb_ge)(x, y)
#define AND(x, y)        (wb_and)(x, y)
#define OR(x, y)         (wb_or)(x, y)
#define SELECT(c, x, y)  (wb_select)(c, x, y)

/* ---- parts of rows (parts.c) ---- */

/* The derivatives of pow: by x, and by y, with o = x^y. */
wb_array *wb_pow_slope(wb_array *x, wb_array *y);
wb_array *wb_pow_rise(wb_array *x, wb_array *o);
#define POW_SLOPE(x, y) wb_pow_slope(x, y)
#define POW_RISE(x, o)  wb_pow_rise(x, o)

/* gelu's inside, sqrt(2/pi) (x + a x^3), and the derivative of gelu. */
wb_array *wb_gelu_inner(wb_array *x, double a);
wb_array *wb_gelu_slope(wb_array *x, double a);
#define GELU_INNER(x, a) wb_gelu_inner(x, a)
#define GELU_SLOPE(x, a) wb_gelu_slope(x, a)

#endif
