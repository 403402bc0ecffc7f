/* What a member of a desc stands for. */
#ifndef WB_BASE_GIVEN_H
#define WB_BASE_GIVEN_H

#include <math.h>
#include <stdbool.h>

/* 0 is "not given"; WB_ZERO, which has the sign, is 0. */
static inline bool wb_is_given(double value) { return value != 0 || signbit(value); }
static inline double wb_given_or(double value, double usual) {
    return value != 0 ? value : signbit(value) ? 0 : usual;
}

#endif
