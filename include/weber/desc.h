/* weber/desc.h: settings by name, in structs that are called descs.
 *
 * A setting that you write counts, even 0 or false; one that you do not write has its default:
 *
 *     wb_dense(2, 3)                       with a bias
 *     wb_dense(2, 3, .bias = false)        without
 *     wb_momentum(.rho = 0)                rho is 0
 *
 * A maker such as wb_dense is a macro: it puts the defaults before the caller's settings, and the
 * last value of a member counts. The default of a member is in its WB_DEFAULT; a member without one
 * is 0, whose meaning its comment says (a kernel, a stride, a size or a pointer that is 0 is not
 * given). The macro calls a function whose name ends in _make. It takes the desc, which may be a
 * variable:
 *
 *     wb_dense_desc d = WB_DESC(dense, 2, 3, .bias = false);
 *     wb_layer *layer = wb_dense_make(d);
 *
 * A list that such a variable points to must be a variable, too: a literal such as (int[]){0, 1} is
 * valid only within the expression. A desc within a desc is written in the same way: .metrics =
 * WB_DESC(evaluate, .k = 3). A desc that was made in another way, such as (wb_dense_desc){.in = 2},
 * lacks its defaults and is refused; a desc whose members are all 0 by default, such as
 * wb_window_desc, is accepted.
 *
 * Settings that every call needs come first and can be given by position, without their names; a
 * list is in braces: wb_conv({3, 3}, 1, 16).
 *
 * C++: members have the same defaults there, so that `wb_dense_desc d{}; d.in = 2;` is right from
 * C++14 on (without the braces the members that have no default are not set), and from C++20 on the
 * macros work with named settings, in the members' order. */
#ifndef WEBER_DESC_H
#define WEBER_DESC_H

#include <stdint.h>

#include "defaults.h"

/* Marks a desc that a macro made: a number in the first member that no caller would write there by
 * position. A desc within a desc that its caller does not set is marked with WB_LEFT_OUT_. */
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

/* The default of a member. In C it comes from weber/defaults.h, which scripts/defaults generates
 * from these. */
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

/* An expression in which a member may be initialised twice without a warning. Missing braces, and
 * numbers where a pointer is needed, are errors in it: wb_conv(3, 1, 16) is not wb_conv({3}, 1,
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

/* A last argument for macros that need at least one. */
#define WB_NO_MORE .start_ = WB_MADE_

/* Lists of paddings, since in C {1} and {1, 0} are the same: .pad = WB_ALL(1) is for all
 * dimensions; .pad = WB_EACH(1, 0) has one number for each dimension, where 0 means 0. */
#define WB_ALL(n)                                                                                  \
    { n, WB_SAME_, WB_SAME_ }
#define WB_EACH(...) WB_EACH_(__VA_ARGS__, WB_SAME_, WB_SAME_, 0)
#define WB_EACH_(a, b, c, ...)                                                                     \
    { (a) ? (a) : WB_NONE_, (b) ? (b) : WB_NONE_, (c) ? (c) : WB_NONE_ }
#define WB_NONE_ INT64_MIN       /* in WB_EACH: a 0 that was written */
#define WB_SAME_ (INT64_MIN + 1) /* the number before, or no further dimension */

/* WB_DESC(dense, 2, 3): a wb_dense_desc with its defaults. */
#define WB_DESC(name, ...) WB_QUIET_(WB_GIVEN_(name, __VA_ARGS__))

/* The same as an initialiser, for tables of descs that are static. There, -Wextra warns of members
 * that are initialised twice. */
#define WB_INIT(name, ...)                                                                         \
    { WB_DEFAULTS_##name.start_ = WB_MADE_, __VA_ARGS__ }

/* Calls function(desc) and function(x, desc), where desc is a wb_NAME_desc. The makers' macros are
 * defined with these. */
#define WB_MAKE(function, name, ...)       WB_QUIET_(function(WB_GIVEN_(name, __VA_ARGS__)))
#define WB_MAKE_OF(function, x, name, ...) WB_QUIET_(function(x, WB_GIVEN_(name, __VA_ARGS__)))

#endif
