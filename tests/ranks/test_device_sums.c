/* What a device adds up for its ranks, beside what the host adds, bit by bit; in one process, so
 * that there may be many ranks. */
#include "ranks/device_sums.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "ranks/ranks.h"
#include "support/support.h"

enum { MOST_COUNT = 700, MOST = 100 };

static char given[MOST][MOST_COUNT * 8];
static char taken[MOST_COUNT * 8], expected[MOST_COUNT * 8];

/* Magnitudes mixed, so that the order is seen. */
static void put(test_random *random, wb_dtype dtype, char *to, int64_t i) {
    const double x = ldexp(random_between(random, -1, 1), (int)random_below(random, 16));
    const float f = i % 97 ? (float)x : NAN;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (dtype == WB_F32)
        ((float *)(void *)to)[i] = f;
    else if (dtype == WB_F64)
        ((double *)(void *)to)[i] = x;
    else if (dtype == WB_BF16)
        ((uint16_t *)(void *)to)[i] = (uint16_t)(bits >> 16);
    else if (dtype == WB_I32)
        ((int32_t *)(void *)to)[i] = (int32_t)(x * 60000);
    else if (dtype == WB_I64)
        ((int64_t *)(void *)to)[i] = (int64_t)(x * 1e14);
    else
        ((uint8_t *)to)[i] = dtype == WB_BOOL ? x > 0 : (uint8_t)random_below(random, 256);
}

static void draw(test_random *random, wb_dtype dtype, int ranks) {
    for (int r = 0; r < ranks; r++)
        for (int64_t i = 0; i < MOST_COUNT; i++) put(random, dtype, given[r], i);
}

/* A NaN may be any. */
static bool is_same(wb_dtype dtype, int64_t i) {
    const size_t bytes = wb_dtype_size(dtype), at = (size_t)i * bytes;
    uint32_t a = 0, b = 0;
    if (memcmp(taken + at, expected + at, bytes) == 0) return true;
    if (dtype != WB_F32 && dtype != WB_BF16) return false;
    memcpy(&a, taken + at, bytes), memcpy(&b, expected + at, bytes);
    const uint32_t infinity = dtype == WB_F32 ? 0x7f800000u : 0x7f80u;
    return (a & infinity) == infinity && (b & infinity) == infinity && a % infinity && b % infinity;
}

static void copy(const wb_device_sums *s, wb_copy_kind kind, wb_memory to, wb_memory from,
                 size_t bytes) {
    const wb_device *d = s->device;
    assert_int_equal(d->backend->copy(d->context, s->queue, kind, to, from, bytes), WB_OK);
}

static void compare(wb_device_sums *s, wb_dtype dtype, wb_reduction reduction, int64_t count) {
    const size_t bytes = (size_t)count * wb_dtype_size(dtype);
    const void *parts[MOST];
    size_t stride;
    wb_memory sum, slot = wb_device_sums_slots(s, dtype, count, &stride);
    for (int r = 0; r < s->ranks; r++, slot.offset_bytes += (int64_t)stride) {
        copy(s, WB_COPY_UPLOAD, slot, (wb_memory){given[r], 0}, bytes);
        parts[r] = given[r];
    }
    assert_int_equal(wb_device_sums_add(s, dtype, reduction, count, &sum), WB_OK);
    copy(s, WB_COPY_DOWNLOAD, (wb_memory){taken, 0}, sum, bytes);
    assert_int_equal(s->device->backend->sync(s->device->context, s->queue), WB_OK);
    wb_reduce_parts(dtype, reduction, s->ranks, parts, count, expected);
    for (int64_t i = 0; i < count; i++)
        if (!is_same(dtype, i))
            fail_msg("%s, reduction %d, %d ranks, element %d of %d", wb_dtype_name(dtype),
                     (int)reduction, s->ranks, (int)i, (int)count);
}

static void are_those_of_the_host(void **state) {
    (void)state;
    static const wb_dtype types[] = {WB_F32, WB_F64, WB_BF16, WB_I32, WB_I64, WB_U8, WB_BOOL};
    static const int sizes[] = {2, 3, 4, 7, 33, 70};
    const wb_device *device = wb_default_device();
    test_random random = {5};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        wb_device_sums s;
        assert_true(wb_device_sums_open(&s, device, NULL, sizes[n]));
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            if (types[t] == WB_F64 && !device->info.has_f64) continue;
            draw(&random, types[t], sizes[n]);
            if (types[t] != WB_BOOL) compare(&s, types[t], WB_REDUCE_SUM, MOST_COUNT);
            if (wb_dtype_is_float(types[t])) compare(&s, types[t], WB_REDUCE_MEAN, 65);
            compare(&s, types[t], WB_REDUCE_MAX, 1);
            compare(&s, types[t], WB_REDUCE_MIN, MOST_COUNT);
        }
        wb_device_sums_close(&s);
    }
}

/* The room holds what it says for any number of ranks. */
static void most_is_a_slot_s_size(void **state) {
    (void)state;
    for (int ranks = 2; ranks <= WB_MOST_RANKS; ranks += ranks < 70 ? 1 : 53) {
        const wb_device_sums s = {.ranks = ranks};
        const int64_t most = wb_device_sums_most(&s, WB_F64);
        size_t stride;
        (void)wb_device_sums_slots(&s, WB_F64, most, &stride);
        assert_int_equal(stride, most * 8);
        assert_true(most >= ranks && stride * (size_t)(ranks + 1) <= 32 << 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_those_of_the_host),
        cmocka_unit_test(most_is_a_slot_s_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
