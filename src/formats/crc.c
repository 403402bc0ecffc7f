#include "formats/crc.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define FOLDING __attribute__((target("pclmul,sse4.1")))

enum { STEP = 16, STEPS = 4, LEAST = STEP * STEPS };

FOLDING static inline __m128i load(const unsigned char *at) {
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* x moved on by the distance that k stands for, and what lies there. */
FOLDING static inline __m128i fold(__m128i x, __m128i k, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(x, k, 0x00), high = _mm_clmulepi64_si128(x, k, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", bits reflected: x^n
 * mod P for the distances, and for the last step P and its inverse. size_bytes: a multiple of 16,
 * at least 64; crc: inverted, as the result is. */
FOLDING static uint32_t fold_all(uint32_t crc, const unsigned char *at, int64_t size_bytes) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4),
                  by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0),
                  by_8 = _mm_set_epi64x(0, 0x0163cd6124),
                  barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641),
                  halves = _mm_setr_epi32(~0, 0, ~0, 0);
    const unsigned char *end = at + size_bytes;
    __m128i x[STEPS];
    for (int i = 0; i < STEPS; i++, at += STEP) x[i] = load(at);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
    for (; end - at >= LEAST; at += LEAST)
        for (int i = 0; i < STEPS; i++) x[i] = fold(x[i], by_64, load(at + STEP * i));
    __m128i sum = x[0];
    for (int i = 1; i < STEPS; i++) sum = fold(sum, by_16, x[i]);
    for (; at < end; at += STEP) sum = fold(sum, by_16, load(at));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_16, 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(sum, halves), by_8, 0x00));
    __m128i whole = _mm_clmulepi64_si128(_mm_and_si128(sum, halves), barrett, 0x10);
    whole = _mm_clmulepi64_si128(_mm_and_si128(whole, halves), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, whole), 1);
}

/* What was taken off the front; the rest is left to zlib. */
static int64_t fold_most(uint32_t *crc, const unsigned char *bytes, int64_t size_bytes) {
    const int64_t most = size_bytes / STEP * STEP;
    if (most < LEAST || !__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1"))
        return 0;
    *crc = ~fold_all(~*crc, bytes, most);
    return most;
}
#else
static int64_t fold_most(uint32_t *crc, const unsigned char *bytes, int64_t size_bytes) {
    (void)crc, (void)bytes, (void)size_bytes;
    return 0;
}
#endif

uint32_t wb_crc32(uint32_t crc, const void *bytes, int64_t size_bytes) {
    const int64_t folded = fold_most(&crc, bytes, size_bytes);
    const unsigned char *rest = (const unsigned char *)bytes + folded;
    return (uint32_t)crc32_z(crc, rest, (z_size_t)(size_bytes - folded));
}
