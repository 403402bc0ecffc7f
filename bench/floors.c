#include "floors.h"

const bench_floor *bench_floor_of(const char *name) {
    if (name[1]) return NULL;
    switch (name[0]) {
    case 'a':
        return &bench_floor_a;
    case 'b':
        return &bench_floor_b;
    case 'g':
        return &bench_floor_g;
    default:
        return NULL;
    }
}
