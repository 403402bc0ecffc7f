/* C numbers combined with arrays of whole numbers. The rule is at the top of weber/ops.h. */
#include <math.h>

#include "ops/build.h"

/* ---- what the types hold ---- */

/* From least up to, and not including, beyond. */
typedef struct whole {
    double least, beyond;
    const char *text;
} whole;

static const whole *whole_of(wb_dtype dtype) {
    static const whole u8 = {0, 0x1p8, "0 to 255"};
    static const whole i32 = {-0x1p31, 0x1p31, "-2147483648 to 2147483647"};
    static const whole i64 = {-0x1p63, 0x1p63, "-2^63 to 2^63 - 1"};
    return dtype == WB_U8 ? &u8 : dtype == WB_I32 ? &i32 : &i64;
}

static bool is_whole(double c) { return c == floor(c) && isfinite(c); }

bool wb_check_number(const char *function, wb_dtype dtype, double c) {
    const whole *w = whole_of(dtype);
    if (wb_dtype_is_float(dtype) || dtype == WB_BOOL) return true;
    if (is_whole(c) && c >= w->least && c < w->beyond) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s holds whole numbers from %s, got %g", function,
                  wb_dtype_name(dtype), w->text, c);
    return false;
}

wb_array *wb_stored_as(const char *function, wb_array *x, wb_dtype dtype) {
    double c;
    const bool is_number = x && (x->flags & WB_NODE_WEAK) && wb_constant_value(x, &c);
    return !is_number || wb_check_number(function, dtype, c) ? wb_cast(x, dtype) : NULL;
}

wb_array *wb_floating(wb_array *x) {
    return x && !wb_dtype_is_float((wb_dtype)x->dtype) ? wb_cast(x, WB_F32) : x;
}

wb_array *wb_wide(wb_array *x) {
    const bool is_wide = x && (x->dtype == WB_F32 || x->dtype == WB_F64);
    return x && !is_wide ? wb_cast(x, WB_F32) : x;
}

wb_array *wb_widened(wb_array *x) {
    return x && !wb_dtype_is_float((wb_dtype)x->dtype) ? wb_cast(x, WB_I64) : x;
}

/* ---- whole numbers beyond those of doubles ---- */

/* Of two parts, which doubles hold both. */
wb_array *wb_whole_number(int64_t value) {
    const int64_t most = (int64_t)1 << 53, low = value & UINT32_MAX;
    if (value >= -most && value <= most) return wb_number((double)value);
    return wb_add(wb_scalar(WB_I64, (double)(value - low)), wb_scalar(WB_I64, (double)low));
}

/* ---- beside an array ---- */

bool wb_is_number_beside(const wb_array *number, const wb_array *x, double *c) {
    return (number->flags & WB_NODE_WEAK) && !(x->flags & WB_NODE_WEAK) &&
           !wb_dtype_is_float((wb_dtype)x->dtype) && wb_constant_value(number, c);
}

static wb_dtype whole_type(const wb_array *x) {
    return x->dtype == WB_BOOL ? WB_I64 : (wb_dtype)x->dtype;
}

bool wb_type_beside(const char *function, const wb_array *x, double c, wb_dtype *dtype) {
    *dtype = is_whole(c) ? whole_type(x) : WB_F32;
    return wb_check_number(function, *dtype, c);
}

wb_array *wb_bounded(const char *function, wb_op op, wb_array *x, double c) {
    wb_dtype dtype = whole_type(x);
    const whole *w = whole_of(dtype);
    const bool bounds_nothing = op == WB_OP_max ? c < w->least : c >= w->beyond;
    if (is_whole(c) && bounds_nothing) return wb_cast(x, dtype);
    return wb_type_beside(function, x, c, &dtype) ? wb_binary_node(op, dtype, x, NUM(c)) : NULL;
}

/* x < c where x < ceil(c), and x <= c where x <= floor(c): fractions need no rounding. */
static wb_array *compared(wb_op op, wb_array *x, double c) {
    const wb_dtype dtype = whole_type(x);
    const whole *w = whole_of(dtype);
    const bool is_equality = op == WB_OP_eq || op == WB_OP_ne;
    const bool if_below = op == WB_OP_ne || op == WB_OP_gt || op == WB_OP_ge;
    const bool if_above = op == WB_OP_ne || op == WB_OP_lt || op == WB_OP_le;
    const bool never = isnan(c) || (is_equality && !is_whole(c));
    c = op == WB_OP_lt || op == WB_OP_ge ? ceil(c) : floor(c);
    if (!never && c >= w->least && c < w->beyond)
        return wb_binary_node(op, WB_BOOL, wb_cast(x, dtype), NUM(c));
    const bool value = never ? op == WB_OP_ne : c < w->least ? if_below : if_above;
    return value ? EQ(x, x) : NE(x, x); /* of x's sizes, and on its device */
}

static wb_op turned_round(wb_op op) {
    switch (op) {
    case WB_OP_lt:
        return WB_OP_gt;
    case WB_OP_le:
        return WB_OP_ge;
    case WB_OP_gt:
        return WB_OP_lt;
    case WB_OP_ge:
        return WB_OP_le;
    default:
        return op;
    }
}

wb_array *wb_with_number(wb_op op, wb_array *x, double c, bool number_first) {
    const char *function = wb_op_name(op);
    wb_dtype dtype = WB_F32;
    if (wb_op_rows[op].type_class == WB_CLASS_COMPARE)
        return compared(number_first ? turned_round(op) : op, x, c);
    if (op == WB_OP_max || op == WB_OP_min) return wb_bounded(function, op, x, c);
    if (wb_op_rows[op].type_class == WB_CLASS_NUMBER && !wb_type_beside(function, x, c, &dtype))
        return NULL;
    return number_first ? wb_binary_node(op, dtype, NUM(c), x)
                        : wb_binary_node(op, dtype, x, NUM(c));
}
