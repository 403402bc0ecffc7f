/* A file with PyTorch's names, and the rename table that brings them under a model's. */
#ifndef WB_TESTS_TORCH_FILE_H
#define WB_TESTS_TORCH_FILE_H

#include "formats/trees.h"

#include "array/array.h"

static const float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* PyTorch's names over arrays in its order of memory: a Conv2d (1, 2, 2, 2), a Linear (2, 3), a
 * bias. */
static inline void write_torch(const char *name) {
    const char *const names[] = {"0.weight", "0.bias", "3.weight"};
    wb_arena arena = {.blocks = NULL};
    wb_record *arrays[] = {data_of(&arena, WB_F32, 4, (const int64_t[]){2, 2, 2, 1}, numbers),
                           data_of(&arena, WB_F32, 1, (const int64_t[]){1}, numbers + 8),
                           data_of(&arena, WB_F32, 2, (const int64_t[]){3, 2}, numbers)};
    assert_int_equal(save_record(&wb_format_npz, name, map_of(&arena, 3, names, arrays), NULL),
                     WB_OK);
    wb_arena_release(&arena);
}

static const char good_table[] = "0.weight -> layers.1.weight flip\n"
                                 "*.bias   -> layers.*+1.bias\n"
                                 "3.weight -> layers.2.weight transpose\n";

#endif
