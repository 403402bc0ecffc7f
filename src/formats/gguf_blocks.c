/* The types of GGUF's tensors, and how blocks of small integers become f32: ggml's arithmetic in
 * its order, so that the bits are the same. No product and sum stand in one expression, which some
 * compilers would round once. */
#include <string.h>

#include "base/half.h"
#include "base/widen.h"
#include "formats/gguf.h"

static float half_at(const unsigned char *bytes) {
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return (float)wb_of_f16(bits);
}

static float low_four(unsigned byte) { return (float)(byte & 15); }
static float high_four(unsigned byte) { return (float)(byte >> 4); }

/* scale f16, 32 of i8 */
static void unpack_q8_0(const unsigned char *b, int64_t count, void *elements) {
    float *y = elements;
    for (const float *end = y + count; y < end; y += 32, b += 34) {
        const float scale = half_at(b);
        for (int i = 0; i < 32; i++) y[i] = (float)(int8_t)b[2 + i] * scale;
    }
}

/* scale f16; the low halves of 16 bytes, then the high ones, minus 8 */
static void unpack_q4_0(const unsigned char *b, int64_t count, void *elements) {
    float *y = elements;
    for (const float *end = y + count; y < end; y += 32, b += 18) {
        const float scale = half_at(b);
        for (int i = 0; i < 16; i++) {
            y[i] = (low_four(b[2 + i]) - 8) * scale;
            y[16 + i] = (high_four(b[2 + i]) - 8) * scale;
        }
    }
}

/* The six bits of the scale, and of the minimum, of sub-block j of 8: those of the first four have
 * bytes of their own, in whose upper two bits are the upper two of the last four. */
static void scale_and_minimum(const unsigned char *s, int j, float *scale, float *minimum) {
    const int k = j - 4;
    *scale = (float)(j < 4 ? s[j] & 63 : (s[8 + k] & 15) | (s[k] >> 6 << 4));
    *minimum = (float)(j < 4 ? s[4 + j] & 63 : s[8 + k] >> 4 | (s[4 + k] >> 6 << 4));
}

/* scale f16, scale of the minima f16, 12 bytes of scales and minima, 128 bytes of values: of each
 * 32 the low halves are a sub-block, and the high halves the next */
static void unpack_q4_k(const unsigned char *b, int64_t count, void *elements) {
    float *y = elements;
    for (const float *end = y + count; y < end; y += 256, b += 144) {
        const float scale = half_at(b), minima = half_at(b + 2);
        for (int j = 0; j < 8; j++) {
            const unsigned char *values = b + 16 + j / 2 * 32;
            float d, m;
            scale_and_minimum(b + 4, j, &d, &m);
            d *= scale, m *= minima;
            for (int i = 0; i < 32; i++) {
                const float x = d * (j % 2 ? high_four(values[i]) : low_four(values[i]));
                y[32 * j + i] = x - m;
            }
        }
    }
}

/* 128 bytes with the low four bits, 64 with the high two, 16 scales of i8, scale f16; values minus
 * 32. In each half of the block, sub-block j of four has its low bits in 32 bytes, the high ones in
 * the bits 2 j of 32 others. */
static void unpack_q6_k(const unsigned char *b, int64_t count, void *elements) {
    float *y = elements;
    for (const float *end = y + count; y < end; y += 256, b += 210) {
        const float scale = half_at(b + 208);
        for (int j = 0; j < 8; j++) {
            const unsigned char *low = b + j / 4 * 64 + j % 2 * 32, *high = b + 128 + j / 4 * 32;
            for (int i = 0; i < 32; i++) {
                const float d = scale * (float)(int8_t)b[192 + 2 * j + i / 16];
                const int four = j % 4 < 2 ? low[i] & 15 : low[i] >> 4,
                          two = high[i] >> (2 * (j % 4)) & 3;
                y[32 * j + i] = d * (float)((four | two << 4) - 32);
            }
        }
    }
}

#define WIDEN(name, bytes, is_signed)                                                              \
    static void name(const unsigned char *b, int64_t count, void *elements) {                      \
        (void)wb_widen((wb_integers){bytes, is_signed, false}, b, count, elements);                \
    }
WIDEN(widen_i8, 1, true)
WIDEN(widen_i16, 2, true)
WIDEN(widen_u16, 2, false)
WIDEN(widen_u32, 4, false)
WIDEN(widen_u64, 8, false)

static const wb_gguf_type types[WB_GGUF_TYPES] = {
    [0] = {"f32", 1, 4, WB_F32, NULL},
    [1] = {"f16", 1, 2, WB_F16, NULL},
    [2] = {"q4_0", 32, 18, WB_F32, unpack_q4_0},
    [3] = {"q4_1", 32, 20, -1, NULL},
    [6] = {"q5_0", 32, 22, -1, NULL},
    [7] = {"q5_1", 32, 24, -1, NULL},
    [8] = {WB_GGUF_Q8_0, 32, 34, WB_F32, unpack_q8_0},
    [9] = {"q8_1", 32, 36, -1, NULL},
    [10] = {"q2_K", 256, 84, -1, NULL},
    [11] = {"q3_K", 256, 110, -1, NULL},
    [12] = {"q4_K", 256, 144, WB_F32, unpack_q4_k},
    [13] = {"q5_K", 256, 176, -1, NULL},
    [14] = {"q6_K", 256, 210, WB_F32, unpack_q6_k},
    [15] = {"q8_K", 256, 292, -1, NULL},
    [16] = {"iq2_xxs", 256, 66, -1, NULL},
    [17] = {"iq2_xs", 256, 74, -1, NULL},
    [18] = {"iq3_xxs", 256, 98, -1, NULL},
    [19] = {"iq1_s", 256, 50, -1, NULL},
    [20] = {"iq4_nl", 32, 18, -1, NULL},
    [21] = {"iq3_s", 256, 110, -1, NULL},
    [22] = {"iq2_s", 256, 82, -1, NULL},
    [23] = {"iq4_xs", 256, 136, -1, NULL},
    [24] = {"i8", 1, 1, WB_I32, widen_i8},
    [25] = {"i16", 1, 2, WB_I32, widen_i16},
    [26] = {"i32", 1, 4, WB_I32, NULL},
    [27] = {"i64", 1, 8, WB_I64, NULL},
    [28] = {"f64", 1, 8, WB_F64, NULL},
    [29] = {"iq1_m", 256, 56, -1, NULL},
    [30] = {"bf16", 1, 2, WB_BF16, NULL},
    [34] = {"tq1_0", 256, 54, -1, NULL},
    [35] = {"tq2_0", 256, 66, -1, NULL},
    [39] = {"mxfp4", 32, 17, -1, NULL},
};

const wb_gguf_type *wb_gguf_type_at(uint32_t number) {
    const bool is_known = number < WB_GGUF_TYPES && types[number].name;
    return is_known ? &types[number] : NULL;
}

const wb_gguf_number wb_gguf_numbers[WB_GGUF_VALUES] = {
    [WB_GGUF_U8] = {"u8", 1, WB_U8, false, NULL},
    [WB_GGUF_I8] = {"i8", 1, WB_I32, true, widen_i8},
    [WB_GGUF_U16] = {"u16", 2, WB_I32, false, widen_u16},
    [WB_GGUF_I16] = {"i16", 2, WB_I32, true, widen_i16},
    [WB_GGUF_U32] = {"u32", 4, WB_I64, false, widen_u32},
    [WB_GGUF_I32] = {"i32", 4, WB_I32, true, NULL},
    [WB_GGUF_F32] = {"f32", 4, WB_F32, true, NULL},
    [WB_GGUF_BOOL] = {"bool", 1, WB_BOOL, false, NULL},
    [WB_GGUF_U64] = {"u64", 8, WB_I64, false, widen_u64},
    [WB_GGUF_I64] = {"i64", 8, WB_I64, true, NULL},
    [WB_GGUF_F64] = {"f64", 8, WB_F64, true, NULL},
};
