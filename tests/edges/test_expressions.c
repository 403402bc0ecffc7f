/* Random expressions of special values: sizes 0, 1 and odd, zeros of both signs, infinities, NaN,
 * the largest and the smallest numbers. Values are read at random moments, before others are made
 * or asked for. At the end each operation is held against the naive evaluator: in f64, of the
 * inputs as they were read.
 *
 * That this may be asked of each operation by itself rests on rule 1 of docs/values.md: an
 * elementwise value has the same bits in every plan. What a plan may round in its own way (sums of
 * numbers that are not whole, halves) is read before something else is made of it.
 *
 * WEBER_TEST_EXPRESSIONS says how many; docs/testing.md. */
#include <float.h>

#include "ops/ops.h"
#include "support/naive.h"
#include "values/modes.h"

enum {
    EXPRESSIONS = 700,
    MOST_VALUES = 40,
    FIRST_LEAVES = 4,
    LARGEST_WHOLE = 1 << 20,
    LARGEST_COUNT = 1 << 16
};

typedef enum step_kind {
    LEAF,
    UNARY,
    BINARY,
    COMPARE,
    WITH_NUMBER,
    SELECT,
    CAST,
    VIEW,
    REDUCE,  /* the order does not matter, or the numbers are small and whole */
    EXTREME, /* of any numbers */
    PRODUCT,
    STEP_KINDS
} step_kind;

/* What is computed, and of which values: the same twice, once within the graph, once of what was
 * read. */
typedef struct step {
    step_kind kind;
    int which, in[3], dim;
    double number, other;
    wb_dtype dtype;
    int64_t sizes[WB_MAX_DIMS];
    int ndim;
} step;

typedef struct value {
    wb_array *x;
    step made;
    double most; /* of small whole numbers, infinities and NaN: what they do not exceed; else -1 */
    bool may_vary; /* with the plan: read before anything is made of it */
    double *read;
    int64_t count;
} value;

typedef struct expression {
    test_random r;
    uint64_t seed;
    value values[MOST_VALUES];
    int count;
} expression;

static int64_t below(expression *e, int64_t n) { return random_below(&e->r, n); }
static bool chance(expression *e, int percent) { return below(e, 100) < percent; }
static bool is_whole(const value *v) { return v->most >= 0; }
static wb_dtype type_of(const value *v) { return wb_dtype_of(v->x); }
static bool is_real(const value *v) { return wb_dtype_is_float(type_of(v)); }

/* ---- leaves ---- */

static double whole(expression *e, wb_dtype dtype) {
    if (dtype == WB_BOOL) return (double)below(e, 2);
    if (dtype == WB_U8) return (double)below(e, 5);
    if (!wb_dtype_is_float(dtype) || chance(e, 85)) return (double)(below(e, 9) - 4);
    const double special[] = {-0.0, INFINITY, -INFINITY, (double)NAN};
    return special[below(e, 4)];
}

static double any(expression *e, wb_dtype dtype) {
    const bool is_double = dtype == WB_F64;
    const double most = dtype == WB_F16    ? 65504
                        : dtype == WB_BF16 ? 0x1.fep127
                        : is_double        ? DBL_MAX
                                           : FLT_MAX;
    const double least = dtype == WB_F16 ? 0x1p-14 : is_double ? DBL_MIN : FLT_MIN;
    const double special[] = {0.0,   -0.0,      INFINITY,  -INFINITY, (double)NAN, most,  -most,
                              least, -least,    least / 8, 1,         -1,          0.5,   1e4,
                              1e-4,  most / 16, 88.7,      -103,      2.5,         -1e-3, 3};
    if (chance(e, 50)) return random_between(&e->r, -3, 3);
    return special[below(e, (int64_t)(sizeof special / sizeof *special))];
}

static step leaf_step(expression *e) {
    static const wb_dtype types[] = {WB_F32, WB_F32, WB_F32,  WB_F64, WB_F64, WB_I32,
                                     WB_I64, WB_U8,  WB_BOOL, WB_F16, WB_BF16};
    static const int64_t sizes[] = {0, 1, 1, 2, 3, 5, 7, 17};
    step s = {.kind = LEAF, .dtype = types[below(e, 11)], .ndim = (int)below(e, 4)};
    int64_t count = 1;
    for (int d = 0; d < s.ndim; d++) {
        s.sizes[d] = sizes[below(e, 8)];
        if (count * s.sizes[d] > 700) s.sizes[d] = 1;
        count *= s.sizes[d];
    }
    return s;
}

static value leaf(expression *e) {
    value v = {.made = leaf_step(e), .most = -1};
    double *numbers = calloc(1024, sizeof *numbers);
    assert_non_null(numbers);
    const bool small = !wb_dtype_is_float(v.made.dtype) || chance(e, 50);
    for (int i = 0; i < 1024; i++)
        numbers[i] = small ? whole(e, v.made.dtype) : any(e, v.made.dtype);
    if (small) v.most = 4;
    v.x = array_of(v.made.dtype, numbers, v.made.ndim, v.made.sizes);
    free(numbers);
    return v;
}

/* ---- operations ---- */

typedef wb_array *unary_fn(wb_array *);
typedef wb_array *binary_fn(wb_array *, wb_array *);

static const struct {
    unary_fn *fn;
    double most; /* of |x| <= m: m * most + 1 / 2; -1: not whole */
} functions[] = {{wb_neg, 1},          {wb_abs, 1},       {wb_sign, 1},       {wb_floor, 1},
                 {wb_ceil, 1},         {wb_trunc, 1},     {wb_round, 1},      {wb_relu, 1},
                 {wb_square, -2},      {wb_tanh, -1},     {wb_erf, -1},       {wb_sigmoid, -1},
                 {wb_softplus, -1},    {wb_sin, -1},      {wb_cos, -1},       {wb_exp, -1},
                 {wb_expm1, -1},       {wb_log, -1},      {wb_log1p, -1},     {wb_sqrt, -1},
                 {wb_rsqrt, -1},       {wb_recip, -1},    {wb_leakyrelu, -1}, {wb_elu, -1},
                 {wb_gelu, -1},        {wb_gelu_erf, -1}, {wb_swish, -1},     {wb_hardsigmoid, -1},
                 {wb_hardtanh, 1},     {wb_mish, -1},     {wb_softsign, -1},  {wb_logsigmoid, -1},
                 {wb_selu, -1},        {wb_celu, -1},     {wb_relu6, 1},      {wb_hardswish, -1},
                 {wb_isnan, 0},        {wb_isinf, 0},     {wb_isfinite, 0},   {wb_not, 0},
                 {wb_stop_gradient, 1}};

static binary_fn *const pairs[] = {wb_add, wb_sub, wb_mul, wb_max, wb_min, wb_div, wb_mod, wb_pow};
static binary_fn *const comparisons[] = {wb_eq, wb_ne, wb_lt, wb_le, wb_gt, wb_ge, wb_and, wb_or};

static wb_array *with_number(const step *s, wb_array *x) {
    switch (s->which) {
    case 0:
        return wb_add_number(x, s->number);
    case 1:
        return wb_mul_number(x, s->number);
    case 2:
        return wb_clamp(x, s->number < s->other ? s->number : s->other,
                        s->number < s->other ? s->other : s->number);
    case 3:
        return wb_number_sub(s->number, x);
    case 4:
        return wb_max(x, wb_number(s->number));
    case 5:
        return wb_number_div(s->number, x);
    case 6:
        return wb_lt(x, wb_number(s->number));
    default:
        return wb_pow_number(x, s->other);
    }
}

static wb_array *view(const step *s, wb_array *x) {
    const int64_t size = x->ndim ? x->sizes[s->dim] : 0;
    switch (s->which) {
    case 0:
        return wb_transpose(x);
    case 1:
        return wb_flip(x, s->dim);
    case 2:
        return wb_slice(x, s->dim, size / 3, size, 1 + s->in[1]);
    case 3:
        return wb_reshape(x, -1);
    case 4:
        return wb_unsqueeze(x, s->dim);
    case 5:
        return wb_pad(x, s->dim, 1, s->in[1], 2);
    case 6:
        return wb_concat(s->dim, x, x);
    default:
        return wb_roll(x, 1, s->dim);
    }
}

static wb_array *reduce(const step *s, wb_array *x) {
    const int64_t dim = s->dim;
    switch (s->which) {
    case 0:
        return wb_sum(x);
    case 1:
        return wb_sum_dims(x, dim);
    case 2:
        return wb_mean_dims(x, dim);
    case 3:
        return wb_var_dims(x, s->in[1] > 0, dim);
    case 4:
        return wb_any_dims(x, dim);
    case 5:
        return wb_all_dims(x, dim);
    case 6:
        return wb_logsumexp_dims(x, dim);
    case 7:
        return wb_softmax_dims(x, dim);
    case 8:
        return wb_logsoftmax_dims(x, dim);
    case 9:
        return wb_cumsum(x, s->dim);
    case 10:
        return wb_prod_dims(x, dim);
    default:
        return wb_norm_dims(x, 1 + s->in[1], dim);
    }
}

static wb_array *extreme(const step *s, wb_array *x) {
    switch (s->which) {
    case 0:
        return wb_maximum_dims(x, s->dim);
    case 1:
        return wb_minimum_dims(x, s->dim);
    case 2:
        return wb_maximum(x);
    case 3:
        return wb_argmax(x, s->dim);
    default:
        return wb_argmin(x, s->dim);
    }
}

static wb_array *made_of(const step *s, wb_array *const *in) {
    switch (s->kind) {
    case UNARY:
        return functions[s->which].fn(in[0]);
    case BINARY:
        return pairs[s->which](in[0], in[1]);
    case COMPARE:
        return comparisons[s->which](in[0], in[1]);
    case WITH_NUMBER:
        return with_number(s, in[0]);
    case SELECT:
        return wb_select(in[0], in[1], in[2]);
    case CAST:
        return wb_cast(in[0], s->dtype);
    case VIEW:
        return view(s, in[0]);
    case REDUCE:
        return reduce(s, in[0]);
    case EXTREME:
        return extreme(s, in[0]);
    default:
        return wb_matmul(in[0], in[1]);
    }
}

/* ---- what is made next ---- */

/* Whole numbers that stay below LARGEST_WHOLE, so that sums of them are exact in every order. */
static double bound(const expression *e, const step *s) {
    const double x = e->values[s->in[0]].most, y = e->values[s->in[1]].most;
    const int64_t count = wb_count(e->values[s->in[0]].x);
    double most = -1;
    if (x < 0)
        return s->kind == COMPARE || (s->kind == REDUCE && (s->which == 4 || s->which == 5)) ? 1
                                                                                             : -1;
    switch (s->kind) {
    case UNARY:
        most = functions[s->which].most;
        most = most == -2 ? x * x : most < 0 ? -1 : most * x + 1;
        break;
    case BINARY:
        most = y < 0 || s->which > 4 ? -1 : s->which == 2 ? x * y : x + y;
        break;
    case COMPARE:
        most = 1;
        break;
    case SELECT:
        most = y < 0 || e->values[s->in[2]].most < 0 ? -1 : y + e->values[s->in[2]].most;
        break;
    case CAST:
    case EXTREME:
        most = s->kind == EXTREME && s->which > 2 ? (double)count : x;
        break;
    case VIEW:
        most = x + 2;
        break;
    case REDUCE:
        most = s->which < 2 || s->which == 9    ? x * (double)count
               : s->which == 4 || s->which == 5 ? 1
                                                : -1;
        break;
    default:
        break;
    }
    return most > LARGEST_WHOLE ? -1 : most;
}

/* One whose size fits: the same sizes, a number, or the value itself. */
static int partner(expression *e, int i) {
    int64_t sizes[WB_MAX_DIMS];
    const wb_array *x = e->values[i].x;
    for (int tries = 0; tries < 12; tries++) {
        const int k = (int)below(e, e->count);
        const wb_array *y = e->values[k].x;
        if (wb_broadcast(x->ndim, x->sizes, y->ndim, y->sizes, sizes) >= 0) return k;
    }
    return i;
}

static bool has_dim(const expression *e, const step *s) {
    return s->dim < e->values[s->in[0]].x->ndim;
}

/* The sum of few is exact, and so is its mean up to a rounding; the other ones vary. */
static bool reduces(expression *e, step *s, const value *v) {
    s->which = (int)below(e, 12), s->in[1] = (int)below(e, 2);
    if (!is_whole(v) || !has_dim(e, s)) return false;
    return is_real(v) || s->which < 2 || s->which == 4 || s->which == 5 || s->which == 9;
}

/* False: another one, please. */
static bool fill_step(expression *e, step *s) {
    const value *v = &e->values[s->in[0]];
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_F16, WB_BF16, WB_I32, WB_I64, WB_BOOL};
    static const double numbers[] = {0, 1, -1, 2, 3, -0.5, 0.25, 1e3};
    s->dim = (int)below(e, 3);
    switch (s->kind) {
    case UNARY:
        s->which = (int)below(e, (int64_t)(sizeof functions / sizeof *functions));
        return true;
    case BINARY:
    case COMPARE:
        s->which = (int)below(e, 8), s->in[1] = partner(e, s->in[0]);
        return s->kind == COMPARE || s->which != 6 || /* of large quotients: docs/accuracy.md */
               (is_whole(v) && is_whole(&e->values[s->in[1]]));
    case WITH_NUMBER:
        s->which = (int)below(e, 8), s->number = numbers[below(e, 8)],
        s->other = numbers[below(e, 5)];
        return is_real(v);
    case SELECT:
        s->in[1] = partner(e, s->in[0]), s->in[2] = partner(e, s->in[1]);
        return true;
    case CAST:
        s->dtype = types[below(e, 7)];
        return is_real(v) ? wb_dtype_is_float(s->dtype) || s->dtype == WB_BOOL : true;
    case VIEW:
        s->which = (int)below(e, 8), s->in[1] = (int)below(e, 2);
        return has_dim(e, s) && wb_count(v->x) < 700;
    case REDUCE:
        return reduces(e, s, v);
    case EXTREME:
        s->which = (int)below(e, 5);
        return has_dim(e, s);
    default:
        s->in[1] = (int)below(e, e->count);
        return is_whole(v) && is_whole(&e->values[s->in[1]]) && v->x->ndim == 2 && is_real(v);
    }
}

static int inputs_of(const step *s) {
    if (s->kind == SELECT) return 3;
    return s->kind == BINARY || s->kind == COMPARE || s->kind == PRODUCT ? 2 : 1;
}

static void now(expression *e, value *v) {
    if (wb_eval(v->x) != WB_OK)
        fail_msg("expression %llu: %s", (unsigned long long)e->seed, wb_error_message());
    v->may_vary = false;
}

/* Sums and functions of several numbers may be rounded in another way by another plan, halves may
 * keep digits within one. */
static bool may_vary(const value *v) {
    const wb_dtype dtype = type_of(v);
    if (dtype == WB_F16 || dtype == WB_BF16) return v->made.kind != LEAF;
    return (v->made.kind == REDUCE || v->made.kind == PRODUCT) && !is_whole(v);
}

/* False if it was refused, or was not wanted. */
static bool make_one(expression *e) {
    static const int weights[STEP_KINDS] = {8, 22, 18, 8, 8, 6, 5, 8, 10, 4, 3};
    int64_t number = below(e, 100);
    step s = {.kind = LEAF};
    while (number >= weights[s.kind]) number -= weights[s.kind++];
    if (s.kind == LEAF) return e->values[e->count++] = leaf(e), true;
    s.in[0] = (int)below(e, e->count);
    if (!fill_step(e, &s)) return false;
    wb_array *in[3];
    for (int i = 0; i < inputs_of(&s); i++) {
        value *v = &e->values[s.in[i]];
        if (v->may_vary) now(e, v);
        in[i] = v->x;
    }
    value v = {.x = made_of(&s, in), .made = s};
    if (!v.x) return wb_clear_error(), false;
    if (wb_count(v.x) > LARGEST_COUNT) return false;
    v.most = bound(e, &s);
    v.may_vary = may_vary(&v);
    e->values[e->count++] = v;
    return true;
}

/* ---- what is right ---- */

/* The type in which the inputs of a step meet. */
static wb_dtype meet(const expression *e, const step *s) {
    wb_dtype dtype = type_of(&e->values[s->in[0]]);
    for (int i = 1; i < inputs_of(s); i++) dtype = wb_promote(dtype, type_of(&e->values[s->in[i]]));
    return dtype;
}

/* Of the inputs' type for whole numbers, in f64 for real ones. Halves do not hold all of the whole
 * numbers that stand beside them. */
static wb_array *as_read(const value *v, wb_dtype meet) {
    double numbers[LARGEST_COUNT];
    const bool real = is_real(v);
    assert_true(v->count <= LARGEST_COUNT);
    for (int64_t i = 0; i < v->count; i++)
        numbers[i] = real || !wb_is_half(meet) ? v->read[i] : (double)naive_round(meet, v->read[i]);
    return array_of(real ? WB_F64 : type_of(v), numbers, v->x->ndim, v->x->sizes);
}

static double tolerance_of(const expression *e, const value *v) {
    wb_dtype dtype = type_of(v);
    for (int i = 0; i < inputs_of(&v->made); i++) {
        const wb_dtype own = type_of(&e->values[v->made.in[i]]);
        if (wb_dtype_is_float(own) && (dtype == WB_F64 || !wb_dtype_is_float(dtype))) dtype = own;
    }
    return dtype == WB_F64 ? 1e-13 : dtype == WB_F16 ? 2e-3 : dtype == WB_BF16 ? 1.6e-2 : 4e-6;
}

/* Functions lose the digits of what they take: around their zeros, and with large arguments. */
static double slack(const expression *e, const value *v, double tolerance) {
    double most = 0;
    for (int i = 0; i < inputs_of(&v->made); i++) {
        const value *x = &e->values[v->made.in[i]];
        for (int64_t k = 0; k < x->count; k++)
            if (isfinite(x->read[k])) most = fmax(most, fabs(x->read[k]));
    }
    return tolerance * fmin(most, 1) + (type_of(v) == WB_F64 ? DBL_MIN : FLT_MIN);
}

static void print_inputs(const expression *e, const value *v) {
    for (int i = 0; i < inputs_of(&v->made); i++) {
        const value *x = &e->values[v->made.in[i]];
        print_message("  input %d, %s", i, wb_dtype_name(type_of(x)));
        for (int d = 0; d < x->x->ndim; d++) print_message(" %lld", (long long)x->x->sizes[d]);
        print_message(":");
        for (int64_t k = 0; k < x->count && k < 24; k++) print_message(" %.9g", x->read[k]);
        print_message("\n");
    }
}

static bool is_right(double got, double right, double tolerance, double slack) {
    if (isnan(got) || isnan(right)) return isnan(got) && isnan(right);
    if (got == right) return true;
    return isfinite(got) && isfinite(right) && fabs(got - right) <= tolerance * fabs(right) + slack;
}

static void check(expression *e, int number) {
    const value *v = &e->values[number];
    const step *s = &v->made;
    wb_array *in[3] = {NULL};
    naive_table *table = naive_new();
    for (int i = 0; i < inputs_of(s); i++) in[i] = as_read(&e->values[s->in[i]], meet(e, s));
    wb_array *again = made_of(s, in);
    if (!again) fail_msg("expression %llu: %s", (unsigned long long)e->seed, wb_error_message());
    const naive *right = naive_of(table, again);
    const double tolerance = tolerance_of(e, v), near = slack(e, v, tolerance);
    assert_int_equal(right->count, v->count);
    for (int64_t i = 0; i < v->count; i++) {
        const double wanted = (double)naive_round(type_of(v), right->values[i]);
        if (is_right(v->read[i], wanted, tolerance, near)) continue;
        print_inputs(e, v);
        fail_msg("expression %llu, value %d (step %d %d, dimension %d, numbers %g %g, %s): element "
                 "%lld is %.9g, not %.9g",
                 (unsigned long long)e->seed, number, s->kind, s->which, s->dim, s->number,
                 s->other, wb_dtype_name(type_of(v)), (long long)i, v->read[i], wanted);
    }
    naive_free(table);
}

/* ---- one expression ---- */

static void read_value(expression *e, value *v) {
    v->count = wb_count(v->x);
    v->read = calloc((size_t)v->count + 1, sizeof *v->read);
    assert_non_null(v->read);
    if (wb_read_f64(v->x, v->read, v->count) != WB_OK)
        fail_msg("expression %llu: %s", (unsigned long long)e->seed, wb_error_message());
}

/* In random order, so many at once: one, some, or all. What is asked for together is in one plan,
 * whose other values need no memory. */
static void read_all(expression *e) {
    wb_array *all[MOST_VALUES];
    int order[MOST_VALUES];
    const int most = chance(e, 35) ? e->count : chance(e, 50) ? 1 : 2 + (int)below(e, 3);
    for (int i = 0; i < e->count; i++) {
        const int at = (int)below(e, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    for (int i = 0; i < e->count; i += most) {
        const int count = i + most < e->count ? most : e->count - i;
        for (int k = 0; k < count; k++) all[k] = e->values[order[i + k]].x;
        if (count > 1) assert_int_equal(wb_eval_make(count, all), WB_OK);
        for (int k = 0; k < count; k++) read_value(e, &e->values[order[i + k]]);
    }
}

static void one_expression(uint64_t seed) {
    expression e = {.r = {seed}, .seed = seed};
    wb_scope_open();
    for (int i = 0; i < FIRST_LEAVES; i++) e.values[e.count++] = leaf(&e);
    const int wanted = FIRST_LEAVES + 2 + (int)below(&e, MOST_VALUES - FIRST_LEAVES - 2);
    const int reads = chance(&e, 60) ? 12 : 0;
    for (int tries = 0; tries < 4 * wanted && e.count < wanted; tries++) {
        (void)make_one(&e);
        if (chance(&e, reads)) now(&e, &e.values[below(&e, e.count)]);
    }
    read_all(&e);
    for (int i = 0; i < e.count; i++)
        if (e.values[i].made.kind != LEAF) check(&e, i);
    for (int i = 0; i < e.count; i++) free(e.values[i].read);
    assert_int_equal(wb_scope_close(), WB_OK);
}

static void each_operation_is_right(void **state) {
    (void)state;
    const char *text = getenv("WEBER_TEST_EXPRESSIONS");
    const int64_t count = text                 ? strtoll(text, NULL, 10)
                          : compiles_kernels() ? EXPRESSIONS / 40
                                               : EXPRESSIONS;
    for (int64_t i = 0; i < count; i++) one_expression(test_seed() + (uint64_t)i);
}

static int run(void) {
    const struct CMUnitTest tests[] = {TEST(each_operation_is_right)};
    return cmocka_run_group_tests_name("edges/test_expressions", tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
