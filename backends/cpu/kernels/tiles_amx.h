/* Tiles of AMX: eight registers of 16 rows of 64 bytes. Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 1, chapter 18, and TDPBF16PS. In assembly, as dots_avx512.h. */
WB_INLINE void tiles_begin(void) {
    static const struct {
        uint8_t palette, first_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1,
                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %0" ::"m"(shapes));
}

WB_INLINE void tiles_end(void) { __asm__ volatile("tilerelease"); }

/* Rows `step` bytes apart. */
#define TILE_LOAD(tile, from, step)                                                                \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"(step) : "memory")
#define TILE_STORE(tile, to, step)                                                                 \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"(step) : "memory")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile ::)

/* sums[j][i] += sum over p, first of the first and of the second halves of all pairs, of
 * columns[j][p] rows[p][i] */
#define TILE_DOTS(sums, columns, rows)                                                             \
    __asm__ volatile("tdpbf16ps %%tmm" #rows ", %%tmm" #columns ", %%tmm" #sums ::)
