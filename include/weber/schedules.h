/* weber/schedules.h: settings of rules that change with the step.
 *
 * A schedule is a function of the step t, which counts from 1. By hand and by wb_train:
 *
 *     wb_schedule *rate = wb_schedule_sequence({wb_schedule_warm_up(0, 1e-3, 100), 100},
 *                                              {wb_schedule_cosine(1e-3, 1e-5, 900), 900});
 *     for (int64_t t = 1; wb_next(data, &batch); t++) {
 *         wb_adjust(adam, wb_schedule_at(rate, t));
 *         wb_train_step(loss, model, &batch, NULL, adam);
 *     }
 *     wb_train(loss, model, data, adam, .epochs = 5, .schedules = {{"eta", rate}});
 *     wb_free(rate);
 *
 * Values are late numbers (wb_adjust): another value needs no new plan. A schedule has no state, so
 * a checkpoint needs only the number of the step. A maker that takes schedules owns them from the
 * call on, also when it fails. All are released by wb_free. NULL in, NULL out. Formulas without
 * another source are ParameterSchedulers.jl's. */
#ifndef WEBER_SCHEDULES_H
#define WEBER_SCHEDULES_H

#include <math.h>

#include "array.h"
#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function from the number of a step to the value of a setting; released by wb_free. */
typedef struct wb_schedule wb_schedule;

/* The value at step t, at least 1. For another t, and for NULL, 0 and an error. */
WB_API double wb_schedule_at(const wb_schedule *schedule, int64_t t);

/* ---- from one number to another ---- */

/* value at every step */
WB_API wb_schedule *wb_schedule_constant(double value);

/* start decay^i, with i = floor((t - 1) / size): a new value every size steps. */
WB_API wb_schedule *wb_schedule_step(double start, double decay, int64_t size);

/* The same with stages of different lengths: wb_schedule_stages(1, 0.5, 2, 1, 3) is 1 for 2 steps,
 * 0.5 for 1, 0.25 for 3; after the last stage the value stays start decay^(number of stages). */
#define wb_schedule_stages(start, decay, ...)                                                      \
    wb_schedule_stages_make(start, decay, WB_INTS(__VA_ARGS__))
WB_API wb_schedule *wb_schedule_stages_make(double start, double decay, int count,
                                            const int64_t *sizes);

/* start decay^(t - 1) */
WB_API wb_schedule *wb_schedule_exp(double start, double decay);
/* start (1 - (t - 1) / n)^degree, 0 after step n */
WB_API wb_schedule *wb_schedule_poly(double start, double degree, int64_t n);
/* start / (1 + (t - 1) decay)^degree */
WB_API wb_schedule *wb_schedule_inv(double start, double decay, double degree);
/* from + (to - from) (t - 1) / n, then to: a linear warm-up (Goyal and others 2017) */
WB_API wb_schedule *wb_schedule_warm_up(double from, double to, int64_t n);

/* ---- up and down ---- */

typedef struct wb_wave_desc {
    WB_START_MEMBER;
    double first, last; /* the smallest and the largest value, in any order */
    int64_t period;     /* steps from one smallest value to the next; cosine: from first to last */
    bool halves;        /* triangle, sin: each period is half as high as the one before */
    /* triangle, sin: the height at step t is multiplied by decay^(t - 1) */
    double decay WB_DEFAULT(1);
    bool back; /* cosine: goes up again in the next period, and so on */
} wb_wave_desc;

/* low + (high - low) w, where low and high are the smaller and the larger of first and last. With
 * u = (t - 1) / period, w is
 *   triangle  (2 / pi) |asin(sin(pi u))|, a straight line from the smallest value up and back
 *             (Smith 2017)
 *   sin       |sin(pi u)|
 *   cosine    (1 + cos(pi u)) / 2 from the largest value at step 1 down to the smallest at step
 *             period + 1, where it stays. Warm restarts, ParameterSchedulers.jl's default, are a
 *             loop (Loshchilov and Hutter 2017):
 *             wb_schedule_loop(wb_schedule_cosine(1e-3, 1e-5, 100), 100). */
#define wb_schedule_triangle(...) WB_MAKE(wb_schedule_triangle_make, wave, __VA_ARGS__)
#define wb_schedule_sin(...)      WB_MAKE(wb_schedule_sin_make, wave, __VA_ARGS__)
#define wb_schedule_cosine(...)   WB_MAKE(wb_schedule_cosine_make, wave, __VA_ARGS__)
WB_API wb_schedule *wb_schedule_triangle_make(wb_wave_desc desc);
WB_API wb_schedule *wb_schedule_sin_make(wb_wave_desc desc);
WB_API wb_schedule *wb_schedule_cosine_make(wb_wave_desc desc);

typedef struct wb_one_cycle_desc {
    WB_START_MEMBER;
    int64_t n;                       /* steps */
    double max;                      /* the largest value */
    double first WB_DEFAULT(NAN);    /* NaN: max / 25 */
    double last WB_DEFAULT(NAN);     /* NaN: max / 100,000 */
    double percent WB_DEFAULT(0.25); /* fraction of the steps in which the value rises */
} wb_one_cycle_desc;

/* wb_schedule_one_cycle(1000, 1e-2): half a cosine from first at step 1 to max at step ceil(percent
 * n) + 1, then one to last, which is reached, and stays, after step n   (Smith and Topin 2019) */
#define wb_schedule_one_cycle(...) WB_MAKE(wb_schedule_one_cycle_make, one_cycle, __VA_ARGS__)
WB_API wb_schedule *wb_schedule_one_cycle_make(wb_one_cycle_desc desc);

/* ---- combinations of schedules ---- */

typedef struct wb_schedule_part {
    wb_schedule *schedule;
    int64_t steps;
} wb_schedule_part;

/* One schedule after another, each for its number of steps, starting at its own step 1; the last
 * one continues. */
#define wb_schedule_sequence(...)                                                                  \
    wb_schedule_sequence_make(                                                                     \
        (int64_t)(sizeof((wb_schedule_part[]){__VA_ARGS__}) / sizeof(wb_schedule_part)),           \
        (wb_schedule_part[]){__VA_ARGS__})
WB_API wb_schedule *wb_schedule_sequence_make(int64_t count, const wb_schedule_part *parts);

/* loop: the first n steps, repeated; stretch: each value for n steps (such as the batches of an
 * epoch); shift: starts at the schedule's step n + 1. */
WB_API wb_schedule *wb_schedule_loop(wb_schedule *schedule, int64_t n);
WB_API wb_schedule *wb_schedule_stretch(wb_schedule *schedule, int64_t n);
WB_API wb_schedule *wb_schedule_shift(wb_schedule *schedule, int64_t n);

/* A function of yours; user stays valid as long as the schedule. It must give the same value for
 * the same t; otherwise a training that is continued from a checkpoint gives other numbers. */
typedef double wb_schedule_fn(int64_t t, void *user);
WB_API wb_schedule *wb_schedule_of(wb_schedule_fn *fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
