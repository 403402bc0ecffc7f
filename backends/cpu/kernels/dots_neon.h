/* Pairs of bf16 by ARM's FEAT_BF16 (gemm_bf16.c): Arm Architecture Reference Manual, BFDOT, BFCVTN.
 * BFDOT adds the two products to each other and then to the sum, and rounds both times to odd:
 * each errs by less than one unit in the last place, where VDPBF16PS errs by half of one. */

WB_INLINE bfloat16x8_t pairs_of(wb_f32v v) { return vreinterpretq_bf16_f32(v); }

WB_INLINE wb_f32v add_dots(wb_f32v sum, wb_f32v a, wb_f32v b) {
    return vbfdotq_f32(sum, pairs_of(a), pairs_of(b));
}

/* lane is a constant where this is expanded. */
WB_INLINE wb_f32v add_dots_by_lane(wb_f32v sum, wb_f32v row, wb_f32v factor, int lane) {
    const bfloat16x8_t a = pairs_of(row), b = pairs_of(factor);
    if (lane == 0) return vbfdotq_laneq_f32(sum, a, b, 0);
    if (lane == 1) return vbfdotq_laneq_f32(sum, a, b, 1);
    if (lane == 2) return vbfdotq_laneq_f32(sum, a, b, 2);
    return vbfdotq_laneq_f32(sum, a, b, 3);
}

/* A pair in every lane. */
WB_INLINE wb_f32v set_pair(float pair) { return vdupq_n_f32(pair); }

WB_INLINE wb_f32v rounded_eight(const float *p) {
    const bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(p));
    return vreinterpretq_f32_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(p + 4)));
}

/* The first `count` of 8 k, in pairs; the others are 0, and not read. */
WB_INLINE wb_f32v load_pairs(const void *p, int64_t count, bool is_wide) {
    if (count >= 8) return is_wide ? rounded_eight(p) : wb_f32v_load(p);
    float wide[8] = {0};
    uint16_t halves[8] = {0};
    if (is_wide) {
        memcpy(wide, p, (size_t)count * sizeof *wide);
        return rounded_eight(wide);
    }
    memcpy(halves, p, (size_t)count * sizeof *halves);
    return vreinterpretq_f32_u16(vld1q_u16(halves));
}

/* `count` <= 4 numbers of one k. */
WB_INLINE uint16x4_t load_four(const void *p, int64_t count, bool is_wide) {
    if (is_wide) return vreinterpret_u16_bf16(vcvt_bf16_f32(wb_f32v_load_part(p, (int)count)));
    if (count >= 4) return vld1_u16(p);
    uint16_t halves[4] = {0};
    memcpy(halves, p, (size_t)count * sizeof *halves);
    return vld1_u16(halves);
}

/* Two k of `count` <= 4 rows side by side; second: NULL for zeros. */
WB_INLINE wb_f32v pair_up(const void *first, const void *second, int64_t count, bool is_wide) {
    const uint32x4_t low = vmovl_u16(load_four(first, count, is_wide));
    if (!second) return vreinterpretq_f32_u32(low);
    const uint32x4_t high = vshlq_n_u32(vmovl_u16(load_four(second, count, is_wide)), 16);
    return vreinterpretq_f32_u32(vorrq_u32(low, high));
}

/* `rows` <= 4 sums, rounded. */
WB_INLINE void store_rounded(uint16_t *c, const float *sums, int rows) {
    const uint16x4_t four = load_four(sums, rows, true);
    if (rows >= 4)
        vst1_u16(c, four);
    else
        memcpy(c, &four, (size_t)rows * sizeof *c);
}
