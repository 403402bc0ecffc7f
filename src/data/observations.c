/* Observations are the entries of an array's last dimension: how many there are, some of them, and
 * splits by fractions. The results are views of the array. */
#include <math.h>

#include <weber/data.h>

#include "array/array.h"
#include "array/use.h"

int64_t wb_numobs(const wb_array *x) {
    return wb_may_ask("numobs", x) && x->ndim ? x->sizes[x->ndim - 1] : 0;
}

/* x has a last dimension; else the error is recorded. */
static bool check_observations(const char *function, const wb_array *x) {
    if (!wb_may_use_array(function, x, "x")) return false;
    if (x->ndim) return true;
    (void)wb_fail(WB_ERROR_SHAPE, "%s: a scalar has no observations", function);
    return false;
}

wb_array *wb_getobs(wb_array *x, int64_t start, int64_t stop) {
    if (!check_observations("getobs", x)) return NULL;
    if (start < 0 || stop < start || stop > wb_numobs(x))
        return wb_fail_null(
            WB_ERROR_ARGUMENT,
            "getobs: 0 <= start <= stop <= %lld must hold for x %s, got start %lld and stop %lld",
            (long long)wb_numobs(x), wb_text_of(x), (long long)start, (long long)stop);
    return wb_slice(x, -1, start, stop, 1);
}

static bool check_fractions(int count, const double *fractions) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += fractions[i];
        if (fractions[i] >= 0 && sum <= 1 + 1e-9) continue; /* also false for NaN */
        (void)wb_fail(WB_ERROR_ARGUMENT,

                      "splitobs: fractions and their sum must be 0 to 1; "
                      "fraction %d is %g, the sum up to it %g; wb_splitobs_all takes .counts",
                      i, fractions[i], sum);
        return false;
    }
    return true;
}

wb_status wb_splitobs_make(wb_array *x, wb_array **parts, int count, const double *fractions) {
    if (!wb_check_list("splitobs", (int64_t)count + 1, parts) ||
        !wb_check_list("splitobs", count, fractions))
        return wb_error_status();
    for (int i = 0; i <= count; i++) parts[i] = NULL;
    if (!check_observations("splitobs", x) || !check_fractions(count, fractions))
        return wb_error_status();
    const int64_t n = wb_numobs(x);
    int64_t start = 0;
    for (int i = 0; i <= count; i++) {
        int64_t stop = i < count ? start + llrint(fractions[i] * (double)n) : n;
        if (stop > n) stop = n;
        parts[i] = wb_getobs(x, start, stop);
        if (!parts[i]) {
            for (int k = 0; k < i; k++) parts[k] = NULL;
            return wb_error_status();
        }
        start = stop;
    }
    return WB_OK;
}
