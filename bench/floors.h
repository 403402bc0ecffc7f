/* Hand-written loops for a, b and g: what the same work costs with nothing around it. */
#ifndef BENCH_FLOORS_H
#define BENCH_FLOORS_H

#include "cases.h"

typedef struct bench_floor {
    const char *how;
    void *(*open)(int threads);
    void (*step)(void *state);
    bench_result (*result)(void *state);
    void (*close)(void *state);
} bench_floor;

extern const bench_floor bench_floor_a, bench_floor_b, bench_floor_g;

/* NULL where a case has none, as in other sizes than its own. */
const bench_floor *bench_floor_of(const char *name);

#endif
