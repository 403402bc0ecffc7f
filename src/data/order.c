/* Shuffles by Fisher and Yates with splitmix64 (Steele, Lea and Flood 2014). The order follows from
 * seed and epoch alone, so it is the same on every machine. */
#include "data/order.h"

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static uint64_t next(uint64_t *state) { return mix(*state += 0x9E3779B97F4A7C15ull); }

/* Uniform in 0 .. bound - 1; numbers from the incomplete last run of bound are drawn again. */
static uint64_t below(uint64_t *state, uint64_t bound) {
    const uint64_t incomplete = (0 - bound) % bound;
    uint64_t drawn = next(state);
    while (drawn < incomplete) drawn = next(state);
    return drawn % bound;
}

void wb_order_natural(int64_t *order, int64_t count) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
}

void wb_order_shuffle(int64_t *order, int64_t count, uint64_t seed, int64_t epoch) {
    /* mixed twice: seeds and epochs are small numbers, and (1, 0) must differ from (0, 1) */
    uint64_t state = mix(mix(seed + 0x9E3779B97F4A7C15ull) + (uint64_t)epoch);
    wb_order_natural(order, count);
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)below(&state, (uint64_t)i + 1), moved = order[i];
        order[i] = order[j], order[j] = moved;
    }
}

uint64_t wb_order_seed(uint64_t seed, int64_t epoch, int64_t index) {
    const uint64_t of_epoch = mix(mix(seed + 0x9E3779B97F4A7C15ull) + (uint64_t)epoch);
    return mix(of_epoch + 0x9E3779B97F4A7C15ull * (uint64_t)(index + 1));
}
