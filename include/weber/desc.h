/* weber/desc.h: settings by name, in structs that are called descs.
 *
 * What is written counts, also a 0 and a false; what is not written is the default:
 *
 *     wb_dense(2, 3)                       with a bias
 *     wb_dense(2, 3, .bias = false)        without
 *     wb_momentum(.rho = 0)                rho is 0
 *
 * A maker such as wb_dense is a macro: it writes the defaults before what its caller writes, and
 * the last value of a member counts. The defaults stand beside the members, in WB_DEFAULT; a member
 * without one begins as 0, which means what its comment says (a kernel, a stride, a size, a pointer
 * that is 0 is not given). The macro calls a function whose name ends in _make. It takes the desc,
 * which may be a variable:
 *
 *     wb_dense_desc d = WB_DESC(dense, 2, 3, .bias = false);
 *     wb_layer *layer = wb_dense_make(d);
 *
 * A list that such a variable points to has a name of its own: a literal such as (int[]){0, 1} ends
 * with the expression. A desc within a desc is written in the same way:
 * .metrics = WB_DESC(evaluate, .k = 3).
 * A desc that was not made so, such as (wb_dense_desc){.in = 2}, lacks its defaults and is
 * refused; one whose members all begin as 0, such as wb_window_desc, lacks nothing and is taken.
 *
 * Settings without a name, by position, are those that every call gives; a list is in braces of its
 * own: wb_conv({3, 3}, 1, 16).
 *
 * C++: members have the same defaults there, so that `wb_dense_desc d{}; d.in = 2;` is right from
 * C++14 on (without the braces the members that have no default are not set), and from C++20 on the
 * macros work with named settings, in the members' order. */
#ifndef WEBER_DESC_H
#define WEBER_DESC_H

#include <stdint.h>

#include "defaults.h"

/* Whether a macro made a desc: a number that nobody writes into the first member by its place. Of a
 * desc within a desc that its caller does not write it is WB_LEFT_OUT_. */
#ifdef __cplusplus
enum class wb_start : char { zeroed, made = 93, left_out = 94 };
#define WB_MADE_     wb_start::made
#define WB_LEFT_OUT_ wb_start::left_out
template <class desc> inline desc wb_not_given_() {
    desc d{};
    d.start_ = WB_LEFT_OUT_;
    return d;
}
#define WB_NOT_GIVEN_(type) wb_not_given_<type>()
#else
typedef char wb_start;
#define WB_MADE_     93
#define WB_LEFT_OUT_ 94
#define WB_NOT_GIVEN_(type)                                                                        \
    { .start_ = WB_LEFT_OUT_ }
#endif

/* The default of a member; in C weber/defaults.h has it, which scripts/defaults makes of these. */
#if defined(__cplusplus) && __cplusplus >= 201402L
#define WB_DEFAULT(...) = __VA_ARGS__
#else
#define WB_DEFAULT(...)
#endif

/* The first member of a desc. */
#define WB_START_MEMBER wb_start start_ WB_DEFAULT(WB_MADE_)

#define WB_GIVEN_(name, ...) WB_VALUE_(wb_##name##_desc, WB_DEFAULTS_##name, __VA_ARGS__)
#ifdef __cplusplus
#define WB_VALUE_(type, defaults, ...) (type{__VA_ARGS__})
#else
#define WB_VALUE_(type, defaults, ...) ((type){defaults.start_ = WB_MADE_, __VA_ARGS__})
#endif

/* An expression in which a member may be written twice, without a warning. Braces that are left out
 * and numbers in the place of pointers are errors there: wb_conv(3, 1, 16) is not wb_conv({3}, 1,
 * 16). */
#if defined(__GNUC__) && !defined(__cplusplus)
#define WB_QUIET_(...)                                                                             \
    __extension__({                                                                                \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")       \
            _Pragma("GCC diagnostic error \"-Wmissing-braces\"")                                   \
                _Pragma("GCC diagnostic error \"-Wint-conversion\"") __VA_ARGS__;                  \
        _Pragma("GCC diagnostic pop")                                                              \
    })
#else
#define WB_QUIET_(...) __VA_ARGS__
#endif

/* Where a macro needs something after its last argument. */
#define WB_NO_MORE .start_ = WB_MADE_

/* Lists of paddings, where C takes {1} and {1, 0} for the same: .pad = WB_ALL(1) is for all
 * dimensions, .pad = WB_EACH(1, 0) has one number for each dimension, and a 0 counts. */
#define WB_ALL(n)                                                                                  \
    { n, WB_SAME_, WB_SAME_ }
#define WB_EACH(...) WB_EACH_(__VA_ARGS__, WB_SAME_, WB_SAME_, 0)
#define WB_EACH_(a, b, c, ...)                                                                     \
    { (a) ? (a) : WB_NONE_, (b) ? (b) : WB_NONE_, (c) ? (c) : WB_NONE_ }
#define WB_NONE_ INT64_MIN       /* a 0 that counts */
#define WB_SAME_ (INT64_MIN + 1) /* the number before, or no further dimension */

/* WB_DESC(dense, 2, 3): a wb_dense_desc with its defaults. */
#define WB_DESC(name, ...) WB_QUIET_(WB_GIVEN_(name, __VA_ARGS__))

/* The same as an initialiser, for tables of descs that are static. -Wextra's warning of members
 * that are written twice is not silenced there. */
#define WB_INIT(name, ...)                                                                         \
    { WB_DEFAULTS_##name.start_ = WB_MADE_, __VA_ARGS__ }

/* function(a wb_NAME_desc), and function(x, a wb_NAME_desc): the makers' macros are defined by
 * these. */
#define WB_MAKE(function, name, ...)       WB_QUIET_(function(WB_GIVEN_(name, __VA_ARGS__)))
#define WB_MAKE_OF(function, x, name, ...) WB_QUIET_(function(x, WB_GIVEN_(name, __VA_ARGS__)))

#endif
