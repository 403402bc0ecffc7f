/* Pairs of bf16 by AVX512_BF16 (gemm_bf16.c): Intel 64 and IA-32 Architectures Software Developer's
 * Manual, VDPBF16PS. In assembly: with a flag for it the compiler might use the set elsewhere,
 * too. */
WB_INLINE wb_f32v add_dots(wb_f32v sum, wb_f32v a, wb_f32v b) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

/* Sixteen sums rounded. */
WB_INLINE __m256i rounded(wb_f32v sums) {
    __m256i halves;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(sums));
    return halves;
}

/* The sixteen numbers of first, then those of second, rounded. */
WB_INLINE __m512i rounded_two(wb_f32v first, wb_f32v second) {
    __m512i halves;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(halves) : "v"(second), "v"(first));
    return halves;
}

/* A pair in every lane: not a number, so that nothing may be computed with it. */
WB_INLINE wb_f32v set_pair(float pair) { return (wb_f32v)_mm512_set1_epi32((int)k_bits_f32(pair)); }

/* The first `count` of 32 k, in pairs; the others are 0, and not read. */
WB_INLINE wb_f32v load_pairs(const void *p, int64_t count, bool is_wide) {
    const __mmask32 mask = count >= 32 ? ~0u : (1u << count) - 1;
    if (!is_wide) return (wb_f32v)_mm512_maskz_loadu_epi16(mask, p);
    const wb_f32v low = _mm512_maskz_loadu_ps((__mmask16)mask, p);
    const wb_f32v high = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), (const float *)p + 16);
    return (wb_f32v)rounded_two(low, high);
}

/* Two k of `count` <= LANES rows side by side; second: NULL for zeros. */
WB_INLINE wb_f32v pair_up(const void *first, const void *second, int64_t count, bool is_wide) {
    const __mmask16 mask = wb_f32_mask((int)count);
    if (!is_wide) {
        const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first));
        if (!second) return (wb_f32v)low;
        const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, second));
        return (wb_f32v)_mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    }
    const __m512i row = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i in_turn = /* row i of the first 16, then row i of the next 16 */
        _mm512_or_si512(row, _mm512_slli_epi32(_mm512_add_epi32(row, _mm512_set1_epi32(16)), 16));
    const wb_f32v high = _mm512_maskz_loadu_ps(second ? mask : 0, second);
    const __m512i both = rounded_two(_mm512_maskz_loadu_ps(mask, first), high);
    return (wb_f32v)_mm512_permutexvar_epi16(in_turn, both);
}

/* `rows` <= 16 sums, rounded. */
WB_INLINE void store_rounded(uint16_t *c, const float *sums, int rows) {
    _mm256_mask_storeu_epi16(c, wb_f32_mask(rows), rounded(wb_f32v_load_part(sums, rows)));
}
