/* weber/dtype.h: the element types.
 *
 * Storage may be narrower than arithmetic: programs compute in f32, f64, i32, i64 and bool; f16 and
 * bf16 are converted to f32 at the load and rounded once at the store. How two types meet is one
 * table, wb_promote(), Julia's: integers widen, floats win, C scalars are weak. */
#ifndef WEBER_DTYPE_H
#define WEBER_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WB_API
#else
#define WB_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, bytes, C type of one stored element) */
#define WB_DTYPE_LIST(X)                                                                           \
    X(F32, f32, 4, float)                                                                          \
    X(F64, f64, 8, double)                                                                         \
    X(F16, f16, 2, uint16_t)                                                                       \
    X(BF16, bf16, 2, uint16_t)                                                                     \
    X(I32, i32, 4, int32_t)                                                                        \
    X(I64, i64, 8, int64_t)                                                                        \
    X(U8, u8, 1, uint8_t)                                                                          \
    X(BOOL, bool, 1, uint8_t)

/* WB_F32 is zero: a desc without a type means f32. */
typedef enum wb_dtype {
#define X(NAME, name, bytes, type) WB_##NAME,
    WB_DTYPE_LIST(X)
#undef X
        WB_DTYPE_COUNT
} wb_dtype;

/* The same constants with the enumeration's type, which C's enumerators lack: by it a maker tells
 * an element type from a number that stands in its place. In C11,
 *
 *     wb_zeros(2, 3)                    fails: "full: 2 is not an element type: ..."
 *
 * instead of making an f16 vector. Hold element types in a wb_dtype, not in an int. */
#define WB_F32  ((wb_dtype)WB_F32)
#define WB_F64  ((wb_dtype)WB_F64)
#define WB_F16  ((wb_dtype)WB_F16)
#define WB_BF16 ((wb_dtype)WB_BF16)
#define WB_I32  ((wb_dtype)WB_I32)
#define WB_I64  ((wb_dtype)WB_I64)
#define WB_U8   ((wb_dtype)WB_U8)
#define WB_BOOL ((wb_dtype)WB_BOOL)

/* dtype itself if it is a wb_dtype; a number n becomes n + WB_NO_DTYPE, which no function takes. */
enum { WB_NO_DTYPE = 0x10000 };
#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
#define WB_DTYPE(dtype)                                                                            \
    _Generic((dtype), wb_dtype : (dtype), default : (wb_dtype)(WB_NO_DTYPE + (dtype)))
#else
#define WB_DTYPE(dtype) (dtype)
#endif

enum { WB_MAX_DIMS = 8 };

/* "f32", "bool", ...; "unknown" outside the enum. */
WB_API const char *wb_dtype_name(wb_dtype dtype);

/* Bytes of one stored element. */
WB_API size_t wb_dtype_size(wb_dtype dtype);

/* True for f16, bf16, f32, f64. */
WB_API bool wb_dtype_is_float(wb_dtype dtype);

/* The type in which an operation on a and b is computed and returned; WB_DTYPE_COUNT where one of
 * them is no type. */
WB_API wb_dtype wb_promote(wb_dtype a, wb_dtype b);

/* Zero in a desc means "not given". Where the number 0 itself is meant:
 *
 *     wb_adam(.beta1 = WB_ZERO)               a real that is 0
 *     wb_maxpool({2, 2}, .pad = {1, WB_NONE}) an entry of a list of integers that is 0 */
#define WB_ZERO (-0.0)
#define WB_NONE INT64_MIN

#ifdef __cplusplus
}
#endif
#endif
