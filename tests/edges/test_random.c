/* Random numbers that are rarer than 2^-24, the step of uniform ones: shares and intervals. */
#include "values/modes.h"

/* Uniform numbers of this seed have a 0 at an even place, which is below all that is rare. */
enum { SEED = 33, DRAWS = 1 << 20 };

/* ---- shares: how often of DRAWS ---- */

static double of_bernoulli(double p) { return wb_item(wb_sum(wb_bernoulli(p, DRAWS))); }
static double not_bernoulli(double p) { return DRAWS - of_bernoulli(1 - p); }

/* The second of two classes is drawn. */
static double of_categorical(double p) {
    wb_array *is_rare = wb_iota(WB_F32, 0, 2, DRAWS / 2);
    wb_array *logits = wb_mul_number(is_rare, log(p) - log1p(-p));
    return 2 * wb_item(wb_sum(wb_categorical(logits, 0)));
}

static const struct share {
    const char *name;
    double (*count)(double p);
    double p;
} shares[] = {
    {"bernoulli of 1e-12", of_bernoulli, 1e-12},
    {"bernoulli of 1e-9", of_bernoulli, 1e-9},
    {"bernoulli of 2e-4, for which one draw is not enough", of_bernoulli, 2e-4},
    {"bernoulli of 3e-4, for which it is", of_bernoulli, 3e-4},
    {"bernoulli of 0.1", of_bernoulli, 0.1},
    {"bernoulli of 1 - 1e-4", not_bernoulli, 1e-4},
    {"bernoulli of 0.7", not_bernoulli, 0.3},
    {"categorical of 1e-12", of_categorical, 1e-12},
    {"categorical of 1e-9", of_categorical, 1e-9},
    {"categorical of 1e-3", of_categorical, 1e-3},
    {"categorical of 0.3", of_categorical, 0.3},
};

/* To six deviations. */
static void a_share_is_right(void **state) {
    const struct share *s = *state;
    wb_seed(SEED);
    assert_true(wb_item(wb_sum(wb_eq(wb_uniform(WB_F32, DRAWS), wb_number(0)))) == 1);
    wb_seed(SEED);
    const double count = s->count(s->p), wanted = DRAWS * s->p;
    if (fabs(count - wanted) > 6 * sqrt(2 * wanted) + 0.5) fail_msg("%g, not %g", count, wanted);
}

/* ---- truncated normal numbers ---- */

enum { NUMBERS = 1 << 15 };

/* log of the share of normal numbers above x >= 0; the continued fraction is Laplace's. */
static double log_above(double x) {
    if (x < 5) return log(erfc(x / sqrt(2)) / 2);
    double f = 0;
    for (int k = 60; k > 0; k--) f = k / (x + f);
    return -x * x / 2 - log((x + f) * 2.5066282746310002);
}

/* Of the numbers between low and high, the share below x. */
static double share_below(double x, double low, double high) {
    if (high <= 0) return 1 - share_below(-x, -high, -low);
    if (low < 0)
        return (erf(x / sqrt(2)) - erf(low / sqrt(2))) / (erf(high / sqrt(2)) - erf(low / sqrt(2)));
    const double from = log_above(low);
    return expm1(log_above(x) - from) /
           expm1(isinf(high) ? -(double)INFINITY : log_above(high) - from);
}

static const struct interval {
    const char *name;
    double low, high, mean; /* computed values, in high precision */
    int distinct;           /* f32 numbers, at least */
} intervals[] = {
    {"between 5 and 6", 5, 6, 5.1831, 25000},
    {"between 10 and 12", 10, 12, 10.0981, 20000},
    {"between -12 and -10", -12, -10, -10.0981, 20000},
    {"above 10", 10, (double)INFINITY, 10.0981, 20000},
    {"above 30", 30, (double)INFINITY, 30.0333, 10000},
    {"between -1 and 6", -1, 6, 0.2876, 25000},
    {"between -2 and 2", -2, 2, 0, 25000},
    {"all", -(double)INFINITY, (double)INFINITY, 0, 25000},
};

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Mean, distinct numbers, and the largest distance of the two distributions (Kolmogorov 1933), by
 * how rarely it is larger: once in 100,000 times. */
static void numbers_are_distributed(const struct interval *r, const double *x, int distinct) {
    double sum = 0, most = 0;
    int values = 1;
    for (int i = 0; i < NUMBERS; i++) {
        sum += x[i];
        values += i > 0 && x[i] != x[i - 1];
        most = fmax(most, fabs(share_below(x[i], r->low, r->high) - (i + 0.5) / NUMBERS));
    }
    if (fabs(sum / NUMBERS - r->mean) > 0.02) fail_msg("mean %g", sum / NUMBERS);
    if (values < distinct) fail_msg("%d distinct numbers", values);
    if (most * sqrt(NUMBERS) > 2.5) fail_msg("distance %g", most * sqrt(NUMBERS));
}

static void an_interval_is_filled(void **state) {
    const struct interval *r = *state;
    static double x[NUMBERS];
    for (int i = 0; i < 2; i++) {
        const wb_dtype t = i ? WB_F64 : WB_F32;
        if (t == WB_F64 && widest() != WB_F64) continue;
        wb_array *y = wb_truncated_normal(t, 0, 1, r->low, r->high, NUMBERS);
        assert_int_equal(wb_read_f64(y, x, NUMBERS), WB_OK);
        qsort(x, NUMBERS, sizeof *x, by_value);
        numbers_are_distributed(r, x, t == WB_F64 ? NUMBERS - 50 : r->distinct);
    }
}

static int run(void) {
    static test_list tests;
    ADD_ROWS(&tests, shares, a_share_is_right);
    ADD_ROWS(&tests, intervals, an_interval_is_filled);
    return run_test_list("random", &tests, NULL, NULL);
}

int main(void) { return run_in_all_modes(run); }
