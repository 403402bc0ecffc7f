/* Products by tiles in shared memory, call_tile.txt. */
#ifndef WB_PROGRAM_CALL_TILE_H
#define WB_PROGRAM_CALL_TILE_H

#include "program/call_source.h"

/* Variant, sizes and launches of `matrices` products of (rows, depth) by (depth, columns). */
void wb_call_tile(wb_call_source *source, int64_t rows, int64_t columns, int64_t depth,
                  int64_t matrices);

#endif
