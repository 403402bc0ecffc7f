/* Decimal numbers in texts, with a point in any locale of the process. */
#ifndef WB_BASE_DECIMAL_H
#define WB_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

/* [+-]digits[.digits][e[+-]digits], all of the text; digits may be missing on one side of the
 * point. False for anything else, and for what is too large for f64. */
bool wb_read_decimal(const char *text, size_t length, double *value);

#endif
