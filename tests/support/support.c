#include "support/support.h"

#include <sys/wait.h>
#include <unistd.h>

int open_row(void **state) { return open_scope(state); } /* the row stays in *state */
int close_row(void **state) { return close_scope(state); }

void add_test(test_list *list, struct CMUnitTest test) {
    if (list->count == sizeof list->tests / sizeof *list->tests) abort();
    list->tests[list->count++] = test;
}

int run_test_list(const char *name, const test_list *list, CMFixtureFunction set_up,
                  CMFixtureFunction tear_down) {
    return _cmocka_run_group_tests(name, list->tests, list->count, set_up, tear_down);
}

/* ---- random numbers ---- */

uint64_t test_seed(void) {
    static uint64_t seed;
    if (seed) return seed;
    const char *text = getenv("WEBER_TEST_SEED");
    seed = text ? strtoull(text, NULL, 10) : 20240607;
    print_message("WEBER_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* splitmix64 (Steele, Lea and Flood 2014) */
uint64_t random_bits(test_random *r) {
    uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

int64_t random_below(test_random *r, int64_t n) { return (int64_t)(random_bits(r) % (uint64_t)n); }

double random_between(test_random *r, double low, double high) {
    return low + (high - low) * (double)(random_bits(r) >> 11) * 0x1p-53;
}

/* ---- numbers in memory ---- */

static uint16_t brain_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t half_of(double x) {
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const double size = fabs(x);
    if (x != x) return 0x7e00;
    if (size >= 65520) return sign | 0x7c00;
    if (size < 0x1p-14) return (uint16_t)(sign | (uint16_t)nearbyint(size * 0x1p24));
    int exponent;
    const double fraction = frexp(size, &exponent); /* 0.5 to 1 */
    const uint32_t rounded = (uint32_t)nearbyint(fraction * 0x1p11);
    return (uint16_t)(sign + (uint32_t)((exponent + 13) * 1024) + rounded);
}

void number_put(wb_dtype dtype, void *to, int64_t i, double x) {
    switch (dtype) {
    case WB_F32:
        ((float *)to)[i] = (float)x;
        break;
    case WB_F64:
        ((double *)to)[i] = x;
        break;
    case WB_F16:
        ((uint16_t *)to)[i] = half_of(x);
        break;
    case WB_BF16:
        ((uint16_t *)to)[i] = brain_of((float)x);
        break;
    case WB_I32:
        ((int32_t *)to)[i] = (int32_t)x;
        break;
    case WB_I64:
        ((int64_t *)to)[i] = (int64_t)x;
        break;
    case WB_U8:
        ((uint8_t *)to)[i] = (uint8_t)(int64_t)x;
        break;
    default:
        ((uint8_t *)to)[i] = x != 0;
        break;
    }
}

static double of_half(uint16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 0x3ff;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                       : ldexp(fraction, -24);
    return half & 0x8000 ? -size : size;
}

static double of_brain(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return (double)wide;
}

double number_get(wb_dtype dtype, const void *from, int64_t i) {
    switch (dtype) {
    case WB_F32:
        return (double)((const float *)from)[i];
    case WB_F64:
        return ((const double *)from)[i];
    case WB_F16:
        return of_half(((const uint16_t *)from)[i]);
    case WB_BF16:
        return of_brain(((const uint16_t *)from)[i]);
    case WB_I32:
        return ((const int32_t *)from)[i];
    case WB_I64:
        return (double)((const int64_t *)from)[i];
    default:
        return ((const uint8_t *)from)[i];
    }
}

/* ---- arrays ---- */

static int64_t count_of(int ndim, const int64_t *sizes) {
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) count *= sizes[d];
    return count;
}

wb_array *array_of(wb_dtype dtype, const double *numbers, int ndim, const int64_t *sizes) {
    const int64_t count = count_of(ndim, sizes);
    void *memory = calloc((size_t)count + 1, 8);
    assert_non_null(memory);
    for (int64_t i = 0; i < count; i++) number_put(dtype, memory, i, numbers[i]);
    wb_array *x = wb_from_make(dtype, memory, ndim, sizes);
    free(memory);
    if (!x) fail_msg("no array: %s", wb_error_message());
    return x;
}

wb_array *array_random(test_random *r, wb_dtype dtype, double low, double high, int ndim,
                       const int64_t *sizes) {
    const int64_t count = count_of(ndim, sizes);
    double *numbers = malloc(((size_t)count + 1) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++) numbers[i] = random_between(r, low, high);
    wb_array *x = array_of(dtype, numbers, ndim, sizes);
    free(numbers);
    return x;
}

void *bytes_of(wb_array *x, size_t *size_bytes) {
    if (!x) fail_msg("no array: %s", wb_error_message());
    *size_bytes = (size_t)wb_count(x) * wb_dtype_size(wb_dtype_of(x));
    void *bytes = malloc(*size_bytes + 1);
    assert_non_null(bytes);
    if (wb_read(x, bytes, *size_bytes) != WB_OK) fail_msg("read: %s", wb_error_message());
    return bytes;
}

void assert_same_bits(wb_array *a, wb_array *b, const char *what) {
    size_t a_bytes, b_bytes;
    void *x = bytes_of(a, &a_bytes), *y = bytes_of(b, &b_bytes);
    assert_int_equal(wb_dtype_of(a), wb_dtype_of(b));
    assert_int_equal(a_bytes, b_bytes);
    if (memcmp(x, y, a_bytes) != 0) {
        char where[128] = "";
        (void)wb_approx(a, b, 0, 0, where, sizeof where);
        fail_msg("%s: other bits %s", what, where);
    }
    free(x);
    free(y);
}

/* ---- processes ---- */

int run_with(const char *name, const char *value, int (*run)(void)) {
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        if (name) {
            (void)setenv(name, value, 1);
            print_message("%s=%s\n", name, value);
        }
        const int failed = run();
        (void)fflush(NULL);
        exit(failed ? 1 : 0);
    }
    int status;
    if (waitpid(child, &status, 0) != child) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
