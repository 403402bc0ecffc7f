/* random_calls INPUTS [SEED [BYTES]]: a target without libFuzzer, which takes most of the time for
 * what it notes of coverage: so many inputs of random bytes, the i-th from seed SEED + i. A find
 * ends the process, whose last line says its seed; so does an input of more than a minute. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

#include "base/memory.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seed;

static void tell_seed(void) {
    (void)fprintf(stderr, "the input of seed %" PRIu64 "\n", seed);
    (void)fflush(NULL);
}

static void give_up(int signal) {
    (void)signal;
    __sanitizer_print_stack_trace();
    tell_seed();
    _exit(1);
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014 */
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

int main(int argc, char **argv) {
    enum { LEAKS_EVERY = 10000 };
    const int64_t inputs = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000;
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const size_t size = argc > 3 ? strtoull(argv[3], NULL, 10) : 6000;
    uint8_t *data = wb_alloc(size + 8);
    if (!data) return 2;
    (void)LLVMFuzzerInitialize(&argc, &argv);
    __sanitizer_set_death_callback(tell_seed);
    (void)signal(SIGALRM, give_up);
    for (int64_t i = 0; i < inputs; i++) {
        seed = first + (uint64_t)i;
        uint64_t state = seed;
        for (size_t k = 0; k < size; k += 8) memcpy(data + k, &(uint64_t){next(&state)}, 8);
        (void)alarm(60);
        (void)LLVMFuzzerTestOneInput(data, size);
        if ((i + 1) % LEAKS_EVERY == 0 && __lsan_do_recoverable_leak_check()) return 1;
    }
    wb_release(data);
    return 0;
}
