/* Writes an element as Julia does: at most six digits, plainly from 1e-4 up to 1e6, else with an
 * exponent. */
#include "show/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

/* The number of digits that distinguish neighbours of the type, at most 6: enough for f32 and f64;
 * 16-bit numbers may need fewer. */
static int digits_for(double value, int mantissa_bits, int least_exponent) {
    const int exponent = ilogb(value) > least_exponent ? ilogb(value) : least_exponent;
    const double half_step = ldexp(1, exponent - mantissa_bits - 1);
    for (int digits = 1; digits < 6; digits++) {
        char text[WB_NUMBER_BYTES];
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (fabs(strtod(text, NULL) - value) < half_step) return digits;
    }
    return 6;
}

/* Writes 0.d1d2... 10^point: plainly where -4 < point <= 6, else as d1.d2...e. */
static void write_digits(char *text, const char *digits, int count, int point) {
    if (point <= -4 || point > 6) {
        (void)snprintf(text, WB_NUMBER_BYTES - 1, "%c.%.*se%d", digits[0],
                       count > 1 ? count - 1 : 1, count > 1 ? digits + 1 : "0", point - 1);
    } else if (point <= 0) {
        (void)snprintf(text, WB_NUMBER_BYTES - 1, "0.%.*s%.*s", -point, "000", count, digits);
    } else if (point >= count) {
        (void)snprintf(text, WB_NUMBER_BYTES - 1, "%.*s%.*s.0", count, digits, point - count,
                       "000000");
    } else {
        (void)snprintf(text, WB_NUMBER_BYTES - 1, "%.*s.%.*s", point, digits, count - point,
                       digits + point);
    }
}

static void write_float(char *text, double value, int digits) {
    if (signbit(value) && !isnan(value)) *text++ = '-';
    value = fabs(value);
    if (!isfinite(value)) {
        (void)snprintf(text, WB_NUMBER_BYTES - 1, isnan(value) ? "NaN" : "Inf");
        return;
    }
    char scientific[WB_NUMBER_BYTES], plain[8] = "";
    (void)snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
    int count = 0;
    const char *at = scientific;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9') plain[count++] = *at;
    while (count > 1 && plain[count - 1] == '0') count--;
    write_digits(text, plain, count, value == 0 ? 1 : 1 + atoi(at + 1));
}

static void write_16_bit(char *text, double value, int mantissa_bits, int least_exponent) {
    const bool simple = value == 0 || !isfinite(value);
    write_float(text, value, simple ? 6 : digits_for(fabs(value), mantissa_bits, least_exponent));
}

void wb_show_number(char text[WB_NUMBER_BYTES], const void *data, wb_dtype dtype, int64_t i) {
    switch (dtype) {
    case WB_F32:
        write_float(text, (double)((const float *)data)[i], 6);
        return;
    case WB_F64:
        write_float(text, ((const double *)data)[i], 6);
        return;
    case WB_F16:
        write_16_bit(text, wb_of_f16(((const uint16_t *)data)[i]), 10, -14);
        return;
    case WB_BF16:
        write_16_bit(text, (double)wb_of_bf16(((const uint16_t *)data)[i]), 7, -126);
        return;
    case WB_I32:
        (void)snprintf(text, WB_NUMBER_BYTES, "%" PRId32, ((const int32_t *)data)[i]);
        return;
    case WB_I64:
        (void)snprintf(text, WB_NUMBER_BYTES, "%" PRId64, ((const int64_t *)data)[i]);
        return;
    default:
        (void)snprintf(text, WB_NUMBER_BYTES, "%d", ((const uint8_t *)data)[i]);
        return;
    }
}
