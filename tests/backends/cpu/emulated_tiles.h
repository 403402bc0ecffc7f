/* The tiles of kernels/tiles_amx.h in memory, for any processor: Intel 64 and IA-32 Architectures
 * Software Developer's Manual, TDPBF16PS. Denormals are zero, in and out; each product is added
 * without a rounding of its own, to the sum of the first or of the second halves of the pairs. */
static uint32_t emulated[8][16][16];

static void load_tile(int tile, const void *from, int64_t step) {
    for (int row = 0; row < 16; row++)
        memcpy(emulated[tile][row], (const char *)from + row * step, sizeof emulated[tile][row]);
}

static void store_tile(int tile, void *to, int64_t step) {
    for (int row = 0; row < 16; row++)
        memcpy((char *)to + row * step, emulated[tile][row], sizeof emulated[tile][row]);
}

static float without_denormals(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static float half_of(uint32_t pair, int which) {
    return without_denormals(k_bf16_to_f32((uint16_t)(pair >> 16 * which)));
}

static void add_tile(int sums, int columns, int rows) {
    for (int j = 0; j < 16; j++)
        for (int i = 0; i < 16; i++) {
            float part[2] = {0, 0}, sum;
            for (int p = 0; p < 16; p++)
                for (int half = 0; half < 2; half++)
                    part[half] =
                        without_denormals(fmaf(half_of(emulated[columns][j][p], half),
                                               half_of(emulated[rows][p][i], half), part[half]));
            memcpy(&sum, &emulated[sums][j][i], sizeof sum);
            sum = without_denormals(without_denormals(sum) + without_denormals(part[0] + part[1]));
            memcpy(&emulated[sums][j][i], &sum, sizeof sum);
        }
}

#define TILE_LOAD(tile, from, step)    load_tile(tile, from, step)
#define TILE_STORE(tile, to, step)     store_tile(tile, to, step)
#define TILE_ZERO(tile)                memset(emulated[tile], 0, sizeof emulated[tile])
#define TILE_DOTS(sums, columns, rows) add_tile(sums, columns, rows)
