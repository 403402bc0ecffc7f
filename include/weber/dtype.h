/* weber/dtype.h: the element types.
 *
 * Storage may be narrower than arithmetic: kernels compute in f32, f64, i32, i64 and bool; f16 and
 * bf16 are converted to f32 when they are loaded and rounded once when they are stored. The type of
 * an operation on two types is wb_promote(), as in Julia: of two integer types the wider one, of an
 * integer and a float the float; C numbers have no influence (weber/ops.h). */
#ifndef WEBER_DTYPE_H
#define WEBER_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "desc.h"

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

/* The same constants with the type wb_dtype; in C, enumerators are ints. By the type a maker can
 * tell an element type from a number that was given by mistake. In C11,
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

/* The type of numbers in C memory, from a pointer to them: a signed or unsigned integer of 1 to 8
 * bytes, a float, a double, a bool, or a type that no element type has: long double, complex,
 * __int128. WB_NUMBERS_AT(pointer) is one of these, or 0 where the type is unknown: for pointers to
 * void, to char (bytes of anything), to a struct or an array, and always in C99 and C++.
 * WB_NUMBERS_IN(array) also finds the type for double d[2][3], but not for d[2][3][4]. */
enum {
    WB_OTHER_NUMBERS = 1 << 23,
    WB_WHOLE_NUMBERS = 1 << 24, /* times the size in bytes: 1, 2, 4 or 8 */
    WB_FLOATS = 16 << 24,
    WB_DOUBLES = 32 << 24,
    WB_BOOLS = 64 << 24
};

/* The C types that an element type can be read from, as bits of the enum above. */
#define WB_NUMBERS_OF(dtype)                                                                       \
    ((dtype) == WB_F32                         ? WB_FLOATS                                         \
     : (dtype) == WB_F64                       ? WB_DOUBLES                                        \
     : (dtype) == WB_F16 || (dtype) == WB_BF16 ? WB_WHOLE_NUMBERS * 2                              \
     : (dtype) == WB_I32                       ? WB_WHOLE_NUMBERS * 4                              \
     : (dtype) == WB_I64                       ? WB_WHOLE_NUMBERS * 8                              \
                                               : WB_WHOLE_NUMBERS | WB_BOOLS)

/* WB_DTYPE_AT is WB_DTYPE together with the pointer's type; wb_from_make and similar functions
 * compare the two. If dtype is a constant, the compiler compares them. */
#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
#define WB_AT_CASE(type, numbers) type * : (numbers), const type * : (numbers)
#define WB_IN_CASE(type, numbers)                                                                  \
    WB_AT_CASE(type, numbers), type(*)[] : (numbers), const type(*)[] : (numbers)
#define WB_WHOLE_CASE(CASE, type) CASE(type, WB_WHOLE_NUMBERS *(int)sizeof(type))
#define WB_OTHER_CASE(CASE, type) CASE(type, WB_OTHER_NUMBERS)
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wb_int128_;
__extension__ typedef unsigned __int128 wb_uint128_;
#define WB_INT128_CASES(CASE) WB_OTHER_CASE(CASE, wb_int128_), WB_OTHER_CASE(CASE, wb_uint128_),
#else
#define WB_INT128_CASES(CASE)
#endif
#define WB_NUMBERS_AT(pointer) WB_NUMBERS_BY(WB_AT_CASE, pointer)
#define WB_NUMBERS_IN(array)   WB_NUMBERS_BY(WB_IN_CASE, array)
#define WB_NUMBERS_BY(CASE, pointer)                                                               \
    _Generic(1 ? (pointer) : (pointer), WB_INT128_CASES(CASE) WB_OTHER_CASE(CASE, long double),    \
             WB_OTHER_CASE(CASE, float _Complex), WB_OTHER_CASE(CASE, double _Complex),            \
             WB_OTHER_CASE(CASE, long double _Complex), CASE(float, WB_FLOATS),                    \
             CASE(double, WB_DOUBLES), CASE(_Bool, WB_BOOLS), WB_WHOLE_CASE(CASE, signed char),    \
             WB_WHOLE_CASE(CASE, unsigned char), WB_WHOLE_CASE(CASE, short),                       \
             WB_WHOLE_CASE(CASE, unsigned short), WB_WHOLE_CASE(CASE, int),                        \
             WB_WHOLE_CASE(CASE, unsigned), WB_WHOLE_CASE(CASE, long),                             \
             WB_WHOLE_CASE(CASE, unsigned long), WB_WHOLE_CASE(CASE, long long),                   \
             WB_WHOLE_CASE(CASE, unsigned long long), default : 0)
#define WB_DTYPE_AT(dtype, pointer)                                                                \
    ((wb_dtype)((int)WB_DTYPE(dtype) +                                                             \
                _Generic((dtype), wb_dtype                                                         \
                         : WB_NUMBERS_IN(pointer), default : 0) +                                  \
                0 * (int)sizeof(WB_SAME_NUMBERS(WB_TYPE_IF_CONSTANT(WB_DTYPE(dtype)),              \
                                                WB_NUMBERS_IN(pointer)))))
/* dtype if it is a constant that the compiler can compare, else WB_DTYPE_COUNT */
#define WB_TYPE_IF_CONSTANT(dtype)                                                                 \
    _Generic(1 ? (void *)((intptr_t)(dtype)*0) : (int *)0, int *                                   \
             : (dtype), default                                                                    \
             : WB_DTYPE_COUNT)
/* An invalid type (an array of negative size) if the pointer is to other numbers than dtype's. (No
 * struct with a _Static_assert: clang takes a compound literal in one for one of the whole
 * file.) */
#define WB_SAME_NUMBERS(dtype, numbers)                                                            \
    char[(numbers) == 0 || (unsigned)(dtype) >= WB_DTYPE_COUNT ||                                  \
                 (WB_NUMBERS_OF(dtype) & (numbers)) != 0                                           \
             ? 1                                                                                   \
             : -1]
#else
#define WB_NUMBERS_AT(pointer)      0
#define WB_NUMBERS_IN(array)        0
#define WB_DTYPE_AT(dtype, pointer) WB_DTYPE(dtype)
#endif

enum { WB_MAX_DIMS = 8 };

/* "f32", "bool", ...; "unknown" outside the enum. */
WB_API const char *wb_dtype_name(wb_dtype dtype);

/* Bytes of one stored element. */
WB_API size_t wb_dtype_size(wb_dtype dtype);

/* True for f16, bf16, f32, f64. */
WB_API bool wb_dtype_is_float(wb_dtype dtype);

/* The type in which an operation on a and b is computed and returned; WB_DTYPE_COUNT where one of
 * them is not a type. */
WB_API wb_dtype wb_promote(wb_dtype a, wb_dtype b);

#ifdef __cplusplus
}
#endif
#endif
