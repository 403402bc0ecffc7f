/* Chooses the tile by the shape of a product. If there are too few tiles to keep a device busy, a
 * long sum is cut into parts, which a second launch adds. */
#include "program/call_tile.h"

enum {
    BUSY = 256,      /* groups that keep a device busy */
    LEAST_PART = 256 /* of a sum that is cut because there are fewer */
};

typedef struct variant {
    int64_t rows, columns, depth;
} variant;

static int64_t tiles_of(const variant *v, int64_t rows, int64_t columns) {
    return wb_call_ceil(rows, v->rows) * wb_call_ceil(columns, v->columns);
}

static variant variant_for(int64_t rows, int64_t columns, int64_t matrices) {
    static const variant large = {128, 128, 8}, middle = {64, 64, 16}, high = {128, 16, 16},
                         wide = {16, 128, 16}, small = {32, 32, 32};
    if (columns <= 16 && rows > 32) return high;
    if (rows <= 16 && columns > 32) return wide;
    if (rows <= 32 && columns <= 32) return small;
    return tiles_of(&large, rows, columns) * matrices >= BUSY ? large : middle;
}

void wb_call_tile(wb_call_source *s, int64_t rows, int64_t columns, int64_t depth,
                  int64_t matrices) {
    enum { MOST_GROUPS = 1 << 20 };
    const variant v = variant_for(rows, columns, matrices);
    const int64_t tiles = tiles_of(&v, rows, columns) * matrices;
    int64_t part = wb_call_most(depth, 1), parts = 1;
    if (tiles > 0 && tiles < BUSY / 2 && depth >= 2 * LEAST_PART) {
        const int64_t wanted = wb_call_least(BUSY / tiles, depth / LEAST_PART);
        part = wb_call_ceil(wb_call_ceil(depth, wanted), v.depth) * v.depth;
        parts = wb_call_ceil(depth, part);
    }
    wb_call_constant(s, "TILE_ROWS", v.rows);
    wb_call_constant(s, "TILE_COLUMNS", v.columns);
    wb_call_constant(s, "TILE_DEPTH", v.depth);
    wb_call_constant(s, "SPLIT", parts > 1);
    wb_call_word(s, "ROWS_C", rows);
    wb_call_word(s, "COLUMNS_C", columns);
    wb_call_word(s, "DEPTH_C", depth);
    wb_call_word(s, "MATRICES", matrices);
    wb_call_word(s, "ROW_TILES", wb_call_ceil(rows, v.rows));
    wb_call_word(s, "COLUMN_TILES", wb_call_ceil(columns, v.columns));
    wb_call_word(s, "PART", part);
    wb_call_word(s, "PARTS", parts);
    wb_call_word(s, "TILES", tiles * parts);
    wb_call_reaches(s, rows * columns * matrices * parts);
    wb_call_reaches(s, depth + part);
    if (parts > 1)
        wb_call_scratch(s, "SUMS", rows * columns * matrices * parts * wb_call_real_bytes(s->call));
    wb_call_launch(s, "k_tile", wb_call_least(tiles * parts, MOST_GROUPS));
    if (parts > 1) wb_call_launch_items(s, "k_total", rows * columns * matrices, 1);
}
