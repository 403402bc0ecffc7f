#include "floors.h"

const bench_floor *bench_floor_of(char letter) {
    switch (letter) {
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
