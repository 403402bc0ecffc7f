/* Random numbers by counter: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", 2011).
 *
 * No state: block number b of a stream is a function of (key, counter + b), so element i of an
 * array is a function of (key, counter, i) alone, and any split of the array over calls, threads
 * or devices gives the same numbers. Layout, words w[0..3] of block b = counter + (position):
 *
 *     bits u32       element i   w[i & 3]                            of block i >> 2
 *     uniform f32    element i   (w[i & 3] >> 8) 2^-24               of block i >> 2
 *     uniform f64    element i   ((a >> 5) 2^26 + (b >> 6)) 2^-53    of block i >> 1,
 *                                a, b = w[2 (i & 1)], w[2 (i & 1) + 1]
 *     normal         elements 2j and 2j + 1 are r cos(t), r sin(t), r = sqrt(-2 log(1 - u)),
 *                    t = 2 pi v, with u, v the uniform elements 2j and 2j + 1 (Box and Muller 1958)
 *
 * Bits and uniforms are the same bits on every device and instruction set; normals agree up to
 * the rounding of log, sin and cos (whether multiply-adds are fused), and are the same bits for
 * any split on one instruction set. An array of n elements uses up (n + 3) / 4 blocks (f32, u32)
 * or (n + 1) / 2 (f64): advance counter by that. */
#ifndef WB_CPU_PHILOX_H
#define WB_CPU_PHILOX_H

#include "math_functions.h"

/* One round: two 32 x 32 -> 64 products, halves crossed over. */
static inline void philox_round(uint32_t w[4], uint32_t key_0, uint32_t key_1) {
    const uint64_t product_0 = (uint64_t)0xd2511f53u * w[0];
    const uint64_t product_1 = (uint64_t)0xcd9e8d57u * w[2];
    w[0] = (uint32_t)(product_1 >> 32) ^ w[1] ^ key_0;
    w[1] = (uint32_t)product_1;
    w[2] = (uint32_t)(product_0 >> 32) ^ w[3] ^ key_1;
    w[3] = (uint32_t)product_0;
}

/* The block of a 128-bit counter under a 64-bit key; low halves come first. */
static inline void wb_philox(uint32_t out[4], uint64_t counter_low, uint64_t counter_high,
                             uint64_t key) {
    uint32_t key_0 = (uint32_t)key, key_1 = (uint32_t)(key >> 32);
    uint32_t w[4] = {(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high,
                     (uint32_t)(counter_high >> 32)};
    for (int round = 0; round < 10; round++) {
        philox_round(w, key_0, key_1);
        key_0 += 0x9e3779b9u;
        key_1 += 0xbb67ae85u;
    }
    for (int i = 0; i < 4; i++) out[i] = w[i];
}

/* The array is made in tiles at fixed places, each with the same loops of fixed length: so an
 * element is computed by the same instructions however the array is split. */
enum { PHILOX_TILE = 64 }; /* blocks */

typedef struct philox_tile {
    uint32_t w[4][PHILOX_TILE]; /* word, block */
} philox_tile;

static inline void philox_fill(philox_tile *tile, uint64_t key, uint64_t counter) {
    for (int b = 0; b < PHILOX_TILE; b++) {
        uint32_t w[4];
        wb_philox(w, counter + (uint64_t)b, 0, key);
        tile->w[0][b] = w[0];
        tile->w[1][b] = w[1];
        tile->w[2][b] = w[2];
        tile->w[3][b] = w[3];
    }
}

/* [0, 1): 24 or 53 bits of the words. */
static inline float philox_uniform_f32(uint32_t a) { return (float)(int32_t)(a >> 8) * 0x1p-24f; }

static inline double philox_uniform_f64(uint32_t a, uint32_t b) {
    const double high = (double)(int32_t)(a >> 5), low = (double)(int32_t)(b >> 6);
    return (high * 0x1p26 + low) * 0x1p-53;
}

static inline void tile_bits_u32(const philox_tile *tile, uint32_t *out) {
    for (int b = 0; b < PHILOX_TILE; b++)
        for (int i = 0; i < 4; i++) out[4 * b + i] = tile->w[i][b];
}

static inline void tile_uniform_f32(const philox_tile *tile, float *out) {
    for (int b = 0; b < PHILOX_TILE; b++)
        for (int i = 0; i < 4; i++) out[4 * b + i] = philox_uniform_f32(tile->w[i][b]);
}

static inline void tile_uniform_f64(const philox_tile *tile, double *out) {
    for (int b = 0; b < PHILOX_TILE; b++)
        for (int i = 0; i < 2; i++)
            out[2 * b + i] = philox_uniform_f64(tile->w[2 * i][b], tile->w[2 * i + 1][b]);
}

/* cos and sin of 2 pi angle. */
typedef struct k_angle_f32 {
    float cos, sin;
} k_angle_f32;

typedef struct k_angle_f64 {
    double cos, sin;
} k_angle_f64;

/* angle in [0, 1): t = angle - q / 4 is exact, |t| <= 1/8. */
static inline k_angle_f32 k_angle_sin_cos_f32(float angle) {
    const float shifted = angle * 4.0f + WB_K_ROUND_F32, q = shifted - WB_K_ROUND_F32;
    const uint32_t quarter = k_bits_f32(shifted);
    const float t = angle - q * 0.25f, square = t * t;
    float s = 0x1.4bc236p+5f;
    s = s * square + -0x1.32ca84p+6f;
    s = s * square + 0x1.466bbap+6f;
    s = s * square + -0x1.4abbcep+5f;
    s = (s * square + 0x1.921fb6p+2f) * t;
    float c = 0x1.d99f1cp+5f;
    c = c * square + -0x1.55c4e8p+6f;
    c = c * square + 0x1.03c1dap+6f;
    c = c * square + -0x1.3bd3ccp+4f;
    c = c * square + 1.0f;
    const float near_cos = quarter & 1u ? s : c, near_sin = quarter & 1u ? c : s;
    const uint32_t sign_cos = ((quarter + 1u) & 2u) << 30, sign_sin = (quarter & 2u) << 30;
    return (k_angle_f32){k_from_bits_f32(k_bits_f32(near_cos) ^ sign_cos),
                         k_from_bits_f32(k_bits_f32(near_sin) ^ sign_sin)};
}

static inline k_angle_f64 k_angle_sin_cos_f64(double angle) {
    const double shifted = angle * 2.0 + WB_K_ROUND_F64, q = shifted - WB_K_ROUND_F64;
    const uint64_t sign = k_bits_f64(shifted) << 63;
    const double t = angle - q * 0.5, r = t * (2.0 * 0x1.921fb54442d18p+1);
    const double wrapped = 0.25 - k_abs_f64(t), complement = wrapped * (2.0 * 0x1.921fb54442d18p+1);
    return (k_angle_f64){k_from_bits_f64(k_bits_f64(k_sin_poly_f64(complement)) ^ sign),
                         k_from_bits_f64(k_bits_f64(k_sin_poly_f64(r)) ^ sign)};
}

static inline void tile_normal_f32(const philox_tile *tile, float *out) {
    for (int pair = 0; pair < 2; pair++)
        for (int b = 0; b < PHILOX_TILE; b++) {
            const float u = philox_uniform_f32(tile->w[2 * pair][b]);
            const float r = k_sqrt_f32(-2.0f * k_log_f32(1.0f - u));
            const k_angle_f32 angle =
                k_angle_sin_cos_f32(philox_uniform_f32(tile->w[2 * pair + 1][b]));
            out[4 * b + 2 * pair] = r * angle.cos;
            out[4 * b + 2 * pair + 1] = r * angle.sin;
        }
}

static inline void tile_normal_f64(const philox_tile *tile, double *out) {
    for (int b = 0; b < PHILOX_TILE; b++) {
        const double u = philox_uniform_f64(tile->w[0][b], tile->w[1][b]);
        const double r = k_sqrt_f64(-2.0 * k_log_f64(1.0 - u));
        const k_angle_f64 angle =
            k_angle_sin_cos_f64(philox_uniform_f64(tile->w[2][b], tile->w[3][b]));
        out[2 * b] = r * angle.cos;
        out[2 * b + 1] = r * angle.sin;
    }
}

/* void fill_KIND(T *out, int64_t first, int64_t n, uint64_t key, uint64_t counter): elements
 * first .. first + n - 1 of the array that (key, counter) define, into out[0] .. out[n - 1]. PER
 * elements come from a block. */
#define WB_PHILOX_FILL(kind, T, PER)                                                               \
    static inline void fill_##kind(T *out, int64_t first, int64_t n, uint64_t key,                 \
                                   uint64_t counter) {                                             \
        const int64_t size = (PER)*PHILOX_TILE;                                                    \
        philox_tile tile;                                                                          \
        T made[(PER)*PHILOX_TILE];                                                                 \
        for (int64_t done = 0, skip = first % size; done < n; skip = 0) {                          \
            philox_fill(&tile, key, counter + (uint64_t)((first + done) / size * PHILOX_TILE));    \
            tile_##kind(&tile, made);                                                              \
            const int64_t count = n - done < size - skip ? n - done : size - skip;                 \
            memcpy(out + done, made + skip, (size_t)count * sizeof *out);                          \
            done += count;                                                                         \
        }                                                                                          \
    }

WB_PHILOX_FILL(bits_u32, uint32_t, 4)
WB_PHILOX_FILL(uniform_f32, float, 4)
WB_PHILOX_FILL(uniform_f64, double, 2)
WB_PHILOX_FILL(normal_f32, float, 4)
WB_PHILOX_FILL(normal_f64, double, 2)

#endif
