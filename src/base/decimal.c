/* strtod expects the decimal separator of the process's locale. So the text is checked first, its
 * point is replaced by that separator, and strtod reads the result. */
#include "base/decimal.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 500 /* characters of a number */ };

static size_t digits(const char *text, size_t length, size_t *at) {
    const size_t begin = *at;
    while (*at < length && text[*at] >= '0' && text[*at] <= '9') ++*at;
    return *at - begin;
}

static void sign(const char *text, size_t length, size_t *at) {
    if (*at < length && (text[*at] == '+' || text[*at] == '-')) ++*at;
}

static bool is_decimal(const char *text, size_t length) {
    size_t at = 0;
    sign(text, length, &at);
    size_t count = digits(text, length, &at);
    if (at < length && text[at] == '.') at++, count += digits(text, length, &at);
    if (count == 0) return false;
    if (at == length) return true;
    if (text[at] != 'e' && text[at] != 'E') return false;
    at++;
    sign(text, length, &at);
    return digits(text, length, &at) > 0 && at == length;
}

/* strtod reads the decimal point of the process's locale. */
bool wb_read_decimal(const char *text, size_t length, double *value) {
    char copy[MOST + 40], *end;
    if (length > MOST || !is_decimal(text, length)) return false;
    const char *dot = memchr(text, '.', length);
    const int before = (int)(dot ? dot - text : (ptrdiff_t)length), all = (int)length;
    const int used = dot ? snprintf(copy, sizeof copy, "%.*s%s%.*s", before, text,
                                    localeconv()->decimal_point, all - before - 1, dot + 1)
                         : snprintf(copy, sizeof copy, "%.*s", all, text);
    if (used < 0 || (size_t)used >= sizeof copy) return false;
    *value = strtod(copy, &end);
    return *end == 0 && isfinite(*value);
}
