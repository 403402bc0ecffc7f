/* Schedules. */
#include <weber/schedules.h>

#include <math.h>
#include <string.h>

#include "array/use.h"
#include "array/user_call.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"

#define PI 3.14159265358979323846

enum { NUMBERS = 4 };

typedef double value_fn(const wb_schedule *s, int64_t t);

struct wb_schedule {
    wb_object object;
    value_fn *value;
    double numbers[NUMBERS]; /* in the order of the maker's arguments */
    int64_t n;
    bool flag;
    bool is_owned;           /* by another one */
    int64_t *sizes;          /* of stages */
    wb_schedule_part *parts; /* owned; of compositions, one or more */
    int64_t count;           /* of sizes or parts */
    wb_schedule_fn *fn;
    void *user;
};

/* ---- lifetime ---- */

static void release_parts(int64_t count, const wb_schedule_part *parts) {
    for (int64_t i = 0; i < count; i++) wb_free(parts[i].schedule);
}

static void schedule_free(void *object) {
    wb_schedule *s = object;
    if (s->parts) release_parts(s->count, s->parts);
    wb_release(s->parts);
    wb_release(s->sizes);
    wb_object_delete(s, sizeof *s, "schedule");
}

static const wb_class schedule_class = {
    .name = "schedule", .free = schedule_free, .maker = "wb_schedule"};

static bool is_number(const char *function, const char *what, double x) {
    if (isfinite(x)) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be finite, got %g", function, what, x);
    return false;
}

static bool is_positive(const char *function, const char *what, int64_t n) {
    if (n > 0) return true;
    (void)wb_fail(WB_ERROR_ARGUMENT, "%s: %s must be above 0, got %lld", function, what,
                  (long long)n);
    return false;
}

static wb_schedule *new_schedule(value_fn *value) {
    wb_schedule *s = wb_object_new(&schedule_class, sizeof *s);
    if (s) s->value = value;
    return s;
}

/* One of up to three numbers. */
static wb_schedule *of_numbers(const char *function, value_fn *value, const char *const names[3],
                               const double numbers[3]) {
    for (int i = 0; i < 3 && names[i]; i++)
        if (!is_number(function, names[i], numbers[i])) return NULL;
    wb_schedule *s = new_schedule(value);
    if (s) memcpy(s->numbers, numbers, 3 * sizeof *numbers);
    return s;
}

double wb_schedule_at(const wb_schedule *schedule, int64_t t) {
    if (!wb_may_use("wb_schedule_at", schedule, &schedule_class, "the schedule")) return 0;
    if (t >= 1) return schedule->value(schedule, t);
    (void)wb_fail(WB_ERROR_ARGUMENT, "wb_schedule_at: steps count from 1, got %lld", (long long)t);
    return 0;
}

/* ---- from one number to another ---- */

static double constant(const wb_schedule *s, int64_t t) {
    (void)t;
    return s->numbers[0];
}

wb_schedule *wb_schedule_constant(double value) {
    return of_numbers("wb_schedule_constant", constant, (const char *const[3]){"the value"},
                      (const double[3]){value});
}

static const char *const start_and_decay[3] = {"start", "decay"};

static double step(const wb_schedule *s, int64_t t) {
    return s->numbers[0] * pow(s->numbers[1], (double)((t - 1) / s->n));
}

wb_schedule *wb_schedule_step(double start, double decay, int64_t size) {
    static const char function[] = "wb_schedule_step";
    if (!is_positive(function, "size", size)) return NULL;
    wb_schedule *s = of_numbers(function, step, start_and_decay, (const double[3]){start, decay});
    if (s) s->n = size;
    return s;
}

static double stages(const wb_schedule *s, int64_t t) {
    int64_t passed = 0;
    while (passed < s->count && t > s->sizes[passed]) t -= s->sizes[passed++];
    return s->numbers[0] * pow(s->numbers[1], (double)passed);
}

wb_schedule *wb_schedule_stages_make(double start, double decay, int count, const int64_t *sizes) {
    static const char function[] = "wb_schedule_stages";
    if (!wb_check_list(function, count, sizes)) return NULL;
    for (int i = 0; i < count; i++)
        if (!is_positive(function, "each size", sizes[i])) return NULL;
    wb_schedule *s = of_numbers(function, stages, start_and_decay, (const double[3]){start, decay});
    if (!s) return NULL;
    s->sizes = wb_alloc_list(count + 1, sizeof *s->sizes);
    if (!s->sizes) {
        wb_free(s);
        return NULL;
    }
    for (int i = 0; i < count; i++) s->sizes[i] = sizes[i];
    s->count = count;
    return s;
}

static double exponential(const wb_schedule *s, int64_t t) {
    return s->numbers[0] * pow(s->numbers[1], (double)(t - 1));
}

wb_schedule *wb_schedule_exp(double start, double decay) {
    return of_numbers("wb_schedule_exp", exponential, start_and_decay,
                      (const double[3]){start, decay});
}

static double polynomial(const wb_schedule *s, int64_t t) {
    if (t > s->n) return 0;
    return s->numbers[0] * pow(1 - (double)(t - 1) / (double)s->n, s->numbers[1]);
}

wb_schedule *wb_schedule_poly(double start, double degree, int64_t n) {
    static const char function[] = "wb_schedule_poly";
    if (!is_positive(function, "n", n)) return NULL;
    wb_schedule *s = of_numbers(function, polynomial, (const char *const[3]){"start", "degree"},
                                (const double[3]){start, degree});
    if (s) s->n = n;
    return s;
}

static double inverse(const wb_schedule *s, int64_t t) {
    return s->numbers[0] / pow(1 + (double)(t - 1) * s->numbers[1], s->numbers[2]);
}

wb_schedule *wb_schedule_inv(double start, double decay, double degree) {
    return of_numbers("wb_schedule_inv", inverse,
                      (const char *const[3]){"start", "decay", "degree"},
                      (const double[3]){start, decay, degree});
}

static double warm_up(const wb_schedule *s, int64_t t) {
    const double from = s->numbers[0], to = s->numbers[1];
    return t > s->n ? to : from + (to - from) * (double)(t - 1) / (double)s->n;
}

wb_schedule *wb_schedule_warm_up(double from, double to, int64_t n) {
    static const char function[] = "wb_schedule_warm_up";
    if (!is_positive(function, "n", n)) return NULL;
    wb_schedule *s = of_numbers(function, warm_up, (const char *const[3]){"from", "to"},
                                (const double[3]){from, to});
    if (s) s->n = n;
    return s;
}

/* ---- up and down ---- */

/* Numbers of waves: the smallest value, the height above it, the decay; flag: halves, or
 * back. */
static double risen(const wb_schedule *s, int64_t t, double shape) {
    const double periods = (double)((t - 1) / s->n), halved = s->flag ? pow(0.5, periods) : 1;
    return s->numbers[0] + s->numbers[1] * halved * pow(s->numbers[2], (double)(t - 1)) * shape;
}

/* sin(pi (t - 1) / period), of the rest alone, so that multiples of the period are 0 */
static double sine(const wb_schedule *s, int64_t t) {
    return sin(PI * (double)((t - 1) % s->n) / (double)s->n);
}

static double triangle(const wb_schedule *s, int64_t t) {
    return risen(s, t, 2 / PI * asin(fmin(sine(s, t), 1)));
}

static double sinus(const wb_schedule *s, int64_t t) { return risen(s, t, sine(s, t)); }

static double cosine(const wb_schedule *s, int64_t t) {
    const int64_t at = s->flag ? (t - 1) % (2 * s->n) : t - 1 < s->n ? t - 1 : s->n;
    return s->numbers[0] + s->numbers[1] * (1 + cos(PI * (double)at / (double)s->n)) / 2;
}

/* A setting that this wave does not have. */
static bool has_foreign(const char *function, const wb_wave_desc *d, bool is_cosine) {
    const char *name = is_cosine && d->halves       ? "halves"
                       : is_cosine && d->decay != 1 ? "decay"
                       : !is_cosine && d->back      ? "back"
                                                    : NULL;
    if (name)
        (void)wb_fail(WB_ERROR_ARGUMENT,
                      "%s: this schedule has no setting %s; it has first, last, period%s", function,
                      name, is_cosine ? " and back" : ", halves and decay");
    return name != NULL;
}

static wb_schedule *wave(const char *function, value_fn *value, const wb_wave_desc *d, bool flag) {
    if (!wb_check_start(function, d->start_) || has_foreign(function, d, value == cosine))
        return NULL;
    if (!is_positive(function, "period", d->period)) return NULL;
    if (d->period > INT64_MAX / 2)
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: a period of %lld steps is too long", function,
                            (long long)d->period);
    wb_schedule *s = of_numbers(function, value, (const char *const[3]){"first", "last", "decay"},
                                (const double[3]){d->first, d->last, d->decay});
    if (!s) return NULL;
    s->numbers[0] = fmin(d->first, d->last);
    s->numbers[1] = fabs(d->first - d->last);
    s->n = d->period;
    s->flag = flag;
    return s;
}

wb_schedule *wb_schedule_triangle_make(wb_wave_desc desc) {
    return wave("wb_schedule_triangle", triangle, &desc, desc.halves);
}

wb_schedule *wb_schedule_sin_make(wb_wave_desc desc) {
    return wave("wb_schedule_sin", sinus, &desc, desc.halves);
}

wb_schedule *wb_schedule_cosine_make(wb_wave_desc desc) {
    return wave("wb_schedule_cosine", cosine, &desc, desc.back);
}

/* Numbers: max, first, last, steps that go up. */
static double one_cycle(const wb_schedule *s, int64_t t) {
    const double rising = s->numbers[3], at = (double)((t > s->n ? s->n + 1 : t) - 1);
    const bool rises = at < rising;
    const double end = s->numbers[rises ? 1 : 2], length = rises ? rising : (double)s->n - rising;
    const double part = rises ? 1 - at / length : (at - rising) / length;
    return end + (s->numbers[0] - end) * (1 + cos(PI * part)) / 2;
}

wb_schedule *wb_schedule_one_cycle_make(wb_one_cycle_desc d) {
    static const char function[] = "wb_schedule_one_cycle";
    if (!wb_check_start(function, d.start_) || !is_positive(function, "n", d.n)) return NULL;
    const double percent = d.percent;
    if (!(percent >= 0 && percent < 1))
        return wb_fail_null(WB_ERROR_ARGUMENT, "%s: percent must be at least 0 and below 1, got %g",
                            function, percent);
    const double numbers[3] = {d.max, isnan(d.first) ? d.max / 25 : d.first,
                               isnan(d.last) ? d.max / 1e5 : d.last};
    wb_schedule *s =
        of_numbers(function, one_cycle, (const char *const[3]){"max", "first", "last"}, numbers);
    if (!s) return NULL;
    s->n = d.n;
    s->numbers[3] = fmin(ceil((double)d.n * percent), (double)d.n - 1);
    return s;
}

/* ---- of others ---- */

static double of_part(const wb_schedule *s, int64_t i, int64_t t) {
    const wb_schedule *part = s->parts[i].schedule;
    return part->value(part, t);
}

static double sequence(const wb_schedule *s, int64_t t) {
    int64_t i = 0;
    while (i < s->count - 1 && t > s->parts[i].steps) t -= s->parts[i++].steps;
    return of_part(s, i, t);
}

static double loop(const wb_schedule *s, int64_t t) { return of_part(s, 0, (t - 1) % s->n + 1); }
static double stretch(const wb_schedule *s, int64_t t) { return of_part(s, 0, (t - 1) / s->n + 1); }
static double shift(const wb_schedule *s, int64_t t) {
    return of_part(s, 0, t > INT64_MAX - s->n ? INT64_MAX : t + s->n);
}

static bool is_given_before(const wb_schedule_part *parts, int64_t i) {
    for (int64_t k = 0; k < i; k++)
        if (parts[k].schedule == parts[i].schedule) return true;
    return false;
}

static bool check_parts(const char *function, int64_t count, const wb_schedule_part *parts) {
    if (!is_positive(function, "the number of parts", count)) return false;
    for (int64_t i = 0; i < count; i++)
        if (!wb_may_use(function, parts[i].schedule, &schedule_class, "a schedule") ||
            !is_positive(function, "the number of steps", parts[i].steps))
            return false;
    for (int64_t i = 0; i < count; i++)
        if (parts[i].schedule->is_owned || is_given_before(parts, i)) {
            (void)wb_fail(WB_ERROR_ARGUMENT,
                          "%s: schedule %lld is part of another schedule already", function,
                          (long long)i + 1);
            return false;
        }
    return true;
}

/* Releases the schedules that were given, each once; those with another owner stay. */
static void release_given(int64_t count, const wb_schedule_part *parts) {
    for (int64_t i = 0; i < count; i++) {
        wb_schedule *s = parts[i].schedule;
        const bool is_schedule = s && s->object.klass == &schedule_class;
        if (!is_given_before(parts, i) && !(is_schedule && s->is_owned)) wb_free(s);
    }
}

/* Takes the parts, also on failure. */
static wb_schedule *compose(const char *function, value_fn *value, int64_t count,
                            const wb_schedule_part *parts) {
    if (!wb_check_list(function, count, parts)) return NULL;
    wb_schedule *s = check_parts(function, count, parts) ? new_schedule(value) : NULL;
    wb_schedule_part *own = s ? wb_alloc_list(count, sizeof *own) : NULL;
    if (!own) {
        wb_free(s);
        release_given(count, parts);
        return NULL;
    }
    memcpy(own, parts, (size_t)count * sizeof *own);
    for (int64_t i = 0; i < count; i++) own[i].schedule->is_owned = true;
    s->parts = own, s->count = count, s->n = parts[0].steps;
    return s;
}

wb_schedule *wb_schedule_sequence_make(int64_t count, const wb_schedule_part *parts) {
    return compose("wb_schedule_sequence", sequence, count, parts);
}

wb_schedule *wb_schedule_loop(wb_schedule *schedule, int64_t n) {
    return compose("wb_schedule_loop", loop, 1, &(wb_schedule_part){schedule, n});
}

wb_schedule *wb_schedule_stretch(wb_schedule *schedule, int64_t n) {
    return compose("wb_schedule_stretch", stretch, 1, &(wb_schedule_part){schedule, n});
}

wb_schedule *wb_schedule_shift(wb_schedule *schedule, int64_t n) {
    return compose("wb_schedule_shift", shift, 1, &(wb_schedule_part){schedule, n});
}

static double of_fn(const wb_schedule *s, int64_t t) {
    wb_user_call call;
    wb_user_call_begin(&call, "the function");
    const double number = s->fn(t, s->user);
    (void)wb_user_call_end(&call, "wb_schedule_of");
    return number;
}

wb_schedule *wb_schedule_of(wb_schedule_fn *fn, void *user) {
    if (!fn) return wb_fail_argument_null("wb_schedule_of", "the function");
    wb_schedule *s = new_schedule(of_fn);
    if (s) s->fn = fn, s->user = user;
    return s;
}
