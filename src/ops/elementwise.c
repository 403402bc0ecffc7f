/* Elementwise operations: the functions for the rows of ops.def, and their derivatives. */
#include <math.h>
#include <string.h>

#include "array/use.h"
#include "ops/build.h"
#include "ops/check.h"

int64_t wb_bits_of(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double wb_value_of(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

int wb_broadcast(int andim, const int64_t *a, int bndim, const int64_t *b, int64_t *sizes) {
    const int ndim = andim > bndim ? andim : bndim;
    for (int d = 0; d < ndim; d++) {
        const int64_t x = d < andim ? a[d] : 1, y = d < bndim ? b[d] : 1;
        if (x != y && x != 1 && y != 1) return -1;
        sizes[d] = x == 1 ? y : x;
    }
    return ndim;
}

bool wb_constant_value(const wb_array *x, double *value) {
    if (!x || x->op != WB_OP_full) return false;
    *value = x->attributes.number.value;
    return true;
}

wb_array *wb_node_with(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                       wb_array *const *inputs, int nattributes, const int64_t *attributes) {
    wb_array *node = wb_node_new(op, dtype, ndim, sizes, ninputs, inputs);
    if (!node) return NULL;
    node->nattributes = (uint8_t)nattributes;
    for (int i = 0; i < nattributes; i++) node->attributes.words[i] = attributes[i];
    return node;
}

wb_array *wb_node_described(wb_op op, wb_dtype dtype, int ndim, const int64_t *sizes, int ninputs,
                            wb_array *const *inputs, int nattributes, const int64_t *attributes,
                            wb_payload *payload) {
    wb_array *node = wb_node_with(op, dtype, ndim, sizes, ninputs, inputs, nattributes, attributes);
    if (node)
        node->payload = payload;
    else
        wb_payload_unref(payload);
    return node;
}

/* ---- types ---- */

static bool is_weak(const wb_array *x) { return (x->flags & WB_NODE_WEAK) != 0; }

/* C numbers that are not constants, or arithmetic of C numbers: with arrays of integers they count
 * as f32. */
static wb_dtype weak_beside(wb_dtype dtype) { return wb_dtype_is_float(dtype) ? dtype : WB_F32; }

static wb_dtype meet(const wb_array *x, const wb_array *y) {
    if (is_weak(x)) return is_weak(y) ? WB_F64 : weak_beside((wb_dtype)y->dtype);
    return is_weak(y) ? weak_beside((wb_dtype)x->dtype)
                      : wb_promote((wb_dtype)x->dtype, (wb_dtype)y->dtype);
}

/* The type of the result of a class over operands of type dtype; WB_DTYPE_COUNT: not accepted. */
static wb_dtype result_type(wb_type_class type_class, wb_dtype dtype) {
    switch (type_class) {
    case WB_CLASS_FLOAT:
        return wb_dtype_is_float(dtype) ? dtype : WB_F32;
    case WB_CLASS_COMPARE:
        return WB_BOOL;
    case WB_CLASS_LOGIC:
        return dtype == WB_BOOL ? WB_BOOL : WB_DTYPE_COUNT;
    default:
        return dtype == WB_BOOL ? WB_I64 : dtype;
    }
}

static wb_array *refuse_type(wb_op op, wb_dtype dtype) {
    return wb_fail_null(WB_ERROR_DTYPE, "%s: operands must be bool, got %s", wb_op_name(op),
                        wb_dtype_name(dtype));
}

static wb_array *unary(wb_op op, wb_type_class type_class, wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse(wb_op_name(op), x, "x");
    const wb_dtype dtype = result_type(type_class, (wb_dtype)x->dtype);
    if (dtype == WB_DTYPE_COUNT) return refuse_type(op, (wb_dtype)x->dtype);
    wb_array *node = wb_node_new(op, dtype, x->ndim, x->sizes, 1, &x);
    if (node) node->flags |= x->flags & WB_NODE_WEAK;
    return node;
}

wb_array *wb_binary_node(wb_op op, wb_dtype dtype, wb_array *x, wb_array *y) {
    int64_t sizes[WB_MAX_DIMS];
    wb_array *inputs[2] = {x, y};
    if (!x || !y) return NULL;
    if (y->ndim == 0 || wb_same_sizes(x, y))
        return wb_node_new(op, dtype, x->ndim, x->sizes, 2, inputs);
    const int ndim = wb_broadcast(x->ndim, x->sizes, y->ndim, y->sizes, sizes);
    if (ndim >= 0) return wb_node_new(op, dtype, ndim, sizes, 2, inputs);
    return wb_fail_null(WB_ERROR_SHAPE, "%s: sizes %s and %s do not broadcast", wb_op_name(op),
                        wb_text_of(x), wb_text_of(y));
}

/* A number counts as whether it differs from 0. */
static wb_array *truth_of(wb_array *x) { return is_weak(x) ? wb_ne(x, wb_constant(0)) : x; }

static wb_array *binary(wb_op op, wb_type_class type_class, wb_array *x, wb_array *y) {
    double c;
    if (!wb_is_usable(x)) return wb_refuse(wb_op_name(op), x, "x");
    if (!wb_is_usable(y)) return wb_refuse(wb_op_name(op), y, "y");
    if (type_class == WB_CLASS_LOGIC)
        x = truth_of(x), y = truth_of(y);
    else if (wb_is_number_beside(y, x, &c))
        return wb_with_number(op, x, c, false);
    else if (wb_is_number_beside(x, y, &c))
        return wb_with_number(op, y, c, true);
    if (!x || !y) return NULL;
    const wb_dtype dtype = result_type(type_class, meet(x, y));
    if (dtype == WB_DTYPE_COUNT)
        return refuse_type(op, x->dtype == WB_BOOL ? (wb_dtype)y->dtype : (wb_dtype)x->dtype);
    wb_array *node = wb_binary_node(op, dtype, x, y);
    if (node && is_weak(x) && dtype != WB_BOOL)
        node->flags |= y->flags & WB_NODE_WEAK; /* the result for two C numbers is a C number */
    return node;
}

static wb_array *macro(wb_op op, wb_type_class type_class, wb_array *x, double a) {
    wb_array *node = unary(op, type_class, x);
    if (!node) return NULL;
    node->nattributes = 1;
    node->attributes.number.value = a;
    return node;
}

#define WB_UNARY(name, type_class, text, dx, lo, hi, doc)                                          \
    wb_array *wb_##name(wb_array *x) { return unary(WB_OP_##name, WB_CLASS_##type_class, x); }
#define WB_BINARY(name, type_class, text, dx, dy, lo, hi, doc)                                     \
    wb_array *(wb_##name)(wb_array * x, wb_array * y) {                                            \
        return binary(WB_OP_##name, WB_CLASS_##type_class, x, y);                                  \
    }
#define WB_MACRO(name, type_class, a_default, expansion, dx, lo, hi, doc)                          \
    wb_array *wb_##name(wb_array *x) {                                                             \
        return macro(WB_OP_##name, WB_CLASS_##type_class, x, a_default);                           \
    }                                                                                              \
    wb_array *wb_##name##_with(wb_array *x, double a) {                                            \
        return macro(WB_OP_##name, WB_CLASS_##type_class, x, a);                                   \
    }
#include <weber/ops.def>

/* ---- derivatives and expansions of the rows ---- */

#define WB_UNARY(name, type_class, text, dx, lo, hi, doc)                                          \
    static void vjp_##name(wb_array *o, wb_array *g, const bool *want, wb_array **out) {           \
        wb_array *x = o->inputs[0];                                                                \
        (void)x, (void)g, (void)want;                                                              \
        out[0] = dx;                                                                               \
    }
#define WB_BINARY(name, type_class, text, dx, dy, lo, hi, doc)                                     \
    static void vjp_##name(wb_array *o, wb_array *g, const bool *want, wb_array **out) {           \
        wb_array *x = o->inputs[0], *y = o->inputs[1];                                             \
        (void)x, (void)y, (void)g;                                                                 \
        if (want[0]) out[0] = dx;                                                                  \
        if (want[1]) out[1] = dy;                                                                  \
    }
#define WB_MACRO(name, type_class, a_default, expansion, dx, lo, hi, doc)                          \
    static void vjp_##name(wb_array *o, wb_array *g, const bool *want, wb_array **out) {           \
        wb_array *x = o->inputs[0];                                                                \
        const double a = o->attributes.number.value;                                               \
        (void)x, (void)g, (void)want, (void)a;                                                     \
        out[0] = dx;                                                                               \
    }                                                                                              \
    static bool expand_##name(wb_array *node, wb_array **parts) {                                  \
        wb_array *x = wb_cast(node->inputs[0], (wb_dtype)node->dtype);                             \
        const double a = node->attributes.number.value;                                            \
        (void)a;                                                                                   \
        return (parts[0] = expansion) != NULL;                                                     \
    }
#include <weber/ops.def>

/* ---- the table ---- */

const wb_op_row wb_op_rows[WB_OP_COUNT] = {
#define WB_UNARY(name_, class_, text_, dx_, lo_, hi_, doc_)                                        \
    [WB_OP_##name_] = {.name = #name_,                                                             \
                       .doc = doc_,                                                                \
                       .kind = WB_KIND_ELEMENT,                                                    \
                       .type_class = WB_CLASS_##class_,                                            \
                       .arity = 1,                                                                 \
                       .vjp = vjp_##name_,                                                         \
                       .lo = lo_,                                                                  \
                       .hi = hi_,                                                                  \
                       .text = #text_},
#define WB_BINARY(name_, class_, text_, dx_, dy_, lo_, hi_, doc_)                                  \
    [WB_OP_##name_] = {.name = #name_,                                                             \
                       .doc = doc_,                                                                \
                       .kind = WB_KIND_ELEMENT,                                                    \
                       .type_class = WB_CLASS_##class_,                                            \
                       .arity = 2,                                                                 \
                       .vjp = vjp_##name_,                                                         \
                       .lo = lo_,                                                                  \
                       .hi = hi_,                                                                  \
                       .text = #text_},
#define ROW(name_, kind_, class_, a_, lo_, hi_, doc_)                                              \
    [WB_OP_##name_] = {.name = #name_,                                                             \
                       .doc = doc_,                                                                \
                       .kind = WB_KIND_##kind_,                                                    \
                       .type_class = WB_CLASS_##class_,                                            \
                       .arity = 1,                                                                 \
                       .vjp = vjp_##name_,                                                         \
                       .expand = expand_##name_,                                                   \
                       .lo = lo_,                                                                  \
                       .hi = hi_,                                                                  \
                       .parameter = a_},
#define WB_MACRO(name, class, a, expansion, dx, lo, hi, doc) ROW(name, MACRO, class, a, lo, hi, doc)
#define WB_CALLABLE(name, class, a, expansion, dx, lo, hi, doc)                                    \
    ROW(name, CALLABLE, class, a, lo, hi, doc)
#define WB_OPERATION(name_, kind_, vjp_, expand_, check_, doc_)                                    \
    [WB_OP_##name_] = {.name = #name_,                                                             \
                       .doc = doc_,                                                                \
                       .kind = WB_KIND_##kind_,                                                    \
                       .vjp = vjp_,                                                                \
                       .expand = expand_,                                                          \
                       .check = check_},
#include <weber/ops.def>
};

/* ---- the rest of the family ---- */

wb_array *wb_identity(wb_array *x) { return wb_may_ask("identity", x) ? x : NULL; }
wb_array *wb_add_number(wb_array *x, double c) { return wb_add(x, wb_constant(c)); }
wb_array *wb_sub_number(wb_array *x, double c) { return wb_sub(x, wb_constant(c)); }
wb_array *wb_mul_number(wb_array *x, double c) { return wb_mul(x, wb_constant(c)); }
wb_array *wb_div_number(wb_array *x, double c) { return wb_div(x, wb_constant(c)); }
wb_array *wb_pow_number(wb_array *x, double c) {
    const bool is_float = wb_is_usable(x) && wb_dtype_is_float((wb_dtype)x->dtype);
    return c == 2 && is_float ? wb_square(x) : wb_pow(x, wb_constant(c));
}

wb_array *wb_number_sub(double c, wb_array *x) { return wb_sub(wb_constant(c), x); }
wb_array *wb_number_div(double c, wb_array *x) { return wb_div(wb_constant(c), x); }
wb_array *wb_number_pow(double c, wb_array *x) { return wb_pow(wb_constant(c), x); }

wb_array *wb_clamp(wb_array *x, double low, double high) {
    if (!wb_is_usable(x)) return wb_refuse("clamp", x, "x");
    if (!(low <= high))
        return wb_fail_null(WB_ERROR_ARGUMENT,
                            "clamp: low must not be above high, got low %g, high %g", low, high);
    const bool is_whole = !is_weak(x) && !wb_dtype_is_float((wb_dtype)x->dtype);
    if (isfinite(low)) x = is_whole ? wb_bounded("clamp", WB_OP_max, x, low) : MAX(x, NUM(low));
    if (!x || !isfinite(high)) return x;
    return is_whole ? wb_bounded("clamp", WB_OP_min, x, high) : MIN(x, NUM(high));
}

static wb_array *bool_like(const wb_array *x, bool value) {
    return wb_full_make(WB_BOOL, value, x->ndim, x->sizes);
}

wb_array *wb_isnan(wb_array *x) { return wb_is_usable(x) ? NE(x, x) : wb_refuse("isnan", x, "x"); }

wb_array *wb_isinf(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("isinf", x, "x");
    const bool is_float = wb_dtype_is_float((wb_dtype)x->dtype);
    return is_float ? EQ(ABS(x), NUM((double)INFINITY)) : bool_like(x, false);
}

wb_array *wb_isfinite(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("isfinite", x, "x");
    const bool is_float = wb_dtype_is_float((wb_dtype)x->dtype);
    return is_float ? LT(ABS(x), NUM((double)INFINITY)) : bool_like(x, true);
}

/* Two numbers are f64, or f32 where the condition's device has no f64. False with the error. */
static bool type_of_select(const wb_array *condition, const wb_array *yes, const wb_array *no,
                           wb_dtype *dtype) {
    const wb_device *device = condition->device;
    double c;
    if (wb_is_number_beside(yes, no, &c)) return wb_type_beside("select", no, c, dtype);
    if (wb_is_number_beside(no, yes, &c)) return wb_type_beside("select", yes, c, dtype);
    *dtype = meet(yes, no);
    if (is_weak(yes) && is_weak(no) && device && !wb_device_has_f64(device)) *dtype = WB_F32;
    return true;
}

wb_array *(wb_select)(wb_array *condition, wb_array *yes, wb_array *no) {
    if (!wb_is_usable(condition)) return wb_refuse("select", condition, "condition");
    if (!wb_is_usable(yes)) return wb_refuse("select", yes, "yes");
    if (!wb_is_usable(no)) return wb_refuse("select", no, "no");
    if (condition->dtype != WB_BOOL)
        return wb_fail_null(WB_ERROR_DTYPE, "select: the condition must be bool, got %s",
                            wb_dtype_name((wb_dtype)condition->dtype));
    wb_dtype dtype;
    if (!type_of_select(condition, yes, no, &dtype)) return NULL;
    int64_t sizes[WB_MAX_DIMS];
    int ndim = wb_broadcast(yes->ndim, yes->sizes, no->ndim, no->sizes, sizes);
    if (ndim >= 0) ndim = wb_broadcast(condition->ndim, condition->sizes, ndim, sizes, sizes);
    if (ndim < 0)
        return wb_fail_null(WB_ERROR_SHAPE, "select: sizes %s, %s and %s do not broadcast",
                            wb_text_of(condition), wb_text_of(yes), wb_text_of(no));
    return wb_node_new(WB_OP_select, dtype, ndim, sizes, 3, (wb_array *[]){condition, yes, no});
}

void wb_vjp_select(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    if (want[1]) out[1] = SELECT(o->inputs[0], g, NUM(0));
    if (want[2]) out[2] = SELECT(o->inputs[0], NUM(0), g);
}

wb_array *(wb_cast)(wb_array *x, wb_dtype dtype) {
    if (!wb_is_usable(x)) return wb_refuse("cast", x, "x");
    if (!wb_check_dtype("cast", dtype)) return NULL;
    if (x->dtype == dtype && !is_weak(x)) return x;
    return wb_node_new(WB_OP_cast, dtype, x->ndim, x->sizes, 1, &x);
}

void wb_vjp_cast(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)want;
    const wb_dtype from = (wb_dtype)o->inputs[0]->dtype;
    if (wb_dtype_is_float(from)) out[0] = wb_cast(g, from);
}

wb_array *wb_stop_gradient(wb_array *x) {
    if (!wb_is_usable(x)) return wb_refuse("stop_gradient", x, "x");
    return wb_node_new(WB_OP_stop_gradient, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x);
}

wb_array *wb_copied(wb_array *x) {
    return wb_node_new(WB_OP_copy, (wb_dtype)x->dtype, x->ndim, x->sizes, 1, &x);
}

void wb_vjp_copy(wb_array *o, wb_array *g, const bool *want, wb_array **out) {
    (void)o, (void)want;
    out[0] = g;
}

bool wb_expand_identity(wb_array *node, wb_array **parts) {
    parts[0] = node->inputs[0];
    return true;
}

/* ---- examples for the gradient checker ---- */

static wb_array *check_select(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return SELECT(LT(arrays[0], arrays[1]), SQUARE(arrays[0]), MUL(arrays[0], arrays[1]));
}

const wb_check *wb_check_select(void) {
    static const wb_check check = {2, {{2, {3, 2}}, {2, {3, 2}}}, -2, 2, check_select};
    return &check;
}

static wb_array *check_cast(void *context, int count, wb_array *const *arrays) {
    (void)context, (void)count;
    return wb_cast(SQUARE(arrays[0]), WB_F64);
}

const wb_check *wb_check_cast(void) {
    static const wb_check check = {1, {{2, {3, 2}}}, -2, 2, check_cast};
    return &check;
}

CHECK(copy, SQUARE(wb_copied(x)), 1, {{2, {3, 2}}}, -2, 2)
